"""Many rows of a vector for each of a few lanes: a group of these takes several rows at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support import Backend, assert_same, random_array, sampled

import gpualgo as ga
from gpualgo._algorithms.extremes.problem import ArgMaximum
from gpualgo._algorithms.reduce import tuning
from gpualgo._algorithms.reduce.problem import Reduction

DTYPES = [np.dtype(name) for name in ("int8", "int16", "float32", "int64", "complex128")]


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let few rows be many."""
    monkeypatch.setattr(tuning, "TARGET_BLOCKS", 1)
    for problem in (Reduction, ArgMaximum):
        problem.problems.clear()
    yield
    for problem in (Reduction, ArgMaximum):
        problem.problems.clear()


@pytest.mark.parametrize("dtype", sampled(DTYPES, ["int8", "float32", "complex128"]), ids=str)
def test_short_rows(cuda: Backend, guarded: Any, dtype: np.dtype[Any]) -> None:
    items = tuning.row_items(dtype)
    for width in (1, 4, 16):
        rows = tuning.ROWS.block_threads // width * tuning.SHORT_ROWS
        for count in (rows, rows + 1, 2 * rows - 1):
            for extent in {items * width, max(1, items * width - 1)}:
                x = random_array((count, extent), dtype)
                given = cuda.to_device(x)
                out = guarded((count,), dtype)
                ga.reduce(given, None, lambda a, b: b, axis=1, out=out)
                assert_same(cuda.to_host(out), x[:, -1])
                assert_same(cuda.to_host(ga.reduce(given, None, lambda a, b: a, axis=1)), x[:, 0])
                if dtype.kind != "c":
                    assert_same(cuda.to_host(ga.argmax(given, 1)), np.argmax(x, 1))


@pytest.mark.parametrize("layout", ["contiguous", "offset", "reversed"])
@pytest.mark.parametrize("dtype", sampled(DTYPES, ["int8", "float32"]), ids=str)
def test_rows_of_any_length(cuda: Backend, layout: str, dtype: np.dtype[Any]) -> None:
    """Groups of four lanes to a warp; the last vector may be a part of one, or lie at any bytes."""
    items = tuning.row_items(dtype)
    word = max(1, tuning.WORD_BYTES // dtype.itemsize)
    for vectors in (1, 2, 3, 5, 8, 9, 25, 33, 64, 65, 127, 150):
        for extent in sorted({max(2, items * vectors + more) for more in (-1, 0, word)}):
            x = random_array((9, extent), dtype)
            given = cuda.arrange(layout, x)
            last, first = (
                cuda.to_host(ga.reduce(given, None, op, axis=1))
                for op in (lambda a, b: b, lambda a, b: a)
            )
            assert_same(last, x[:, -1])
            assert_same(first, x[:, 0])
            if dtype.kind == "i":
                assert_same(cuda.to_host(ga.reduce(given, axis=1)), x.sum(1, dtype=dtype))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_layouts_have_the_same_bits(cuda: Backend, dtype: str) -> None:
    """Vectors are folded alike, loaded at once or number by number, and so are parts of one."""
    for extent in (5, 20, 36, 100, 300, 1500, 9001):
        x = random_array((9, extent), np.dtype(dtype), 5) / 7
        x = x.astype(dtype)
        wanted = cuda.to_host(ga.reduce(cuda.to_device(x), axis=1))
        for layout in ("offset", "step", "reversed", "padded"):
            given = cuda.arrange(layout, x)
            assert_same(cuda.to_host(ga.reduce(given, axis=1)), wanted)
            by_lambda = ga.reduce(given, None, lambda a, b: a + b, axis=1)
            contiguous = ga.reduce(cuda.to_device(x), None, lambda a, b: a + b, axis=1)
            assert_same(cuda.to_host(by_lambda), cuda.to_host(contiguous))


@pytest.mark.parametrize("layout", ["step", "reversed", "reversed_rows", "padded", "offset"])
def test_layouts_of_short_rows(cuda: Backend, layout: str) -> None:
    x = random_array((64 * tuning.SHORT_ROWS, 16), np.dtype("int32"))
    given = cuda.arrange(layout, x)
    assert_same(cuda.to_host(ga.reduce(given, None, lambda a, b: b, axis=1)), x[:, -1])
    got = ga.reduce(given, np.int32(5), lambda a, b: a + b, axis=1, keepdims=True)
    assert_same(cuda.to_host(got), x.sum(1, dtype=np.int32, keepdims=True) + np.int32(5))
    pairs = ga.reduce((given, given), None, lambda a, b: (a[0] + b[0], b[1]), axis=1)
    assert_same(cuda.to_host(pairs[0]), x.sum(1, dtype=np.int32))
    assert_same(cuda.to_host(pairs[1]), x[:, -1])
