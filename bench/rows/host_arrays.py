"""NumPy arrays where a GPU is: by "auto", by each backend, NumPy's call, CuPy with both copies."""

from functools import partial

import numpy as np

import gpualgo as ga
from bench.inputs import uniform
from bench.peers import gpu
from bench.row import row


def add(a, b):
    return a + b


def affine(a):
    return a * 2 + 1


def on(device, call, x):
    with ga.default_device(device):
        return call(x)


def host(name, arrays, ours, numpy, tolerance=0.0):
    others = {
        "gpualgo, cpu": partial(on, "cpu", ours),
        "gpualgo, cuda": partial(on, "cuda", ours),
        "CuPy, both copies": lambda x: gpu().asnumpy(numpy(gpu(), gpu().asarray(x))),
    }
    return row(f"NumPy array, {name}, f32", "wall 10 16 20* 24* 27",
               lambda xp, n: uniform(xp, n) - np.float32(0.5), 4 * arrays,
               partial(on, "auto", ours), numpy, others=others, tolerance=tolerance,
               expected=lambda x: np.asarray(numpy(np, x)), any_dtype=True)  # fmt: skip


ROWS = [
    *host("sum by a lambda", 1, lambda x: ga.reduce(x, 0.0, add), lambda xp, x: xp.sum(x), 1e-2),
    *host("scan", 2, ga.inclusive_scan, lambda xp, x: xp.cumsum(x), 1e-2),
    *host("transform", 2, lambda x: ga.transform(affine, x), lambda xp, x: x * 2 + 1),
    *host("sort", 2, ga.radix_sort, lambda xp, x: xp.sort(x)),
    *host("argsort", 2, ga.argsort, lambda xp, x: xp.argsort(x, kind="stable")),
    *host("histogram", 1, lambda x: ga.histogram(x, 256, (-0.5, 0.5)),
          lambda xp, x: xp.histogram(x, 256, (-0.5, 0.5))[0]),
]  # fmt: skip
