"""Elements that are tuples: reductions, scans and transformations of several arrays at once."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._bench.support import OURS, Row, Work, as_tensor, gpu, torch

CUB = ()


def _affine(a: Any, b: Any) -> Any:  # of steps x -> a x + b, one after the other
    return a[0] * b[0], a[1] * b[0] + b[1]


def _sum_and_max(a: Any, b: Any) -> Any:
    return a[0] + b[0], max(a[1], b[1])


def _steps(n: int, xp: Any) -> tuple[Any, Any]:
    """Return factors of 1 and -1 and small integers: what they give is exact."""
    random = xp.random.default_rng(0)
    signs = random.integers(0, 2, n).astype("float32") * 2 - 1
    return signs, random.integers(-2, 3, n).astype("float32")


def _recurrence(n: int) -> Work:
    cupy = gpu()
    a, b = _steps(n, cupy)
    outs = cupy.empty_like(a), cupy.empty_like(b)
    sign = cupy.cumprod(a)
    want = sign * cupy.cumsum(b * sign, dtype="float64").astype("float32")
    contenders: dict[str, Any] = {
        OURS: lambda: ga.inclusive_scan((a, b), None, _affine, out=outs)[1],
        "copy of both": lambda: (cupy.copyto(outs[0], a), cupy.copyto(outs[1], want), outs[1])[2],
    }
    return Work(contenders, want)


def _reduce(n: int) -> Work:
    cupy = gpu()
    x, y = _steps(n, cupy)
    contenders: dict[str, Any] = {
        OURS: lambda: ga.reduce((x, y), None, _sum_and_max),
        "CuPy, two passes": lambda: (x.sum(), y.max()),
    }
    return Work(contenders, (x.sum(), y.max()))


def _two_results(n: int) -> Work:
    cupy = gpu()
    x, _ = _steps(n, cupy)
    outs = cupy.empty_like(x), cupy.empty_like(x)
    contenders: dict[str, Any] = {
        OURS: lambda: ga.transform(lambda a: (a * 2, a + 1), x, out=outs),
        "CuPy, two passes": lambda: (cupy.multiply(x, 2, out=outs[0]), cupy.add(x, 1, out=outs[1])),
    }
    return Work(contenders, (x * 2, x + 1))


def _welford(a: Any, b: Any) -> Any:
    n = a[0] + b[0]
    delta = b[1] - a[1]
    share = b[0] / n
    return n, a[1] + delta * share, a[2] + b[2] + delta * delta * a[0] * share


def _variance(n: int) -> Work:
    """With arrays of ones and zeros, as nothing but arrays goes in."""
    cupy = gpu()
    x = cupy.random.default_rng(0).random(n, dtype="float32")
    one, zero = cupy.ones(1, "float32"), cupy.zeros(1, "float32")
    spread = [cupy.broadcast_to(value, x.shape) for value in (one, zero)]
    contenders: dict[str, Any] = {
        OURS: lambda: ga.reduce((spread[0], x, spread[1]), None, _welford)[2] / np.float32(n)
    }
    if torch():
        tensor = as_tensor(x)
        contenders["torch"] = lambda: tensor.var(correction=0)
    return Work(contenders, x.astype("float64").var().astype("float32"), 1e-3)


def _cpu(n: int) -> Work:
    x, y = _steps(n, np)
    contenders = {
        OURS: lambda: ga.reduce((x, y), None, _sum_and_max),
        "NumPy, two passes": lambda: (x.sum(), y.max()),
    }
    return Work(contenders, (x.sum(), y.max()))


def rows() -> list[Row]:
    """Return all rows, those that need a GPU among them."""
    cpu = [Row("reduce pairs, f32, sum and max", 1 << 22, "cpu", _cpu, 2**25)]
    found = []
    n = 1 << 28
    found.append(Row("affine scan of two f32", n, "device", _recurrence, 16 * n))
    for power in (20, 28):
        n, build = 1 << power, functools.partial(_reduce)
        found.append(Row("reduce pairs, f32, sum and max", n, "device", build, 8 * n))
    found.append(Row("transform, two results, f32", n, "device", _two_results, 12 * n))
    found.append(Row("variance by Welford, f32", n, "device", _variance, 4 * n))
    return found + cpu
