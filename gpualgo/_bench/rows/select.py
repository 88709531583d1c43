"""select, stable_partition and count beside CuPy, PyTorch and NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._bench.peers import cub
from gpualgo._bench.support import OURS, Row, Work, as_tensor, gpu, torch

CUB = (cub.SELECT,)  # what these rows compile of it


def _select(n: int) -> Work:
    """Half of the elements are kept; the result's memory is there, and nothing waits."""
    x = gpu().random.default_rng(0).random(n, dtype="float32")
    want = x[x < 0.5]
    out, count = gpu().empty_like(want), gpu().empty((), "int64")
    contenders: dict[str, Any] = {
        OURS: lambda: ga.select(x, lambda a: a < 0.5, out=out, out_count=count),
        "CuPy": lambda: x[x < 0.5],
    }
    contenders |= cub.selection("select_if", [x], gpu().empty_like(want), n)
    if torch():
        tensor = as_tensor(x)
        contenders["torch"] = lambda: tensor[tensor < 0.5]
    return Work(contenders, want)


def _by_mask(n: int) -> Work:
    x = gpu().random.default_rng(0).random(n, dtype="float32")
    mask = gpu().random.default_rng(1).random(n, dtype="float32") < 0.5
    want = x[mask]
    out, count = gpu().empty_like(want), gpu().empty((), "int64")
    contenders: dict[str, Any] = {
        OURS: lambda: ga.select(x, mask, out=out, out_count=count),
        "CuPy": lambda: x[mask],
    }
    contenders |= cub.selection("select_flagged", [x, mask], gpu().empty_like(want), n)
    if torch():
        tensor, marks = as_tensor(x), as_tensor(mask)
        contenders["torch"] = lambda: torch().masked_select(tensor, marks)
    return Work(contenders, want)


def _nonzero(n: int) -> Work:
    mask = gpu().random.default_rng(1).random(n, dtype="float32") < 0.5
    places, want = ga.lazy.arange(n), gpu().flatnonzero(mask)
    out, count = gpu().empty_like(want), gpu().empty((), "int64")
    contenders: dict[str, Any] = {
        OURS: lambda: ga.select(places, mask, out=out, out_count=count),
        "CuPy": lambda: gpu().flatnonzero(mask),
    }
    if torch():
        marks = as_tensor(mask)
        contenders["torch"] = lambda: torch().nonzero(marks)[:, 0]
    return Work(contenders, want)


def _partition(n: int) -> Work:
    x = gpu().random.default_rng(0).random(n, dtype="float32")
    out, count = gpu().empty_like(x), gpu().empty((), "int64")
    contenders: dict[str, Any] = {
        OURS: lambda: ga.stable_partition(x, lambda a: a < 0.5, out=out, out_count=count),
        "CuPy": lambda: gpu().concatenate([x[x < 0.5], x[x >= 0.5]]),
    }
    return Work(contenders, gpu().concatenate([x[x < 0.5], x[x >= 0.5]]))


def _numpy(n: int) -> Work:
    x = np.random.default_rng(0).random(n, np.float32)
    contenders = {OURS: lambda: ga.select(x, lambda a: a < 0.5), "NumPy": lambda: x[x < 0.5]}
    return Work(contenders, x[x < 0.5])


def _numpy_count(n: int) -> Work:
    x = np.random.default_rng(0).random(n, np.float32)
    contenders = {
        OURS: lambda: ga.count(x, lambda a: a < 0.5),
        "NumPy": lambda: np.count_nonzero(x < 0.5),
    }
    return Work(contenders, np.count_nonzero(x < 0.5), any_dtype=True)


def rows() -> list[Row]:
    """Return all rows, those that need a GPU among them."""
    cpu = [
        Row("select f32, half kept", 1 << 22, "cpu", _numpy, 6 * 2**22),
        Row("count f32", 1 << 22, "cpu", _numpy_count, 4 * 2**22),
    ]
    found = []
    for power in (16, 20, 24, 28):
        n = 1 << power
        quick = power in (20, 28)
        for name, build, size in (
            ("select f32, half kept", _select, 6), ("select f32 by a mask", _by_mask, 7),
            ("nonzero of a mask", _nonzero, 5), ("partition f32", _partition, 12),
        ):  # fmt: skip
            found.append(
                Row(
                    name,
                    n,
                    "device",
                    build,
                    size * n,
                    quick=quick,
                    dtype="bool" if "nonzero" in name else "",
                )
            )
    return found + cpu
