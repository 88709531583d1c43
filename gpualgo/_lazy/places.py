"""Elements of lazy arrays at other places than their own: by indices, and in other shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._arrays.device_array import DeviceArray
from gpualgo._base.extents import dense_strides
from gpualgo._driver.default_device import CPU
from gpualgo._lazy import expression, leaf
from gpualgo._lazy.array import LazyArray
from gpualgo._lazy.combining import check_places, combined, led_by, parted, zipped
from gpualgo._lazy.expression import AT, Call, Node, Value
from gpualgo._lazy.hooks import hooks
from gpualgo._lazy.leaf import Leaf
from gpualgo._pipeline import checks


def _wrapped(i: Any, n: Any) -> Any:
    place = np.int64(i)
    return place if 0 <= place < n else place % n  # a division takes longer than a load


def _clipped(i: Any, n: Any) -> Any:
    return min(max(np.int64(i), 0), n - 1)


def _wrapped_unsigned(i: Any, n: Any) -> Any:
    return np.int64(i % np.uint64(n))


def _clipped_unsigned(i: Any, n: Any) -> Any:
    return np.int64(min(i, np.uint64(n - 1)))


def _part(i: Any, step: Any, n: Any) -> Any:
    return i // step % n


def _moved(start: Any, i: Any, step: Any) -> Any:
    return start + i * step


MODES = {"wrap": _wrapped, "clip": _clipped}
_UNSIGNED = {"wrap": _wrapped_unsigned, "clip": _clipped_unsigned}  # of 64 bits, not negative


def reshaped(x: LazyArray, shape: tuple[int, ...], text: str) -> LazyArray:
    """Return a lazy array in another shape of as many elements."""
    arrays = [leaf.reshaped(one.array, shape) for one in x.leaves]
    leaves = [one.with_array(a) for one, a in zip(x.leaves, arrays, strict=True) if a is not None]
    if len(leaves) == len(x.leaves):
        return LazyArray(shape, x.node, leaves, text, x.forms)
    counted = LazyArray(shape, expression.Leaf(0), [leaf.positions(shape, place=x.wish)], "")

    def node(nodes: list[Node]) -> Node:
        return at(x, _unravelled(nodes[0], x.shape))

    return _of_forms(combined([counted], "reshape", node, text), x)


def _of_forms(made: LazyArray, x: LazyArray) -> LazyArray:
    """Return what was made of x's elements: tuples are built, and it runs, as x has them."""
    leaves = made.leaves
    device, library = x.wish
    if library is not None and not made.reads_arrays:
        leaves = tuple([one._replace(device=device, library=library) for one in leaves])
    return LazyArray(made.shape, made.node, leaves, made.text, (*made.forms, *x.forms))


def _unravelled(position: Node, shape: Sequence[int]) -> list[Node]:
    """Return the indices of an element in each axis, of its number in C order."""
    steps = dense_strides(shape, 1)
    return [
        Call(_part, position, Value(step), Value(n)) for step, n in zip(steps, shape, strict=True)
    ]


def at(x: LazyArray, indices: Sequence[Node]) -> Node:
    """Return the element of a lazy array at indices, which are within its shape."""
    return expression.with_leaves(x.node, lambda i: _leaf_at(x.leaves[i], indices))


def _leaf_at(one: Leaf, indices: Sequence[Node]) -> Node:
    array = one.array
    moving = [i for i, (n, s) in enumerate(zip(array.shape, array.strides, strict=True))
              if s and n > 1]  # fmt: skip
    if one.is_position:
        node: Node = Value(np.int64(one.address))
        for i in moving:
            node = Call(_moved, node, indices[i], Value(array.strides[i]))
        return node
    if not array.size:
        return Value(one.dtype.type(0))  # nothing is taken of it
    kept = array[(*(slice(None) if i in moving else 0 for i in range(array.ndim)), ...)]
    if not moving:
        return Call(AT, Value(_captured(one.with_array(kept[None]))), Value(0))
    found = _captured(one.with_array(kept))
    return Call(AT, Value(found), *(indices[i] for i in moving))


