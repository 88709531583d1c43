"""argmax, argmin and minmax beside CuPy, PyTorch and NumPy."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._bench.support import OURS, Row, Work, as_tensor, gpu, torch

CUB = ()
COLUMNS = 1 << 10


def _argmax(axis: int | None, n: int) -> Work:
    x = gpu().random.default_rng(0).random(n, dtype="float32")
    x = x if axis is None else x.reshape(-1, COLUMNS)
    contenders: dict[str, Any] = {
        OURS: lambda: ga.argmax(x, axis),
        "CuPy": lambda: x.argmax(axis),
    }
    if torch():
        tensor = as_tensor(x)
        contenders["torch"] = lambda: tensor.argmax(axis)
    first = np.argmax(x.get(), axis)  # CuPy's need not be the first of equal ones
    return Work(contenders, gpu().asarray(first), any_dtype=True)


def _minmax(n: int) -> Work:
    x = gpu().random.default_rng(0).random(n, dtype="float32")
    contenders: dict[str, Any] = {
        OURS: lambda: ga.minmax(x),
        "CuPy": lambda: (x.min(), x.max()),
    }
    if torch():
        tensor = as_tensor(x)
        contenders["torch"] = lambda: torch().aminmax(tensor)
    return Work(contenders, (x.min(), x.max()))


def _numpy(n: int) -> Work:
    x = np.random.default_rng(0).random(n, np.float32)
    contenders = {OURS: lambda: ga.argmax(x), "NumPy": lambda: np.argmax(x)}
    return Work(contenders, np.argmax(x))


def rows() -> list[Row]:
    """Return all rows, those that need a GPU among them."""
    cpu = [Row("argmax f32", 1 << 22, "cpu", _numpy, 2**24)]
    found = []
    for power in (16, 20, 24, 28):
        n = 1 << power
        build = functools.partial(_argmax, None)
        found.append(Row("argmax f32", n, "device", build, 4 * n, quick=power in (20, 28)))
    n = 1 << 28
    for axis in (1, 0):
        build = functools.partial(_argmax, axis)
        name = f"argmax over axis {axis}, f32, beside torch"
        found.append(Row(name, n, "device", build, 4 * n, beside="torch"))
    found.append(Row("minmax f32", n, "device", _minmax, 4 * n))
    return found + cpu
