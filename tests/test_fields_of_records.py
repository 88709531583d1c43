"""Arrays whose elements alternate in memory, beside others that do not: each is read at its place.

Kernels read columns of one array, or fields of one record, at once. Arrays whose addresses are not
known when a call is planned are no such columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import Backend, forget_problems

import gpualgo as ga
from gpualgo._algorithms.transform import cuda as blocks


def sum_and_last(a: Any, b: Any) -> Any:
    return a[0] + b[0], b[1]


def columns(x: Any) -> tuple[Any, Any]:
    return x[..., 0], x[..., 1]


def sample(shape: Any, dtype: Any) -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).integers(0, 100, shape).astype(dtype)


def check(backend: Backend, results: Any, expected: Any) -> None:
    for result, values in zip(results, expected, strict=True):
        np.testing.assert_array_equal(backend.to_host(result), values)


@pytest.mark.parametrize("window", [3, 5, 9, 17])
@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64])
def test_windows_into_columns(backend: Backend, dtype: Any, window: int) -> None:
    x, n = sample((100, 2), dtype), 101 - window
    arrays = tuple(backend.to_device(np.ascontiguousarray(column)) for column in columns(x))
    out = columns(backend.to_device(np.zeros((n, 2), dtype)))
    ga.rolling(arrays, window, sum_and_last, out=out)
    sums = np.lib.stride_tricks.sliding_window_view(x[:, 0], window).sum(1, dtype=dtype)
    check(backend, out, (sums, x[window - 1 :, 1]))


@pytest.mark.parametrize("is_out", [False, True])
@pytest.mark.parametrize("rows", [64, 100])
def test_scans_from_columns(backend: Backend, rows: int, is_out: bool) -> None:
    x, init = sample((2, rows, 2), np.int32), sample((rows, 2), np.int32)
    arrays = tuple(backend.to_device(np.ascontiguousarray(column)) for column in columns(x))
    starts = columns(backend.to_device(init))
    out = columns(backend.to_device(np.zeros(x.shape, np.int32))) if is_out else None
    results = ga.exclusive_scan(arrays, starts, sum_and_last, axis=0, out=out)
    sums = np.stack([init[:, 0], init[:, 0] + x[0, :, 0]])
    check(backend, results, (sums, np.stack([init[:, 1], x[0, :, 1]])))


@pytest.mark.parametrize(
    "first", [ga.prepare, ga.temp_storage_bytes, ga.explain], ids=lambda function: function.__name__
)
@pytest.mark.parametrize("rows", [64, 100])
def test_calls_after_a_plan_without_results(
    backend: Backend, first: Callable[..., Any], rows: int
) -> None:
    """The plan that `first` makes serves later calls, whose results lie apart."""
    forget_problems()
    x, init = sample((rows, 40, 2), np.int32), sample((rows, 2), np.int32)
    arrays = tuple(backend.to_device(np.ascontiguousarray(column)) for column in columns(x))
    arguments = arrays, columns(backend.to_device(init)), sum_and_last
    first(ga.reduce, *arguments, axis=1)
    results = ga.reduce(*arguments, axis=1)
    check(backend, results, (init[:, 0] + x[:, :, 0].sum(1), x[:, -1, 1]))


@pytest.mark.parametrize("row", [0, 1])
def test_blocks_of_a_column_and_a_repeated_row(
    cuda: Backend, monkeypatch: pytest.MonkeyPatch, row: int
) -> None:
    """Blocks of one shape share a plan only if their arrays lie alike to each other."""
    monkeypatch.setattr(blocks, "LARGE_BYTES", 1000)
    monkeypatch.setattr(blocks, "SLOT_BYTES", 2048)
    forget_problems()
    locked = ga.empty_pinned((4, 1024, 2), np.float32)
    locked[...] = sample(locked.shape, np.float32)
    first, second = np.broadcast_to(locked[row, :, 0], locked.shape[:2]), locked[:, :, 1]
    with ga.default_device("cuda"):
        result = ga.transform(lambda a, b: a * 1000 + b, first, second)
    np.testing.assert_array_equal(result, first * 1000 + second)


OVERLAPPING = np.dtype(
    {"names": ["a", "b"], "formats": ["i4", "i2"], "offsets": [0, 0], "itemsize": 4}
)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: ga.reduce(x, None, sum_and_last),
        lambda x: ga.inclusive_scan(x, None, sum_and_last)[-1],
        lambda x: ga.rolling(x, 100, sum_and_last)[0],
        lambda x: ga.segmented_reduce(x, np.array([0, 100]), (0, 0), sum_and_last)[0],
        lambda x: ga.reduce_by_key(np.zeros(100, np.int32), x, None, sum_and_last)[1][0],
        lambda x: ga.reduce(x.reshape(1, 100), None, sum_and_last, axis=1)[0],
    ],
    ids=["reduce", "scan", "rolling", "segments", "by key", "rows"],
)
def test_fields_that_overlap(call: Callable[[Any], Any]) -> None:
    """Results have the fields side by side."""
    x = np.zeros(100, OVERLAPPING)
    x["a"] = np.arange(100)
    with ga.default_device("cpu"):
        for _ in range(2):
            result = call(x)
            assert result.tolist() == (4950, 99)
            assert result.dtype == [("a", "i4"), ("b", "i2")]
