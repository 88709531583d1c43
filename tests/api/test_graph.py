"""Graphs: recorded calls give what calls give, hold what they touch, and can be re-pointed."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from gate import Gate
from support import Backend, count_gpus, scaled

import gpualgo as ga
from gpualgo._api.explain import describe
from gpualgo._api.graph import Arena, Graph, _with_arrays
from gpualgo._arrays.view import address_of

N = scaled(200_003, emulated=6_003)


def sample(n: int = N, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(-1000, 1000, n).astype(np.int32)


def test_a_recording_cannot_be_launched(cuda: Backend) -> None:
    with ga.graph() as g:
        ga.reduce(cuda.to_device(sample()))
        with pytest.raises(RuntimeError, match=r"not recorded yet"):
            g.launch()


def test_outlives_the_function_that_made_it(cuda: Backend) -> None:
    """Arrays, host memory, operators and temporary storage live as long as the graph."""
    kept: list[weakref.ref[Any]] = []

    def build() -> tuple[Any, Any, Any]:
        x = ga.empty_pinned(N, np.int32)
        x[...] = sample()
        y = ga.empty_pinned(N, np.int32)
        counts = ga.empty_pinned(300, np.int64)
        table = cuda.to_device(np.arange(2001, dtype=np.int32) * 7)
        kept.extend(weakref.ref(a) for a in (x, table))
        with ga.graph() as g:
            device = ga.transform(lambda a: table[a + 1000], cuda.xp.zeros(1, np.int32))
            looked_up = ga.transform(lambda a: table[a + 1000], cuda.to_device(sample()))
            ga.inclusive_scan(x, out=y)
            ga.radix_sort(x, out=y)
            ga.histogram(x, 300, (-1000, 1000), out=counts)
            ga.reduce(looked_up, out=device.reshape(()))
        return g, y, (counts, device, looked_up)

    g, y, (counts, device, looked_up) = build()
    for _ in range(3):
        gc.collect()
        junk = [cuda.xp.full(N, 123, np.int32) for _ in range(20)]
        y[...], counts[...] = 0, 0
        g.launch()
        np.testing.assert_array_equal(y, np.sort(sample()))
        np.testing.assert_array_equal(counts, np.histogram(sample(), 300, (-1000, 1000))[0])
        np.testing.assert_array_equal(cuda.to_host(looked_up), (sample() + 1000) * 7)
        assert int(cuda.to_host(device)[0]) == int(((sample() + 1000) * 7).sum(dtype=np.int32))
        del junk
    assert all(ref() is not None for ref in kept)
    cuda.xp.cuda.Device().synchronize()
    del g, y, counts, device, looked_up
    gc.collect()
    ga.reduce(cuda.xp.zeros(3))  # what has run is let go by later calls at the latest
    for _ in range(3):
        with ga.graph() as another:
            ga.reduce(cuda.xp.zeros(3))
        another.launch()
        del another
        cuda.xp.cuda.Device().synchronize()
        gc.collect()
    assert all(ref() is None for ref in kept)


def test_dropped_while_it_runs(cuda: Backend, gate: Gate) -> None:
    n, stream = scaled(1 << 20, emulated=1 << 14), cuda.xp.cuda.Stream(non_blocking=True)
    out, y = cuda.xp.zeros(n, np.float64), cuda.xp.ones(n, np.float64)
    with ga.graph() as g:
        z = ga.inclusive_scan(y)
        ga.inclusive_scan(z, out=out)
    cuda.xp.cuda.Device().synchronize()  # y is filled on another stream
    g.launch(stream)  # the first one loads what the graph needs
    held = weakref.ref(y)
    junk = [cuda.xp.full(n, 3.0) for _ in range(3)]
    del junk  # leaves blocks to be taken below
    cuda.xp.cuda.Device().synchronize()
    out[...] = 0
    with gate.hold(stream):
        for _ in range(5):
            g.launch(stream)
        del g, y, z
        gc.collect()
        assert held() is not None
        junk = [cuda.xp.full(n, 3.0) for _ in range(3)]
        gate.settle(cuda.xp.cuda.Stream.null)
        assert gate.holds(stream)
    stream.synchronize()
    assert float(out[9]) == 55.0
    assert float(out[-1]) == n * (n + 1) / 2
    del junk


def test_on_a_stream(cuda: Backend) -> None:
    x = cuda.to_device(sample())
    with ga.graph() as g:
        y = ga.inclusive_scan(x)
    cuda.xp.cuda.Device().synchronize()
    stream = cuda.xp.cuda.Stream(non_blocking=True)
    g.launch(stream)
    stream.synchronize()
    np.testing.assert_array_equal(cuda.to_host(y), np.cumsum(sample(), dtype=np.int32))
    x[...] = 1
    g.launch()  # on CuPy's current stream: ordered after the assignment
    assert cuda.to_host(y).tolist() == list(range(1, N + 1))


def test_what_would_wait_is_refused(cuda: Backend) -> None:
    x = cuda.to_device(sample())
    for call in (
        lambda: ga.histogram(x, cuda.xp.arange(5)),
        lambda: ga.prepare(ga.histogram, x, 10),
    ):
        with pytest.raises(RuntimeError, match=r"cannot be recorded"), ga.graph():
            call()
    assert int(ga.reduce(x)) == int(sample().sum())  # the thread's calls run again


def test_graphs_are_not_nested(cuda: Backend) -> None:
    with pytest.raises(RuntimeError, match=r"another graph"), ga.graph(), ga.graph():
        pass


def test_a_failed_call_is_no_part_of_a_graph(cuda: Backend) -> None:
    pageable = sample()

    def record() -> None:
        nonlocal g
        with ga.graph() as g, pytest.raises(RuntimeError, match="pageable"):
            ga.reduce(pageable)

    g: Any = None
    with pytest.raises(RuntimeError, match=r"a call failed while it was recorded"):
        record()
    with pytest.raises(RuntimeError, match=r"its recording failed"):
        g.launch()


def test_a_refused_call_records_nothing(cuda: Backend) -> None:
    x = cuda.to_device(sample())
    with ga.graph() as g:
        with pytest.raises(TypeError, match="op takes 1"):
            ga.reduce(x, None, lambda a: a)
        y = ga.inclusive_scan(x)
    g.launch()
    np.testing.assert_array_equal(cuda.to_host(y), np.cumsum(sample(), dtype=np.int32))


def test_other_threads_run_meanwhile(cuda: Backend) -> None:
    x = cuda.to_device(sample())
    with ThreadPoolExecutor(1) as pool, ga.graph() as g:
        y = ga.inclusive_scan(x)
        total = pool.submit(lambda: int(ga.reduce(x))).result()
        assert total == int(sample().sum(dtype=np.int32))
    g.launch()
    np.testing.assert_array_equal(cuda.to_host(y), np.cumsum(sample(), dtype=np.int32))


def test_storage_is_shared_by_the_calls(cuda: Backend) -> None:
    """A graph of many sorts takes the temporary storage of one."""
    n = scaled(1 << 22, emulated=1 << 14)
    x = cuda.to_device(sample(n))
    need = ga.temp_storage_bytes(ga.radix_sort, x)
    with ga.graph() as g:
        for _ in range(8):
            y = ga.radix_sort(x)
    taken = sum(room for _, room in g._recording.arena._chunks)
    assert need <= taken <= need + (1 << 20)
    g.launch()
    np.testing.assert_array_equal(cuda.to_host(y), np.sort(sample(n)))


def test_a_call_s_pieces_of_storage_do_not_overlap(cuda: Backend) -> None:
    arena, sizes = Arena(0), (1000, 300, 5 << 20, 700)
    starts = [arena.take(size, 0) for size in sizes]
    pieces = sorted(zip(starts, sizes, strict=True))
    assert all(start + size <= then for (start, size), (then, _) in pairwise(pieces))
    arena.restart()
    assert arena.take(1000, 0) == starts[0]


@pytest.mark.skipif(count_gpus() > 0, reason="a GPU is here")
def test_without_a_gpu() -> None:
    with pytest.raises(ga.NoDeviceError), ga.graph("cuda"):
        pass


# --- update: other arrays in the places of those of the recording


def test_update(backend: Backend) -> None:
    x, other = backend.to_device(np.arange(6)), backend.to_device(np.arange(12))[::-2]
    with ga.graph(backend.name) as g:
        y = ga.inclusive_scan(x, None, lambda a, b: b)
        z = ga.inclusive_scan(x, None, lambda a, b: a)
    into = backend.to_device(np.zeros(6, np.int64))
    g.update((x, other), (y, into))
    g.launch()
    assert backend.to_host(into).tolist() == backend.to_host(other).tolist()
    assert backend.to_host(z).tolist() == [11] * 6
    with pytest.raises(ValueError, match=r"^Graph.update: the graph does not touch"):
        g.update((x, other))
    with pytest.raises(ValueError, match=r"^Graph.update: an array of shape"):
        g.update((other, backend.to_device(np.zeros(3))))
    with pytest.raises(ValueError, match="overlap"):
        g.update((into, other[::-1]))
    other[...] = 3
    g.launch()  # as it was before the refused ones
    assert backend.to_host(into).tolist() == backend.to_host(z).tolist() == [3] * 6


def test_an_array_that_an_operator_reads_cannot_be_replaced(backend: Backend) -> None:
    """It would be replaced in some of the calls alone."""
    x, new = backend.to_device(np.arange(4.0)), backend.to_device(np.full(4, 9.0))
    places = backend.to_device(np.array([3, 2, 1, 0]))
    table = x
    gathers: list[Callable[[], Any]] = [
        lambda: ga.copy(ga.lazy.take(x, places)),
        lambda: ga.transform(lambda place: table[place], places),
    ]
    for gather in gathers:
        for is_argument in (False, True):
            with ga.graph(backend.name) as g:
                found = gather()
                if is_argument:
                    ga.reduce(x)
            with pytest.raises(ValueError, match=r"^Graph.update: .* reads an old array"):
                g.update((x, new))
            g.launch()
            assert backend.to_host(found).tolist() == [3.0, 2.0, 1.0, 0.0]
    with ga.graph(backend.name) as g:
        found, total = gathers[1](), ga.reduce(x)
    table = new  # what the operator reads is read again
    g.update((x, new))
    g.launch()
    assert backend.to_host(found).tolist() == [9.0] * 4
    assert float(backend.to_host(total)) == 36.0


class Exported:
    """An array known by its protocol alone: each look at it gives another object."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array

    @property
    def __array_interface__(self) -> Any:
        return self._array.__array_interface__


