"""Arrays as sets beside NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpys_own import arrays, check_same, examples
from support import Backend, a_few, since_numpy

import gpualgo.numpy as gnp
from gpualgo import lazy

SMALL = settings(
    max_examples=examples(25, emulated=5), deadline=None, database=None, derandomize=True
)


KINDS = [(np.dtype(own), np.dtype(other)) for own, other in (
    ("int64", "int64"), ("float32", "float32"), ("complex128", "complex128"), ("bool", "int8"),
    ("float64", "int64"),
)]  # fmt: skip


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Any, Any]:
    """Return two arrays, often of one dtype, which have elements in common."""
    # Not all pairs, as each compiles its own functions.
    first, second = draw(st.sampled_from(KINDS))
    return draw(arrays([first], max_dims=2)), draw(arrays([second], max_dims=1, max_side=20))


@SMALL
@given(st.data())
def test_isin(backend: Backend, data: Any) -> None:
    x, others = data.draw(pairs())
    kwargs = {name: True for name in ("invert", "assume_unique") if data.draw(st.booleans())}
    if kwargs.get("assume_unique"):
        x, others = np.unique(x), np.unique(others)
    check_same(backend, "isin", x, others, **kwargs)


@SMALL
@given(st.data())
@pytest.mark.parametrize("name", ["union1d", "setdiff1d", "setxor1d", "intersect1d"])
def test_sets(backend: Backend, name: str, data: Any) -> None:
    x, others = data.draw(pairs())
    check_same(backend, name, x, others)


@SMALL
@given(st.data())
@pytest.mark.parametrize("name", ["setdiff1d", "setxor1d", "intersect1d"])
def test_sets_of_what_is_unique(backend: Backend, name: str, data: Any) -> None:
    x, others = (np.unique(one) for one in data.draw(pairs()))
    kwargs = {}
    if name == "intersect1d" and data.draw(st.booleans()):
        kwargs["return_indices"] = True
    check_same(backend, name, x[::-1], others, True, **kwargs)


@pytest.mark.slow
@SMALL
@given(st.data())
def test_where_the_intersection_stands(backend: Backend, data: Any) -> None:
    x, others = data.draw(pairs())
    check_same(backend, "intersect1d", x, others, return_indices=True)


EXTREMES = {
    "int64": [-(2**63), -1, 0, 1, 2**53 + 1, 2**63 - 1],
    "uint64": [0, 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1],
    "int8": [-128, -1, 0, 1, 127],
    "uint8": [0, 1, 127, 128, 255],
    "bool": [False, True],
}


PAIRS = [
    ("int64", "uint64"), ("uint64", "int8"), ("int8", "uint8"), ("uint8", "int64"),
    ("bool", "int8"), ("uint64", "bool"),
    *(
        pytest.param(*pair, marks=pytest.mark.exhaustive)  # of signs that those above have
        for pair in (("uint64", "int64"), ("int8", "uint64"), ("int64",) * 2, ("uint64",) * 2)
    ),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("own", "other"), PAIRS)
def test_integers_of_any_size(backend: Backend, own: str, other: str) -> None:
    x = np.array(EXTREMES[own], own)
    for part in (slice(None), slice(0, 2), slice(-2, None), slice(2, 4)):
        few = np.array(EXTREMES[other], other)[part]
        for others in (few, np.resize(few, 20)):  # compared one by one; looked up, or searched for
            want = np.array([value in others.tolist() for value in EXTREMES[own]])
            for invert in (False, True):
                got = gnp.isin(backend.to_device(x), backend.to_device(others), invert=invert)
                np.testing.assert_array_equal(backend.to_host(got), want ^ invert)


def test_nan_is_in_nothing(backend: Backend) -> None:
    x = np.array([1, np.nan, -0.0, np.inf])
    for others in (np.array([np.nan, 0.0]), np.array([np.nan, 0.0] * 9 + [np.inf])):
        for name in a_few(("isin", "setdiff1d", "intersect1d", "union1d", "setxor1d"), 2):
            check_same(backend, name, x, others)
            check_same(backend, name, x + 1j, others + 1j)


@since_numpy("2.4")
def test_lists_and_numbers(backend: Backend) -> None:
    x = backend.to_device(np.array([[1, 2], [3, 4]], np.float32))
    assert backend.to_host(gnp.isin(x, [4, 1])).tolist() == [[True, False], [False, True]]
    assert backend.to_host(gnp.isin(x, 3)).tolist() == [[False, False], [True, False]]
    assert backend.to_host(gnp.union1d([5, 2], x)).tolist() == [1, 2, 3, 4, 5]
    assert backend.to_host(gnp.setdiff1d(x, [1, 9])).tolist() == [2, 3, 4]
    for name in a_few(("union1d", "setxor1d", "setdiff1d", "intersect1d")):
        check_same(backend, name, np.array([1, 2], np.float32), 1.0)
        check_same(backend, name, 3, np.array([1, 3], np.int8))
        check_same(backend, name, [], np.array([1, 3], np.int8))
    check_same(backend, "setxor1d", np.array([1, 2], np.float32), 1.0, True)
    check_same(backend, "isin", 3, np.array([1, 3]))


def test_lazy_arrays(backend: Backend) -> None:
    x = backend.to_device(np.array([3, -1, 1, 3]))
    squares = lazy.asarray(x) ** 2
    assert backend.to_host(gnp.isin(squares, x)).tolist() == [False, True, True, False]
    assert backend.to_host(gnp.isin(x, squares)).tolist() == [False, False, True, False]
    assert backend.to_host(gnp.intersect1d(x, squares)).tolist() == [1]
    assert backend.to_host(gnp.setdiff1d(squares, x)).tolist() == [9]
    assert backend.to_host(gnp.union1d(squares, x)).tolist() == [-1, 1, 3, 9]
    assert backend.to_host(gnp.setxor1d(x, squares)).tolist() == [-1, 3, 9]


def test_kinds(backend: Backend) -> None:
    x = np.array([1.0, 2.0])
    for kind in ("sort", "table", None, "tree"):
        check_same(backend, "isin", x, x, kind=kind)
        check_same(backend, "isin", x.astype(int), x.astype(int), kind=kind)


@pytest.mark.few
def test_tables_of_many_integers() -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(-50, 1 << 14, 1 << 14)
    for others in (rng.integers(0, 100, 1 << 13), rng.integers(0, 1 << 13, 1 << 13)):
        np.testing.assert_array_equal(gnp.isin(x, others), np.isin(x, others))
        np.testing.assert_array_equal(
            gnp.isin(x, others, invert=True), np.isin(x, others, invert=True)
        )
