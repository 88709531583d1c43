"""Namespaces that answer here and hand on all else."""

from __future__ import annotations

import copy
import inspect
import pickle
import sys
import types
from typing import Any

import numpy as np
import pytest
from support import Backend

import gpualgo.numpy as gnp
from gpualgo.numpy import _wrap
from gpualgo.numpy._call import TABLE, Entry, NotTaken

xp: Any = gnp.wrap(np)


def test_names_of_ours_are_answered_here() -> None:
    for name, entry in TABLE.items():
        if isinstance(entry.function, type):
            assert getattr(xp, name) is getattr(np, name)
        else:
            assert getattr(xp, name).__wrapped__ is entry.function
    assert xp.sum is xp.sum
    assert xp.sum.__name__ == "sum"
    assert xp.abs.__name__ == np.abs.__name__ == "absolute"
    assert xp.sum.__doc__ == gnp.sum.__doc__
    assert inspect.signature(xp.sum) == inspect.signature(np.sum)
    shown = inspect.signature(gnp.wrap(types.SimpleNamespace()).sum)
    assert str(shown).startswith("(a, axis=None, dtype=None, out=None")


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_histograms_of_complex_numbers_are_handed_on() -> None:
    x = np.arange(20) * (1 + 1j)
    for got, expected in zip(xp.histogram(x, 4), np.histogram(x, 4), strict=True):
        np.testing.assert_array_equal(got, expected)
    edges = np.histogram_bin_edges(x, 4)
    np.testing.assert_array_equal(xp.histogram_bin_edges(x, 4), edges)
    with pytest.raises(NotTaken, match="no order"):
        gnp.histogram(x, 4)


def test_all_else_is_the_namespaces() -> None:
    for name in ("float32", "pi", "linalg", "random", "ndarray", "newaxis", "__version__", "ufunc"):
        assert getattr(xp, name) is getattr(np, name)
    with pytest.raises(AttributeError, match=r"no attribute 'nothing'"):
        xp.nothing  # noqa: B018
    assert not hasattr(xp, "wrap")  # NumPy has none


def test_it_is_called_as_numpy_is(backend: Backend) -> None:
    x = backend.to_device(np.arange(6.0).reshape(2, 3))
    assert type(xp.sum(x, axis=0)) is type(x)
    np.testing.assert_array_equal(backend.to_host(xp.sum(x, axis=0)), [3, 5, 7])


@pytest.mark.parametrize(
    "x",
    [
        np.array([1, 2**70], object), np.array([1, 2], "m8[s]"), np.array([1.0], np.longdouble),
        np.ma.masked_array([1.0, 2.0], [True, False]),
    ],
    ids=lambda x: type(x).__name__ + str(x.dtype),
)  # fmt: skip
def test_what_is_not_taken_is_handed_on(x: Any) -> None:
    with pytest.raises(NotTaken):
        gnp.sum(x)
    got, want = xp.sum(x), np.sum(x)
    assert type(got) is type(want)
    assert got == want


def test_arguments_that_are_not_possible_here_are_handed_on(monkeypatch: Any) -> None:
    def refusing(a: Any, key: Any = None) -> Any:
        raise NotTaken("refused")

    monkeypatch.setitem(TABLE, "argsort", Entry("argsort", refusing, np.argsort, ""))
    answer = _wrap.Namespace(np).argsort
    assert answer([3, 1]).tolist() == [1, 0]
    assert answer([3, 1], kind="stable").tolist() == [1, 0]  # a parameter that ours has not


def test_dtypes_without_kernels_are_handed_on() -> None:
    with pytest.raises(TypeError, match="no kernel"):
        gnp.sum([1.0], dtype=np.longdouble)
    assert xp.sum([1.0], dtype=np.longdouble).dtype == np.longdouble
    assert xp.sum(np.ones(2), 0, "g").dtype == np.longdouble
    with pytest.raises(TypeError):
        xp.sum(np.ones(2), dtype="nothing")


def test_outputs_that_mean_more_are_handed_on() -> None:
    class Named(np.ndarray):
        """An array with ufuncs of its own."""

        def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
            return ufunc.__name__, method

    out = np.zeros(()).view(Named)
    assert xp.sum(np.ones(3), out=out) == ("add", "reduce")
    masked = np.ma.zeros(())
    assert xp.sum(np.ones(3), out=masked) is masked
    with pytest.raises(NotTaken):
        gnp.wrap(types.SimpleNamespace()).sum(np.ones(3), out=out)


def test_arrays_of_pandas_stay_its_own() -> None:
    """Its series have NumPy's ufuncs of their own, and leave NaN out."""
    pandas = pytest.importorskip("pandas")
    series = pandas.Series([1.0, np.nan, 4.0], index=["a", "b", "c"])
    assert xp.sum(series) == np.sum(series) == 5
    both = xp.sum([series, series], axis=0)
    np.testing.assert_array_equal(both, np.sum([series, series], axis=0))
    if "sqrt" in TABLE:
        assert xp.sqrt(series).equals(np.sqrt(series))
    assert xp.sum([[1.0, 2.0], [3.0, 4.0]]) == 10


