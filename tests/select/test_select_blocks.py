"""Selections from host arrays that go to a GPU in blocks: order, rests, short outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support import Backend, assert_same

import gpualgo as ga

RNG = np.random.default_rng(3)
X = RNG.integers(-9, 9, (7, 30)).astype(np.int32)


@pytest.fixture(autouse=True)
def _blocks(cuda: Backend, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    from gpualgo._algorithms.select import cuda as cut
    from gpualgo._pipeline import host_small

    monkeypatch.setattr(cut, "BLOCK_BYTES", 200)
    monkeypatch.setattr(host_small, "run", lambda *_: False)
    with ga.default_device("cuda"):
        yield


def positive(a: Any) -> Any:
    return a > 0


@pytest.mark.parametrize("x", [X, X.T, X[::2, ::-3], np.broadcast_to(X[0], X.shape), X[:0]])
def test_kept_elements_and_rests(x: np.ndarray[Any, Any]) -> None:
    flat = x.reshape(-1)
    assert_same(ga.select(x, positive), flat[flat > 0])
    assert_same(ga.select(x, x > 0), flat[flat > 0])
    kept, rest = ga.stable_partition(x, positive)
    assert_same(kept, flat[flat > 0])
    assert_same(rest, flat[flat <= 0])


def test_outputs() -> None:
    flat = X.reshape(-1)
    want = flat[flat > 0]
    for length in (3, len(want), flat.size):
        out, count = np.full(length, 99, np.int32), np.zeros((), np.int64)
        ga.select(X, positive, out=out, out_count=count)
        assert int(count) == len(want)
        kept = min(length, len(want))
        assert_same(out[:kept], want[:kept])
    pair = ga.select((X, X[::-1] * 2.0), lambda p: p[0] > p[1])
    mask = flat > (X[::-1] * 2.0).reshape(-1)
    assert_same(pair[0], flat[mask])


def test_runs_come_in_one_block() -> None:
    x = np.repeat(np.arange(50), 9)
    keys, counts = ga.run_length_encode(x)
    assert_same(keys, np.arange(50))
    assert_same(counts, np.full(50, 9))
