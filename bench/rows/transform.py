"""transform by operators that other libraries know by name."""

from functools import partial

import numpy as np

import gpualgo as ga
from bench.inputs import integers, pair, uniform
from bench.peers import compute, cub, torch
from bench.peers.functions import NUMBA_AFFINE
from bench.row import row


def twice(a):
    return a * 2.0


def product(a, b):
    return a * b


def increment(a):
    return a + 1


def numpy_affine(xp, x, out):
    xp.multiply(x, 2.0, out=out)
    return xp.add(out, 1.0, out=out)


def doubled(name, sizes, bytes_each, cub=None, **given):
    return row(name, sizes, uniform, bytes_each, lambda x, out: ga.transform(twice, x, out=out),
               lambda xp, x, out: xp.multiply(x, 2.0, out=out), cub=cub,
               compute=compute.transformation(twice, one_call=cub is None),
               torch=lambda x, out: torch().mul(x, 2.0, out=out), expected=lambda x: x + x,
               **given)  # fmt: skip


cub_function = partial(cub.function, "cub", has_storage=False)
ROWS = [
    *doubled("transform unary f32", "10 12 14 16* 18 20* 22 24 26 28*", 8,
             cub_function("twice_float32")),
    *row("transform binary f32", "28*", pair, 12,
         lambda x, y, out: ga.transform(product, x, y, out=out),
         lambda xp, x, y, out: xp.multiply(x, y, out=out), cub=cub_function("product_float32"),
         compute=compute.transformation(product),
         torch=lambda x, y, out: torch().mul(x, y, out=out), expected=lambda x, y: x * y),
    *row("transform unary i8", "28*", partial(integers, low=-128, high=128, dtype="int8"), 2,
         lambda x, out: ga.transform(increment, x, out=out),
         lambda xp, x, out: xp.add(x, 1, out=out), cub=cub_function("increment_int8"),
         compute=compute.transformation(increment),
         torch=lambda x, out: torch().add(x, 1, out=out), expected=lambda x: x + np.int8(1)),
    *doubled("transform, out=", "host 10*", 0, dtype="f32"),
    *row("transform, lambda a * 2.0 + 1, f32", "cpu 24*", uniform, 8,
         lambda x, out: ga.transform(lambda a: a * 2.0 + 1, x, out=out), numpy_affine,
         numba=NUMBA_AFFINE, expected=lambda x: x * 2 + 1),
]  # fmt: skip
