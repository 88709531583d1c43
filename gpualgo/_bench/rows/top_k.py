"""top_k and kth_value beside CuPy, PyTorch and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._bench import data
from gpualgo._bench.support import OURS, Row, Work, as_tensor, gpu, torch

CUB = ()
COLUMNS = 1 << 10
COUNTS = (10, 1000, 100_000)


def _top(k: int, make: Callable[[int], Any], columns: int = 0) -> Callable[[int], Work]:
    """Return the first k values of an array, or of each row."""

    def build(n: int) -> Work:
        x = make(n).reshape(-1, columns) if columns else make(n)
        contenders: dict[str, Any] = {
            OURS: lambda: ga.top_k(x, k).values,
            "CuPy": lambda: -gpu().sort(gpu().partition(-x, k - 1)[..., :k]),
        }
        if torch():
            tensor = as_tensor(x)
            contenders["torch"] = lambda: torch().topk(tensor, k).values
        return Work(contenders, gpu().sort(x)[..., ::-1][..., :k].copy())

    return build


def _median(n: int) -> Work:
    x = data.unit(n)
    contenders: dict[str, Any] = {
        OURS: lambda: ga.kth_value(x, n // 2),
        "CuPy": lambda: gpu().partition(x, n // 2)[n // 2],
    }
    if torch():
        tensor = as_tensor(x)
        contenders["torch"] = lambda: torch().kthvalue(tensor, n // 2 + 1).values
    return Work(contenders, gpu().sort(x)[n // 2].copy())


def _few(n: int) -> Any:
    """Return numbers of which thousands are equal."""
    return (data.unit(n) * 100).astype("int32")


def _equal(n: int) -> Any:
    return gpu().ones(n, "float32")


def _numpy_top(k: int, columns: int = 0) -> Callable[[int], Work]:
    def build(n: int) -> Work:
        x = np.random.default_rng(0).random(n, np.float32)
        x = x.reshape(-1, columns) if columns else x
        at = x.shape[-1] - k

        def by_numpy() -> Any:
            places = np.argpartition(x, at)[..., at:]
            found = np.take_along_axis(x, places, -1)
            order = np.argsort(found, axis=-1)[..., ::-1]
            return np.take_along_axis(found, order, -1)

        contenders = {OURS: lambda: ga.top_k(x, k).values, "NumPy": by_numpy}
        return Work(contenders, np.sort(x)[..., ::-1][..., :k])

    return build


def _numpy_median(n: int) -> Work:
    x = np.random.default_rng(0).random(n, np.float32)
    contenders = {
        OURS: lambda: ga.kth_value(x, n // 2),
        "NumPy": lambda: np.partition(x, n // 2)[n // 2],
    }
    return Work(contenders, np.sort(x)[n // 2])


def rows() -> list[Row]:
    """Return all rows, those that need a GPU among them."""
    n = 1 << 22
    cpu = [
        Row("top 10 f32", n, "cpu", _numpy_top(10), 4 * n),
        Row("top 100,000 f32", n, "cpu", _numpy_top(100_000), 4 * n),
        Row("top 8 of rows of 1024 f32", n, "cpu", _numpy_top(8, COLUMNS), 4 * n),
        Row("median f32", n, "cpu", _numpy_median, 4 * n),
    ]
    found = []
    for power in (16, 20, 24, 28):
        n = 1 << power
        quick = power in (20, 28)
        for k in COUNTS[: 2 if power == 16 else 3]:
            top = _top(k, data.unit)
            found.append(Row(f"top {k:,} f32", n, "device", top, 4 * n, quick=quick))
        rows_of = _top(8, data.unit, COLUMNS)
        found += [
            Row("top 8 of rows of 1024 f32", n, "device", rows_of, 4 * n, quick=quick),
            Row("median f32", n, "device", _median, 4 * n, quick=quick),
        ]
    n = 1 << 28
    bits = _top(10, lambda n: data.bits(n, "int32"))
    found += [
        Row("top 100 of rows of 1024 f32", n, "device", _top(100, data.unit, COLUMNS), 4 * n),
        Row("top 10 i32, random bits", n, "device", bits, 4 * n),
        Row("top 10 i32 below 100", n, "device", _top(10, _few), 4 * n),
        Row("top 10 f32, all equal", n, "device", _top(10, _equal), 4 * n),
    ]
    return found + cpu
