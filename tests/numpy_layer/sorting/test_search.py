"""Searches beside NumPy's: which place, which bin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpys_own import DTYPES, arrays, check_same, examples
from support import BFLOAT16, Backend, scaled

import gpualgo as ga
import gpualgo.numpy as gnp
from gpualgo.numpy import _sorting

SMALL = settings(
    max_examples=examples(60, emulated=4), deadline=None, database=None, derandomize=True
)
REAL = [dtype for dtype in DTYPES if dtype.kind != "c"]
# Each pair is a kernel of its own to compile.
PAIRS = [
    *zip(REAL, REAL, strict=True),
    *((np.dtype(a), np.dtype(b)) for a, b in (
        ("int8", "uint64"), ("int64", "uint64"), ("int64", "float32"), ("bool", "int16"),
        ("float32", "float64"), ("float64", "float16"), ("uint8", "float16"),
    )),
]  # fmt: skip


@SMALL
@given(st.data())
def test_searchsorted(backend: Backend, data: Any) -> None:
    own, other = data.draw(st.sampled_from(PAIRS))
    a = np.sort(data.draw(arrays([own], min_dims=1, max_dims=1)))
    v = data.draw(arrays([other]))
    side = data.draw(st.sampled_from(["left", "right"]))
    check_same(backend, "searchsorted", a, v, side=side)


@SMALL
@given(st.data())
def test_a_sorter(backend: Backend, data: Any) -> None:
    a = data.draw(arrays(REAL[::6], min_dims=1, max_dims=1))
    sorter = np.argsort(a, kind="stable").astype(data.draw(st.sampled_from(["i8", "u2"])))
    v = data.draw(arrays([a.dtype], max_dims=2))
    check_same(backend, "searchsorted", a, v, "right", sorter)


def test_bfloat16_and_lazy_arrays(backend: Backend) -> None:
    a = np.array([1, 2, 4, np.nan], BFLOAT16)
    got = gnp.searchsorted(backend.to_device(a), backend.to_device(a[::-1].copy()))
    assert backend.to_host(got).tolist() == [3, 2, 1, 0]
    x = ga.lazy.asarray(backend.to_device(np.arange(5.0)))
    got = backend.to_host(gnp.searchsorted(x * 2, x[::-1] + 1))
    np.testing.assert_array_equal(
        got, np.searchsorted(np.arange(5.0) * 2, np.arange(5.0)[::-1] + 1)
    )
    got = backend.to_host(gnp.digitize(x[::-1], [0.5, 2.0]))
    np.testing.assert_array_equal(got, [2, 2, 2, 1, 0])


@SMALL
@given(st.data())
def test_digitize(backend: Backend, data: Any) -> None:
    own, other = data.draw(st.sampled_from(PAIRS))
    bins = np.sort(data.draw(arrays([own], min_dims=1, max_dims=1)))
    if data.draw(st.booleans()):
        bins = bins[::-1].copy()
    bins = bins[~np.isnan(bins)]
    x = data.draw(arrays([other]))
    check_same(backend, "digitize", x, bins, data.draw(st.booleans()))


@pytest.mark.parametrize("most", [1, 1 << 10])
def test_bins_of_which_nobody_looked(
    backend: Backend, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few bins on a GPU are searched as elements are read, many by a search: the same places."""
    monkeypatch.setattr(_sorting, "_SHORT", most)
    x = np.array([[np.nan, -1.0, 0.0], [0.5, 2.0, 7.0]])
    ends = [0.0, 2.0, np.nan], [np.nan, 2.0, 0.0], [np.nan, np.nan]
    for bins in ([-1, 0.5, 0.5, 2], [2, 0.5, 0.5, -1], [3, 3], [5, 1, 0], *ends):
        for right in (False, True):
            check_same(backend, "digitize", x, np.array(bins), right=right)
            check_same(backend, "digitize", x.astype("f4"), np.array(bins, "f4"), right=right)


def test_many(backend: Backend) -> None:
    random = np.random.default_rng(0)
    a = np.sort(random.standard_normal(scaled(100_000, emulated=300)).astype("f4"))
    v = random.standard_normal((3, scaled(50_001, emulated=101)))
    check_same(backend, "searchsorted", a, v)
    check_same(backend, "digitize", v, a[::50].copy())
    check_same(backend, "digitize", v, a[::-50].copy(), right=True)
