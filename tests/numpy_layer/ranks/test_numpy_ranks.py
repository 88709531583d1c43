"""Medians and quantiles beside NumPy's, to the bit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpys_own import DTYPES, arrays, assert_same, axes, check_same, examples
from support import BFLOAT16, Backend, a_few, scaled, since_numpy

import gpualgo as ga
import gpualgo.numpy as gnp
from gpualgo._algorithms.top_k.tuning import LONG
from gpualgo.numpy import _ranks

SMALL = settings(
    max_examples=examples(80, emulated=4), deadline=None, database=None, derandomize=True
)
METHODS = [*_ranks.DISCRETE_METHODS, *_ranks.INTERPOLATING_METHODS]
REAL = [dtype for dtype in DTYPES if dtype.kind in "iuf"]
# NumPy's differences of few bits overflow.
PLAIN = [dtype for dtype in REAL if dtype.kind == "f"]


@SMALL
@given(st.data())
def test_median(backend: Backend, data: Any) -> None:
    x = data.draw(arrays(DTYPES[:-2]))
    kwargs: dict[str, Any] = {"axis": data.draw(axes(x.ndim))}
    if data.draw(st.booleans()):
        kwargs["keepdims"] = data.draw(st.booleans())
    check_same(backend, "median", x, **kwargs)


def test_median_of_complex_numbers(backend: Backend) -> None:
    random = np.random.default_rng(0)
    for n in (5, 6):
        x = (random.standard_normal((n, 4)) + 1j * random.standard_normal((n, 4))).astype("c8")
        for axis in a_few((0, 1, None)):
            check_same(backend, "median", x, ulps=1, axis=axis)
        x[1, 2] = np.nan
        check_same(backend, "median", x, ulps=1, axis=0)


def fractions(data: Any, *, percent: bool = False) -> Any:
    """Return a q of one of the kinds that NumPy has rules for."""
    one = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 0.3, 1.0, 1 / 3]), st.floats(0, 1))
    q: Any = data.draw(one)
    shape = data.draw(st.sampled_from([None, (), (1,), (3,), (2, 2), (0,)]))
    if shape is not None:
        q = np.array([data.draw(one) for _ in range(int(np.prod(shape)))]).reshape(shape)
        q = q.astype(data.draw(st.sampled_from(["f8", "f4"])))
    elif not data.draw(st.integers(0, 3)):
        q = data.draw(st.integers(0, 1))
    return q * 100 if percent else q


@SMALL
@given(st.data())
def test_quantile(backend: Backend, data: Any) -> None:
    x = data.draw(arrays(PLAIN))
    kwargs: dict[str, Any] = {"axis": data.draw(axes(x.ndim))}
    if data.draw(st.booleans()):
        kwargs["keepdims"] = data.draw(st.booleans())
    kwargs["method"] = data.draw(st.sampled_from(METHODS))
    q = fractions(data)
    if np.isnan(x).any() and np.asarray(q).ndim == 0 and type(q) not in (int, float):
        q = float(q)  # NumPy's NaN has the dtype of the array then, whatever the others have
    if np.isinf(x).any():
        q = float(np.ravel(q)[0]) if np.size(q) else 0.5
    check_same(backend, "quantile", x, q, numbers=False, **kwargs)


@SMALL
@given(st.data())
def test_percentile_of_integers(backend: Backend, data: Any) -> None:
    dtype = data.draw(st.sampled_from([one for one in REAL if one.kind in "iu"]))
    shape = data.draw(st.sampled_from([(1,), (2,), (7,), (3, 4)]))
    x = data.draw(st.lists(st.integers(0, 60), min_size=12, max_size=12))
    x = np.resize(np.array(x, dtype), shape)
    method = data.draw(st.sampled_from(METHODS))
    axis = data.draw(axes(x.ndim))
    q = fractions(data, percent=True)
    check_same(backend, "percentile", x, q, axis=axis, method=method)


@pytest.mark.slow
@since_numpy("2.4")
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_long_rows(backend: Backend, dtype: str) -> None:
    random = np.random.default_rng(0)
    n = scaled(200_001, emulated=301)
    x = (random.standard_normal(n) * 1e5).astype(dtype)
    q = [0.01, 0.25, 0.5, 0.75, 0.99]
    for one in a_few((0.3, q, np.float32(0.7))):
        check_same(backend, "quantile", x, one)
    check_same(backend, "median", x)
    check_same(backend, "median", x[1:])
    check_same(backend, "percentile", x, 37, method="hazen")
    rows = x[: n // 12 * 12].reshape(3, -1)
    for axis in a_few((0, 1)):
        check_same(backend, "quantile", rows, q, axis=axis)
        check_same(backend, "median", rows, axis=axis)
    check_same(backend, "median", rows.reshape(3, 4, -1)[..., :50], axis=(0, 2))
    if x.dtype.kind == "f":
        x[n // 3] = np.nan
        check_same(backend, "median", x)
        check_same(backend, "quantile", x, [0.1, 0.2])


@pytest.mark.parametrize("name", ["float16", "float64"])
@pytest.mark.parametrize("shape", [(2, 1 << 12), (130, 40), (5, 20)])
def test_rows_whose_final_element_is_selected(
    backend: Backend, name: str, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last element of such a row tells whether it has a NaN; of others the maximum does."""
    if shape[0] == 2:
        monkeypatch.setattr(_ranks, "strategy_of_ranks", lambda *_: LONG)
    random = np.random.default_rng(3)
    x = random.integers(0, 999, shape).astype(name)
    for _ in range(2):
        for axis in (None, 1):
            check_same(backend, "median", x, axis=axis)
            for q in (1.0, [0.25, 0.5, 0.75], [0, 0.2, 0.4, 0.6, 1], np.arange(9) / 8):
                check_same(backend, "quantile", x, q, axis=axis, method="lower")
        x[1, 17] = -np.nan


