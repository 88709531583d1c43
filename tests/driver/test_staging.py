"""Pageable arrays on their way to a GPU and back: by the driver, by lanes, in blocks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from support import Backend, a_few, assert_same, scaled

import gpualgo as ga
from gpualgo._algorithms.reduce import cuda as reductions
from gpualgo._algorithms.transform import cuda as transformations
from gpualgo._base import threads
from gpualgo._driver import device as gpu
from gpualgo._driver import driver, pinned, staging

Host = np.ndarray[Any, Any]


@pytest.fixture(params=["direct", "stages", "lanes"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Take one way for arrays of all sizes; lanes then have many blocks."""
    device = gpu.get(0)  # its trays have their own sizes
    if request.param == "direct":
        monkeypatch.setattr(staging, "DIRECT_BYTES", 1 << 30)
    else:
        monkeypatch.setattr(staging, "DIRECT_BYTES", 1)
        monkeypatch.setattr(device, "stages", pinned.Lender(device.context, device.stages._make, 1))
        monkeypatch.setattr(pinned, "BLOCK_BYTES", 1 << 12)
        monkeypatch.setattr(pinned, "FIRST_BYTES", 1 << 10)
    if request.param == "lanes":
        monkeypatch.setattr(staging, "GAPS_BYTES", 1)
        monkeypatch.setattr(transformations, "LARGE_BYTES", 1)
        monkeypatch.setattr(staging.pieces, "__defaults__", (1 << 12,))
    monkeypatch.setattr(pinned, "TRAY_BYTES", 1)
    return str(request.param)


def _arrays() -> list[Host]:
    rng = np.random.default_rng(0)
    wide = rng.integers(0, 100, (60, 70, 5)).astype(np.int32)
    return [
        wide, wide.T, wide.transpose(1, 0, 2), wide[::-1], wide[:, ::2], wide[:, :, 1],
        wide[:1, :1, :1], np.broadcast_to(wide[:1], wide.shape), np.asfortranarray(wide),
        wide.view(np.uint8).reshape(-1)[1:].reshape(-1),
    ]  # fmt: skip


def test_there_and_back(cuda: Backend, way: str) -> None:
    with ga.default_device("cuda"):
        for x in a_few(_arrays(), 3):
            assert_same(ga.reduce(x, None, lambda a, b: a + b), x.sum(dtype=x.dtype))
            for axis in range(x.ndim):
                want = np.cumsum(x, axis, dtype=x.dtype)
                assert_same(ga.inclusive_scan(x, axis=axis), want)
                out = np.zeros((*x.shape, 2), x.dtype)[..., 0]
                assert ga.inclusive_scan(x, axis=axis, out=out) is out
                assert_same(out, want)
            assert_same(ga.transform(lambda a: a + a, x), x + x)


def test_arrays_that_travel_together(cuda: Backend, way: str) -> None:
    """Each closes its own gaps, one behind the other."""
    wide = np.arange(4 * 500 * 2, dtype=np.int32).reshape(4, 500, 2)
    whole, back = np.ascontiguousarray(wide[..., 0]), np.zeros((4, 500, 3), np.int32)
    with gpu.get(0).current(), staging.device_buffers(0, 0, [whole.nbytes]) as (memory,):
        staging.copy_all([*wide[:3, :, 0], whole[3]], memory, 0, 0, is_upload=True)
        staging.copy_all(back[..., 1], memory, 0, 0, is_upload=False)
        driver.synchronize(0)
    assert_same(back[..., 1], whole)
    assert not back[..., ::2].any()


def test_results_lie_as_the_inputs(cuda: Backend, way: str) -> None:
    x = np.arange(6000, dtype=np.int32).reshape(20, 30, 10).transpose(2, 0, 1)
    with ga.default_device("cuda"):
        for got in (ga.inclusive_scan(x, axis=1), ga.transform(lambda a: a, x)):
            assert got.strides == x.strides
    assert_same(ga.inclusive_scan(x, axis=1), np.cumsum(x, 1, dtype=np.int32))


def test_bits_are_those_of_device_arrays(cuda: Backend, way: str) -> None:
    x = np.random.default_rng(0).standard_normal((70, 90)).astype(np.float32)
    turned = cuda.to_device(np.ascontiguousarray(x.T)).T
    for host, device in ((x, cuda.to_device(x)), (np.asfortranarray(x), turned)):
        assert device.strides == host.strides
        for run in (lambda a: ga.reduce(a), lambda a: ga.reduce(a, axis=0),
                    lambda a: ga.inclusive_scan(a, axis=0), lambda a: ga.inclusive_scan(a, axis=1),
                    lambda a: ga.reduce(a, None, lambda p, q: p + q, axis=1)):  # fmt: skip
            with ga.default_device("cuda"):
                assert_same(run(host), cuda.to_host(run(device)))


