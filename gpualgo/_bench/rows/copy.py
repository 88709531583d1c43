"""A copy of an array: what memory allows, and the roofline of the plots."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._bench.support import OURS, Row, Work, as_tensor, gpu, torch


def _on_gpu(n: int) -> Work:
    cupy = gpu()
    x = cupy.random.default_rng(0).random(n, dtype="float32")
    out = [cupy.full(n, -7, "float32") for _ in range(3)]

    def by_cupy() -> Any:
        cupy.copyto(out[1], x)
        return out[1]

    contenders: dict[str, Any] = {OURS: lambda: ga.copy(x, out=out[0]), "CuPy": by_cupy}
    if torch():
        source, target = as_tensor(x), as_tensor(out[2])
        contenders["torch"] = lambda: target.copy_(source)
    return Work(contenders, x)


def _numpy(n: int) -> Work:
    x = np.random.default_rng(0).random(n, np.float32)
    out = np.full((2, n), -7, np.float32)

    def by_numpy() -> Any:
        np.copyto(out[1], x)
        return out[1]

    return Work({OURS: lambda: ga.copy(x, out=out[0]), "NumPy": by_numpy}, x)


def rows() -> list[Row]:
    """Return all rows, those that need a GPU among them."""
    found = []
    for power in (16, 20, 24, 28):
        n = 1 << power
        found.append(Row("copy f32", n, "device", _on_gpu, 8 * n))
    for power in (16, 20, 24):
        n = 1 << power
        found.append(Row("copy f32", n, "cpu", _numpy, 8 * n))
    return found
