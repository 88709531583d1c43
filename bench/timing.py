"""Runs rows: contenders are checked, then timed in turns, so that drift meets all of them."""

from __future__ import annotations

import functools
import gc
import math
import sys
import time
import timeit
import tracemalloc
from collections import defaultdict
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import gpualgo as ga
from bench import peers
from bench.peers import COPIES, OURS, Call, gpu
from bench.row import CPU_CLOCKS, Row, Times, module_of
from gpualgo._driver import peers as transfers

ROW_SECONDS = 1.5  # a row that took longer stops after its second round


def run(row: Row, rounds: int = 5, scale: float = 1.0) -> Row:
    """Check a row's contenders and time them; AssertionError if our result is wrong."""
    if row.clock == "start":  # of new processes, one for each round
        times = {}
        for who in filter(peers.is_here, row.calls):
            with peers.left_out_if_it_fails(row, who):
                times[who] = Times.of(
                    [[row.calls[who](i) for i in range(1 if scale < 1 else rounds)]]
                )
        return replace(row, times=times)
    with ga.default_device("cpu") if row.clock == "cpu" else nullcontext():
        contenders = checked(row, *row.prepare())
        samples: dict[str, list[list[float]]] = {who: [] for who in contenders}
        began = time.perf_counter()
        for finished in range(rounds):
            if finished >= 2 and time.perf_counter() - began > ROW_SECONDS:
                break
            for who, call in contenders.items():
                samples[who].append(measure(row.clock, who, call, scale))
        held = {OURS: memory(row.clock, contenders[OURS])}
    return replace(row, times={who: Times.of(each, held.get(who)) for who, each in samples.items()})


def run_all(
    rows: list[Row], found: list[Row], rounds: int, scale: float, seconds: float = math.inf
) -> int:
    """Run rows in turn, add them with their times, and return the exit code: 1 if one failed.

    None begins after so many seconds. Ctrl-C ends the run: what was measured is kept.
    """
    code, until = 0, time.perf_counter() + seconds
    for number, row in enumerate(rows):
        if time.perf_counter() > until:
            peers.note(row, OURS, "not begun: the time for this run was over")
            continue
        if sys.stderr.isatty():  # between rows alone: a thread that draws would be timed with them
            print(f"{number + 1} of {len(rows)}: {row}", file=sys.stderr)
        try:
            found.append(run(row, rounds, scale))
        except KeyboardInterrupt:
            for each in rows[number:]:
                peers.note(each, OURS, "not measured: the run was interrupted")
            return 130  # as shells have it
        except Exception as error:  # the other rows are worth having
            code = 1
            peers.note(row, OURS, f"FAILED: {type(error).__name__}: {error}")
        gc.collect()
        peers.free_memory()
    return code


def checked(row: Row, contenders: dict[str, Call], expected: Any) -> dict[str, Call]:
    """Return the contenders whose result is the expected one; raise if ours is another."""
    right = {}
    for who, call in contenders.items():
        with peers.left_out_if_it_fails(row, who):
            off = error_of(call(), expected, row.any_dtype)
            if off > row.tolerance:
                raise AssertionError(f"{who} is off by {off:.3g}, allowed {row.tolerance:.3g}")
            right[who] = call
    return right


def error_of(got: Any, expected: Any, any_dtype: bool) -> float:
    """Return the largest error, relative to the largest number; infinite for other dtypes."""
    if isinstance(expected, tuple):
        return max(error_of(*pair, any_dtype) for pair in zip(got, expected, strict=True))
    xp = module_of(expected)
    got = got.gather() if isinstance(got, ga.ShardedArray) else got
    if hasattr(got, "block_until_ready"):  # JAX's, whose streams are its own
        got = xp.from_dlpack(got.block_until_ready())
    got = xp.asarray(got).reshape(expected.shape)
    got = got.astype(expected.dtype, copy=False) if any_dtype else got
    if got.dtype == expected.dtype and bool((got == expected).all()):
        return 0.0
    if got.dtype != expected.dtype or expected.dtype.kind != "f":
        return math.inf
    error = float(abs(got - expected).max() / (abs(expected).max() + xp.finfo(got.dtype).tiny))
    return math.inf if math.isnan(error) else error


