"""Clocks: each returns the samples of one round, seconds for each call."""

from __future__ import annotations

import functools
import time
from typing import Any

from gpualgo._bench.support import Contender, gpu

_SPIN = """
extern "C" __global__ void spin(long long cycles) {
  long long start = clock64();
  while (clock64() - start < cycles) {}
}
"""


@functools.cache
def _spin() -> Any:
    return gpu().RawKernel(_SPIN, "spin")


def device_seconds(contender: Contender, budget: float = 0.05) -> list[float]:
    """Time by CUDA events; a spinning kernel hides the host's time to enqueue the call."""
    cupy = gpu()
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    cycles = 400_000  # about 0.2 ms at 2 GHz: longer than any contender takes to enqueue

    def once() -> float:
        _spin()((1,), (1,), (cycles,))
        start.record()
        contender()
        stop.record()
        stop.synchronize()
        return float(cupy.cuda.get_elapsed_time(start, stop)) / 1e3

    first = once()
    if first < budget / 5:
        first = min(first, once(), once())
    count = max(2, min(100, int(budget / max(first, 2e-4))))
    return [once() for _ in range(count)]


def queued_seconds(contender: Contender, budget: float = 0.05, loops: int = 3) -> list[float]:
    """Time on streams that events do not see: several calls, then one wait, by the host's clock."""
    begun = time.perf_counter()
    contender().block_until_ready()
    once = time.perf_counter() - begun
    count = max(2, min(20, int(budget / max(once, 1e-5))))
    times = []
    for _ in range(loops):
        begun = time.perf_counter()
        for _ in range(count):
            last = contender()
        last.block_until_ready()
        times.append((time.perf_counter() - begun) / count)
    return times


def host_seconds(contender: Contender, calls: int = 200, loops: int = 10) -> list[float]:
    """Time until the call returns, nothing awaited: the mean of a loop, many loops."""
    cupy = gpu()
    times = []
    for _ in range(loops):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            contender()
        times.append((time.perf_counter() - start) / calls)
    cupy.cuda.Device().synchronize()
    return times


def cpu_seconds(contender: Contender, budget: float = 0.3) -> list[float]:
    """Time until the result is there."""
    times: list[float] = []
    while not times or (sum(times) < budget and len(times) < 200):
        start = time.perf_counter()
        contender()
        times.append(time.perf_counter() - start)
    return times


def measure(clock: str, who: str, contender: Contender, scale: float = 1.0) -> list[float]:
    """Return one round's samples; `scale` shortens the round."""
    if clock in ("cpu", "wall"):
        return cpu_seconds(contender, 0.3 * scale)
    if clock == "host":
        return host_seconds(contender)
    if is_queued(clock, who):
        return queued_seconds(contender)
    return device_seconds(contender, 0.05 * scale)


def is_queued(clock: str, who: str) -> bool:
    """Return whether the contender is timed by calls in a row, as JAX's on a GPU are."""
    return clock == "device" and who.startswith("JAX")
