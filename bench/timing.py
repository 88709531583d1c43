"""Runs rows: contenders are checked, then timed in turns, so that drift meets all of them."""

from __future__ import annotations

import functools
import gc
import math
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import gpualgo as ga
from bench import memory, notes
from bench.peers import OURS, Contender, free_memory, gpu
from bench.row import Row, Times, module_of

ROW_SECONDS = 1.5  # a row that took longer stops after its second round
_SPIN = """
extern "C" __global__ void spin(long long cycles) {
  long long start = clock64();
  while (clock64() - start < cycles) {}
}
"""


@dataclass(frozen=True)
class Effort:
    rounds: int = 5
    scale: float = 1.0  # of a round's length
    until: float = float("inf")  # by time.perf_counter(): no row begins later


def run(row: Row, effort: Effort) -> Row:
    """Check a row's contenders and time them; AssertionError if our result is wrong."""
    with ga.default_device("cpu") if row.clock == "cpu" else nullcontext():
        contenders, expected = row.prepare()
        check(row, contenders, expected)
        samples: dict[str, list[list[float]]] = {who: [] for who in contenders}
        began = time.perf_counter()
        for finished in range(effort.rounds):
            if finished >= 2 and time.perf_counter() - began > ROW_SECONDS:
                break
            for who, call in contenders.items():
                samples[who].append(measure(row.clock, who, call, effort.scale))
        held = {who: memory.peak(row.clock, who, call) for who, call in contenders.items()}
    return row.timed({who: Times.of(each, held[who]) for who, each in samples.items()})


def run_all(
    rows: Iterable[Row], effort: Effort, found: list[Row],
    step: Callable[[Row], None] = lambda row: None,
) -> bool:  # fmt: skip
    """Run rows in turn, add what was measured, and return whether one of ours failed."""
    failed = False
    for row in rows:
        if time.perf_counter() > effort.until:
            notes.add(str(row), OURS, "not begun: the time for this run was over")
            continue
        step(row)
        try:
            found.append(run(row, effort))
        except Exception as error:  # the other rows are worth having
            failed = True
            notes.add(str(row), OURS, f"FAILED: {type(error).__name__}: {error}")
        gc.collect()
        free_memory()
    return failed


def check(row: Row, contenders: dict[str, Contender], expected: Any) -> None:
    """Raise unless our result is the expected one.

    A peer that fails or has another result is left out by name: its time would compare nothing.
    """
    for who, call in list(contenders.items()):
        try:
            off = error_of(call(), expected, row.any_dtype)
            if off > row.tolerance:
                raise AssertionError(f"{who} is off by {off:.3g}, allowed {row.tolerance:.3g}")
        except Exception as reason:
            if who == OURS:
                raise
            is_wrong = isinstance(reason, AssertionError)
            notes.add(str(row), who, reason if is_wrong else f"{type(reason).__name__}: {reason}")
            del contenders[who]


def error_of(got: Any, expected: Any, any_dtype: bool) -> float:
    """Return the largest error, relative to the largest number; infinite for other dtypes."""
    if isinstance(expected, tuple):
        pairs = zip(got, expected, strict=True)
        return max(error_of(*pair, any_dtype) for pair in pairs)
    xp = module_of(expected)
    if hasattr(got, "block_until_ready"):  # JAX's, whose streams are its own
        got = xp.from_dlpack(got.block_until_ready())
    got = xp.asarray(got).reshape(expected.shape)
    if any_dtype:
        got = got.astype(expected.dtype, copy=False)
    if got.dtype != expected.dtype:
        return math.inf
    if bool((got == expected).all()):
        return 0.0
    if expected.dtype.kind != "f":
        return math.inf
    error = float(abs(got - expected).max() / (abs(expected).max() + xp.finfo(got.dtype).tiny))
    return math.inf if math.isnan(error) else error


def measure(clock: str, who: str, call: Contender, scale: float = 1.0) -> list[float]:
    """Return one round's samples, seconds for each call; `scale` shortens the round."""
    if clock in ("cpu", "wall"):
        return cpu_seconds(call, 0.3 * scale)
    if clock == "host":
        return host_seconds(call)
    if who.startswith("JAX"):
        return queued_seconds(call)
    return device_seconds(call, 0.05 * scale)


def cpu_seconds(call: Contender, budget: float) -> list[float]:
    """Time until the result is there. A call may have a function `before`, which is not timed."""
    times: list[float] = []
    before = getattr(call, "before", lambda: None)
    while not times or (sum(times) < budget and len(times) < 200):
        before()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return times


def host_seconds(call: Contender, calls: int = 200, loops: int = 10) -> list[float]:
    """Time until the call returns, nothing awaited: the mean of a loop, many loops."""
    times = []
    for _ in range(loops):
        gpu().cuda.Device().synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - start) / calls)
    gpu().cuda.Device().synchronize()
    return times


def queued_seconds(call: Contender, budget: float = 0.05, loops: int = 3) -> list[float]:
    """Time on streams that events do not see: several calls, then one wait, by the host's clock."""

    def seconds(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            last = call()
        last.block_until_ready()
        return (time.perf_counter() - start) / count

    count = max(2, min(20, int(budget / max(seconds(1), 1e-5))))
    return [seconds(count) for _ in range(loops)]


@functools.cache
def _spin_kernel() -> Any:
    return gpu().RawKernel(_SPIN, "spin")


def spin(cycles: int) -> None:
    """Keep the GPU busy while the host enqueues calls."""
    _spin_kernel()((1,), (1,), (cycles,))


def device_seconds(call: Contender, budget: float) -> list[float]:
    """Time by CUDA events; a spinning kernel hides the host's time to enqueue the call."""
    start, stop = gpu().cuda.Event(), gpu().cuda.Event()

    def once() -> float:
        spin(400_000)  # about 0.2 ms at 2 GHz: longer than any contender takes to enqueue
        start.record()
        call()
        stop.record()
        stop.synchronize()
        return float(gpu().cuda.get_elapsed_time(start, stop)) / 1e3

    first = once()
    if first < budget / 5:
        first = min(first, once(), once())
    return [once() for _ in range(max(2, min(100, int(budget / max(first, 2e-4)))))]