def test_integers_whose_difference_overflows(backend: Backend) -> None:
    for dtype in a_few(("int8", "int16", "int32", "int64"), 2):
        info = np.iinfo(dtype)
        x = backend.to_device(np.array([info.min, info.max], dtype))
        for q in a_few((0.25, 0.5, 1 / 3)):
            got = float(backend.to_host(gnp.quantile(x, q)))
            want = float(info.min) + (float(info.max) - float(info.min)) * q
            assert abs(got - want) <= abs(np.spacing(float(info.max)))


@since_numpy("2.4")
def test_bfloat16(backend: Backend) -> None:
    x = np.array([1, 2, 4, 3], BFLOAT16)
    for name, args in (("median", ()), ("quantile", (0.4,)), ("quantile", ([0.4, 0.6],))):
        got = np.asarray(backend.to_host(getattr(gnp, name)(backend.to_device(x), *args)))
        want = np.asarray(getattr(np, name)(x, *args))
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got.astype(float), want.astype(float))
    x[2] = np.nan  # which NumPy does not see
    got = backend.to_host(gnp.median(backend.to_device(x)))
    assert np.isnan(np.asarray(got).astype(float))


def test_out(backend: Backend) -> None:
    x = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32)
    there = backend.to_device(x)
    for dtype in a_few(("f4", "f8")):
        out = backend.to_device(np.zeros((2, 5), dtype))
        assert gnp.quantile(there, [0.2, 0.4], axis=0, out=out) is out
        want = np.quantile(x, [0.2, 0.4], axis=0).astype(dtype)  # rounded once
        np.testing.assert_array_equal(backend.to_host(out), want)
    out = backend.to_device(np.zeros((1, 5), np.int64))
    assert gnp.median(there * 10, axis=0, keepdims=True, out=out) is out
    want = np.median(x * 10, axis=0, keepdims=True, out=np.zeros((1, 5), np.int64))
    np.testing.assert_array_equal(backend.to_host(out), want)
    with pytest.raises(ValueError, match="shape"):
        gnp.median(there, axis=0, out=backend.to_device(np.zeros(4, np.float32)))
    with pytest.raises(TypeError, match="casting"):
        gnp.quantile(there, 0.5, axis=0, out=backend.to_device(np.zeros(5, np.int32)))


@since_numpy("2.4")  # before, quantiles of integers at an integer q are integers
def test_integers_as_q(backend: Backend) -> None:
    """Methods that interpolate give NaN where the element is infinite."""
    x = np.arange(12.0)
    x[0], x[-1] = -np.inf, np.inf
    for method in a_few(METHODS, 3):
        for q in (0, 1, [0, 1]):
            check_same(backend, "quantile", x, q, method=method)
            check_same(backend, "quantile", np.arange(12), q, method=method)


def test_misaligned_arrays() -> None:
    x = np.zeros(8 * 240 + 1, np.uint8)[1:].view(np.float64).reshape(4, 10, 6)
    x[...] = np.random.default_rng(0).random(x.shape)
    assert not x.flags.aligned
    z = np.zeros(16 * 240 + 1, np.uint8)[1:].view(np.complex128).reshape(4, 10, 6)
    z[...] = x + 1j * x[::-1]
    np.testing.assert_array_equal(gnp.median(x, axis=(0, 2)), np.median(x, axis=(0, 2)))
    np.testing.assert_array_equal(gnp.median(z.T), np.median(z.T))
    found = gnp.nanquantile(x.T, 0.3, axis=(0, 2))
    np.testing.assert_array_equal(found, np.nanquantile(x.T, 0.3, axis=(0, 2)))


