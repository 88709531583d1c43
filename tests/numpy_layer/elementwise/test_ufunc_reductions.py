"""What ``ufunc.reduce`` and ``accumulate`` begin with, and which calls have no meaning."""

from __future__ import annotations

import numpy as np
import pytest
from numpys_own import assert_same
from support import Backend, a_few

import gpualgo as ga
import gpualgo.numpy as gnp


@pytest.mark.parametrize("name", ["gcd", "hypot", "logaddexp"])
def test_reductions_begin_with_the_identity(backend: Backend, name: str) -> None:
    """One element is combined with it, and none is it."""
    x = np.array([[-4], [6]])
    for array in (x, x[:, :0]):
        want = getattr(np, name).reduce(array, axis=1)
        found = getattr(gnp, name).reduce(backend.to_device(array), axis=1)
        assert_same(backend, found, want, 4, name)


def test_logical_reductions_begin_with_initial(backend: Backend) -> None:
    cases = (("logical_or", [0, 0]), ("logical_and", [1, 2]), ("logical_xor", [3]))
    for name, values in a_few(cases):
        for x in (np.array([values]), np.zeros((1, 0), int)):
            for initial in (False, 2.5):
                want = getattr(np, name).reduce(x, axis=1, initial=initial)
                found = getattr(gnp, name).reduce(backend.to_device(x), axis=1, initial=initial)
                assert_same(backend, found, want, 0, f"{name} {x} {initial}")
        with pytest.raises(TypeError, match=r"bool|logical"):
            getattr(gnp, name).reduce(backend.to_device(x), dtype=np.float32)
        with pytest.raises(TypeError, match=r"bool|logical"):
            getattr(np, name).reduce(ga.lazy.asarray(backend.to_device(x)), dtype=np.float32)


def test_bools_begin_with_initial_in_the_dtype_of_out(backend: Backend) -> None:
    x = np.ones((2, 3), bool)
    for name, initial, kind in a_few(
        (("maximum", 2.5, "f4"), ("fmax", 7, "i4"), ("minimum", -3, "i8"), ("bitwise_or", 6, "u1"),
         ("logical_or", 6, "u1"), ("add", 2.5, "f8")), 3):  # fmt: skip
        out = backend.to_device(np.zeros(3, kind))
        getattr(gnp, name).reduce(backend.to_device(x), initial=initial, out=out)
        want = getattr(np, name).reduce(x, initial=initial, out=np.zeros(3, kind))
        assert_same(backend, out, want, 0, name)


def test_reductions_of_dtypes_that_numpy_does_not_combine(backend: Backend) -> None:
    x = backend.to_device(np.ones(3))
    for ufunc in (gnp.gcd, gnp.lcm, gnp.bitwise_or):
        for method in (ufunc.reduce, ufunc.accumulate):
            with pytest.raises(TypeError, match=ufunc.__name__):
                method(x)
    with pytest.raises(TypeError, match="hypot"):
        gnp.hypot.reduce(x, dtype=np.int8)


def test_accumulate_goes_along_one_axis(backend: Backend) -> None:
    x = backend.to_device(np.arange(6).reshape(2, 3))
    for axis in a_few((None, (), (0, 1))):
        with pytest.raises(ValueError, match="one axis"):
            gnp.add.accumulate(x, axis=axis)
    with pytest.raises(TypeError, match="axis"):
        gnp.add.accumulate(x, axis=True)
    want = np.array([[0, 1, 3], [3, 7, 12]])
    assert_same(backend, gnp.add.accumulate(x, (1,)), want, 0, "a tuple")
    assert_same(backend, gnp.add.accumulate(x[0], None), want[0], 0, "None")
