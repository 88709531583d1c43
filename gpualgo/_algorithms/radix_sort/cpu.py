"""Radix sort on CPU cores: by digits, from the lowest to the highest, or by NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from gpualgo._algorithms.radix_sort import cpu_numpy
from gpualgo._algorithms.radix_sort.cpu_digits import (
    WORD_SIZES,
    Order,
    WordOrder,
    as_bytes,
    by_digits,
    routine_of,
)
from gpualgo._algorithms.radix_sort.problem import PARTS, Dtype, Group, Sort, TupleSort
from gpualgo._base import threads
from gpualgo._cpu.plan import Plan, Routine, bytes_of, of_numpy
from gpualgo._pipeline import planners

Array: TypeAlias = np.ndarray[Any, Any]

_SHORT = 128  # up to this many keys with values, digits are faster even if they are in order


@planners.for_cpu.register(Sort)
def _(problem: Sort, arrays: Sequence[Array], results: Sequence[Array], op: Any) -> Plan:
    order = Order(problem.key_dtype, problem.descending, problem.begin_bit, problem.end_bit)
    is_order = problem.index_dtype is not None
    if problem.axis is not None or all(array.ndim == 1 for array in arrays):
        return plan_of(arrays, results, problem.axis or 0, order, is_order=is_order)
    # Flattening may need a copy: it is made in the result, which is then sorted in place.
    are_flat = [is_order or array.flags.c_contiguous for array in arrays]
    flat = [
        x.reshape(-1) if is_flat else out
        for x, out, is_flat in zip(arrays, results, are_flat, strict=True)
    ]
    plan = plan_of(flat, results, 0, order, is_order=is_order)
    sort = plan.run
    if all(are_flat):
        return Plan(
            lambda xs, outs, init: sort([x.reshape(-1) for x in xs], outs, init), plan.routines
        )

    def run(arrays: Sequence[Array], results: Sequence[Array], init: int) -> None:
        flat = []
        for x, out, is_flat in zip(arrays, results, are_flat, strict=True):
            if not is_flat:
                out.reshape(x.shape)[...] = x
            flat.append(x.reshape(-1) if is_flat else out)
        sort(flat, results, init)

    return Plan(run, plan.routines)


def plan_of(
    arrays: Sequence[Array], results: Sequence[Array], axis: int, order: Order, *,
    is_order: bool = False,
) -> Plan:  # fmt: skip
    """Return the plan that sorts keys, and values with them, to results that may be the inputs.

    All arrays have one shape and any strides. If `is_order`, the result is the keys' stable order,
    in an integer dtype that holds it.
    """
    keys, work, descending = arrays[0], bytes_of(arrays, results), order.descending
    length = keys.shape[axis]
    routines: list[Routine] = [routine_of(keys.size, length, work)]
    if is_order:
        is_row = keys.ndim == 1 and results[0].dtype == np.intp
        order_row = cpu_numpy.order_of(descending)
        few_runs = digits = None
        if cpu_numpy.is_ordered_by_numpy(keys, descending):
            routines = [of_numpy("argsort", keys.size, keys.size // max(1, length), work)]
        else:
            digits = by_digits((keys, None, None, results[0]), order, axis)
            few_runs = cpu_numpy.has_few_runs(keys, axis, descending)

        def find_order(arrays: Sequence[Array], results: Sequence[Array], _: int) -> None:
            if digits is None or (few_runs is not None and few_runs(arrays[0])):
                cpu_numpy.order(arrays[0], results[0], axis, descending)
            else:
                digits((arrays[0], 0, 0, results[0]))

        def make(arrays: Sequence[Array], _: int) -> Any:
            if digits is None or (few_runs is not None and few_runs(arrays[0])):
                return order_row(arrays, 0)
            result = np.empty(length, np.intp)
            digits((arrays[0], 0, 0, result))
            return result

        return Plan(find_order, routines, (lambda *_: make) if is_row else None)
    if len(arrays) == 1:
        num_rows = keys.size // max(1, length)
        if order.is_whole and cpu_numpy.is_by_numpy(keys.dtype, length, num_rows):
            return cpu_numpy.plan_of(keys, results[0], axis, descending)
        digits = by_digits((keys, None, results[0], None), order, axis)
        return Plan(lambda xs, outs, _: digits((xs[0], 0, outs[0], 0)), routines)
    return Plan(_pairs(arrays, results, axis, order), routines)


def argsort(keys: Array, out: Array, descending: bool) -> None:
    """Write the stable order of a row to `out`."""
    order = Order(keys.dtype, descending)
    plan_of([keys], [out], 0, order, is_order=True).run([keys], [out], 0)


def _pairs(
    arrays: Sequence[Array], results: Sequence[Array], axis: int, order: Order
) -> Callable[[Sequence[Array], Sequence[Array], int], None]:
    (keys, values), (out_keys, out_values) = arrays, results
    is_word, shape = values.itemsize in WORD_SIZES, keys.shape
    if not is_word:
        out_values = np.empty(shape, np.int64)
    digits = by_digits((keys, values if is_word else None, out_keys, out_values), order, axis)
    has_few_runs = None
    if order.is_whole and shape[axis] > _SHORT:
        has_few_runs = cpu_numpy.has_few_runs(keys, axis, order.descending)

    def run(arrays: Sequence[Array], results: Sequence[Array], _: int) -> None:
        (keys, values), (out_keys, out_values) = arrays, results
        if has_few_runs is not None and has_few_runs(keys):
            items, out_items = as_bytes(values), as_bytes(out_values)
            cpu_numpy.sort_pairs((keys, items), (out_keys, out_items), axis, order.descending)
        elif is_word:
            digits((keys, values, out_keys, out_values))
        else:
            indices = np.empty(shape, np.int64)
            digits((keys, 0, out_keys, indices))
            as_bytes(out_values)[...] = np.take_along_axis(as_bytes(values), indices, axis)

    return run


# --- Tuples. As on a GPU (cuda_tuples.py): fields that fit 8 bytes are packed into one key, sorted
# once and unpacked. More fields are sorted group by group, the last group first.

_CHUNK = 1 << 14  # elements whose words stay in cache while they are packed
_LONG_TAKE = 1 << 17  # from this many elements on, threads share a row that is gathered


@planners.for_cpu.register(TupleSort)
def _(problem: TupleSort, arrays: Sequence[Array], results: Sequence[Array], op: Any) -> Plan:
    axis, sort = problem.axis, _TupleSort(problem)
    length = arrays[0].size if axis is None else arrays[0].shape[axis]
    routine = routine_of(arrays[0].size, length, bytes_of(arrays, results))
    if problem.index_dtype is None:
        return Plan(
            lambda xs, outs, _: sort.sort(rows_of(xs, axis), rows_of(outs, axis)), [routine]
        )
    return Plan(
        lambda xs, outs, _: sort.find_order(rows_of(xs, axis), *rows_of(outs, axis)), [routine]
    )


class _TupleSort:
    def __init__(self, problem: TupleSort) -> None:
        self.num_keys, self.groups, self.value_word = (
            problem.num_keys, problem.groups, problem.value_word,
        )  # fmt: skip
        self.orders = [
            WordOrder(group.dtype, group.descending)
            if group.is_word
            else Order(group.dtype, bool(group.descending), problem.begin_bit, problem.end_bit)
            for group in self.groups
        ]

    def find_order(self, keys: Sequence[Array], out: Array) -> None:
        """Write the stable order of elements to an array whose integer dtype holds it."""
        if len(self.groups) == 1:
            self._order_last_group(keys, out)
            return
        indices = np.empty(out.shape, np.int64)
        self._order(keys, indices)
        each_part(out.shape, lambda part: np.copyto(out[part], indices[part], "unsafe"))

    def sort(self, arrays: Sequence[Array], results: Sequence[Array]) -> None:
        """Write keys, and values with them, sorted, to results that may be the inputs."""
        count = self.num_keys
        keys, values, out_values = arrays[:count], arrays[count:], results[count:]
        first, *others = self.groups
        if others:
            indices = np.empty(results[0].shape, np.int64)
            sorted_keys = self._order(keys, indices)
            _write_keys(sorted_keys, first, results)
            fetch(arrays[first.size :], results[first.size :], indices)
            return
        key_source, sorted_keys = _source_and_target(first, keys, results[0])
        word, order = self.value_word, self.orders[0]
        if not values:
            _sort(key_source, None, sorted_keys, None, order)
        elif word is not None:
            moved = _flat(_packed(values, word), results[0])
            _sort(key_source, moved, sorted_keys, moved, order)
            _unpack(moved, word, out_values)
        elif len(values) == 1 and values[0].itemsize in WORD_SIZES:
            source, target = _one_row(values[0], out_values[0])
            _sort(key_source, source, sorted_keys, target, order)
        else:
            indices = np.empty(results[0].shape, np.int64)
            _sort(key_source, None, sorted_keys, indices, order)
            fetch(values, out_values, indices)
        if first.is_word:
            _unpack(sorted_keys, first.dtype, results[: first.size])

    def _order(self, keys: Sequence[Array], indices: Array) -> Array:
        """Write the order of elements; return the first group's sorted keys."""
        self._order_last_group(keys, indices)
        sorted_keys = indices
        for group, order in zip(self.groups[-2::-1], self.orders[-2::-1], strict=True):
            packed = _flat(_keys_of(group, keys), indices)
            sorted_keys = np.empty(indices.shape, f"V{group.dtype.itemsize}")
            fetch([packed], [sorted_keys], indices)
            _sort(sorted_keys, indices, sorted_keys, indices, order)
        return sorted_keys

    def _order_last_group(self, keys: Sequence[Array], indices: Array) -> None:
        packed = _flat(_keys_of(self.groups[-1], keys), indices)
        _sort(packed, None, None, indices, self.orders[-1])


