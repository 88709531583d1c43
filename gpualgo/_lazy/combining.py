"""Lazy arrays of several others: their leaves put together, and what an operator makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from gpualgo._arrays import forms
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import NumPy, NumPyOnCPU, View, view_of
from gpualgo._base import dtypes, records
from gpualgo._driver.default_device import CPU, name_of
from gpualgo._lazy import expression, leaf
from gpualgo._lazy.array import LazyArray, is_number
from gpualgo._lazy.conversions import cast_to
from gpualgo._lazy.expression import Call, Group, Node, Value
from gpualgo._lazy.leaf import Leaf, Place
from gpualgo._operators.captured import is_array
from gpualgo._operators.frozen import frozen
from gpualgo._operators.markers import strong
from gpualgo._operators.operator import as_operator
from gpualgo._pipeline import checks, elements, inputs

MAX_LEAVES = 16  # of a transformation; others take elements of 8 numbers


class _Merged:
    """Leaves of several lazy arrays, each of them once."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.leaves: list[Leaf] = []
        self._known: dict[Any, expression.Leaf] = {}
        self._nodes: expression.Known = {}

    def add(self, one: Leaf) -> expression.Leaf:
        """Return the node of a leaf."""
        one = one.broadcast_to(self.shape)
        found = self._known.get(one.place)
        if found is None:
            found = self._known[one.place] = expression.Leaf(len(self.leaves))
            self.leaves.append(one)
        return found

    def node_of(self, part: Part) -> Node:
        """Return the node of an argument."""
        if isinstance(part, LazyArray):
            nodes = [self.add(one) for one in part.leaves]
            return expression.with_leaves(part.node, lambda i: nodes[i], self._nodes)
        if isinstance(part, _Tuple):
            return Group(part.cls, [self.node_of(item) for item in part.items])
        return Value(part)


class _Tuple:
    """An argument that is a tuple, and how it is built."""

    def __init__(self, form: Form, items: Sequence[Part]) -> None:
        self.form, self.items = form, items
        self.cls = None if form.cls is tuple else records.class_of(form.keys)


Part = Any  # a LazyArray, a _Tuple or a number


def parted(x: Any, where: str, depth: int = 0) -> Part:
    """Return an argument as a lazy array, a number, or a tuple of them."""
    if isinstance(x, LazyArray) or is_number(x):
        if isinstance(x, np.generic):
            dtypes.check(x.dtype, where)
        return x
    if isinstance(x, tuple):
        if depth > 1:
            raise TypeError(f"{where} is a tuple within a tuple within one; one level is possible")
        if not x:
            raise TypeError(f"{where} is an empty tuple; pass at least one array in it")
        items = [parted(_typed(item), f"{where}[{i}]", depth + 1) for i, item in enumerate(x)]
        cls = type(x) if hasattr(x, "_fields") else tuple
        inner = [item.form if isinstance(item, _Tuple) else None for item in items]
        return _Tuple(Form(cls, tuple(inner)), items)
    view = view_of(x, where)
    if view.dtype.names is not None:
        found, form = forms.taken_apart(view.owner, where)
        items = [_of_view(view_of(array, name), name) for array, name in found]
        return _Tuple(form, items)
    return _of_view(view, where)


def _typed(item: Any) -> Any:
    """Return an item of a tuple, a number of Python's as an array has it."""
    return np.array(item)[()] if isinstance(item, (bool, int, float, complex)) else item


def _of_view(view: View, where: str) -> LazyArray:
    place, _, name = where.partition(": ")
    checks.dimensions(view, name, place)
    checks.element(view, name, place)
    if view.device != CPU:
        checks.aligned(view, name, place)
    found = leaf.of_view(view)
    text = f"{getattr(view.library, 'name', 'array')} {view.dtype}"
    return LazyArray(view.shape, expression.Leaf(0), [found], text)


def combined(parts: Sequence[Part], where: str, node: Callable[[list[Node]], Node], text: str
) -> LazyArray:  # fmt: skip
    """Return what a node makes of several arguments, broadcast against each other."""
    arrays = list(_arrays_of(parts))
    if not arrays:
        raise TypeError(f"{where}: all arguments are numbers; pass at least one array")
    shape = inputs.broadcast([one.shape for one in arrays], where)
    merged = _Merged(shape)
    made = node([merged.node_of(part) for part in parts])
    check_count(merged.leaves, MAX_LEAVES, f"{where}: it would read")
    known = dict.fromkeys(form for part in parts for form in _forms_of(part))
    check_places(merged.leaves, where)
    return LazyArray(shape, made, merged.leaves, text, tuple(known))


def check_count(leaves: Sequence[Leaf], most: int, reads: str) -> None:
    """Raise TypeError where one kernel would read more arrays than it can."""
    if len(leaves) > most:
        raise TypeError(
            f"{reads} {len(leaves)} arrays, at most {most} are possible; "
            "make a part of it real with gpualgo.copy"
        )


def _forms_of(part: Part) -> tuple[Form, ...]:
    if isinstance(part, LazyArray):
        return part.forms
    return (part.form,) if isinstance(part, _Tuple) else ()


def check_places(leaves: Sequence[Leaf], where: str) -> None:
    """Raise unless all that is read, and positions that are for some device, goes together."""
    read = [one for one in leaves if not one.is_position]
    if len(read) > 1:
        views = [View(0, (), (), one.dtype, one.device, one.library, True, None) for one in read]
        checks.same_place(views, where)
    placed = [one for one in leaves if one.library is not None]
    for one in placed:
        if one.is_position:
            _check_device(one.device, (read or placed)[0].device, where)


