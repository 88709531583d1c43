"""Segmented reductions, scans and sorts, beside calls on even rows, which are no ragged ones."""

from functools import partial

import numpy as np

import gpualgo as ga
from bench.inputs import integers, uniform
from bench.peers import Prepared, cub, gpu, torch
from bench.row import row

GIANT = 64  # the giant segment has all elements but one in so many


def offsets_of(n, length):
    """Return the offsets of segments of one length; 0: of a giant one among segments of one."""
    if length:
        return np.arange(0, n + 1, min(length, n))
    tiny = n // GIANT
    return np.concatenate([np.arange(tiny // 2), np.arange(n - tiny // 2, n + 1)])


def with_offsets(xp, n, length, draw):
    x = draw(xp, n)
    return x, xp.asarray(offsets_of(n, length)), x.reshape(-1, min(length or n, n))


def ragged(name, length, sizes, bytes_each, draw, ours, numpy=None, **given):
    return row(f"{name}, {length or 'a giant one'}", sizes,
               partial(with_offsets, length=length, draw=draw), bytes_each, ours, numpy,
               **given)  # fmt: skip


def sums(length, others, tolerance=0.0):
    return ragged("segmented sum f32", length, "16 20* 24 28*", 4, partial(integers, low=0, high=2),
                  lambda x, offsets, even: ga.segmented_reduce(x, offsets), others=others,
                  torch=lambda x, offsets, even: torch().segment_reduce(x, "sum", offsets=offsets),
                  expected=exact_sums, tolerance=tolerance)  # fmt: skip


def exact_sums(x, offsets, even):
    running = gpu().concatenate([gpu().zeros(1), x.cumsum(dtype="float64")])
    return gpu().diff(running[offsets]).astype("float32")


def of_length(length):
    return [
        *sums(length, {"CuPy, of even rows": lambda x, offsets, even: even.sum(axis=1)}),
        *ragged("segmented scan i32", length, "16 20* 24 28*", 8,
                partial(integers, low=0, high=2, dtype="int32"),
                lambda x, offsets, even: ga.segmented_inclusive_scan(x, offsets),
                others={"gpualgo, of even rows":
                        lambda x, offsets, even: ga.inclusive_scan(even, axis=1)},
                expected=lambda x, offsets, even: even.cumsum(axis=1, dtype="int32").ravel()),
        *ragged("segmented sort f32", length, "16 20* 24 28*", 8, uniform,
                lambda x, offsets, even: ga.segmented_sort(x, offsets),
                others={"gpualgo, of even rows": lambda x, offsets, even: ga.radix_sort(even),
                        "CuPy, of even rows": lambda x, offsets, even: gpu().sort(even)},
                cub=Prepared(lambda x, offsets, even, out: cub.SORT_ROWS.make(even, out=out),
                             cub.SORT_ROWS.cub_source),
                expected=lambda x, offsets, even: gpu().sort(even).ravel(), beside="CUB"),
    ]  # fmt: skip


def on_cpu(length):
    return ragged("segmented sum f32", length, "cpu 16 20 22*", 4, partial(integers, low=0, high=2),
                  lambda x, offsets, even: ga.segmented_reduce(x, offsets),
                  lambda xp, x, offsets, even: xp.add.reduceat(x, offsets[:-1]))  # fmt: skip


LENGTHS = (16, 256, 1 << 16)
ROWS = [
    *[row for length in LENGTHS for row in on_cpu(length)],
    *[row for length in LENGTHS for row in of_length(length)],
    *sums(0, {}, tolerance=1e-6),  # the giant segment's sum is rounded
]
