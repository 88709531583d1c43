"""Sums of weights in Python: what histograms with weights are compared with."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from support import BFLOAT16, Backend, random_array

import gpualgo as ga
from gpualgo._algorithms.by_index.tuning import GROUP, tiling_of


def weighted(backend: Backend, x: Any, weights: Any, *args: Any, **kwargs: Any) -> Any:
    given = tuple(map(backend.to_device, x)) if isinstance(x, tuple) else backend.to_device(x)
    if isinstance(weights, np.ndarray):
        weights = backend.to_device(weights)
    return backend.to_host(ga.histogram(given, *args, weights=weights, **kwargs))


def result_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    wide = {"b": "int64", "i": "int64", "u": "uint64"}
    return np.dtype(wide.get(dtype.kind, dtype)) if dtype != BFLOAT16 else BFLOAT16


def _eps(dtype: np.dtype[Any]) -> tuple[float, float]:
    """Return the spacing at 1 and the least number of a float dtype."""
    info: Any = np.finfo(dtype) if dtype != BFLOAT16 else __import__("ml_dtypes").finfo(dtype)
    return float(info.eps), float(info.smallest_subnormal)


def _depth(num_samples: int, num_bins: int) -> int:
    """Return through how many additions a weight goes on a GPU, at most.

    A row of 32 samples is joined in 5 steps, the rows of a share are added one after another, and
    then the tables of shares, or those of a group and then the groups.
    """
    cut = tiling_of(num_samples, num_bins)
    tables = GROUP + cut.num_groups if cut.num_groups else cut.num_shares
    return 5 + cut.share_items // 32 + tables


def assert_sum(got: Any, weights: np.ndarray[Any, Any], depth: int = 1 << 31) -> None:
    """Assert that a number of the result is the sum of these weights of its dtype."""
    dtype = weights.dtype
    if dtype.kind == "c":
        assert_sum(got.real, weights.real, depth)
        assert_sum(got.imag, weights.imag, depth)
        return
    if dtype.kind in "biu":
        with np.errstate(over="ignore"):
            assert got == weights.sum(dtype=got.dtype)
        return
    numbers, found = weights.astype(np.float64), float(got)
    if not np.isfinite(numbers).all():
        with np.errstate(invalid="ignore"):
            want = numbers[~np.isfinite(numbers)].sum()
        np.testing.assert_equal(found, want)
        return
    if not numbers.any():
        assert found == 0
        assert not np.signbit(found), "-0.0"
        return
    exact, size = (sum(map(Fraction, x.tolist()), Fraction(0)) for x in (numbers, abs(numbers)))
    assert np.isfinite(found), f"{found}, not {float(exact)}"
    # An addition rounds by half of eps times its sum, which is at most `size`. A CPU adds float64
    # weights of a bin one after another, and others as float64. The result is rounded once more.
    eps, least = _eps(dtype)
    acc_eps = min(eps, _eps(np.dtype("float32"))[0])
    additions = weights.size if dtype.itemsize == 8 else min(depth, weights.size)
    allowed = Fraction(acc_eps) / 2 * additions * size + Fraction(eps) / 2 * abs(exact)
    allowed = allowed * Fraction(1001, 1000) + Fraction(least)  # rounding errors of errors
    assert abs(Fraction(found) - exact) <= allowed, f"{found}, not {float(exact)}"


def assert_sums(got: Any, places: Any, weights: Any) -> None:
    """Assert that each bin has the sum of its samples' weights, given the bin of each sample."""
    assert got.dtype == result_dtype(weights.dtype)
    depth = _depth(weights.size, len(got))
    for i, found in enumerate(got):
        assert_sum(found, weights[places == i], depth)


def some_weights(n: int, dtype: np.dtype[Any], spread: int = 12) -> np.ndarray[Any, Any]:
    """Return weights of many magnitudes."""
    x = random_array(n, dtype, 5)
    if dtype.kind in "biu":
        return x
    powers = np.random.default_rng(6).integers(-spread, spread, n)
    real = np.dtype("float32") if dtype.itemsize == 2 else dtype
    return (x.astype(real) * np.exp2(powers)).astype(dtype)
