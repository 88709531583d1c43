"""Arrays of two libraries of the host in one call: NumPy's, and those of one like PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpualgo as ga
from gpualgo._arrays import view as views
from gpualgo._arrays.view import NumPy, View


class Tensor:
    """An array of another library, over one of NumPy's."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__


class Library(NumPy):
    name = "another"

    @staticmethod
    def view(x: Any) -> View:
        return NumPy.view(x.array)._replace(library=Library, owner=x)

    @staticmethod
    def to_numpy(x: Any) -> np.ndarray[Any, Any]:
        found: np.ndarray[Any, Any] = x.array
        return found

    @staticmethod
    def from_numpy(a: np.ndarray[Any, Any], like: Any) -> Any:
        return Tensor(a)

    @staticmethod
    def scalar(a: Any) -> Any:
        return a


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(views._viewers, Tensor, Library.view)


def plus(a: Any, b: Any) -> Any:
    return a + b


def test_the_result_is_the_first_s() -> None:
    x, y = np.arange(5000.0), np.arange(5000.0) * 3
    with ga.default_device("cpu"):
        for _ in range(2):
            for given in ((x, y), (Tensor(x), Tensor(y)), (x, Tensor(y)), (Tensor(x), y)):
                found = ga.transform(plus, *given)
                assert type(found) is type(given[0])
                array = found.array if isinstance(found, Tensor) else found
                assert (array == x + y).all()


def test_outputs_of_the_other() -> None:
    x = np.arange(5000) % 1000
    out, counted = Tensor(np.zeros(5000, np.int64)), np.zeros((), np.int64)
    with ga.default_device("cpu"):
        for source in (x, Tensor(x), x):
            out.array[...] = 0
            assert ga.inclusive_scan(source, out=out) is out
            assert (out.array == np.cumsum(x)).all()
            ga.select(source, lambda a: a < 10, out=out, out_count=counted)
            assert counted == 50
            assert (out.array[:50] == x[x < 10]).all()
        with ga.graph("cpu") as g:
            ga.inclusive_scan(x, out=out)
            found = ga.transform(plus, Tensor(x), x)
        g.launch()
    assert (out.array == np.cumsum(x)).all()
    assert type(found) is Tensor
    assert (found.array == 2 * x).all()


def test_lazy_numbers_take_the_place_of_the_others() -> None:
    x = np.arange(100) // 7
    with ga.default_device("cpu"):
        found = ga.reduce_by_key(Tensor(x), ga.lazy.full(100, 2))
        out = Tensor(np.zeros(100, np.int64))
        assert ga.inclusive_scan(ga.lazy.arange(100), out=out) is out
    assert type(found.aggregates) is Tensor
    assert (found.aggregates.array == 2 * np.bincount(x)).all()
    assert (out.array == np.cumsum(np.arange(100))).all()
