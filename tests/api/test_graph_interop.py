"""Graphs beside others: their arrays, raw memory, and captures that they make."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from gate import Gate
from support import Backend, scaled

import gpualgo as ga

N = scaled(200_003, emulated=6_003)


def sample(n: int = N, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(-1000, 1000, n).astype(np.int32)


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
