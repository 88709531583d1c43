"""select and stable_partition against NumPy's indexing with a mask."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gate import Gate
from support import (
    DTYPES,
    Array,
    Backend,
    a_few,
    random_array,
    sampled,
    scaled,
)

import gpualgo as ga
from gpualgo import lazy
from gpualgo._pipeline import counted

TILE = 12_288  # float32 elements, on a GPU
SIZES = [0, 1, 31, 33, 2047, 2049, TILE - 1, TILE, TILE + 1, 2 * TILE + 77,
         scaled(1_000_003, emulated=70_001)]  # fmt: skip
Point = namedtuple("Point", "x y")
Make = Callable[..., Array]


def marks(n: Any, seed: int = 1, share: float = 0.4) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).random(n) < share


def same(backend: Backend, got: Any, want: np.ndarray[Any, Any]) -> None:
    """Assert equality of all bits."""
    got = backend.to_host(got)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    assert got.tobytes() == np.ascontiguousarray(want).tobytes()


def new_count(backend: Backend) -> Array:
    return backend.to_device(np.full((), -1, np.int64))


@pytest.mark.parametrize("n", SIZES)
def test_sizes(backend: Backend, n: int) -> None:
    x = random_array(n, np.dtype("float32"))
    given, keep = backend.to_device(x), x > 2
    same(backend, ga.select(given, lambda a: a > 2), x[keep])
    kept, rest = ga.stable_partition(given, lambda a: a > 2)
    same(backend, kept, x[keep])
    same(backend, rest, x[~keep])
    by_mask = backend.to_device(marks(n))
    same(backend, ga.select(given, by_mask), x[marks(n)])
    same(backend, ga.stable_partition(given, by_mask)[1], x[~marks(n)])


@pytest.mark.parametrize("share", [0.0, 0.001, 0.999, 1.0])
def test_shares(backend: Backend, share: float) -> None:
    """A result that is a small part of its memory is moved out of it."""
    n = scaled(300_007, emulated=30_007)
    x, keep = random_array(n, np.dtype("int32")), marks(n, share=share)
    given, mask = backend.to_device(x), backend.to_device(keep)
    same(backend, ga.select(given, mask), x[keep])
    kept, rest = ga.stable_partition(given, mask)
    same(backend, kept, x[keep])
    same(backend, rest, x[~keep])


@pytest.mark.parametrize("dtype", sampled(DTYPES, ("bool", "int8", "bfloat16", "complex128")),
                         ids=str)  # fmt: skip
def test_dtypes(backend: Backend, dtype: np.dtype[Any]) -> None:
    n = scaled(50_021, emulated=20_021 if dtype.itemsize > 1 else 35_021)
    x, keep = random_array(n, dtype), marks(n)
    given, mask = backend.to_device(x), backend.to_device(keep)
    same(backend, ga.select(given, mask), x[keep])
    same(backend, ga.select(given[::-2], mask[::-2]), x[::-2][keep[::-2]])
    same(backend, ga.select(given[1:], mask[1:]), x[1:][keep[1:]])
    kept, rest = ga.stable_partition(given, lambda a: a == a * a)
    want = (x == (x & x if dtype.kind == "b" else x * x)).astype(bool)
    same(backend, kept, x[want])
    same(backend, rest, x[~want])


def test_tuples(backend: Backend) -> None:
    n = 20_011
    x, y, keep = random_array(n, np.dtype("int8")), random_array(n, np.dtype("float64")), marks(n)
    point = Point(backend.to_device(x), backend.to_device(y))
    for predicate, want in ((lambda p: p.x > p.y, x > y), (backend.to_device(keep), keep)):
        found = ga.select(point, predicate)
        assert type(found) is Point
        same(backend, found.x, x[want])
        same(backend, found.y, y[want])
        kept, rest = ga.stable_partition(point, predicate)
        assert type(kept) is type(rest) is Point
        same(backend, kept.y, y[want])
        same(backend, rest.x, x[~want])


def test_structured(backend: Backend) -> None:
    points = np.zeros(5003, [("x", "i2"), ("y", "f8")])
    points["x"], points["y"] = np.arange(5003), random_array(5003, np.dtype("f8"))
    want = points[points["y"] > 1]
    found = ga.select(points, lambda p: p.y > 1)
    assert found.dtype == points.dtype
    assert found.tobytes() == want.tobytes()
    out = np.zeros(6000, points.dtype)
    part = ga.select(points, lambda p: p.y > 1, out=out)
    assert np.shares_memory(part, out)
    assert part.tobytes() == want.tobytes()
    assert not out["y"][len(want) :].any()
    kept, rest = ga.stable_partition(points, lambda p: p.y > 1)
    assert kept.tobytes() == want.tobytes()
    assert rest.tobytes() == points[points["y"] <= 1].tobytes()


def test_lazy_inputs(backend: Backend) -> None:
    n = 20_011
    x, keep = random_array(n, np.dtype("int32")), marks(n)
    given, mask = backend.to_device(x), backend.to_device(keep)
    doubled = lazy.transform(lambda a: a // 2, given)
    same(backend, ga.select(doubled, lambda a: a > 5), (x // 2)[x // 2 > 5])
    same(backend, ga.select(doubled, mask), (x // 2)[keep])
    same(backend, ga.select(given, lazy.asarray(given) % 3 == 0), x[x % 3 == 0])
    same(backend, ga.select(lazy.arange(n), mask), np.flatnonzero(keep))
    places, values = ga.select((lazy.arange(n), given), lambda p: p[1] > 0)
    same(backend, places, np.flatnonzero(x > 0))
    same(backend, values, x[x > 0])
    places, values = ga.stable_partition((lazy.arange(n), given), mask)[1]
    same(backend, places, np.flatnonzero(~keep))
    same(backend, values, x[~keep])


@pytest.mark.parametrize("layout", ["contiguous", "step", "reversed"])
@pytest.mark.parametrize("extra", [5, 0, -1, -4000])
def test_outputs(backend: Backend, guarded: Make, layout: str, extra: int) -> None:
    """Nothing is written past the end of out, or behind what is kept; the count is told."""
    x = random_array(10_007, np.dtype("int16"))
    want = x[x > 99]
    size, given = len(want) + extra, backend.to_device(x)
    fresh = guarded((size,), x.dtype, layout)
    before = backend.to_host(fresh).copy()
    count = new_count(backend)
    assert ga.select(given, lambda a: a > 99, out=fresh, out_count=count) is fresh
    assert int(backend.to_host(count)) == len(want)
    same(backend, fresh[: len(want)], want[:size])
    same(backend, fresh[len(want) :], before[len(want) :])
    alone = guarded((size,), x.dtype, layout)
    if extra < 0:
        with pytest.raises(ValueError, match=rf"out has room for {size} .* has {len(want)}"):
            ga.select(given, lambda a: a > 99, out=alone)
        return
    found = ga.select(given, lambda a: a > 99, out=alone)
    assert (found is alone) == (extra == 0)
    same(backend, found, want)


def test_outputs_of_partitions(backend: Backend, guarded: Make) -> None:
    x = random_array(10_007, np.dtype("float32"))
    given, keep = backend.to_device(x), x > 1
    for layout in a_few(("contiguous", "step", "reversed")):
        out, count = guarded(x.shape, x.dtype, layout), new_count(backend)
        assert ga.stable_partition(given, lambda a: a > 1, out=out, out_count=count) is out
        same(backend, out, np.concatenate([x[keep], x[~keep]]))
        assert int(backend.to_host(count)) == keep.sum()
        kept, rest = ga.stable_partition(given, lambda a: a > 1, out=out)
        same(backend, kept, x[keep])
        same(backend, rest, x[~keep])


@pytest.mark.parametrize("dtype", ["int8", "float32", "int64"])
def test_marks_of_any_byte(backend: Backend, dtype: str) -> None:
    """What is not 0 is true."""
    values = np.array([0, 1, 2, 0x7F, 0x80, 0xFF, 0, 0], np.uint8)
    bytes_of_marks = np.random.default_rng(3).choice(values, 9001)
    x = random_array(9001, np.dtype(dtype))
    marked = backend.to_device(bytes_of_marks).view(bool)
    same(backend, ga.select(backend.to_device(x), marked), x[bytes_of_marks != 0])
    rest = ga.stable_partition(backend.to_device(x), marked)[1]
    same(backend, rest, x[bytes_of_marks == 0])


def test_graphs(cuda: Backend) -> None:
    x = random_array(20_011, np.dtype("int32"))
    given, out = cuda.to_device(x), cuda.to_device(np.zeros(20_011, np.int32))
    count = new_count(cuda)
    with ga.graph() as g:
        assert ga.select(given, lambda a: a > 9, out=out, out_count=count) is out
    for seed in (1, 2):
        x = random_array(20_011, np.dtype("int32"), seed)
        given[...] = cuda.to_device(x)
        g.launch()
        same(cuda, out[: int(cuda.to_host(count))], x[x > 9])
    others = cuda.to_device(np.zeros(20_011, np.int32)), cuda.to_device(np.zeros(1, np.int64))
    with ga.graph() as g:
        ga.select(given, lambda a: a > 9, out=out, out_count=count.reshape(1))
    g.update((out, others[0]), (count.reshape(1), others[1]))
    g.launch()
    same(cuda, others[0][: int(cuda.to_host(others[1])[0])], x[x > 9])
    for more in ({}, {"out": out}):
        with pytest.raises(RuntimeError, match="cannot be recorded"), ga.graph():
            ga.select(given, lambda a: a > 9, **more)


def test_a_capture_of_others(cuda: Backend) -> None:
    """What would wait is refused before anything is captured."""
    x = random_array(20_011, np.dtype("int32"))
    given, out = cuda.to_device(x), cuda.to_device(np.zeros(20_011, np.int32))
    count, stream = new_count(cuda), cuda.xp.cuda.Stream(non_blocking=True)
    cuda.xp.cuda.Device().synchronize()
    ga.select(given, lambda a: a > 9, out=out, out_count=count, stream=stream)
    stream.synchronize()
    stream.begin_capture()
    for more in ({}, {"out": out}):
        with pytest.raises(RuntimeError, match="cannot be recorded"):
            ga.select(given, lambda a: a > 9, stream=stream, **more)
    ga.select(given, lambda a: a > 9, out=out, out_count=count, stream=stream)
    recorded = stream.end_capture()
    out[...] = 0
    cuda.xp.cuda.Device().synchronize()
    recorded.launch(stream)
    stream.synchronize()
    same(cuda, out[: int(cuda.to_host(count))], x[x > 9])


def test_no_waiting(cuda: Backend, gate: Gate) -> None:
    x = random_array(20_011, np.dtype("int32"))
    given, out = cuda.to_device(x), cuda.to_device(np.zeros(20_011, np.int32))
    count, stream = new_count(cuda), cuda.xp.cuda.Stream(non_blocking=True)

    def run() -> None:
        ga.select(given, lambda a: a > 9, out=out, out_count=count, stream=stream)

    cuda.xp.cuda.Device().synchronize()
    run()
    stream.synchronize()
    count[...] = -1
    cuda.xp.cuda.Device().synchronize()
    with gate.hold(stream):
        run()
        assert gate.holds(stream)
    stream.synchronize()
    same(cuda, out[: int(cuda.to_host(count))], x[x > 9])


def test_large_arrays_go_by_blocks(cuda: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpualgo._algorithms.select import cuda as blocks

    monkeypatch.setattr(blocks, "BLOCK_BYTES", 5000)
    x, keep = random_array((7, 999), np.dtype("float32")), marks((7, 999))
    locked = ga.empty_pinned(x.shape, x.dtype)
    locked[...] = x
    for given in (x, locked, x[:, ::-1][:, ::-1]):
        same(cuda, ga.select(given, lambda a: a > 1), x[x > 1])
        kept, rest = ga.stable_partition(given, keep)
        same(cuda, kept, x[keep])
        same(cuda, rest, x[~keep])
        same(cuda, ga.select(lazy.arange(7 * 999).reshape(7, 999), keep), np.flatnonzero(keep))
    out, count = np.full(100, 7, np.float32), np.empty((), np.int64)
    ga.select(x, keep, out=out, out_count=count)
    same(cuda, out, x[keep][:100])
    assert count == keep.sum()


def test_storage_that_holds_the_count(cuda: Backend) -> None:
    """A count would be written into what the kernel works with."""
    x = cuda.to_device(random_array(20_011, np.dtype("int32")))
    out = cuda.to_device(np.zeros(20_011, np.int32))
    plan = ga.prepare(ga.select, x, lambda a: a > 0)
    storage = cuda.to_device(np.zeros(plan.temp_storage_bytes, np.uint8))
    count = storage[:8].view(np.int64).reshape(())
    with pytest.raises(ValueError, match=r"^select: temp_storage shares memory"):
        plan(x, out=out, out_count=count, temp_storage=storage)


def test_memory_of_short_results() -> None:
    """On a GPU a result is copied if most of its memory would be wasted, unless that is little."""
    for size, is_copied in ((1 << 17, False), ((1 << 17) + 1, True)):
        memory = np.arange(size)
        found = counted._shortened(memory, 3)
        assert found.tolist() == [0, 1, 2]
        assert np.shares_memory(found, memory) is not is_copied
    assert np.shares_memory(counted._shortened(memory, memory.size // 4 + 1), memory)
