"""run_length_encode and unique."""

from functools import partial

import gpualgo as ga
from bench.inputs import in_runs, integers, uniform
from bench.peers import Prepared, cub, gpu, torch
from bench.peers.functions import polars
from bench.row import row

ENCODE = cub.function("cub_select", "encode", count="int64")


def cub_encode(x, out):  # its lengths have 32 bits
    return ENCODE.make(x, out=(out[0], out[1].astype("int32")))


def heads_and_lengths(x, length):
    heads = x[::length].copy()
    lengths = gpu().full(heads.size, length, "int64")
    lengths[-1] = x.size - (heads.size - 1) * length
    return heads, lengths


def heads(length, sizes="20 24 28"):
    return row(f"consecutive unique i32, runs of {length}", sizes, partial(in_runs, length=length),
               4 + 4 / length, lambda x, out, out_count: ga.unique(
                   x, consecutive=True, out=out, out_count=out_count),
               cub=cub.function("cub_select", "unique", count="int64"),
               torch=lambda x: x.unique_consecutive(),
               expected=lambda x: x[::length].copy())  # fmt: skip


def encode(length, sizes="20 24 28"):
    return row(f"run-length encode i32, runs of {length}", sizes, partial(in_runs, length=length),
               4 + 12 / length, lambda x, out, out_count: ga.run_length_encode(
                   x, out=out, out_count=out_count),
               cub=Prepared(cub_encode, ENCODE.cub_source),
               torch=lambda x: torch().unique_consecutive(x, return_counts=True),
               expected=partial(heads_and_lengths, length=length), any_dtype=True)  # fmt: skip


ROWS = [
    *heads(1),
    *heads(4, "20 24 28*"),
    *heads(64),
    *encode(4, "20 24 28*"),
    *encode(64),
    *encode(4096),
    *row("unique f32", "20 24 28*", uniform, 0, ga.unique, lambda xp, x: xp.unique(x),
         torch=lambda x: x.unique()),
    *row("unique of int32 below 1000", "cpu 22*",
         partial(integers, low=0, high=1000, dtype="int32"), 4, ga.unique,
         lambda xp, x: xp.unique(x), polars=polars(lambda series: series.unique().sort())),
]  # fmt: skip
