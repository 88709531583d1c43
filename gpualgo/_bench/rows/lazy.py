"""Inputs that are computed where they are read, beside the same work on arrays."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._bench.support import OURS, Row, Work, as_tensor, gpu, torch

CUB = ()


def _two(n: int, xp: Any) -> tuple[Any, Any]:
    """Return small integers, whose products have exact sums."""
    random = xp.random.default_rng(0)
    return tuple(random.integers(-2, 3, n).astype("float32") for _ in range(2))


def _dot(n: int, multiply: Callable[..., Any]) -> Work:
    x, y = _two(n, gpu())
    made = ga.lazy.transform(multiply, x, y)
    contenders: dict[str, Any] = {
        OURS: lambda: ga.reduce(made),
        "CuPy, (x * y).sum()": lambda: (x * y).sum(),
    }
    if torch():
        a, b = as_tensor(x), as_tensor(y)
        contenders["torch"] = lambda: torch().dot(a, b)
    return Work(contenders, (x * y).sum(dtype="float64").astype("float32"), 1e-5)


def _added(p: Any, q: Any) -> Any:
    return p[0] + q[0], p[1] + q[1]


def _variance(n: int) -> Work:
    """By sums of what is left of a number near the mean."""
    x = gpu().random.default_rng(0).random(n, dtype="float32")
    k = np.float32(0.5)
    shifted = ga.lazy.transform(lambda a: (a - k, (a - k) * (a - k)), x)

    def ours() -> Any:
        total, squares = ga.reduce(shifted, None, _added)
        return (squares - total * total / np.float32(n)) / np.float32(n)

    contenders: dict[str, Any] = {OURS: ours}
    if torch():
        tensor = as_tensor(x)
        contenders["torch"] = lambda: tensor.var(correction=0)
    return Work(contenders, x.astype("float64").var().astype("float32"), 1e-3)


def _sums(n: int) -> Work:
    """The same pass without the few operations on its results."""
    cupy = gpu()
    x = cupy.random.default_rng(0).random(n, dtype="float32")
    k = np.float32(0.5)
    shifted = ga.lazy.transform(lambda a: (a - k, (a - k) * (a - k)), x)
    contenders: dict[str, Any] = {OURS: lambda: ga.reduce(shifted, None, _added)[1]}
    if torch():
        tensor = as_tensor(x)
        contenders["torch, its variance"] = lambda: tensor.var(correction=0) * n
    return Work(contenders, ((x.astype("float64") - 0.5) ** 2).sum().astype("float32"), 1e-3)


def _scan(n: int) -> Work:
    cupy = gpu()
    x, y = _two(n, cupy)
    made, out, between = ga.lazy.asarray(x) * y, cupy.empty_like(x), cupy.empty_like(x)
    contenders: dict[str, Any] = {
        OURS: lambda: ga.inclusive_scan(made, out=out),
        "ours, by an array between": lambda: ga.inclusive_scan(
            ga.transform(operator.mul, x, y, out=between), out=out
        ),
    }
    return Work(contenders, cupy.cumsum(x * y, dtype="float64").astype("float32"))


def _histogram(n: int, xp: Any) -> Work:
    """The lengths of points, counted as they are computed, and by an array between."""
    random = xp.random.default_rng(0)
    x, y = (random.random(n, dtype="float32") for _ in range(2))
    made, between = ga.lazy.transform(lambda a, b: a * a + b * b, x, y), xp.empty_like(x)

    def theirs() -> Any:
        return xp.histogram(x * x + y * y, 100, (0.0, 2.0))[0]

    contenders: dict[str, Any] = {
        OURS: lambda: ga.histogram(made, 100, (0.0, 2.0)),
        "ours, by an array between": lambda: ga.histogram(
            ga.copy(made, out=between), 100, (0.0, 2.0)
        ),
        "NumPy" if xp is np else "CuPy": theirs,
    }
    return Work(contenders, ga.histogram(x * x + y * y, 100, (0.0, 2.0)))


def _histogram_on_gpu(n: int) -> Work:
    return _histogram(n, gpu())


def _pi(n: int) -> Work:
    """Points in a quarter of a circle; what CuPy draws are others."""
    drawn = ga.lazy.random((2, n), seed=1, dtype=np.float32, device="cuda")
    inside = ga.lazy.transform(lambda a, b: np.int64(a * a + b * b < 1), drawn[0], drawn[1])
    cupy = gpu()

    def ours() -> Any:
        return cupy.asarray(ga.reduce(inside)) * 4.0 / n

    def theirs() -> Any:
        a, b = cupy.random.random((2, n), dtype="float32")
        return (a * a + b * b < 1).sum() * 4.0 / n

    return Work({OURS: ours, "CuPy": theirs}, cupy.asarray(np.pi), 1e-3)


def _cpu(n: int) -> Work:
    x, y = _two(n, np)
    made = ga.lazy.transform(operator.mul, x, y)
    contenders = {OURS: lambda: ga.reduce(made), "NumPy": lambda: np.dot(x, y)}
    return Work(contenders, np.float32(np.dot(x.astype("float64"), y)), 1e-5)


def rows() -> list[Row]:
    """Return all rows, those that need a GPU among them."""
    counted = functools.partial(_histogram, xp=np)
    cpu = [
        Row("dot f32", 1 << 22, "cpu", _cpu, 2**25),
        Row("histogram of lengths f32", 1 << 22, "cpu", counted, 2**25),
    ]
    found = []
    for power in (20, 24, 28):
        n, by_name = 1 << power, functools.partial(_dot, multiply=operator.mul)
        by_lambda = functools.partial(_dot, multiply=lambda a, b: a * b)
        found += [
            Row("dot f32, lazy", n, "device", by_name, 8 * n),
            Row("dot f32, lazy, by a lambda", n, "device", by_lambda, 8 * n),
            Row("mean and variance f32, one pass", n, "device", _variance, 4 * n),
            Row("sums and squares f32, one pass", n, "device", _sums, 4 * n),
            Row("inclusive scan of x * y, f32", n, "device", _scan, 12 * n),
            Row("histogram of lengths f32", n, "device", _histogram_on_gpu, 8 * n),
        ]
    return [*found, Row("pi, f32 points", 1 << 28, "device", _pi), *cpu]
