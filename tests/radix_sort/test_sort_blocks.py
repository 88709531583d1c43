"""Sorts of host arrays that are larger than the memory which a GPU may give them.

One file of more than 300 lines, as all of it runs under one limit of memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support import BFLOAT16, Backend, a_few, assert_same

import gpualgo as ga

Host = np.ndarray[Any, Any]


@pytest.fixture
def small(
    cuda: Backend, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[None]:
    """Let calls take so few bytes that a row of some hundred keys does not fit."""
    from gpualgo._driver import device as gpu
    from gpualgo._driver import staging
    from gpualgo._pipeline import host_whole

    monkeypatch.setitem(gpu.get(0).__dict__, "memory_bytes", 8000)
    monkeypatch.setattr(staging, "DIRECT_BYTES", 256)
    monkeypatch.setattr(staging, "GAPS_BYTES", 256)
    monkeypatch.setattr(staging.pieces, "__defaults__", (200,))
    ran: list[Any] = []
    usual = host_whole.begin
    monkeypatch.setattr(host_whole, "begin", lambda *args: ran.append(1) or usual(*args))
    with ga.default_device("cuda"):
        yield
    assert ran or "as_a_whole" in request.node.name, "nothing went by blocks"


def _on_cpu(function: Any, *arguments: Any, **options: Any) -> Any:
    with ga.default_device("cpu"):
        return function(*arguments, **options)


def _keys(shape: Any, dtype: Any, seed: int = 0) -> Host:
    """Return keys of few values, all special ones among them."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-40, 40, shape).astype(np.int64)
    if np.dtype(dtype).kind == "b":
        return x % 2 == 0
    keys = x.astype(dtype)
    if np.dtype(dtype).kind == "f" or dtype is BFLOAT16:
        with np.errstate(invalid="ignore"):
            special = np.array([np.nan, -0.0, 0.0, np.inf, -np.inf, -np.nan]).astype(dtype)
        keys.reshape(-1)[rng.permutation(keys.size)[:6]] = special
    return keys


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("dtype", ["float32", "int8", "uint64", BFLOAT16], ids=str)
def test_every_kind_of_keys(dtype: Any) -> None:
    x = _keys(1500, dtype)
    p = np.arange(x.size, dtype=np.int32)
    for descending in a_few((False, True)):
        order = _on_cpu(ga.argsort, x, descending=descending)
        assert_same(ga.radix_sort(x, descending=descending), x[order])
        assert_same(ga.argsort(x, descending=descending), order)
        keys, values = ga.radix_sort(x, p, descending=descending)
        assert_same(keys, x[order])
        assert_same(values, p[order])


