"""Arrays as sets beside NumPy's."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpys_own import arrays, check_same, examples
from support import DTYPES, Backend, a_few, forget_problems, random_array, sampled

import gpualgo.numpy as gnp
from gpualgo._algorithms.searchsorted import cuda

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


def test_differences_of_misaligned_arrays() -> None:
    x = np.zeros(8 * 60 + 1, np.uint8)[1:].view(np.int64).reshape(5, 12)
    x[...] = np.arange(60).reshape(5, 12)
    for is_unique in (False, True):
        found = gnp.setdiff1d(x.T, [3, 4], is_unique)
        np.testing.assert_array_equal(found, np.setdiff1d(x.T, [3, 4], is_unique))


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


@pytest.mark.few
def test_tables_of_many_integers() -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(-50, 1 << 14, 1 << 14)
    for others in (rng.integers(0, 100, 1 << 13), rng.integers(0, 1 << 13, 1 << 13)):
        np.testing.assert_array_equal(gnp.isin(x, others), np.isin(x, others))
        np.testing.assert_array_equal(
            gnp.isin(x, others, invert=True), np.isin(x, others, invert=True)
        )


@pytest.mark.few
def test_float16_is_sorted_right() -> None:
    """NumPy mis-sorts thousands of float16 on some processors; its stable sort is right."""
    random = np.random.default_rng(1)
    for n in (3_900, 4_090, 16_000):
        for special in (-0.0, np.inf):
            x = np.round(random.normal(size=n) * 10).astype(np.float16)
            x[random.integers(0, n, n // 7)] = special
            wide, half = x.astype(np.float32), n // 2
            want = np.unique(wide)
            for found in (gnp.unique(x), gnp.unique(x, return_counts=True)[0],
                          gnp.union1d(x[:half], x[half:]), gnp.unique_values(x)):  # fmt: skip
                assert found.dtype == np.float16
                np.testing.assert_array_equal(found.astype(np.float32), want)
            for call, native in ((gnp.setxor1d, np.setxor1d), (gnp.intersect1d, np.intersect1d),
                                 (gnp.setdiff1d, np.setdiff1d), (gnp.isin, np.isin)):  # fmt: skip
                found = call(x[:-300], x[-300:])
                np.testing.assert_array_equal(found, native(wide[:-300], wide[-300:]))
            edges = np.arange(-40, 40, 3)
            np.testing.assert_array_equal(gnp.histogram(x, edges)[0], np.histogram(wide, edges)[0])


@pytest.mark.parametrize("dtype", sampled([d for d in DTYPES if d.kind != "c"]), ids=str)
@pytest.mark.parametrize("count", [30, 3000])
def test_members_of_every_dtype(
    backend: Backend, dtype: np.dtype[Any], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elements in any order and in order, which are searched in parts of the other array, too."""
    monkeypatch.setattr(cuda, "WINDOW_QUERIES", 1)
    forget_problems()
    x, others = random_array(3001, dtype, 1), random_array(count, dtype, 2)
    others[::2] = np.resize(x[::3], others[::2].shape)
    if dtype.kind not in "biu":
        x[5:9] = others[0] = np.nan
        others[-1], x[9], x[10] = 0.0, -0.0, 0.0
    wanted = [value in set(others.tolist()) for value in x.tolist()]
    order = np.argsort(x.astype(object if dtype.kind == "O" else np.float64), kind="stable")
    given = backend.to_device(others)
    for invert in (False, True):
        want = np.array(wanted) ^ invert
        for part in (slice(None), slice(None, None, -2), order):
            got = gnp.isin(backend.to_device(x[part]), given, invert=invert)
            np.testing.assert_array_equal(backend.to_host(got), want[part])
        rows = backend.to_device(x[:3000].reshape(50, 60))[:, ::2]
        got = backend.to_host(gnp.isin(rows.T, given, invert=invert))
        np.testing.assert_array_equal(got, want[:3000].reshape(50, 60)[:, ::2].T)
    forget_problems()


def test_members_of_two_dtypes(backend: Backend) -> None:
    """They are compared in NumPy's common dtype."""
    kinds = ("int32", "uint8", "float16", "float32", "float64", "bool", "int64")
    for own, other in a_few(itertools.product(kinds, kinds), 4):
        x, others = np.arange(-40, 80).astype(own), np.arange(0, 100, 3).astype(other)
        others = np.concatenate([others, others + others])
        got = gnp.isin(backend.to_device(x), backend.to_device(others))
        np.testing.assert_array_equal(backend.to_host(got), np.isin(x, others), f"{own} {other}")
