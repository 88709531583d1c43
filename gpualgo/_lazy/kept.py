"""Expressions that are put together once, and then read other arrays of the same layouts.

What an expression is of shapes and dtypes alone, its nodes, its function and where its leaves lie
in the arrays, is kept. A call then costs a few microseconds, and compiled code is soon found, as
its function is the very same; where it looks up elements of an array, it is bound to another.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gpualgo._arrays.device_array import DeviceArray
from gpualgo._arrays.view import View, address_of, layout_of, view_of
from gpualgo._base.extents import bounds
from gpualgo._base.memo import Memo
from gpualgo._driver.default_device import CPU
from gpualgo._lazy import LAZY, expression, is_lazy, leaf
from gpualgo._lazy.array import LazyArray
from gpualgo._lazy.combining import led_by, zipped
from gpualgo._lazy.leaf import Leaf


class _Place(NamedTuple):
    """Where a leaf lies in one of the arrays; of positions, the leaf itself."""

    number: int  # of the array
    offset: int  # in bytes from its first element
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    is_whole: bool  # as the array does
    leaf: Leaf | None
    view: View | None  # of positions on a GPU


class _Table(NamedTuple):
    """An array of a GPU's that elements are looked up in: what stands for it in what is kept."""

    place: _Place
    dtype: np.dtype[Any]


class _Known(NamedTuple):
    made: LazyArray
    places: tuple[_Place, ...]
    bind: Any  # a function's of what it captures, some of which are tables; None: none is
    captured: tuple[Any, ...]


class Again(LazyArray):
    """What was put together before, of other arrays of a GPU: leaves are made if asked for."""

    __slots__ = ("_given", "_known", "_leaves", "_node", "_pointers")

    def __init__(self, known: _Known, views: list[View], pointers: list[int]) -> None:
        """`pointers` are where the arrays begin."""
        made = known.made
        self.shape, self.forms, self.text, self.marked = made.shape, made.forms, made.text, None
        self._known, self._given, self._pointers = known, views, pointers
        self._dtype = made._dtype
        self._leaves: tuple[Leaf, ...] | None = None
        self._node: expression.Node | None = None
        found = []
        for number, offset, shape, strides, _, _, position in known.places:
            if position is not None:
                found.append(position)
                continue
            _, _, _, dtype, device, library, _, owner = views[number]
            address = pointers[number] + offset
            found.append(View(address, shape, strides, dtype, device, library, True, owner))
        self._views = tuple(found)
        self._function = made._function if known.bind is None else known.bind(*self._tables())
        self.is_kept = known.bind is None

    @property
    def leaves(self) -> tuple[Leaf, ...]:  # type: ignore[override]
        """The arrays that it reads."""
        if self._leaves is None:
            self._leaves = tuple(_leaves_of(self._known.places, self._given, self._pointers))
        return self._leaves

    @property
    def reads_arrays(self) -> bool:
        """Whether it reads an array: it is made of such."""
        return True

    @property
    def node(self) -> Any:  # type: ignore[override]
        """How an element is computed."""
        if self._node is None:
            bare = self._known.made.node
            tables = {
                id(one): _table(one, self._given, self._pointers)
                for one in self._known.captured
                if type(one) is _Table
            }
            self._node = expression.with_values(bare, lambda one: tables.get(id(one), one))
        return self._node

    def _tables(self) -> list[Any]:
        """Return what its function captures: these arrays, where tables are kept."""
        return [
            _table(one, self._given, self._pointers) if type(one) is _Table else one
            for one in self._known.captured
        ]


LAZY.add(Again)


class Kept:
    """A function of lazy arrays, and of plain values, that gives a lazy array.

    It may look at shapes and dtypes, and at the values; what it does with elements is numba's to
    compile. It captures no arrays.
    """

    def __init__(self, build: Callable[..., LazyArray], kept: int = 1 << 8) -> None:
        self._build = build
        self._known: Memo[_Known | None] = Memo(kept)

    def __call__(self, arrays: tuple[Any, ...], where: str, *values: Any) -> LazyArray:
        """Return the lazy array of these arrays.

        `values` are hashable, and equal only where they mean the same.
        """
        if any(map(is_lazy, arrays)):
            return self._built(arrays, where, values)
        views = [view_of(x, where) for x in arrays]
        pointers = [address_of(view) for view in views]
        same = tuple(map(pointers.index, pointers)) if len(pointers) > 1 else ()
        key = (same, *map(layout_of, views), *values)
        known = self._known.get(key)
        if known is not None:
            return _again(known, views, pointers)
        made = self._built(arrays, where, values)
        known = None if _are_mixed(views, pointers) else _known_of(made, views, pointers)
        if known is not None:
            self._known.add(key, known)
        return made

    def _built(self, arrays: tuple[Any, ...], where: str, values: tuple[Any, ...]) -> LazyArray:
        parts = [zipped(x, where) for x in arrays]
        return led_by(self._build(*parts, *values), parts[0])


