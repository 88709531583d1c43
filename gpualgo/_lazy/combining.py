"""Combines several arguments into one lazy array: merges leaves, applies operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from gpualgo._arrays import forms
from gpualgo._arrays.device_array import DeviceArray
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import NumPy, NumPyOnCPU, View, view_of
from gpualgo._base import dtypes, records
from gpualgo._base.strides import dense_strides
from gpualgo._driver.default_device import CPU, name_of
from gpualgo._lazy import expression
from gpualgo._lazy.array import LazyArray, is_number
from gpualgo._lazy.expression import AT, Call, Group, InputArray, Node, Place, Value, cast_to
from gpualgo._operators.captured import is_array
from gpualgo._operators.key import frozen
from gpualgo._operators.operator import as_operator
from gpualgo._operators.tokens import strong
from gpualgo._pipeline import checks, inputs

MAX_LEAVES = 16  # for transform; other algorithms accept elements of 8 fields


class _Merged:
    """The leaves of several lazy arrays, without duplicates."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.leaves: list[InputArray] = []
        self._leaf_nodes: dict[Any, Node] = {}
        self._nodes: expression.Known = {}

    def add(self, one: InputArray) -> Node:
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
            return Group(part.cls, *map(self.node_of, part.items))
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
        fields, form = forms.flatten_tuple(view.owner, where)
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
    text = f"{getattr(view.library, 'name', 'array')} {view.dtype}"
    return of_leaf(expression.of_view(view), text)


def of_leaf(one: InputArray, text: str = "") -> LazyArray:
    return LazyArray(one.array.shape, expression.Leaf(0), [one], text)


def combined(parts: Sequence[Part], where: str, node: Callable[[list[Node]], Node], text: str
) -> LazyArray:  # fmt: skip
    """Return the lazy array that `node` builds from several arguments, which are broadcast."""
    arrays = list(_lazy_arrays_in(parts))
    if not arrays:
        raise TypeError(f"{where}: all arguments are numbers; pass at least one array")
    if len(arrays) == 1 and not any(isinstance(part, _Tuple) for part in parts):
        one = arrays[0]  # beside numbers: its graph and leaves are used as they are
        root = node([part.node if part is one else Value(part) for part in parts])
        return LazyArray(one.shape, root, one.leaves, text, one.forms)
    shape = inputs.broadcast([one.shape for one in arrays], where)
    merged = _Merged(shape)
    root = node([merged.node_of(part) for part in parts])
    check_count(merged.leaves, MAX_LEAVES, f"{where}: it would read")
    forms = dict.fromkeys(form for part in parts for form in _forms_in(part))
    check_places(merged.leaves, where)
    return LazyArray(shape, root, merged.leaves, text, tuple(forms))


def check_count(leaves: Sequence[InputArray], most: int, reads: str) -> None:
    if len(leaves) > most:
        raise TypeError(
            f"{reads} {len(leaves)} arrays, at most {most} are possible; "
            "materialize a part of it with gpualgo.copy"
        )


def _forms_in(part: Part) -> tuple[Form, ...]:
    if isinstance(part, LazyArray):
        return part.forms
    return (part.form,) if isinstance(part, _Tuple) else ()


def check_places(leaves: Sequence[InputArray], where: str) -> None:
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
    operator = as_operator(op, where, len(arguments))
    fn = frozen(operator.fn)
    parts = [parted(x, f"{where}: argument {i}") for i, x in enumerate(arguments, 1)]
    shown = ", ".join(part.text if isinstance(part, LazyArray) else _shown(part) for part in parts)
    text = f"{_name_of(operator.fn)}({shown})"
    result = combined(parts, where, lambda nodes: Call(strong, Call(fn, *nodes)), text)
    if dtype is None:
        return result
    dtype_of_op = result.dtype
    sources = records.field_dtypes(dtype_of_op)
    wanted = None
    if isinstance(dtype, tuple) or getattr(dtype, "names", None) is not None:
        wanted = checks.requested_dtype(dtype_of_op, dtype, where)
    if wanted is None:
        wanted = records.with_fields(dtype_of_op, [dtypes.as_dtype(dtype, where)] * len(sources))
    for source, target in zip(sources, records.field_dtypes(wanted), strict=True):
        if not dtypes.can_cast(source, target):
            raise TypeError(
                f"{where}: op returns {source}, which does not fit {target}; pass "
                f"dtype=np.{source} or convert inside op"
            )
    node = cast_to(result.node, dtype_of_op, wanted)
    return LazyArray(result.shape, node, result.leaves, text, result.forms)


def _shown(part: Part) -> str:
    return "(…)" if isinstance(part, _Tuple) else repr(part)


def _name_of(fn: Any) -> str:
    return str(getattr(fn, "__name__", type(fn).__name__))


# --- Gathers from lazy arrays: `take`, and reshapes that change the order of elements in memory.


def _wrapped(i: Any, n: Any) -> Any:
    index = np.int64(i)
    return index if 0 <= index < n else index % n  # avoids a division, slower than a load


def quotient(i: Any, n: Any, inverse: Any) -> Any:
    """Return i // n for i below 2^52, where the product is off by less than one.

    A division of integers takes longer.
    """
    quotient = np.int64(np.int64(i) * inverse)
    rest = np.int64(i) - quotient * n
    return quotient + np.int64(rest >= n) - np.int64(rest < 0)


def remainder(i: Any, n: Any, inverse: Any) -> Any:
    return np.int64(i) - quotient(i, n, inverse) * n


def _divided(i: Any, n: Any, inverse: Any) -> Any:
    return i // n


def _left_over(i: Any, n: Any, inverse: Any) -> Any:
    return i % n


def _offset(start: Any, i: Any, step: Any) -> Any:
    return start + i * step