def test_what_is_handed_on_is_not_kept() -> None:
    x = np.array([None, 1][1:], object)
    wide = np.zeros((), np.longdouble)
    before = sys.getrefcount(x), sys.getrefcount(wide)
    for _ in range(3):
        xp.sum(x)
        xp.sum(np.ones(1), dtype=np.longdouble, out=wide)
    assert (sys.getrefcount(x), sys.getrefcount(wide)) == before


def test_outputs_in_another_byte_order_are_handed_on() -> None:
    out = np.zeros((), ">f8")
    assert xp.sum(np.ones(3), out=out) is out
    assert out == 3


def test_errors_are_raised_once() -> None:
    with pytest.raises(np.exceptions.AxisError):
        xp.sum(np.ones(3), axis=4)
    with pytest.raises(TypeError, match="unexpected keyword argument 'dim'"):
        xp.sum([1], dim=0)
    alone = gnp.wrap(types.SimpleNamespace(pi=3))
    assert alone.pi == 3
    assert alone.sum([1, 2]) == 3
    with pytest.raises(NotTaken, match="object"):
        alone.sum(np.array([2**70], object))


def test_ufuncs_are_handed_on_with_their_methods(monkeypatch: Any) -> None:
    class Ours:
        """A ufunc that takes float64 alone."""

        def __call__(self, x: Any, y: Any) -> Any:
            self.reduce(x)
            return "ours"

        def reduce(self, x: Any) -> Any:
            if np.asarray(x).dtype != float:
                raise NotTaken("float64")
            return "ours"

        def at(self, *args: Any) -> None:
            raise NotTaken("at")

        def reduceat(self, *args: Any) -> None:
            raise NotTaken("reduceat")

    monkeypatch.setitem(TABLE, "add", Entry("add", Ours(), np.add, ""))
    add = _wrap.Namespace(np).add
    assert add(1.0, 2.0) == add.reduce([1.0]) == "ours"
    assert add(1, 2) == 3
    assert add.reduce([1, 2]) == 3
    assert add.reduce(np.ones((2, 2)), axis=1).tolist() == [2, 2]  # a parameter that ours has not
    assert add.reduceat([1, 2, 3], [0, 2]).tolist() == [3, 3]
    assert (add.nin, add.identity, add.types) == (2, 0, np.add.types)
    assert add.reduce.__name__ == "reduce"
    assert isinstance(add, np.ufunc)
    assert add == np.add
    assert copy.deepcopy(add) is add
    x = np.zeros(2)
    add.at(x, [0, 0], 1)
    assert x.tolist() == [2, 0]


def test_another_library_is_answered_in_its_arrays() -> None:
    strict = pytest.importorskip("array_api_strict")
    over = gnp.wrap(strict)
    x = over.asarray([1.0, 2.0, 4.0])
    total = over.sum(x, dtype=over.float32)
    assert type(total) is type(x)
    assert total.dtype == over.float32
    counts, edges = over.histogram(x, 3)
    assert type(counts) is type(edges) is type(x)


class Foreign:
    """An array of a library that is not known."""

    __array_namespace__ = dtype = None

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("is not asked for its elements")


class NeedsGradient:
    requires_grad = True


@pytest.mark.parametrize("x", [Foreign(), [Foreign()], NeedsGradient()])
def test_arrays_of_libraries_that_are_not_known_are_handed_on(x: Any) -> None:
    other = types.SimpleNamespace(__name__="other", sum=lambda x: ("other", x))
    assert gnp.wrap(other).sum(x) == ("other", x)


def test_answers_are_equal_to_what_they_stand_for() -> None:
    """Tables of functions, as `__array_function__` has, find both."""
    assert xp.sum == np.sum
    assert np.sum == xp.sum
    assert xp.sum == _wrap.Namespace(np).sum
    assert xp.sum != np.prod
    assert xp.sum != xp.prod
    assert xp.sum is not None
    assert {xp.sum: 1}[np.sum] == {np.sum: 1}[xp.sum] == 1


def test_it_is_a_namespace() -> None:
    assert repr(xp) == "<gpualgo.numpy over numpy>"
    assert {*dir(np), *TABLE} == {*dir(xp)}
    assert gnp.wrap(xp) is xp
    assert gnp.wrap(np) is xp
    assert _wrap.Namespace(np) == xp
    assert hash(gnp.wrap(np)) == hash(xp)
    assert copy.copy(xp) is copy.deepcopy(xp) is xp
    assert pickle.loads(pickle.dumps(xp)) is xp
    assert pickle.loads(pickle.dumps(xp.sum)) is xp.sum
    again = pickle.loads(pickle.dumps(xp.sum))
    assert again([1, 2]) == 3
    assert copy.deepcopy(xp.sum) is xp.sum
    with pytest.raises(AttributeError, match="cannot be changed"):
        xp.sum = None
    with pytest.raises(AttributeError, match="cannot be changed"):
        del xp.sum
    for wrong in (None, "numpy", np.ones(2)):
        with pytest.raises(TypeError, match="pass a module"):
            gnp.wrap(wrong)


def test_numpy_is_not_changed() -> None:
    before = dict(vars(np))
    xp.sum(np.ones(5))
    gnp.wrap(np).histogram([1, 2])
    assert vars(np) == before
