"""Sorts, merges, selection, searches and the largest elements; histograms."""

from functools import partial

import numpy as np

import gpualgo as ga
from bench.inputs import COLUMNS, bits, floats, integers, matrix, pair, uniform, unit
from bench.peers import CUB_ROWS, Prepared, cub, gpu, torch
from bench.row import module_of, row

# Return the bytes moved for a key: one reading, then a pass for each of its 8-bit digits.
# A counting sort has fewer passes, and its rate may pass the memory's.
moved = lambda key_bytes, value_bytes=0: key_bytes + 2 * key_bytes * (key_bytes + value_bytes)


def keys(name, dtype, sizes, inputs=None, **given):
    return row(f"radix sort keys {name}", sizes, inputs or partial(bits, dtype=dtype),
               moved(np.dtype(dtype).itemsize), lambda x, out: ga.radix_sort(x, out=out),
               lambda xp, x: xp.sort(x), cub=cub(f"sort_{dtype}"), jax=lambda jnp, x: jnp.sort(x),
               **given)  # fmt: skip


by_torch = lambda x: x.sort()[0]  # and finds the indices; it sorts no wider unsigned integers
in_order = lambda x, values: (x[(order := gpu().argsort(x))], values[order])
RADIX_SORT = [
    keys("u32", "uint32", "16* 20* 24 28* 30"),
    keys("u32, all equal", "uint32", "28", lambda xp, n: xp.zeros(n, "uint32")),
    keys("f32", "float32", "16 20 24 28* 30", floats, torch=by_torch),
    keys("u64", "uint64", "16 20 24 28* 30"),
    keys("u16", "uint16", "16 20 24 28* 30"),
    keys("u8", "uint8", "16 20 24 28* 30", torch=by_torch),
    [row(f"radix sort pairs {name}", sizes,
         lambda xp, n, dtype=dtype: (bits(xp, n, dtype), bits(xp, n, dtype, seed=1)),
         moved(size, size), lambda x, values, out: ga.radix_sort(x, values, out=out),
         cub=cub(f"sort_pairs_{dtype}_{dtype}"), expected=in_order)
     for name, dtype, size, sizes in (
         ("u32/u32", "uint32", 4, "16* 20* 24 28* 30"),
         ("u64/u64", "uint64", 8, "16 20 24 28*"))],  # 2^30 takes more than 100 GB
    row("argsort f32", "16 20 24 28* 30", floats, moved(4, 8),
        lambda x, out: ga.argsort(x, out=out), lambda xp, x: xp.argsort(x),
        torch=lambda x: x.argsort(stable=True)),
    row("sort over axis 1, f32, beside CuPy", "28*",
        lambda xp, n: floats(xp, n).reshape(-1, COLUMNS), moved(4),
        lambda x, out: ga.radix_sort(x, axis=1, out=out), lambda xp, x: xp.sort(x, axis=1),
        cub=CUB_ROWS, torch=lambda x: x.sort(dim=1)[0], beside="CuPy"),
    row("radix sort f32", "cpu 24*", uniform, moved(4), lambda x, out: ga.radix_sort(x, out=out),
        lambda xp, x: xp.sort(x), polars=lambda series: series.sort()),
    row("argsort f32, NumPy's stable", "cpu 24*", uniform, moved(4, 8),
        lambda x, out: ga.argsort(x, out=out), lambda xp, x: xp.argsort(x, kind="stable")),
]  # fmt: skip
sorted_halves = lambda xp, n, dtype="float32": tuple(
    xp.sort(uniform(xp, n // 2, dtype, seed)) for seed in range(2)
)
less = lambda a, b: a < b
whole_int32 = partial(integers, low=0, high=2**31 - 1, dtype="int32")
merge = lambda xp, a, b: xp.sort(xp.concatenate([a, b]), kind="stable")
MERGE_SORT = [
    [row(f"merge_sort {name} by a lambda", "16 20* 24 28*", inputs, 8,
         lambda x, out: ga.merge_sort(x, less=less, out=out), cub=cub(f"merge_sort_{dtype}"),
         others={"torch, by value": lambda x: x.sort(stable=True)[0]}, beside="CUB",
         expected=lambda x: gpu().sort(x))
     for name, dtype, inputs in (("f32", "float32", uniform), ("i32", "int32", whole_int32))],
    row("merge f32", "16 20* 24 28*", sorted_halves, 8, ga.merge, merge),
    row("merge_sort of rows f32 by a lambda", "28*", matrix, 8,
        lambda x: ga.merge_sort(x, less=less), lambda xp, x: xp.sort(x),
        others={"radix_sort": ga.radix_sort}),
    row("merge_sort f64 by a lambda", "cpu 22*", partial(uniform, dtype="float64"), 16,
        lambda x: ga.merge_sort(x, less=less), lambda xp, x: xp.sort(x, kind="stable")),
    row("merge_sort i32 by a coarse key", "cpu 22*", whole_int32, 8,
        lambda x: ga.merge_sort(x, less=lambda a, b: a >> 4 < b >> 4),
        lambda xp, x: x[xp.argsort(x >> 4, kind="stable")]),
    row("merge f64", "cpu 22*", partial(sorted_halves, dtype="float64"), 16, ga.merge, merge),
]  # fmt: skip


def largest(xp, x, k):
    if xp is not np:
        return -xp.sort(xp.partition(-x, k - 1)[..., :k])
    at = x.shape[-1] - k
    values = xp.take_along_axis(x, xp.argpartition(x, at)[..., at:], -1)
    return xp.take_along_axis(values, xp.argsort(values, axis=-1)[..., ::-1], -1)


def top(name, k, sizes="16 20* 24 28*; cpu 22*", inputs=unit):
    return row(f"top {name}", sizes, inputs, 4, lambda x: ga.top_k(x, k).values,
               partial(largest, k=k), torch=lambda x: x.topk(k).values)  # fmt: skip


unit_rows = lambda xp, n: unit(xp, n).reshape(-1, COLUMNS)
TOP_K = [
    top("10 f32", 10),
    top("1,000 f32", 1000, "16 20* 24 28*"),
    top("100,000 f32", 100_000, "20* 24 28*; cpu 22*"),
    top("8 of rows of 1024 f32", 8, inputs=unit_rows),
    top("100 of rows of 1024 f32", 100, "28*", unit_rows),
    top("50 of rows of 2^17 f32", 50, "21*", lambda xp, n: unit(xp, n).reshape(-1, 1 << 17)),
    top("10 i32, random bits", 10, "28*", partial(bits, dtype="int32")),
    top("10 i32 below 100", 10, "28*", lambda xp, n: (unit(xp, n) * 100).astype("int32")),
    top("10 f32, all equal", 10, "28*", lambda xp, n: xp.ones(n, "float32")),
    row("median f32", "16 20* 24 28*; cpu 22*", unit, 4, lambda x: ga.kth_value(x, x.size // 2),
        lambda xp, x: xp.partition(x, x.size // 2)[x.size // 2],
        torch=lambda x: x.kthvalue(len(x) // 2 + 1).values),
]  # fmt: skip


def queries(xp, n, dtype="float32", share=1, are_sorted=False):
    """Return sorted elements and as many queries, or one for `share` of them."""
    drawn = uniform(xp, n), uniform(xp, n // share, seed=1)
    a, v = ((x * (1 << 24)).astype(dtype) for x in drawn)
    return xp.sort(a), xp.sort(v) if are_sorted else v


SEARCHSORTED = [
    [row(f"searchsorted {name}", sizes, partial(queries, **given), 0,
         lambda a, v, out: ga.searchsorted(a, v, out=out), lambda xp, a, v: xp.searchsorted(a, v),
         torch=lambda a, v: torch().searchsorted(a, v))
     for name, sizes, given in (
         ("f32, random queries", "16 20 24* 28", {}),
         ("f32, sorted queries", "16 20 24* 28", {"are_sorted": True}),
         ("i64, random queries", "16 20 24 28", {"dtype": "int64"}),
         ("f64", "cpu 20*", {"dtype": "float64"}),
         ("f32, a query for 64", "16 20 24* 28", {"share": 64}))],
]  # fmt: skip


nonzero = lambda mask, out, out_count: partial(
    ga.select, ga.lazy.arange(mask.size), mask, out=out, out_count=out_count)  # fmt: skip
# On a GPU half of the elements are kept, the result's memory is there, and nothing waits.
with_mask = lambda xp, n: (uniform(xp, n), uniform(xp, n, seed=1) < 0.5)
half = lambda a: a < 0.5
SELECT = [
    row("select f32, half kept", "16 20* 24 28*", uniform, 6,
        lambda x, out, out_count: ga.select(x, half, out=out, out_count=out_count),
        alike=lambda x: x[x < 0.5], cub=cub("select_if", count="int64")),
    row("select f32 by a mask", "16 20* 24 28*", with_mask, 7,
        lambda x, mask, out, out_count: ga.select(x, mask, out=out, out_count=out_count),
        lambda xp, x, mask: x[mask], cub=cub("select_flagged", count="int64"),
        torch=lambda x, mask: x.masked_select(mask)),
    row("nonzero of a mask", "16 20* 24 28*", lambda xp, n: with_mask(xp, n)[1], 5,
        Prepared(nonzero), lambda xp, mask: xp.flatnonzero(mask),
        torch=lambda mask: mask.nonzero()[:, 0]),
    row("partition f32", "16 20* 24 28*", uniform, 12,
        lambda x, out, out_count: ga.stable_partition(x, half, out=out, out_count=out_count),
        lambda xp, x: xp.concatenate([x[x < 0.5], x[x >= 0.5]])),
    row("select f32, half kept", "cpu 22*", uniform, 6, lambda x: ga.select(x, half),
        lambda xp, x: x[x < 0.5]),
    row("count f32", "cpu 22*", uniform, 4, lambda x: ga.count(x, half),
        lambda xp, x: xp.count_nonzero(x < 0.5), any_dtype=True,
        expected=lambda x: np.asarray(np.count_nonzero(x < 0.5))),
]  # fmt: skip


# Histograms. Each sample is read once. Bins are powers of two over [0, 1), so that every library
# finds the same bin. Counters have 32 bits where a library gives the choice.

SPAN = ((0, 1), (0, 1))
EDGES = (np.linspace(0, 1, 2049) ** 2).astype(np.float32)


def counts(bins, *coordinates, weights=None):
    place = sum((x * bins).astype("int32") * bins**i for i, x in enumerate(coordinates[::-1]))
    weights = None if weights is None else weights.astype("float64")
    shape = (bins,) * len(coordinates)
    xp = module_of(place)
    return xp.bincount(place, weights, minlength=bins ** len(shape)).reshape(shape)


COUNTS = {"any_dtype": True, "out_dtype": "int32"}


def even(bins, name="f32", sizes="28", inputs=unit, **given):
    return row(f"histogram {bins} bins, {name}", sizes, inputs, 4,
               lambda x, out: ga.histogram(x, bins, (0, 1), out=out),
               lambda xp, x: xp.histogram(x, bins, (0, 1))[0],
               cub=cub("histogram_float32", bins, 1),
               torch=lambda x: torch().histc(x, bins, 0, 1),  # in float32, exact up to 2^24
               expected=partial(counts, bins), **COUNTS, **given)  # fmt: skip


HISTOGRAM = [
    *map(even, (32, 128, 2048, 1 << 21)),
    even(256, sizes="16* 20* 24 28* 30; cpu 24*"),
    # Beside the one peer that the targets were measured with.
    even(4096, "f32, beside CUB", "16 20 24 28* 30", beside="CUB"),
    even(65536, "f32, beside CUB", "16 20 24 28* 30", beside="CUB"),
    row("histogram 256 bins, u8", "16* 20* 24 28* 30", partial(bits, dtype="uint8"), 1,
        lambda x, out: ga.histogram(x, 256, (0, 256), out=out),
        lambda xp, x: xp.bincount(x, minlength=256), cub=cub("histogram_uint8", 256, 256),
        torch=lambda x: x.bincount(minlength=256), **COUNTS),
    even(256, "f32, all in one bin", inputs=lambda xp, n: xp.full(n, 0.3, "float32")),
    row("histogram 2048 bins by edges, f32", "28",
        lambda xp, n: (unit(xp, n), xp.asarray(EDGES)), 4,
        lambda x, edges, out: ga.histogram(x, EDGES, out=out),
        lambda xp, x, edges: xp.histogram(x, edges)[0], cub=cub("histogram_edges_float32", 2048),
        expected=lambda x, edges: gpu().bincount(
            gpu().searchsorted(edges, x, side="right") - 1, minlength=2048), **COUNTS),
    [row(f"histogram {bins}x{bins} bins, f32 pairs", sizes, pair, 8,
         lambda x, y, out, bins=bins: ga.histogram((x, y), bins, SPAN, out=out),
         lambda xp, x, y, bins=bins: xp.histogram2d(x, y, bins, SPAN)[0],
         expected=partial(counts, bins), **COUNTS) for bins, sizes in ((32, "26*"), (1024, "26"))],
    [row(f"histogram 256 bins, f32, {dtype} weights", "26*",
         lambda xp, n, dtype=dtype: (unit(xp, n), (unit(xp, n, 1) - 0.25).astype(dtype)), 4 + size,
         lambda x, w: ga.histogram(x, 256, (0, 1), weights=w),
         lambda xp, x, w: xp.histogram(x, 256, (0, 1), weights=w)[0],
         torch=Prepared(lambda x, w: partial(torch().bincount, (x * 256).long(), w, 256)),
         tolerance=tolerance, expected=lambda x, w: counts(256, x, weights=w), any_dtype=True)
     for dtype, size, tolerance in (  # the peers' sums are not exact
         ("float32", 4, 1e-3), ("float64", 8, 1e-9))],
    row("histogram 32x32 bins, f32 pairs, f64 weights", "cpu 20*",
        lambda xp, n: (*pair(xp, n), uniform(xp, n, "float64", 2) - 0.25), 16,
        lambda x, y, w: ga.histogram((x, y), 32, SPAN, weights=w),
        lambda xp, x, y, w: xp.histogram2d(x, y, 32, SPAN, weights=w)[0], tolerance=1e-9),
]  # fmt: skip
