"""Inputs that are computed where they are read, beside the same work on arrays."""

import operator
from functools import partial

import numpy as np

import gpualgo as ga
from bench.inputs import integers, pair, uniform
from bench.peers import Prepared, gpu, torch
from bench.row import row

MIDDLE = np.float32(0.5)  # near the mean
BETWEEN = "ours, by an array between"


def two(xp, n):  # small integers, whose products have exact sums
    return integers(xp, n, -2, 3), integers(xp, n, -2, 3, seed=1)


def exact_dot(x, y):
    return (x * y).sum(dtype="float64").astype("float32")


def dot(name, sizes, multiply, numpy=None, **given):
    return row(name, sizes, two, 8,
               Prepared(lambda x, y: partial(ga.reduce, ga.lazy.transform(multiply, x, y))), numpy,
               expected=exact_dot, tolerance=1e-5, **given)  # fmt: skip


def shifted(x):
    return ga.lazy.transform(lambda a: (a - MIDDLE, (a - MIDDLE) * (a - MIDDLE)), x)


def sums(p, q):
    return p[0] + q[0], p[1] + q[1]


def variance(x):
    """Prepare a variance by sums of what is left of a number near the mean."""
    made, n = shifted(x), np.float32(x.size)

    def call():
        total, squares = ga.reduce(made, None, sums)
        return (squares - total * total / n) / n

    return call


def squares(x):
    """Prepare the same pass without the few operations on its results."""
    made = shifted(x)
    return lambda: ga.reduce(made, None, sums)[1]


def scan_of_array(x, y, out):
    between = gpu().empty_like(x)
    return lambda: ga.inclusive_scan(ga.transform(operator.mul, x, y, out=between), out=out)


def lengths(x, y):
    return ga.lazy.transform(lambda a, b: a * a + b * b, x, y)


def count(x):
    return ga.histogram(x, 100, (0.0, 2.0))


def count_of_array(x, y):
    made, between = lengths(x, y), x.copy()
    return lambda: count(ga.copy(made, out=between))


def pi(n):
    """Prepare points in a quarter of a circle. What CuPy draws are others."""
    drawn = ga.lazy.random((2, n), seed=1, dtype=np.float32, device="cuda")
    inside = ga.lazy.transform(lambda a, b: np.int64(a * a + b * b < 1), drawn[0], drawn[1])
    return lambda: gpu().asarray(ga.reduce(inside)) * 4.0 / n


def cupy_pi(xp, n):
    a, b = xp.random.random((2, n), dtype="float32")
    return (a * a + b * b < 1).sum() * 4.0 / n


DOTS = {"others": {"CuPy, (x * y).sum()": lambda x, y: (x * y).sum()},
        "torch": lambda x, y: torch().dot(x, y)}  # fmt: skip
ROWS = [
    *dot("dot f32, lazy", "20* 24* 28*", operator.mul, **DOTS),
    *dot("dot f32, lazy, by a lambda", "20* 24* 28*", lambda a, b: a * b, **DOTS),
    *row("mean and variance f32, one pass", "20* 24* 28*", uniform, 4, Prepared(variance),
         torch=lambda x: x.var(correction=0), tolerance=1e-3,
         expected=lambda x: x.astype("float64").var().astype("float32")),
    *row("sums and squares f32, one pass", "20* 24* 28*", uniform, 4, Prepared(squares),
         others={"torch, its variance": lambda x: x.var(correction=0) * len(x)}, tolerance=1e-3,
         expected=lambda x: ((x.astype("float64") - 0.5) ** 2).sum().astype("float32")),
    *row("inclusive scan of x * y, f32", "20* 24* 28*", two, 12,
         Prepared(lambda x, y, out: partial(ga.inclusive_scan, ga.lazy.asarray(x) * y, out=out)),
         others={BETWEEN: Prepared(scan_of_array)},
         expected=lambda x, y: (x * y).cumsum(dtype="float64").astype("float32")),
    *row("histogram of lengths f32", "device 20* 24* 28*; cpu 22*", pair, 8,
         Prepared(lambda x, y: partial(count, lengths(x, y))),
         lambda xp, x, y: xp.histogram(x * x + y * y, 100, (0.0, 2.0))[0],
         others={BETWEEN: Prepared(count_of_array)}, expected=lambda x, y: count(x * x + y * y)),
    *row("pi, f32 points", "28*", lambda xp, n: n, 0, Prepared(pi), cupy_pi,
         expected=lambda n: gpu().asarray(np.pi), tolerance=1e-3),
    *dot("dot f32", "cpu 22*", operator.mul, lambda xp, x, y: xp.dot(x, y)),
]  # fmt: skip
