"""What is not zero, and what conditions choose, beside NumPy's."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpys_own import arrays, axes, check_same, examples
from support import Backend, since_numpy

import gpualgo.numpy as gnp

SMALL = settings(
    max_examples=examples(60, emulated=6), deadline=None, database=None, derandomize=True
)
BOOL = [np.dtype(bool)]


@since_numpy("2.1")
@pytest.mark.parametrize("name", ["nonzero", "flatnonzero", "argwhere", "where"])
@SMALL
@given(st.data())
def test_places(backend: Backend, name: str, data: Any) -> None:
    check_same(backend, name, data.draw(arrays(max_dims=4, max_side=5)))


@pytest.mark.parametrize("shape", [(3, 4, 5, 7), (2, 3, 4, 5, 6), (2, 1, 3, 2, 3, 1, 2, 5)])
def test_places_along_many_axes(backend: Backend, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(0, 2, shape)
    for name in ("nonzero", "argwhere"):
        check_same(backend, name, x)


@SMALL
@given(st.data())
def test_extract(backend: Backend, data: Any) -> None:
    x = data.draw(arrays())
    shape = x.shape if data.draw(st.booleans()) else None
    check_same(backend, "extract", data.draw(arrays(shape=shape)), x, numbers=False)


@SMALL
@given(st.data())
def test_compress(backend: Backend, data: Any) -> None:
    x = data.draw(arrays())
    marks = data.draw(arrays(max_dims=data.draw(st.sampled_from([1, 1, 1, 2]))))
    axis = data.draw(axes(x.ndim, tuples=False))
    if data.draw(st.booleans()) and x.ndim:
        length = x.size if axis is None else x.shape[axis]
        marks = data.draw(arrays(BOOL, shape=(length,)))
    check_same(backend, "compress", marks, x, axis, numbers=False)


@SMALL
@given(st.data())
def test_where(backend: Backend, data: Any) -> None:
    x = data.draw(arrays())
    numbers = st.sampled_from([0, 1, -3, 2.5, True, 1j, float("nan")])
    shapes = st.sampled_from([x.shape, x.shape[-1:], (*x.shape[:-1], 1) if x.ndim else ()])
    others = st.one_of(numbers, shapes.flatmap(lambda shape: arrays(shape=shape)))
    given = [data.draw(arrays(BOOL, shape=x.shape)) if data.draw(st.booleans()) else
             data.draw(others), x, data.draw(others)]  # fmt: skip
    if data.draw(st.booleans()):
        given[1:] = given[:0:-1]
    check_same(backend, "where", *given)


def test_misaligned_arrays() -> None:
    x = np.zeros(8 * 240 + 1, np.uint8)[1:].view(np.float64).reshape(4, 10, 6)
    x[...] = np.arange(240).reshape(x.shape)
    mask = np.arange(200) % 3 == 0
    found = gnp.extract(mask, x.transpose(2, 0, 1))
    np.testing.assert_array_equal(found, np.extract(mask, x.transpose(2, 0, 1)))


def test_bfloat16(backend: Backend) -> None:
    x = backend.to_device(np.array([0, 1, 2], ml_dtypes.bfloat16))
    assert backend.to_host(gnp.nonzero(x)[0]).tolist() == [1, 2]
    assert backend.to_host(gnp.where(x, x, x)).dtype == ml_dtypes.bfloat16


@pytest.mark.few
def test_few_elements_are_numpys() -> None:
    assert gnp.nonzero([0, 2])[0].tolist() == [1]
    assert gnp.where([True, False], 1, 2).tolist() == [1, 2]
    assert gnp.compress([False, True], [5, 6]).tolist() == [6]