def _sort(
    keys: Array, values: Array | None, out_keys: Array | None, out_values: Array | None,
    order: Order,
) -> None:  # fmt: skip
    """Sort rows along the last axis, as `by_digits` does."""
    arrays = keys, values, out_keys, out_values
    by_digits(arrays, order)([0 if array is None else array for array in arrays])


def _write_keys(sorted_keys: Array, group: Group, targets: Sequence[Array]) -> None:
    if group.is_word:
        _unpack(sorted_keys, group.dtype, targets[: group.size])
    else:
        target = as_bytes(targets[0])
        each_part(target.shape, lambda part: np.copyto(target[part], sorted_keys[part]))


def rows_of(arrays: Sequence[Array], axis: int | None) -> list[Array]:
    """Return arrays with the sorted axis moved last; unchanged if axis is None."""
    return list(arrays) if axis is None else [np.moveaxis(a, axis, -1) for a in arrays]


def _flat(array: Array, like: Array) -> Array:
    """Return an array flattened if `like` is one row of all elements."""
    return array if array.shape == like.shape else array.reshape(-1)


def _one_row(source: Array, target: Array) -> tuple[Array, Array]:
    """Return source and target as raw bytes; if flattening needs a copy, the target holds it."""
    source, target = as_bytes(source), as_bytes(target)
    if source.shape == target.shape:
        return source, target
    if source.flags.c_contiguous:
        return source.reshape(-1), target
    target.reshape(source.shape)[...] = source
    return target, target


