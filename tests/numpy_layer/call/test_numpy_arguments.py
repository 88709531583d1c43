"""What NumPy's functions take for an array, and what they refuse by name."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import Backend

import gpualgo as ga
import gpualgo.numpy as gnp
from gpualgo.numpy import _call


class Holder:
    """What NumPy can make an array of."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.arange(4.0)

    def __repr__(self) -> str:
        return type(self).__name__


class Foreign(Holder):
    """An array of a library that has NumPy's functions itself."""

    def __array_function__(self, *args: Any) -> Any:
        return "its own"


TAKEN = [
    [1.0, 2.0, 3.0], (1, 2), [[1], [2]], range(5), 3, 2.5, 1 + 2j, True, [True, False],
    np.float32(1.5), np.array(7), np.arange(6).reshape(2, 3).T, np.arange(5).astype(">i4"),
    np.arange(3).astype(">f8"), np.rec.fromarrays([np.arange(3)], names="a").a, Holder(), [],
]  # fmt: skip


@pytest.mark.parametrize("x", TAKEN, ids=repr)
def test_what_numpy_makes_an_array_of(x: Any) -> None:
    got, want = gnp.sum(x), np.sum(x)
    assert got == want
    assert type(got) is type(want)


def test_arrays_by_name() -> None:
    assert gnp.sum(a=[1, 2], axis=0) == 3


def test_memory_of_a_file(tmp_path: Path) -> None:
    x = np.memmap(tmp_path / "x", np.float64, "w+", shape=(10,))
    x[:] = range(10)
    got = gnp.sum(x)
    assert type(got) is np.float64
    assert got == 45


@pytest.mark.parametrize(
    "x",
    [
        np.ma.array([1.0, 2.0], mask=[0, 1]),
        np.zeros((1, 1)).view(np.matrix),
        np.array(["a", "b"]),
        np.array([b"a"]),
        np.array([None, 1]),
        np.array(["2020-01-01"], "M8[D]"),
        np.array([1], "m8[s]"),
        np.zeros(3, np.longdouble),
        np.zeros(3, [("a", "f4")]),
        Foreign(),
        ["a", "b"],
        10**30,
        ga.lazy.asarray((np.arange(3), np.arange(3))),
        None,
    ],
    ids=repr,
)
def test_what_is_refused_by_name(x: Any) -> None:
    with pytest.raises(gnp.NotTaken, match="sum: a"):
        gnp.sum(x)


def test_columns_of_frames() -> None:
    pandas = pytest.importorskip("pandas", reason="columns of data frames")
    assert gnp.sum(pandas.Series([1.5, 2.5])) == 4.0
    assert gnp.sum(pandas.DataFrame({"a": [1, 2]})["a"]) == 3
    with pytest.raises(gnp.NotTaken):
        gnp.sum(pandas.Series(["a", None]))


def test_columns_of_arrow_and_polars() -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="columns of Arrow")
    polars = pytest.importorskip("polars", reason="columns of polars")
    assert gnp.sum(pyarrow.array([1, 2, 3])) == 6
    assert gnp.sum(pyarrow.chunked_array([[1], [2]])) == 3
    assert gnp.sum(polars.Series([1.5, 2.5])) == 4.0


def test_device_arrays_and_lazy_ones(cuda: Backend) -> None:
    x = cuda.to_device(np.arange(6.0))
    got = gnp.sum(x)
    assert type(got) is type(x)
    assert got.shape == ()
    assert float(cuda.to_host(got)) == 15
    assert float(cuda.to_host(gnp.sum(ga.lazy.asarray(x) * 2))) == 30


# --- who works on few elements ------------------------------------------------------------------


@pytest.mark.few
def test_few_elements_are_numpys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is the table's, by the number of elements alone, unless a GPU is named."""
    asked = []
    is_few = _call.is_few

    def noted(size: int, few: int) -> bool:
        found = is_few(size, few)
        asked.append((size, found))
        return found

    monkeypatch.setattr(_call, "is_few", noted)
    with ga.default_device("cpu"):
        few = _call.FEW_FOR_ONE_PASS
        for size in (0, 1, few - 1, few, 10 * few):
            x = np.ones(size)
            assert gnp.sum(x) == size
            assert asked.pop() == (size, size < few)
            if size:
                assert gnp.sum(x, where=x > 0) == size  # NumPy takes longer for these
                assert asked.pop() == (size, size < _call.FEW)
        gnp.sum(ga.lazy.asarray(np.ones(3)))
    assert not asked


@pytest.mark.few
def test_few_elements_go_where_they_are_sent(backend: Backend) -> None:
    """A GPU that is named gets them; a device array is never NumPy's."""
    assert _call.is_few(10, 100) == (backend.name == "cpu")
    x = backend.to_device(np.arange(5.0))
    got = gnp.sum(x)
    assert float(np.asarray(backend.to_host(got) if hasattr(got, "shape") else got)) == 10


@pytest.mark.few
def test_few_and_many_take_the_same() -> None:
    """What is refused of many elements is refused of one, before NumPy could do it."""
    for few in (1, _call.FEW_FOR_ONE_PASS):
        for x in (np.zeros(few, "U3"), np.zeros(few, np.longdouble), np.zeros(few, "m8[s]")):
            with pytest.raises(gnp.NotTaken):
                gnp.sum(x)


def test_names_that_are_not_here() -> None:
    with pytest.raises(AttributeError, match=r"no 'matmul'; numpy.matmul .*wrap"):
        functools.partial(getattr, gnp)("matmul")
    with pytest.raises(AttributeError, match="no 'suum'; the nearest is 'sum'"):
        functools.partial(getattr, gnp)("suum")
    assert {"sum", "prod"} <= {*dir(gnp)}
