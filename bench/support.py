"""How the benchmarks time: rows, contenders, clocks, and the check before each timing."""

from __future__ import annotations

import functools
import math
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import gpualgo as ga

Contender = Callable[[], Any]
OURS = "gpualgo"
ROW_SECONDS = 1.5  # a row that took longer stops after its second round


@dataclass(frozen=True)
class Work:
    """What a row compares: each contender does the same work and returns the same values."""

    contenders: dict[str, Contender]
    expected: Any  # an array, or a tuple of them
    tolerance: float = 0.0  # relative; 0 where the result is exact
    any_dtype: bool = False  # the libraries' results differ in dtype


@dataclass(frozen=True)
class Row:
    """One row of the table. Arrays are made only when it runs, and freed after it."""

    name: str
    n: int
    clock: str  # "device", "host" (enqueue only), "cpu" (to the result), "start" (of a process)
    build: Callable[[int], Work]
    bytes_moved: float = 0.0
    target: float | None = None  # ours / best peer; for "host" and "start" our time itself, in s
    quick: bool = True
    beside: str = ""  # the one peer that the ratio is taken with; else the best of them

    def __str__(self) -> str:
        return f"{self.name}, n={self.n}, {self.clock}"


@dataclass
class Result:
    row: Row
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """Our time over the best peer's, or the named one's."""
        names = [self.row.beside] if self.row.beside else list(self.seconds)
        peers = [self.seconds[who] for who in names if who in self.seconds and who != OURS]
        return self.seconds[OURS] / min(peers) if peers else None

    @property
    def met(self) -> bool | None:
        if self.row.target is None:
            return None
        absolute = self.row.clock in ("host", "start")
        measured = self.seconds[OURS] if absolute else self.ratio
        return None if measured is None else measured <= self.row.target


@functools.cache
def gpu() -> Any:
    """Return CuPy where it and a GPU are there, else None."""
    try:
        import cupy

        return cupy if cupy.cuda.runtime.getDeviceCount() else None
    except Exception:  # no CuPy, no driver, no device: the CPU rows run without
        return None


@functools.cache
def torch() -> Any:
    try:
        import torch as module
    except ImportError:
        return None
    return module if module.cuda.is_available() else None


def free_memory() -> None:
    """Give the peers' pooled memory back, so that the next row finds all of it."""
    if gpu() is not None:
        gpu().get_default_memory_pool().free_all_blocks()
    if torch():
        torch().cuda.empty_cache()


def as_tensor(x: Any) -> Any:
    """Return a CuPy array's memory as a tensor of PyTorch."""
    return torch().from_dlpack(x)


def check(row: Row, work: Work) -> None:
    """Raise unless every result is the expected one; drop the peers that cannot do the work."""
    for who, contender in list(work.contenders.items()):
        try:
            result = contender()
        except Exception as reason:
            if who == OURS:
                raise
            print(f"bench: {row}: {who} left out: {reason}", file=sys.stderr)
            del work.contenders[who]
            continue
        error = _worst(result, work)
        if not error <= work.tolerance:
            raise AssertionError(
                f"{row}: {who} is off by {error:.3g}, allowed {work.tolerance:.3g}"
            )


def _worst(result: Any, work: Work) -> float:
    if not isinstance(work.expected, tuple):
        return _error(result, work.expected, work.any_dtype)
    pairs = zip(result, work.expected, strict=True)
    return sum(_error(got, expected, work.any_dtype) for got, expected in pairs)


def _error(got: Any, expected: Any, any_dtype: bool) -> float:
    xp: Any = np if isinstance(expected, np.ndarray | np.generic) else gpu()
    got = xp.asarray(got).reshape(expected.shape)
    if any_dtype:
        got = got.astype(expected.dtype, copy=False)
    if got.dtype != expected.dtype:
        return math.inf
    if bool((got == expected).all()):
        return 0.0
    if expected.dtype.kind != "f":
        return math.inf
    return float(abs(got - expected).max() / (abs(expected).max() + xp.finfo(got.dtype).tiny))


def place(row: Row) -> AbstractContextManager[None]:
    """Return the context of a row: NumPy arrays would go to the GPU where there is one."""
    return ga.default_device("cpu") if row.clock == "cpu" else nullcontext()


def run(row: Row, rounds: int) -> Result:
    """Check a row's contenders, then time them in turns, so that drift meets all of them."""
    clock = CLOCKS[row.clock]
    with place(row):
        work = row.build(row.n)
        check(row, work)
        samples: dict[str, list[float]] = {who: [] for who in work.contenders}
        began = time.perf_counter()
        for finished in range(rounds):
            if finished >= 2 and time.perf_counter() - began > ROW_SECONDS:
                break
            for who, contender in work.contenders.items():
                samples[who] += clock(contender)
    return Result(row, {who: statistics.median(times) for who, times in samples.items()})


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


CLOCKS: dict[str, Callable[[Contender], list[float]]] = {
    "device": device_seconds,
    "host": host_seconds,
    "cpu": cpu_seconds,
}


def time_with_pytest(benchmark: Any, row: Row) -> None:
    """Let pytest-benchmark time our call; the peers' times go into its extra_info."""
    result = run(row, rounds=2)
    benchmark.group = f"{row.name} [{row.clock}]"
    benchmark.extra_info |= {"seconds": result.seconds, "ratio": result.ratio, "met": result.met}
    ours = row.build(row.n).contenders[OURS]
    if row.clock != "device":
        with place(row):
            benchmark(ours)
        return
    device = gpu().cuda.Device()
    benchmark(lambda: (ours(), device.synchronize()))