MODES = {"wrap": _wrapped, "clip": lambda i, n: min(max(np.int64(i), 0), n - 1)}
_UNSIGNED = {  # for uint64 indices
    "wrap": lambda i, n: np.int64(i % np.uint64(n)),
    "clip": lambda i, n: np.int64(min(i, np.uint64(n - 1))),
}


def reshaped(x: LazyArray, shape: tuple[int, ...], text: str) -> LazyArray:
    arrays = [expression.reshaped(one.array, shape) for one in x.leaves]
    leaves = [one.with_array(a) for one, a in zip(x.leaves, arrays, strict=True) if a is not None]
    if len(leaves) == len(x.leaves):
        return LazyArray(shape, x.node, leaves, text, x.forms)
    positions = of_leaf(expression.positions(shape, place=x.wish))

    def node(nodes: list[Node]) -> Node:
        return at(x, _unravelled(nodes[0], x.shape))

    return _with_forms_of(combined([positions], "reshape", node, text), x)


def _with_forms_of(made: LazyArray, x: LazyArray) -> LazyArray:
    """Return a lazy array made from x's elements, with x's tuple structures and device."""
    leaves = made.leaves
    device, library = x.wish
    if library is not None and not made.reads_arrays:
        leaves = tuple([one._replace(device=device, library=library) for one in leaves])
    return LazyArray(made.shape, made.node, leaves, made.text, (*made.forms, *x.forms))


def _unravelled(position: Node, shape: Sequence[int]) -> list[Node]:
    """Return an element's index along each axis, from its index in C order."""
    size = math.prod(shape)
    divide, rest = (quotient, remainder) if size <= 1 << 52 else (_divided, _left_over)
    indices: list[Node] = []
    for axis, (step, n) in enumerate(zip(dense_strides(shape, 1), shape, strict=True)):
        node = position
        if step > 1:
            node = Call(divide, node, Value(step), Value(1 / step))
        if axis and n * step < size:
            node = Call(rest, node, Value(n), Value(1 / n))
        indices.append(node)
    return indices


def at(x: LazyArray, indices: Sequence[Node]) -> Node:
    """Return the node of a lazy array's element at indices, which are within bounds."""
    return expression.with_leaves(x.node, lambda i: _leaf_at(x.leaves[i], indices))


def _leaf_at(one: InputArray, indices: Sequence[Node]) -> Node:
    array = one.array
    used_axes = [i for i, (n, s) in enumerate(zip(array.shape, array.strides, strict=True))
              if s and n > 1]  # fmt: skip
    if one.is_position:
        node: Node = Value(np.int64(one.address))
        for i in used_axes:
            node = Call(_offset, node, indices[i], Value(array.strides[i]))
        return node
    if not array.size:
        return Value(one.dtype.type(0))  # never evaluated
    used = array[(*(slice(None) if i in used_axes else 0 for i in range(array.ndim)), ...)]
    if not used_axes:
        return Call(AT, Value(_capturable(one.with_array(used[None]))), Value(0))
    table = _capturable(one.with_array(used))
    return Call(AT, Value(table), *(indices[i] for i in used_axes))


def _capturable(one: InputArray) -> Any:
    """Return a leaf's array in a form that operators may capture."""
    array = one.array
    if one.device == CPU:
        return array
    return DeviceArray(
        one.address, array.shape, array.strides, one.dtype, one.device,
        one.library.stream(one.device), True, one.owner,
    )  # fmt: skip


def is_aligned(one: InputArray) -> bool:
    return one.device != CPU or one.is_position or bool(one.array.flags.aligned)


def gathered(x: Any, indices: Any, axis: int | None, mode: str, where: str) -> LazyArray:
    """Return the elements of x at indices: along an axis, or of flattened x."""
    source = zipped(x, f"{where}: x")
    if isinstance(indices, list):
        indices = np.asarray(indices)
    index_array = parted(indices, f"{where}: indices")
    if not isinstance(index_array, LazyArray):
        index_array = parted(np.asarray(indices), f"{where}: indices")
    if index_array.dtype.names is not None or index_array.dtype.kind not in "iu":
        raise TypeError(
            f"{where}: indices have dtype {index_array.dtype}; pass integers, such as "
            "indices.astype(np.int64)"
        )
    check_places([*source.leaves, *index_array.leaves], where)
    if mode not in MODES:
        raise ValueError(f"{where}: mode must be 'wrap' or 'clip', got {mode!r}")
    text = f"take({source.text}, {index_array.text})"
    if axis is None:
        length, shape = source.size, index_array.shape
        parts = [index_array]
    else:
        (axis,) = checks.axes_of(axis, source.ndim, where)
        length = source.shape[axis]
        before, after = source.shape[:axis], source.shape[axis + 1 :]
        shape = (*before, *index_array.shape, *after)
        spread = index_array.reshape((*index_array.shape, *(1,) * len(after)))
        parts = [spread.broadcast_to(shape), *_along(shape, len(before), len(after), source.wish)]
    if not length and math.prod(shape):
        raise ValueError(f"{where}: x of shape {source.shape} has no elements to take")

    modes = _UNSIGNED if index_array.dtype == np.uint64 else MODES

    def node(nodes: list[Node]) -> Node:
        index = Call(modes[mode], nodes[0], Value(length))
        if axis is None:
            return at(source, _unravelled(index, source.shape))
        others = nodes[1:]
        return at(source, [*others[:axis], index, *others[axis:]])

    return led_by(_with_forms_of(combined(parts, where, node, text), source), source)


def _along(
    shape: tuple[int, ...], before: int, after: int, place: expression.Place
) -> list[LazyArray]:
    axes = [*range(before), *range(len(shape) - after, len(shape))]
    return [of_leaf(expression.along(shape, axis, place)) for axis in axes]
