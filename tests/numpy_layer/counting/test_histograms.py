"""Histograms and counts beside NumPy's.

One file of more than 300 lines: each test is of one argument of the same few functions.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps
from numpys_own import check_same, examples
from support import BFLOAT16, LAYOUTS, Backend, scaled, since_numpy

import gpualgo as ga
import gpualgo.numpy as gnp

SMALL = settings(
    max_examples=examples(60, emulated=5), deadline=None, database=None, derandomize=True
)
REAL = [np.dtype(name) for name in (
    "bool", "int8", "uint8", "int16", "uint32", "int64", "uint64", "float16", "float32", "float64",
)]  # fmt: skip
WEIGHTS = [np.dtype(name) for name in (
    "bool", "int8", "uint16", "int64", "float32", "float64", "complex64", "complex128",
)]  # fmt: skip
RULES = ["auto", "fd", "doane", "scott", "stone", "rice", "sturges", "sqrt"]
FINITE = (0.0, -0.0, 1.0, -1.0, 0.5, 3.0, 1e3, -7.25)


def samples(
    dtype: np.dtype[Any], shape: Any, low: int = -9, *, special: bool = False
) -> st.SearchStrategy[Any]:
    if dtype.kind == "b":
        return nps.arrays(dtype, shape)
    if dtype.kind in "iu":
        low = max(int(np.iinfo(dtype).min), low)
        return nps.arrays(dtype, shape, elements=st.integers(low, 99))
    values = (*FINITE, np.nan, np.inf, -np.inf) if special else FINITE
    if dtype.kind == "c":
        return nps.arrays(dtype, shape, elements=st.builds(complex, *[st.sampled_from(values)] * 2))
    return nps.arrays(dtype, shape, elements=st.sampled_from(values))


@st.composite
def arrays(draw: st.DrawFn, **kwargs: Any) -> Any:
    dtype = draw(st.sampled_from(REAL))
    shape = draw(nps.array_shapes(max_dims=2, max_side=20))
    view = LAYOUTS[draw(st.sampled_from(sorted(LAYOUTS)))](
        lambda full: np.zeros(full, dtype), shape
    )
    view[...] = draw(samples(dtype, shape, **kwargs))
    return view


@st.composite
def options(draw: st.DrawFn, shape: tuple[int, ...], *, weights: bool = True) -> dict[str, Any]:
    found: dict[str, Any] = {}
    kind = draw(st.sampled_from(["none", "number", "edges", "range"]))
    if kind == "number":
        found["bins"] = draw(st.integers(1, 12))
    elif kind == "edges":
        edges = sorted(draw(st.lists(st.sampled_from([-8, -1, 0, 0.5, 1, 3, 40]), max_size=6)))
        found["bins"] = draw(st.sampled_from([list, np.array, tuple]))(edges)
    elif kind == "range":
        found["range"] = draw(st.sampled_from([(0, 1), (-8.5, 3), (1, 1), (np.float32(0.1), 2)]))
    if draw(st.booleans()):
        found["density"] = draw(st.sampled_from([True, False, None]))
    if weights and draw(st.booleans()):
        dtype = draw(st.sampled_from(WEIGHTS))
        found["weights"] = draw(samples(dtype, shape))
    return found


@SMALL
@given(st.data())
def test_histogram(backend: Backend, data: Any) -> None:
    x = data.draw(arrays())
    check_same(backend, "histogram", x, ulps=8, **data.draw(options(x.shape)))


@SMALL
@given(st.data())
def test_special_samples(backend: Backend, data: Any) -> None:
    x = data.draw(arrays(special=True))
    check_same(backend, "histogram", x, **data.draw(options(x.shape, weights=False)))


@pytest.mark.parametrize("rule", RULES)
@settings(SMALL, max_examples=examples(12, emulated=1))
@given(st.data())
def test_rules(backend: Backend, rule: str, data: Any) -> None:
    """Of numbers whose deviation NumPy does not round: others may be at the edge of a bin more."""
    kind = data.draw(st.sampled_from(["float64", "int16", "uint8"]))
    x = data.draw(samples(np.dtype(kind), data.draw(st.integers(1, scaled(300, emulated=40)))))
    kwargs = data.draw(st.sampled_from([{}, {"range": (0, 5)}, {"range": (2000, 3000)}]))
    check_same(backend, "histogram_bin_edges", x, rule, ulps=4, **kwargs)


@SMALL
@given(st.data())
def test_edges(backend: Backend, data: Any) -> None:
    x = data.draw(arrays(special=True))
    kwargs = data.draw(options(x.shape))
    kwargs.pop("density", None)
    check_same(backend, "histogram_bin_edges", x, **kwargs)


@st.composite
def joint_bins(draw: st.DrawFn, dims: int) -> Any:
    one = st.one_of(st.integers(1, 5), st.just([0, 1, 3]), st.just(np.array([-8.5, 0.5, 0.5, 40])))
    return draw(st.one_of(st.integers(1, 5), st.tuples(*[one] * dims)))


@SMALL
@given(st.data())
def test_several_dimensions(backend: Backend, data: Any) -> None:
    dims, count = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 20))
    kinds = st.sampled_from([kind for kind in REAL if kind.kind != "b"])
    kwargs: dict[str, Any] = {"bins": data.draw(joint_bins(dims))}
    if data.draw(st.booleans()):
        kwargs["range"] = [data.draw(st.sampled_from([None, (0, 2), (1, 1)])) for _ in range(dims)]
    if data.draw(st.booleans()):
        kwargs["density"] = data.draw(st.booleans())
    if data.draw(st.booleans()):
        kinds_of = st.sampled_from([kind for kind in WEIGHTS if kind.kind != "c"])
        kwargs["weights"] = data.draw(samples(data.draw(kinds_of), count))
    if data.draw(st.booleans()):
        x: Any = data.draw(samples(data.draw(kinds), (count, dims)))
    else:
        x = [data.draw(samples(data.draw(kinds), count)) for _ in range(dims)]
    check_same(backend, "histogramdd", x, ulps=8, **kwargs)
    if dims == 2 and isinstance(x, list):
        check_same(backend, "histogram2d", *x, ulps=8, **kwargs)


@SMALL
@given(st.data())
def test_bincount(backend: Backend, data: Any) -> None:
    kinds = st.sampled_from([kind for kind in REAL if kind.kind in "biu"])
    x = data.draw(samples(data.draw(kinds), data.draw(st.integers(0, 30)), low=0))
    kwargs: dict[str, Any] = {}
    if data.draw(st.booleans()):
        kwargs["minlength"] = data.draw(st.integers(0, 120))
    if data.draw(st.booleans()):
        kinds = st.sampled_from([kind for kind in WEIGHTS if kind.kind != "c"])
        kwargs["weights"] = data.draw(samples(data.draw(kinds), x.shape, special=True))
    check_same(backend, "bincount", x, ulps=8, **kwargs)


def test_bincount_is_numpys_for_many(backend: Backend) -> None:
    rng = np.random.default_rng(0)
    n = scaled(200_000, emulated=500)
    for most in (7, 1000, scaled(100_000, emulated=2000)):
        x = rng.integers(0, most, n)
        check_same(backend, "bincount", x)
        check_same(backend, "bincount", x, rng.integers(-9, 9, n).astype(float))
        check_same(backend, "bincount", x, rng.integers(-9, 9, n).astype(np.float32))


def test_lists_numbers_and_other_byte_orders(backend: Backend) -> None:
    for x in ([1, 2, 2], [], 3.0, np.array([1.0, 2.0, 9.0], ">f4"), [[1, 2], [3, 4]]):
        for one, other in zip(gnp.histogram(x), np.histogram(x), strict=True):
            np.testing.assert_array_equal(one, other)  # host arrays: CuPy has one byte order
    edges = np.array([0.0, 1.5, 3.0], ">f8")
    assert gnp.histogram([1.0, 2.0], edges)[0].tolist() == [1, 1]
    assert gnp.histogram2d([1.0, 2.0], [1.0, 2.0], [edges, edges])[0].tolist() == [[1, 0], [0, 1]]
    assert gnp.bincount(np.array([1, 3], ">i2")).tolist() == [0, 1, 0, 1]
    check_same(backend, "histogramdd", np.arange(5.0))
    check_same(backend, "histogramdd", [np.arange(5), np.arange(5)[::-1]])


@pytest.mark.parametrize(
    "kwargs",
    [
        {"range": (np.longdouble(0), 2)}, {"bins": np.array([0, 1], np.longdouble)},
        {"bins": np.array([0, 1], object)}, {"weights": np.ones(2, object)},
    ],
)  # fmt: skip
def test_what_numpy_alone_knows_is_not_taken(kwargs: Any) -> None:
    with pytest.raises(gnp.NotTaken):
        gnp.histogram(np.array([1.0, 2.0]), **kwargs)


def test_bool_samples_are_told_of() -> None:
    with pytest.warns(RuntimeWarning, match="uint8"):
        gnp.histogram(np.array([True, False]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gnp.histogram(np.array([1, 0]))


def test_lazy_samples(backend: Backend) -> None:
    x = np.array([0.25, 1.0, 2.0, 3.5])
    lazy = ga.lazy.asarray(backend.to_device(x))
    got = gnp.histogram(lazy * 2, 4)
    want = np.histogram(x * 2, 4)
    for one, other in zip(got, want, strict=True):
        assert type(one) is type(backend.to_device(other))
        np.testing.assert_array_equal(backend.to_host(one), other)
    index = ga.lazy.asarray(backend.to_device(np.array([1, 2, 2])))
    np.testing.assert_array_equal(backend.to_host(gnp.bincount(index + 1)), [0, 0, 1, 2])
    joint = gnp.histogramdd((lazy, lazy * 2), 2)[0]
    np.testing.assert_array_equal(
        backend.to_host(joint), np.histogramdd(np.stack([x, x * 2], 1), 2)[0]
    )


def test_results_are_in_the_library_of_the_samples(backend: Backend) -> None:
    x = backend.to_device(np.arange(8.0))
    for found in (gnp.histogram(x), gnp.histogram(x, [0, 1]), gnp.histogram(x, density=True),
                  gnp.histogram(x, "sqrt")):  # fmt: skip
        assert all(type(one) is type(x) for one in found)
    counts, edges = gnp.histogramdd((x, x), (2, [0, 1]))
    assert all(type(one) is type(x) for one in (counts, *edges))
    assert type(gnp.bincount(x.astype(np.int64))) is type(x)


def test_bfloat16(backend: Backend) -> None:
    x = np.array([0.5, 1.0, 2.0, 2.0], BFLOAT16)
    counts, edges = gnp.histogram(backend.to_device(x), 3, (0, 3))
    np.testing.assert_array_equal(backend.to_host(counts), [1, 1, 2])
    assert backend.to_host(edges).dtype == BFLOAT16
    sums = gnp.bincount(backend.to_device(np.array([0, 1, 1, 1])), backend.to_device(x))
    np.testing.assert_array_equal(backend.to_host(sums), [0.5, 5.0])


def test_edges_that_were_given_are_returned(backend: Backend) -> None:
    edges = np.array([0.0, 1.0])
    assert gnp.histogram(np.arange(3.0), edges)[1] is edges
    assert gnp.histogram_bin_edges(np.arange(3.0), edges) is edges


def test_equal_samples_of_one_dimension(backend: Backend) -> None:
    """Edges around them are as precise as the widest column."""
    y = np.arange(20.0)
    for x in (np.full(20, 0.0123, "f4"), np.full(20, -1e-9, "f4"), np.full(20, 7, "i1")):
        given_ = backend.to_device(x), backend.to_device(y)
        for found, want in zip(gnp.histogram2d(*given_, 4), np.histogram2d(x, y, 4), strict=True):
            np.testing.assert_array_equal(backend.to_host(found), want)


def test_large_integers_follow_the_edges() -> None:
    x = np.array([2**63 - 1, 2**63 - 2, 2**63 - 700])
    counts, _ = gnp.histogram(x, np.array([2**63 - 701, 2**63 - 2, 2**63 - 1]))
    assert counts.tolist() == [1, 2]


@pytest.mark.few
def test_few_and_many_are_the_same() -> None:
    x = np.random.default_rng(0).standard_normal(20_000)
    for n in (10, 20_000):
        for kwargs in ({}, {"weights": np.ones(n)}, {"density": True}, {"bins": "auto"}):
            for one, other in zip(
                gnp.histogram(x[:n], **kwargs), np.histogram(x[:n], **kwargs), strict=True
            ):
                np.testing.assert_allclose(one, other, rtol=1e-12)
                assert one.dtype == other.dtype


@pytest.mark.parametrize(
    "minlength", [pytest.param(None, marks=since_numpy("2.4")), True, 2.0, "3"]
)
def test_a_length_is_an_int(minlength: Any) -> None:
    for fn in (np.bincount, gnp.bincount):
        with pytest.raises(TypeError):
            fn(np.array([1, 2]), minlength=minlength)
