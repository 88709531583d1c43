"""Runs of keys, and by a loop in Python what reductions and scans of them are compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from support import BFLOAT16, Backend, random_array

Fold = Callable[[Any, Any], Any]


def same_value(a: Any, b: Any) -> bool:
    """Say whether keys are equal in the order of values: all NaN are, and tuples by each number."""
    if isinstance(a, tuple):
        return all(map(same_value, a, b))
    return bool(a == b or (a != a and b != b))


def runs_of(keys: Sequence[Any], eq: Fold | None = None) -> list[tuple[int, int]]:
    """Return where runs of equal neighbours begin and end."""
    is_equal = same_value if eq is None else eq
    heads = [i for i in range(len(keys)) if i == 0 or not is_equal(keys[i - 1], keys[i])]
    return list(zip(heads, [*heads[1:], len(keys)], strict=True))


def scanned(
    x: Sequence[Any], fold: Fold, init: Any = None, is_exclusive: bool = False
) -> list[Any]:
    """Return the scan of one run."""
    found, value = [], init
    for element in x:
        if is_exclusive:
            found.append(value)
        value = element if value is None else fold(value, element)
        if not is_exclusive:
            found.append(value)
    return found


def reduced_by_key(
    keys: Sequence[Any], x: Sequence[Any], fold: Fold, init: Any = None, eq: Fold | None = None
) -> tuple[list[Any], list[Any]]:
    """Return the first key of each run, and the fold of its elements."""
    runs = runs_of(keys, eq)
    return [keys[begin] for begin, _ in runs], [
        scanned(x[begin:end], fold, init)[-1] for begin, end in runs
    ]


def scanned_by_key(
    keys: Sequence[Any], x: Sequence[Any], fold: Fold, init: Any = None,
    is_exclusive: bool = False, eq: Fold | None = None,
) -> list[Any]:  # fmt: skip
    """Return the scans of all runs, one behind the other."""
    found: list[Any] = []
    for begin, end in runs_of(keys, eq):
        found += scanned(x[begin:end], fold, init, is_exclusive)
    return found


def heads_of(keys: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return where runs of numbers begin."""
    if not keys.size:
        return np.zeros(0, np.int64)
    same = (keys[1:] == keys[:-1]) | ((keys[1:] != keys[1:]) & (keys[:-1] != keys[:-1]))
    return np.flatnonzero(np.append([True], ~same))


def summed_by_key(
    keys: np.ndarray[Any, Any], x: np.ndarray[Any, Any]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the first key of each run, and the sum of its elements, where sums are exact."""
    heads = heads_of(keys)
    return keys[heads], np.add.reduceat(x, heads).astype(x.dtype) if x.size else x


def running_sums(keys: np.ndarray[Any, Any], x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the running sums of each run, where sums are exact."""
    if not x.size:
        return x
    heads = heads_of(keys)
    whole = np.cumsum(x, dtype=x.dtype)
    lengths = np.diff(np.append(heads, x.size))
    return (whole - np.repeat(whole[heads] - x[heads], lengths)).astype(x.dtype)


def in_runs(n: int, most: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Return keys in runs of up to so many, of few values."""
    rng = np.random.default_rng(seed)
    count = 4 * n // (most + 1) + 1
    keys = np.repeat(rng.integers(0, 5, count), rng.integers(1, most + 1, count))
    return np.resize(keys, n).astype(np.int32)


def few(n: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return keys of few values in short runs."""
    rng = np.random.default_rng(2)
    some = random_array(4, dtype, 1)
    if some.dtype.kind in "fc" or some.dtype == BFLOAT16:
        some = np.append(some[:2], np.array([0.0, -0.0, np.nan, -np.nan])).astype(dtype)
    return np.resize(np.repeat(some[rng.integers(0, len(some), n)], rng.integers(1, 9, n)), n)


def same_bits(backend: Backend, got: Any, want: np.ndarray[Any, Any]) -> None:
    got = backend.to_host(got)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    if got.tobytes() != np.ascontiguousarray(want).tobytes():
        np.testing.assert_array_equal(got, want)
        raise AssertionError("equal values of different bits")


def values(n: int, seed: int = 1) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(-9, 9, n).astype(np.float32)