def measure(clock: str, who: str, call: Call, scale: float) -> list[float]:
    """Return one round's samples, seconds for each call; `scale` shortens the round."""
    if clock in CPU_CLOCKS:
        return cpu_seconds(call, 0.3 * scale)
    if clock == "device" and who.startswith("JAX"):  # on streams that events do not see
        count = max(2, min(20, int(0.05 / max(queued_seconds(call, 1), 1e-5))))
        return [queued_seconds(call, count) for _ in range(3)]
    if who == COPIES:
        return [copy_seconds(call)]
    if clock == "device":
        first = device_seconds(call)
        first = min(first, *(device_seconds(call) for _ in range(2 if first < 0.01 * scale else 1)))
        count = max(2, min(100, int(0.05 * scale / max(first, 2e-4))))
        return [device_seconds(call) for _ in range(count)]
    times = []
    for _ in range(10):  # until the call returns, nothing awaited: the means of loops
        gpu().cuda.Device().synchronize()
        times.append(timeit.timeit(call, number=200) / 200)
    gpu().cuda.Device().synchronize()
    return times


def cpu_seconds(call: Call, budget: float) -> list[float]:
    """Time until the result is there. A call may have a function `before`, which is not timed."""
    times: list[float] = []
    before = getattr(call, "before", lambda: None)
    while not times or (sum(times) < budget and len(times) < 200):
        before()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return times


def queued_seconds(call: Call, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        last = call()
    last.block_until_ready()
    return (time.perf_counter() - start) / count


_spin = functools.cache(lambda: gpu().RawKernel(
    'extern "C" __global__ void spin(long long cycles) {'
    "long long start = clock64(); while (clock64() - start < cycles) {} }", "spin"))  # fmt: skip


def device_seconds(call: Call) -> float:
    """Time by CUDA events on the first GPU; others wait for the first event, the last for them.

    A kernel that spins hides the host's time to enqueue the call: 400,000 cycles are about 0.2 ms
    at 2 GHz, longer than any contender takes on a GPU.
    """
    x = getattr(call, "args", ()) or (None,)
    others = range(1, len(x[0].shards)) if isinstance(x[0], ga.ShardedArray) else ()
    cuda = gpu().cuda
    start, stop = cuda.Event(), cuda.Event()
    _spin()((1,), (1,), (400_000 * (1 + len(others)),))
    start.record()
    for device in others:
        with cuda.Device(device):
            cuda.get_current_stream().wait_event(start)
    result = call()
    for device in others:
        with cuda.Device(device):
            done = cuda.Event(disable_timing=True)
            done.record()
        cuda.get_current_stream().wait_event(done)
    stop.record()
    stop.synchronize()
    del result
    return float(cuda.get_elapsed_time(start, stop)) / 1e3


def copy_seconds(call: Call) -> float:
    """Return the time of the copies between GPUs, of the GPU to which they take longest."""
    found: dict[int, list[tuple[Any, Any]]] = defaultdict(list)
    move = transfers.move

    def watched(copy: Any) -> None:
        target, source, _ = copy
        if target.device == source.device:
            return move(copy)
        with gpu().cuda.Device(target.device):
            stream = gpu().cuda.ExternalStream(target.stream, target.device)
            events = gpu().cuda.Event(), gpu().cuda.Event()
            events[0].record(stream)
            move(copy)
            events[1].record(stream)
        found[target.device].append(events)

    transfers.move = watched
    try:
        device_seconds(call)
    finally:
        transfers.move = move
    elapsed = gpu().cuda.get_elapsed_time
    times = [sum(elapsed(*each) / 1e3 for each in events) for events in found.values()]
    return max(times, default=1e-9)  # which stands for none: a file holds no 0


def memory(clock: str, call: Call) -> int | None:
    """Return how many bytes one of our calls holds at once beyond its arguments; None if unknown.

    On the CPU it is what Python and NumPy allocate, on a GPU what CuPy's pool gives meanwhile.
    """
    if clock == "cpu":
        tracemalloc.start()
        try:
            call()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    if clock != "device":
        return None
    sizes = [0]  # held after each allocation

    class Hook(gpu().cuda.MemoryHook):  # type: ignore[misc]  # there with a GPU
        def malloc_postprocess(self, **given: Any) -> None:
            sizes.append(sizes[-1] + given["mem_size"])

        def free_postprocess(self, **given: Any) -> None:
            sizes.append(sizes[-1] - given["mem_size"])

    ga.set_memory_resource("cupy")
    try:
        with Hook():
            call()
        return int(max(sizes))
    finally:
        ga.set_memory_resource(None)
