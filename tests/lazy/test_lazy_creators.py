"""What gpualgo.lazy makes of numbers and arrays, beside what NumPy makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import (
    DTYPES,
    LAYOUTS,
    Backend,
    a_few,
    assert_same,
    random_array,
)

import gpualgo as ga


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), 3, (2, 3), (0, 4)], ids=str)
def test_full(shape: Any, dtype: np.dtype[Any]) -> None:
    made = ga.lazy.full(shape, 1, dtype=dtype)
    want = np.full(shape, 1, dtype)
    assert (made.shape, made.dtype) == (want.shape, want.dtype)
    assert_same(ga.copy(made), want)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_asarray(backend: Backend, layout: str) -> None:
    x = random_array((7, 12), np.dtype("float32"))
    made = ga.lazy.asarray(backend.arrange(layout, x))
    assert (made.shape, made.ndim, made.size, len(made)) == ((7, 12), 2, 84, 7)
    assert_same(backend.to_host(ga.copy(made)), x)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_asarray_of_every_dtype(dtype: np.dtype[Any]) -> None:
    x = random_array((3, 5), dtype)
    made = ga.lazy.asarray(x)
    assert made.dtype == dtype
    assert_same(ga.copy(made), x)
    assert_same(np.asarray(made), x)


def test_asarray_of_others() -> None:
    assert_same(ga.copy(ga.lazy.asarray(2.5)), np.array(2.5))
    made = ga.lazy.asarray(ga.lazy.arange(3))
    assert_same(ga.copy(ga.lazy.asarray(made)), np.arange(3))
    pair = np.array([(1, 2.5), (3, 4.5)], [("n", "i4"), ("x", "f8")])
    both = ga.lazy.asarray(pair)
    assert both.dtype.names == ("n", "x")
    assert_same(ga.copy(both["x"]), np.ascontiguousarray(pair["x"]))


# --- take -------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_take_of_every_layout(layout: str) -> None:
    host = random_array((6, 8), np.dtype("float32"))
    view = LAYOUTS[layout](lambda shape: np.zeros(shape, host.dtype), host.shape)
    view[...] = host
    for axis in a_few((None, 0, 1)):
        want = np.take(host, [5, 0, -2], axis, mode="wrap")
        assert_same(ga.copy(ga.lazy.take(view, [5, 0, -2], axis=axis)), want)


def test_take_of_tuples_and_of_nothing() -> None:
    x, y = np.arange(5), np.arange(5) / 2
    a, b = ga.copy(ga.lazy.take((x, y), [4, 1]))
    assert_same(a, x[[4, 1]])
    assert_same(b, y[[4, 1]])
    assert ga.copy(ga.lazy.take(x, np.empty(0, int))).shape == (0,)
    assert ga.copy(ga.lazy.take(np.empty((3, 0)), [0, 2], axis=0)).shape == (2, 0)
    assert_same(ga.copy(ga.lazy.take(x, 3)), np.array(x[3]))


def test_indices_and_what_is_taken_are_read_when_it_is_consumed() -> None:
    x, indices = np.arange(5), np.array([0, 1])
    made = ga.lazy.take(x, indices)
    x[:], indices[:] = x * 10, [3, 4]
    assert_same(ga.copy(made), np.array([30, 40]))


@pytest.mark.parametrize("dtype", [None, "f4", "i8"])
def test_lengths_of_ranges_whose_step_is_too_large(dtype: Any) -> None:
    """A quotient of zero counts as one element, if the distance is not zero, as in NumPy."""
    for numbers in (
        (0, 1e-200, 1e200), (0, -1e-200, 1e200), (0, 1e-200, -1e200), (1e-320, 2e-320, 1e300),
        (0, 5.0, np.inf), (0, -5.0, np.inf), (0, -5.0, -np.inf), (0.0, 0.0, np.inf), (3, 3.5, 1e9),
    ):  # fmt: skip
        assert_same(
            ga.copy(ga.lazy.arange(*numbers, dtype=dtype)), np.arange(*numbers, dtype=dtype)
        )
