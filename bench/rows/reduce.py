"""reduce, and sums over an axis."""

from functools import partial

import numpy as np

import gpualgo as ga
from bench.inputs import COLUMNS, integers, matrix, uniform
from bench.peers import Prepared, compute, cub, gpu
from bench.peers.functions import NUMBA_TOTAL, jax
from bench.row import row


def max_abs(a, b):  # a user's operator: no library knows it by name
    return a if abs(a) > abs(b) else b


def numbers(xp, n, dtype):
    return uniform(xp, n, dtype) if dtype[0] == "f" else integers(xp, n, -100, 100, dtype)


def sums(name, dtype, sizes):
    wide = "float64" if dtype[0] == "f" else "int64"
    return row(f"reduce sum {name}", sizes, partial(numbers, dtype=dtype), np.dtype(dtype).itemsize,
               ga.reduce, lambda xp, x: x.sum(dtype=dtype),
               cub=cub.function("cub", f"sum_{dtype}"), compute=compute.reduction(),
               jax=jax(lambda jnp, x: jnp.sum(x, dtype=dtype)),
               torch=lambda x: x.sum(dtype=x.dtype),
               expected=lambda x: x.sum(dtype=wide).astype(dtype), tolerance=1e-4)  # fmt: skip


def cupy_max_abs(xp, x):
    fold = "fabs(a) > fabs(b) ? a : b"
    kernel = gpu().ReductionKernel("T x", "T y", "x", fold, "y = a", "0", "max_abs")
    return partial(kernel, x)


def by_lambda(name, dtype, cub=None):
    return row(f"reduce, user lambda {name}", "28*", partial(numbers, dtype=dtype),
               np.dtype(dtype).itemsize, lambda x: ga.reduce(x, 0.0, max_abs),
               Prepared(cupy_max_abs), cub=cub, compute=compute.reduction(max_abs),
               expected=lambda x: x.max())  # fmt: skip


def over_axis(axis, cub=None):
    return row(f"sum over axis {axis}, f32, beside CuPy", "28*", matrix, 4,
               lambda x: ga.reduce(x, axis=axis), lambda xp, x: x.sum(axis=axis), cub=cub,
               torch=lambda x: x.sum(axis), beside="CuPy", tolerance=1e-3,
               expected=lambda x: x.sum(axis=axis, dtype="float64").astype("float32"))  # fmt: skip


def on_cpu(name, axis, numba=None):
    return row(name, "cpu 24*", matrix, 4,
               lambda x: ga.reduce(x, None, lambda a, b: a + b, axis=axis),
               lambda xp, x: xp.sum(x, axis=axis), numba=numba, tolerance=1e-3,
               expected=lambda x: x.sum(axis=axis, dtype="float64").astype("float32"))  # fmt: skip


ROWS = [
    *sums("f32", "float32", "10 12 14 16* 18 20* 22 24 26 28*"),
    *sums("i32", "int32", "28*"),
    *sums("f64", "float64", "28*"),
    *sums("i8", "int8", "28*"),
    *by_lambda("f32", "float32", cub.function("cub", "max_abs_float32")),
    *by_lambda("f64", "float64"),
    *over_axis(1, cub.function("cub", "sum_rows_float32", COLUMNS, rows=True)),
    *over_axis(0),
    *row("reduce", "host 10*", uniform, 0, ga.reduce, lambda xp, x: x.sum(),
         compute=compute.reduction(one_call=True), torch=lambda x: x.sum(),
         dtype="f32", tolerance=1e-4),
    *row("reduce, user lambda", "host 10*", uniform, 0, lambda x: ga.reduce(x, None, max_abs),
         compute=compute.reduction(max_abs, one_call=True), dtype="f32",
         expected=lambda x: x.max()),
    # The same two arrays again: what a loop around a plan does.
    *row("prepared reduce", "host 10*", uniform, 0,
         Prepared(lambda x, out: partial(ga.prepare(ga.reduce, x), x, out=out)),
         compute=compute.reduction(), dtype="f32", expected=lambda x: x.sum(), tolerance=1e-4),
    *on_cpu("reduce, lambda sum f32", None, NUMBA_TOTAL),
    *on_cpu("lambda sum over axis 1, f32", 1),
    *on_cpu("lambda sum over axis 0, f32", 0),
]  # fmt: skip
