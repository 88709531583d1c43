"""Extreme elements of host arrays that go to a GPU by blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support import Backend, a_few, assert_same, forget_problems

import gpualgo as ga


@pytest.fixture
def blocks(cuda: Backend, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    from gpualgo._algorithms.extremes import cuda as extremes
    from gpualgo._algorithms.reduce import cuda as reduction

    monkeypatch.setattr(reduction, "BLOCK_BYTES", 400)
    forget_problems()
    ran: list[Any] = []
    usual = extremes._reads

    def reads(*args: Any) -> Any:
        ran.extend(args[3:])  # the block
        return usual(*args)

    monkeypatch.setattr(extremes, "_reads", reads)
    with ga.default_device("cuda"):
        yield
    assert ran, "nothing went by blocks"


@pytest.mark.usefixtures("blocks")
def test_the_first_of_equal_elements_and_of_nans() -> None:
    whole = np.random.default_rng(0).integers(-9, 9, (12, 10, 9)).astype(np.float32)
    _check(whole)
    whole[3, 4], whole[7, :, 2], whole[-1, -1, -1] = np.nan, -np.nan, np.nan
    whole[0, 0, 0] = -0.0
    for x in (whole, whole.T, whole[::-1, :, ::2]):
        _check(x)
    out = np.empty((10, 9, 2), np.int64)[..., 1]
    assert ga.argmin(whole, axis=0, out=out) is out
    assert_same(out, whole.argmin(0))


def _check(x: np.ndarray[Any, Any]) -> None:
    for axis in a_few((None, 0, 2)):
        assert_same(ga.argmin(x, axis=axis), x.argmin(axis))
        assert_same(ga.argmax(x, axis, keepdims=True), x.argmax(axis, keepdims=True))
        with ga.default_device("cpu"):
            want = ga.minmax(x, axis=axis)
        got = ga.minmax(x, axis=axis)
        assert_same(got.min, want.min, zero_signs=False)
        assert_same(got.max, want.max, zero_signs=False)


@pytest.mark.usefixtures("blocks")
def test_several_axes_and_streams(cuda: Backend) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (12, 10, 9)).astype(np.float64)
    got = ga.minmax(x, axis=(0, 2))
    assert_same(got.min, x.min((0, 2)))
    stream = cuda.xp.cuda.Stream(non_blocking=True) if hasattr(cuda.xp, "cuda") else None
    assert_same(ga.argmax(x, stream=stream), x.argmax())
