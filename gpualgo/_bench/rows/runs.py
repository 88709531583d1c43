"""run_length_encode and unique beside CuPy, PyTorch and NumPy."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._bench.peers import cub, frames
from gpualgo._bench.support import OURS, Row, Work, as_tensor, gpu, torch

CUB = (cub.SELECT,)  # what these rows compile of it


def _in_runs(xp: Any, n: int, length: int) -> Any:
    """Return int32 runs of a length, neighbours of which differ."""
    return (xp.arange(n, dtype="int64") // length * 7919 % 1_000_003).astype("int32")


def _heads(length: int, n: int) -> Work:
    x = _in_runs(gpu(), n, length)
    out, count = gpu().empty(-(-n // length), "int32"), gpu().empty((), "int64")
    contenders: dict[str, Any] = {
        OURS: lambda: ga.unique(x, consecutive=True, out=out, out_count=count)
    }
    contenders |= cub.selection("unique", [x], gpu().empty_like(out), n)
    if torch():
        tensor = as_tensor(x)
        contenders["torch"] = lambda: torch().unique_consecutive(tensor)
    return Work(contenders, x[::length].copy())


def _encode(length: int, n: int) -> Work:
    x = _in_runs(gpu(), n, length)
    size = -(-n // length)
    outs = gpu().empty(size, "int32"), gpu().empty(size, "int64")
    count = gpu().empty((), "int64")
    lengths = gpu().full(size, length, "int64")
    lengths[-1] = n - (size - 1) * length
    contenders: dict[str, Any] = {OURS: lambda: ga.run_length_encode(x, out=outs, out_count=count)}
    contenders |= cub.selection("encode", [x], (outs[0].copy(), gpu().empty(size, "int32")), n)
    if torch():
        tensor = as_tensor(x)
        contenders["torch"] = lambda: torch().unique_consecutive(tensor, return_counts=True)
    return Work(contenders, (x[::length].copy(), lengths), any_dtype=True)  # CUB's have 32 bits


def _unique(n: int) -> Work:
    x = gpu().random.default_rng(0).random(n, dtype="float32")
    contenders: dict[str, Any] = {OURS: lambda: ga.unique(x), "CuPy": lambda: gpu().unique(x)}
    if torch():
        tensor = as_tensor(x)
        contenders["torch"] = lambda: torch().unique(tensor)
    return Work(contenders, gpu().unique(x))


def _numpy(n: int) -> Work:
    x = np.random.default_rng(0).integers(0, 1000, n, np.int32)
    contenders = {OURS: lambda: ga.unique(x), "NumPy": lambda: np.unique(x)}
    contenders |= frames.series(x, lambda s: s.unique().sort())
    return Work(contenders, np.unique(x))


def rows() -> list[Row]:
    """Return all rows, those that need a GPU among them."""
    cpu = [Row("unique of int32 below 1000", 1 << 22, "cpu", _numpy, 2**24)]
    found = []
    for power in (20, 24, 28):
        n = 1 << power
        for length in (1, 4, 64):
            name = f"consecutive unique i32, runs of {length}"
            build = functools.partial(_heads, length)
            size = 4 * (n + n // length)
            found.append(Row(name, n, "device", build, size, quick=power == 28 and length == 4))
        for length in (4, 64, 4096):
            name = f"run-length encode i32, runs of {length}"
            build = functools.partial(_encode, length)
            size = 4 * n + 12 * n // length
            found.append(Row(name, n, "device", build, size, quick=power == 28 and length == 4))
        found.append(Row("unique f32", n, "device", _unique, quick=power == 28))
    return found + cpu
