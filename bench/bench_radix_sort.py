"""Sorting beside CUB, CuPy, PyTorch and NumPy.

Run all rows with `python -m bench`, or these alone, with pytest-benchmark's statistics of the
time per call, by `pytest bench/bench_radix_sort.py`. The bytes of a rate are those of 8-bit
digits sorted one after the other, so a counting sort's rate may pass the memory's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import gpualgo as ga
from bench import data
from bench.peers import cub
from bench.support import OURS, Row, Work, as_tensor, gpu, time_with_pytest, torch

CUB = (cub.SORT_KEYS, cub.SORT_PAIRS)  # what these rows compile of it
COLUMNS = 1 << 10
_IN_TORCH = ("uint8", "int64", "float32")  # PyTorch sorts no wider unsigned integers


def moved(key_bytes: int, value_bytes: int = 0) -> int:
    """Return the bytes moved for each key: one reading, then a pass for each of its digits."""
    return key_bytes + 2 * key_bytes * (key_bytes + value_bytes)


def _poisoned(x: Any, dtype: Any = None) -> Any:
    """Return an output in which a value that was not written is seen."""
    return gpu().full(x.shape, 77, dtype or x.dtype)


def _keys(make: Callable[[int], Any], n: int) -> Work:
    cupy, x = gpu(), make(n)
    out = [_poisoned(x) for _ in range(2)]
    contenders = {OURS: lambda: ga.radix_sort(x, out=out[0])}
    contenders |= cub.sort_keys(x, out[1])
    contenders["CuPy"] = lambda: cupy.sort(x)
    if torch() and str(x.dtype) in _IN_TORCH:
        tensor = as_tensor(x)
        contenders["torch"] = lambda: torch().sort(tensor)[0]  # it finds the indices as well
    return Work(contenders, cupy.sort(x))


def _pairs(dtype: str, n: int) -> Work:
    x, values = data.bits(n, dtype), data.bits(n, dtype, seed=1)
    out = [(_poisoned(x), _poisoned(values)) for _ in range(2)]
    contenders = {OURS: lambda: ga.radix_sort(x, values, out=out[0])}
    contenders |= cub.sort_pairs(x, values, out[1])
    order = gpu().argsort(x)
    return Work(contenders, (x[order], values[order]))


def _argsort(n: int) -> Work:
    cupy, x = gpu(), data.floats(n)
    out = _poisoned(x, "int64")
    contenders = {OURS: lambda: ga.argsort(x, out=out), "CuPy": lambda: cupy.argsort(x)}
    if torch():
        tensor = as_tensor(x)
        contenders["torch"] = lambda: torch().argsort(tensor, stable=True)
    return Work(contenders, cupy.argsort(x))


def _rows(n: int) -> Work:
    cupy, x = gpu(), data.floats(n).reshape(-1, COLUMNS)
    out = [_poisoned(x) for _ in range(2)]
    contenders = {OURS: lambda: ga.radix_sort(x, axis=1, out=out[0])}
    contenders |= cub.sort_rows(x, out[1])
    contenders["CuPy"] = lambda: cupy.sort(x, axis=1)
    if torch():
        tensor = as_tensor(x)
        contenders["torch"] = lambda: torch().sort(tensor, dim=1)[0]
    return Work(contenders, cupy.sort(x, axis=1))


def _numpy(n: int) -> Work:
    x = np.random.default_rng(0).random(n, np.float32)
    out = np.full(n, 77, np.float32)
    contenders = {OURS: lambda: ga.radix_sort(x, out=out), "NumPy": lambda: np.sort(x)}
    return Work(contenders, np.sort(x))


def _numpy_argsort(n: int) -> Work:
    x = np.random.default_rng(0).random(n, np.float32)
    out = np.full(n, -1, np.int64)
    contenders = {
        OURS: lambda: ga.argsort(x, out=out),
        "NumPy": lambda: np.argsort(x, kind="stable"),
    }
    return Work(contenders, np.argsort(x, kind="stable"))


@dataclass(frozen=True)
class Kind:
    """One sort at several sizes."""

    name: str
    build: Callable[[int], Work]
    bytes_moved: int
    targets: dict[int, float] = field(default_factory=dict)  # by the logarithm of n
    sizes: tuple[int, ...] = (16, 20, 24, 28, 30)


def _of_keys(name: str, make: Callable[[int], Any], key_bytes: int, **others: Any) -> Kind:
    name = f"radix sort keys {name}"
    return Kind(name, functools.partial(_keys, make), moved(key_bytes), **others)


def _kinds() -> list[Kind]:
    bits, common, small = functools.partial, data.common_bits, {16: 0.8, 20: 0.8}
    only = {"sizes": (28,)}
    return [
        _of_keys("u32", bits(data.bits, dtype="uint32"), 4, targets={**small, 28: 0.8}),
        _of_keys("f32", data.floats, 4, targets={28: 0.8}),
        _of_keys("u64", bits(data.bits, dtype="uint64"), 8, targets={28: 0.8}),
        _of_keys("u16", bits(data.bits, dtype="uint16"), 2, targets={28: 0.2}),
        _of_keys("u8", bits(data.bits, dtype="uint8"), 1, targets={28: 0.1}),
        _of_keys("u32, entropy 0.544", bits(common, dtype="uint32", words=3), 4, **only),
        _of_keys("u32, entropy 0.201", bits(common, dtype="uint32", words=5), 4, **only),
        _of_keys("u32, all equal", lambda n: gpu().full(n, 0x1234567, "uint32"), 4, **only),
        _of_keys("i64, below 2^32", lambda n: data.bits(n, "uint32").astype("int64"), 8, **only),
        Kind(
            "radix sort pairs u32/u32",
            bits(_pairs, "uint32"),
            moved(4, 4),
            {**small, 28: 0.8},
        ),
        # At 2^30 inputs, outputs and both libraries' temporary storage pass 100 GB.
        Kind(
            "radix sort pairs u64/u64",
            bits(_pairs, "uint64"),
            moved(8, 8),
            {28: 0.85},
            (16, 20, 24, 28),
        ),
        Kind("argsort f32", _argsort, moved(4, 8), {28: 0.6}),
    ]


def rows() -> list[Row]:
    """Return the rows that this machine can run."""
    n = 1 << 24
    cpu = [
        Row("radix sort f32", n, "cpu", _numpy, moved(4) * n, 1.5),
        Row("argsort f32, NumPy's stable", n, "cpu", _numpy_argsort, moved(4, 8) * n, 0.15),
    ]
    if gpu() is None:
        return cpu
    found = []
    for kind in _kinds():
        for power in kind.sizes:
            n, target = 1 << power, kind.targets.get(power)
            quick = target is not None
            size = kind.bytes_moved * n
            found.append(Row(kind.name, n, "device", kind.build, size, target, quick))
    n = 1 << 28
    name = "sort over axis 1, f32, beside CuPy"
    found.append(Row(name, n, "device", _rows, moved(4) * n, 0.05, beside="CuPy"))
    return found + cpu


@pytest.mark.parametrize("row", rows(), ids=str)
def test_time(benchmark: Any, row: Row) -> None:
    time_with_pytest(benchmark, row)
