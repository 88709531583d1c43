"""Histograms of host arrays that go to a GPU by blocks: the CPU's counts, and its sums."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support import Backend, a_few, assert_same

import gpualgo as ga

Host = np.ndarray[Any, Any]
BLOCK = 1 << 10


@pytest.fixture
def blocks(cuda: Backend, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Cut histograms of all sizes into small blocks."""
    from gpualgo._algorithms.histogram import cuda as cut
    from gpualgo._driver import staging

    monkeypatch.setattr(cut, "BLOCK_BYTES", BLOCK)
    monkeypatch.setattr(staging, "DIRECT_BYTES", 256)
    monkeypatch.setattr(staging, "GAPS_BYTES", 256)
    monkeypatch.setattr(staging.pieces, "__defaults__", (200,))
    ran: list[Any] = []
    usual = cut._counts_of
    monkeypatch.setattr(cut, "_counts_of", lambda *args: (ran.append(1), usual(*args))[1])
    with ga.default_device("cuda"):
        yield
    assert ran, "nothing went by blocks"


def _same_as_on_the_cpu(*arguments: Any, **options: Any) -> None:
    with ga.default_device("cpu"):
        want = ga.histogram(*arguments, **options)
    assert_same(ga.histogram(*arguments, **options), want)
    out = np.zeros((*want.shape, 2), want.dtype)[..., 1]
    assert ga.histogram(*arguments, **options, out=out) is out
    assert_same(out, want)


def _samples(*shape: int) -> Host:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.usefixtures("blocks")
def test_axes_and_layouts() -> None:
    x = _samples(20, 9, 11)
    for each in (x, x.T, x[::-1, :, ::2], np.broadcast_to(x[:1], x.shape)):
        each.flags.writeable = False
        for axis in a_few((None, 0, 1, 2, (0, 2)), 2):
            _same_as_on_the_cpu(each, 7, (-2.0, 2.0), axis=axis)
    _same_as_on_the_cpu(x, 7, (-2.0, 2.0), axis=0, dtype=np.uint8)


@pytest.mark.usefixtures("blocks")
def test_many_bins_and_ranges_of_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpualgo._algorithms.histogram import cuda as cut

    x = np.random.default_rng(0).integers(-900, 900, (6, 300)).astype(np.int16)
    _same_as_on_the_cpu(x, 500)
    monkeypatch.setattr(cut, "RESULT_BYTES", 10000)  # of two kept places
    _same_as_on_the_cpu(x, [-800, -3, 5, 700], axis=1)
    _same_as_on_the_cpu(x, 500, axis=1)


@pytest.mark.usefixtures("blocks")
def test_tuples() -> None:
    x, y = _samples(300, 4), np.random.default_rng(1).integers(0, 9, (300, 4))
    _same_as_on_the_cpu((x, y), (4, [0, 2, 9]), ((-1, 1), None))
    _same_as_on_the_cpu((x, y), (4, 3), ((-1, 1), (0, 9)), axis=0)


@pytest.mark.usefixtures("blocks")
def test_sums_of_weights() -> None:
    x = _samples(120, 6)
    rng = np.random.default_rng(2)
    wide = rng.standard_normal(x.shape)
    wave = (wide[::-1] + 1j * wide).astype(np.complex128)
    integers = rng.integers(-9, 9, x.shape).astype(np.int8)
    for weights in (wide, wide[:, :1], 0.1, wave, wide.astype(np.float16), integers):
        for axis in a_few((None, 1)):
            with ga.default_device("cpu"):
                want = ga.histogram(x, 5, (-2, 2), weights=weights, axis=axis)
            got = ga.histogram(x, 5, (-2, 2), weights=weights, axis=axis)
            again = ga.histogram(x, 5, (-2, 2), weights=weights, axis=axis)
            assert got.dtype == want.dtype
            assert got.tobytes() == again.tobytes()
            is_half = got.dtype == np.float16
            np.testing.assert_allclose(got, want, rtol=0, atol=0.1 if is_half else 1e-12)


@pytest.mark.usefixtures("blocks")
def test_page_locked_arrays_and_streams(cuda: Backend) -> None:
    x = _samples(2000)
    locked = ga.empty_pinned(x.shape, x.dtype)
    locked[...] = x
    want = np.histogram(x, 6, (-3, 3))[0]
    stream = cuda.xp.cuda.Stream(non_blocking=True) if hasattr(cuda.xp, "cuda") else None
    for each in (x, locked):
        assert_same(ga.histogram(each, 6, (-3, 3), stream=stream), want)
        weights = np.ones(2000, np.float32)
        assert_same(ga.histogram(each, 6, (-3, 3), weights=weights), want.astype(np.float32))


@pytest.mark.usefixtures("blocks")
def test_without_memory_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpualgo._driver import device as gpu

    def none_left(size: int, stream: int) -> int:
        raise MemoryError("no memory")

    out = np.full(3, 77)
    with monkeypatch.context() as patch:
        patch.setattr(gpu.get(0), "allocate", none_left)
        with pytest.raises(MemoryError, match="no memory"):
            ga.histogram(_samples(2000), 3, (0, 1), out=out)
    assert_same(out, np.full(3, 77))