def _check_device(named: int, device: int, where: str) -> None:
    """Raise TypeError where a lazy array that reads no array was made for another device."""
    if named != device:
        raise TypeError(
            f"{where}: a lazy array was made with device={name_of(named)!r}, and what stands "
            f"beside it is on {name_of(device)}; make it without device="
        )


def place_lazy(given: Sequence[Any], others: Sequence[Any], where: str) -> tuple[Any, ...]:
    """Return arguments, of which lazy ones that read no array have the place of what they go with.

    That is the first array among them, or among `others` (outputs, say), else the device that one
    was made for.
    """
    if all(map(_has_place, given)):
        return tuple(given)
    named: Place | None = None
    for place, is_read in _places_of((*given, *others)):
        if is_read:
            named = place
            break
        named = named or place
    return tuple(given) if named is None else tuple([_placed(x, named, where) for x in given])


def _has_place(x: Any) -> bool:
    """Return whether an argument needs nothing beside it to tell where it is computed."""
    if isinstance(x, tuple):
        return all(map(_has_place, x))
    return not isinstance(x, LazyArray) or x.reads_arrays


def _places_of(given: Sequence[Any]) -> Iterator[tuple[Place, bool]]:
    """Yield where arguments lie or are to be computed, and whether an array says so."""
    for x in given:
        if isinstance(x, tuple):
            yield from _places_of(x)
        elif isinstance(x, LazyArray):
            if (place := x.wish)[1] is not None:
                yield place, x.reads_arrays
        elif is_array(x):
            with suppress(TypeError, ValueError):  # which is told where the argument is taken
                view = view_of(x, "an array")
                yield (view.device, view.library), True


def _placed(x: Any, place: Place, where: str) -> Any:
    """Return an argument whose lazy arrays that read no array have a place."""
    if isinstance(x, tuple):
        items = [_placed(item, place, where) for item in x]
        return type(x)._make(items) if hasattr(x, "_make") else tuple(items)
    if _has_place(x):
        return x
    device, library = x.wish
    if library is not None:
        _check_device(device, place[0], where)
    if library is NumPyOnCPU or (library is None and place[1] is NumPy):
        return x
    device, library = place
    leaves = [one._replace(device=device, library=library) for one in x.leaves]
    made = LazyArray(x.shape, x.node, leaves, x.text, x.forms)
    made._function, made._dtype, made.is_kept = x.function, x._dtype, x.is_kept
    return made


def led_by(made: LazyArray, first: LazyArray) -> LazyArray:
    """Return a lazy array in the library of an argument's first array.

    Where what is made does not read that array, or reads others before it, it reads an element
    of it as well.
    """
    (device, library), (made_for, own) = first.wish, made.wish
    if library in (None, own) or device != made_for or NumPyOnCPU in (library, own):
        return made
    lead = next((one for one in first.leaves if not one.is_position), None)
    if lead is None:
        return made
    spread = as_strided(lead.array, made.shape, (0,) * made.ndim)
    node = expression.with_leaves(made.node, lambda i: expression.Leaf(i + 1))
    leaves = (lead.with_array(spread), *made.leaves)
    return LazyArray(made.shape, node, leaves, made.text, made.forms)


def _arrays_of(parts: Sequence[Part]) -> Any:
    for part in parts:
        if isinstance(part, LazyArray):
            yield part
        elif isinstance(part, _Tuple):
            yield from _arrays_of(part.items)


def zipped(x: Any, where: str) -> LazyArray:
    """Return an argument as one lazy array: a tuple's elements are tuples."""
    part = parted(x, where)
    if isinstance(part, LazyArray):
        return part
    return combined([part], where, lambda nodes: nodes[0], "a tuple")


def applied(op: Any, arguments: Sequence[Any], where: str, dtype: Any = None) -> LazyArray:
    """Return what an operator makes of arguments, element by element."""
    found = as_operator(op, where, len(arguments))
    fn = frozen(found.fn)
    parts = [parted(x, f"{where}: an argument") for x in arguments]
    shown = ", ".join(part.text if isinstance(part, LazyArray) else _shown(part) for part in parts)
    text = f"{_name_of(found.fn)}({shown})"
    made = combined(parts, where, lambda nodes: Call(strong, Call(fn, *nodes)), text)
    if dtype is None:
        return made
    own = made.dtype
    wanted = elements.wanted_of(own, dtype, where) if _is_tuple_dtype(dtype) else None
    if wanted is None:
        one = dtypes.as_dtype(dtype, where)
        wanted = records.with_leaves(own, [one] * len(records.leaves(own)))
    for source, target in zip(records.leaves(own), records.leaves(wanted), strict=True):
        if not dtypes.can_cast(source, target):
            raise TypeError(
                f"{where}: op returns {source}, which does not fit {target}; pass "
                f"dtype=np.{source} or convert inside op"
            )
    node = cast_to(made.node, own, wanted)
    return LazyArray(made.shape, node, made.leaves, text, made.forms)


def _is_tuple_dtype(dtype: Any) -> bool:
    return isinstance(dtype, tuple) or getattr(dtype, "names", None) is not None


def _shown(part: Part) -> str:
    return "(…)" if isinstance(part, _Tuple) else repr(part)


def _name_of(fn: Any) -> str:
    return str(getattr(fn, "__name__", type(fn).__name__))
