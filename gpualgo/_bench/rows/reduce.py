"""reduce beside CUB, cuda.compute, CuPy, PyTorch and NumPy."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._bench.peers import arrays, compute, cub, loops
from gpualgo._bench.support import OURS, Row, Work, as_tensor, gpu, torch

CUB = (cub.REDUCE,)  # what these rows compile of it


def max_abs(a: Any, b: Any) -> Any:  # a user's operator: no library knows it by name
    return a if abs(a) > abs(b) else b


def _uniform(n: int, dtype: str) -> Any:
    cupy = gpu()
    random = cupy.random.default_rng(0)
    if dtype in ("int8", "int32"):
        return random.integers(-100, 100, n, dtype=cupy.int32).astype(dtype)
    return random.random(n, dtype=dtype)


def _sum(dtype: str, n: int) -> Work:
    cupy = gpu()
    x, poison = _uniform(n, dtype), cupy.full((2, 1), 77, dtype)
    contenders = {OURS: lambda: ga.reduce(x)}
    contenders |= cub.reduction(f"sum_{dtype}", x, poison[0], n)
    contenders |= compute.reduction(x, poison[1], None)
    contenders["CuPy"] = lambda: x.sum(dtype=dtype)
    contenders |= arrays.function(lambda jnp: lambda v: jnp.sum(v, dtype=dtype), x)
    if torch():
        tensor = as_tensor(x)
        contenders["torch"] = lambda: tensor.sum(dtype=tensor.dtype)
    wide = x.sum(dtype="float64" if x.dtype.kind == "f" else "int64")
    return Work(contenders, wide.astype(dtype), 1e-4)  # n positive floats, summed in blocks


def _lambda(dtype: str, n: int) -> Work:
    cupy = gpu()
    x, poison = _uniform(n, dtype), cupy.full((2, 1), -1, dtype)
    fold = "fabs(a) > fabs(b) ? a : b"
    kernel = cupy.ReductionKernel(f"{dtype} x", f"{dtype} y", "x", fold, "y = a", "0", "max_abs")
    contenders = {OURS: lambda: ga.reduce(x, 0.0, max_abs)}
    if dtype == "float32":
        contenders |= cub.reduction("max_abs_float32", x, poison[0], n)
    contenders |= compute.reduction(x, poison[1], max_abs)
    contenders["CuPy"] = lambda: kernel(x)
    return Work(contenders, x.max())


COLUMNS = 1 << 10


def _axis(axis: int, n: int) -> Work:
    cupy = gpu()
    x = _uniform(n, "float32").reshape(-1, COLUMNS)
    contenders: dict[str, Any] = {OURS: lambda: ga.reduce(x, axis=axis)}
    if axis == 1:
        poison = cupy.full(len(x), -1, "float32")
        contenders |= cub.reduction("sum_rows_float32", x, poison, len(x), COLUMNS)
    contenders["CuPy"] = lambda: x.sum(axis=axis)
    if torch():
        tensor = as_tensor(x)
        contenders["torch"] = lambda: tensor.sum(axis)
    return Work(contenders, x.sum(axis=axis, dtype="float64").astype("float32"), 1e-3)


def _call(op: Any, n: int) -> Work:
    cupy = gpu()
    x, out = _uniform(n, "float32"), cupy.full(1, -1, "float32")
    ours = (lambda: ga.reduce(x)) if op is None else (lambda: ga.reduce(x, None, op))
    contenders = {OURS: ours, **compute.reduction(x, out, op, one_call=True)}
    if op is None:
        contenders["CuPy"] = lambda: x.sum()
        if torch():
            tensor = as_tensor(x)
            contenders["torch"] = lambda: tensor.sum()
    return Work(contenders, x.sum() if op is None else x.max(), 1e-4)


def _prepared(n: int) -> Work:
    """The same two arrays again: what a loop around a plan does."""
    x = _uniform(n, "float32")
    out = gpu().full((), -1, "float32")
    plan = ga.prepare(ga.reduce, x)
    contenders = {OURS: lambda: plan(x, out=out)}
    contenders |= compute.reduction(x, gpu().full(1, -1, "float32"), None)
    return Work(contenders, x.sum(), 1e-4)


def _numpy(axis: int | None, n: int) -> Work:
    x = np.random.default_rng(0).random((n >> 10, 1 << 10), np.float32)
    contenders: dict[str, Any] = {
        OURS: lambda: ga.reduce(x, None, lambda a, b: a + b, axis=axis),
        "NumPy": lambda: np.sum(x, axis=axis),
    }
    if axis is None:
        contenders |= loops.reduction(x)
    return Work(contenders, np.sum(x, axis=axis, dtype=np.float64).astype(np.float32), 1e-3)


def rows() -> list[Row]:
    """Return all rows, those that need a GPU among them."""
    cpu = [
        Row("reduce, lambda sum f32", 1 << 24, "cpu", functools.partial(_numpy, None), 2**26),
        Row("lambda sum over axis 1, f32", 1 << 24, "cpu", functools.partial(_numpy, 1), 2**26),
        Row("lambda sum over axis 0, f32", 1 << 24, "cpu", functools.partial(_numpy, 0), 2**26),
    ]
    found = []
    for power in range(10, 29, 2):
        n, quick = 1 << power, power in (16, 20, 28)
        build = functools.partial(_sum, "float32")
        found.append(Row("reduce sum f32", n, "device", build, 4 * n, quick=quick))
    n = 1 << 28
    for name, dtype in (("i32", "int32"), ("f64", "float64"), ("i8", "int8")):
        size = np.dtype(dtype).itemsize
        build = functools.partial(_sum, dtype)
        found.append(Row(f"reduce sum {name}", n, "device", build, size * n))
    for name, dtype, size in (("f32", "float32", 4), ("f64", "float64", 8)):
        build = functools.partial(_lambda, dtype)
        found.append(Row(f"reduce, user lambda {name}", n, "device", build, size * n))
    for axis in (1, 0):
        build = functools.partial(_axis, axis)
        name = f"sum over axis {axis}, f32, beside CuPy"
        found.append(Row(name, n, "device", build, 4 * n, beside="CuPy"))
    calls: dict[str, Callable[[int], Work]] = {
        "reduce": functools.partial(_call, None),
        "reduce, user lambda": functools.partial(_call, max_abs),
        "prepared reduce": _prepared,
    }
    found += [Row(name, 1 << 10, "host", build, dtype="f32") for name, build in calls.items()]
    return found + cpu