def _are_mixed(views: list[View], pointers: list[int]) -> bool:
    """Return whether parts of arrays that begin apart may be one, which is read once."""
    if len(views) == 1:
        return False
    ends = sorted(
        (view.device, low + pointer, high + pointer, pointer)
        for view, pointer in zip(views, pointers, strict=True)
        for low, high in [bounds(view.shape, view.strides, view.dtype.itemsize)]
    )
    return any(
        a[0] == b[0] and b[1] < a[2] and a[3] != b[3] for a, b in itertools.combinations(ends, 2)
    )


def _places_of(
    made: LazyArray, views: list[View], pointers: list[int]
) -> tuple[_Place, ...] | None:
    """Return where leaves lie in the arrays; None: an array is read that is none of them."""
    found = []
    for one in made.leaves:
        shape, strides = one.array.shape, one.array.strides
        if one.is_position:
            device, library = made.place
            view = one.view(device, library) if device != CPU else None
            found.append(_Place(-1, 0, shape, strides, True, one, view))
            continue
        place = _place_of(one.owner, one.address, shape, strides, views, pointers)
        if place is None:
            return None
        found.append(place)
    return tuple(found)


def _place_of(
    owner: Any, address: int, shape: tuple[int, ...], strides: tuple[int, ...], views: list[View],
    pointers: list[int],
) -> _Place | None:  # fmt: skip
    """Return where elements lie in the arrays; None: in none of them."""
    index = next((i for i, view in enumerate(views) if view.owner is owner), None)
    if index is None:
        return None
    view, offset = views[index], address - pointers[index]
    is_whole = not offset and (view.shape, view.strides) == (shape, strides)
    return _Place(index, offset, shape, strides, is_whole, None, None)


def _known_of(made: LazyArray, views: list[View], pointers: list[int]) -> _Known | None:
    """Return what is kept of an expression; None: it reads an array that is none of the given."""
    places = _places_of(made, views, pointers)
    tables: dict[int, _Table] = {}
    for value in expression.values_of(made.node):
        if _is_plain(value):
            continue
        if not isinstance(value, DeviceArray):
            return None
        place = _place_of(value.owner, value.ptr, value.shape, value.strides, views, pointers)
        if place is None:
            return None
        tables[id(value)] = _Table(place, value.dtype)
    if places is None:
        return None
    made.dtype  # noqa: B018  # it is kept, too
    if not tables:
        return _Known(_bare(made, made.node, made.function), places, None, ())
    bind, captured = expression.binder_of(made.node, len(made.leaves))
    node = expression.with_values(made.node, lambda value: tables.get(id(value), value))
    captured = [tables.get(id(value), value) for value in captured]
    return _Known(_bare(made, node, None), places, bind, tuple(captured))


def _is_plain(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex, np.number, np.bool_))


def _bare(made: LazyArray, node: Any, function: Any) -> LazyArray:
    """Return it without the arrays that it reads, for its node, function and dtype."""
    bare = LazyArray(made.shape, node, (), made.text, made.forms)
    bare._function, bare._dtype = function, made.dtype
    return bare


def _again(known: _Known, views: list[View], pointers: list[int]) -> LazyArray:
    """Return what was made before, of other arrays."""
    if views[0].device != CPU:
        return Again(known, views, pointers)
    bare = known.made
    leaves = _leaves_of(known.places, views, pointers)
    made = LazyArray(bare.shape, bare.node, leaves, bare.text, bare.forms)
    made._function, made._dtype = bare._function, bare._dtype
    return made


def _leaves_of(places: tuple[_Place, ...], views: list[View], pointers: list[int]) -> list[Leaf]:
    leaves = []
    for index, offset, shape, strides, is_whole, one, _ in places:
        if one is not None:
            leaves.append(one)
        elif is_whole:
            leaves.append(leaf.of_view(views[index]))
        else:
            leaves.append(leaf.within(views[index], pointers[index] + offset, shape, strides))
    return leaves


def _table(one: _Table, views: list[View], pointers: list[int]) -> DeviceArray:
    """Return what stands for an array that elements are looked up in, of other arrays."""
    place, view = one.place, views[one.place.number]
    return DeviceArray(
        pointers[place.number] + place.offset, place.shape, place.strides, one.dtype, view.device,
        view.library.stream(view.device), True, view.owner,
    )  # fmt: skip
