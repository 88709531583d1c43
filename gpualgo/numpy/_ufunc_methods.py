"""``ufunc.at`` and ``ufunc.reduceat``: reductions by index and of segments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpualgo import copy, reduce_by_index, segmented_reduce
from gpualgo._lazy import is_lazy, operators
from gpualgo._lazy.combining import applied
from gpualgo._pipeline import checks
from gpualgo.lazy import asarray as lazy_of
from gpualgo.lazy import full, reductions, take
from gpualgo.numpy import _call
from gpualgo.numpy._call import NotTaken, aligned, array_of, copy_to_device_of, host_of
from gpualgo.numpy._folds import INDEX, converted_for_scan

# --- at: on the host NumPy's; on a GPU one reduction by index, which starts from the old elements.


def at(ufunc: np.ufunc, a: Any, indices: Any, b: Any, name: str) -> None:
    operators.no_lazy_out(a, name)
    x = a if isinstance(a, np.ndarray) else array_of(a, f"{name}: a")
    items = indices if isinstance(indices, tuple) else (indices,)
    if isinstance(x, np.ndarray):
        items = tuple(host_of(one, name) if hasattr(one, "dtype") else one for one in items)
        operands = () if b is None else (host_of(array_of(b, f"{name}: b"), name),)
        ufunc.at(a, items if isinstance(indices, tuple) else items[0], *operands)
        return
    kind, wide, is_weak = _call.dtype_of(x, name), None, type(b) in (int, float, complex)
    combine = np.add if ufunc is np.subtract else ufunc
    if combine in reductions.RULES:
        b = b if is_weak else array_of(b, f"{name}: b")
        given = type(b) if is_weak else _call.dtype_of(b, name)
        wide = ufunc.resolve_dtypes((kind, given, None))[2]
    if wide is None or wide.kind != kind.kind:
        raise NotTaken(
            f"{name}: on a GPU the ufunc must be associative, or subtract, and its result of the "
            f"kind of a, {kind}; convert b, or use numpy.{name} on the host"
        )
    positions = _positions(x, items, name)
    if is_weak:
        b = np.asarray(b, wide)
    if type(b) is np.ndarray:
        b = copy_to_device_of(x, b, name)
    values = _call.cast(lazy_of(b), wide, name).broadcast_to(positions.shape)
    if combine is not ufunc:
        values = applied(np.negative, (values,), name)
    flat, op = _call.cast(lazy_of(x).reshape(-1), wide, name), reductions.operator_of(combine, wide)
    with checks.renamed_errors(name, "reduce_by_index", {}):
        result = reduce_by_index(positions, values, flat.shape[0], copy(flat), op, dtype=wide)
    _call.evaluate_into(lazy_of(result).reshape(tuple(x.shape)), x, name)


def _next_position(position: Any, index: Any, length: Any) -> Any:
    """Return the position one axis further in; -1 for an index that is out of range."""
    index = index + length if index < 0 else index
    return position * length + index if position >= 0 and 0 <= index < length else np.int64(-1)


def _positions(a: Any, items: tuple[Any, ...], name: str) -> Any:
    """Return the positions of indexed elements in C order, as an array of the index's shape."""
    shape = tuple(a.shape)
    items = tuple(
        np.asarray(one, None if np.size(one) else INDEX)
        if isinstance(one, (list, int, np.generic))
        else one
        for one in items
    )
    if not items or not all(hasattr(one, "dtype") and one.dtype.kind in "iu" for one in items):
        if any(hasattr(one, "dtype") and not isinstance(one, np.ndarray) for one in items):
            raise NotTaken(f"{name}: indices on a GPU must be arrays of integers")
        every = np.arange(math.prod(shape)).reshape(shape)
        picked = np.asarray(every[items if len(items) != 1 else items[0]])
        return lazy_of(copy_to_device_of(a, picked, name))
    if len(items) > len(shape):
        raise IndexError(f"{name}: a has {len(shape)} axes, but {len(items)} were indexed")
    index_shape, rest = np.broadcast_shapes(*(one.shape for one in items)), shape[len(items) :]
    ones = (1,) * len(rest)
    along = [np.arange(n).reshape(n, *ones[axis:]) for axis, n in enumerate(rest, 1)]
    position: Any = np.int64(0)
    for axis, (index, length) in enumerate(zip((*items, *along), shape, strict=True)):
        if isinstance(index, np.ndarray):
            wrong = index[(index < -length) | (index >= length)]
            if wrong.size:
                place = f"axis {axis} with size {length}"
                raise IndexError(f"{name}: index {wrong.flat[0]} is out of bounds for {place}")
            index = copy_to_device_of(a, index, name)
        index = lazy_of(index)
        if index.dtype == np.uint64:  # or an index beyond int64 would become negative
            index = applied(np.minimum, (index, np.uint64(2**63 - 1)), name)
        if axis < len(items) and ones:
            index = index.broadcast_to(index_shape).reshape(*index_shape, *ones)
        position = applied(_next_position, (position, index.astype(INDEX), np.int64(length)), name)
    return position.broadcast_to((*index_shape, *rest))


