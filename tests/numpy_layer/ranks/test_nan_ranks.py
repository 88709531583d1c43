"""Medians and quantiles of what is no NaN beside NumPy's."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
import support
from hypothesis import given, settings
from hypothesis import strategies as st
from numpys_own import arrays, assert_same, axes, check_same, examples
from support import BFLOAT16, Backend, a_few, scaled, since_numpy

import gpualgo as ga
import gpualgo.numpy as gnp
from gpualgo.numpy import _ranks

SMALL = settings(
    max_examples=examples(60, emulated=3), deadline=None, database=None, derandomize=True
)
METHODS = [*_ranks.DISCRETE_METHODS, *_ranks.INTERPOLATING_METHODS]
FLOATS = [np.dtype(name) for name in ("float16", "float32", "float64")]


def filled(shape: Any, dtype: Any, share: float = 0.4) -> Any:
    """Return numbers between NaN."""
    random = np.random.default_rng(0)
    x = random.standard_normal(shape) * 8
    return np.where(random.random(shape) < share, np.nan, x).astype(dtype)


@SMALL
@given(st.data())
def test_nanmedian(backend: Backend, data: Any) -> None:
    x = data.draw(arrays([*FLOATS, np.dtype(bool), np.dtype("int16")], max_side=5))
    x = np.where(np.isinf(x), x.dtype.type(1), x)
    kwargs: dict[str, Any] = {"axis": data.draw(axes(x.ndim))}
    if data.draw(st.booleans()):
        kwargs["keepdims"] = data.draw(st.booleans())
    check_same(backend, "nanmedian", x, **kwargs)


@since_numpy("2.4")  # which computes with short floats' own precision in these places, too
@pytest.mark.filterwarnings("ignore:All-NaN")
@pytest.mark.parametrize("method", METHODS)
def test_nanquantile(backend: Backend, method: str) -> None:
    for dtype in a_few(FLOATS[scaled(0, emulated=2) :]):
        x = filled((4, 9, 3), dtype)
        x[1] = np.nan
        ways = (0.3, [0.0, 0.35, 1.0], np.float32([0.25, 0.8]), np.array([[0.5, 0.1]]), 1)
        for q in a_few(ways, 2):
            for axis in a_few((None, 1, -1, (0, 2)), 2):
                if backend.xp is not np and axis != 1:
                    continue
                if np.ndim(q) == 2 and axis in (-1, (0, 2)):
                    continue  # NumPy mixes up its axes
                given = backend.to_device(q) if isinstance(q, np.ndarray) else q
                got = gnp.nanquantile(backend.to_device(x), given, axis=axis, method=method)
                want = np.nanquantile(x, q, axis=axis, method=method)
                assert_same(backend, got, want, 0, f"{dtype} {q} {axis}")


@pytest.mark.slow
@pytest.mark.parametrize(
    "dtype",
    [
        pytest.param("float32", marks=since_numpy("2.4")),
        pytest.param("float64", marks=pytest.mark.exhaustive),
    ],
)
def test_many_rows(backend: Backend, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ranks, "_SMALL", 0)  # as if there were many
    x = filled((4, 9, 3), dtype)
    methods = ("linear", "hazen", "inverted_cdf")
    for (i, method), (j, q), (k, axis) in itertools.product(
        list(enumerate(methods))[:: scaled(1, emulated=2)],
        enumerate((0.3, [0.0, 0.35, 1.0])),
        enumerate((None, 1, (0, 2))),
    ):
        if (i + j + k) % 3 and not support.is_exhaustive:
            continue  # each method meets each q, each axis two methods; all are compiled anew
        got = gnp.nanquantile(backend.to_device(x), q, axis=axis, method=method)
        want = np.nanquantile(x, q, axis=axis, method=method)
        assert_same(backend, got, want, 0, f"{method} {q} {axis}")
    check_same(backend, "nanmedian", x, axis=1)


@SMALL
@given(st.data())
def test_nanpercentile(backend: Backend, data: Any) -> None:
    x = data.draw(arrays([*FLOATS[1:], np.dtype("uint8")], max_side=5))
    x = np.where(np.isinf(x), x.dtype.type(1), x)
    if x.dtype.kind == "u":
        x = x // 2  # NumPy's differences do not overflow
    kwargs: dict[str, Any] = {"axis": data.draw(axes(x.ndim))}
    if data.draw(st.booleans()):
        kwargs["keepdims"] = data.draw(st.booleans())
    q = data.draw(
        st.one_of(st.sampled_from([0, 100, 50.0]), st.lists(st.floats(0, 100), max_size=3))
    )
    method = data.draw(st.sampled_from(METHODS))
    check_same(backend, "nanpercentile", x, q, method=method, **kwargs)


@since_numpy("2.4")
def test_long_rows(backend: Backend) -> None:
    x = filled(scaled((3, 5000), emulated=(2, 60)), "f4")
    x[:, 0] = 3  # or NumPy's result has the dtype of x
    for axis in a_few((0, 1, None)):
        check_same(backend, "nanmedian", x, axis=axis)
        check_same(backend, "nanquantile", x, [0.01, 0.5], axis=axis)
    whole = np.nan_to_num(x)
    check_same(backend, "nanmedian", whole, axis=1)
    check_same(backend, "nanquantile", whole, 0.3)


def test_complex_and_bfloat16(backend: Backend) -> None:
    x = (filled(9, "f4") + 1j * filled(9, "f4", 0.2)).astype("c8")
    check_same(backend, "nanmedian", x, ulps=1)
    check_same(backend, "nanquantile", x, 0.5)
    b = backend.to_device(np.array([1, np.nan, 4, 3, 2], BFLOAT16))
    assert float(backend.to_host(gnp.nanmedian(b))) == 2.5
    assert float(backend.to_host(gnp.nanquantile(b, 0.0))) == 1


def test_outputs_of_nothing(backend: Backend) -> None:
    """They are as strict as those of NumPy's `nanmean`."""
    for shape, axis in (((0,), None), ((3, 0), 1), ((0, 2), 1)):
        x = np.zeros(shape)
        right = np.nanmedian(x, axis).shape
        for wrong, dtype in ((right, "?"), ((2, *right), "f8")):
            for name, more in (("nanmedian", ()), ("nanquantile", (0.5,))):
                for xp, made in ((np, np.asarray), (gnp, backend.to_device)):
                    with pytest.raises(TypeError if dtype == "?" else ValueError):
                        getattr(xp, name)(made(x), *more, axis, out=made(np.ones(wrong, dtype)))


