"""NumPy's ufuncs and Python's operators on lazy arrays."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from support import Backend, assert_same

import gpualgo as ga
from gpualgo._operators.numpy_rules import table

UFUNCS = sorted(
    {entry.ufunc for entry in table.ENTRIES if entry.style == "numpy" and entry.ufunc},
    key=lambda ufunc: ufunc.__name__,
)
X = np.array([[0.5, -0.25, 1.0], [0.75, 0.125, -0.5]])
Y = np.array([[0.5, 2.0, -1.0], [3.0, 0.25, 0.5]])
WHOLE = "bitwise_and bitwise_or bitwise_xor left_shift right_shift invert gcd lcm bitwise_count"


GROUPS = [UFUNCS[i : i + 4] for i in range(0, len(UFUNCS), 4)]


@pytest.mark.parametrize("ufuncs", GROUPS, ids=lambda ufuncs: f"{ufuncs[0].__name__} and so on")
def test_ufuncs(ufuncs: list[np.ufunc]) -> None:
    """Those of a group are read by one kernel, which compiles sooner than as many."""
    wanted, read = [], []
    for ufunc in ufuncs:
        given = [X, Y][: ufunc.nin]
        if ufunc.__name__ in WHOLE.split():
            given = [np.abs(x * 8).astype(np.int32) for x in given]
        with np.errstate(all="ignore"):
            want = ufunc(*given)
        made = ufunc(ga.lazy.asarray(given[0]), *given[1:])
        assert type(made) is ga.lazy.LazyArray
        assert (made.shape, made.dtype) == (want.shape, want.dtype), ufunc
        wanted.append((ufunc, want))
        read.append(made)
        if ufunc.nin == 2:  # an array of NumPy's that comes first
            again = ufunc(given[0], ga.lazy.asarray(given[1]))
            assert type(again) is ga.lazy.LazyArray
            wanted.append((ufunc, want))
            read.append(again)
    for (ufunc, want), got in zip(wanted, ga.copy(tuple(read)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14, err_msg=ufunc.__name__)


def test_in_place_operators_make_new_ones() -> None:
    x = np.arange(3)
    made = before = ga.lazy.asarray(x)
    made += 1
    assert made is not before
    assert_same(ga.copy(before), x)
    assert_same(ga.copy(made), np.arange(3) + 1)
    real = np.arange(3)
    real += made  # one of NumPy's is written
    assert type(real) is np.ndarray
    assert_same(real, np.arange(3) * 2 + 1)


@pytest.mark.parametrize("which", range(2))
@pytest.mark.parametrize("others", [False, True])
def test_two_results_one_of_which_takes_the_place_of_an_input(
    backend: Backend, which: int, others: bool
) -> None:
    """Both are of the inputs as they were."""
    if backend.xp.ndarray.__array_ufunc__ is None:
        pytest.skip("NumPy refuses an out= whose __array_ufunc__ is None")
    x, y = np.array([7, -8, 9, 5]), np.array([3, 2, -4, 5])
    want = np.divmod(x, y)
    for k in range(2):
        given = [backend.to_device(x.copy()), backend.to_device(y.copy())]
        out = [backend.to_device(np.zeros(4, int)) if others else None for _ in range(2)]
        out[which] = given[k]
        made = list(map(ga.lazy.asarray, given))
        for got, wanted in zip(np.divmod(*made, out=tuple(out)), want, strict=True):
            assert_same(backend.to_host(got), wanted)
        assert_same(backend.to_host(given[k]), want[which])


def test_copies_of_the_object() -> None:
    made = ga.lazy.arange(5)
    assert_same(ga.copy(copy.copy(made)), np.arange(5))


def test_repr() -> None:
    x = ga.lazy.asarray(np.arange(6.0).reshape(2, 3))
    assert repr(x) == "LazyArray(numpy float64, shape=(2, 3), dtype=float64)"
    assert repr(x * 2) == "LazyArray(mul(numpy float64, 2), shape=(2, 3))"
    assert repr(ga.lazy.arange(3)) == "LazyArray(arange(0, 3, 1), shape=(3,), dtype=int64)"
    made = x + 1
    assert made.dtype == np.float64
    assert repr(made).endswith("shape=(2, 3), dtype=float64)")  # once it is known
    for _ in range(50):
        made = np.exp(made) + made
    assert len(repr(made)) < 130
