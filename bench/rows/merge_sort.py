"""merge_sort and merge, beside libraries that sort by value alone."""

from functools import partial

import gpualgo as ga
from bench.inputs import integers, matrix, uniform
from bench.peers import cub, gpu
from bench.row import row


def less(a, b):
    return a < b


def sorted_halves(xp, n, dtype="float32"):
    return tuple(xp.sort(uniform(xp, n // 2, dtype, seed)) for seed in range(2))


def merge(xp, a, b):
    return xp.sort(xp.concatenate([a, b]), kind="stable")


def sort(name, dtype, inputs):
    return row(f"merge_sort {name} by a lambda", "16 20* 24 28*", inputs, 8,
               lambda x, out: ga.merge_sort(x, less=less, out=out),
               cub=cub.function("cub_merge_sort", f"merge_sort_{dtype}"),
               others={"torch, by value": lambda x: x.sort(stable=True)[0]}, beside="CUB",
               expected=lambda x: gpu().sort(x))  # fmt: skip


ROWS = [
    *sort("f32", "float32", uniform),
    *sort("i32", "int32", partial(integers, low=0, high=2**31 - 1, dtype="int32")),
    *row("merge f32", "16 20* 24 28*", sorted_halves, 8, ga.merge, merge),
    *row("merge_sort of rows f32 by a lambda", "28*", matrix, 8,
         lambda x: ga.merge_sort(x, less=less), lambda xp, x: xp.sort(x),
         others={"radix_sort": ga.radix_sort}),
    *row("merge_sort f64 by a lambda", "cpu 22*", partial(uniform, dtype="float64"), 16,
         lambda x: ga.merge_sort(x, less=less), lambda xp, x: xp.sort(x, kind="stable")),
    *row("merge_sort i32 by a coarse key", "cpu 22*",
         partial(integers, low=0, high=2**31 - 1, dtype="int32"), 8,
         lambda x: ga.merge_sort(x, less=lambda a, b: a >> 4 < b >> 4),
         lambda xp, x: x[xp.argsort(x >> 4, kind="stable")]),
    *row("merge f64", "cpu 22*", partial(sorted_halves, dtype="float64"), 16, ga.merge, merge),
]  # fmt: skip
