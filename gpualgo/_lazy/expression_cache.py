"""A cache of expressions by the layouts of their arrays: built once, reused for other arrays.

The graph, the function and the offsets of leaves in the arrays depend on layouts only. With them a
call costs a few microseconds, and compiled code is found quickly, as the function is identical. A
function that looks up elements of an array is bound to the new array instead.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gpualgo._arrays.device_array import DeviceArray
from gpualgo._arrays.view import View, address_of, layout_of, view_of
from gpualgo._base.dtypes import as_dtype
from gpualgo._base.memo import Memo
from gpualgo._base.strides import bounds
from gpualgo._driver.default_device import CPU
from gpualgo._lazy import LAZY, expression, is_lazy
from gpualgo._lazy.array import LazyArray, is_number
from gpualgo._lazy.combining import led_by, zipped
from gpualgo._lazy.expression import InputArray


class _Location(NamedTuple):
    """A leaf's location in one of the arrays; for positions, the leaf itself."""

    number: int  # index of the array
    offset: int  # in bytes from its first element
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    is_whole: bool  # the leaf is the whole array
    leaf: InputArray | None  # for positions
    view: View | None  # for positions on a GPU


class _Table(NamedTuple):
    """Placeholder of a GPU array whose elements are looked up, in cached expressions."""

    place: _Location
    dtype: np.dtype[Any]


class _Entry(NamedTuple):
    made: LazyArray
    places: tuple[_Location, ...]
    bind: Any  # binds captured values to the function; None if no table is captured
    captured: tuple[Any, ...]
    converted: dict[np.dtype[Any], _Entry]  # the expression's elements as other dtypes


class CachedExpression(LazyArray):
    """A cached expression that reads new arrays on a GPU; creates leaves on demand."""

    __slots__ = ("_given", "_known", "_leaves", "_node", "_pointers")

    def __init__(self, known: _Entry, views: list[View], pointers: list[int]) -> None:
        """`pointers` are the addresses of the arrays."""
        made = known.made
        self.shape, self.forms, self.text, self.marked = made.shape, made.forms, made.text, None
        self._known, self._given, self._pointers = known, views, pointers
        self._dtype = made._dtype
        self._leaves: tuple[InputArray, ...] | None = None
        self._node: expression.Node | None = None
        new_views = []
        for number, offset, shape, strides, _, _, position in known.places:
            if position is not None:
                new_views.append(position)
                continue
            _, _, _, dtype, device, library, _, owner = views[number]
            address = pointers[number] + offset
            new_views.append(View(address, shape, strides, dtype, device, library, True, owner))
        self._views = tuple(new_views)
        self._function = made._function if known.bind is None else known.bind(*self._tables())
        self.is_kept = known.bind is None

    @property
    def leaves(self) -> tuple[InputArray, ...]:  # type: ignore[override]
        if self._leaves is None:
            self._leaves = tuple(_leaves_of(self._known.places, self._given, self._pointers))
        return self._leaves

    @property
    def reads_arrays(self) -> bool:
        """Always true: its inputs are arrays."""
        return True

    @property
    def node(self) -> Any:  # type: ignore[override]
        if self._node is None:
            tables = dict(zip(map(id, self._known.captured), self._tables(), strict=True))
            self._node = expression.with_leaves(
                self._known.made.node, value=lambda one: tables.get(id(one), one)
            )
        return self._node

    def astype(self, dtype: Any) -> LazyArray:
        known, wanted = self._known, as_dtype(dtype, "astype")
        if known.bind is not None:
            return super().astype(wanted)
        converted = known.converted.get(wanted)
        if converted is None:
            made = super().astype(wanted)
            made = _without_leaves(made, made.node, made.function)
            converted = known.converted[wanted] = known._replace(made=made, converted={})
        return CachedExpression(converted, self._given, self._pointers)

    def _tables(self) -> list[Any]:
        return [
            _array_of_table(one, self._given, self._pointers) if type(one) is _Table else one
            for one in self._known.captured
        ]


LAZY.add(CachedExpression)