# --- reduceat: one segmented reduction. The first element of a segment is its initial value, so
# that no identity is needed.


def reduceat(
    ufunc: np.ufunc, x: Any, indices: Any, axis: int, dtype: Any, out: Any, name: str
) -> Any:
    starts = np.asarray(host_of(array_of(indices, f"{name}: indices"), name))
    is_empty_list = not starts.size and not hasattr(indices, "dtype")  # NumPy makes it float64
    if starts.ndim != 1:
        raise ValueError(f"{name}: indices must have one dimension, not {starts.ndim}")
    if not is_empty_list and not np.can_cast(starts.dtype, np.int64):
        raise TypeError(f"{name}: indices are {starts.dtype}; convert them to int64")
    starts, length = starts.astype(np.int64), x.shape[axis]
    wrong = starts[(starts < 0) | (starts >= length)]
    if wrong.size:
        raise IndexError(f"{name}: index {wrong[0]} is out of bounds for axis of size {length}")
    out = _call.out_of(out, name)
    x, op, kind, wide = converted_for_scan(ufunc, x, dtype, out, name)
    shape = (*x.shape[:axis], len(starts), *x.shape[axis + 1 :])
    if 0 in shape:
        return _call.evaluate_into(full(shape, 0, dtype=kind), out, name)
    x = copy(x) if is_lazy(x) else aligned(x)
    ends = np.append(starts[1:], length)
    ends = np.where(ends > starts, ends, starts + 1)
    if (ends[:-1] > starts[1:] + 1).any():  # segments overlap: copy them one after the other
        lengths = ends - starts
        bounds = np.cumsum(lengths)
        begins = bounds - lengths
        picked = np.arange(bounds[-1]) + np.repeat(starts - begins, lengths)
        x = copy(take(x, copy_to_device_of(x, picked, name), axis=axis))
        starts, ends, length = begins, bounds, bounds[-1]
    last, others = x.ndim - 1, [i for i in range(x.ndim) if i != axis]
    if last:
        x = copy(lazy_of(x).transpose(*others, axis).reshape(-1))
    rows = length * np.arange(x.shape[0] // length)[:, None]
    offsets = (rows[..., None] + np.stack([starts + 1, ends], -1)).reshape(-1)
    firsts = np.repeat(rows + starts, 2)[:-1]
    offsets, firsts = (copy_to_device_of(x, each, name) for each in (offsets, firsts))
    init = copy(_call.cast(take(x, firsts), wide, name))
    result = lazy_of(segmented_reduce(x, offsets, init, op, dtype=wide))[::2]
    if last:
        result = result.reshape(*[shape[i] for i in others], len(starts))
        result = result.transpose(*range(axis), last, *range(axis, last))
    return _call.evaluate_into(_call.cast(result, kind, name), out, name)
