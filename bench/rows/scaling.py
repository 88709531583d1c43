"""Sharded arrays on several GPUs of one host, n elements in all.

Weak scaling is seen beside the row of one GPU and an equal share of the elements, strong scaling
beside that of one GPU and as many. Sorts copy nothing between GPUs: their kernels read the others'
memory. Without a GPU the CPU stands for several, with small arrays: only the results mean anything.
"""

from contextlib import nullcontext
from functools import partial

import numpy as np

import gpualgo as ga
from bench.inputs import bits, floats, integers, uniform
from bench.peers import COPIES, gpu
from bench.row import row

small, wide = partial(integers, low=-8, high=9), partial(bits, dtype="uint64")
CASES = {  # the elements of a shard, and the call
    "reduce": (small, ga.reduce),
    "inclusive_scan, sum": (small, ga.inclusive_scan),
    "inclusive_scan, lambda": (
        uniform, lambda x: ga.inclusive_scan(x, None, lambda a, b: a if abs(a) > abs(b) else b)),
    "transform": (uniform, lambda x: ga.transform(lambda a: a * 2.0 + 1.0, x)),
    "histogram, 256": (uniform, lambda x: ga.histogram(x, 256, (0, 1))),
    "histogram, 65536": (uniform, lambda x: ga.histogram(x, 65536, (0, 1))),
    "sort, float32": (floats, ga.radix_sort),
    "sort, uint64": (wide, ga.radix_sort),
    "argsort, float32": (floats, ga.argsort),
    "select, half": (floats, lambda x: ga.select(x, lambda a: a > 0)),
    "reduce, max": (uniform, lambda x: ga.reduce(x, None, max)),
}  # fmt: skip
THERE = 0 if gpu() is None else gpu().cuda.runtime.getDeviceCount()


def sharded(make, count, xp, n):
    shards = []
    for rank in range(count):
        with nullcontext() if xp is np else xp.cuda.Device(rank):
            shards.append(make(xp, n // count, seed=rank))
    return shards[0] if count == 1 else ga.ShardedArray.from_shards(shards)


whole = lambda x: x.gather() if isinstance(x, ga.ShardedArray) else x  # on the first GPU
SCALING = [
    row(f"{case}, {count} GPU{'s' if count > 1 else ''}", sizes, partial(sharded, make, count), 0,
        call, others={COPIES: call} if count > 1 and "device" in sizes else {},
        expected=lambda x, call=call: call(whole(x)), beside="one GPU")
    for case, (make, call) in CASES.items()
    for count, more in ((1, ""), (2, "27 29"), (4, "30"), (8, "29 31"))
    for sizes in ("cpu 16*", f"device 26 28* {more}") if count <= THERE or "cpu" in sizes
]  # fmt: skip
