"""Arrays that operators capture, on GPUs: swaps, streams, libraries and lifetimes."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from gate import Gate
from support import Backend, a_few, assert_same, scaled

import gpualgo as ga
from gpualgo._cuda import build

Function = Callable[..., Any]


def _lookup(table: Any) -> Function:
    return lambda i: table[i]


def _sum_mod(table: Any) -> Function:
    return lambda a, b: table[a + b]


def test_swapping_builds_nothing(cuda: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    x = cuda.to_device(np.array([1, 0, -1]))
    ga.transform(_lookup(cuda.to_device(np.zeros(3))), x)

    def link(*_: Any) -> Any:
        raise AssertionError("built")

    monkeypatch.setattr(build, "_build", link)
    for n in range(2, 150):  # more than stay loaded
        table = np.arange(n) * 0.5
        got = ga.transform(_lookup(cuda.to_device(table)), x)
        assert_same(cuda.to_host(got), table[[1, 0, -1]])
    kept = [cuda.to_device(np.arange(3.0) + k) for k in range(100)]
    for _ in range(2):
        for k, table in enumerate(kept):
            assert_same(cuda.to_host(ga.transform(_lookup(table), x)), np.array([1.0, 0, 2]) + k)


def test_a_table_lives_until_the_call_has_run(cuda: Backend, gate: Gate) -> None:
    """Its memory is not handed out again while kernels that read it wait."""
    xp, n = cuda.xp, scaled(1 << 20, emulated=1 << 13)
    x = cuda.to_device(np.arange(n))
    stream = xp.cuda.Stream(non_blocking=True)
    warm = xp.arange(n, dtype=np.float64)
    ga.transform(_lookup(warm), x)
    alive = []
    for turn in range(5):
        table = xp.arange(n, dtype=np.float64) + turn
        alive.append(weakref.ref(table))
        xp.cuda.Device().synchronize()
        # Loads the copy of the kernel that reads this table; leaves a block to be taken below.
        ga.transform(_lookup(table), x, stream=stream.ptr)
        xp.full(n, -1.0)
        with gate.hold(stream):
            got = ga.transform(_lookup(table), x, stream=stream.ptr)
            del table
            gc.collect()
            assert alive[-1]() is not None
            clobber = xp.full(n, -1.0)  # would take the freed memory
            gate.settle(xp.cuda.Stream.null)
            assert gate.holds(stream)
        stream.synchronize()
        assert_same(cuda.to_host(got), np.arange(n) + float(turn))
        del clobber
    for _ in range(2):
        ga.transform(_lookup(warm), x)
        xp.cuda.Device().synchronize()
    gc.collect()
    ga.transform(_lookup(warm), x, stream=stream.ptr)
    gc.collect()
    assert sum(reference() is not None for reference in alive) <= 1
    stream.synchronize()  # before x goes, which is in the order of another stream


def test_a_table_that_is_still_being_written(cuda: Backend, gate: Gate) -> None:
    xp = cuda.xp
    x = np.arange(1000)
    stream = xp.cuda.Stream(non_blocking=True)
    with stream:
        table = xp.zeros(1000)
        table[...] = 1

    def call() -> Any:
        with ga.default_device("cuda"), stream:  # both are a thread's own
            return ga.transform(_lookup(table), x)  # staged, on streams of the library's own

    assert_same(call(), np.ones(1000))
    with ThreadPoolExecutor(1) as pool:
        with gate.hold(stream):
            with stream:
                table[...] = 7
            got = pool.submit(call)
            assert gate.blocks(got)
        assert_same(got.result(), np.full(1000, 7.0))


def test_tables_by_protocol(cuda: Backend) -> None:
    table = cuda.to_device(np.arange(6.0))
    view = ga.from_pointer(table.data.ptr, (3,), np.float64, owner=table)
    x = cuda.to_device(np.array([2, 0]))
    assert_same(cuda.to_host(ga.transform(_lookup(view), x)), np.array([2.0, 0.0]))
    assert_same(cuda.to_host(ga.transform(_lookup(view[::2][::-1]), x[1:])), np.array([2.0]))


def test_tables_of_torch(cuda: Backend) -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor([1, 0, -1], device="cuda")
    for dtype in a_few(
        (torch.float32, torch.bfloat16, torch.float16, torch.bool, torch.complex64), 2
    ):
        table = torch.tensor([0, 1, 3], device="cuda").to(dtype)
        got = ga.transform(_lookup(table), x)
        assert got.dtype == dtype
        assert torch.equal(got, table[x])
    got = ga.transform(_lookup(torch.arange(3.0, device="cuda")), cuda.to_device(np.array([2])))
    assert_same(cuda.to_host(got), np.array([2], np.float32))


@pytest.mark.parametrize("is_pinned", [False, True])
def test_numpy_tables_with_numpy_arrays(cuda: Backend, is_pinned: bool) -> None:
    """They are staged like the other arrays, so that one program runs with a GPU and without."""
    x = ga.empty_pinned(1000, np.int64) if is_pinned else np.empty(1000, np.int64)
    out = ga.empty_pinned(1000, np.int64) if is_pinned else np.empty(1000, np.int64)
    x[...] = np.random.default_rng(0).integers(0, 7, 1000)
    table = np.arange(14) % 7
    for shift in range(3):
        table[...] = (np.arange(14) + shift) % 7
        op, strided = _sum_mod(table), np.repeat(table, 3)[::3]
        want = [x[0]]
        for item in x[1:]:
            want.append((want[-1] + item + shift) % 7)
        assert ga.reduce(x, None, op) == want[-1]
        assert_same(ga.inclusive_scan(x, None, op, out=out), np.array(want))
        assert_same(ga.transform(_lookup(table), x, out=out), table[x])
        assert_same(ga.transform(_lookup(strided), x), table[x])


def test_tables_in_page_locked_memory(cuda: Backend) -> None:
    table = ga.empty_pinned(4, np.float64)
    x = cuda.to_device(np.array([3, 1]))
    for value in range(3):
        table[...] = np.arange(4) * value
        assert_same(cuda.to_host(ga.transform(_lookup(table), x)), np.array([3.0, 1.0]) * value)


def test_wrong_places_are_refused(cuda: Backend) -> None:
    x = cuda.to_device(np.array([1, 0]))
    with pytest.raises(TypeError, match=r"numpy on the CPU .*runs on cuda:0; capture an array"):
        ga.transform(_lookup(np.zeros(2)), x)
    with ga.default_device("cpu"), pytest.raises(TypeError, match=r"cupy on cuda:0 .*on the CPU"):
        ga.transform(_lookup(cuda.to_device(np.zeros(2))), np.arange(2))
    table = cuda.to_device(np.arange(4))
    with pytest.raises(ValueError, match="op captures"):
        ga.transform(_lookup(table), x, out=table[2:])
    with pytest.raises(ValueError, match="op captures"):
        ga.inclusive_scan(x, None, _sum_mod(table), out=table[2:])
