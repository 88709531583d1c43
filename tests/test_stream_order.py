"""Work on several streams of a GPU: its order, without waiting, and how long memory lives."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest
from support import Backend, assert_same, count_gpus

import gpualgo as ga

SPIN = r"""
extern "C" __global__ void spin(long long cycles) {
    const long long start = clock64();
    while (clock64() - start < cycles) {
    }
}
"""
CYCLES = 1_000_000_000  # half a second


class Slow:
    """A stream that runs beside all others, and work on it that takes a while."""

    def __init__(self, cuda: Backend) -> None:
        self.stream = cuda.xp.cuda.Stream(non_blocking=True)
        self._kernel = cuda.xp.RawKernel(SPIN, "spin")
        with self.stream:
            self._kernel((1,), (1,), (np.int64(0),))
        cuda.xp.cuda.Device().synchronize()

    def spin(self) -> None:
        with self.stream:
            self._kernel((1,), (1,), (np.int64(CYCLES),))

    @property
    def is_busy(self) -> bool:
        return not self.stream.done


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


N = 1 << 16


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


def test_work_runs_at_home_without_waiting(cuda: Backend) -> None:
    slow = Slow(cuda)
    x = cuda.xp.zeros(N, cuda.xp.int64)
    for _ in range(2):  # the first round compiles
        cuda.xp.cuda.Device().synchronize()
        x[...] = 0
        cuda.xp.cuda.Device().synchronize()
        slow.spin()
        with slow.stream:
            x[...] = 1
        array = OnStream(x, slow.stream)
        total, doubled = ga.reduce(array), ga.transform(lambda a: a * 2, array)
        was_busy = slow.is_busy
        assert total.stream == doubled.stream == slow.stream.ptr
        assert int(total.copy_to_host()) == N
        assert_same(doubled.copy_to_host(), np.full(N, 2))
    assert was_busy


def test_a_given_stream_waits_for_home(cuda: Backend) -> None:
    slow, other = Slow(cuda), cuda.xp.cuda.Stream(non_blocking=True)
    x = cuda.xp.zeros(N, cuda.xp.int64)
    cuda.xp.cuda.Device().synchronize()
    slow.spin()
    with slow.stream:
        x[...] = 1
    array = OnStream(x, slow.stream)
    out = ga.transform(lambda a: a, OnStream(cuda.xp.zeros(N, cuda.xp.int64), None))
    results = [
        ga.reduce(array, stream=other),
        ga.inclusive_scan(array, stream=other)[-1],
        ga.reduce(ga.radix_sort(array, stream=other)),
        ga.histogram(array, 2, (0, 2), stream=other)[1],
        ga.reduce(ga.transform(lambda a: a, array, stream=other)),
        ga.reduce(ga.transform(lambda a: a, array, out=out, stream=other), stream=other),
    ]
    assert [int(result.copy_to_host()) for result in results] == [N] * len(results)


def test_streams_at_home_are_joined(cuda: Backend) -> None:
    slow, other = Slow(cuda), cuda.xp.cuda.Stream(non_blocking=True)
    x, y = cuda.xp.zeros(N, cuda.xp.int64), cuda.xp.ones(N, cuda.xp.int64)
    first = cuda.xp.zeros(1, cuda.xp.int64)
    cuda.xp.cuda.Device().synchronize()
    for _ in range(2):
        slow.spin()
        with slow.stream:
            x += 1
            first += 10
        late, here = OnStream(x, slow.stream), OnStream(y, other)
        total = ga.reduce(ga.transform(lambda a, b: b * 100 + a, here, late))
        assert total.stream == other.ptr
        scanned = ga.exclusive_scan(here, OnStream(first, slow.stream))
        slow.stream.synchronize()
        expected = int(first.get()[0]), int(x.get()[0])
        assert int(total.copy_to_host()) == N * (100 * expected[1] + 1)
        assert int(scanned[0].copy_to_host()) == expected[0]
    out = OnStream(cuda.xp.zeros(N, cuda.xp.int64), slow.stream)
    plain = OnStream(y, other)
    for call in (
        lambda: ga.transform(lambda a: a, plain, out=out),
        lambda: ga.inclusive_scan(plain, out=out),
        lambda: ga.radix_sort(plain, out=out),
    ):
        for _ in range(2):
            with pytest.raises(ValueError, match="pass stream="):
                call()  # type: ignore[no-untyped-call]
        ga.transform(lambda a: a, plain, out=out, stream=other)  # a plan that must not be used


def test_dlpack_producers_are_waited_for(cuda: Backend) -> None:
    slow = Slow(cuda)
    x = cuda.xp.zeros(N, cuda.xp.int64)
    assert int(ga.reduce(ByDLPack(x)).copy_to_host()) == 0
    cuda.xp.cuda.Device().synchronize()
    slow.spin()
    with slow.stream:
        x[...] = 1
        total = ga.reduce(ByDLPack(x))  # CuPy exports for its current stream
        was_busy = slow.is_busy
    assert int(total.copy_to_host()) == N
    assert was_busy


def test_dlpack_consumers_wait(cuda: Backend) -> None:
    slow, other = Slow(cuda), cuda.xp.cuda.Stream(non_blocking=True)
    x = cuda.xp.ones(N, cuda.xp.int64)
    ga.transform(lambda a: a * 3, OnStream(x, None))
    cuda.xp.cuda.Device().synchronize()
    for way in (cuda.xp.from_dlpack, cuda.xp.asarray):
        slow.spin()
        result = ga.transform(lambda a: a * 3, OnStream(x, slow.stream))
        with other:
            total = way(result).sum()
        other.synchronize()
        assert int(total.get()) == 3 * N
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: its tensors go untested")
    slow.spin()
    result = ga.transform(lambda a: a * 3, OnStream(x, slow.stream))
    with torch.cuda.stream(torch.cuda.Stream()):
        assert int(torch.from_dlpack(result).sum()) == 3 * N


def test_memory_is_not_reused_too_early(cuda: Backend) -> None:
    slow, home = Slow(cuda), cuda.xp.cuda.Stream(non_blocking=True)
    ones = cuda.xp.ones(1 << 20, cuda.xp.int64)
    ga.reduce(ga.transform(lambda a: a * 3, OnStream(ones, home)))
    cuda.xp.cuda.Device().synchronize()
    x = ga.transform(lambda a: a * 3, OnStream(ones, home))
    slow.spin()
    total = ga.reduce(x, stream=slow.stream)
    del x
    gc.collect()
    others = [ga.transform(lambda a: a * 5, OnStream(ones, home)) for _ in range(4)]
    home.synchronize()
    assert int(total.copy_to_host()) == 3 << 20
    assert len(others) == 4


def test_a_result_outlives_its_stream(cuda: Backend) -> None:
    x = OnStream(cuda.xp.ones(N, cuda.xp.int64), None)
    for _ in range(20):
        stream = cuda.xp.cuda.Stream(non_blocking=True)
        result = ga.transform(lambda a: a + 1, x, stream=stream)
        del stream
        gc.collect()
        assert int(ga.reduce(result).copy_to_host()) == 2 * N
        del result


def test_threads_on_streams_of_their_own(cuda: Backend) -> None:
    failures: list[Any] = []

    def work(number: int) -> None:
        stream = cuda.xp.cuda.Stream(non_blocking=True)
        with stream:
            x = cuda.xp.full(300_001, number, cuda.xp.int64)
        for _ in range(30):
            total = ga.reduce(ga.inclusive_scan(OnStream(x, stream)))
            if int(total.copy_to_host()) != number * 300_001 * 300_002 // 2:
                failures.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


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


def test_results_that_die_early_are_not_used_again(cuda: Backend) -> None:
    """Of a call that ran at home, whose memory is no stream's to free in order."""
    slow = Slow(cuda)
    n = 1 << 20
    ones = cuda.xp.ones(n, cuda.xp.int64)
    array = OnStream(ones, slow.stream)
    ga.reduce(ga.transform(lambda a: a * 3, array))
    cuda.xp.cuda.Device().synchronize()
    slow.spin()
    total = ga.reduce(ga.transform(lambda a: a * 3, array))  # the array between dies at once
    gc.collect()
    free = cuda.xp.cuda.Stream(non_blocking=True)
    others = [ga.transform(lambda a: a * 5, OnStream(ones, free)) for _ in range(4)]
    free.synchronize()
    assert int(total.copy_to_host()) == 3 * n
    assert len(others) == 4
