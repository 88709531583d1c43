"""prepare: plans give what the functions give, take new arrays alike, and refuse others."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from support import Backend

import gpualgo as ga

N = 300_001


def sample(n: int = N, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(-1000, 1000, n).astype(np.int32)


def test_several_arrays(backend: Backend) -> None:
    a, b = sample(), sample(seed=1)
    x, y = backend.to_device(a), backend.to_device(b)
    plan = ga.prepare(ga.transform, lambda p, q: p * 3 + q, y, x)
    np.testing.assert_array_equal(backend.to_host(plan(x, y)), a * 3 + b)
    out = backend.to_device(a.copy())
    plan(out, y, out=out)  # in place
    np.testing.assert_array_equal(backend.to_host(out), a * 3 + b)
    pairs = ga.prepare(ga.radix_sort, x, y)
    keys, values = pairs(y, x)
    order = np.argsort(b, kind="stable")
    np.testing.assert_array_equal(backend.to_host(keys), b[order])
    np.testing.assert_array_equal(backend.to_host(values), a[order])
    outs = backend.to_device(np.zeros_like(a)), backend.to_device(np.zeros_like(a))
    assert pairs(y, x, out=outs) is outs
    np.testing.assert_array_equal(backend.to_host(outs[1]), a[order])


def test_the_same_arrays_again(cuda: Backend) -> None:
    """The shortest way: for two arrays just used, while they live and stay as they are."""
    x, out = cuda.to_device(sample(1000)), cuda.xp.zeros(1000, np.int32)
    plan = ga.prepare(ga.inclusive_scan, x)
    for k in (1, 2, 3):
        x[...] = k
        assert plan(x, out=out) is out
        assert int(out[-1]) == 1000 * k
    out.shape = (10, 100)
    with pytest.raises(ValueError, match=r"^inclusive_scan: out has shape"):
        plan(x, out=out)
    out.shape = (1000,)
    plan(x, out=out)
    del out
    assert int(plan(x)[-1]) == 3000
    x.shape = (10, 100)
    with pytest.raises(ValueError, match=r"^inclusive_scan: the plan is for shape"):
        plan(x)
    del x
    with pytest.raises(TypeError, match=r"must be an array"):
        plan(None)


def test_what_is_refused(backend: Backend) -> None:
    x = backend.to_device(sample(100))
    plan = ga.prepare(ga.reduce, x)
    with pytest.raises(ValueError, match=r"^reduce: out has shape"):
        plan(x, out=backend.to_device(np.zeros(3, np.int32)))
    with pytest.raises(TypeError, match=r"^prepare: function must be an algorithm"):
        ga.prepare(sorted, x)
    with pytest.raises(TypeError, match=r"op"):
        ga.prepare(ga.reduce, x, None, lambda a: a)


def test_storage_that_is_refused(cuda: Backend) -> None:
    x = cuda.to_device(sample())
    plan = ga.prepare(ga.radix_sort, x)
    size = plan.temp_storage_bytes
    memory = cuda.xp.zeros(2 * size + 1000, np.uint8)
    with pytest.raises(ValueError, match=r"from a multiple of 256 on"):
        plan(x, temp_storage=memory[1 : size + 1])
    with pytest.raises(ValueError, match=r"without gaps"):
        plan(x, temp_storage=memory[: 2 * size : 2])
    with pytest.raises(ValueError, match=r"shares memory"):
        plan(x, out=memory[: x.nbytes].view(np.int32), temp_storage=memory)
    with pytest.raises(ValueError, match=r"on the arrays' GPU"):
        plan(x, temp_storage=np.zeros(size, np.uint8))


def test_cut_storage(cuda: Backend) -> None:
    """One piece of memory serves several plans, as slices of it."""
    x = cuda.to_device(sample())
    plans = [ga.prepare(f, x) for f in (ga.reduce, ga.inclusive_scan, ga.radix_sort)]
    sizes = [-(-plan.temp_storage_bytes // 256) * 256 for plan in plans]
    whole = cuda.xp.zeros(sum(sizes), np.uint8)
    view = ga.from_pointer(whole.data.ptr, whole.shape, np.uint8, owner=whole)
    for i, plan in enumerate(plans):
        begin = sum(sizes[:i])
        got = plan(x, temp_storage=view[begin : begin + sizes[i]])
        want = plan(x)
        np.testing.assert_array_equal(cuda.to_host(got), cuda.to_host(want))


def test_streams(cuda: Backend) -> None:
    x = cuda.to_device(sample())
    plan = ga.prepare(ga.inclusive_scan, x)
    storage = cuda.xp.zeros(plan.temp_storage_bytes, np.uint8)
    cuda.xp.cuda.Device().synchronize()
    stream = cuda.xp.cuda.Stream(non_blocking=True)
    y = plan(x, stream=stream)
    z = plan(x, stream=stream, temp_storage=storage)
    stream.synchronize()
    want = np.cumsum(sample(), dtype=np.int32)
    np.testing.assert_array_equal(cuda.to_host(y), want)
    np.testing.assert_array_equal(cuda.to_host(z), want)


def test_threads(backend: Backend) -> None:
    plan = ga.prepare(ga.inclusive_scan, backend.to_device(sample()))
    failures: list[Any] = []

    def work(seed: int) -> None:
        host = sample(seed=seed)
        x = backend.to_device(host)
        for _ in range(20):
            if not (backend.to_host(plan(x)) == np.cumsum(host, dtype=np.int32)).all():
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
