"""Page-locked memory and streams: what does not wait, what is kept alive, what graphs record."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from gate import Gate
from support import Backend, assert_same
from test_page_locked import RUNS, VALUES

import gpualgo as ga

OTHERS = np.full_like(VALUES, -1)


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


def on_cuda(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call in another thread, which has a default device of its own."""
    with ga.default_device("cuda"):
        return call(*args, **kwargs)


def expected(cuda: Backend, run: Callable[..., Any]) -> Any:
    return cuda.to_host(run(cuda.to_device(VALUES)))


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_call_does_not_wait(cuda: Backend, gate: Gate, run: Callable[..., Any]) -> None:
    want, stream = expected(cuda, run), new_stream(cuda)
    x, out = pinned(VALUES), pinned(np.zeros_like(want))
    run(x, out=out, stream=stream)  # compiles, loads, takes memory
    stream.synchronize()
    out[...] = 77
    with gate.hold(stream):
        assert run(x, out=out, stream=stream) is out
        assert gate.holds(stream)
        assert np.all(out == 77)
    stream.synchronize()
    assert_same(out, want)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_dropped_arrays_are_kept(cuda: Backend, gate: Gate, run: Callable[..., Any]) -> None:
    want, stream = expected(cuda, run), new_stream(cuda)
    x, other, out = pinned(VALUES), pinned(VALUES), pinned(np.zeros_like(want))
    run(other, out=out, stream=stream)  # compiles, loads, takes memory
    stream.synchronize()
    out[...] = 0
    owner = weakref.ref(memory_of(x))
    with ThreadPoolExecutor(1) as pool:
        with gate.hold(stream):
            run(x, out=out, stream=stream)
            del x
            gc.collect()
            assert gate.holds(stream)
            assert owner() is not None
            # Would take the memory's place; whether it waits for the stream, the driver decides.
            call = pool.submit(on_cuda, lambda: [pinned(OTHERS) for _ in range(8)])
            gate.blocks(call)
        others = call.result()
    stream.synchronize()
    assert_same(out, want)
    run(other, out=out, stream=stream)  # lets go of what is done
    gc.collect()
    assert owner() is None
    assert len(others) == 8
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
def test_pageable_results_wait(cuda: Backend, gate: Gate, run: Callable[..., Any]) -> None:
    """What the stream does before the call counts, and the result is there when it returns."""
    stream = new_stream(cuda)
    x, device = pinned(np.zeros_like(VALUES)), cuda.to_device(VALUES)
    want = expected(cuda, run)
    out = pinned(np.zeros_like(want))
    run(x, stream=stream)  # compiles, so that a call is soon where it has to wait
    run(VALUES, out=out, stream=stream)
    out[...] = 0
    with ThreadPoolExecutor(1) as pool:
        with gate.hold(stream):
            with stream:
                device.get(stream, out=x, blocking=False)
            call = pool.submit(on_cuda, run, x, stream=stream)
            assert gate.blocks(call)
        assert_same(call.result(), want)
        with gate.hold(stream):
            call = pool.submit(on_cuda, run, VALUES, out=out, stream=stream)
            assert gate.blocks(call)
            assert not out.any()
        call.result()
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


def test_managed_memory_on_a_stream(cuda: Backend, gate: Gate) -> None:
    numba_cuda = pytest.importorskip("numba.cuda")
    stream = new_stream(cuda)
    x, out = (np.asarray(numba_cuda.managed_array(VALUES.shape, np.float32)) for _ in range(2))
    x[...] = VALUES
    run = RUNS["transform"]
    want = expected(cuda, run)
    run(x, out=out, stream=stream)
    stream.synchronize()
    out[...] = 0
    with gate.hold(stream):
        run(x, out=out, stream=stream)
        del x
        gc.collect()
        assert gate.holds(stream)
    stream.synchronize()
    assert_same(out, want)
