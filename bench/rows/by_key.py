"""Reductions and scans by key, and reductions by index."""

from functools import partial

import numpy as np

import gpualgo as ga
from bench.inputs import in_runs, integers, steps
from bench.peers import Prepared, cub, gpu, torch
from bench.peers.functions import POLARS_SUMS_BY_KEY
from bench.row import row


def keyed(xp, n, length):
    return in_runs(xp, n, length), steps(xp, n)


def run_sums(keys, x, length):
    padded = gpu().zeros(-(-x.size // length) * length)
    padded[: x.size] = x
    return keys[::length].copy(), padded.reshape(-1, length).sum(axis=1).astype("float32")


def run_scans(keys, x, length):
    whole = x.cumsum(dtype="float64")
    starts = gpu().arange(x.size) // length * length
    return (whole - (whole - x)[starts]).astype("float32")


def reduce_runs(length):
    return row(f"reduce_by_key i32/f32, runs of {length}", "16 20 24 28*",
               partial(keyed, length=length), 8 + 8 / length,
               lambda keys, x, out, out_count: ga.reduce_by_key(
                   keys, x, consecutive=True, out=out, out_count=out_count),
               cub=cub.function("cub_by_key", "reduce_by_key", count="int32"),
               expected=partial(run_sums, length=length))  # fmt: skip


def scan_runs(length, sizes="16 20 24 28*", of_its_size=False):
    name = f"scan by key i32/f32, runs of {'all' if of_its_size else length}"
    return row(name, sizes, partial(keyed, length=length), 12,
               lambda keys, x, out: ga.inclusive_scan_by_key(keys, x, consecutive=True, out=out),
               cub=cub.function("cub_by_key", "scan_by_key"),
               expected=partial(run_scans, length=length), of_its_size=of_its_size)  # fmt: skip


def numbered(name, sizes, size, ours, **given):
    """Return rows of keys that are numbers below a size, in any order."""

    def by_torch(keys, x):
        return partial(torch().zeros(size, device=x.device).index_add, 0, keys.long(), x)

    return row(name, sizes, lambda xp, n: (integers(xp, n, 0, size, "int32"), steps(xp, n)), 8,
               ours, lambda xp, keys, x: xp.bincount(keys, x, size).astype("float32"),
               torch=Prepared(by_torch), **given)  # fmt: skip


def indexed(size):
    return numbered(f"reduce_by_index i32/f32, {size} results", "16 20 24 28*", size,
                    lambda keys, x: ga.reduce_by_index(keys, x, size))  # fmt: skip


def small_integers(n):  # sums are exact
    return integers(np, n, -8, 9)


def sum_groups(keys, x):
    return ga.reduce_by_key(keys, x)[1]


ROWS = [
    *reduce_runs(4),
    *reduce_runs(64),
    *reduce_runs(4096),
    *scan_runs(64),
    *scan_runs(4096),
    *scan_runs(1 << 16, "16", of_its_size=True),
    *scan_runs(1 << 20, "20", of_its_size=True),
    *scan_runs(1 << 24, "24", of_its_size=True),
    *scan_runs(1 << 28, "28*", of_its_size=True),
    *numbered("reduce_by_key of 1000 keys in any order", "16* 20* 24* 28*", 1000, sum_groups,
              dtype="i32"),
    *indexed(16),
    *indexed(1000),
    *indexed(4096),
    *indexed(100_000),
    *row("reduce_by_key i32/f32, runs of 64", "cpu 22*",
         lambda xp, n: (xp.arange(n, dtype="int32") // 64, small_integers(n)), 8,
         lambda keys, x: ga.reduce_by_key(keys, x, consecutive=True)[1],
         lambda xp, keys, x: xp.add.reduceat(x, xp.flatnonzero(xp.diff(keys, prepend=-1)))),
    *row("reduce_by_key of 1000 keys in any order", "cpu 22*",
         lambda xp, n: (integers(xp, n, 0, 1000, "int32", 1), small_integers(n)), 8, sum_groups,
         lambda xp, keys, x: xp.bincount(keys, x, 1000).astype("float32"),
         polars=POLARS_SUMS_BY_KEY, dtype="i32"),
]  # fmt: skip
