"""The least and the greatest elements and their places beside NumPy's."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpys_own import arrays, check_same, examples, reduction_options
from support import Backend, a_few

import gpualgo as ga
import gpualgo.numpy as gnp

SMALL = settings(
    max_examples=examples(60, emulated=3), deadline=None, database=None, derandomize=True
)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["min", "max"])
@SMALL
@given(st.data())
def test_extremes(backend: Backend, name: str, data: Any) -> None:
    x = data.draw(arrays())
    kwargs = data.draw(reduction_options(x))
    if "where" in kwargs or data.draw(st.booleans()):
        kwargs["initial"] = data.draw(st.sampled_from([0, 2, True]))
    if x.dtype == bool and "initial" in kwargs:
        kwargs["initial"] = bool(kwargs["initial"])
    check_same(backend, name, x, **kwargs)


@pytest.mark.parametrize("name", ["argmin", "argmax"])
@SMALL
@given(st.data())
def test_places(backend: Backend, name: str, data: Any) -> None:
    x = data.draw(arrays())
    check_same(backend, name, x, **data.draw(reduction_options(x, where=False, tuples=False)))


@SMALL
@given(st.data())
def test_ptp(backend: Backend, data: Any) -> None:
    x = data.draw(arrays())
    check_same(backend, "ptp", x, **data.draw(reduction_options(x, where=False)))


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_first_nan_and_ties_of_many(name: str) -> None:
    rng = np.random.default_rng(3)
    for dtype in a_few(
        (np.float64, np.float32, np.float16, np.int16, np.uint8, np.complex64, np.bool_), 2
    ):
        x = rng.integers(0, 2, 300_001).astype(dtype)
        np.testing.assert_array_equal(getattr(gnp, name)(x), getattr(np, name)(x))
        if x.dtype.kind in "fc":
            x[[70_000, 200_000]] = np.nan
            np.testing.assert_array_equal(getattr(gnp, name)(x), getattr(np, name)(x))


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "ptp"])
def test_lazy_and_bfloat16(name: str) -> None:
    x = np.array([[1.0, 5.0, -2.0], [7.0, 7.0, 0.0]])
    want = getattr(np, name)(-x, axis=1)
    np.testing.assert_array_equal(getattr(gnp, name)(-ga.lazy.asarray(x), axis=1), want)
    got = getattr(gnp, name)((-x).astype(ml_dtypes.bfloat16), axis=1)
    np.testing.assert_array_equal(got.astype(float), want)
    z = ga.lazy.asarray(x) * 1j
    np.testing.assert_array_equal(getattr(gnp, name)(z, axis=1), getattr(np, name)(x * 1j, axis=1))
