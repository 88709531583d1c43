"""Means, variances and averages beside NumPy's, which are computed in wider numbers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpys_own import arrays, check_same, examples, reduction_options
from support import Backend, a_few, assert_same

import gpualgo as ga
import gpualgo.numpy as gnp
from gpualgo.lazy import reductions

SMALL = settings(
    max_examples=examples(60, emulated=3), deadline=None, database=None, derandomize=True
)
WIDE = {"f": np.float64, "c": np.complex128}


@pytest.fixture(scope="module", params=["one pass", "two passes"], autouse=True)
def passes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Few elements of NumPy arrays take as many passes as none or many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reductions, "READ_TWICE", 2 if request.param == "two passes" else 1 << 40)
        yield


def wider(name: str) -> Any:
    """Return NumPy's function, computed in wide numbers and rounded once."""

    def call(a: Any, *args: Any, **kwargs: Any) -> Any:
        like = getattr(np, name)(a, *args, **kwargs)
        kind = np.asarray(like).dtype
        if "dtype" in kwargs or a.dtype.kind not in "fc":
            return like
        found = getattr(np, name)(a.astype(WIDE[a.dtype.kind]), *args, **kwargs)
        with np.errstate(all="ignore"):
            return np.asarray(found).astype(kind)[()]

    return call


@SMALL
@given(st.data())
def test_means(backend: Backend, data: Any) -> None:
    x = data.draw(arrays())
    kwargs = data.draw(reduction_options(x))
    check_same(backend, "mean", x, ulps=64, theirs=wider("mean"), **kwargs)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["var", "std"])
@SMALL
@given(st.data())
def test_spreads(backend: Backend, name: str, data: Any) -> None:
    x = data.draw(arrays())
    if x.dtype.kind in "iu":
        x = x % x.dtype.type(100)  # whose squares NumPy's float64 holds
    kwargs = data.draw(reduction_options(x))
    option = data.draw(st.sampled_from(["ddof", "correction", ""]))
    if option:
        kwargs[option] = data.draw(st.sampled_from([0, 1, 1.5]))
    check_same(backend, name, x, ulps=64, theirs=wider(name), **kwargs)


@pytest.mark.parametrize("name", ["mean", "var", "std"])
def test_out(backend: Backend, name: str) -> None:
    x = np.arange(12.0).reshape(3, 4) ** 2
    for kind in ("float64", "float32", "int32", "complex64"):
        if name == "std" and kind == "int32":
            with pytest.raises(TypeError):
                gnp.std(backend.to_device(x), axis=1, out=backend.to_device(np.empty(3, kind)))
            continue
        want = getattr(np, name)(x, axis=1, out=np.empty(3, kind))
        into = backend.to_device(np.empty(3, kind))
        assert getattr(gnp, name)(backend.to_device(x), axis=1, out=into) is into
        np.testing.assert_allclose(backend.to_host(into), want, rtol=1e-6)


def test_nothing_is_lost_near_a_large_mean() -> None:
    x = np.random.default_rng(0).standard_normal(100_000) + 1e9
    assert gnp.var(x) == pytest.approx(np.var(x - 1e9), rel=1e-6)
    y = (np.random.default_rng(0).standard_normal(100_000) + 1e4).astype(np.float32)
    assert gnp.std(y) == pytest.approx(np.std(y.astype(float)), rel=1e-5)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "u8"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_equal_elements_have_no_variance(backend: Backend, dtype: str, axis: Any) -> None:
    for value in (np.array(0.1, dtype), np.finfo(dtype).max if dtype[0] == "f" else 7):
        x = backend.to_device(np.full((70, 300), value, dtype))
        assert not backend.to_host(gnp.var(x, axis=axis)).any()
        assert not backend.to_host(gnp.std(x[::-1, ::2], axis=axis)).any()


@pytest.mark.parametrize("place", [0, 50])
def test_an_element_beyond_a_narrower_dtype(monkeypatch: pytest.MonkeyPatch, place: int) -> None:
    monkeypatch.setattr(reductions, "READ_TWICE", 64)
    x = np.ones((100, 2))
    x[place] = 1e39
    with np.errstate(all="raise"):
        assert np.isposinf(gnp.var(x, axis=0, dtype="f4")).all()


def test_half_precision_does_not_overflow() -> None:
    for dtype in a_few((np.float16, ml_dtypes.bfloat16)):
        x = np.full(70_000, 300, dtype)
        assert gnp.mean(x) == 300
        assert gnp.mean(x).dtype == dtype
        x[::2] = 0
        assert gnp.std(x) == 150
        assert gnp.std(x).dtype == dtype


def test_infinities_and_nan() -> None:
    for values in ([np.inf, 1.0], [np.inf, -np.inf, 0], [np.nan, 1.0], [1e200, -1e200]):
        for name in ("mean", "var", "std"):
            with np.errstate(all="ignore"):
                want = getattr(np, name)(np.array(values))
            np.testing.assert_array_equal(getattr(gnp, name)(np.array(values)), want)
    z = np.array([1 + 1j, complex(np.inf, 0)])
    assert np.isnan(gnp.var(z))


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
def test_squares_that_overflow(backend: Backend, dtype: str) -> None:
    x = np.full((3, 400), 1.0, dtype)
    x[:2, ::2] = 1e20 if dtype == "f4" else 1e200
    x[2] = 0.0
    mask = np.arange(400) % 5 > 0
    with np.errstate(all="ignore"):
        check_same(backend, "var", x, axis=1)
        check_same(backend, "nanstd", x, axis=1, where=mask)


