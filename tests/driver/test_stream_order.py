"""Work on several streams of a GPU: its order, without waiting, and how long memory lives."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from gate import Gate
from support import Backend, assert_same, count_gpus, scaled

import gpualgo as ga


class OnStream:
    """A device array that shows `__cuda_array_interface__`, with the stream it is used on."""

    def __init__(self, array: Any, stream: Any) -> None:
        self.array = array
        self.__cuda_array_interface__ = {
            **array.__cuda_array_interface__,
            "stream": stream if stream is None or isinstance(stream, int) else stream.ptr,
        }


class ByDLPack:
    """A device array that shows DLPack alone."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, *, stream: Any = None) -> Any:
        return self.array.__dlpack__(stream=stream)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


N = scaled(1 << 16, emulated=1 << 13)


def new_stream(cuda: Backend) -> Any:
    """Return a stream that runs beside all others."""
    return cuda.xp.cuda.Stream(non_blocking=True)


def test_every_kind_of_stream(cuda: Backend) -> None:
    cupy = cuda.xp
    made: list[Any] = [0, 1, 2, cupy.cuda.Stream.null, cupy.cuda.Stream(non_blocking=True)]
    made.append(made[-1].ptr)
    try:
        import torch
    except ImportError:
        print("torch goes untested")
    else:
        made += [torch.cuda.Stream(), torch.cuda.default_stream()]
    try:
        from cuda.core import Device

        Device(0).set_current()
        made.append(Device(0).create_stream())
    except ImportError:
        print("cuda.core goes untested")
    try:
        from numba import cuda as numba_cuda

        made += [numba_cuda.stream(), numba_cuda.default_stream()]
        made.append(numba_cuda.per_thread_default_stream())
    except Exception as error:  # numba's CUDA target may be absent or broken
        print("numba goes untested:", error)
    x = cupy.ones(N, cupy.float32)
    shared = OnStream(x, None)
    for stream in made:
        cupy.cuda.Device().synchronize()
        total = ga.reduce(x, stream=stream)
        cupy.cuda.Device().synchronize()
        assert float(total) == N
        assert float(ga.reduce(shared, stream=stream).copy_to_host()) == N
        held = ga.transform(lambda a: a * 2, shared, stream=stream)
        del stream
        assert_same(held.copy_to_host(), np.full(N, 2, np.float32))


def test_work_runs_at_home_without_waiting(cuda: Backend, gate: Gate) -> None:
    home, x = new_stream(cuda), cuda.xp.zeros(N, cuda.xp.int64)
    array = OnStream(x, home)

    def run() -> tuple[Any, Any]:
        with home:
            x[...] = 1
        return ga.reduce(array), ga.transform(lambda a: a * 2, array)

    cuda.xp.cuda.Device().synchronize()
    run()
    home.synchronize()
    x[...] = 0
    with gate.hold(home):
        total, doubled = run()
        assert gate.holds(home)
    assert total.stream == doubled.stream == home.ptr
    assert int(total.copy_to_host()) == N
    assert_same(doubled.copy_to_host(), np.full(N, 2))


def test_streams_at_home_are_joined(cuda: Backend, gate: Gate) -> None:
    home, other = new_stream(cuda), new_stream(cuda)
    x, y = cuda.xp.zeros(N, cuda.xp.int64), cuda.xp.ones(N, cuda.xp.int64)
    first = cuda.xp.zeros(1, cuda.xp.int64)
    late, here = OnStream(x, home), OnStream(y, other)

    def run() -> tuple[Any, Any]:
        with home:
            cuda.xp.add(x, 1, out=x)
            cuda.xp.add(first, 10, out=first)
        total = ga.reduce(ga.transform(lambda a, b: b * 100 + a, here, late))
        return total, ga.exclusive_scan(here, OnStream(first, home))

    cuda.xp.cuda.Device().synchronize()
    run()
    with gate.hold(home):
        total, scanned = run()
        assert gate.holds(other)
    assert total.stream == other.ptr
    assert int(total.copy_to_host()) == N * (100 * 2 + 1)
    assert int(scanned[0].copy_to_host()) == 20
    cuda.xp.cuda.Device().synchronize()  # before y goes, which is in the order of another stream


def test_dlpack_producers_are_waited_for(cuda: Backend, gate: Gate) -> None:
    stream, x = new_stream(cuda), cuda.xp.zeros(N, cuda.xp.int64)

    def run() -> Any:
        with stream:
            x[...] = 1
            return ga.reduce(ByDLPack(x))  # CuPy exports for its current stream

    cuda.xp.cuda.Device().synchronize()
    run()
    cuda.xp.cuda.Device().synchronize()
    x[...] = 0
    with gate.hold(stream):
        total = run()
        assert gate.holds(stream)
        assert gate.holds(cuda.xp.cuda.Stream.null)  # where the call runs
    assert int(total.copy_to_host()) == N


@pytest.mark.parametrize("way", ["from_dlpack", "asarray", "torch"])
def test_dlpack_consumers_wait(cuda: Backend, gate: Gate, way: str) -> None:
    home, other = new_stream(cuda), new_stream(cuda)
    x = cuda.xp.zeros(N, cuda.xp.int64)
    torch: Any = None
    if way == "torch":
        reason = "PyTorch is not installed: its tensors go untested"
        torch = pytest.importorskip("torch", reason=reason)

    def run(value: int) -> Any:
        with home:
            x[...] = value
        return ga.transform(lambda a: a * 3, OnStream(x, home))

    def total(result: Any) -> int:
        if way == "torch":
            with torch.cuda.stream(torch.cuda.Stream()):
                return int(torch.from_dlpack(result).sum())
        with other:
            return int(getattr(cuda.xp, way)(result).sum().get())

    cuda.xp.cuda.Device().synchronize()
    assert total(run(1)) == 3 * N
    with ThreadPoolExecutor(1) as pool:
        with gate.hold(home):
            call = pool.submit(total, run(2))
            assert gate.blocks(call)
        assert call.result() == 6 * N


def test_threads_on_streams_of_their_own(cuda: Backend) -> None:
    n, rounds = scaled(300_001, emulated=3001), scaled(30, emulated=5)

    def work(number: int) -> None:
        stream = cuda.xp.cuda.Stream(non_blocking=True)
        with stream:
            x = cuda.xp.full(n, number, cuda.xp.int64)
        for _ in range(rounds):
            total = ga.reduce(ga.inclusive_scan(OnStream(x, stream)))
            assert int(total.copy_to_host()) == number * n * (n + 1) // 2

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(1, 7)))


@pytest.mark.parametrize("device", range(1, count_gpus()))
def test_streams_of_another_device_are_refused(cuda: Backend, device: int) -> None:
    cupy = cuda.xp
    x = cupy.ones(10)
    with cupy.cuda.Device(device):
        stream = cupy.cuda.Stream()
    for array in (x, OnStream(x, None)):
        with pytest.raises(ValueError, match=f"stream= is of cuda:{device} but .* cuda:0"):
            ga.reduce(array, stream=stream)
        with pytest.raises(ValueError, match="pass a stream of their device"):
            ga.radix_sort(array, stream=stream)
    assert cupy.cuda.runtime.getDevice() == 0
    with cupy.cuda.Device(device):
        y = cupy.ones(10)
        total = ga.reduce(y, stream=stream)
        stream.synchronize()
        assert float(total) == 10
    for default in (0, 1, 2):
        assert float(ga.reduce(OnStream(y, None), stream=default).copy_to_host()) == 10


# --- how long memory lives

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
