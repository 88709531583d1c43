"""Exact sums in Python: what histograms with weights are compared with."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from support import BFLOAT16, Backend, random_array

import gpualgo as ga


def weighted(backend: Backend, x: Any, weights: Any, *args: Any, **kwargs: Any) -> Any:
    given = tuple(map(backend.to_device, x)) if isinstance(x, tuple) else backend.to_device(x)
    if isinstance(weights, np.ndarray):
        weights = backend.to_device(weights)
    return backend.to_host(ga.histogram(given, *args, weights=weights, **kwargs))


def result_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    wide = {"b": "int64", "i": "int64", "u": "uint64"}
    return np.dtype(wide.get(dtype.kind, dtype)) if dtype != BFLOAT16 else BFLOAT16


def nearest(exact: Fraction, dtype: np.dtype[Any]) -> float:
    """Return the float of a dtype that is nearest to a fraction, ties to even."""
    mantissa, least, beyond = {
        "float16": (11, -24, 16), "bfloat16": (8, -133, 128), "float32": (24, -149, 128),
        "float64": (53, -1074, 1024),
    }[str(dtype)]  # fmt: skip
    if not exact:
        return 0.0
    power = exact.numerator.bit_length() - exact.denominator.bit_length() - mantissa - 1
    unit = Fraction(2) ** power
    while abs(exact) / unit >= 1 << mantissa:
        unit *= 2
    unit = max(unit, Fraction(2) ** least)
    found = round(exact / unit) * unit  # half to even
    if abs(found) >= 2**beyond:
        return math.inf if exact > 0 else -math.inf
    return float(found)


def summed(weights: np.ndarray[Any, Any]) -> Any:
    """Return the sum of weights in their own dtype: as IEEE says, and rounded once."""
    dtype = result_dtype(weights.dtype)
    if dtype.kind == "c":
        return complex(summed(weights.real), summed(weights.imag))
    if dtype.kind in "iu":
        with np.errstate(over="ignore"):
            return weights.astype(dtype).sum(dtype=dtype)
    numbers = weights.astype(np.float64)
    if not np.isfinite(numbers).all():
        with np.errstate(invalid="ignore"):
            return numbers[~np.isfinite(numbers)].sum()
    return nearest(sum(map(Fraction, numbers.tolist()), Fraction(0)), dtype)


def by_loop(places: Any, weights: Any, num_bins: int) -> np.ndarray[Any, Any]:
    """Return the sums of bins, given the bin of each sample, -1 for none."""
    sums = [summed(weights[places == i]) for i in range(num_bins)]
    return np.array(sums).astype(result_dtype(weights.dtype))


def some_weights(n: int, dtype: np.dtype[Any], spread: int = 12) -> np.ndarray[Any, Any]:
    """Return weights of many magnitudes."""
    x = random_array(n, dtype, 5)
    if dtype.kind in "biu":
        return x
    powers = np.random.default_rng(6).integers(-spread, spread, n)
    real = np.dtype("float32") if dtype.itemsize == 2 else dtype
    return (x.astype(real) * np.exp2(powers)).astype(dtype)