def test_a_stretch_of_an_array() -> None:

    whole = np.arange(3 * 4 * 5).reshape(3, 4, 5)
    for x in (whole, whole.T, whole[::-1, ::2], np.broadcast_to(whole[:1], whole.shape), whole[0]):
        flat = x.ravel()
        for first in range(flat.size + 1):
            for end in range(first, flat.size + 1):
                parts = staging.stretch(x, first, end)
                assert [i for part in parts for i in part.ravel()] == flat[first:end].tolist()
                assert len(parts) < 2 * x.ndim


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut transformations and reductions of all sizes into small blocks."""
    monkeypatch.setattr(staging, "DIRECT_BYTES", 1)
    monkeypatch.setattr(staging, "GAPS_BYTES", 1)
    monkeypatch.setattr(transformations, "LARGE_BYTES", 1)
    monkeypatch.setattr(reductions, "BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr(transformations, "SLOT_BYTES", 1 << 12)


@pytest.mark.usefixtures("blocks")
def test_blocks(cuda: Backend) -> None:
    with ga.default_device("cuda"):
        for x in _arrays():
            assert_same(ga.reduce(x, None, lambda a, b: b), x.ravel()[-1])
            assert_same(ga.reduce(x, x.dtype.type(7), lambda a, b: a), x.dtype.type(7))
            for axis in range(x.ndim):
                assert_same(ga.reduce(x, axis=axis), x.sum(axis, dtype=x.dtype))
            assert_same(ga.transform(lambda a: a + a, x), x + x)
            y = x[..., :1]
            got = ga.transform(lambda a, b: (a - b, np.int64(a)), x, y)
            assert_same(got[0], x - y)
            assert_same(got[1], x.astype(np.int64))


@pytest.mark.usefixtures("blocks")
def test_blocks_in_place_and_into_gaps(cuda: Backend) -> None:
    x = np.arange(40 * 60, dtype=np.int32).reshape(40, 60)
    with ga.default_device("cuda"):
        same = x.copy()
        assert ga.transform(lambda a: a * a, same, out=same) is same
        assert_same(same, x * x)
        wide = np.full((40, 2, 60), 77, np.int32)
        ga.transform(lambda a, b: a - b, x, x[:, ::-1], out=wide[:, 0])
        assert_same(wide[:, 0], x - x[:, ::-1])
        assert (wide[:, 1] == 77).all()
        pinned, result = ga.empty_pinned(x.shape, x.dtype), ga.empty_pinned(x.shape, x.dtype)
        pinned[...] = x
        assert_same(ga.transform(lambda a, b: a - b, pinned, x[:, :1]), x - x[:, :1])
        assert_same(ga.transform(lambda a, b: a * b, pinned, x), x * x)
        assert_same(ga.transform(lambda a: a + 1, x, out=result), x + 1)
        ga.transform(lambda a, b: a - b, pinned, x + x, out=pinned)
        assert_same(pinned, -x)


@pytest.mark.usefixtures("blocks")
def test_threads_share_the_lanes(cuda: Backend) -> None:
    count, k = scaled(12, emulated=3), scaled(8, emulated=2)
    inputs = [np.arange(5000, dtype=np.int32) + i for i in range(count)]

    def work(x: Host) -> list[Any]:
        with ga.default_device("cuda"):
            return [ga.transform(lambda a: a * a, x) for _ in range(k)]

    with ThreadPoolExecutor(count) as pool:
        for x, found in zip(inputs, pool.map(work, inputs), strict=True):
            assert_same(found[-1], x * x)


@pytest.mark.usefixtures("blocks")
def test_lanes_are_given_back_after_an_error(
    cuda: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:

    x = np.arange(5000, dtype=np.int32)

    def fail(*_: Any) -> Any:
        raise OSError("no plan")

    with ga.default_device("cuda"):
        for _ in range(pinned.MOST_LANES + 1):
            with monkeypatch.context() as patch:
                patch.setattr(transformations._Blocks, "_plan", fail)
                with pytest.raises(OSError, match="no plan"):
                    ga.transform(lambda a: a - 1, x)
        assert_same(ga.transform(lambda a: a - 1, x), x - 1)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("most", [0, 1, 2])
def test_as_many_lanes_as_there_is_memory_for(
    cuda: Backend, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:

    usual, made = pinned.Block, list[Any]()

    def block(size: int) -> Any:
        if size != pinned.SLOT_BYTES:  # of a stage
            return usual(size)
        if len(made) == 2 * most:
            raise MemoryError("planted")
        made.append(usual(size))
        return made[-1]

    monkeypatch.setattr(pinned, "Block", block)
    monkeypatch.setattr(threads, "best_threads", lambda seconds: 4)
    device = gpu.get(0)
    lanes = pinned.Lender(device.context, device.lanes._make, pinned.MOST_LANES)
    monkeypatch.setattr(device, "lanes", lanes)
    x = np.arange(200_000, dtype=np.int32).reshape(2, -1)
    same = x.copy()
    with ga.default_device("cuda"):
        for want in (x * x, (x * x) * (x * x)):
            if not most:
                with pytest.raises(MemoryError, match="planted"):
                    ga.transform(lambda a: a * a, same, out=same)
                want = x
            else:
                ga.transform(lambda a: a * a, same, out=same)
            assert_same(same, want)
            if most:
                assert ga.reduce(x[:, ::2]) == x[:, ::2].sum(dtype=x.dtype)
    assert len(made) <= 2 * most


@pytest.mark.usefixtures("blocks")
def test_an_error_between_blocks_says_what_is_lost(
    cuda: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:

    usual, sent = staging.send, list[int]()

    def fail(*given: int) -> None:
        sent.append(1)
        if len(sent) > 3:
            raise OSError("the bus is gone")
        usual(*given)

    monkeypatch.setattr(staging, "send", fail)
    x, out = np.arange(20_000, dtype=np.int32), np.zeros(20_000, np.int32)
    with ga.default_device("cuda"):
        with pytest.raises(OSError, match=r"^the bus is gone$"):
            ga.transform(lambda a: a + 2, x, out=out)
        sent.clear()
        with pytest.raises(RuntimeError, match=r"^transform: out is the input and partly"):
            ga.transform(lambda a: a + 2, x, out=x)


@pytest.mark.usefixtures("blocks")
def test_blocks_of_tuples(cuda: Backend) -> None:
    wide = np.random.default_rng(0).integers(-9, 9, (60, 70)).astype(np.int32)
    with ga.default_device("cuda"):
        for x in (wide, wide.T):
            y = np.arange(x.size, dtype=np.int64).reshape(x.shape)
            for axis in (None, 0, 1):
                total, last = ga.reduce((x, y), (5, 0), lambda p, q: (p[0] + q[0], q[1]), axis=axis)
                assert_same(total, 5 + x.sum(axis, dtype=np.int32))
                assert_same(last, y.max(axis))
            first = ga.reduce((x, x, x), None, lambda p, q: p, axis=1)
            assert_same(first[2], x[:, 0])


@pytest.mark.parametrize("most", [1, 2, 8])
def test_blocks_are_made_as_they_are_needed(
    cuda: Backend, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """And fewer of them carry everything where no more memory can be locked."""
    add = pinned.PinnedRing._add

    def limited(stage: pinned.PinnedRing) -> None:
        if len(stage.blocks) == most:
            raise MemoryError("planted")
        add(stage)

    monkeypatch.setattr(pinned.PinnedRing, "_add", limited)
    monkeypatch.setattr(pinned, "BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr(pinned, "FIRST_BYTES", 1 << 10)
    device = gpu.get(0)
    monkeypatch.setattr(device, "stages", pinned.Lender(device.context, device.stages._make, 1))
    monkeypatch.setattr(staging, "DIRECT_BYTES", 1)
    random = np.random.default_rng(3)
    with device.current(), staging.device_buffers(0, 0, [50_000]) as (memory,):
        for size in (1000, 9000, 50_000, 4097):
            x = random.integers(0, 256, size).astype(np.uint8)
            staging.upload(x, memory, 0, 0)
            out = np.zeros_like(x)
            staging.download(memory, out, 0, 0)
            driver.synchronize(0)
            assert_same(out, x)
            with device.stages.lend() as stage:
                needed = {1000: 1, 9000: 3}.get(size, 8)
                assert len(stage.blocks) == min(most, needed)


def test_pages_are_asked_for_as_their_turn_comes(
    cuda: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a result larger than the host's memory would else be gone when they are written."""
    monkeypatch.setattr(pinned, "BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(pinned, "FIRST_BYTES", 1 << 10)
    monkeypatch.setattr(staging, "PAGES_BYTES", 1 << 12)
    monkeypatch.setattr(staging, "DIRECT_BYTES", 1)
    size, under_way = 10 << 12 | 100, pinned.MOST_BLOCKS << 10
    x, out = np.arange(size, dtype=np.uint8) | np.uint8(1), np.zeros(size, np.uint8)
    asked: list[tuple[int, int]] = []

    def populate(place: int, num_bytes: int) -> None:
        offset = place - out.ctypes.data
        assert not out[offset:].any()
        assert out[: max(0, offset - under_way)].all()
        asked.append((offset, num_bytes))

    monkeypatch.setattr(staging.threads, "populate", populate)
    device = gpu.get(0)
    monkeypatch.setattr(device, "stages", pinned.Lender(device.context, device.stages._make, 1))
    with device.current(), staging.device_buffers(0, 0, [size]) as (memory,):
        staging.upload(x, memory, 0, 0)
        staging.download(memory, out, 0, 0)
        driver.synchronize(0)
    assert_same(out, x)
    assert asked == [(i << 12, 1 << 12) for i in range(10)] + [(10 << 12, 100)]
