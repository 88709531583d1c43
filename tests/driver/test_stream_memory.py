"""Work on several streams of a GPU: how long memory lives."""

from __future__ import annotations

import gc
from typing import Any

from gate import Gate
from support import Backend, scaled
from test_stream_order import N, OnStream, new_stream

import gpualgo as ga

LONG = scaled(1 << 20, emulated=1 << 14)


def test_memory_is_not_reused_too_early(cuda: Backend, gate: Gate) -> None:
    stream, home = new_stream(cuda), new_stream(cuda)
    ones = OnStream(cuda.xp.ones(LONG, cuda.xp.int64), home)

    def write() -> list[Any]:
        return [ga.transform(lambda a: a * 5, ones) for _ in range(5)]

    cuda.xp.cuda.Device().synchronize()
    ga.reduce(ga.transform(lambda a: a * 3, ones), stream=stream)
    write()
    x = ga.transform(lambda a: a * 3, ones)
    with gate.hold(stream):
        total = ga.reduce(x, stream=stream)
        del x
        gc.collect()
        others = write()
        gate.settle(home)  # what writes too early has done so
        assert gate.holds(stream)
    assert int(total.copy_to_host()) == 3 * LONG
    assert len(others) == 5
    cuda.xp.cuda.Device().synchronize()  # `home` waits for what read x; `ones` is read until then


def test_a_result_outlives_its_stream(cuda: Backend) -> None:
    x = OnStream(cuda.xp.ones(N, cuda.xp.int64), None)
    for _ in range(20):
        stream = cuda.xp.cuda.Stream(non_blocking=True)
        result = ga.transform(lambda a: a + 1, x, stream=stream)
        del stream
        gc.collect()
        assert int(ga.reduce(result).copy_to_host()) == 2 * N
        del result


def test_results_that_die_early_are_not_used_again(cuda: Backend, gate: Gate) -> None:
    """Of a call that ran at home, whose memory is no stream's to free in order."""
    home, free = new_stream(cuda), new_stream(cuda)
    ones = cuda.xp.ones(LONG, cuda.xp.int64)
    array, elsewhere = OnStream(ones, home), OnStream(ones, free)

    def run() -> Any:
        return ga.reduce(ga.transform(lambda a: a * 3, array))  # the array between dies at once

    def write() -> list[Any]:
        return [ga.transform(lambda a: a * 5, elsewhere) for _ in range(4)]

    cuda.xp.cuda.Device().synchronize()
    run()
    write()
    with gate.hold(home):
        total = run()
        gc.collect()
        others = write()
        gate.settle(free)  # what writes too early has done so
        assert gate.holds(home)
    assert int(total.copy_to_host()) == 3 * LONG
    assert len(others) == 4
    cuda.xp.cuda.Device().synchronize()  # what is read stays until then
