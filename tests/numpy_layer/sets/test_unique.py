"""Distinct elements beside NumPy's."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpys_own import arrays, check_same, examples
from support import Backend, a_few, scaled

import gpualgo as ga
import gpualgo.numpy as gnp
from gpualgo import lazy
from gpualgo.numpy._call import NotTaken

SMALL = settings(
    max_examples=examples(50, emulated=6), deadline=None, database=None, derandomize=True
)
FEWER = settings(SMALL, max_examples=examples(25, emulated=4))


def stable(name: str) -> Any:
    """Return NumPy's function, which sorts stably where it is asked for indices."""

    def call(x: Any) -> Any:
        values, index, inverse, counts = np.unique(x, True, True, True, equal_nan=False)
        found = {"values": values, "counts": (values, counts), "inverse": (values, inverse)}
        return found.get(name, (values, index, inverse, counts))

    return call


@SMALL
@given(st.data())
def test_unique(backend: Backend, data: Any) -> None:
    x = data.draw(arrays())
    kwargs = {name: True for name in ("return_index", "return_inverse", "return_counts")
              if data.draw(st.booleans())}  # fmt: skip
    if data.draw(st.booleans()):
        kwargs["equal_nan"] = data.draw(st.booleans())
    if kwargs.get("return_inverse"):  # NumPy's indices alone come of a stable sort
        kwargs["return_index"] = True
    check_same(backend, "unique", x, **kwargs)


@FEWER
@given(st.data())
def test_unique_along_an_axis(backend: Backend, data: Any) -> None:
    x = data.draw(arrays(max_side=data.draw(st.sampled_from([2, 4, 4]))))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1)) if x.ndim else 0
    flags = [data.draw(st.booleans()) for _ in range(3)]
    check_same(backend, "unique", x, *flags, axis=axis)


@pytest.mark.slow
@FEWER
@given(st.data())
@pytest.mark.parametrize("name", ["values", "counts", "inverse", "all"])
def test_array_api(backend: Backend, name: str, data: Any) -> None:
    x = data.draw(arrays())
    check_same(backend, f"unique_{name}", x, theirs=stable(name))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int16", "float64", "complex64"])
def test_long_rows(backend: Backend, dtype: str) -> None:
    rng = np.random.default_rng(5)
    x = rng.choice(np.array([0, 1, 2, 3], dtype), (scaled(60, emulated=9), 12))
    x[:, :9] = x[0, :9]  # so that late columns decide
    x[:, 10:] = 0
    if x.dtype.kind in "fc":
        x[::5, 3] = np.nan
    check_same(backend, "unique", x, True, True, True, axis=0)
    check_same(backend, "unique", x.reshape(-1, 3, 4), True, True, True, axis=0)
    check_same(backend, "unique", x.T, axis=1)


NAN = float("nan")


def test_of_equal_elements_the_first_is_given(backend: Backend) -> None:
    x = backend.to_device(np.array([1.0, -0.0, 0.0, 2.0, -0.0]))
    assert np.signbit(backend.to_host(gnp.unique(x))[0])
    assert not np.signbit(backend.to_host(gnp.unique(x[2:]))[0])
    z = backend.to_device(np.array([complex(0.0, -0.0), complex(-0.0, 0.0)]))
    values, index = gnp.unique(z, return_index=True)
    assert backend.to_host(index).tolist() == [0]
    assert np.signbit(backend.to_host(values)[0].imag)


def test_bfloat16(backend: Backend) -> None:
    x = backend.to_device(np.array([2, 1, NAN, 2, NAN], ml_dtypes.bfloat16))
    values, counts = gnp.unique(x, return_counts=True, equal_nan=False)
    assert backend.to_host(values).dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(backend.to_host(values).astype(float), [1, 2, NAN, NAN])
    assert backend.to_host(counts).tolist() == [1, 2, 1, 1]


def test_names_of_results(backend: Backend) -> None:
    x = backend.to_device(np.array([3, 1, 3]))
    for name in ("unique_all", "unique_counts", "unique_inverse"):
        assert type(getattr(gnp, name)(x)) is type(getattr(np, name)(np.array([3])))


def test_big_endian_arrays_become_native() -> None:
    values, inverse = gnp.unique(np.array([3, 1, 3], ">i4"), return_inverse=True)
    assert (values.dtype, values.tolist()) == (np.int32, [1, 3])
    assert inverse.tolist() == [1, 0, 1]


def test_what_is_not_taken() -> None:
    for bad in (np.array(["b", "a"]), np.array([{}, {}]), np.zeros(2, "i4,f4")):
        with pytest.raises(NotTaken):
            gnp.unique(bad)


@pytest.mark.few
def test_few_elements_are_numpys() -> None:
    values, counts = gnp.unique([3, 1, 3], return_counts=True, sorted=False)
    assert values.tolist() == [1, 3]
    assert counts.tolist() == [1, 2]
    assert gnp.unique_all([2, 2]).counts.tolist() == [2]
    assert gnp.unique_values([3, 1, 2]).tolist() == [1, 2, 3]


def _at_odd_addresses(x: Any) -> Any:
    found = np.empty(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    found[...] = x
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "dtype", [pytest.param("int32", marks=pytest.mark.exhaustive), "complex64"]
)
def test_arrays_at_odd_addresses(dtype: str) -> None:
    x = np.random.default_rng(3).integers(0, 3, (40, 12)).astype(dtype)
    odd, flat, order = _at_odd_addresses(x), np.ravel(x), np.argsort(x[:, 0], kind="stable")
    assert not odd.flags.aligned
    for axis in a_few((0, 1, None)):
        for got, expected in zip(
            gnp.unique(odd, axis=axis, return_index=True),
            np.unique(x, axis=axis, return_index=True), strict=True,
        ):  # fmt: skip
            np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(gnp.unique(odd[:, :2], axis=0), np.unique(x[:, :2], axis=0))
    column = _at_odd_addresses(x[:, 0])
    np.testing.assert_array_equal(
        gnp.searchsorted(column, x[:5, 1], sorter=order),
        np.searchsorted(x[:, 0], x[:5, 1], sorter=order),
    )
    for name in ("union1d", "intersect1d", "setxor1d", "setdiff1d"):
        got = getattr(gnp, name)(odd, _at_odd_addresses(flat[:9]))
        np.testing.assert_array_equal(got, getattr(np, name)(x, flat[:9]))
    others = _at_odd_addresses(flat[:9].real.astype(np.float32))  # converted where it is read
    np.testing.assert_array_equal(gnp.union1d(odd, others), np.union1d(x, flat[:9]))
    chosen = x[:, 0] == 1
    np.testing.assert_array_equal(gnp.compress(chosen, odd, axis=0), x[chosen])
    np.testing.assert_array_equal(gnp.compress(chosen, lazy.asarray(odd), axis=0), x[chosen])


def test_numpys_function_of_lazy_arrays(backend: Backend) -> None:
    """Functions beside which another one of NumPy's stands for few elements are found, too."""
    x = np.array([3, 1, 3, 2])
    lazy = ga.lazy.asarray(backend.to_device(x))
    values, counts = np.unique(lazy * 2, return_counts=True)
    np.testing.assert_array_equal(backend.to_host(values), [2, 4, 6])
    np.testing.assert_array_equal(backend.to_host(counts), [1, 1, 2])
    np.testing.assert_array_equal(backend.to_host(np.unique_values(lazy)), [1, 2, 3])
