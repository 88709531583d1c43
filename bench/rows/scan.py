"""Scans. Each element is read and written."""

from functools import partial

import numpy as np

import gpualgo as ga
from bench.inputs import COLUMNS, integers, peaks, running_peaks, steps
from bench.peers import compute, cub, gpu
from bench.peers.functions import NUMBA_SCAN, jax, jax_scan
from bench.row import row
from bench.rows.reduce import max_abs


def exact(x, axis=0):
    wide = "float64" if x.dtype.kind == "f" else "int64"
    return x.cumsum(axis=axis, dtype=wide).astype(x.dtype)


def expected_peaks(x):
    return running_peaks(gpu(), x.size)


def sums(name, dtype, sizes):
    return row(f"inclusive scan sum {name}", sizes, partial(steps, dtype=dtype),
               2 * np.dtype(dtype).itemsize, lambda x, out: ga.inclusive_scan(x, out=out),
               lambda xp, x: x.cumsum(dtype=dtype), cub=cub.function("cub_scan", f"scan_{dtype}"),
               compute=compute.scan(), jax=jax(lambda jnp, x: jnp.cumsum(x, dtype=dtype)),
               torch=lambda x: x.cumsum(0, dtype=x.dtype), expected=exact)  # fmt: skip


def over_axis(axis):
    return row(f"cumsum over axis {axis}, f32, beside CuPy", "28*",
               lambda xp, n: steps(xp, n).reshape(-1, COLUMNS), 8,
               lambda x, out: ga.inclusive_scan(x, axis=axis, out=out),
               lambda xp, x: x.cumsum(axis=axis, dtype="float32"), torch=lambda x: x.cumsum(axis),
               beside="CuPy", expected=partial(exact, axis=axis))  # fmt: skip


ROWS = [
    *sums("f32", "float32", "16* 20* 24 28* 30"),
    *sums("i32", "int32", "16 20 24 28 30"),
    *sums("i64", "int64", "16 20 24 28* 30"),
    *sums("f64", "float64", "16 20 24 28* 30"),
    *sums("i8", "int8", "16 20 24 28* 30"),
    *row("inclusive scan, user lambda f32", "16 20 24 28* 30", peaks, 8,
         lambda x, out: ga.inclusive_scan(x, None, max_abs, out=out),
         cub=cub.function("cub_scan", "scan_max_abs_float32"), compute=compute.scan(max_abs),
         jax=jax_scan(lambda jnp, a, b: jnp.where(jnp.abs(a) > jnp.abs(b), a, b)),
         expected=expected_peaks),
    *over_axis(1),
    *over_axis(0),
    *row("inclusive scan", "host 10*", steps, 0, ga.inclusive_scan, lambda xp, x: x.cumsum(),
         compute=compute.scan(one_call=True), torch=lambda x: x.cumsum(0), dtype="f32",
         expected=exact),
    *row("inclusive scan, user lambda", "host 10*", peaks, 0,
         lambda x: ga.inclusive_scan(x, None, max_abs),
         compute=compute.scan(max_abs, one_call=True), dtype="f32", expected=expected_peaks),
    *row("inclusive scan, lambda sum f32", "cpu 24*", partial(integers, low=-8, high=9), 8,
         lambda x, out: ga.inclusive_scan(x, None, lambda a, b: a + b, out=out),
         lambda xp, x, out: xp.cumsum(x, out=out), numba=NUMBA_SCAN, expected=exact),
]  # fmt: skip
