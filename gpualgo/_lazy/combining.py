"""Combines several arguments into one lazy array: merges leaves, applies operators."""

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
from gpualgo._lazy.expression import Call, Group, Node, Value, cast_to
from gpualgo._lazy.leaf import Leaf, Place
from gpualgo._operators.captured import is_array
from gpualgo._operators.key import frozen
from gpualgo._operators.operator import as_operator
from gpualgo._operators.tokens import strong
from gpualgo._pipeline import checks, elements, inputs

MAX_LEAVES = 16  # for transform; other algorithms accept elements of 8 fields


class _Merged:
    """The leaves of several lazy arrays, without duplicates."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.leaves: list[Leaf] = []
        self._leaf_nodes: dict[Any, expression.Leaf] = {}
        self._nodes: expression.Known = {}

    def add(self, one: Leaf) -> expression.Leaf:
        one = one.broadcast_to(self.shape)
        node = self._leaf_nodes.get(one.place)
        if node is None:
            node = self._leaf_nodes[one.place] = expression.Leaf(len(self.leaves))
            self.leaves.append(one)
        return node

    def node_of(self, part: Part) -> Node:
        if isinstance(part, LazyArray):
            nodes = [self.add(one) for one in part.leaves]
            return expression.with_leaves(part.node, lambda i: nodes[i], self._nodes)
        if isinstance(part, _Tuple):
            return Group(part.cls, [self.node_of(item) for item in part.items])
        return Value(part)


class _Tuple:
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
            raise TypeError(
                f"{where} is a tuple that is nested too deeply; one level of nesting is possible"
            )
        if not x:
            raise TypeError(f"{where} is an empty tuple; pass at least one array in it")
        items = [parted(_typed(item), f"{where}[{i}]", depth + 1) for i, item in enumerate(x)]
        cls = type(x) if hasattr(x, "_fields") else tuple
        inner = [item.form if isinstance(item, _Tuple) else None for item in items]
        return _Tuple(Form(cls, tuple(inner)), items)
    view = view_of(x, where)
    if view.dtype.names is not None:
        fields, form = forms.taken_apart(view.owner, where)
        items = [_of_view(view_of(array, name), name) for array, name in fields]
        return _Tuple(form, items)
    return _of_view(view, where)


def _typed(item: Any) -> Any:
    return np.array(item)[()] if isinstance(item, (bool, int, float, complex)) else item


def _of_view(view: View, where: str) -> LazyArray:
    func_name, _, name = where.partition(": ")
    checks.dimensions(view, name, func_name)
    checks.element(view, name, func_name)
    if view.device != CPU:
        checks.aligned(view, name, func_name)
    array_leaf = leaf.of_view(view)
    text = f"{getattr(view.library, 'name', 'array')} {view.dtype}"
    return LazyArray(view.shape, expression.Leaf(0), [array_leaf], text)


def combined(parts: Sequence[Part], where: str, node: Callable[[list[Node]], Node], text: str
) -> LazyArray:  # fmt: skip
    """Return the lazy array that `node` builds from several arguments, which are broadcast."""
    arrays = list(_lazy_arrays_in(parts))
    if not arrays:
        raise TypeError(f"{where}: all arguments are numbers; pass at least one array")
    shape = inputs.broadcast([one.shape for one in arrays], where)
    merged = _Merged(shape)
    root = node([merged.node_of(part) for part in parts])
    check_count(merged.leaves, MAX_LEAVES, f"{where}: it would read")
    forms = dict.fromkeys(form for part in parts for form in _forms_in(part))
    check_places(merged.leaves, where)
    return LazyArray(shape, root, merged.leaves, text, tuple(forms))


def check_count(leaves: Sequence[Leaf], most: int, reads: str) -> None:
    if len(leaves) > most:
        raise TypeError(
            f"{reads} {len(leaves)} arrays, at most {most} are possible; "
            "materialize a part of it with gpualgo.copy"
        )


def _forms_in(part: Part) -> tuple[Form, ...]:
    if isinstance(part, LazyArray):
        return part.forms
    return (part.form,) if isinstance(part, _Tuple) else ()


def check_places(leaves: Sequence[Leaf], where: str) -> None:
    """Raise unless all leaves are on one device, and positions are for that device or any."""
    arrays = [one for one in leaves if not one.is_position]
    if len(arrays) > 1:
        views = [View(0, (), (), one.dtype, one.device, one.library, True, None) for one in arrays]
        checks.same_place(views, where)
    placed = [one for one in leaves if one.library is not None]
    for one in placed:
        if one.is_position:
            _check_device(one.device, (arrays or placed)[0].device, where)


def _check_device(named: int, device: int, where: str) -> None:
    if named != device:
        raise TypeError(
            f"{where}: a lazy array was made with device={name_of(named)!r}, but another argument "
            f"is on {name_of(device)}; make it without device="
        )


def place_lazy(given: Sequence[Any], others: Sequence[Any], where: str) -> tuple[Any, ...]:
    """Return the arguments; lazy ones that read no array get the device and library of the others.

    These are taken from the first array in `given` and `others` (such as outputs), else from a lazy
    array that was made for a device.
    """
    if all(map(_is_placed, given)):
        return tuple(given)
    chosen: Place | None = None
    for place, reads_array in _places_of((*given, *others)):
        if reads_array:
            chosen = place
            break
        chosen = chosen or place
    return tuple(given) if chosen is None else tuple([_placed(x, chosen, where) for x in given])


def _is_placed(x: Any) -> bool:
    """Return whether an argument determines its own device and library."""
    if isinstance(x, tuple):
        return all(map(_is_placed, x))
    return not isinstance(x, LazyArray) or x.reads_arrays


def _places_of(given: Sequence[Any]) -> Iterator[tuple[Place, bool]]:
    """Yield the device and library of arguments, and whether they come from an array."""
    for x in given:
        if isinstance(x, tuple):
            yield from _places_of(x)
        elif isinstance(x, LazyArray):
            if (place := x.wish)[1] is not None:
                yield place, x.reads_arrays
        elif is_array(x):
            with suppress(TypeError, ValueError):  # raised later, when the argument is parsed
                view = view_of(x, "an array")
                yield (view.device, view.library), True


def _placed(x: Any, place: Place, where: str) -> Any:
    """Return an argument with a device and library set for lazy arrays that read no array."""
    if isinstance(x, tuple):
        items = [_placed(item, place, where) for item in x]
        return type(x)._make(items) if hasattr(x, "_make") else tuple(items)
    if _is_placed(x):
        return x
    device, library = x.wish
    if library is not None:
        _check_device(device, place[0], where)
    if library is NumPyOnCPU or (library is None and place[1] is NumPy):
        return x
    device, library = place
    leaves = [one._replace(device=device, library=library) for one in x.leaves]
    result = LazyArray(x.shape, x.node, leaves, x.text, x.forms)
    result._function, result._dtype, result.is_kept = x.function, x._dtype, x.is_kept
    return result


def led_by(made: LazyArray, first: LazyArray) -> LazyArray:
    """Return a lazy array whose results are in the library of the first argument's first array.

    If `made` does not read that array, or reads arrays of another library before it, a leaf that
    reads one element of it is added in front.
    """
    (device, library), (made_for, own) = first.wish, made.wish
    if library in (None, own) or device != made_for or NumPyOnCPU in (library, own):
        return made
    lead_leaf = next((one for one in first.leaves if not one.is_position), None)
    if lead_leaf is None:
        return made
    one_element = as_strided(lead_leaf.array, made.shape, (0,) * made.ndim)
    node = expression.with_leaves(made.node, lambda i: expression.Leaf(i + 1))
    leaves = (lead_leaf.with_array(one_element), *made.leaves)
    return LazyArray(made.shape, node, leaves, made.text, made.forms)


def _lazy_arrays_in(parts: Sequence[Part]) -> Any:
    for part in parts:
        if isinstance(part, LazyArray):
            yield part
        elif isinstance(part, _Tuple):
            yield from _lazy_arrays_in(part.items)


def zipped(x: Any, where: str) -> LazyArray:
    """Return an argument as one lazy array; a tuple becomes an array of tuples."""
    part = parted(x, where)
    if isinstance(part, LazyArray):
        return part
    return combined([part], where, lambda nodes: nodes[0], "a tuple")


def applied(op: Any, arguments: Sequence[Any], where: str, dtype: Any = None) -> LazyArray:
    """Return the lazy array of an operator applied to the arguments' elements."""
    operator = as_operator(op, where, len(arguments))
    fn = frozen(operator.fn)
    parts = [parted(x, f"{where}: an argument") for x in arguments]
    shown = ", ".join(part.text if isinstance(part, LazyArray) else _shown(part) for part in parts)
    text = f"{_name_of(operator.fn)}({shown})"
    result = combined(parts, where, lambda nodes: Call(strong, Call(fn, *nodes)), text)
    if dtype is None:
        return result
    dtype_of_op = result.dtype
    wanted = elements.requested_dtype(dtype_of_op, dtype, where) if _is_tuple_dtype(dtype) else None
    if wanted is None:
        scalar_dtype = dtypes.as_dtype(dtype, where)
        wanted = records.with_leaves(
            dtype_of_op, [scalar_dtype] * len(records.field_dtypes(dtype_of_op))
        )
    for source, target in zip(
        records.field_dtypes(dtype_of_op), records.field_dtypes(wanted), strict=True
    ):
        if not dtypes.can_cast(source, target):
            raise TypeError(
                f"{where}: op returns {source}, which does not fit {target}; pass "
                f"dtype=np.{source} or convert inside op"
            )
    node = cast_to(result.node, dtype_of_op, wanted)
    return LazyArray(result.shape, node, result.leaves, text, result.forms)


def _is_tuple_dtype(dtype: Any) -> bool:
    return isinstance(dtype, tuple) or getattr(dtype, "names", None) is not None


def _shown(part: Part) -> str:
    return "(…)" if isinstance(part, _Tuple) else repr(part)


def _name_of(fn: Any) -> str:
    return str(getattr(fn, "__name__", type(fn).__name__))
