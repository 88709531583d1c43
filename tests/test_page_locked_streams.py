"""Page-locked memory and streams: what does not wait, what is kept alive, what graphs record."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import Backend, assert_same
from test_page_locked import RUNS, VALUES

import gpualgo as ga


def spin(n: int) -> float:
    """Take n steps, each after the last: some seconds for 2**28 on one thread of a GPU."""
    s = 0.5
    for _ in range(n):
        s = s * 0.999 + 0.25
    return s


@pytest.fixture
def delay(cuda: Backend) -> Callable[[Any], None]:
    """Keep a stream busy for a while."""
    steps, out = cuda.xp.full(1, 1 << 25, np.int64), cuda.xp.zeros(1)
    short = cuda.xp.ones(1, np.int64)
    ga.transform(spin, short, out=out)  # compiles
    cuda.xp.cuda.Device().synchronize()

    def queue(stream: Any, is_long: bool = True) -> None:
        ga.transform(spin, steps if is_long else steps // 64, out=out, stream=stream)
        assert not (is_long and stream.done)

    return queue


def pinned(values: Any) -> Any:
    array = ga.empty_pinned(values.shape, values.dtype)
    array[...] = values
    return array


def memory_of(array: Any) -> Any:
    """Return what owns an array's memory."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array


def new_stream(cuda: Backend) -> Any:
    return cuda.xp.cuda.Stream(non_blocking=True)


def expected(cuda: Backend, run: Callable[..., Any]) -> Any:
    return cuda.to_host(run(cuda.to_device(VALUES)))


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_call_does_not_wait(cuda: Backend, delay: Any, run: Callable[..., Any]) -> None:
    want, stream = expected(cuda, run), new_stream(cuda)
    x, out = pinned(VALUES), pinned(np.zeros_like(want))
    run(x, out=out, stream=stream)  # compiles
    stream.synchronize()
    out[...] = 77
    delay(stream)
    assert run(x, out=out, stream=stream) is out
    assert not stream.done
    assert np.all(out == 77)
    stream.synchronize()
    assert_same(out, want)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_dropped_arrays_are_kept(cuda: Backend, delay: Any, run: Callable[..., Any]) -> None:
    want, stream = expected(cuda, run), new_stream(cuda)
    x, other, out = pinned(VALUES), pinned(VALUES), pinned(np.zeros_like(want))
    run(other, out=out, stream=stream)  # compiles
    stream.synchronize()
    out[...] = 0
    owner = weakref.ref(memory_of(x))
    delay(stream)
    run(x, out=out, stream=stream)
    del x
    gc.collect()
    assert not stream.done
    assert owner() is not None
    _ = [pinned(np.full_like(VALUES, -1)) for _ in range(8)]  # would take the memory's place
    stream.synchronize()
    assert_same(out, want)
    run(other, out=out, stream=stream)  # lets go of what is done
    gc.collect()
    assert owner() is None
    stream.synchronize()


def test_memory_is_freed(cuda: Backend) -> None:
    x = pinned(VALUES)
    part, owner = x[1:3, ::2], weakref.ref(memory_of(x))
    ga.reduce(x)
    del x
    gc.collect()
    assert owner() is not None
    assert np.array_equal(part, VALUES[1:3, ::2])
    del part
    gc.collect()
    assert owner() is None


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_pageable_results_wait(cuda: Backend, delay: Any, run: Callable[..., Any]) -> None:
    """What the stream does before the call counts, and the result is there when it returns."""
    stream = new_stream(cuda)
    x, device = pinned(np.zeros_like(VALUES)), cuda.to_device(VALUES)
    want = expected(cuda, run)
    delay(stream, is_long=False)
    with stream:
        device.get(stream, out=x, blocking=False)
    assert_same(run(x, stream=stream), want)
    x[...] = 0
    out = pinned(np.zeros_like(want))
    delay(stream, is_long=False)
    run(VALUES, out=out, stream=stream)
    assert_same(out, want)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_capture_records_it(cuda: Backend, run: Callable[..., Any]) -> None:
    want, stream = expected(cuda, run), new_stream(cuda)
    x, out = pinned(VALUES), pinned(np.zeros_like(want))
    run(x, out=out, stream=stream)  # compiles
    stream.synchronize()
    out[...] = 77
    with stream:
        stream.begin_capture()
        try:
            run(x, out=out, stream=stream)
            with pytest.raises(RuntimeError, match=r"pageable host memory.*empty_pinned"):
                run(VALUES, out=out, stream=stream)
            with pytest.raises(RuntimeError, match=r"pageable host memory.*empty_pinned"):
                run(x, stream=stream)
        finally:
            graph = stream.end_capture()
    assert np.all(out == 77)
    for values in (VALUES, VALUES[::-1]):
        x[...] = values
        graph.launch(stream)
        stream.synchronize()
        assert_same(out, cuda.to_host(run(cuda.to_device(values.copy()))))
    assert_same(expected(cuda, run), want)


def test_host_work_is_not_recorded(cuda: Backend) -> None:
    stream, x = new_stream(cuda), pinned(VALUES)
    counts, total = ga.empty_pinned(10, np.int64), ga.empty_pinned((), np.float32)
    with stream:
        stream.begin_capture()
        try:
            with pytest.raises(RuntimeError, match=r"histogram: range= was not given"):
                ga.histogram(x, 10, out=counts, stream=stream)
            with pytest.raises(RuntimeError, match=r"histogram: x is empty"):
                ga.histogram(x[:0], 10, (0, 1), out=counts, stream=stream)
            with pytest.raises(RuntimeError, match=r"reduce: x is empty"):
                ga.reduce(x[:0], 0.0, out=total, stream=stream)
        finally:
            stream.end_capture()


def test_managed_memory_on_a_stream(cuda: Backend, delay: Any) -> None:
    numba_cuda = pytest.importorskip("numba.cuda")
    stream = new_stream(cuda)
    x, out = (np.asarray(numba_cuda.managed_array(VALUES.shape, np.float32)) for _ in range(2))
    x[...] = VALUES
    run = RUNS["transform"]
    run(x, out=out, stream=stream)
    delay(stream)
    run(x, out=out, stream=stream)
    assert not stream.done
    del x
    gc.collect()
    stream.synchronize()
    assert_same(out, expected(cuda, run))