def test_an_array_is_known_by_its_memory() -> None:
    """For `Graph.update`; no GPU is needed to see which arrays are replaced."""
    memory = np.arange(12.0)
    old, other, new = Exported(memory[:4]), memory[4:8], Exported(memory[8:])
    requests = [
        describe("test", ga.transform, (lambda a, b: a + b, old, other), {})._replace(out=result)
        for result in (np.zeros(4), memory[:4])
    ]
    recorded = Graph.__new__(Graph)
    recorded._calls = requests
    successors = dict([recorded._successor(old, new)])
    into_another, in_place = (_with_arrays(request, successors) for request in requests)
    assert [address_of(view) for view in into_another.views] == [
        memory[8:].ctypes.data, other.ctypes.data
    ]  # fmt: skip
    assert into_another.out is requests[0].out
    assert in_place.out is new
    for stranger in (Exported(memory[:3]), memory[:4].view(np.int64), memory[1:5], memory[:8:2]):
        with pytest.raises(ValueError, match=r"does not touch an old array"):
            recorded._successor(stranger, new)


class Lent:
    """A device array that shows DLPack alone."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **asked: Any) -> Any:
        return self._array.__dlpack__(**asked)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


def test_update_of_arrays_known_by_protocol(cuda: Backend) -> None:
    a, b = sample(), sample(seed=1)
    x, successor, result = (cuda.to_device(h) for h in (a, b, np.zeros(N, np.int32)))
    with ga.graph() as g:
        ga.inclusive_scan(Lent(x), out=Lent(result))
    other = cuda.xp.zeros_like(result)
    g.update((Lent(x), Lent(successor)), (Lent(result), Lent(other)))
    g.launch()
    np.testing.assert_array_equal(cuda.to_host(other), np.cumsum(b, dtype=np.int32))
    assert not cuda.to_host(result).any()


# --- beside others: their arrays, raw memory, and captures that they make


def test_arrays_of_torch_and_raw_memory(cuda: Backend) -> None:
    torch = pytest.importorskip("torch", reason="its tensors go untested")
    t = torch.arange(N, device="cuda", dtype=torch.int32)
    x = cuda.to_device(sample())
    torch.cuda.synchronize()
    view = ga.from_pointer(x.data.ptr, N, np.int32, owner=x)
    with ga.graph() as g:
        summed = ga.inclusive_scan(t)
        ordered = ga.radix_sort(view)
    for _ in range(2):
        g.launch()
    torch.cuda.synchronize()
    want = np.cumsum(np.arange(N, dtype=np.int32), dtype=np.int32)
    np.testing.assert_array_equal(summed.cpu().numpy(), want)
    np.testing.assert_array_equal(ordered.copy_to_host(), np.sort(sample()))


@pytest.mark.parametrize("is_default", [True, False])
def test_results_known_by_protocol_wait_for_the_launch(
    cuda: Backend, gate: Gate, is_default: bool
) -> None:
    n, home = scaled(1 << 20, emulated=1 << 14), cuda.xp.cuda.Stream.null
    if not is_default:
        home = cuda.xp.cuda.Stream(non_blocking=True)
    x = cuda.xp.ones(n, np.int64)
    cuda.xp.cuda.Device().synchronize()
    view = ga.from_pointer(x.data.ptr, n, np.int64, owner=x, stream=home)
    with ga.graph() as g:
        y = ga.inclusive_scan(view)
        for _ in range(20):
            y = ga.inclusive_scan(y)
    g.launch()
    assert y[:3].copy_to_host().tolist() == [1, 22, 253]
    x[...] = 2
    with ThreadPoolExecutor(1) as pool:
        with gate.hold(home):
            g.launch()
            call = pool.submit(y[:3].copy_to_host)
            assert gate.blocks(call)
        assert call.result().tolist() == [2, 44, 506]


def test_capture_by_others(cuda: Backend) -> None:
    """CuPy's and cuda.core's captures record calls as well; torch's: test_devices.py."""
    from cuda.core import Device

    x, y = cuda.to_device(sample()), cuda.xp.zeros(N, np.int32)
    ga.inclusive_scan(x, out=y)
    ga.radix_sort(x, out=y)
    stream = cuda.xp.cuda.Stream(non_blocking=True)
    stream.begin_capture()
    ga.inclusive_scan(x, out=y, stream=stream)
    recorded = stream.end_capture()
    y[...] = 0
    cuda.xp.cuda.Device().synchronize()
    recorded.launch(stream)
    stream.synchronize()
    np.testing.assert_array_equal(cuda.to_host(y), np.cumsum(sample(), dtype=np.int32))
    device = Device(0)
    device.set_current()
    builder = device.create_graph_builder().begin_building()
    ga.radix_sort(x, out=y, stream=builder.stream)
    graph = builder.end_building().complete()
    y[...] = 0
    cuda.xp.cuda.Device().synchronize()
    own = device.create_stream()
    graph.launch(own)
    own.sync()
    np.testing.assert_array_equal(cuda.to_host(y), np.sort(sample()))


