"""Sort of tuples on the CPU: fields are packed into words.

As on a GPU (cuda_tuples.py): fields that fit 8 bytes are packed into one key, sorted once and
unpacked. More fields are sorted group by group, the last group first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._algorithms.radix_sort import cpu, words
from gpualgo._algorithms.radix_sort.cpu_orders import Order, WordOrder
from gpualgo._algorithms.radix_sort.words import Dtype, Group
from gpualgo._base import threads

if TYPE_CHECKING:
    from gpualgo._algorithms.radix_sort.tuple_problem import TupleSort

Array = np.ndarray[Any, Any]

_CHUNK = 1 << 14  # elements whose words stay in cache while they are packed
_LONG_ROW = 1 << 17  # from this many elements on, threads share a row


def argsort(problem: TupleSort, arrays: Sequence[Array], out: Array) -> None:
    """Write the stable order of elements to an array whose integer dtype holds it."""
    keys = _rows(arrays, problem.axis)
    (target,) = _rows([out], problem.axis)
    if len(problem.groups) == 1:
        _order_last_group(problem, keys, target)
    else:
        indices = np.empty(target.shape, np.int64)
        _order(problem, keys, indices)
        each_part(target.shape, lambda part: np.copyto(target[part], indices[part], "unsafe"))


def radix_sort(problem: TupleSort, arrays: Sequence[Array], results: Sequence[Array]) -> None:
    """Write keys, and values with them, sorted, to outputs that may be the inputs."""
    sources = _rows(arrays, problem.axis)
    targets = _rows(results, problem.axis)
    count = problem.num_keys
    keys, values = sources[:count], sources[count:]
    first, *others = problem.groups
    if others:
        indices = np.empty(targets[0].shape, np.int64)
        sorted_keys = _order(problem, keys, indices)
        _write_keys(sorted_keys, first, targets)
        fetch(sources[first.size :], targets[first.size :], indices)
        return
    key_source, sorted_keys = _source_and_target(first, keys, targets[0])
    order, word = _group_order(problem, first), problem.value_word
    if not values:
        cpu.sort(key_source, None, sorted_keys, None, order)
    elif word is not None:
        moved = _flat(_packed(values, word), targets[0])
        cpu.sort(key_source, cpu.as_bytes(moved), sorted_keys, cpu.as_bytes(moved), order)
        _unpack(moved, word, targets[count:])
    elif len(values) == 1 and values[0].itemsize in cpu.WORD_SIZES:
        source, target = _one_row(values[0], targets[count])
        cpu.sort(key_source, source, sorted_keys, target, order)
    else:
        indices = np.empty(targets[0].shape, np.int64)
        cpu.sort(key_source, None, sorted_keys, cpu.as_bytes(indices), order)
        fetch(values, targets[count:], indices)
    if first.is_word:
        _unpack(sorted_keys, first.dtype, targets[: first.size])


def _order(problem: TupleSort, keys: Sequence[Array], indices: Array) -> Array:
    """Write the order of elements; return the first group's sorted keys."""
    others = problem.groups[:-1]
    _order_last_group(problem, keys, indices)
    sorted_keys = indices
    for group in reversed(others):
        packed = _flat(_keys_of(group, keys), indices)
        sorted_keys = np.empty(indices.shape, f"V{group.dtype.itemsize}")
        fetch([packed], [sorted_keys], indices)
        moved = cpu.as_bytes(indices)
        cpu.sort(sorted_keys, moved, sorted_keys, moved, _group_order(problem, group))
    return sorted_keys


def _order_last_group(problem: TupleSort, keys: Sequence[Array], indices: Array) -> None:
    """Write the order of the last group's keys."""
    group = problem.groups[-1]
    packed = _flat(_keys_of(group, keys), indices)
    cpu.sort(packed, None, None, cpu.as_bytes(indices), _group_order(problem, group))


def _write_keys(sorted_keys: Array, group: Group, targets: Sequence[Array]) -> None:
    if group.is_word:
        _unpack(sorted_keys, group.dtype, targets[: group.size])
    else:
        target = cpu.as_bytes(targets[0])
        each_part(target.shape, lambda part: np.copyto(target[part], sorted_keys[part]))


def _group_order(problem: TupleSort, group: Group) -> Order:
    if group.is_word:
        return WordOrder(group.dtype, group.descending)
    end = problem.end_bit
    bits = (0, 8 * group.dtype.itemsize) if end is None else (problem.begin_bit, end)
    return Order(group.dtype, bool(group.descending), *bits)


