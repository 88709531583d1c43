"""What once went wrong of tuples: namedtuple classes, messages, what calls remember."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpualgo as ga

X, Y = np.array([1.0, 2.0, 3.0]), np.array([4, 5, 6])
Point = namedtuple("Point", "x y")
Other = namedtuple("Other", "u v")
Open = namedtuple("Open", "x y", defaults=[7])
Numbered = namedtuple("Numbered", ["x", "class", "x"], rename=True)


class Swapped(Point):
    """A namedtuple that is not made of its fields as they are given."""

    __slots__ = ()

    def __new__(cls, x: Any, y: Any) -> Any:
        return super().__new__(cls, y, x)


class Reordered(Point):
    """One whose parameters have another order."""

    __slots__ = ()

    def __new__(cls, y: Any, x: Any) -> Any:
        return super().__new__(cls, x, y)


class Measured(Point):
    """One with a method, which is made as every namedtuple."""

    __slots__ = ()

    def size(self) -> Any:
        return self.x + self.y


def _same(got: Any, want: tuple[Any, ...]) -> None:
    for one, other in zip(got, want, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def add(a: Any, b: Any) -> Any:
    return a[0] + b[0], a[1] + b[1]


# --- classes of namedtuples ----------------------------------------------------------------------


@pytest.mark.parametrize("cls", [Open, Measured])
def test_a_class_with_more_than_fields(cls: Any) -> None:
    for given in (Point, cls):
        found = ga.transform(lambda p: p if p.x > 1 else cls(p.x, y=p.y), given(X, Y))
        assert type(found) is given
        _same(found, (X, Y))


def test_a_default_is_not_known() -> None:
    with pytest.raises(ga.CompileError, match=r"each of its fields: missing.*'y'") as caught:
        ga.transform(lambda p: Open(p.x), Point(X, Y))
    assert str(caught.value).startswith("transform: op could not be compiled")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("cls", [Swapped, Reordered])
def test_a_new_of_its_own_is_refused(cls: Any) -> None:
    with pytest.raises(TypeError, match=f"transform: op makes tuples of class {cls.__name__}"):
        ga.transform(lambda p: cls(p.x, p.y), Point(X, Y))
    with pytest.raises(TypeError, match="inclusive_scan: op makes tuples of class"):
        ga.inclusive_scan(Point(X, Y), None, lambda p, q: cls(p.x, q.y))
    assert type(ga.transform(lambda p: p, cls(X, Y))) is cls


def test_fields_that_were_renamed() -> None:
    x = Numbered(X, Y, X + 1)
    found = ga.transform(lambda p: Numbered(p._2, p._1, p.x), x)
    assert type(found) is Numbered
    _same(found, (X + 1, Y, X))
    assert ga.reduce(x, None, lambda p, q: q) == Numbered(3.0, 6, 4.0)


# --- messages ------------------------------------------------------------------------------------

MEETING = {
    "a plain tuple of equal numbers": (Point(X, X), lambda p: p if p.x > 1 else (p.x, p.y)),
    "a plain tuple": (Point(X, Y), lambda p: p if p.x > 1 else (p.x, p.y)),
    "other dtypes": (Point(X, Y), lambda p: p if p.x > 1 else Point(p.y, p.x)),
    "other fields": (Point(X, Y), lambda p: p if p.x > 1 else Other(p.x, p.y)),
    "a number": ((X, Y), lambda p: p if p[0] > 1 else p[0]),
    "another length": ((X, Y), lambda p: p if p[0] > 1 else (p[0], p[1], p[1])),
}


@pytest.mark.parametrize("name", MEETING)
def test_paths_that_do_not_meet(name: str) -> None:
    x, op = MEETING[name]
    with pytest.raises(ga.CompileError, match="all branches of op must return") as caught:
        ga.transform(op, x)
    assert "\n" not in str(caught.value)


def test_attributes_of_a_plain_tuple() -> None:
    with pytest.raises(ga.CompileError, match=r"no 'count'; take its items by number") as caught:
        ga.transform(lambda p: p.count(1), (X, Y))
    assert "UniTuple" not in str(caught.value)


# --- dtype= ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("function", [ga.reduce, ga.inclusive_scan])
def test_a_dtype_with_other_fields(function: Callable[..., Any], is_known: bool) -> None:
    """What equals it, a plain tuple, has been looked up before or not."""
    x = Point(np.arange(5 + is_known, dtype=np.float32), np.arange(5 + is_known))
    if is_known:
        function(x, None, add, dtype=(np.float64, np.int64))
    with pytest.raises(TypeError, match="dtype must be a tuple like the elements"):
        function(x, None, add, dtype=Other(np.float64, np.int64))


def test_a_dtype_with_other_fields_in_transform() -> None:
    ga.transform(lambda p: p, Point(X, Y), dtype=(np.float32, np.int64))
    with pytest.raises(TypeError, match="transform: dtype must be a tuple"):
        ga.transform(lambda p: p, Point(X, Y), dtype=Other(np.float32, np.int64))


def test_none_leaves_a_number_s_own_dtype() -> None:
    found = ga.transform(lambda p: p, (X, Y), dtype=(np.float32, None))
    _same(found, (X.astype(np.float32), Y))


def test_a_tuple_for_a_number_s_dtype() -> None:
    """NumPy would make a dtype of it."""
    with pytest.raises(TypeError, match=r"reduce: dtype .* is a tuple; pass"):
        ga.reduce(X, dtype=("f4", "f4"))
    with pytest.raises(TypeError, match=r"reduce: dtype .* is a tuple; pass"):
        ga.reduce((X, X), None, add, dtype=(("f4", "f4"), "f4"))


@pytest.mark.parametrize("order", [(False, True), (True, False)])
def test_aligned_structures_stay_so(order: tuple[bool, bool]) -> None:
    """Dtypes are equal whose offsets are, aligned or not."""
    names = "pq" if order[0] else "rs"  # no call before has had them
    for align in order:
        dtype = np.dtype([(names[0], "i4"), (names[1], "f4")], align=align)
        found = ga.transform(lambda p: (p[1], p[0]), np.zeros(3, dtype))
        assert [a.dtype for a in found] == [np.float32, np.int32]
        wider = ga.inclusive_scan(np.zeros(3, dtype), None, lambda a, b: b, dtype=("i4", "f8"))
        assert wider.dtype.isalignedstruct == align
        assert wider.dtype.itemsize == (16 if align else 12)


# --- identities, and out --------------------------------------------------------------------


def test_an_identity_of_arrays_is_taken_as_it_was() -> None:
    zero = np.zeros(())
    record = np.array((1.0, 2), [("a", "f8"), ("b", "i8")])
    first = ga.Operator(add, identity=Point(zero, np.array([0])))
    second, third = ga.Operator(add, identity=record), ga.Operator(add, identity=record[()])
    zero[...], record["a"] = 100, 100
    nothing = (X[:0], Y[:0])
    assert ga.reduce(nothing, None, first) == (0.0, 0)
    assert ga.reduce(nothing, None, second) == ga.reduce(nothing, None, third) == (1.0, 2)


@pytest.mark.parametrize("op", [lambda a, b: a[7], lambda a, b: (a[0] * 1j, a[1])])
def test_nothing_is_written_before_the_operator_is_known(op: Any) -> None:
    """Of an array that is no run the CPU's scan makes one in out."""
    x = np.asfortranarray(np.arange(1.0, 7).reshape(2, 3))
    out = (np.zeros(6), np.zeros(6))
    with pytest.raises((TypeError, ga.CompileError)):
        ga.inclusive_scan((x, x), None, op, out=out)
    assert not np.any(out)
