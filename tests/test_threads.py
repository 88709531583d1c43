"""Calls from several threads at once, on one stream and on several, and on the CPU's cores."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from gate import Gate
from support import Backend, assert_same, random_array, scaled

import gpualgo as ga

SIZES = (900, 20_000, 150_000)  # storage within a stream's workspace, partly, and beyond it

CALLS: dict[str, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "radix_sort": ("int32", ga.radix_sort, np.sort),
    "argsort": ("int16", ga.argsort, lambda x: np.argsort(x, kind="stable")),
    "counting": ("uint16", ga.radix_sort, np.sort),
    "scan": ("int64", ga.inclusive_scan, np.cumsum),
    "reduce": ("int64", ga.reduce, np.sum),
    "histogram": (
        "int32",
        lambda x: ga.histogram(x, 300, (-(2**31), 2**31 - 1)),
        lambda x: np.histogram(x, 300, (-(2**31), 2**31 - 1))[0],
    ),
}


@pytest.mark.parametrize("n", SIZES)
def test_algorithms_side_by_side(backend: Backend, n: int) -> None:
    work = []
    for seed in range(scaled(24, emulated=3)):
        for dtype, call, reference in CALLS.values():
            x = random_array(n, np.dtype(dtype), seed)
            work.append((call, backend.to_device(x), np.asarray(reference(x))))

    def run(item: tuple[Any, Any, Any]) -> Any:
        call, x, _ = item
        with ga.default_device(backend.name):
            return call(x)

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(run, work))
    for got, (_, _, want) in zip(results, work, strict=True):
        assert_same(backend.to_host(got), want)


def test_many_operators_are_built_side_by_side(backend: Backend) -> None:
    """Equal operators once, different ones without disturbing each other."""
    x = backend.to_device(random_array(3000, np.dtype("int64"), 1) % 1000)
    host = backend.to_host(x)

    def operator(k: int) -> Callable[[Any], Any]:
        return lambda a: a * k + 1

    def run(k: int) -> Any:
        with ga.default_device(backend.name):
            return ga.transform(operator(k), x)

    ks = [k % 6 for k in range(36)]
    with ThreadPoolExecutor(12) as pool:
        results = list(pool.map(run, ks))
    for k, got in zip(ks, results, strict=True):
        assert_same(backend.to_host(got), host * k + 1)


def test_streams_of_their_own(cuda: Backend) -> None:
    """Each thread on its own stream: storage is never shared, nor used again too early."""
    n, rounds = scaled(1 << 21, emulated=1 << 14), scaled(6, emulated=2)
    hosts = [random_array(n, np.dtype("int32"), seed) for seed in range(4)]
    arrays = [cuda.to_device(host) for host in hosts]
    cuda.xp.cuda.Device().synchronize()

    def run(x: Any) -> list[Any]:
        stream = cuda.xp.cuda.Stream(non_blocking=True)
        found = []
        for _ in range(rounds):
            y = ga.radix_sort(x, stream=stream)
            found.append((y, ga.inclusive_scan(y, stream=stream), ga.reduce(y, stream=stream)))
        stream.synchronize()
        return found

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(run, arrays))
    for host, found in zip(hosts, results, strict=True):
        ordered = np.sort(host)
        for y, scanned, total in found:
            assert_same(cuda.to_host(y), ordered)
            assert_same(cuda.to_host(scanned), np.cumsum(ordered, dtype=np.int32))
            assert int(total) == int(host.sum(dtype=np.int32))


def test_streams_overlap(cuda: Backend, gate: Gate) -> None:
    """A call on one stream is done while another stream is held."""
    busy, free = (cuda.xp.cuda.Stream(non_blocking=True) for _ in range(2))
    x = cuda.to_device(random_array(scaled(1 << 20, emulated=1 << 14), np.dtype("int32")))
    cuda.xp.cuda.Device().synchronize()
    want = np.sort(cuda.to_host(x))
    ga.radix_sort(x, stream=free)  # compiles, loads, takes memory
    with gate.hold(busy):
        got = ga.radix_sort(x, stream=free)
        assert gate.passes(free)
        assert not busy.done
    assert_same(cuda.to_host(got), want)