def test_warnings() -> None:
    x = np.array([[np.nan, np.nan], [1, 2]])
    for call in (lambda: gnp.nanmedian(x, axis=1), lambda: gnp.nanquantile(x, 0.5, axis=1)):
        with pytest.warns(RuntimeWarning, match="All-NaN slice encountered"):
            np.testing.assert_array_equal(call(), [np.nan, 1.5])
    with pytest.warns(RuntimeWarning, match="Mean of empty slice"):
        gnp.nanmedian(np.zeros((0, 2)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gnp.nanmedian(x[1:], axis=1)


def test_out_and_lazy_arrays(backend: Backend) -> None:
    x = filled((4, 5), "f8")
    x[:, 0] = 1
    there = ga.lazy.asarray(backend.to_device(x))
    out = backend.to_device(np.zeros((2, 4), "f4"))
    assert gnp.nanquantile(there * 2, [0.2, 0.4], axis=1, out=out) is out
    want = np.nanquantile(x * 2, [0.2, 0.4], axis=1)
    np.testing.assert_array_equal(backend.to_host(out), want.astype("f4"))
    y = np.arange(40).reshape(4, 10)  # NumPy casts integers as floats
    for dtype in a_few(("i4", "f4", "?")):
        for method in ("linear", "lower"):
            out = backend.to_device(np.zeros(10, dtype))
            assert gnp.nanpercentile(backend.to_device(y), 50, 0, out, method=method) is out
            want = np.nanpercentile(y, 50, 0, np.zeros(10, dtype), method=method)
            np.testing.assert_array_equal(backend.to_host(out), want)
    got = gnp.nanmedian(there[::-1], axis=1)
    np.testing.assert_array_equal(backend.to_host(got), np.nanmedian(x[::-1], axis=1))
