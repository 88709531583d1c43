"""gpualgo on dask arrays beside dask's own functions, and beside one call of one process.

    python -m bench.bench_dask --sizes 20 24 --workers 2

times calls on a cluster of processes with one thread each, whose workers hold the input and keep
the result, and what a chunk costs that has next to nothing in it. Names of results are made of
their contents, so that what a scheduler still holds would be found and not computed: each call
waits until it holds the input alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

import gpualgo as ga

Call = Callable[[], Any]
REPEATS, LONG_SECONDS = 5, 4.0


def farther(a: Any, b: Any) -> Any:
    """Return the number of the larger magnitude."""
    return a if abs(a) > abs(b) else b


def _farthest(x: Any, axis: Any, keepdims: bool) -> Any:
    """Return the same of a chunk, as NumPy has it."""
    flat = x.ravel()
    found = flat[np.abs(flat).argmax()]
    return found.reshape((1,) * x.ndim) if keepdims else found


def _sorted_table(x: Any) -> Any:
    import dask.dataframe as dd

    return dd.from_dask_array(x, columns="key").to_frame().sort_values("key")


def _rows(h: Any, x: Any) -> dict[str, tuple[Call, Call, Call | None]]:
    """Return for each row our call in one process, on dask, and dask's own."""
    weights = da.ones_like(x)
    return {
        "sum": (lambda: ga.reduce(h), lambda: ga.reduce(x), lambda: x.sum(dtype=x.dtype)),
        "larger magnitude, a lambda": (
            lambda: ga.reduce(h, None, farther),
            lambda: ga.reduce(x, None, farther),
            lambda: da.reduction(x, _farthest, _farthest, dtype=x.dtype),
        ),
        "a * 2 + 1": (
            lambda: ga.transform(lambda a: a * 2.0 + 1, h),
            lambda: ga.transform(lambda a: a * 2.0 + 1, x),
            lambda: x * 2.0 + 1,
        ),
        "cumsum": (
            lambda: ga.inclusive_scan(h),
            lambda: ga.inclusive_scan(x),
            lambda: da.cumsum(x, axis=0, dtype=x.dtype),
        ),
        "cumsum, dask's blelloch": (
            lambda: ga.inclusive_scan(h),
            lambda: ga.inclusive_scan(x),
            lambda: da.cumsum(x, axis=0, dtype=x.dtype, method="blelloch"),
        ),
        "histogram, 256 bins": (
            lambda: ga.histogram(h, 256, (0, 1)),
            lambda: ga.histogram(x, 256, (0, 1)),
            lambda: da.histogram(x, 256, (0, 1))[0],
        ),
        "histogram with weights": (
            lambda: ga.histogram(h, 256, (0, 1), weights=np.float32(1)),
            lambda: ga.histogram(x, 256, (0, 1), weights=weights),
            lambda: da.histogram(x, 256, (0, 1), weights=weights)[0],
        ),
        "sort, beside dd.sort_values": (
            lambda: ga.radix_sort(h), lambda: ga.radix_sort(x), lambda: _sorted_table(x),
        ),
        "argsort": (lambda: ga.argsort(h), lambda: ga.argsort(x), None),
        "top_k, 100": (
            lambda: ga.top_k(h, 100), lambda: ga.top_k(x, 100).values, lambda: da.topk(x, 100),
        ),
        "unique of 1000": (
            lambda: ga.unique(np.floor(h * 1000)),
            lambda: ga.unique(da.floor(x * 1000)),
            lambda: da.unique(da.floor(x * 1000)),
        ),
    }  # fmt: skip


class Clock:
    """Times calls whose results stay on the workers."""

    def __init__(self, client: Client) -> None:
        self._client, self._base = client, 0

    def settle(self, base: int | None = None) -> None:
        """Wait until the scheduler holds no more tasks than it did when the input was there."""
        scheduler = self._client.cluster.scheduler
        if base is not None:
            self._base = base
        end = time.monotonic() + 60
        while len(scheduler.tasks) > self._base:
            if time.monotonic() > end:
                raise RuntimeError("results were not released")
            time.sleep(0.01)

    def _one(self, call: Call) -> float:
        self.settle()
        start = time.perf_counter()
        made = call()
        if hasattr(made, "persist"):
            made = made.persist()
            wait(made)
        elapsed = time.perf_counter() - start
        del made
        return elapsed

    def best(self, call: Call | None) -> tuple[float, float]:
        """Return the best time of several, and that of the first call, which may compile."""
        if call is None:
            return float("nan"), float("nan")
        first = self._one(call)
        rest = [self._one(call) for _ in range(1 if first > LONG_SECONDS else REPEATS)]
        self.settle()
        return min(rest), first


def _table(clock: Clock, size: int, chunks: int) -> None:
    n = 1 << size
    h = np.random.default_rng(1).random(n, dtype=np.float32)
    x = da.random.default_rng(1).random(n, chunks=n // chunks, dtype=np.float32).persist()
    wait(x)
    clock.settle(chunks)
    print(f"\n2^{size} float32 in {chunks} chunks; seconds, in brackets the first call\n")
    print("| | one process | gpualgo on dask | dask's own | dask's / ours |")
    print("|---|---:|---:|---:|---:|")
    for name, calls in _rows(h, x).items():
        times = [clock.best(call) for call in calls]
        cells = " | ".join(f"{best:.3f} ({first:.2f})" for best, first in times)
        print(f"| {name} | {cells} | {times[2][0] / times[1][0]:.1f} |", flush=True)


def _overhead(clock: Clock) -> None:
    """Print what a chunk costs: calls on many chunks that have 1000 elements each."""
    print("\nmilliseconds for a chunk of 1000 elements, by the number of chunks\n")
    counts = (16, 64, 256)
    print("| | " + " | ".join(map(str, counts)) + " |\n|---|" + "---:|" * len(counts))
    calls: dict[str, Callable[[Any], Any]] = {
        "reduce": ga.reduce, "inclusive_scan": ga.inclusive_scan,
        "transform": lambda x: ga.transform(lambda a: a * 2.0, x),
        "histogram": lambda x: ga.histogram(x, 16, (0, 1)), "unique": ga.unique,
        "radix_sort": ga.radix_sort, "dask's sum": lambda x: x.sum(),
        "dask's cumsum": lambda x: da.cumsum(x, axis=0),
    }  # fmt: skip
    for name, call in calls.items():
        cells = []
        for count in counts:
            x = da.random.default_rng(1).random(1000 * count, chunks=1000).persist()
            wait(x)
            clock.settle(count)
            seconds, _ = clock.best(lambda call=call, x=x: call(x))
            cells.append(f"{1e3 * seconds / count:.2f}")
            del x
            clock.settle(0)
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.bench_dask", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[20, 24])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--chunks", type=int, default=16)
    parser.add_argument("--no-overhead", action="store_true")
    options = parser.parse_args()
    with (
        LocalCluster(options.workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        clock = Clock(client)
        for size in options.sizes:
            _table(clock, size, options.chunks)
            clock.settle(0)
        if not options.no_overhead:
            _overhead(clock)


if __name__ == "__main__":
    main()
