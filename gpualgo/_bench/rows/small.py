"""Calls on small NumPy arrays on the CPU, where what surrounds the kernel is most of the time."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._bench.support import OURS, Row, Work

CUB = ()  # these rows compile nothing of it
_KEYS = 1 << 19  # of all arrays that a row of sorts goes through: no branch is learned by heart


def _numbers(n: int) -> Any:
    return np.random.default_rng(0).standard_normal(n)


def _reduce(n: int) -> Work:
    x = _numbers(n)
    ours = lambda: ga.reduce(x, 0.0, lambda a, b: a + b)  # noqa: E731
    return Work({OURS: ours, "NumPy": lambda: np.sum(x)}, np.sum(x), 1e-9)


def _transform(n: int) -> Work:
    x = _numbers(n)
    ours = lambda: ga.transform(lambda a: a * 2 + 1, x)  # noqa: E731
    return Work({OURS: ours, "NumPy": lambda: x * 2 + 1}, x * 2 + 1)


def _scan(n: int) -> Work:
    x = np.abs(_numbers(n))
    ours = lambda: ga.inclusive_scan(x, None, lambda a, b: a + b)  # noqa: E731
    return Work({OURS: ours, "NumPy": lambda: np.cumsum(x)}, np.cumsum(x), 1e-9)


def _histogram(n: int) -> Work:
    x = _numbers(n)
    ours = lambda: ga.histogram(x, 10, (-3, 3))  # noqa: E731

    def by_numpy() -> Any:
        return np.histogram(x, 10, (-3, 3))[0]

    return Work({OURS: ours, "NumPy": by_numpy}, by_numpy())


def _sort(dtype: str, n: int) -> Work:
    arrays = [_keys(dtype, n, seed) for seed in range(max(4, _KEYS // n))]

    def ours() -> Any:
        for x in arrays:
            result = ga.radix_sort(x)
        return result

    def by_numpy() -> Any:
        for x in arrays:
            result = np.sort(x)
        return result

    return Work({OURS: ours, "NumPy": by_numpy}, np.sort(arrays[-1]))


def _keys(dtype: str, n: int, seed: int) -> Any:
    random, kind = np.random.default_rng(seed), np.dtype(dtype)
    if kind.kind == "f":
        return random.standard_normal(n).astype(kind)
    info = np.iinfo(kind)
    return random.integers(info.min, info.max, n, dtype=kind, endpoint=True)


def rows() -> list[Row]:
    """Return the rows: they need no GPU."""
    found = []
    calls = {"reduce": _reduce, "transform": _transform, "scan": _scan, "histogram": _histogram}
    for (name, build), n in ((call, n) for call in calls.items() for n in (1000, 10_000, 100_000)):
        found.append(Row(f"small {name}, f64", n, "cpu", build))
    for dtype in ("int8", "int16", "int32", "float64"):
        for power in (10, 12, 14, 16, 18, 20):
            build = functools.partial(_sort, dtype)
            found.append(Row(f"small sorts, {dtype}", 1 << power, "cpu", build))
    return found
