"""select, stable_partition and count.

On a GPU half of the elements are kept, the result's memory is there, and nothing waits.
"""

import numpy as np

import gpualgo as ga
from bench.inputs import uniform
from bench.peers import Prepared, cub
from bench.row import row


def with_mask(xp, n):
    return uniform(xp, n), uniform(xp, n, seed=1) < 0.5


def nonzero(mask, out, out_count):
    places = ga.lazy.arange(mask.size)
    return lambda: ga.select(places, mask, out=out, out_count=out_count)


ROWS = [
    *row("select f32, half kept", "16 20* 24 28*", uniform, 6, lambda x, out, out_count: ga.select(
             x, lambda a: a < 0.5, out=out, out_count=out_count),
         lambda xp, x: x[x < 0.5], cub=cub.function("cub_select", "select_if", count="int64"),
         torch=lambda x: x[x < 0.5]),
    *row("select f32 by a mask", "16 20* 24 28*", with_mask, 7,
         lambda x, mask, out, out_count: ga.select(x, mask, out=out, out_count=out_count),
         lambda xp, x, mask: x[mask],
         cub=cub.function("cub_select", "select_flagged", count="int64"),
         torch=lambda x, mask: x.masked_select(mask)),
    *row("nonzero of a mask", "16 20* 24 28*", lambda xp, n: with_mask(xp, n)[1], 5,
         Prepared(nonzero), lambda xp, mask: xp.flatnonzero(mask),
         torch=lambda mask: mask.nonzero()[:, 0], dtype="bool"),
    *row("partition f32", "16 20* 24 28*", uniform, 12,
         lambda x, out, out_count: ga.stable_partition(
             x, lambda a: a < 0.5, out=out, out_count=out_count),
         lambda xp, x: xp.concatenate([x[x < 0.5], x[x >= 0.5]])),
    *row("select f32, half kept", "cpu 22*", uniform, 6, lambda x: ga.select(x, lambda a: a < 0.5),
         lambda xp, x: x[x < 0.5]),
    *row("count f32", "cpu 22*", uniform, 4, lambda x: ga.count(x, lambda a: a < 0.5),
         lambda xp, x: xp.count_nonzero(x < 0.5), any_dtype=True,
         expected=lambda x: np.asarray(np.count_nonzero(x < 0.5))),
]  # fmt: skip
