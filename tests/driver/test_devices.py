"""Arrays on each GPU of the machine, whichever GPU is the current one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support import Backend, count_gpus, scaled

import gpualgo as ga

N = scaled(300_001, emulated=10_001)
PAIRS = list(itertools.product(range(count_gpus()), repeat=2))


@pytest.mark.parametrize(("device", "current"), PAIRS)
def test_arrays_run_where_they_live(cuda: Backend, device: int, current: int) -> None:
    cupy = cuda.xp
    host = np.arange(N, dtype=np.int32)
    with cupy.cuda.Device(device):
        x = cupy.asarray(host)
    with cupy.cuda.Device(current):
        total = ga.reduce(x)
        last = ga.reduce(x, None, lambda a, b: b)
        doubled = ga.transform(lambda a: a * 2, x)
        assert cupy.cuda.runtime.getDevice() == current
    for result in (total, last, doubled):
        assert result.device.id == device
    assert int(total.get()) == int(host.sum(dtype=np.int32))
    assert int(last.get()) == host[-1]
    assert np.array_equal(doubled.get(), host * 2)


@pytest.mark.parametrize("device", range(count_gpus()))
def test_host_arrays_on_a_named_gpu(cuda: Backend, device: int) -> None:
    with ga.default_device(f"cuda:{device}"):
        assert float(ga.reduce(np.ones(1000, np.float32))) == 1000
        assert ga.transform(lambda a: a + 1, np.ones(10)).tolist() == [2.0] * 10


@pytest.mark.parametrize("device", range(1, count_gpus()))
def test_arrays_on_two_gpus_are_refused(cuda: Backend, device: int) -> None:
    with cuda.xp.cuda.Device(0):
        first = cuda.xp.ones(10)
    with cuda.xp.cuda.Device(device):
        second = cuda.xp.ones(10)
    with pytest.raises(ValueError, match=f"cuda:0 .*cuda:{device}"):
        ga.transform(lambda a, b: a + b, first, second)


@pytest.mark.parametrize(("device", "current"), PAIRS)
def test_plans_and_graphs_on_each_gpu(cuda: Backend, device: int, current: int) -> None:
    cupy = cuda.xp
    host = np.arange(N, dtype=np.int32)[::-1].copy()
    with cupy.cuda.Device(device):
        x = cupy.asarray(host)
        plan = ga.prepare(ga.radix_sort, x)
        storage = cupy.empty(plan.temp_storage_bytes, np.uint8)
    with cupy.cuda.Device(current):
        ordered = plan(x, temp_storage=storage)
        with ga.graph(f"cuda:{device}") as g:
            scanned = ga.inclusive_scan(x)
            again = ga.radix_sort(x)
        g.launch()
        assert cupy.cuda.runtime.getDevice() == current
    assert ordered.device.id == scanned.device.id == device
    with cupy.cuda.Device(device):
        cupy.cuda.Device().synchronize()
        assert np.array_equal(ordered.get(), host[::-1])
        assert np.array_equal(again.get(), host[::-1])
        assert np.array_equal(scanned.get(), np.cumsum(host, dtype=np.int32))


def test_a_captured_graph_has_storage_of_its_own(cuda: Backend) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch records the graph")
    x = torch.ones(1 << 20, device="cuda")

    def total() -> object:
        return ga.reduce(x, 0.0, lambda a, b: (a + b) * 1.0)

    total()  # compiles before the recording
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        recorded = total()
    for value in (1.0, 3.0):
        x.fill_(value)
        graph.replay()
        beside = total()
        assert float(recorded) == float(beside) == value * (1 << 20)  # type: ignore[arg-type]


def test_conjugate_views_are_refused(cuda: Backend) -> None:
    torch = pytest.importorskip("torch", reason="only PyTorch has lazy conjugates")
    x = torch.ones(4, dtype=torch.complex64, device="cuda")
    for call in (lambda: ga.reduce(x.conj()), lambda: ga.transform(lambda a: a, x, out=x.conj())):
        with pytest.raises(TypeError, match="resolve_conj"):
            call()  # type: ignore[no-untyped-call]


def test_empty_tensors_give_init(cuda: Backend) -> None:
    torch = pytest.importorskip("torch", reason="the filling of PyTorch's results is its own")
    stream = torch.cuda.Stream()
    x = torch.ones((0, 3), device="cuda")
    assert ga.reduce(x, 2.0, axis=0).tolist() == [2.0] * 3
    filled = ga.reduce(x, 2.0, axis=0, stream=stream)
    stream.synchronize()
    assert filled.tolist() == [2.0] * 3
