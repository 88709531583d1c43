"""adjacent_difference beside CuPy, PyTorch and NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpualgo as ga
import gpualgo.numpy as gnp
from gpualgo._bench.support import OURS, Row, Work, as_tensor, gpu, torch

COLUMNS = 1 << 10


def _along(shape: tuple[int, ...], dtype: str, axis: int) -> Work:
    """CuPy's diff with what is put before it, as NumPy's; PyTorch's of one element less."""
    xp = gpu()
    x = xp.random.default_rng(0).integers(0, 100, shape).astype(dtype)
    zeros = xp.zeros([1 if i == axis else n for i, n in enumerate(shape)], dtype)
    contenders: dict[str, Any] = {
        OURS: lambda: ga.adjacent_difference(x, axis=axis),
        "CuPy": lambda: xp.diff(x, axis=axis, prepend=zeros),
    }
    if torch():
        tensor, before = as_tensor(x), as_tensor(zeros)
        contenders["torch"] = lambda: torch().diff(tensor, dim=axis, prepend=before)
    return Work(contenders, xp.diff(x, axis=axis, prepend=zeros))


def _float32(n: int) -> Work:
    return _along((n,), "float32", 0)


def _diff(n: int) -> Work:
    """NumPy's name, of one element less; the copy of x is what it can reach."""
    xp = gpu()
    x = xp.random.default_rng(0).integers(0, 100, n).astype("float32")
    want = xp.diff(x)
    copied = xp.empty_like(want)
    contenders: dict[str, Any] = {
        OURS: lambda: gnp.diff(x),
        "CuPy": lambda: xp.diff(x),
        "copy": lambda: (xp.copyto(copied, want), copied)[1],
    }
    if torch():
        tensor = as_tensor(x)
        contenders["torch"] = lambda: torch().diff(tensor)
    return Work(contenders, want)


def _int8(n: int) -> Work:
    return _along((n,), "int8", 0)


def _rows(n: int) -> Work:
    return _along((n // COLUMNS, COLUMNS), "float32", 1)


def _columns(n: int) -> Work:
    return _along((n // COLUMNS, COLUMNS), "float32", 0)


def _numpy(n: int) -> Work:
    x = np.random.default_rng(0).random(n, np.float32)
    zero = np.float32(0)
    contenders = {
        OURS: lambda: ga.adjacent_difference(x),
        "NumPy": lambda: np.diff(x, prepend=zero),
    }
    return Work(contenders, np.diff(x, prepend=zero))


def _numpy_columns(n: int) -> Work:
    x = np.random.default_rng(0).random((n // COLUMNS, COLUMNS), np.float32)
    zeros = np.zeros((1, COLUMNS), np.float32)
    contenders = {
        OURS: lambda: ga.adjacent_difference(x, axis=0),
        "NumPy": lambda: np.diff(x, axis=0, prepend=zeros),
    }
    return Work(contenders, np.diff(x, axis=0, prepend=zeros))


def rows() -> list[Row]:
    """Return all rows, those that need a GPU among them."""
    found = []
    for power in (16, 20, 22):
        n = 1 << power
        quick = power == 22
        for name, build in (("f32", _numpy), ("f32, axis 0", _numpy_columns)):
            title = f"adjacent difference {name}"
            found.append(Row(title, n, "cpu", build, 8 * n, quick=quick))
    for power in (16, 20, 24, 28):
        n = 1 << power
        quick = power in (20, 28)
        for name, build, size in (
            ("f32", _float32, 8), ("int8", _int8, 2), ("f32, axis 1", _rows, 8),
            ("f32, axis 0", _columns, 8),
        ):  # fmt: skip
            title = f"adjacent difference {name}"
            found.append(Row(title, n, "device", build, size * n, quick=quick))
    n = 1 << 28
    found.append(Row("gnp.diff f32", n, "device", _diff, 8 * n, beside="copy"))
    return found
