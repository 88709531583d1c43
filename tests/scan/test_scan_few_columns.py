"""Scans of few columns: strips whose tiles wait apart from each other, and far back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support import Backend, affine, assert_same, compose, random_array, summable

import gpualgo as ga
from gpualgo._algorithms.scan import tuning
from gpualgo._algorithms.scan.problem import Scan


@pytest.fixture
def low_tiles(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let few rows be many tiles."""
    monkeypatch.setattr(tuning, "COLUMNS_THREADS", 64)
    monkeypatch.setattr(tuning, "SEGMENT_BYTES", 16)
    Scan.problems.clear()
    yield
    Scan.problems.clear()


@pytest.mark.parametrize("num_columns", [16, 32, 36, 64, 65])
def test_many_tiles(cuda: Backend, guarded: Any, low_tiles: None, num_columns: int) -> None:
    x = random_array((1201, num_columns), np.dtype("int32"))
    given = cuda.to_device(x)
    for order in (slice(None), slice(None, None, -1)):
        out = guarded(x.shape, "int32")
        ga.inclusive_scan(given[order], axis=0, out=out)
        assert_same(cuda.to_host(out), np.add.accumulate(x[order], 0, dtype=np.int32))
    first = ga.exclusive_scan(given, np.int32(7), lambda a, b: a, axis=0)
    assert_same(cuda.to_host(first), np.full_like(x, 7))


@pytest.mark.parametrize("num_columns", [16, 20, 33])
def test_order_in_strips(cuda: Backend, low_tiles: None, num_columns: int) -> None:
    x = affine((700, num_columns))
    want = x.copy()
    for row in range(1, len(x)):
        want[row] = compose(want[row - 1], x[row])
    assert_same(cuda.to_host(ga.inclusive_scan(cuda.to_device(x), None, compose, axis=0)), want)


@pytest.mark.parametrize(
    ("source", "acc", "num_columns"),
    [("int8", "int64", 16), ("int8", "complex128", 16), ("float32", "float32", 32),
     ("int16", "int16", 64), ("complex128", "complex128", 12)],
)  # fmt: skip
def test_strips_of_every_size(
    cuda: Backend, guarded: Any, source: str, acc: str, num_columns: int
) -> None:
    """Units in which rows travel are no wider than a strip's row."""
    x = summable((1000, num_columns), np.dtype(source))
    out = guarded(x.shape, acc)
    ga.inclusive_scan(cuda.to_device(x), axis=0, dtype=acc, out=out)
    assert_same(cuda.to_host(out), np.add.accumulate(x, 0, dtype=acc), zero_signs=False)
    misaligned = cuda.arrange("offset", x)
    ga.inclusive_scan(misaligned, axis=0, dtype=acc, out=out)
    assert_same(cuda.to_host(out), np.add.accumulate(x, 0, dtype=acc), zero_signs=False)