# --- arrays as rows -----------------------------------------------------------------------------


def _rows(arrays: Sequence[Array], axis: int | None) -> list[Array]:
    """Return arrays with the sorted axis moved last; unchanged if axis is None."""
    return list(arrays) if axis is None else [np.moveaxis(a, axis, -1) for a in arrays]


def _flat(array: Array, like: Array) -> Array:
    """Return an array flattened if `like` is one row of all elements."""
    return array if array.shape == like.shape else array.reshape(-1)


def _one_row(source: Array, target: Array) -> tuple[Array, Array]:
    """Return source and target as raw bytes; if flattening needs a copy, the target holds it."""
    source, target = cpu.as_bytes(source), cpu.as_bytes(target)
    if source.shape == target.shape:
        return source, target
    if source.flags.c_contiguous:
        return source.reshape(-1), target
    target.reshape(source.shape)[...] = source
    return target, target


def _keys_of(group: Group, keys: Sequence[Array]) -> Array:
    """Return a group's keys as raw bytes."""
    if not group.is_word:
        return cpu.as_bytes(keys[group.first])
    return cpu.as_bytes(_packed([keys[i] for i in group.places], group.dtype))


def _source_and_target(group: Group, keys: Sequence[Array], target: Array) -> tuple[Array, Array]:
    """Return the source and target of the sort of a group's keys."""
    if not group.is_word:
        return _one_row(keys[group.first], target)
    packed = _flat(_keys_of(group, keys), target)
    return packed, packed


# --- words --------------------------------------------------------------------------------------


def _packed(arrays: Sequence[Array], word: Dtype) -> Array:
    """Return new words that pack the arrays' items, in the shape of the arrays."""
    packed = np.empty(arrays[0].shape, word)
    _copy_each(_fields_of(packed, word), arrays)
    return packed


def _unpack(packed: Array, word: Dtype, targets: Sequence[Array]) -> None:
    """Write the fields of words to arrays."""
    _copy_each(targets, _fields_of(packed.view(word), word))


def _fields_of(packed: Array, word: Dtype) -> list[Array]:
    return [packed[name] for name in word.names or ()]


def _copy_each(targets: Sequence[Array], sources: Sequence[Array]) -> None:
    """Copy field by field, part by part, so that words stay in cache between fields."""
    pairs = [
        (_plain(target), _plain(source)) for target, source in zip(targets, sources, strict=True)
    ]

    def body(part: Any) -> None:
        for target, source in pairs:
            np.copyto(target[part], source[part])

    each_part(pairs[0][0].shape, body)


def _plain(array: Array) -> Array:
    """Return items as unsigned integers of their size, which NumPy copies fastest."""
    return array.view(f"u{array.itemsize}") if array.itemsize in words.PARTS else array


def fetch(sources: Sequence[Array], targets: Sequence[Array], indices: Array) -> None:
    """Gather arrays' items by indices within their rows."""
    for source, target in zip(sources, targets, strict=True):
        source = _flat(source, indices)
        if np.may_share_memory(source, target):
            source = source.copy()
        _take(_plain(cpu.as_bytes(source)), _plain(cpu.as_bytes(target)), indices)


def _take(source: Array, target: Array, indices: Array) -> None:
    length = indices.shape[-1]
    if length >= _LONG_ROW:
        for row in np.ndindex(indices.shape[:-1]):

            def body(part: Any, row: Any = row) -> None:
                target[row][part] = source[row][indices[row][part]]

            each_part((length,), body)
        return

    def rows(part: Any) -> None:
        target[part] = np.take_along_axis(source[part], indices[part], -1)

    if indices.ndim == 1:
        target[...] = source[indices]
    else:
        each_part(indices.shape, rows, axis=0)


def each_part(shape: tuple[int, ...], body: Callable[[Any], Any], axis: int | None = None) -> None:
    """Call body with an index of each part of arrays of a shape, on all cores."""
    if not shape:
        body((...,))
        return
    if axis is None:
        axis = max(range(len(shape)), key=lambda i: shape[i])
    size = int(np.prod(shape))
    step = max(1, _CHUNK * shape[axis] // max(1, size))
    before = (slice(None),) * axis

    def parts(first: int, last: int) -> None:
        for part in range(first, last):
            body((*before, slice(part * step, (part + 1) * step)))

    threads.run(parts, -(-shape[axis] // step), 16 * size)
