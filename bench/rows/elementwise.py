"""copy, transform and adjacent_difference; arrays that are broadcast, transposed or narrow."""

import math
from functools import partial

import numba
import numpy as np

import gpualgo as ga
import gpualgo.numpy as gnp
from bench.inputs import COLUMNS, integers, pair, uniform
from bench.peers import Prepared, compute, cub, gpu, torch
from bench.row import row


def copied(xp, x, out):
    xp.copyto(out, x)
    return out


# What memory allows, and the roofline of the plots.
COPY = row("copy f32", "device 16* 20* 24* 28*; cpu 16* 20* 24*", uniform, 8,
           lambda x, out: ga.copy(x, out=out), copied,
           torch=lambda x, out: out.copy_(x), expected=lambda x: x)  # fmt: skip


twice = lambda a: a * 2.0
product = lambda a, b: a * b
increment = lambda a: a + 1


@numba.njit(parallel=True, fastmath=True)
def numba_affine(x, out):
    for i in numba.prange(x.size):
        out[i] = x[i] * x.dtype.type(2) + x.dtype.type(1)
    return out


TRANSFORM = [
    [row(name, sizes, uniform, bytes_each, lambda x, out: ga.transform(twice, x, out=out),
         lambda xp, x, out: xp.multiply(x, 2.0, out=out), cub=by_cub,
         compute=compute("unary_transform", twice, one_call=by_cub is None), dtype="f32",
         torch=lambda x, out: torch().mul(x, 2.0, out=out), expected=lambda x: x + x)
     for name, sizes, bytes_each, by_cub in (
         ("transform unary f32", "10 12 14 16* 18 20* 22 24 26 28*", 8, cub("twice_float32")),
         ("transform, out=", "host 10*", 0, None))],
    row("transform binary f32", "28*", pair, 12,
        lambda x, y, out: ga.transform(product, x, y, out=out),
        lambda xp, x, y, out: xp.multiply(x, y, out=out), cub=cub("product_float32"),
        compute=compute("binary_transform", product),
        torch=lambda x, y, out: torch().mul(x, y, out=out), expected=lambda x, y: x * y),
    row("transform unary i8", "28*", partial(integers, low=-128, high=128, dtype="int8"), 2,
        lambda x, out: ga.transform(increment, x, out=out),
        lambda xp, x, out: xp.add(x, 1, out=out), cub=cub("increment_int8"),
        compute=compute("unary_transform", increment),
        torch=lambda x, out: torch().add(x, 1, out=out), expected=lambda x: x + np.int8(1)),
    row("transform, lambda a * 2.0 + 1, f32", "cpu 24*", uniform, 8,
        lambda x, out: ga.transform(lambda a: a * 2.0 + 1, x, out=out),
        lambda xp, x, out: xp.add(xp.multiply(x, 2.0, out=out), 1.0, out=out),
        numba=numba_affine, expected=lambda x: x * 2 + 1),
]  # fmt: skip


def differences(name, sizes, axis=0, shape=(-1,), dtype="float32"):
    """Return rows whose peers are given zeros that precede the input."""

    def inputs(xp, n):
        x = integers(xp, n, 0, 100, dtype).reshape(shape)
        return x, xp.zeros_like(x[:1] if axis == 0 else x[:, :1])

    return row(f"adjacent difference {name}", sizes, inputs, 2 * np.dtype(dtype).itemsize,
               lambda x, zeros: ga.adjacent_difference(x, axis=axis),
               lambda xp, x, zeros: xp.diff(x, axis=axis, prepend=zeros),
               torch=lambda x, zeros: x.diff(dim=axis, prepend=zeros))  # fmt: skip


ADJACENT_DIFFERENCE = [
    differences("f32", "cpu 16 20 22*; device 16 20* 24 28*"),
    differences("f32, axis 0", "cpu 16 20 22*; device 16 20* 24 28*", shape=(-1, COLUMNS)),
    differences("int8", "16 20* 24 28*", dtype="int8"),
    differences("f32, axis 1", "16 20* 24 28*", axis=1, shape=(-1, COLUMNS)),
    # NumPy's name, of one element less; the copy of as many is what it can reach.
    row("gnp.diff f32", "28*", partial(integers, low=0, high=100), 8, gnp.diff,
        lambda xp, x: xp.diff(x), torch=lambda x: x.diff(), beside="copy",
        others={"copy": Prepared(lambda x, out: partial(copied, gpu(), gpu().diff(x), out))}),
]  # fmt: skip


def of_shapes(name, shapes, bytes_each, ours, **given):
    return [row(f"{name}, {shape}", f"{math.prod(shape)}*",
                lambda xp, n, shape=shape: integers(xp, n, -2, 3).reshape(shape), bytes_each, ours,
                dtype="f32", of_its_size=True, **given) for shape in shapes]  # fmt: skip


LARGE = ((1 << 18, 1 << 10), (1 << 22, 64))
LAYOUTS = [
    of_shapes("transform, x - row", LARGE, 8, lambda x: ga.transform(lambda p, q: p - q, x, x[:1]),
              alike=lambda x: x - x[:1]),
    of_shapes("transform, x - column", LARGE, 8,
              lambda x: ga.transform(lambda p, q: p - q, x, x[:, :1]),
              alike=lambda x: x - x[:, :1]),
    of_shapes("transform, x.T into C order", LARGE, 8,
              lambda x, out: ga.transform(lambda a: a, x.T, out=out),
              numpy=lambda xp, x: xp.ascontiguousarray(x.T), torch=lambda x: x.T.contiguous(),
              others={"copy": lambda x, out: copied(gpu(), x, out.reshape(x.shape)).T},
              beside="copy", expected=lambda x: x.T),
    of_shapes("sum over axis 0", ((1 << 26, 3), (1 << 10, 1 << 18)), 4,
              lambda x: ga.reduce(x, axis=0), alike=lambda x: x.sum(0)),
    of_shapes("sum over axis 1", ((1 << 24, 16),), 4, lambda x: ga.reduce(x, axis=1),
              alike=lambda x: x.sum(1)),
    of_shapes("sum of x[:, ::2]", ((1 << 18, 1 << 10), (1 << 26, 3)), 4,
              lambda x: ga.reduce(x[:, ::2]), alike=lambda x: x[:, ::2].sum()),
    of_shapes("cumsum over axis 0", ((1 << 21, 128), (1 << 22, 64), (1 << 23, 32), (1 << 24, 16)),
              8, lambda x, out: ga.inclusive_scan(x, axis=0, out=out), beside="copy",
              others={"copy": Prepared(lambda x, out: partial(copied, gpu(), x.cumsum(0), out))},
              expected=lambda x: x.cumsum(0)),
]  # fmt: skip
