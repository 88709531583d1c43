"""Scans, reductions and scans by key, segments and runs."""

from functools import partial

import numba
import numpy as np

import gpualgo as ga
from bench.inputs import COLUMNS, in_runs, integers, peaks, running_peaks, steps, uniform
from bench.peers import CUB_ROWS, Prepared, compute, cub, gpu, jax, polars, torch
from bench.row import row
from bench.rows.reductions import max_abs


@numba.njit(fastmath=True)
def numba_scan(x, out):
    running = x.dtype.type(0)
    for i in range(x.size):
        running += x[i]
        out[i] = running
    return out


def exact_scan(x, axis=0):
    wide = "float64" if x.dtype.kind == "f" else "int64"
    return x.cumsum(axis=axis, dtype=wide).astype(x.dtype)


def jax_max_abs(jnp, x):
    larger = lambda a, b: jnp.where(jnp.abs(a) > jnp.abs(b), a, b)
    return jax().lax.associative_scan(larger, x)


expected_peaks = lambda x: running_peaks(gpu(), x.size)
SCAN = [
    [row(f"inclusive scan sum {name}", sizes, partial(steps, dtype=dtype),
         2 * np.dtype(dtype).itemsize, lambda x, out: ga.inclusive_scan(x, out=out),
         alike=lambda x: x.cumsum(0, dtype=x.dtype), cub=cub(f"scan_{dtype}"),
         compute=compute("inclusive_scan"), jax=lambda jnp, x: jnp.cumsum(x, dtype=x.dtype),
         expected=exact_scan)
     for name, dtype, sizes in (
         ("f32", "float32", "16* 20* 24 28* 30"), ("i32", "int32", "16 20 24 28 30"),
         ("i64", "int64", "16 20 24 28* 30"), ("f64", "float64", "16 20 24 28* 30"),
         ("i8", "int8", "16 20 24 28* 30"))],
    row("inclusive scan, user lambda f32", "16 20 24 28* 30", peaks, 8,
        lambda x, out: ga.inclusive_scan(x, None, max_abs, out=out), jax=jax_max_abs,
        cub=cub("scan_max_abs_float32"), compute=compute("inclusive_scan", max_abs),
        expected=expected_peaks),
    [row(f"cumsum over axis {axis}, f32, beside CuPy", "28*",
         lambda xp, n: steps(xp, n).reshape(-1, COLUMNS), 8,
         lambda x, out, axis=axis: ga.inclusive_scan(x, axis=axis, out=out),
         alike=lambda x, axis=axis: x.cumsum(axis), beside="CuPy",
         expected=partial(exact_scan, axis=axis)) for axis in (1, 0)],
    row("inclusive scan", "host 10*", steps, 0, ga.inclusive_scan, alike=lambda x: x.cumsum(0),
        compute=compute("inclusive_scan", one_call=True), dtype="f32", expected=exact_scan),
    row("inclusive scan, user lambda", "host 10*", peaks, 0,
        lambda x: ga.inclusive_scan(x, None, max_abs), dtype="f32", expected=expected_peaks,
        compute=compute("inclusive_scan", max_abs, one_call=True)),
    row("inclusive scan, lambda sum f32", "cpu 24*", partial(integers, low=-8, high=9), 8,
        lambda x, out: ga.inclusive_scan(x, None, lambda a, b: a + b, out=out),
        lambda xp, x, out: xp.cumsum(x, out=out), numba=numba_scan, expected=exact_scan),
]  # fmt: skip


keyed = lambda xp, n, length: (in_runs(xp, n, length), steps(xp, n))


