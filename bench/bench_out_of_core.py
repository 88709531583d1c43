"""Host arrays of several times the memory that a call may take, beside the same call in core.

    python -m bench.bench_out_of_core --allowed 4 --times 4

lets calls take 4 GiB of the GPU and sorts what takes 16 (float32 keys; keys and int32 values; the
order of keys), then scans and counts as many bytes, which go by blocks of a fixed size. Each row is
checked against the same call in core and against the CPU's, whose times stand beside it.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._algorithms.histogram import blocks as histograms
from gpualgo._algorithms.scan import blocks_work as scans
from gpualgo._driver import device as gpu
from gpualgo._pipeline import host_blocks

WHOLE = 1 << 60
ITEM_BYTES = {"keys": 16, "pairs": 32, "argsort": 48, "scan": 8, "histogram": 4}
"""What a sort takes for each key by its own rule; what crosses the bus for each element."""


def _calls(name: str, n: int) -> Callable[[], Any]:
    x = np.random.default_rng(0).random(n, np.float32)
    if name == "keys":
        out = np.empty_like(x)
        return lambda: ga.radix_sort(x, out=out)
    if name == "pairs":
        values = np.arange(n, dtype=np.int32)
        pair = np.empty_like(x), np.empty_like(values)
        return lambda: ga.radix_sort(x, values, out=pair)
    if name == "argsort":
        order = np.empty(n, np.int64)
        return lambda: ga.argsort(x, out=order)
    if name == "scan":
        out = np.empty_like(x)
        return lambda: ga.inclusive_scan(x, out=out)
    return lambda: ga.histogram(x, 256, (0, 1))


@contextmanager
def _limited(allowed: int) -> Iterator[list[int]]:
    """Let calls take so many bytes; gives what each of them takes."""
    device, share = gpu.get(0), host_blocks.ALLOWED
    total, usual = device.memory_bytes, device.allocate
    blocks = scans.BLOCK_BYTES, histograms.BLOCK_BYTES
    device.__dict__["memory_bytes"] = allowed * share[1] // share[0]
    if allowed >= WHOLE:
        scans.BLOCK_BYTES = histograms.BLOCK_BYTES = WHOLE
    taken: list[int] = []
    device.allocate = lambda size, stream: (taken.append(size), usual(size, stream))[1]
    try:
        yield taken
    finally:
        device.__dict__["memory_bytes"], device.allocate = total, usual
        scans.BLOCK_BYTES, histograms.BLOCK_BYTES = blocks


def _seconds(call: Callable[[], Any], rounds: int) -> tuple[float, Any]:
    """Return the median time of a call that has run once, and a copy of its result."""
    result = call()
    kept = tuple(map(np.copy, result)) if isinstance(result, tuple) else np.copy(result)
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times), kept


def _is_same(got: Any, want: Any) -> bool:
    pairs = zip(got, want, strict=True) if isinstance(got, tuple) else [(got, want)]
    return all(np.array_equal(a, b) for a, b in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.bench_out_of_core", description=__doc__)
    parser.add_argument("--allowed", type=float, default=4, help="GiB of the GPU for one call")
    parser.add_argument("--times", type=int, default=4, help="what the calls would take, in these")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", default="", help="names of rows, by commas; all without")
    chosen = parser.parse_args()
    allowed = int(chosen.allowed * (1 << 30))
    print("row          elements  taken, GiB  by blocks, s  in core, s    CPU, s  GB/s of input")
    for name, item_bytes in ITEM_BYTES.items():
        if chosen.rows and name not in chosen.rows.split(","):
            continue
        n = allowed * chosen.times // item_bytes
        call = _calls(name, n)
        with ga.default_device("cuda"):
            with _limited(allowed) as taken:
                ours, got = _seconds(call, chosen.rounds)
            most = sum(taken) / (chosen.rounds + 1) / (1 << 30)
            with _limited(WHOLE):
                try:
                    whole, want = _seconds(call, chosen.rounds)
                except MemoryError:
                    whole, want = float("nan"), got
        assert _is_same(got, want), f"{name}: other bits than in core"
        with ga.default_device("cpu"):
            cpu, want = _seconds(call, chosen.rounds)
        assert name == "scan" or _is_same(got, want), f"{name}: another result than the CPU's"
        rate = 4 * n / ours / 1e9
        print(
            f"{name:10} {n:10}  {most:10.2f}  {ours:12.3f}  {whole:10.3f}  {cpu:8.3f}  {rate:8.1f}"
        )


if __name__ == "__main__":
    main()
