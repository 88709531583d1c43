"""Elements that are tuples: reductions, scans and transformations of several arrays at once."""

import numpy as np

import gpualgo as ga
from bench.inputs import integers, uniform
from bench.peers import Prepared, gpu
from bench.row import row
from bench.rows.copy import copied


def affine(a, b):  # of steps x -> a x + b, one after the other
    return a[0] * b[0], a[1] * b[0] + b[1]


def sum_and_max(a, b):
    return a[0] + b[0], max(a[1], b[1])


def welford(a, b):
    n = a[0] + b[0]
    delta = b[1] - a[1]
    share = b[0] / n
    return n, a[1] + delta * share, a[2] + b[2] + delta * delta * a[0] * share


def steps(xp, n):
    """Return factors of 1 and -1 and small integers: what they give is exact."""
    return integers(xp, n, 0, 2) * 2 - 1, integers(xp, n, -2, 3, seed=1)


def recurrence(a, b):
    sign = gpu().cumprod(a)
    return sign * (b * sign).cumsum(dtype="float64").astype("float32")


def scan(a, b, out):
    outs = gpu().empty_like(a), out
    return lambda: ga.inclusive_scan((a, b), None, affine, out=outs)[1]


def two_copies(a, b, out):
    want, other = recurrence(a, b), gpu().empty_like(a)
    return lambda: (copied(gpu(), a, other), copied(gpu(), want, out))[1]


def variance(x):
    """Prepare a variance of arrays of ones, numbers and zeros: only arrays go in."""
    one, zero = (gpu().broadcast_to(gpu().full(1, k, "float32"), x.shape) for k in (1, 0))
    return lambda: ga.reduce((one, x, zero), None, welford)[2] / np.float32(x.size)


def two_passes(x, y):
    return x.sum(), y.max()


def sums_and_maxima(sizes, peer):
    return row("reduce pairs, f32, sum and max", sizes, steps, 8,
               lambda x, y: ga.reduce((x, y), None, sum_and_max), others={peer: two_passes},
               expected=two_passes)  # fmt: skip


ROWS = [
    *row("affine scan of two f32", "28*", steps, 16, Prepared(scan),
         others={"copy of both": Prepared(two_copies)}, expected=recurrence),
    *sums_and_maxima("20* 28*", "CuPy, two passes"),
    *row("transform, two results, f32", "28*", steps, 12,
         lambda x, y, out: ga.transform(lambda a: (a * 2, a + 1), x, out=out),
         others={"CuPy, two passes": lambda x, y, out: (
             gpu().multiply(x, 2, out=out[0]), gpu().add(x, 1, out=out[1]))},
         expected=lambda x, y: (x * 2, x + 1)),
    *row("variance by Welford, f32", "28*", uniform, 4, Prepared(variance),
         torch=lambda x: x.var(correction=0), tolerance=1e-3,
         expected=lambda x: x.astype("float64").var().astype("float32")),
    *sums_and_maxima("cpu 22*", "NumPy, two passes"),
]  # fmt: skip
