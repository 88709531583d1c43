"""merge_sort and merge beside CuPy, PyTorch and NumPy, which sort by value alone."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._bench.peers import cub
from gpualgo._bench.support import OURS, Row, Work, as_tensor, gpu, torch

CUB = (cub.MERGE_SORT,)  # what these rows compile of it
COLUMNS = 1 << 10


def _less(a: Any, b: Any) -> Any:
    return a < b


def _by_function(dtype: str, n: int) -> Work:
    x = gpu().random.default_rng(0).random(n, dtype="float32")
    if dtype == "int32":
        x = (x * (1 << 31)).astype(dtype)
    outs = [gpu().empty_like(x) for _ in range(2)]
    contenders: dict[str, Any] = {OURS: lambda: ga.merge_sort(x, less=_less, out=outs[0])}
    contenders |= cub.merge_sort(x, outs[1])
    if torch():
        tensor = as_tensor(x)
        contenders["torch, by value"] = lambda: torch().sort(tensor, stable=True)[0]
    return Work(contenders, gpu().sort(x))


def _rows(n: int) -> Work:
    x = gpu().random.default_rng(0).random(n, dtype="float32").reshape(-1, COLUMNS)
    contenders: dict[str, Any] = {
        OURS: lambda: ga.merge_sort(x, less=_less),
        "radix_sort": lambda: ga.radix_sort(x),
        "CuPy": lambda: gpu().sort(x),
    }
    return Work(contenders, gpu().sort(x))


def _merge(n: int) -> Work:
    rng = gpu().random.default_rng(0)
    a, b = (gpu().sort(rng.random(n // 2, dtype="float32")) for _ in range(2))
    contenders: dict[str, Any] = {
        OURS: lambda: ga.merge(a, b),
        "CuPy": lambda: gpu().sort(gpu().concatenate([a, b])),
    }
    return Work(contenders, gpu().sort(gpu().concatenate([a, b])))


def _numpy(n: int) -> Work:
    x = np.random.default_rng(0).random(n)
    contenders = {
        OURS: lambda: ga.merge_sort(x, less=_less),
        "NumPy": lambda: np.sort(x, kind="stable"),
    }
    return Work(contenders, np.sort(x))


def _numpy_by_key(n: int) -> Work:
    x = np.random.default_rng(0).integers(0, 1 << 31, n).astype(np.int32)
    contenders = {
        OURS: lambda: ga.merge_sort(x, less=lambda a, b: a >> 4 < b >> 4),
        "NumPy": lambda: x[np.argsort(x >> 4, kind="stable")],
    }
    return Work(contenders, x[np.argsort(x >> 4, kind="stable")])


def _numpy_merge(n: int) -> Work:
    a, b = (np.sort(np.random.default_rng(i).random(n // 2)) for i in range(2))
    contenders = {
        OURS: lambda: ga.merge(a, b),
        "NumPy": lambda: np.sort(np.concatenate([a, b]), kind="stable"),
    }
    return Work(contenders, np.sort(np.concatenate([a, b])))


def rows() -> list[Row]:
    """Return all rows, those that need a GPU among them."""
    n = 1 << 22
    cpu = [
        Row("merge_sort f64 by a lambda", n, "cpu", _numpy, 16 * n),
        Row("merge_sort i32 by a coarse key", n, "cpu", _numpy_by_key, 8 * n),
        Row("merge f64", n, "cpu", _numpy_merge, 16 * n),
    ]
    found = []
    for power in (16, 20, 24, 28):
        n = 1 << power
        quick = power in (20, 28)
        for dtype, name in (("float32", "f32"), ("int32", "i32")):
            build = functools.partial(_by_function, dtype)
            title = f"merge_sort {name} by a lambda"
            found.append(Row(title, n, "device", build, 8 * n, quick=quick, beside="CUB"))
        found.append(Row("merge f32", n, "device", _merge, 8 * n, quick=quick))
    found.append(Row("merge_sort of rows f32 by a lambda", n, "device", _rows, 8 * n))
    return found + cpu
