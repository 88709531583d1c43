"""Histograms. Each sample is read once.

Bins are powers of two over [0, 1), so that every library finds the same bin. Counters have 32 bits
where a library gives the choice.
"""

from functools import partial

import numpy as np

import gpualgo as ga
from bench.inputs import bits, uniform, unit
from bench.peers import Prepared, cub, gpu, torch
from bench.row import row

SPAN = ((0, 1), (0, 1))
EDGES = (np.linspace(0, 1, 2049) ** 2).astype(np.float32)


def counts(bins, *coordinates, weights=None):
    place = sum((x * bins).astype("int32") * bins**i for i, x in enumerate(coordinates[::-1]))
    weights = None if weights is None else weights.astype("float64")
    shape = (bins,) * len(coordinates)
    return gpu().bincount(place, weights, minlength=bins ** len(shape)).reshape(shape)


def torch_sums(bins, *coordinates_and_weights):
    """Prepare sums of weights for PyTorch, to which the bins are given."""
    *coordinates, weights = coordinates_and_weights
    place = sum((x * bins).long() * bins**i for i, x in enumerate(coordinates[::-1]))
    shape = (bins,) * len(coordinates)
    return lambda: torch().bincount(place, weights, bins ** len(shape)).reshape(shape)


def even(bins, name="f32", sizes="28", inputs=unit, item_bytes=4, **given):
    return row(f"histogram {bins} bins, {name}", sizes, inputs, item_bytes,
               lambda x, out: ga.histogram(x, bins, (0, 1), out=out),
               lambda xp, x: xp.histogram(x, bins, (0, 1))[0],
               cub=cub("histogram_float32", bins, 1) if item_bytes == 4 else None,
               torch=lambda x: torch().histc(x, bins, 0, 1),  # in float32, exact up to 2^24
               expected=partial(counts, bins), any_dtype=True, out_dtype="int32",
               **given)  # fmt: skip


def of_pairs(bins, sizes):
    return [
        row(f"histogram {bins}x{bins} bins, f32 pairs", sizes,
            lambda xp, n: (unit(xp, n), unit(xp, n, 1)), 8,
            lambda x, y, out: ga.histogram((x, y), bins, SPAN, out=out),
            lambda xp, x, y: xp.histogram2d(x, y, bins, SPAN)[0],
            expected=partial(counts, bins), any_dtype=True, out_dtype="int32"),
        row(f"histogram {bins}x{bins} bins, f32 pairs, f32 weights", "26",
            lambda xp, n: (unit(xp, n), unit(xp, n, 1), unit(xp, n) - 0.25), 12,
            lambda x, y, w: ga.histogram((x, y), bins, SPAN, weights=w),
            lambda xp, x, y, w: xp.histogram2d(x, y, bins, SPAN, weights=w)[0],
            torch=Prepared(partial(torch_sums, bins)), tolerance=1e-3,
            expected=lambda x, y, w: counts(bins, x, y, weights=w), any_dtype=True),
    ]  # fmt: skip


def weighted(bins, dtype, sizes):  # the peers' sums are not exact
    return row(f"histogram {bins} bins, f32, {dtype} weights", sizes,
               lambda xp, n: (unit(xp, n), (unit(xp, n, 1) - 0.25).astype(dtype)),
               4 + np.dtype(dtype).itemsize, lambda x, w: ga.histogram(x, bins, (0, 1), weights=w),
               lambda xp, x, w: xp.histogram(x, bins, (0, 1), weights=w)[0],
               torch=Prepared(partial(torch_sums, bins)), any_dtype=True,
               tolerance=1e-3 if dtype == "float32" else 1e-9,
               expected=lambda x, w: counts(bins, x, weights=w))  # fmt: skip


def pairs_and_weights(xp, n):
    x, y = uniform(xp, 2 * n).reshape(2, n)
    return x, y, y.astype("float64") - 0.25


HISTOGRAM = [
    *map(even, (32, 128, 2048, 1 << 21)),
    even(256, sizes="16* 20* 24 28* 30"),
    # Beside the one peer that the targets were measured with.
    even(4096, "f32, beside CUB", "16 20 24 28* 30", beside="CUB"),
    even(65536, "f32, beside CUB", "16 20 24 28* 30", beside="CUB"),
    row("histogram 256 bins, u8", "16* 20* 24 28* 30", partial(bits, dtype="uint8"), 1,
        lambda x, out: ga.histogram(x, 256, (0, 256), out=out),
        lambda xp, x: xp.bincount(x, minlength=256), cub=cub("histogram_uint8", 256, 256),
        torch=lambda x: x.bincount(minlength=256), any_dtype=True, out_dtype="int32"),
    even(256, "f64", "28*", lambda xp, n: unit(xp, n).astype("float64"), 8),
    even(256, "f32, all in one bin", inputs=lambda xp, n: xp.full(n, 0.3, "float32")),
    row("histogram 2048 bins by edges, f32", "28",
        lambda xp, n: (unit(xp, n), xp.asarray(EDGES)), 4,
        lambda x, edges, out: ga.histogram(x, EDGES, out=out),
        lambda xp, x, edges: xp.histogram(x, edges)[0], cub=cub("histogram_edges_float32", 2048),
        expected=lambda x, edges: gpu().bincount(
            gpu().searchsorted(edges, x, side="right") - 1, minlength=2048),
        any_dtype=True, out_dtype="int32"),
    of_pairs(32, "26*"),
    of_pairs(1024, "26"),
    weighted(256, "float32", "26*"),
    weighted(256, "float64", "26*"),
    weighted(65536, "float32", "26"),
    weighted(65536, "float64", "26"),
    row("histogram 256 bins, f32", "cpu 24*", uniform, 4, lambda x: ga.histogram(x, 256, (0, 1)),
        lambda xp, x: xp.histogram(x, 256, (0, 1))[0]),
    row("histogram 32x32 bins, f32 pairs, f64 weights", "cpu 20*", pairs_and_weights, 16,
        lambda x, y, w: ga.histogram((x, y), 32, SPAN, weights=w),
        lambda xp, x, y, w: xp.histogram2d(x, y, 32, SPAN, weights=w)[0], tolerance=1e-9),
]  # fmt: skip
