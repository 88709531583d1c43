"""Reductions that leave NaN out beside NumPy's, which are computed in wider numbers."""

from __future__ import annotations

import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpys_own import arrays, check_same, examples, reduction_options
from support import Backend, a_few
from test_moments import wider

import gpualgo as ga
import gpualgo.numpy as gnp

SMALL = settings(
    max_examples=examples(40, emulated=3), deadline=None, database=None, derandomize=True
)
NAN = np.nan
DTYPES = [np.dtype(name) for name in (
    "bool", "int8", "uint64", "float16", "float32", "float64", "complex64", "complex128"
)]  # fmt: skip


@pytest.mark.parametrize("name", ["nansum", "nanprod"])
@SMALL
@given(st.data())
def test_sums(backend: Backend, name: str, data: Any) -> None:
    x = data.draw(arrays(DTYPES))
    if name.endswith("prod") and x.dtype.kind == "c":  # with infinities the order shows
        x = np.where(np.isinf(x), x.dtype.type(2), x)
    kwargs = data.draw(reduction_options(x))
    if data.draw(st.booleans()):
        kwargs["initial"] = data.draw(st.sampled_from([0, 2]))
    check_same(backend, name, x, ulps=64, **kwargs)


@pytest.mark.parametrize("name", ["nanmin", "nanmax"])
@SMALL
@given(st.data())
def test_extremes(backend: Backend, name: str, data: Any) -> None:
    x = data.draw(arrays(DTYPES))
    kwargs = data.draw(reduction_options(x))
    if "where" in kwargs:
        kwargs["initial"] = True
    check_same(backend, name, x, **kwargs)


@SMALL
@given(st.data())
def test_means(backend: Backend, data: Any) -> None:
    x = data.draw(arrays(DTYPES))
    kwargs = data.draw(reduction_options(x))
    check_same(backend, "nanmean", x, ulps=64, theirs=wider("nanmean"), **kwargs)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nanvar", "nanstd"])
@SMALL
@given(st.data())
def test_spreads(backend: Backend, name: str, data: Any) -> None:
    x = data.draw(arrays(DTYPES))
    if x.dtype.kind in "iu":
        x = x % x.dtype.type(100)  # whose squares NumPy's float64 holds
    kwargs = data.draw(reduction_options(x))
    if data.draw(st.booleans()):
        kwargs["ddof"] = data.draw(st.sampled_from([1, 1.5]))
    check_same(backend, name, x, ulps=64, theirs=wider(name), **kwargs)


@pytest.mark.parametrize("name", ["nanargmin", "nanargmax"])
@SMALL
@given(st.data())
def test_places(backend: Backend, name: str, data: Any) -> None:
    x = data.draw(arrays(DTYPES))
    kwargs = data.draw(reduction_options(x, where=False, tuples=False))
    if backend.xp is not np and x.dtype.kind in "fc":
        x = np.nan_to_num(x)  # slices without numbers are told otherwise there
    check_same(backend, name, x, **kwargs)


def test_slices_without_numbers_on_a_device(backend: Backend) -> None:
    x = np.array([[NAN, 2.0], [NAN, NAN]])
    if backend.xp is np:
        with pytest.raises(ValueError, match="All-NaN slice encountered"):
            gnp.nanargmin(x, axis=1)
        return
    got = backend.to_host(gnp.nanargmin(backend.to_device(x), axis=1))
    np.testing.assert_array_equal(got, [1, -1])


@pytest.mark.parametrize(("name", "values", "text"), [
    ("nanmin", [NAN, NAN], "All-NaN slice encountered"),
    ("nanmax", [NAN], "All-NaN slice encountered"),
    ("nanmean", [NAN], "Mean of empty slice"),
    ("nanmean", [], "Mean of empty slice"),
    ("nanvar", [NAN], "Degrees of freedom <= 0 for slice."),
    ("nanstd", [], "Degrees of freedom <= 0 for slice."),
])  # fmt: skip
def test_warnings(name: str, values: Any, text: str) -> None:
    x = np.array(values, float)
    for fn in (getattr(np, name), getattr(gnp, name)):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert np.isnan(fn(x))
        assert [str(one.message) for one in told] == [text]
        assert told[0].category is RuntimeWarning
    assert told[0].filename == __file__


def test_degrees_of_freedom() -> None:
    x = np.array([[NAN, 2.0, 4.0], [NAN, NAN, 4.0], [1.0, 2.0, 3.0]])
    with pytest.warns(RuntimeWarning, match="Degrees"):
        want = np.nanvar(x, axis=1, ddof=2)
    with pytest.warns(RuntimeWarning, match="Degrees"):
        np.testing.assert_allclose(gnp.nanvar(x, axis=1, ddof=2), want)
    assert gnp.nanvar(x, correction=1) == pytest.approx(np.nanvar(x, correction=1))
    with pytest.raises(ValueError, match="simultaneously"):
        gnp.nanvar(x, ddof=1, correction=1)


@pytest.mark.parametrize("name", ["nanmean", "nanvar", "nanstd"])
def test_inexact(name: str) -> None:
    x = np.array([1.0, NAN, 4.0])
    for kwargs in ({"dtype": int}, {"out": np.empty((), int)}):
        with pytest.raises(TypeError, match="inexact"):
            getattr(np, name)(x, **kwargs)
        with pytest.raises(TypeError, match="inexact"):
            getattr(gnp, name)(x, **kwargs)
    for dtype in a_few(("float32", "complex128")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = getattr(np, name)(x, dtype=dtype)
        assert getattr(gnp, name)(x, dtype=dtype) == pytest.approx(want)


@pytest.mark.parametrize("name", ["nansum", "nanmax", "nanmean", "nanvar", "nanargmin"])
def test_out_lists_lazy_and_bfloat16(backend: Backend, name: str) -> None:
    x = np.array([[1.0, NAN, -2.0], [7.0, 7.0, NAN]])
    want = getattr(np, name)(x, axis=1)
    into = backend.to_device(np.empty(2, want.dtype))
    assert getattr(gnp, name)(backend.to_device(x), axis=1, out=into) is into
    np.testing.assert_allclose(backend.to_host(into), want)
    np.testing.assert_allclose(getattr(gnp, name)(x.tolist(), axis=1), want)
    lazy = ga.lazy.asarray(backend.to_device(x)) * 1
    np.testing.assert_allclose(backend.to_host(getattr(gnp, name)(lazy, axis=1)), want)
    half = backend.to_device(x.astype(ml_dtypes.bfloat16)) if backend.xp is np else None
    if half is not None:
        got = getattr(gnp, name)(half, axis=1)
        np.testing.assert_allclose(np.asarray(got).astype(float), want, rtol=2**-8)
        assert got.dtype in (half.dtype, np.int64)