def test_a_launch_is_not_captured(cuda: Backend) -> None:
    with ga.graph() as g:
        ga.copy(cuda.to_device(sample()), out=cuda.to_device(sample()))
    stream = cuda.xp.cuda.Stream(non_blocking=True)
    stream.begin_capture()
    try:
        with pytest.raises(RuntimeError, match=r"stream is being captured"):
            g.launch(stream)
    finally:
        stream.end_capture()
    g.launch(stream)
    stream.synchronize()


def test_an_init_of_one_element_is_read_at_the_recording(backend: Backend) -> None:
    init, x = np.array([2.0]), backend.to_device(np.arange(8.0))
    with ga.graph(None if backend.name == "cuda" else "cpu") as g:
        total, sums = ga.reduce(x, init), ga.inclusive_scan(x, init)
    g.launch()
    init[0] = 50
    g.launch()
    assert backend.to_host(total) == 30
    assert backend.to_host(sums)[-1] == 30


def test_plans_and_graphs_are_not_pickled(backend: Backend) -> None:
    x = backend.to_device(np.arange(8.0))
    plan = ga.prepare(ga.reduce, x)
    plan(x)
    with ga.graph(None if backend.name == "cuda" else "cpu") as g:
        ga.reduce(x)
    with pytest.raises(TypeError, match=r"^a plan cannot be pickled; "):
        pickle.dumps(plan)
    with pytest.raises(TypeError, match=r"^a graph cannot be pickled or copied; "):
        pickle.dumps(g)
    with pytest.raises(TypeError, match=r"^a graph cannot be pickled or copied; "):
        copy.deepcopy(g)
    assert copy.copy(plan) is plan
    assert copy.deepcopy(plan)(x) == 28
