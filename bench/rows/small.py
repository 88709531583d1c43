"""Calls on small NumPy arrays on the CPU, where what surrounds the kernel is most of the time."""

from functools import partial

import numpy as np

import gpualgo as ga
from bench.row import row

KEYS = 1 << 19  # of all arrays that a row of sorts goes through: no branch is learned by heart


def normal(xp, n, seed=0):
    return xp.random.default_rng(seed).standard_normal(n)


def small(name, ours, numpy, inputs=normal, tolerance=0.0):
    return row(f"small {name}, f64", "cpu 1000* 10000* 100000*", inputs, 0, ours, numpy,
               tolerance=tolerance)  # fmt: skip


def random_bits(xp, n, dtype, seed):
    info = np.iinfo(dtype)
    return xp.random.default_rng(seed).integers(info.min, info.max, n, dtype, endpoint=True)


def sort_all(sort, arrays):
    for x in arrays:
        result = sort(x)
    return result


def sorts(dtype, draw):
    return row(f"small sorts, {dtype}", "cpu 10* 12* 14* 16* 18* 20*",
               lambda xp, n: [draw(xp, n, seed=seed) for seed in range(max(4, KEYS // n))], 0,
               partial(sort_all, ga.radix_sort),
               lambda xp, arrays: sort_all(xp.sort, arrays))  # fmt: skip


ROWS = [
    *small("reduce", lambda x: ga.reduce(x, 0.0, lambda a, b: a + b), lambda xp, x: xp.sum(x),
           tolerance=1e-9),
    *small("transform", lambda x: ga.transform(lambda a: a * 2 + 1, x), lambda xp, x: x * 2 + 1),
    *small("scan", lambda x: ga.inclusive_scan(x, None, lambda a, b: a + b),
           lambda xp, x: xp.cumsum(x), lambda xp, n: abs(normal(xp, n)), tolerance=1e-9),
    *small("histogram", lambda x: ga.histogram(x, 10, (-3, 3)),
           lambda xp, x: xp.histogram(x, 10, (-3, 3))[0]),
    *[row for dtype in ("int8", "int16", "int32")
      for row in sorts(dtype, partial(random_bits, dtype=dtype))],
    *sorts("float64", normal),
]  # fmt: skip
