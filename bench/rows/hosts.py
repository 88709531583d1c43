"""NumPy arrays: small ones, arrays beside a GPU, and arrays larger than a GPU's memory."""

from contextlib import contextmanager
from functools import partial

import numpy as np

import gpualgo as ga
from bench.inputs import uniform
from bench.peers import gpu
from bench.row import row
from gpualgo._algorithms.histogram import cuda as histograms
from gpualgo._algorithms.scan import blocks as scans
from gpualgo._driver import device as devices
from gpualgo._pipeline import host_whole

add = lambda a, b: a + b
affine = lambda a: a * 2 + 1


def on(device, call, *arrays, **given):
    with ga.default_device(device):
        return call(*arrays, **given)


def beside_gpu(name, arrays, ours, numpy, tolerance=0.0):
    """Return rows of a call by "auto", by each backend, NumPy's, and CuPy's with both copies."""
    return row(f"NumPy array, {name}, f32", "wall 10 16 20* 24* 27",
               lambda xp, n: uniform(xp, n) - np.float32(0.5), 4 * arrays,
               partial(on, "auto", ours), numpy, tolerance=tolerance, any_dtype=True,
               others={"gpualgo, cpu": partial(on, "cpu", ours),
                       "gpualgo, cuda": partial(on, "cuda", ours),
                       "CuPy, both copies":
                       lambda x: gpu().asnumpy(numpy(gpu(), gpu().asarray(x)))},
               expected=lambda x: np.asarray(numpy(np, x)))  # fmt: skip


HOST_ARRAYS = [
    beside_gpu("sum by a lambda", 1, lambda x: ga.reduce(x, 0.0, add), lambda xp, x: xp.sum(x),
               1e-2),
    beside_gpu("scan", 2, ga.inclusive_scan, lambda xp, x: xp.cumsum(x), 1e-2),
    beside_gpu("transform", 2, lambda x: ga.transform(affine, x), lambda xp, x: x * 2 + 1),
    beside_gpu("sort", 2, ga.radix_sort, lambda xp, x: xp.sort(x)),
    beside_gpu("argsort", 2, ga.argsort, lambda xp, x: xp.argsort(x, kind="stable")),
    beside_gpu("histogram", 1, lambda x: ga.histogram(x, 256, (-0.5, 0.5)),
               lambda xp, x: xp.histogram(x, 256, (-0.5, 0.5))[0]),
]  # fmt: skip

KEYS = 1 << 19  # of all arrays that a row of sorts goes through: no branch is learned by heart
normal = lambda xp, n, seed=0: xp.random.default_rng(seed).standard_normal(n)
random_bits = lambda xp, n, dtype, seed: xp.random.default_rng(seed).integers(
    np.iinfo(dtype).min, np.iinfo(dtype).max, n, dtype, endpoint=True)  # fmt: skip


def sort_all(sort, arrays):
    for x in arrays:
        result = sort(x)
    return result


SMALL = [
    # What surrounds the kernel is most of the time.
    [row(f"small {name}, f64", "cpu 1000* 10000* 100000*", normal, 0, ours, numpy, tolerance=1e-9)
     for name, ours, numpy in (
         ("reduce", lambda x: ga.reduce(x, 0.0, add), lambda xp, x: xp.sum(x)),
         ("transform", lambda x: ga.transform(affine, x), lambda xp, x: x * 2 + 1),
         ("scan", lambda x: ga.inclusive_scan(x, None, add), lambda xp, x: xp.cumsum(x)),
         ("histogram", lambda x: ga.histogram(x, 10, (-3, 3)),
          lambda xp, x: xp.histogram(x, 10, (-3, 3))[0]))],
    [row(f"small sorts, {dtype}", "cpu 10* 12* 14* 16* 18* 20*",
         lambda xp, n, draw=draw: [draw(xp, n, seed=seed) for seed in range(max(4, KEYS // n))], 0,
         partial(sort_all, ga.radix_sort), lambda xp, arrays: sort_all(xp.sort, arrays))
     for dtype, draw in (
         *((name, partial(random_bits, dtype=name)) for name in ("int8", "int16", "int32")),
         ("float64", normal))],
]  # fmt: skip

WHOLE = 1 << 60


@contextmanager
def limited(nbytes):
    """Let a call take so many bytes of the first GPU."""
    device, share = devices.get(0), host_whole.ALLOWED
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
    """Return rows of arrays of four times the memory that a call may take on the GPU.

    The call takes so many bytes for an element, by its own rule.
    """

    def on_gpu(allowed, *arrays, out):
        with limited(allowed or arrays[0].size * item_bytes // 4):
            return call(*arrays, out=out)

    return row(f"out of core: {name}", f"wall {sizes}", inputs, 4, partial(on_gpu, 0),
               others={"in core": partial(on_gpu, WHOLE),
                       "gpualgo, cpu": lambda *arrays, out: on("cpu", call, *arrays, out=out)},
               expected=partial(on_gpu, WHOLE, out=None), tolerance=tolerance)  # fmt: skip


OUT_OF_CORE = [
    large("sort, f32", "28* 30", 16, ga.radix_sort),
    large("sort of pairs, f32/i32", "27* 29", 32, ga.radix_sort,
          inputs=lambda xp, n: (uniform(xp, n), np.arange(n, dtype=np.int32))),
    large("argsort, f32", "89478485* 357913941", 48, ga.argsort),
    large("scan, f32", "29* 31", 8, ga.inclusive_scan, 1e-2),  # the CPU rounds otherwise
    large("histogram, f32", "30* 32", 4, lambda x, out: ga.histogram(x, 256, (0, 1), out=out)),
]  # fmt: skip
