"""find and count against NumPy's argmax and sum of a mask."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import DTYPES, Backend, random_array, sampled, scaled

import gpualgo as ga
import gpualgo.numpy as gnp
from gpualgo._algorithms.select import cpu as select_cpu
from gpualgo._cpu.kernels import status_function

LARGE = scaled(300_007, emulated=20_011)
SHAPES = [((), None), ((0,), None), ((1,), 0), ((33,), None), ((LARGE,), None), ((0, 4), 0),
          ((37, 211), 1), ((211, 37), 0), ((5, 7, 6), 1), ((5, 7, 6), None)]  # fmt: skip


def where_first(keep: np.ndarray[Any, Any], axis: Any) -> Any:
    if not keep.size:
        return np.full([n for i, n in enumerate(keep.shape) if axis is not None and i != axis], -1)
    return np.where(keep.any(axis), keep.argmax(axis), -1)


def same(backend: Backend, got: Any, want: Any) -> None:
    got = backend.to_host(got)
    assert got.dtype == np.int64
    np.testing.assert_array_equal(got, want, strict=False)
    assert got.shape == np.shape(want)


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
@pytest.mark.parametrize("limit", [-1, 3, 9])  # all, some, none
def test_shapes(backend: Backend, shape: tuple[int, ...], axis: Any, limit: int) -> None:
    x = np.random.default_rng(1).integers(0, 5 if limit != 3 else 4 + (shape != ()), shape, "int32")
    given, keep = backend.to_device(x), x > limit
    same(backend, ga.find(given, lambda a: a > limit, axis=axis), where_first(keep, axis))
    same(backend, ga.count(given, lambda a: a > limit, axis=axis), keep.sum(axis))
    mask = backend.to_device(keep)
    same(backend, ga.find(given, mask, axis=axis), where_first(keep, axis))
    same(backend, ga.count(given, mask, axis=axis, keepdims=True), keep.sum(axis, keepdims=True))


@pytest.mark.parametrize("at", [0, 2047, 2048, 65_535, 65_536, 131_071, 300_006])
def test_the_first(backend: Backend, at: int) -> None:
    """On the CPU it ends a chunk, a task or a look, or begins one."""
    at = min(at, LARGE - 1)
    x = np.zeros(LARGE, np.int8)
    x[at] = x[-1] = 1
    given = backend.to_device(x)
    same(backend, ga.find(given, lambda a: a == 1), at)
    same(backend, ga.find(given, given == 1), at)
    same(backend, ga.find(given, lambda a: a == 2), -1)


def test_what_is_behind_the_first_is_not_read() -> None:
    """But for the look that it is found in: the second is at four tasks."""
    seen = np.zeros(4, np.int64)
    x = np.arange(1_000_000)

    def noted(*arguments: int) -> int:
        seen[0] += arguments[3] - arguments[2]
        return run(*arguments)

    kernel = select_cpu.seek()
    run = status_function(kernel)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "function", noted)
        assert ga.find(x, lambda a: a == 70_000) == 70_000
    assert seen[0] == 5


@pytest.mark.parametrize("dtype", sampled(DTYPES, ("bool", "bfloat16", "complex64")), ids=str)
def test_dtypes(backend: Backend, dtype: np.dtype[Any]) -> None:
    x = random_array(5003, dtype)
    x[4999:] = x[17]
    last = x[17]
    given, keep = backend.to_device(x), x == last
    same(backend, ga.count(given, backend.to_device(keep)), keep.sum())
    same(backend, ga.find(given, lambda a: a == a), 0)
    same(backend, ga.count(given, lambda a: a == a), 5003)


def test_masks_of_the_same_layout(backend: Backend) -> None:
    """Contents, memory that arrays share, and predicates differ from call to call."""
    marks = np.random.default_rng(2).random(LARGE + 8) < 0.3
    given = backend.to_device(marks)
    for first, second in ((0, 0), (0, 8), (8, 0), (3, 3), (1, 2)):
        x, mask = given[first : first + LARGE], given[second : second + LARGE]
        want = marks[second : second + LARGE]
        for _ in range(2):
            same(backend, ga.count(x, mask), want.sum())
            same(backend, ga.find(x, mask), want.argmax())
            same(backend, ga.count(x, lambda a: not a), (~marks[first : first + LARGE]).sum())
    other = backend.to_device(~marks)
    same(backend, ga.count(given, other), (~marks).sum())
    for wrong in (backend.to_device(marks.astype(np.int32)), other[1:]):
        for _ in range(2):
            with pytest.raises((TypeError, ValueError), match="count: "):
                ga.count(given, wrong)


def test_sums_of_masks_as_several_dtypes(backend: Backend) -> None:
    values = random_array(LARGE, np.dtype(np.int16), 3)
    x = backend.to_device(values)
    for marks in (values > 3, values < 1, values > 3):
        mask = backend.to_device(marks)
        for dtype in (np.int64, np.float64, np.int32, np.int64):
            found = backend.to_host(gnp.sum(x, where=mask, dtype=dtype))
            assert found.dtype == dtype
            assert found == values.sum(where=marks, dtype=dtype)
