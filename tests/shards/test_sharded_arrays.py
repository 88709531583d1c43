"""The type itself: cutting, cutting anew, gathering, errors, threads, several GPUs."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from sharded import check, cut, devices, on_host
from support import Backend, a_few, compose, count_gpus, is_emulated, scaled
from support import affine as packed

import gpualgo as ga


@pytest.mark.parametrize(("n", "lengths"), [(8, [3, 3, 2]), (2, [1, 1, 0]), (0, [0, 0, 0])])
def test_equal_shares(backend: Backend, n: int, lengths: list[int]) -> None:
    h = np.arange(n, dtype=np.float32)
    x = cut(backend, h, 3)
    assert (x.shape, x.dtype, x.axis, x.ndim, x.size, len(x)) == ((n,), h.dtype, 0, 1, n, n)
    assert x.nbytes == h.nbytes
    assert x.devices == tuple(devices(backend, 3))
    assert [shard.shape[0] for shard in x.shards] == lengths
    assert np.array_equal(np.concatenate([on_host(shard) for shard in x.shards]), h)
    assert repr(x).startswith(f"ShardedArray(shape=({n},), dtype=float32, axis=0, ")
    check(x.gather(), h)
    assert np.array_equal(x.gather("cpu"), h)


ON_ONE_GPU = pytest.mark.skipif(
    is_emulated and count_gpus() > 1, reason="the emulator has CuPy's arrays on one GPU alone"
)


@ON_ONE_GPU
@pytest.mark.parametrize("layout", ["contiguous", "fortran", "step", "reversed"])
def test_cut_anew(backend: Backend, layout: str) -> None:
    h = np.arange(60).reshape(3, 5, 4)
    given = backend.arrange(layout, h)
    for axis in range(3):
        x = ga.distribute(given, devices(backend, 3), axis=axis)
        check(x.gather(), h)
        for other in range(3):
            again = ga.distribute(x, devices(backend, 2), axis=other)
            assert again.axis == other
            check(again.gather(), h)
        assert ga.distribute(x, axis=axis).devices == x.devices
    to_host = ga.distribute(x, ["cpu:0", "cpu:1"])
    assert all(type(shard) is np.ndarray for shard in to_host.shards)
    check(to_host.gather(), h)


def test_libraries_come_back(cuda: Backend) -> None:
    h = np.arange(7)
    x = ga.distribute(cuda.to_device(h), ["cuda:0", "cuda:0"])
    assert all(isinstance(shard, cuda.xp.ndarray) for shard in x.shards)
    total = ga.reduce(x)
    assert isinstance(total, cuda.xp.ndarray)
    assert int(total.get()) == 21
    assert isinstance(ga.argsort(x, descending=True).gather(), cuda.xp.ndarray)
    check(ga.argsort(x, descending=True), ga.argsort(h, descending=True))
    check(ga.select(x, lambda a: a > 2), h[3:])
    assert type(ga.distribute(h, ["cuda:0"]).shards[0]) is ga.DeviceArray


@ON_ONE_GPU
def test_shards_of_other_streams(cuda: Backend, gate: Any) -> None:
    """What is still being written on another stream is waited for, on the GPU."""
    h = packed(scaled(4000, emulated=300))
    stream = cuda.xp.cuda.Stream(non_blocking=True)
    source, late = cuda.to_device(h), cuda.xp.zeros(len(h), h.dtype)
    shards = [
        ga.from_pointer(part.data.ptr, part.shape, part.dtype, owner=part, stream=stream)
        for part in (late[:100], late[100:150], late[150:])
    ]
    x = ga.ShardedArray.from_shards(shards)

    def calls() -> Any:
        with stream:
            late[...] = source
        return ga.reduce(x, None, compose), ga.inclusive_scan(x, None, compose)

    calls()  # loads and allocates
    late[...] = 1
    cuda.xp.cuda.Device().synchronize()
    with gate.hold(stream):
        found = calls()
        assert gate.holds(stream)
    check(found, (ga.reduce(h, None, compose), ga.inclusive_scan(h, None, compose)))


def test_from_shards(backend: Backend) -> None:
    h = packed(10)
    cuts = [h[:5], h[5:5], h[5:6], h[6:]]
    x = ga.ShardedArray.from_shards([backend.to_device(part) for part in cuts])
    assert x.lengths == (5, 0, 1, 4)
    check(ga.exclusive_scan(x, 1 << 32, compose), ga.exclusive_scan(h, 1 << 32, compose))
    check(ga.radix_sort(x), ga.radix_sort(h))
    assert ga.radix_sort(x).lengths == x.lengths
    check(ga.distribute(x).gather(), h)
    assert ga.distribute(x).lengths == (3, 3, 2, 2)
    rows = [backend.arrange("fortran", part.reshape(-1, 5)) for part in (h, h[:5])]
    both = np.concatenate([h, h[:5]])
    check(ga.ShardedArray.from_shards(rows).gather(), both.reshape(-1, 5))
    got = ga.inclusive_scan(ga.ShardedArray.from_shards(rows), None, compose)
    check(got, ga.inclusive_scan(both, None, compose))
    with pytest.raises(TypeError, match="list of arrays"):
        ga.ShardedArray.from_shards([])
    with pytest.raises(TypeError, match="shard 1 is float64"):
        ga.ShardedArray.from_shards([np.arange(3), np.zeros(3)])
    with pytest.raises(ValueError, match=r"shard 1 has shape \(3, 2\)"):
        ga.ShardedArray.from_shards([np.zeros((3, 3)), np.zeros((3, 2))])
    with pytest.raises(np.exceptions.AxisError):
        ga.ShardedArray.from_shards([np.zeros(3)], axis=1)


def test_what_is_no_array_over_devices() -> None:
    h = np.arange(4)
    for wrong, error, match in (
        (["gpu"], ValueError, "unknown device 'gpu'"),
        (["cpu", 1.5], TypeError, "a device must be a name"),
        (1.5, TypeError, "devices must be a list"),
        ([], ValueError, "devices is empty"),
        ([-1], ValueError, "is negative"),
        (["cuda:99"], ga.NoDeviceError, "cuda:99 was asked for"),
    ):
        with pytest.raises(error, match=match):
            ga.distribute(h, wrong)
    x = ga.distribute(h, ["cpu:0", "cpu:1"])
    with pytest.raises(TypeError, match=r"x.gather\('cpu'\)"):
        np.asarray(x)
    with pytest.raises(TypeError, match="subscriptable"):
        x[0]  # type: ignore[index]
    with pytest.raises(ValueError, match="no dimension"):
        ga.distribute(np.zeros(()), ["cpu"])
    with pytest.raises(TypeError, match=r"structured dtype.*tuple"):
        ga.distribute(np.zeros(3, "i4,f4"), ["cpu"])
    with pytest.raises(TypeError, match="not plain bytes"):
        ga.distribute(np.array([None, 1]), ["cpu"])
    with pytest.raises(np.exceptions.AxisError):
        ga.distribute(h, ["cpu"], axis=1)
    assert ga.distribute(h, "cpu").devices == ("cpu:0",)
    with ga.default_device("cpu"):
        assert ga.distribute(h).devices == ("cpu:0",)


def test_one_of_several_gpus_without_memory(cuda: Backend) -> None:
    x = ga.distribute(np.arange(10), ["cuda:0", "cuda:0"])
    with pytest.raises(MemoryError, match="cuda:0"):
        ga.distribute(np.broadcast_to(np.int64(1), 1 << 50), ["cuda:0", "cuda:0"])
    check(x, np.arange(10))
    check(ga.inclusive_scan(x), np.cumsum(np.arange(10)))


def test_threads(backend: Backend) -> None:
    n = scaled(3000, emulated=300)
    h = packed(n)
    want = ga.inclusive_scan(h, None, compose), ga.argsort(h)

    def work(count: int) -> None:
        with ga.default_device(backend.name):
            x = cut(backend, h, count)
            for got, expected in zip(
                (ga.inclusive_scan(x, None, compose), ga.argsort(x)), want, strict=True
            ):
                assert np.array_equal(on_host(got), expected)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, (1, 2, 3, 4)))


@pytest.mark.skipif(count_gpus() < 2, reason="two GPUs are needed")
@pytest.mark.parametrize("library", ["numpy", "cupy"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0), (1, 0, 1)])
def test_two_gpus(cuda: Backend, library: str, order: tuple[int, ...]) -> None:
    """Everything once over peers, by copies small and large."""
    if is_emulated and library == "cupy":
        pytest.skip("the emulator has CuPy's arrays on one GPU alone")
    n = scaled(1_000_003, emulated=20_003)
    rng = np.random.default_rng(1)
    h, names = packed(n), rng.integers(0, 5000, n)
    floats = rng.standard_normal(n).astype(np.float32)

    def over(a: Any) -> Any:
        return ga.distribute(a if library == "numpy" else cuda.xp.asarray(a), list(order))

    x, keys, f = over(h), over(names), over(floats)
    assert x.devices == tuple(f"cuda:{number}" for number in order)
    for _ in range(3):
        check(ga.reduce(x, None, compose), ga.reduce(h, None, compose))
        for reverse in a_few((False, True)):
            want = ga.inclusive_scan(h, None, compose, reverse=reverse)
            check(ga.inclusive_scan(x, None, compose, reverse=reverse), want)
        doubled = ga.transform(lambda a, b: a * 2 + b, f, f)
        check(doubled, ga.transform(lambda a, b: a * 2 + b, floats, floats))
        check(ga.histogram(f, 100), ga.histogram(floats, 100))
        check(ga.radix_sort(f, descending=True), ga.radix_sort(floats, descending=True))
        check(ga.argsort(keys), ga.argsort(names))
        check(ga.top_k(f, 1000), ga.top_k(floats, 1000))
        check(ga.select(f, lambda a: a > 1), ga.select(floats, lambda a: a > 1))
        check(ga.reduce_by_key(keys, x, None, compose), ga.reduce_by_key(names, h, None, compose))
        for function in (ga.argmin, ga.argmax, ga.minmax):
            check(function(f), function(floats))
    check(ga.distribute(x, [1, 1, 0]).gather(1), h)
    side = math.isqrt(n)
    rows = ga.distribute(h[: side * side].reshape(side, side), list(order))
    check(ga.distribute(rows, axis=1).gather("cpu"), h[: side * side].reshape(side, side))
