"""Reductions and scans by key beside CUB, CuPy, PyTorch and NumPy."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._bench import data
from gpualgo._bench.peers import cub, frames
from gpualgo._bench.support import OURS, Row, Work, as_tensor, gpu, torch

CUB = (cub.BY_KEY,)  # what these rows compile of it


def _in_runs(xp: Any, n: int, length: int) -> Any:
    """Return int32 keys in runs of a length, neighbours of which differ."""
    return (xp.arange(n, dtype="int64") // length * 7919 % 1_000_003).astype("int32")


def _sums(x: Any, length: int) -> Any:
    """Return the sums of runs of a length, which are exact."""
    n = x.size
    whole = x.astype("float64")
    padded = gpu().zeros(-(-n // length) * length)
    padded[:n] = whole
    return padded.reshape(-1, length).sum(axis=1).astype("float32")


def _reduce(length: int, n: int) -> Work:
    keys, x = _in_runs(gpu(), n, length), data.steps(n, "float32")
    size = -(-n // length)
    outs = [(gpu().empty(size, "int32"), gpu().empty(size, "float32")) for _ in range(2)]
    count = gpu().empty((), "int64")
    contenders: dict[str, Any] = {
        OURS: lambda: ga.reduce_by_key(keys, x, consecutive=True, out=outs[0], out_count=count)
    }
    contenders |= cub.reduction_by_key(keys, x, outs[1])
    return Work(contenders, (keys[::length].copy(), _sums(x, length)))


def _scan(length: int, n: int) -> Work:
    keys, x = _in_runs(gpu(), n, length), data.steps(n, "float32")
    outs = [gpu().full(n, 77, "float32") for _ in range(2)]
    contenders: dict[str, Any] = {
        OURS: lambda: ga.inclusive_scan_by_key(keys, x, consecutive=True, out=outs[0])
    }
    contenders |= cub.scan_by_key(keys, x, outs[1])
    whole = x.cumsum(dtype="float64")
    starts = gpu().arange(n) // length * length
    return Work(contenders, (whole - (whole - x)[starts]).astype("float32"))


def _groups(n: int) -> Work:
    return _by_number(n, 1000, lambda keys, x: ga.reduce_by_key(keys, x)[1])


def _indexed(size: int, n: int) -> Work:
    return _by_number(n, size, lambda keys, x: ga.reduce_by_index(keys, x, size))


def _by_number(n: int, size: int, ours: Any) -> Work:
    keys = gpu().random.default_rng(0).integers(0, size, n, dtype="int32")
    x = data.steps(n, "float32")
    contenders: dict[str, Any] = {OURS: lambda: ours(keys, x)}
    contenders["CuPy"] = lambda: gpu().bincount(keys, x, size).astype("float32")
    if torch():
        wide, tensor = as_tensor(keys).long(), as_tensor(x)
        zeros = torch().zeros(size, device=tensor.device)
        contenders["torch"] = lambda: zeros.index_add(0, wide, tensor)
    return Work(contenders, gpu().bincount(keys, x, size).astype("float32"))


def _numpy(n: int) -> Work:
    keys = np.arange(n, dtype=np.int32) // 64
    x = np.random.default_rng(0).integers(-8, 9, n).astype(np.float32)  # sums are exact
    starts = np.arange(0, n, 64)
    contenders = {
        OURS: lambda: ga.reduce_by_key(keys, x, consecutive=True)[1],
        "NumPy": lambda: np.add.reduceat(x, np.flatnonzero(np.diff(keys, prepend=-1))),
    }
    return Work(contenders, np.add.reduceat(x, starts))


def _numpy_groups(n: int) -> Work:
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 1000, n, np.int32)
    x = rng.integers(-8, 9, n).astype(np.float32)  # sums are exact
    contenders: dict[str, Any] = {
        OURS: lambda: ga.reduce_by_key(keys, x)[1],
        "NumPy": lambda: np.bincount(keys, x, 1000).astype(np.float32),
    }
    contenders |= frames.sums_by_key(keys, x)
    return Work(contenders, np.bincount(keys, x, 1000).astype(np.float32))


def rows() -> list[Row]:
    """Return all rows, those that need a GPU among them."""
    name, n = "reduce_by_key of 1000 keys in any order", 1 << 22
    cpu = [
        Row("reduce_by_key i32/f32, runs of 64", n, "cpu", _numpy, 8 * n),
        Row(name, n, "cpu", _numpy_groups, 8 * n, dtype="i32"),
    ]
    found = []
    for power in (16, 20, 24, 28):
        n = 1 << power
        for length in (4, 64, 4096):
            name = f"reduce_by_key i32/f32, runs of {length}"
            build = functools.partial(_reduce, length)
            found.append(Row(name, n, "device", build, 8 * (n + n // length), quick=power == 28))
        for length in (64, 4096, n):
            name = f"scan by key i32/f32, runs of {'all' if length == n else length}"
            build = functools.partial(_scan, length)
            of_its_size = length == n
            found.append(
                Row(
                    name, n, "device", build, 12 * n, quick=power == 28, of_its_size=of_its_size
                )
            )  # fmt: skip
        found.append(
            Row("reduce_by_key of 1000 keys in any order", n, "device", _groups, 8 * n, dtype="i32")
        )
        for size in (16, 1000, 4096, 100_000):
            build = functools.partial(_indexed, size)
            name = f"reduce_by_index i32/f32, {size} results"
            found.append(Row(name, n, "device", build, 8 * n, quick=power == 28))
    return found + cpu