@pytest.mark.usefixtures("small")
def test_equal_keys_and_long_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that are too long for one block of threads; none of their digits may differ."""
    from gpualgo._algorithms.radix_sort import cuda_passes

    monkeypatch.setattr(cuda_passes, "launch_of", lambda *_: None)
    values = np.arange(700, dtype=np.int32)
    for x in (np.full(700, 7, np.int32), np.arange(700, dtype=np.int32)[::-1].copy()):
        order = np.argsort(x, kind="stable")
        assert_same(ga.radix_sort(x), x[order])
        assert_same(ga.radix_sort(x, values)[1], values[order])


@pytest.mark.usefixtures("small")
def test_index_dtypes_and_bits() -> None:
    x = _keys(900, np.int16)
    order = np.argsort(x, kind="stable")
    for dtype in a_few((np.int32, np.uint32, np.uint64)):
        assert_same(ga.argsort(x, dtype=dtype), order.astype(dtype))
    by_bits = np.argsort(x.view(np.uint16) >> 2 & 7, kind="stable")
    assert_same(ga.radix_sort(x, begin_bit=2, end_bit=5), x[by_bits])


@pytest.mark.usefixtures("small")
def test_values_of_any_size() -> None:
    x = _keys(600, np.float64)
    order = np.argsort(x, kind="stable")
    for dtype in a_few(("u1", "S3", "S40", [("a", "f4"), ("b", "i8")]), 2):
        values = np.frombuffer(
            np.random.default_rng(1).bytes(600 * np.dtype(dtype).itemsize), dtype
        )
        keys, moved = ga.radix_sort(x, values)
        assert keys.tobytes() == x[order].tobytes()
        assert moved.tobytes() == values[order].tobytes()


@pytest.mark.usefixtures("small")
def test_tuples() -> None:
    a, b = _keys(800, np.int16), _keys(800, np.float32, 1)
    wide = np.arange(800.0) + 1j
    for keys in ((a, b), (b, a, np.arange(800) % 3)):
        ways = (True, *[False] * (len(keys) - 1))
        order = _on_cpu(ga.argsort, keys, descending=ways)
        assert_same(ga.argsort(keys, descending=ways), order)
        for x, want in zip(ga.radix_sort(keys, descending=ways), keys, strict=True):
            assert_same(x, want[order])
        moved, (first, second) = ga.radix_sort(keys, (wide, a), descending=ways)
        assert_same(moved[0], keys[0][order])
        assert_same(first, wide[order])
        assert_same(second, a[order])


@pytest.mark.usefixtures("small")
def test_axes_and_layouts() -> None:
    for shape in ((40, 30), (3, 700)):
        for x in (_keys(shape, np.int32), _keys(shape[::-1], np.int32).T,
                  _keys((2 * shape[0], shape[1]), np.int32)[::-2],
                  np.broadcast_to(_keys((1, shape[1]), np.int32), shape)):  # fmt: skip
            for axis in a_few((0, 1, None)):
                order = np.argsort(x, axis, kind="stable")
                want = np.sort(x, axis, kind="stable")
                x.flags.writeable = False
                assert_same(ga.radix_sort(x, axis=axis), want)
                assert_same(ga.argsort(x, axis=axis), order)
                out = np.zeros((*want.shape, 2), np.int32)[..., 1]
                assert ga.radix_sort(x, axis=axis, out=out) is out
                assert_same(out, want)


@pytest.mark.usefixtures("small")
def test_in_place_and_what_may_not_overlap() -> None:
    x, v = _keys(900, np.int32), np.arange(900)
    order = np.argsort(x, kind="stable")
    keys, values = x.copy(), v.copy()
    ga.radix_sort(keys, values, out=(keys, values))
    assert_same(keys, x[order])
    assert_same(values, v[order])
    both = np.tile(x, (2, 1))
    assert ga.radix_sort(both, out=both) is both
    assert_same(both, np.tile(x[order], (2, 1)))
    with pytest.raises(ValueError, match="overlap"):
        ga.radix_sort(x[:-1], out=x[1:])


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("n", [0, 1, 2])
def test_small_rows_go_as_a_whole(n: int) -> None:
    x = np.arange(n)[::-1].astype(np.float32)
    assert_same(ga.radix_sort(x), x[::-1])
    assert_same(ga.argsort(x), np.arange(n)[::-1])


@pytest.mark.usefixtures("small")
def test_page_locked_arrays_and_streams(cuda: Backend) -> None:
    x = _keys(1000, np.float32)
    order = np.argsort(x, kind="stable")
    locked = ga.empty_pinned(x.shape, x.dtype)
    locked[...] = x
    out = ga.empty_pinned(x.shape, np.int64)
    stream = cuda.xp.cuda.Stream(non_blocking=True) if hasattr(cuda.xp, "cuda") else None
    for keys in (x, locked):
        assert_same(ga.radix_sort(keys, stream=stream), x[order])
        ga.argsort(keys, out=out, stream=stream)
        assert_same(out, order)
        pageable = np.zeros(1000, np.int64)
        got = ga.radix_sort(
            keys, np.arange(1000), out=(locked if keys is locked else x.copy(), pageable)
        )
        assert_same(got[0], x[order])
        assert_same(pageable, order)
        locked[...] = x


@pytest.mark.usefixtures("small")
def test_what_cannot_be_recorded() -> None:
    locked = ga.empty_pinned(1000, np.float32)
    locked[...] = _keys(1000, np.float32)
    with pytest.raises(RuntimeError, match="do not fit the GPU together"), ga.graph():
        ga.radix_sort(locked, out=ga.empty_pinned(1000, np.float32))


@pytest.mark.usefixtures("small")
def test_without_memory_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpualgo._driver import device as gpu

    def none_left(size: int, stream: int) -> int:
        raise MemoryError("no memory")

    x = _keys(900, np.int32)
    same = x.copy()
    usual = gpu.get(0).allocate
    with monkeypatch.context() as patch:
        patch.setattr(gpu.get(0), "allocate", none_left)
        with pytest.raises(MemoryError, match="no memory"):
            ga.radix_sort(same, out=same)
    assert_same(same, x)
    left = [0]

    def some_left(size: int, stream: int) -> int:
        if left[0] + size > 3000:  # others have the rest
            raise MemoryError("no memory")
        left[0] += size
        return usual(size, stream)

    given_back = gpu.get(0).free

    def free(address: int, stream: int) -> None:
        left[0] = 0  # all is given back at once
        given_back(address, stream)

    monkeypatch.setattr(gpu.get(0), "allocate", some_left)
    monkeypatch.setattr(gpu.get(0), "free", free)
    assert_same(ga.radix_sort(same), np.sort(x))


@pytest.mark.usefixtures("small")
def test_an_error_on_the_way_says_what_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpualgo._driver import staging

    x = _keys(900, np.int32)
    usual = staging.download

    def fail(source: int, target: Host, *more: Any) -> None:
        if np.may_share_memory(target, x):
            raise OSError("the bus is gone")
        usual(source, target, *more)

    monkeypatch.setattr(staging, "download", fail)
    with pytest.raises(RuntimeError, match="the input and partly overwritten"):
        ga.radix_sort(x, out=x)


@pytest.mark.usefixtures("small")
def test_memory_that_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of a call's memory at once: never more than it may take but for bounded tables."""
    from gpualgo._driver import device as gpu

    sizes: list[int] = []
    usual = gpu.get(0).allocate

    def allocate(size: int, stream: int) -> int:
        sizes.append(size)
        return usual(size, stream)

    monkeypatch.setattr(gpu.get(0), "allocate", allocate)
    for x, values in ((_keys(3000, np.int32), None), (_keys(3000, np.int64), np.zeros(3000))):
        sizes.clear()
        ga.radix_sort(x, values)
        assert 0 < sum(sizes) <= 6000


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("at", [4, 6, 8])
def test_all_memory_is_taken_before_the_first_row_is_written(
    at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpualgo._driver import device as gpu

    x = _keys((3, 900), np.int32)
    out, calls = np.full_like(x, 77), [0]
    usual = gpu.get(0).allocate

    def none_left(size: int, stream: int) -> int:
        calls[0] += 1
        if calls[0] >= at:  # a row takes three pieces
            raise MemoryError("no memory")
        return usual(size, stream)

    monkeypatch.setattr(gpu.get(0), "allocate", none_left)
    try:
        ga.radix_sort(x, axis=1, out=out)
    except MemoryError:
        assert_same(out, np.full_like(x, 77))
    else:
        assert_same(out, np.sort(x, 1))


@pytest.mark.usefixtures("small")
def test_an_output_beside_its_input_is_not_told_as_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpualgo._driver import staging

    both, usual = _keys((900, 2), np.int32), staging.download

    def fail(source: int, target: Host, *more: Any) -> None:
        if np.shares_memory(target, both[:, 1]):
            raise OSError("the bus is gone")
        usual(source, target, *more)

    monkeypatch.setattr(staging, "download", fail)
    with pytest.raises(OSError, match=r"^the bus is gone"):
        ga.radix_sort(both[:, 0], out=both[:, 1])
