"""searchsorted beside CuPy, PyTorch and NumPy."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._bench.support import OURS, Row, Work, as_tensor, gpu, torch

CUB = ()


def _queries(dtype: str, are_sorted: bool, share: int, n: int) -> Work:
    """As many random queries as elements, or one for `share` of them."""
    rng = gpu().random.default_rng(0)
    a, v = (rng.random(size, dtype="float32") for size in (n, n // share))
    if dtype != "float32":
        a, v = ((x * (1 << 24)).astype(dtype) for x in (a, v))
    a = gpu().sort(a)
    v = gpu().sort(v) if are_sorted else v
    want = gpu().searchsorted(a, v)
    out = gpu().empty_like(want)
    contenders: dict[str, Any] = {
        OURS: lambda: ga.searchsorted(a, v, out=out),
        "CuPy": lambda: gpu().searchsorted(a, v),
    }
    if torch():
        tensors = as_tensor(a), as_tensor(v)
        contenders["torch"] = lambda: torch().searchsorted(*tensors)
    return Work(contenders, want)


def _numpy(n: int) -> Work:
    rng = np.random.default_rng(0)
    a, v = np.sort(rng.random(n)), rng.random(n)
    contenders = {
        OURS: lambda: ga.searchsorted(a, v),
        "NumPy": lambda: np.searchsorted(a, v),
    }
    return Work(contenders, np.searchsorted(a, v))


def rows() -> list[Row]:
    """Return all rows, those that need a GPU among them."""
    found = [Row("searchsorted f64", 1 << 20, "cpu", _numpy, 24 << 20)]
    for power in (16, 20, 24, 28):
        n = 1 << power
        for name, dtype, are_sorted, share in (
            ("searchsorted f32, random queries", "float32", False, 1),
            ("searchsorted f32, sorted queries", "float32", True, 1),
            ("searchsorted i64, random queries", "int64", False, 1),
            ("searchsorted f32, a query for 64", "float32", False, 64),
        ):
            build = functools.partial(_queries, dtype, are_sorted, share)
            found.append(
                Row(name, n, "device", build, 0.0, quick=power == 24 and dtype == "float32")
            )
    return found