def _captured(one: Leaf) -> Any:
    """Return an array that operators may capture."""
    if one.device == CPU:
        return one.array
    array = one.array
    return DeviceArray(
        one.address, array.shape, array.strides, one.dtype, one.device,
        one.library.stream(one.device), True, one.owner,
    )  # fmt: skip


def aligned(x: Any, where: str) -> LazyArray:
    """Return an input as one lazy array that operators may capture.

    Host arrays whose items lie at any address, as packed structured ones have them, are copied:
    by each launch of a graph, in which that is a call as others are.
    """
    whole = zipped(x, where)
    leaves = [one if is_aligned(one) else one.with_array(_copied(one)) for one in whole.leaves]
    return LazyArray(whole.shape, whole.node, leaves, whole.text, whole.forms)


def _copied(one: Leaf) -> Any:
    return hooks.copy(LazyArray(one.array.shape, expression.Leaf(0), [one], ""))


def is_aligned(one: Leaf) -> bool:
    """Return whether operators may capture an array of the host; one on a GPU was looked at."""
    return one.device != CPU or one.is_position or bool(one.array.flags.aligned)


def _check_aligned(x: LazyArray, where: str) -> None:
    """Raise ValueError for arrays of the host that no operator may capture."""
    for one in x.leaves:
        if not is_aligned(one):
            raise ValueError(
                f"{where} reads an array of {one.dtype} whose elements lie at addresses that are "
                f"no multiples of {one.array.dtype.alignment}; copy it to aligned memory"
            )


def taken(x: Any, indices: Any, axis: int | None, mode: str, where: str) -> LazyArray:
    """Return the elements of x at indices: along an axis, or of x in one dimension."""
    source = zipped(x, f"{where}: x")
    if isinstance(indices, list):
        indices = np.asarray(indices)
    where_to = parted(indices, f"{where}: indices")
    if not isinstance(where_to, LazyArray):
        where_to = parted(np.asarray(indices), f"{where}: indices")
    if where_to.dtype.names is not None or where_to.dtype.kind not in "iu":
        raise TypeError(
            f"{where}: indices have dtype {where_to.dtype}; pass integers, such as "
            "indices.astype(np.int64)"
        )
    check_places([*source.leaves, *where_to.leaves], where)
    _check_aligned(source, f"{where}: x")
    if mode not in MODES:
        raise ValueError(f"{where}: mode must be 'wrap' or 'clip', got {mode!r}")
    text = f"take({source.text}, {where_to.text})"
    if axis is None:
        length, shape = source.size, where_to.shape
        parts = [where_to]
    else:
        (axis,) = checks.axes_of(axis, source.ndim, where)
        length = source.shape[axis]
        before, after = source.shape[:axis], source.shape[axis + 1 :]
        shape = (*before, *where_to.shape, *after)
        spread = where_to.reshape((*where_to.shape, *(1,) * len(after)))
        parts = [spread.broadcast_to(shape), *_along(shape, len(before), len(after), source.wish)]
    if not length and math.prod(shape):
        raise ValueError(f"{where}: x of shape {source.shape} has no elements to take")

    modes = _UNSIGNED if where_to.dtype == np.uint64 else MODES

    def node(nodes: list[Node]) -> Node:
        place = Call(modes[mode], nodes[0], Value(length))
        if axis is None:
            return at(source, _unravelled(place, source.shape))
        others = nodes[1:]
        return at(source, [*others[:axis], place, *others[axis:]])

    return led_by(_of_forms(combined(parts, where, node, text), source), source)


def _along(shape: tuple[int, ...], before: int, after: int, place: leaf.Place) -> list[LazyArray]:
    """Return the positions along each axis but those in the middle."""
    axes = [*range(before), *range(len(shape) - after, len(shape))]
    counted = [leaf.along(shape, axis, place) for axis in axes]
    return [LazyArray(shape, expression.Leaf(0), [one], "") for one in counted]
