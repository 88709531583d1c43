"""reduce, argmax, argmin and minmax; elements that are tuples; inputs computed where read."""

import operator
from functools import partial

import numba
import numpy as np

import gpualgo as ga
from bench.inputs import COLUMNS, integers, matrix, pair, uniform
from bench.peers import Prepared, compute, cub, gpu, torch
from bench.row import row
from bench.rows.elementwise import copied

max_abs = lambda a, b: a if abs(a) > abs(b) else b  # no library knows it by name


@numba.njit(parallel=True, fastmath=True)
def numba_total(x):  # of a loop as one writes it; its sums are taken in any order anyway
    result = x.dtype.type(0)
    for i in numba.prange(x.size):
        result += x[i]
    return result


exact_sum = lambda x, axis=None: x.sum(
    axis=axis, dtype="float64" if x.dtype.kind == "f" else "int64"
).astype(x.dtype)


def cupy_max_abs(xp, x):
    fold = "fabs(a) > fabs(b) ? a : b"
    return partial(xp.ReductionKernel("T x", "T y", "x", fold, "y = a", "0", "max_abs"), x)


REDUCE = [
    [row(f"reduce sum {name}", sizes, draw, np.dtype(dtype).itemsize, ga.reduce,
         alike=lambda x: x.sum(dtype=x.dtype), cub=cub(f"sum_{dtype}"),
         compute=compute("reduce_into"), jax=lambda jnp, x: jnp.sum(x, dtype=x.dtype),
         expected=exact_sum, tolerance=1e-4)
     for name, dtype, sizes, draw in (
         ("f32", "float32", "10 12 14 16* 18 20* 22 24 26 28*", uniform),
         ("i32", "int32", "28*", partial(integers, low=-100, high=100, dtype="int32")),
         ("f64", "float64", "28*", partial(uniform, dtype="float64")),
         ("i8", "int8", "28*", partial(integers, low=-100, high=100, dtype="int8")))],
    [row(f"reduce, user lambda {name}", "28*", partial(uniform, dtype=dtype),
         np.dtype(dtype).itemsize, lambda x: ga.reduce(x, 0.0, max_abs), Prepared(cupy_max_abs),
         cub=by_cub, compute=compute("reduce_into", max_abs), expected=lambda x: x.max())
     for name, dtype, by_cub in (
         ("f32", "float32", cub("max_abs_float32")), ("f64", "float64", None))],
    [row(f"sum over axis {axis}, f32, beside CuPy", "28*", matrix, 4,
         lambda x, axis=axis: ga.reduce(x, axis=axis), alike=lambda x, axis=axis: x.sum(axis),
         cub=by_cub, beside="CuPy", tolerance=1e-3, expected=partial(exact_sum, axis=axis))
     for axis, by_cub in ((1, cub("sum_rows_float32", COLUMNS, rows=True)), (0, None))],
    row("reduce", "host 10*", uniform, 0, ga.reduce, alike=lambda x: x.sum(),
        compute=compute("reduce_into", one_call=True), dtype="f32", tolerance=1e-4),
    row("reduce, user lambda", "host 10*", uniform, 0, lambda x: ga.reduce(x, None, max_abs),
        compute=compute("reduce_into", max_abs, one_call=True), dtype="f32",
        expected=lambda x: x.max()),
    # The same two arrays again: what a loop around a plan does.
    row("prepared reduce", "host 10*", uniform, 0,
        Prepared(lambda x, out: partial(ga.prepare(ga.reduce, x), x, out=out)),
        compute=compute("reduce_into"), dtype="f32", expected=lambda x: x.sum(), tolerance=1e-4),
    [row(name, "cpu 24*", matrix, 4,
         lambda x, axis=axis: ga.reduce(x, None, lambda a, b: a + b, axis=axis),
         lambda xp, x, axis=axis: xp.sum(x, axis=axis), numba=loop, tolerance=1e-3,
         expected=partial(exact_sum, axis=axis))
     for name, axis, loop in (
         ("reduce, lambda sum f32", None,
          lambda x: np.asarray(numba_total(x.reshape(-1)), x.dtype)),
         ("lambda sum over axis 1, f32", 1, None), ("lambda sum over axis 0, f32", 0, None))],
]  # fmt: skip

EXTREMES = [
    # CuPy's argmax need not be the first of equal ones.
    [row(name, sizes, inputs, 4, lambda x, axis=axis: ga.argmax(x, axis),
         alike=lambda x, axis=axis: x.argmax(axis), any_dtype=True, beside=beside,
         expected=lambda x, axis=axis: gpu().asarray(np.argmax(x.get(), axis)))
     for name, sizes, inputs, axis, beside in (
         ("argmax f32", "16 20* 24 28*", uniform, None, ""),
         ("argmax over axis 1, f32, beside torch", "28*", matrix, 1, "torch"),
         ("argmax over axis 0, f32, beside torch", "28*", matrix, 0, "torch"))],
    row("minmax f32", "28*", uniform, 4, ga.minmax, lambda xp, x: (x.min(), x.max()),
        torch=lambda x: x.aminmax()),
    row("argmax f32", "cpu 22*", uniform, 4, ga.argmax, lambda xp, x: xp.argmax(x)),
]  # fmt: skip


affine = lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1])  # steps x -> a x + b one after the other


def welford(a, b):
    n = a[0] + b[0]
    delta = b[1] - a[1]
    share = b[0] / n
    return n, a[1] + delta * share, a[2] + b[2] + delta * delta * a[0] * share


def recurrence(a, b):
    sign = gpu().cumprod(a)
    return sign * (b * sign).cumsum(dtype="float64").astype("float32")


