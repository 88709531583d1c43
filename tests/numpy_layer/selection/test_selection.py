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
from gpualgo import lazy
from gpualgo.numpy._call import NotTaken

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


@since_numpy("2.1")
def test_named_cases(backend: Backend) -> None:
    nan, x = float("nan"), np.array([[0.0, -0.0, 2.0], [np.nan, 0.0, -1.0]])
    for name in ("nonzero", "flatnonzero", "argwhere", "where"):
        check_same(backend, name, x)
        if backend.xp is np:  # libraries of GPUs have none
            check_same(backend, name, np.array([0, 3, 0, 1], ">i2"))
        check_same(backend, name, [[0, 1], [2, 0]])
        check_same(backend, name, 5)
        check_same(backend, name, np.zeros((0, 3)))
        check_same(backend, name, np.array(0.0))
    check_same(backend, "where", np.array([0.0, nan, -0.0, 1.0]), 1, 2)
    check_same(backend, "nonzero", np.ones((1, 2, 1, 1, 2, 1, 1, 2), "i1"))
    check_same(backend, "argwhere", np.ones((1, 2, 1, 1, 2, 1, 1, 2), "i1"))


def test_shapes_and_errors(backend: Backend) -> None:
    x, marks = np.arange(6.0).reshape(2, 3), np.array([True, False, True, False])
    check_same(backend, "extract", marks, x)
    check_same(backend, "extract", marks[:1], x)
    check_same(backend, "extract", np.ones(7, bool), x)
    check_same(backend, "extract", np.r_[np.ones(3, bool), np.zeros(7, bool)], x)
    check_same(backend, "extract", marks, 5.0)
    check_same(backend, "compress", marks, x)
    check_same(backend, "compress", marks, x, 1)
    check_same(backend, "compress", marks[:2], x, 0)
    check_same(backend, "compress", marks[:2], x, 2)
    check_same(backend, "compress", x, x)
    check_same(backend, "compress", [1, 0], 3.0)
    check_same(backend, "compress", np.ones(3, bool), np.zeros((2, 0)), 1)
    check_same(backend, "where", marks, x)
    check_same(backend, "where", marks, x, 1)
    check_same(backend, "where", marks, np.ones(4, "i1"), 300)
    check_same(backend, "where", marks, 10**30, 0)
    check_same(backend, "where", True, 1, 2.5)
    check_same(backend, "where", True, np.float32(1), x)
    check_same(backend, "where", marks[:2], np.float64(2), np.ones(2, "f4"))


def test_out(backend: Backend) -> None:
    x = backend.to_device(np.arange(6.0).reshape(2, 3))
    marks = backend.to_device(np.array([False, True, True]))
    out = backend.to_device(np.zeros((2, 2)))
    assert gnp.compress(marks, x, axis=1, out=out) is out
    assert backend.to_host(out).tolist() == [[1, 2], [4, 5]]
    flat = backend.to_device(np.zeros(2))
    assert gnp.compress(marks, x, out=flat) is flat
    assert backend.to_host(flat).tolist() == [1, 2]
    with pytest.raises(ValueError, match="out has shape"):
        gnp.compress(marks, x, out=out)
    with pytest.raises(TypeError):
        gnp.compress(marks, x, out=backend.to_device(np.zeros(2, int)))


def test_lazy_arrays(backend: Backend) -> None:
    x = backend.to_device(np.array([3.0, -1.0, 0.0, 4.0], np.float32))
    made = lazy.asarray(x)
    chosen = gnp.where(made > 0, made, 0.5)
    assert isinstance(chosen, lazy.LazyArray)
    assert chosen.dtype == np.float32
    assert backend.to_host(gnp.sum(chosen)) == 8
    assert isinstance(gnp.where(x, made, x), lazy.LazyArray)
    assert backend.to_host(gnp.nonzero(made > 0)[0]).tolist() == [0, 3]
    assert backend.to_host(gnp.argwhere(made.reshape(2, 2))).tolist() == [[0, 0], [0, 1], [1, 1]]
    assert backend.to_host(gnp.extract(made > 0, made * 2)).tolist() == [6, 8]
    assert backend.to_host(gnp.compress(made > 0, made)).tolist() == [3, 4]


def test_bfloat16(backend: Backend) -> None:
    x = backend.to_device(np.array([0, 1, 2], ml_dtypes.bfloat16))
    assert backend.to_host(gnp.nonzero(x)[0]).tolist() == [1, 2]
    assert backend.to_host(gnp.where(x, x, x)).dtype == ml_dtypes.bfloat16


def test_what_is_not_taken() -> None:
    for call in (
        lambda: gnp.nonzero(np.array(["a", ""])),
        lambda: gnp.where([True], None, None),
        lambda: gnp.where([True], "a", "b"),
        lambda: gnp.extract([True], np.ma.array([1])),
    ):
        with pytest.raises(NotTaken):
            call()


@pytest.mark.few
def test_few_elements_are_numpys() -> None:
    assert gnp.nonzero([0, 2])[0].tolist() == [1]
    assert gnp.where([True, False], 1, 2).tolist() == [1, 2]
    assert gnp.compress([False, True], [5, 6]).tolist() == [6]
