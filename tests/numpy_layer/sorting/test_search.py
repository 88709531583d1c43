"""Searches beside NumPy's: which place, which bin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpys_own import DTYPES, arrays, check_same, examples
from support import BFLOAT16, Backend, a_few, scaled, since_numpy

import gpualgo as ga
import gpualgo.numpy as gnp
from gpualgo.numpy import NotTaken, _orders

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


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers(backend: Backend, dtype: str) -> None:
    parts = (np.nan, 1.0, 2.0, -np.inf)
    a = np.sort(np.array([complex(a, b) for a in parts for b in parts] * 2, dtype))
    for side in a_few(("left", "right")):
        check_same(backend, "searchsorted", a, a[::3].copy(), side=side)
        check_same(backend, "searchsorted", a, np.array([1.0, 5.0, np.nan], "f4"), side=side)
    check_same(backend, "searchsorted", np.arange(4.0), a[:4].copy())


def test_numbers(backend: Backend) -> None:
    a = np.array([1, 3, 3, 7])
    for dtype in a_few(("i1", "u8", "f4")):
        for v in a_few((3, 3.5, np.float32(3.5), True, 300, -1, 2**63, np.uint64(3)), 4):
            check_same(backend, "searchsorted", a.astype(dtype), v)
            check_same(backend, "searchsorted", np.zeros(0, dtype), v)
    check_same(backend, "searchsorted", a, np.array(3))


@since_numpy("2.4")
def test_what_is_not_taken(backend: Backend) -> None:
    a = np.array([1, 3, 3, 7])
    for side in ("middle", "LEFT", 1):
        check_same(backend, "searchsorted", a, 3, side=side)
    for sorter in ([0, 1, 2], [0.0, 1, 2, 3], [[0, 1, 2, 3]]):
        check_same(backend, "searchsorted", a, 3, sorter=np.array(sorter))
    check_same(backend, "searchsorted", a[None], 3)
    check_same(backend, "searchsorted", np.array(3), 3)
    with pytest.raises(ValueError, match="index out of range"):
        gnp.searchsorted(a, 3, sorter=[0, 1, 2, 9])
    with pytest.raises(NotTaken):
        gnp.searchsorted(a, 10**30)
    if backend.xp is not np:
        with pytest.raises(NotTaken, match="host memory"):
            gnp.searchsorted(backend.to_device(a), [3, 4])


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


def test_bins_of_the_host(backend: Backend) -> None:
    x = np.random.default_rng(0).standard_normal((5, 7))
    for bins in a_few(([-1, 0, 1.5], [1.5, 0, -1], [0], [], [2, 2], [1, 1, 0]), 3):
        for right in (False, True):
            check_same(backend, "digitize", x, bins, right=right)
    for bins in ([0, 2, 1], [[0, 1]], 3, [1j, 2]):
        check_same(backend, "digitize", x, bins)
    check_same(backend, "digitize", x + 1j, [0, 1])
    check_same(backend, "digitize", 3, [0, 1, 5])
    check_same(backend, "digitize", np.float32(3), np.array([5, 1, 0]))
    check_same(backend, "digitize", [np.nan, 1], [0.0, np.nan])
    check_same(backend, "digitize", [np.nan, 1], [2.0, 0.0])


@pytest.mark.parametrize("most", [1, 1 << 10])
def test_bins_of_which_nobody_looked(
    backend: Backend, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few bins on a GPU are searched as elements are read, many by a search: the same places."""
    monkeypatch.setattr(_orders, "MOST", most)
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