def run_sums(keys, x, length):
    padded = gpu().zeros(-(-x.size // length) * length)
    padded[: x.size] = x
    return keys[::length].copy(), padded.reshape(-1, length).sum(axis=1).astype("float32")


def run_scans(keys, x, length):
    whole = x.cumsum(dtype="float64")
    starts = gpu().arange(x.size) // length * length
    return (whole - (whole - x)[starts]).astype("float32")


def numbered(name, size, sizes, ours, **given):
    """Return rows of keys that are numbers below a size, in any order."""

    def by_torch(keys, x):
        return partial(torch().zeros(size, device=x.device).index_add, 0, keys.long(), x)

    return row(name, sizes, lambda xp, n: (integers(xp, n, 0, size, "int32"), steps(xp, n)), 8,
               ours, lambda xp, keys, x: xp.bincount(keys, x, size).astype("float32"),
               torch=Prepared(by_torch), **given)  # fmt: skip


small_integers = lambda n: integers(np, n, -8, 9)  # sums are exact
sum_groups = lambda keys, x: ga.reduce_by_key(keys, x)[1]
BY_KEY = [
    [row(f"reduce_by_key i32/f32, runs of {length}", "16 20 24 28*",
         partial(keyed, length=length), 8 + 8 / length,
         lambda keys, x, out, out_count: ga.reduce_by_key(
             keys, x, consecutive=True, out=out, out_count=out_count),
         cub=cub("reduce_by_key", count="int32"), expected=partial(run_sums, length=length))
     for length in (4, 64, 4096)],
    [row(f"scan by key i32/f32, runs of {length if length < 1 << 16 else 'all'}", sizes,
         partial(keyed, length=length), 12,
         lambda keys, x, out: ga.inclusive_scan_by_key(keys, x, consecutive=True, out=out),
         cub=cub("scan_by_key"), expected=partial(run_scans, length=length),
         of_its_size=length >= 1 << 16)
     for length, sizes in (
         (64, "16 20 24 28*"), (4096, "16 20 24 28*"), (1 << 16, "16"), (1 << 20, "20"),
         (1 << 24, "24"), (1 << 28, "28*"))],
    numbered("reduce_by_key of 1000 keys in any order", 1000, "16* 20* 24* 28*", sum_groups,
             dtype="i32"),
    [numbered(f"reduce_by_index i32/f32, {size} results", size, "16 20 24 28*",
              lambda keys, x, size=size: ga.reduce_by_index(keys, x, size))
     for size in (16, 1000, 4096, 100_000)],
    row("reduce_by_key i32/f32, runs of 64", "cpu 22*",
        lambda xp, n: (xp.arange(n, dtype="int32") // 64, small_integers(n)), 8,
        lambda keys, x: ga.reduce_by_key(keys, x, consecutive=True)[1],
        lambda xp, keys, x: xp.add.reduceat(x, xp.flatnonzero(xp.diff(keys, prepend=-1)))),
    row("reduce_by_key of 1000 keys in any order", "cpu 22*",
        lambda xp, n: (integers(xp, n, 0, 1000, "int32", 1), small_integers(n)), 8, sum_groups,
        lambda xp, keys, x: xp.bincount(keys, x, 1000).astype("float32"), dtype="i32",
        polars=lambda table: table.group_by("0").agg(polars().col("1").sum()).sort("0")["1"]),
]  # fmt: skip

GIANT = 64  # the giant segment has all elements but one in so many


def offsets_of(n, length):
    """Return the offsets of segments of one length; 0: of a giant one among segments of one."""
    if length:
        return np.arange(0, n + 1, min(length, n))
    tiny = n // GIANT
    return np.concatenate([np.arange(tiny // 2), np.arange(n - tiny // 2, n + 1)])


def segmented(name, length, sizes, bytes_each, draw, ours, **given):
    """Return rows beside calls on even rows, which are no ragged ones."""

    def with_offsets(xp, n):
        x = draw(xp, n)
        return x, xp.asarray(offsets_of(n, length)), x.reshape(-1, min(length or n, n))

    return row(f"segmented {name}, {length or 'a giant one'}", sizes, with_offsets, bytes_each,
               ours, **given)  # fmt: skip


def exact_segments(x, offsets, even):
    running = gpu().concatenate([gpu().zeros(1), x.cumsum(dtype="float64")])
    return gpu().diff(running[offsets]).astype("float32")


bit = partial(integers, low=0, high=2)
segment_sums = lambda x, offsets, even: ga.segmented_reduce(x, offsets)
LENGTHS = (16, 256, 1 << 16)
SEGMENTS = [
    [segmented("sum f32", length, "cpu 16 20 22*", 4, bit, segment_sums,
               numpy=lambda xp, x, offsets, even: xp.add.reduceat(x, offsets[:-1]))
     for length in LENGTHS],
    [segmented("sum f32", length, "16 20* 24 28*", 4, bit, segment_sums, expected=exact_segments,
               torch=lambda x, offsets, even: torch().segment_reduce(x, "sum", offsets=offsets),
               tolerance=0 if length else 1e-6,  # the giant segment's sum is rounded
               others={"CuPy, of even rows": lambda x, offsets, even: even.sum(axis=1)}
               if length else {})
     for length in (*LENGTHS, 0)],
    [segmented("scan i32", length, "16 20* 24 28*", 8, partial(bit, dtype="int32"),
               lambda x, offsets, even: ga.segmented_inclusive_scan(x, offsets),
               others={"gpualgo, of even rows":
                       lambda x, offsets, even: ga.inclusive_scan(even, axis=1)},
               expected=lambda x, offsets, even: even.cumsum(axis=1, dtype="int32").ravel())
     for length in LENGTHS],
    [segmented("sort f32", length, "16 20* 24 28*", 8, uniform,
               lambda x, offsets, even: ga.segmented_sort(x, offsets), cub=CUB_ROWS, beside="CUB",
               others={"gpualgo, of even rows": lambda x, offsets, even: ga.radix_sort(even),
                       "CuPy, of even rows": lambda x, offsets, even: gpu().sort(even)},
               expected=lambda x, offsets, even: gpu().sort(even).ravel()) for length in LENGTHS],
]  # fmt: skip


def heads_and_lengths(x, length):
    heads = x[::length].copy()
    lengths = gpu().full(heads.size, length, "int64")
    lengths[-1] = x.size - (heads.size - 1) * length
    return heads, lengths


ENCODE = cub("encode", count="int64")
cub_encode = lambda x, out: ENCODE.make(x, out=(out[0], out[1].astype("int32")))  # its lengths
RUNS = [
    [row(f"consecutive unique i32, runs of {length}", sizes, partial(in_runs, length=length),
         4 + 4 / length, lambda x, out, out_count: ga.unique(
             x, consecutive=True, out=out, out_count=out_count),
         cub=cub("unique", count="int64"), torch=lambda x: x.unique_consecutive(),
         expected=lambda x, length=length: x[::length].copy())
     for length, sizes in ((1, "20 24 28"), (4, "20 24 28*"), (64, "20 24 28"))],
    [row(f"run-length encode i32, runs of {length}", sizes, partial(in_runs, length=length),
         4 + 12 / length, lambda x, out, out_count: ga.run_length_encode(
             x, out=out, out_count=out_count),
         cub=Prepared(cub_encode, ENCODE.cub_source),
         torch=lambda x: torch().unique_consecutive(x, return_counts=True),
         expected=partial(heads_and_lengths, length=length), any_dtype=True)
     for length, sizes in ((4, "20 24 28*"), (64, "20 24 28"), (4096, "20 24 28"))],
    row("unique f32", "20 24 28*", uniform, 0, ga.unique, lambda xp, x: xp.unique(x),
        torch=lambda x: x.unique()),
    row("unique of int32 below 1000", "cpu 22*", partial(integers, low=0, high=1000, dtype="int32"),
        4, ga.unique, lambda xp, x: xp.unique(x), polars=lambda series: series.unique().sort()),
]  # fmt: skip
