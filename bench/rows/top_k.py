"""top_k and kth_value."""

from functools import partial

import gpualgo as ga
from bench.inputs import COLUMNS, bits, matrix, uniform, unit
from bench.row import row


def cupy_top(xp, x, k):
    return -xp.sort(xp.partition(-x, k - 1)[..., :k])


def numpy_top(xp, x, k):
    at = x.shape[-1] - k
    values = xp.take_along_axis(x, xp.argpartition(x, at)[..., at:], -1)
    return xp.take_along_axis(values, xp.argsort(values, axis=-1)[..., ::-1], -1)


def top(name, k, sizes="16 20* 24 28*", inputs=unit, peer=cupy_top):
    return row(name, sizes, inputs, 4, lambda x: ga.top_k(x, k).values, partial(peer, k=k),
               torch=lambda x: x.topk(k).values)  # fmt: skip


def median(sizes, inputs):
    return row("median f32", sizes, inputs, 4, lambda x: ga.kth_value(x, x.size // 2),
               lambda xp, x: xp.partition(x, x.size // 2)[x.size // 2],
               torch=lambda x: x.kthvalue(len(x) // 2 + 1).values)  # fmt: skip


def unit_rows(xp, n):
    return unit(xp, n).reshape(-1, COLUMNS)


ROWS = [
    *top("top 10 f32", 10),
    *top("top 1,000 f32", 1000),
    *top("top 100,000 f32", 100_000, "20* 24 28*"),
    *top("top 8 of rows of 1024 f32", 8, inputs=unit_rows),
    *median("16 20* 24 28*", unit),
    *top("top 100 of rows of 1024 f32", 100, "28*", unit_rows),
    *top("top 10 i32, random bits", 10, "28*", partial(bits, dtype="int32")),
    *top("top 10 i32 below 100", 10, "28*", lambda xp, n: (unit(xp, n) * 100).astype("int32")),
    *top("top 10 f32, all equal", 10, "28*", lambda xp, n: xp.ones(n, "float32")),
    *top("top 10 f32", 10, "cpu 22*", uniform, numpy_top),
    *top("top 100,000 f32", 100_000, "cpu 22*", uniform, numpy_top),
    *top("top 8 of rows of 1024 f32", 8, "cpu 22*", matrix, numpy_top),
    *median("cpu 22*", uniform),
]
