"""adjacent_difference. NumPy's and CuPy's diff are given what precedes the input."""

from functools import partial

import gpualgo as ga
import gpualgo.numpy as gnp
from bench.inputs import COLUMNS, integers
from bench.peers import gpu
from bench.row import row
from bench.rows.copy import copied


def with_zeros(xp, n, axis, shape, dtype):
    x = integers(xp, n, 0, 100, dtype).reshape(shape)
    return x, xp.zeros_like(x[:1] if axis == 0 else x[:, :1])


def along(name, sizes, item_bytes=4, axis=0, shape=(-1,), dtype="float32"):
    inputs = partial(with_zeros, axis=axis, shape=shape, dtype=dtype)
    return row(f"adjacent difference {name}", sizes, inputs, 2 * item_bytes,
               lambda x, zeros: ga.adjacent_difference(x, axis=axis),
               lambda xp, x, zeros: xp.diff(x, axis=axis, prepend=zeros),
               torch=lambda x, zeros: x.diff(dim=axis, prepend=zeros))  # fmt: skip


def with_diff(xp, n):
    x = integers(xp, n, 0, 100)
    return x, xp.diff(x)


ROWS = [
    *along("f32", "cpu 16 20 22*; device 16 20* 24 28*"),
    *along("f32, axis 0", "cpu 16 20 22*; device 16 20* 24 28*", shape=(-1, COLUMNS)),
    *along("int8", "16 20* 24 28*", 1, dtype="int8"),
    *along("f32, axis 1", "16 20* 24 28*", axis=1, shape=(-1, COLUMNS)),
    # NumPy's name, of one element less; the copy of as many is what it can reach.
    *row("gnp.diff f32", "28*", with_diff, 8, lambda x, want: gnp.diff(x),
         lambda xp, x, want: xp.diff(x), torch=lambda x, want: x.diff(), beside="copy",
         others={"copy": lambda x, want, out: copied(gpu(), want, out)}),
]  # fmt: skip
