"""Host arrays of four times the memory that a call may take on the GPU, beside the call in core."""

from contextlib import contextmanager
from functools import partial

import numpy as np

import gpualgo as ga
from bench.inputs import uniform
from bench.row import row
from gpualgo._algorithms.histogram import blocks as histograms
from gpualgo._algorithms.scan import blocks as scans
from gpualgo._driver import device as devices
from gpualgo._pipeline import host_blocks

WHOLE = 1 << 60


@contextmanager
def limited(nbytes):
    """Let a call take so many bytes of the first GPU."""
    device, share = devices.get(0), host_blocks.ALLOWED
    total, blocks = device.memory_bytes, (scans.BLOCK_BYTES, histograms.BLOCK_BYTES)
    device.__dict__["memory_bytes"] = nbytes * share[1] // share[0]
    if nbytes >= WHOLE:
        scans.BLOCK_BYTES = histograms.BLOCK_BYTES = WHOLE
    try:
        with ga.default_device("cuda"):
            yield
    finally:
        device.__dict__["memory_bytes"] = total
        scans.BLOCK_BYTES, histograms.BLOCK_BYTES = blocks


def large(name, sizes, item_bytes, call, tolerance=0.0, inputs=uniform):
    """Return rows of a call that takes so many bytes for an element, by its own rule."""

    def on_gpu(allowed, *arrays, out):
        with limited(allowed or arrays[0].size * item_bytes // 4):
            return call(*arrays, out=out)

    def on_cpu(*arrays, out):
        with ga.default_device("cpu"):
            return call(*arrays, out=out)

    return row(f"out of core: {name}", f"wall {sizes}", inputs, 4, partial(on_gpu, 0),
               others={"in core": partial(on_gpu, WHOLE), "gpualgo, cpu": on_cpu},
               expected=partial(on_gpu, WHOLE, out=None), tolerance=tolerance)  # fmt: skip


def with_numbers(xp, n):
    return uniform(xp, n), np.arange(n, dtype=np.int32)


ROWS = [
    *large("sort, f32", "28* 30", 16, ga.radix_sort),
    *large("sort of pairs, f32/i32", "27* 29", 32, ga.radix_sort, inputs=with_numbers),
    *large("argsort, f32", "89478485* 357913941", 48, ga.argsort),
    *large("scan, f32", "29* 31", 8, ga.inclusive_scan, 1e-2),  # the CPU rounds otherwise
    *large("histogram, f32", "30* 32", 4, lambda x, out: ga.histogram(x, 256, (0, 1), out=out)),
]
