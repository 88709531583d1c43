"""transform beside CUB, cuda.compute, CuPy, PyTorch and NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._bench.peers import compute, cub, loops
from gpualgo._bench.support import OURS, Row, Work, as_tensor, gpu, torch

CUB = (cub.TRANSFORM,)  # what these rows compile of it


def twice(a: Any) -> Any:
    return a * 2.0


def product(a: Any, b: Any) -> Any:
    return a * b


def increment(a: Any) -> Any:
    return a + 1


def _float32(n: int) -> Any:
    return gpu().random.default_rng(0).random(n, dtype="float32")


def _outputs(n: int, dtype: str) -> Any:
    """Return an output for each contender, poisoned so that what is not written is seen."""
    return [gpu().full(n, -7, dtype) for _ in range(5)]


def _twice(n: int) -> Work:
    cupy = gpu()
    x, out = _float32(n), _outputs(n, "float32")
    contenders = {OURS: lambda: ga.transform(twice, x, out=out[0])}
    contenders |= cub.transformation("twice_float32", [x], out[1])
    contenders |= compute.transformation([x], out[2], twice)
    contenders["CuPy"] = lambda: cupy.multiply(x, 2.0, out=out[3])
    if torch():
        tensor, target = as_tensor(x), as_tensor(out[4])
        contenders["torch"] = lambda: torch().mul(tensor, 2.0, out=target)
    return Work(contenders, x + x)


def _product(n: int) -> Work:
    cupy = gpu()
    x, out = _float32(2 * n).reshape(2, n), _outputs(n, "float32")
    contenders = {OURS: lambda: ga.transform(product, x[0], x[1], out=out[0])}
    contenders |= cub.transformation("product_float32", [x[0], x[1]], out[1])
    contenders |= compute.transformation([x[0], x[1]], out[2], product)
    contenders["CuPy"] = lambda: cupy.multiply(x[0], x[1], out=out[3])
    if torch():
        left, right, target = as_tensor(x[0]), as_tensor(x[1]), as_tensor(out[4])
        contenders["torch"] = lambda: torch().mul(left, right, out=target)
    return Work(contenders, x[0] * x[1])


def _increment(n: int) -> Work:
    cupy = gpu()
    x = cupy.random.default_rng(0).integers(-128, 128, n, dtype=cupy.int32).astype("int8")
    out = _outputs(n, "int8")
    contenders = {OURS: lambda: ga.transform(increment, x, out=out[0])}
    contenders |= cub.transformation("increment_int8", [x], out[1])
    contenders |= compute.transformation([x], out[2], increment)
    contenders["CuPy"] = lambda: cupy.add(x, 1, out=out[3])
    if torch():
        tensor, target = as_tensor(x), as_tensor(out[4])
        contenders["torch"] = lambda: torch().add(tensor, 1, out=target)
    return Work(contenders, x + np.int8(1))


def _call(n: int) -> Work:
    cupy = gpu()
    x, out = _float32(n), _outputs(n, "float32")
    contenders = {OURS: lambda: ga.transform(twice, x, out=out[0])}
    contenders |= compute.transformation([x], out[2], twice, one_call=True)
    contenders["CuPy"] = lambda: cupy.multiply(x, 2.0, out=out[3])
    if torch():
        tensor, target = as_tensor(x), as_tensor(out[4])
        contenders["torch"] = lambda: torch().mul(tensor, 2.0, out=target)
    return Work(contenders, x + x)


def _numpy(n: int) -> Work:
    x, out = np.random.default_rng(0).random(n, np.float32), np.full((3, n), -7, np.float32)

    def by_numpy() -> Any:
        np.multiply(x, 2.0, out=out[1])
        np.add(out[1], 1.0, out=out[1])
        return out[1]

    contenders: dict[str, Any] = {OURS: lambda: ga.transform(lambda a: a * 2.0 + 1, x, out=out[0])}
    contenders |= {"NumPy": by_numpy, **loops.into("affine", x, out[2])}
    return Work(contenders, x * 2 + 1)


def rows() -> list[Row]:
    """Return all rows, those that need a GPU among them."""
    n = 1 << 24
    cpu = [Row("transform, lambda a * 2.0 + 1, f32", n, "cpu", _numpy, 8 * n)]
    found = []
    for power in range(10, 29, 2):
        n, quick = 1 << power, power in (16, 20, 28)
        found.append(Row("transform unary f32", n, "device", _twice, 8 * n, quick=quick))
    n = 1 << 28
    found.append(Row("transform binary f32", n, "device", _product, 12 * n))
    found.append(Row("transform unary i8", n, "device", _increment, 2 * n))
    found.append(Row("transform, out=", 1 << 10, "host", _call, dtype="f32"))
    return found + cpu
