"""How sharded calls are timed: all GPUs together by events, and what peer copies take of it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gpualgo._bench.clocks import _spin
from gpualgo._bench.support import gpu

WARM_SECONDS = 0.2  # in which GPUs that stood still raise their clocks


def synchronize(count: int) -> None:
    for number in range(count if gpu() is not None else 0):
        with gpu().cuda.Device(number):
            gpu().cuda.Device().synchronize()


class Clock:
    """Events on the first GPU for which, and which, all others wait."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.own = [self._event(number) for number in range(count)]
        with gpu().cuda.Device(0):
            self.start, self.stop = gpu().cuda.Event(), gpu().cuda.Event()

    @staticmethod
    def _event(number: int) -> Any:
        with gpu().cuda.Device(number):
            return gpu().cuda.Event(disable_timing=True)

    def seconds(self, call: Callable[[], Any]) -> float:
        """Return how long all GPUs take for what a call queues."""
        synchronize(self.count)
        with gpu().cuda.Device(0):
            _spin()((1,), (1,), (1_000_000,))  # half a millisecond, in which calls are queued
            self.start.record()
        for number in range(1, self.count):
            with gpu().cuda.Device(number):
                gpu().cuda.get_current_stream().wait_event(self.start)
        result = call()
        for number in range(1, self.count):
            with gpu().cuda.Device(number):
                self.own[number].record()
        with gpu().cuda.Device(0):
            for event in self.own[1:]:
                gpu().cuda.get_current_stream().wait_event(event)
            self.stop.record()
            self.stop.synchronize()
            found = float(gpu().cuda.get_elapsed_time(self.start, self.stop)) / 1e3
        del result
        return found


def seconds(call: Callable[[], Any], count: int, rounds: int) -> list[float]:
    call()  # compiles
    if gpu() is None:
        found = []
        for _ in range(rounds):
            start = time.perf_counter()
            call()
            found.append(time.perf_counter() - start)
        return found
    clock, until = Clock(count), time.perf_counter() + WARM_SECONDS
    while time.perf_counter() < until:
        clock.seconds(call)
    return [clock.seconds(call) for _ in range(rounds)]


@contextmanager
def _watched() -> Iterator[dict[str, Any]]:
    """Count the bytes that peer copies bring to each GPU, and time each of them there."""
    from gpualgo._driver import peers

    found: dict[str, Any] = {"bytes": defaultdict(int), "events": defaultdict(list)}
    usual = peers.move

    def move(copy: Any) -> None:
        (target, source, size), cupy = copy, gpu()
        if target.device == source.device:
            usual(copy)
            return
        with cupy.cuda.Device(target.device):
            stream = cupy.cuda.ExternalStream(target.stream, target.device)
            before, after = cupy.cuda.Event(), cupy.cuda.Event()
            before.record(stream)
            usual(copy)
            after.record(stream)
        found["bytes"][target.device] += size
        found["events"][target.device].append((before, after))

    peers.move = move
    try:
        yield found
    finally:
        peers.move = usual


def exchange(call: Callable[[], Any], count: int, seconds: float) -> tuple[float, int]:
    """Return the share of copies between GPUs in the time, and the bytes, at the busiest GPU."""
    with _watched() as found:
        call()
        synchronize(count)
    cupy = gpu()
    times = [
        sum(float(cupy.cuda.get_elapsed_time(*pair)) / 1e3 for pair in pairs)
        for pairs in found["events"].values()
    ]
    return max(times, default=0.0) / seconds, max(found["bytes"].values(), default=0)