def _keys_of(group: Group, keys: Sequence[Array]) -> Array:
    """Return a group's keys as raw bytes."""
    if not group.is_word:
        return as_bytes(keys[group.first])
    return as_bytes(_packed([keys[i] for i in group.places], group.dtype))


def _source_and_target(group: Group, keys: Sequence[Array], target: Array) -> tuple[Array, Array]:
    if not group.is_word:
        return _one_row(keys[group.first], target)
    packed = _flat(_keys_of(group, keys), target)
    return packed, packed


def _packed(arrays: Sequence[Array], word: Dtype) -> Array:
    packed = np.empty(arrays[0].shape, word)
    _copy_each(_fields_of(packed, word), arrays)
    return packed


def _unpack(packed: Array, word: Dtype, targets: Sequence[Array]) -> None:
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
    return array.view(f"u{array.itemsize}") if array.itemsize in PARTS else array


def fetch(sources: Sequence[Array], targets: Sequence[Array], indices: Array) -> None:
    for source, target in zip(sources, targets, strict=True):
        source = _flat(source, indices)
        if np.may_share_memory(source, target):
            source = source.copy()
        _take(_plain(as_bytes(source)), _plain(as_bytes(target)), indices)


def _take(source: Array, target: Array, indices: Array) -> None:
    length = indices.shape[-1]
    if length >= _LONG_TAKE:
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