class ExpressionCache:
    """A function of lazy arrays and plain values that returns a lazy array, with a cache.

    The function may use shapes, dtypes and the values. It captures no arrays.
    """

    def __init__(self, build: Callable[..., LazyArray], kept: int = 1 << 8) -> None:
        self._build = build
        self._known: Memo[_Entry | None] = Memo(kept)

    def __call__(self, arrays: tuple[Any, ...], where: str, *values: Any) -> LazyArray:
        """Return the lazy array of these arrays.

        `values` are hashable and part of the cache key.
        """
        if any(map(is_lazy, arrays)):
            return self._built(arrays, where, values)
        views = [view_of(x, where) for x in arrays]
        pointers = [address_of(view) for view in views]
        same = tuple(map(pointers.index, pointers)) if len(pointers) > 1 else ()
        key = (same, *map(layout_of, views), *values)
        entry = self._known.get(key)
        if entry is not None:
            return _instantiate(entry, views, pointers)
        result = self._built(arrays, where, values)
        entry = None if _overlap(views, pointers) else _cache_entry(result, views, pointers)
        if entry is not None:
            self._known.add(key, entry)
        return result

    def _built(self, arrays: tuple[Any, ...], where: str, values: tuple[Any, ...]) -> LazyArray:
        parts = [zipped(x, where) for x in arrays]
        return led_by(self._build(*parts, *values), parts[0])


def _overlap(views: list[View], pointers: list[int]) -> bool:
    """Return whether arrays with different addresses overlap: equal leaves are then read once."""
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


def _locations_of(
    made: LazyArray, views: list[View], pointers: list[int]
) -> tuple[_Location, ...] | None:
    locations = []
    for one in made.leaves:
        shape, strides = one.array.shape, one.array.strides
        if one.is_position:
            device, library = made.place
            view = one.view(device, library) if device != CPU else None
            locations.append(_Location(-1, 0, shape, strides, True, one, view))
            continue
        location = _location_of(one.owner, one.address, shape, strides, views, pointers)
        if location is None:
            return None
        locations.append(location)
    return tuple(locations)


def _location_of(
    owner: Any, address: int, shape: tuple[int, ...], strides: tuple[int, ...], views: list[View],
    pointers: list[int],
) -> _Location | None:  # fmt: skip
    """Return the location of elements in the arrays, None if they are in none of them."""
    index = next((i for i, view in enumerate(views) if view.owner is owner), None)
    if index is None:
        return None
    view, offset = views[index], address - pointers[index]
    is_whole = not offset and (view.shape, view.strides) == (shape, strides)
    return _Location(index, offset, shape, strides, is_whole, None, None)


def _cache_entry(made: LazyArray, views: list[View], pointers: list[int]) -> _Entry | None:
    """Return an expression's cache entry, None if it reads other arrays than those in `views`."""
    places = _locations_of(made, views, pointers)
    tables: dict[int, _Table] = {}
    for value in expression.values_of(made.node):
        if is_number(value):
            continue
        if not isinstance(value, DeviceArray):
            return None
        location = _location_of(value.owner, value.ptr, value.shape, value.strides, views, pointers)
        if location is None:
            return None
        tables[id(value)] = _Table(location, value.dtype)
    if places is None:
        return None
    made.dtype  # noqa: B018  # computes the dtype, which is cached
    if not tables:
        return _Entry(_without_leaves(made, made.node, made.function), places, None, (), {})
    template, captured = expression.template_of(made.node, len(made.leaves))
    node = expression.with_leaves(made.node, value=lambda value: tables.get(id(value), value))
    captured = [tables.get(id(value), value) for value in captured]
    return _Entry(_without_leaves(made, node, None), places, template.bound, tuple(captured), {})


def _without_leaves(made: LazyArray, node: Any, function: Any) -> LazyArray:
    bare = LazyArray(made.shape, node, (), made.text, made.forms)
    bare._function, bare._dtype = function, made.dtype
    return bare


def _instantiate(entry: _Entry, views: list[View], pointers: list[int]) -> LazyArray:
    if views[0].device != CPU:
        return CachedExpression(entry, views, pointers)
    template = entry.made
    leaves = _leaves_of(entry.places, views, pointers)
    result = LazyArray(template.shape, template.node, leaves, template.text, template.forms)
    result._function, result._dtype = template._function, template._dtype
    return result


def _leaves_of(
    places: tuple[_Location, ...], views: list[View], pointers: list[int]
) -> list[InputArray]:
    leaves = []
    for index, offset, shape, strides, is_whole, one, _ in places:
        if one is not None:
            leaves.append(one)
        elif is_whole:
            leaves.append(expression.of_view(views[index]))
        else:
            leaves.append(expression.within(views[index], pointers[index] + offset, shape, strides))
    return leaves


def _array_of_table(table: _Table, views: list[View], pointers: list[int]) -> DeviceArray:
    location, view = table.place, views[table.place.number]
    return DeviceArray(
        pointers[location.number] + location.offset, location.shape, location.strides,
        table.dtype, view.device, view.library.stream(view.device), True, view.owner,
    )  # fmt: skip