@pytest.mark.parametrize("name", ["mean", "var", "std"])
@pytest.mark.parametrize("kwargs", [{}, {"axis": 0}, {"where": False}, {"keepdims": True}], ids=str)
def test_warnings_of_empty_slices(name: str, kwargs: Any) -> None:
    x = np.ones(3) if "where" in kwargs else np.empty((0, 2))
    with warnings.catch_warnings(record=True) as theirs:
        warnings.simplefilter("always")
        want = getattr(np, name)(x, **kwargs)
    with warnings.catch_warnings(record=True) as ours:
        warnings.simplefilter("always")
        got = getattr(gnp, name)(x, **kwargs)
    np.testing.assert_array_equal(got, want)
    # Older NumPys end the mean's with a full stop.
    assert str(ours[0].message).rstrip(".") == str(theirs[0].message).rstrip(".")
    assert ours[0].category is RuntimeWarning
    assert ours[0].filename == __file__


def test_degrees_of_freedom() -> None:
    with pytest.warns(RuntimeWarning, match="Degrees of freedom"):
        assert np.isnan(gnp.var([1.0], ddof=1))
    with pytest.raises(ValueError, match="simultaneously"):
        gnp.var([1.0, 2.0], ddof=1, correction=1)
    with pytest.raises(TypeError):
        gnp.var([1.0, 2.0], ddof="1")


@pytest.mark.parametrize("name", ["mean", "var", "std", "average"])
def test_lazy(backend: Backend, name: str) -> None:
    x = np.arange(12.0).reshape(3, 4) - 5
    lazy = ga.lazy.asarray(backend.to_device(x)) * 2
    got = backend.to_host(getattr(gnp, name)(lazy, axis=0))
    np.testing.assert_allclose(got, getattr(np, name)(x * 2, axis=0))
    for dtype in a_few((np.float32, np.complex64)):
        same = getattr(np, name)(ga.lazy.asarray(x.astype(dtype))) if name != "average" else None
        if same is not None:
            assert same == getattr(gnp, name)(ga.lazy.asarray(x.astype(dtype)))


@pytest.mark.parametrize("name", ["mean", "nanmean", "var", "nanvar"])
@pytest.mark.parametrize("kind", ["u1", "i1", "i2", "u4"])
def test_sums_in_a_narrow_dtype_wrap(backend: Backend, name: str, kind: str) -> None:
    """Also in that of the elements, whose sums without a dtype are wider."""
    for own in (kind, "u1", "i4"):
        x = np.full(70_000, 37, own)
        x[::3] = 101
        for each in (backend.to_device(x), ga.lazy.asarray(backend.to_device(x))):
            got = getattr(gnp, name)(each, dtype=kind)
            assert_same(backend.to_host(got), getattr(np, name)(x, dtype=kind))


def test_complex_as_real() -> None:
    z = np.array([1 + 1j, 2])
    for name in ("mean", "var"):
        with pytest.warns(np.exceptions.ComplexWarning):
            want = getattr(np, name)(z, dtype=float)
        with pytest.warns(np.exceptions.ComplexWarning):
            assert getattr(gnp, name)(z, dtype=float) == want


@pytest.mark.parametrize(("shape", "axis", "other"), [
    ((12,), None, (12,)), ((3, 4), None, (3, 4)), ((3, 4), 1, (4,)), ((3, 4), 0, (3,)),
    ((3, 4), (1, 0), (4, 3)), ((2, 3, 2), (0, 2), (2, 2)), ((3, 4), -1, (3, 4)),
])  # fmt: skip
def test_averages(backend: Backend, shape: Any, axis: Any, other: Any) -> None:
    rng = np.random.default_rng(1)
    x, weights = rng.standard_normal(shape), rng.uniform(0.5, 2, other)
    ways: list[dict[str, Any]] = [{}, {"returned": True}, {"returned": True, "keepdims": True}]
    for options in a_few(ways):
        check_same(backend, "average", x, axis=axis, ulps=4, **options)
        check_same(backend, "average", x, axis, weights, ulps=8, **options)
    number = (weights * 4).astype(np.int32)
    for one in a_few((x.astype(np.float32), (x * 9).astype(np.int16), x * 1j, x > 0), 2):
        check_same(backend, "average", one, axis, number, ulps=8)


def test_errors_of_averages() -> None:
    x = np.ones((2, 3))
    for args, error in [
        ((x, None, [1, 2, 3]), TypeError), ((x, 0, [1, 2, 3]), ValueError),
        ((x, 2), np.exceptions.AxisError), ((x, (0, 0)), ValueError),
        ((x[0], None, [1, 1, -2]), ZeroDivisionError), ((x[0, :0], None, []), ZeroDivisionError),
        ((x, 2, [1, 2, 3]), np.exceptions.AxisError),
    ]:  # fmt: skip
        with pytest.raises(error):
            np.average(*args)
        with pytest.raises(error):
            gnp.average(*args)
    assert gnp.average(np.float16([1, 2]), weights=[1, 3]) == 1.75
    assert gnp.average(3.0, weights=2) == 3
    half = np.full(70_000, 2, np.float16)
    assert gnp.average(half, weights=half) == 2
