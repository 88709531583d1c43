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


@pytest.mark.parametrize("name", ["amin", "amax"])
def test_other_names(name: str) -> None:
    x = np.array([[3.0, np.nan], [1.0, 2.0]])
    np.testing.assert_array_equal(getattr(gnp, name)(x, axis=1), getattr(np, name)(x, axis=1))


@pytest.mark.parametrize("kind", ["int8", "int64", "float32", "float64", "complex64"])
def test_out(backend: Backend, kind: str) -> None:
    x = np.array([[1.5, -0.5, 3.0], [1.5, 2.0, 0.5]])
    want = np.max(x, axis=1, out=np.empty(2, kind))
    into = backend.to_device(np.empty(2, kind))
    assert gnp.max(backend.to_device(x), axis=1, out=into) is into
    np.testing.assert_array_equal(backend.to_host(into), want)


@pytest.mark.parametrize("kind", ["int8", "int32", "int64"])
def test_out_of_places(backend: Backend, kind: str) -> None:
    x = np.array([[1.5, -0.5, 3.0], [1.5, 2.0, 0.5]])
    into = backend.to_device(np.empty(2, kind))
    assert gnp.argmax(backend.to_device(x), 1, into) is into
    np.testing.assert_array_equal(backend.to_host(into), [2, 1])
    for wrong in ("uint64", "float64"):
        with pytest.raises(TypeError):
            np.argmax(x, 1, np.empty(2, wrong))
        with pytest.raises(TypeError):
            gnp.argmax(backend.to_device(x), 1, backend.to_device(np.empty(2, wrong)))
    with pytest.raises(ValueError, match="shape"):
        gnp.argmax(backend.to_device(x), 1, backend.to_device(np.empty(3, np.int64)))


def test_out_of_ptp() -> None:
    x = np.array([1, 4, 2])
    out = np.empty((), np.float32)
    assert gnp.ptp(x, out=out) is out
    assert out == 3
    with pytest.raises(TypeError):
        gnp.ptp(x * 1.0, out=np.empty((), int))
    with pytest.raises(TypeError):
        gnp.ptp(x > 1)


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "ptp"])
def test_nothing(name: str) -> None:
    for shape, axis in (((0,), None), ((0, 3), 0), ((2, 0, 3), 1)):
        with pytest.raises(ValueError, match=r"no elements|nothing"):
            getattr(gnp, name)(np.empty(shape), axis=axis)
    got = getattr(gnp, name)(np.empty((0, 3)), axis=1)
    assert got.shape == (0,)
    assert got.dtype == getattr(np, name)(np.empty((0, 3)), axis=1).dtype


def test_initial() -> None:
    x = np.array([3, 1, 2])
    assert gnp.max(x, initial=9.5) == 9
    assert gnp.max(x[:0], initial=4) == 4
    assert gnp.min(x, initial=2, where=[True, False, True]) == 2
    with pytest.raises(OverflowError):
        gnp.max(x.astype(np.int8), initial=300)
    with pytest.raises(ValueError, match="initial"):
        gnp.max(x, where=[True, False, True])
    assert np.isnan(gnp.max(x * 1.0, initial=np.nan))


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


def test_what_is_no_array() -> None:
    assert gnp.max(3) == 3
    assert gnp.argmax(3) == 0
    assert gnp.argmax(np.array(3), axis=-1) == 0
    assert gnp.min([[4, 2], [1, 5]], axis=0).tolist() == [1, 2]
    assert gnp.max(np.arange(3, dtype=">i4")) == 2
    for axis in a_few(((0,), True, 1.0)):
        with pytest.raises(TypeError):
            gnp.argmax([1, 2], axis=axis)
    with pytest.raises(np.exceptions.AxisError):
        gnp.argmax(np.array(3), axis=1)


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "ptp"])
def test_lazy_and_bfloat16(name: str) -> None:
    x = np.array([[1.0, 5.0, -2.0], [7.0, 7.0, 0.0]])
    want = getattr(np, name)(-x, axis=1)
    np.testing.assert_array_equal(getattr(gnp, name)(-ga.lazy.asarray(x), axis=1), want)
    got = getattr(gnp, name)((-x).astype(ml_dtypes.bfloat16), axis=1)
    np.testing.assert_array_equal(got.astype(float), want)
    z = ga.lazy.asarray(x) * 1j
    np.testing.assert_array_equal(getattr(gnp, name)(z, axis=1), getattr(np, name)(x * 1j, axis=1))
