"""Gathers from lazy arrays: `take`, and reshapes that change the order of elements in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._arrays.device_array import DeviceArray
from gpualgo._base.strides import dense_strides
from gpualgo._driver.default_device import CPU
from gpualgo._lazy import expression, hooks, leaf
from gpualgo._lazy.array import LazyArray
from gpualgo._lazy.combining import check_places, combined, led_by, parted, zipped
from gpualgo._lazy.expression import AT, Call, Node, Value
from gpualgo._lazy.leaf import Leaf
from gpualgo._pipeline import checks


def _wrapped(i: Any, n: Any) -> Any:
    index = np.int64(i)
    return index if 0 <= index < n else index % n  # avoids a division, slower than a load


def _clipped(i: Any, n: Any) -> Any:
    return min(max(np.int64(i), 0), n - 1)


def _wrapped_unsigned(i: Any, n: Any) -> Any:
    return np.int64(i % np.uint64(n))


def _clipped_unsigned(i: Any, n: Any) -> Any:
    return np.int64(min(i, np.uint64(n - 1)))


def _axis_index(i: Any, step: Any, n: Any) -> Any:
    return i // step % n


def _offset(start: Any, i: Any, step: Any) -> Any:
    return start + i * step


MODES = {"wrap": _wrapped, "clip": _clipped}
_UNSIGNED = {"wrap": _wrapped_unsigned, "clip": _clipped_unsigned}  # for uint64 indices


def reshaped(x: LazyArray, shape: tuple[int, ...], text: str) -> LazyArray:
    arrays = [leaf.reshaped(one.array, shape) for one in x.leaves]
    leaves = [one.with_array(a) for one, a in zip(x.leaves, arrays, strict=True) if a is not None]
    if len(leaves) == len(x.leaves):
        return LazyArray(shape, x.node, leaves, text, x.forms)
    positions = LazyArray(shape, expression.Leaf(0), [leaf.positions(shape, place=x.wish)], "")

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
    steps = dense_strides(shape, 1)
    return [
        Call(_axis_index, position, Value(step), Value(n))
        for step, n in zip(steps, shape, strict=True)
    ]


def at(x: LazyArray, indices: Sequence[Node]) -> Node:
    """Return the node of a lazy array's element at indices, which are within bounds."""
    return expression.with_leaves(x.node, lambda i: _leaf_at(x.leaves[i], indices))


def _leaf_at(one: Leaf, indices: Sequence[Node]) -> Node:
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


def _capturable(one: Leaf) -> Any:
    """Return a leaf's array in a form that operators may capture."""
    if one.device == CPU:
        return one.array
    array = one.array
    return DeviceArray(
        one.address, array.shape, array.strides, one.dtype, one.device,
        one.library.stream(one.device), True, one.owner,
    )  # fmt: skip


def aligned(x: Any, where: str) -> LazyArray:
    """Return an input as one lazy array that operators may capture.

    Unaligned host arrays, such as fields of packed structured arrays, are copied. In a graph the
    copy is a recorded call.
    """
    lazy = zipped(x, where)
    leaves = [one if is_aligned(one) else one.with_array(_copied(one)) for one in lazy.leaves]
    return LazyArray(lazy.shape, lazy.node, leaves, lazy.text, lazy.forms)


def _copied(one: Leaf) -> Any:
    return hooks.copy(LazyArray(one.array.shape, expression.Leaf(0), [one], ""))


def is_aligned(one: Leaf) -> bool:
    return one.device != CPU or one.is_position or bool(one.array.flags.aligned)


def _check_aligned(x: LazyArray, where: str) -> None:
    for one in x.leaves:
        if not is_aligned(one):
            raise ValueError(
                f"{where} reads an array of {one.dtype} whose elements lie at addresses that are "
                f"no multiples of {one.array.dtype.alignment}; copy it to aligned memory"
            )


def taken(x: Any, indices: Any, axis: int | None, mode: str, where: str) -> LazyArray:
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
    _check_aligned(source, f"{where}: x")
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


def _along(shape: tuple[int, ...], before: int, after: int, place: leaf.Place) -> list[LazyArray]:
    axes = [*range(before), *range(len(shape) - after, len(shape))]
    index_leaves = [leaf.along(shape, axis, place) for axis in axes]
    return [LazyArray(shape, expression.Leaf(0), [one], "") for one in index_leaves]