def test_no_elements_and_no_q(backend: Backend) -> None:
    for dtype in ("i8", "?", "f8"):
        for method in ("hazen", "lower"):
            check_same(backend, "quantile", np.zeros((0, 3), dtype), [], axis=0, method=method)


def test_warnings_of_no_elements() -> None:
    with pytest.warns(RuntimeWarning, match="Mean of empty slice"):
        assert np.isnan(gnp.median(np.zeros((0, 2)), axis=0)).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gnp.median(np.zeros((0, 2)), axis=1).shape == (0,)
        gnp.median(np.array([1, np.nan]))


def test_q_of_a_gpu(backend: Backend) -> None:
    x = np.random.default_rng(0).standard_normal((4, 7)).astype(np.float32)
    x[2, 3] = np.nan
    q = np.array([[0.5, 0.3, 1.0], [0.0, 0.99, 1 / 3]])
    for method in a_few((*METHODS[:: scaled(1, emulated=4)], "linear"), scaled(3, emulated=1)):
        for one, axis in ((q, 0), (q[0], 1), (q[0, 1:2].astype(np.float32), None)):
            # A lazy q is read where the kernel is, on either backend.
            asked = ga.lazy.asarray(backend.to_device(one))
            got = gnp.quantile(backend.to_device(x), asked, axis=axis, method=method)
            want = np.quantile(x, one, axis=axis, method=method)
            assert_same(backend, got, want, 0, f"{method} {one} {axis}")


@pytest.mark.few
def test_few_elements(backend: Backend) -> None:
    x = np.array([-100, 100], np.int8)
    assert float(backend.to_host(gnp.quantile(backend.to_device(x), 0.5))) == 0.0
    check_same(backend, "quantile", np.array([1.0, 3.0]), [0.5], axis=0, keepdims=True)
    check_same(backend, "percentile", np.array([1, 3]), 50, method="lower")


@since_numpy("2.4")
@pytest.mark.parametrize("name", ["quantile", "nanquantile", "percentile", "nanpercentile"])
def test_weights(backend: Backend, name: str) -> None:
    random = np.random.default_rng(0)
    shape = scaled((4, 9, 3), emulated=(2, 5, 1))
    x = random.integers(0, 20, shape).astype("f4")
    x[random.random(shape) < 0.1] = np.nan
    if "nan" not in name:
        x[1:] = np.nan_to_num(x[1:])
    # Of weights that sum to nothing NumPy tells; no one waits for a GPU to be told of these.
    weights = random.integers(0 if backend.xp is np else 1, 5, shape) * 0.25
    weights[:, 0] = 1.0
    x[:, 0] = 3
    for q in a_few((0.3, [0.0, 0.35, 1.0], 1), 2):
        for axis in a_few((None, 0, 1, -1, (0, 2)), 2):
            given = np.multiply(q, 100) if "percent" in name else q
            given = given if np.ndim(q) == 0 else given.tolist() if "percent" in name else q
            options: dict[str, Any] = {"axis": axis, "method": "inverted_cdf"}
            check_same(backend, name, x, given, weights=weights, **options)
    options = {"axis": 1, "method": "inverted_cdf"}
    if "nan" not in name:  # NumPy's raises IndexError
        check_same(backend, name, x, 0.4, weights=weights[0, :, 0], **options)
    both = weights[:, :, 0].T.copy()
    if name == "quantile":
        check_same(backend, name, x, 0.4, weights=both, axis=(1, 0), method="inverted_cdf")
        strided, heavy = (
            np.zeros(8 * 60 + 1, np.uint8)[1:].view(float).reshape(5, 12) for _ in "ab"
        )
        strided[...], heavy[...] = np.arange(60).reshape(5, 12), 1.0
        found = gnp.quantile(strided.T, 0.4, weights=heavy.T, method="inverted_cdf")
        assert found == 23


@since_numpy("2.4")
def test_what_weights_may_not_be(backend: Backend) -> None:
    x, w = np.arange(6.0).reshape(2, 3), np.ones((2, 3))
    options: dict[str, Any] = {"method": "inverted_cdf"}
    check_same(backend, "quantile", x, 0.4, weights=w)
    check_same(backend, "quantile", x, 0.4, weights=w[0], **options)
    check_same(backend, "quantile", x, 0.4, weights=w[0], axis=0, **options)
    if backend.xp is np:  # no one waits for a GPU to be told of these
        for value in (-1, np.nan, np.inf):
            bad = w.copy()
            bad[1, 1] = value
            check_same(backend, "quantile", x, 0.4, weights=bad, axis=1, **options)
        check_same(backend, "quantile", x, 0.4, weights=w * 0, axis=1, **options)
    check_same(backend, "quantile", x.astype(int), 0.4, weights=w, axis=1, **options)
