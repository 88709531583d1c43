"""Segmented reductions, scans and sorts beside CuPy, PyTorch and NumPy."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._bench.peers import cub
from gpualgo._bench.support import OURS, Row, Work, as_tensor, gpu, torch

CUB = (cub.SORT_PAIRS,)  # what these rows compile of it
LENGTHS = (16, 256, 1 << 16)
GIANT = 64  # the giant segment has all elements but a share of this


def _offsets(n: int, length: int) -> np.ndarray[Any, Any]:
    """Return the offsets of segments of one length; 0: of a giant one among tiny ones."""
    if length:
        return np.arange(0, n + 1, min(length, n))
    tiny = n // GIANT
    return np.concatenate([np.arange(tiny // 2), np.arange(n - tiny // 2, n + 1)])


def _sums(n: int, length: int) -> Work:
    """PyTorch's segment_reduce; of one length CuPy's sum over rows, which are no ragged ones."""
    xp = gpu()
    x = xp.random.default_rng(0).integers(0, 2, n).astype(np.float32)
    offsets = xp.asarray(_offsets(n, length))
    contenders: dict[str, Any] = {OURS: lambda: ga.segmented_reduce(x, offsets)}
    want = xp.concatenate([xp.zeros(1), xp.cumsum(x, dtype=np.float64)])[offsets]
    if torch():
        tensor, ends = as_tensor(x), as_tensor(offsets)
        contenders["torch"] = lambda: torch().segment_reduce(tensor, "sum", offsets=ends)
    if length:
        rows = x.reshape(-1, min(length, n))
        contenders["CuPy, of even rows"] = lambda: rows.sum(axis=1)
    # Sums of a giant segment are rounded.
    return Work(contenders, xp.diff(want).astype(np.float32), 0.0 if length else 1e-6)


def _scans(n: int, length: int) -> Work:
    xp = gpu()
    x = xp.random.default_rng(0).integers(0, 2, n).astype(np.int32)
    offsets = xp.asarray(_offsets(n, length))
    rows = x.reshape(-1, min(length, n))
    contenders: dict[str, Any] = {
        OURS: lambda: ga.segmented_inclusive_scan(x, offsets),
        "gpualgo, of even rows": lambda: ga.inclusive_scan(rows, axis=1),
    }
    return Work(contenders, xp.cumsum(rows, axis=1, dtype=np.int32).reshape(-1))


def _sorts(n: int, length: int) -> Work:
    """CUB's segmented sort; and CuPy's sort of rows, which are no ragged ones."""
    xp = gpu()
    x = xp.random.default_rng(0).random(n, np.float32)
    offsets = xp.asarray(_offsets(n, length))
    even = x.reshape(-1, min(length, n))
    contenders: dict[str, Any] = {
        OURS: lambda: ga.segmented_sort(x, offsets),
        "gpualgo, of even rows": lambda: ga.radix_sort(even),
        "CuPy, of even rows": lambda: xp.sort(even),
    }
    contenders |= cub.sort_rows(even, xp.empty_like(even))
    return Work(contenders, xp.sort(even).reshape(-1))


def _numpy(n: int, length: int) -> Work:
    x = np.random.default_rng(0).integers(0, 2, n).astype(np.float32)
    offsets = _offsets(n, length)
    contenders = {
        OURS: lambda: ga.segmented_reduce(x, offsets),
        "NumPy": lambda: np.add.reduceat(x, offsets[:-1]),
    }
    return Work(contenders, np.add.reduceat(x, offsets[:-1]))


def rows() -> list[Row]:
    """Return all rows, those that need a GPU among them."""
    found = []
    for length in LENGTHS:
        for power in (16, 20, 22):
            n, quick = 1 << power, power == 22
            title = f"segmented sum f32, {length}"
            found.append(Row(title, n, "cpu", partial(_numpy, length=length), 4 * n, quick=quick))
    for length in (*LENGTHS, 0):
        for power in (16, 20, 24, 28):
            n, quick = 1 << power, power in (20, 28)
            title = f"segmented sum f32, {length or 'a giant one'}"
            build = partial(_sums, length=length)
            found.append(Row(title, n, "device", build, 4 * n, quick=quick))
            if length:
                title = f"segmented scan i32, {length}"
                build = partial(_scans, length=length)
                found.append(Row(title, n, "device", build, 8 * n, quick=quick))
                title, build = f"segmented sort f32, {length}", partial(_sorts, length=length)
                found.append(Row(title, n, "device", build, 8 * n, quick=quick, beside="CUB"))
    return found