def affine_scan(a, b, out):
    outs = gpu().empty_like(a), out
    return lambda: ga.inclusive_scan((a, b), None, affine, out=outs)[1]


def two_copies(a, b, out):
    want, other = recurrence(a, b), gpu().empty_like(a)
    return lambda: (copied(gpu(), a, other), copied(gpu(), want, out))[1]


def welford_variance(x):
    """Prepare a variance of arrays of ones, numbers and zeros: only arrays go in."""
    one, zero = (gpu().broadcast_to(gpu().full(1, k, "float32"), x.shape) for k in (1, 0))
    return lambda: ga.reduce((one, x, zero), None, welford)[2] / np.float32(x.size)


# Factors of 1 and -1, and small integers: what they give is exact.
steps = lambda xp, n: (integers(xp, n, 0, 2) * 2 - 1, integers(xp, n, -2, 3, seed=1))
two_passes = lambda x, y: (x.sum(), y.max())
exact_variance = lambda x: x.astype("float64").var().astype("float32")
TUPLES = [
    row("affine scan of two f32", "28*", steps, 16, Prepared(affine_scan),
        others={"copy of both": Prepared(two_copies)}, expected=recurrence),
    [row("reduce pairs, f32, sum and max", sizes, steps, 8,
         lambda x, y: ga.reduce((x, y), None, lambda a, b: (a[0] + b[0], max(a[1], b[1]))),
         others={peer: two_passes}, expected=two_passes)
     for sizes, peer in (("20* 28*", "CuPy, two passes"), ("cpu 22*", "NumPy, two passes"))],
    row("transform, two results, f32", "28*", steps, 12,
        lambda x, y, out: ga.transform(lambda a: (a * 2, a + 1), x, out=out),
        others={"CuPy, two passes": lambda x, y, out: (
            gpu().multiply(x, 2, out=out[0]), gpu().add(x, 1, out=out[1]))},
        expected=lambda x, y: (x * 2, x + 1)),
    row("variance by Welford, f32", "28*", uniform, 4, Prepared(welford_variance),
        torch=lambda x: x.var(correction=0), tolerance=1e-3, expected=exact_variance),
]  # fmt: skip

MIDDLE = np.float32(0.5)  # near the mean


def moments(x, result):
    """Prepare a function of the sums, and those of squares, of what is left of the middle."""
    left = ga.lazy.transform(lambda a: (a - MIDDLE, (a - MIDDLE) * (a - MIDDLE)), x)
    n = np.float32(x.size)
    return lambda: result(*ga.reduce(left, None, lambda p, q: (p[0] + q[0], p[1] + q[1])), n)


def scan_of_array(x, y, out):
    between = gpu().empty_like(x)
    return lambda: ga.inclusive_scan(ga.transform(operator.mul, x, y, out=between), out=out)


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


small_pair = lambda xp, n: (integers(xp, n, -2, 3), integers(xp, n, -2, 3, seed=1))
lengths = lambda x, y: ga.lazy.transform(lambda a, b: a * a + b * b, x, y)
count = lambda x: ga.histogram(x, 100, (0.0, 2.0))
variance = lambda total, squares, n: (squares - total * total / n) / n
DOTS = {"others": {"CuPy, (x * y).sum()": lambda x, y: (x * y).sum()},
        "torch": lambda x, y: torch().dot(x, y)}  # fmt: skip
BETWEEN = "ours, by an array between"
LAZY = [
    [row(name, sizes, small_pair, 8,
         Prepared(lambda x, y, op=op: partial(ga.reduce, ga.lazy.transform(op, x, y))),
         expected=lambda x, y: exact_sum(x * y), tolerance=1e-5, **peers)
     for name, sizes, op, peers in (
         ("dot f32, lazy", "20* 24* 28*", operator.mul, DOTS),
         ("dot f32, lazy, by a lambda", "20* 24* 28*", lambda a, b: a * b, DOTS),
         ("dot f32", "cpu 22*", operator.mul, {"numpy": lambda xp, x, y: xp.dot(x, y)}))],
    row("mean and variance f32, one pass", "20* 24* 28*", uniform, 4,
        Prepared(partial(moments, result=variance)), torch=lambda x: x.var(correction=0),
        tolerance=1e-3, expected=exact_variance),
    # The same pass without the few operations on its results.
    row("sums and squares f32, one pass", "20* 24* 28*", uniform, 4,
        Prepared(partial(moments, result=lambda total, squares, n: squares)), tolerance=1e-3,
        others={"torch, its variance": lambda x: x.var(correction=0) * len(x)},
        expected=lambda x: ((x.astype("float64") - 0.5) ** 2).sum().astype("float32")),
    row("inclusive scan of x * y, f32", "20* 24* 28*", small_pair, 12,
        Prepared(lambda x, y, out: partial(ga.inclusive_scan, ga.lazy.asarray(x) * y, out=out)),
        others={BETWEEN: Prepared(scan_of_array)},
        expected=lambda x, y: (x * y).cumsum(dtype="float64").astype("float32")),
    row("histogram of lengths f32", "device 20* 24* 28*; cpu 22*", pair, 8,
        Prepared(lambda x, y: partial(count, lengths(x, y))),
        lambda xp, x, y: xp.histogram(x * x + y * y, 100, (0.0, 2.0))[0],
        others={BETWEEN: Prepared(count_of_array)}, expected=lambda x, y: count(x * x + y * y)),
    row("pi, f32 points", "28*", lambda xp, n: n, 0, Prepared(pi), cupy_pi,
        expected=lambda n: gpu().asarray(np.pi), tolerance=1e-3),
]  # fmt: skip
