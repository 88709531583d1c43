"""dask arrays of processes with one thread each: gpualgo's calls, dask's own, and one process.

Results stay on the workers. Names of results are made of their contents, so that what a scheduler
still holds would be found and not computed: each call waits until it holds the inputs alone.
"""

import functools
import time
from functools import partial

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

import gpualgo as ga
from bench.peers import Prepared
from bench.row import row

WORKERS, CHUNKS = 2, 16


client = functools.cache(lambda: Client(LocalCluster(
    WORKERS, threads_per_worker=1, dashboard_address=":0")))  # fmt: skip


def chunked(xp, n, chunk=0):
    client()
    h = np.random.default_rng(1).random(n, np.float32)
    x = da.from_array(h, chunks=chunk or n // CHUNKS).persist()
    wait(x)
    return h, x


def on_workers(call, h, x):
    """Prepare a call on the array of dask's. It waits for its result, which stays there."""

    def only_inputs():
        end = time.monotonic() + 60
        while len(client().cluster.scheduler.tasks) > x.npartitions:
            if time.monotonic() > end:
                raise RuntimeError("results were not released")
            time.sleep(0.001)

    def run():
        result = call(x)
        if hasattr(result, "persist"):
            result = result.persist()
            wait(result)
        return result

    run.before = only_inputs  # not timed
    return run


def beside(name, call, tolerance=0.0, sizes="cpu 20* 24", chunk=0, **dasks):
    others = {who: Prepared(partial(on_workers, each)) for who, each in dasks.items()}
    return row(name, sizes, partial(chunked, chunk=chunk), 0, Prepared(partial(on_workers, call)),
               others={"one process": lambda h, x: call(h), **others}, tolerance=tolerance,
               expected=lambda h, x: np.asarray(call(h)), any_dtype=True,
               of_its_size=chunk > 0)  # fmt: skip


farther = lambda a, b: a if abs(a) > abs(b) else b


def farthest(x, axis, keepdims):  # of a chunk, as NumPy has it
    found = x.ravel()[np.abs(x.ravel()).argmax()]
    return found.reshape((1,) * x.ndim) if keepdims else found


def sorted_table(x):
    import dask.dataframe as dd

    return dd.from_dask_array(x, columns="key").to_frame().sort_values("key")


DASK = [
    beside("dask sum", ga.reduce, 1e-3, dask=lambda x: x.sum(dtype=x.dtype)),
    beside("dask larger magnitude, a lambda", lambda x: ga.reduce(x, None, farther),
           dask=lambda x: da.reduction(x, farthest, farthest, dtype=x.dtype)),
    beside("dask a * 2 + 1", lambda x: ga.transform(lambda a: a * 2.0 + 1, x),
           dask=lambda x: x * 2.0 + 1),
    beside("dask cumsum", ga.inclusive_scan, 1e-2, dask=lambda x: x.cumsum(0, dtype=x.dtype),
           blelloch=lambda x: da.cumsum(x, axis=0, dtype=x.dtype, method="blelloch")),
    beside("dask histogram, 256 bins", lambda x: ga.histogram(x, 256, (0, 1)),
           dask=lambda x: da.histogram(x, 256, (0, 1))[0]),
    beside("dask sort", ga.radix_sort, sort_values=sorted_table),
    beside("dask argsort", ga.argsort),
    beside("dask top_k, 100", lambda x: ga.top_k(x, 100).values, dask=lambda x: da.topk(x, 100)),
    beside("dask unique of 1000", lambda x: ga.unique(np.floor(x * 1000)),
           dask=lambda x: da.unique(da.floor(x * 1000))),
    [beside(f"{name} of {count} chunks of 1000", call, 1e-3, f"cpu {1000 * count}", 1000)
     for name, call in (
         ("reduce", ga.reduce), ("inclusive_scan", ga.inclusive_scan),
         ("transform", lambda x: ga.transform(lambda a: a * 2.0, x)),
         ("histogram", lambda x: ga.histogram(x, 16, (0, 1))), ("unique", ga.unique),
         ("radix_sort", ga.radix_sort), ("dask's sum", lambda x: x.sum()),
         ("dask's cumsum", lambda x: x.cumsum(0)))
     for count in (16, 64, 256)],
]  # fmt: skip
