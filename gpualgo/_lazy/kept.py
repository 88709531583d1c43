"""Expressions that are put together once, and then read other arrays of the same layouts.

What an expression is of shapes and dtypes alone, its nodes, its function and where its leaves lie
in the arrays, is kept. A call then costs a few microseconds, and compiled code is soon found, as
its function is the very same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gpualgo._arrays.view import View, address_of, layout_of, view_of
from gpualgo._base.memo import Memo
from gpualgo._lazy import expression, is_lazy, leaf
from gpualgo._lazy.array import LazyArray
from gpualgo._lazy.combining import zipped
from gpualgo._lazy.leaf import Leaf


class _Place(NamedTuple):
    """Where a leaf lies in one of the arrays; of positions, the leaf itself."""

    number: int  # of the array
    offset: int  # in bytes from its first element
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    is_whole: bool  # as the array does
    leaf: Leaf | None


class _Known(NamedTuple):
    made: LazyArray
    places: tuple[_Place, ...]


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
            return self._build(*[zipped(x, where) for x in arrays], *values)
        views = [view_of(x, where) for x in arrays]
        pointers = [address_of(view) for view in views]
        same = tuple(map(pointers.index, pointers)) if len(pointers) > 1 else ()
        key = (same, *map(layout_of, views), *values)
        known = self._known.get(key)
        if known is not None:
            return _again(known, views, pointers)
        made = self._build(*[zipped(x, where) for x in arrays], *values)
        places = _places_of(made, views, pointers)
        if places is not None:
            made.dtype  # noqa: B018  # it is kept, too
            self._known.add(key, _Known(_bare(made), places))
        return made


def _places_of(
    made: LazyArray, views: list[View], pointers: list[int]
) -> tuple[_Place, ...] | None:
    """Return where leaves lie in the arrays; None: an array is read that is none of them."""
    if not all(map(_is_plain, expression.values_of(made.node))):
        return None
    found = []
    for one in made.leaves:
        shape, strides = one.array.shape, one.array.strides
        if one.is_position:
            found.append(_Place(-1, 0, shape, strides, True, one))
            continue
        index = next((i for i, view in enumerate(views) if view.owner is one.owner), None)
        if index is None:
            return None
        view, offset = views[index], one.address - pointers[index]
        is_whole = not offset and (view.shape, view.strides) == (shape, strides)
        found.append(_Place(index, offset, shape, strides, is_whole, None))
    return tuple(found)


def _is_plain(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex, np.number, np.bool_))


def _bare(made: LazyArray) -> LazyArray:
    """Return it without the arrays that it reads, for its node, function and dtype."""
    bare = LazyArray(made.shape, made.node, (), made.text, made.forms)
    bare._function, bare._dtype = made.function, made.dtype
    return bare


def _again(known: _Known, views: list[View], pointers: list[int]) -> LazyArray:
    """Return what was made before, of other arrays."""
    bare = known.made
    leaves = []
    for index, offset, shape, strides, is_whole, one in known.places:
        if one is not None:
            leaves.append(one)
        elif is_whole:
            leaves.append(leaf.of_view(views[index]))
        else:
            leaves.append(leaf.within(views[index], pointers[index] + offset, shape, strides))
    made = LazyArray(bare.shape, bare.node, leaves, bare.text, bare.forms)
    made._function, made._dtype = bare._function, bare._dtype
    return made
