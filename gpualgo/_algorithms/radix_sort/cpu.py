"""Radix sort on CPU cores: by digits, from the lowest to the highest, or by NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from gpualgo._algorithms.radix_sort import cpu_numpy
from gpualgo._algorithms.radix_sort.cpu_digits import (
    WORD_SIZES,
    Order,
    as_bytes,
    by_digits,
    routine_of,
)
from gpualgo._algorithms.radix_sort.problem import PARTS, Dtype, Group, Sort
from gpualgo._base import threads
from gpualgo._cpu.plan import Plan, Routine, bytes_of, of_numpy
from gpualgo._pipeline import planners

Array: TypeAlias = np.ndarray[Any, Any]

_SHORT = 128  # up to this many keys with values, digits are faster even if they are in order


@planners.for_cpu.register(Sort)
def _(problem: Sort, arrays: Sequence[Array], results: Sequence[Array], op: Any) -> Plan:
    axis, is_order = problem.axis, problem.index_dtype is not None
    group, *others = problem.groups
    if others or group.is_word or problem.value_word is not None:
        return _plan_of_words(problem, arrays, results)
    order = Order(group.dtype, bool(group.descending), problem.begin_bit, problem.end_bit)
    if axis is not None or arrays[0].ndim == 1:
        return plan_of(arrays, results, axis or 0, order, is_order=is_order)
    plan = plan_of([*map(_flattened, arrays)], results, 0, order, is_order=is_order)
    return Plan(lambda xs, outs, init: plan.run([*map(_flattened, xs)], outs, init), plan.routines)


def _flattened(array: Array) -> Array:
    """Return items in C order, with their padding; a copy if the array has gaps."""
    return as_bytes(array).reshape(-1).view(array.dtype)


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
        return _plan_of_order(keys, results[0], axis, order, routines)
    if len(arrays) == 1:
        num_rows = keys.size // max(1, length)
        if order.is_whole and cpu_numpy.is_by_numpy(keys.dtype, length, num_rows):
            return cpu_numpy.plan_of(keys, results[0], axis, descending)
        digits = by_digits((keys, None, results[0], None), order, axis)
        return Plan(lambda xs, outs, _: digits((xs[0], 0, outs[0], 0)), routines)
    return Plan(_with_values(arrays, results, axis, order), routines)


def _plan_of_order(
    keys: Array, result: Array, axis: int, order: Order, routines: list[Routine]
) -> Plan:
    descending, order_row = order.descending, cpu_numpy.order_of(order.descending)
    is_new_row = keys.ndim == 1 and result.dtype == np.intp

    def by_numpy(xs: Sequence[Array], outs: Sequence[Array], _: int) -> None:
        cpu_numpy.order(xs[0], outs[0], axis, descending)

    if cpu_numpy.is_ordered_by_numpy(keys, descending):
        num_rows = keys.size // max(1, keys.shape[axis])
        routines = [of_numpy("argsort", keys.size, num_rows, routines[0].work)]
        return Plan(by_numpy, routines, (lambda *_: order_row) if is_new_row else None)
    digits = by_digits((keys, None, None, result), order, axis)
    has_few_runs = cpu_numpy.has_few_runs(keys, axis, descending)

    def run(xs: Sequence[Array], outs: Sequence[Array], _: int) -> None:
        if has_few_runs(xs[0]):
            by_numpy(xs, outs, 0)
        else:
            digits((xs[0], 0, 0, outs[0]))

    def make(xs: Sequence[Array], _: int) -> Any:
        if has_few_runs(xs[0]):
            return order_row(xs, 0)
        new = np.empty(xs[0].shape, np.intp)
        digits((xs[0], 0, 0, new))
        return new

    return Plan(run, routines, (lambda *_: make) if is_new_row else None)


def sort_rows(
    arrays: Sequence[Array], results: Sequence[Array], order: Order, *, is_order: bool = False
) -> None:
    """Sort along the last axis, as `plan_of`."""
    plan_of(arrays, results, arrays[0].ndim - 1, order, is_order=is_order).run(arrays, results, 0)


def _with_values(
    arrays: Sequence[Array], results: Sequence[Array], axis: int, order: Order
) -> Callable[[Sequence[Array], Sequence[Array], int], None]:
    (keys, *values), (out_keys, *out_values) = arrays, results
    is_word, shape = len(values) == 1 and values[0].itemsize in WORD_SIZES, keys.shape
    moved = (values[0], out_values[0]) if is_word else (None, np.empty(shape, np.int64))
    digits = by_digits((keys, moved[0], out_keys, moved[1]), order, axis)
    may_have_runs = order.is_whole and shape[axis] > _SHORT
    has_few_runs = cpu_numpy.has_few_runs(keys, axis, order.descending)

    def run(arrays: Sequence[Array], results: Sequence[Array], _: int) -> None:
        keys, out_keys, first = arrays[0], results[0], 0
        is_by_numpy = may_have_runs and has_few_runs(keys)
        if is_word and not is_by_numpy:
            digits((keys, arrays[1], out_keys, results[1]))
            return
        indices = np.empty(shape, np.int64)
        if is_by_numpy:
            cpu_numpy.order(keys, indices, axis, order.descending)
        else:
            digits((keys, 0, out_keys, indices))
            first = 1
        fetch(rows_of(arrays[first:], axis), rows_of(results[first:], axis),
              *rows_of([indices], axis))  # fmt: skip

    return run


# --- Words. As on a GPU (cuda.py): fields that fit 8 bytes are packed into one key, sorted once and
# unpacked. More fields are sorted group by group, the last group first.

_CHUNK = 1 << 14  # elements whose words stay in cache while they are packed
_LONG_TAKE = 1 << 17  # from this many elements on, threads share a row that is gathered


def _plan_of_words(problem: Sort, arrays: Sequence[Array], results: Sequence[Array]) -> Plan:
    axis = problem.axis
    length = arrays[0].size if axis is None else arrays[0].shape[axis]
    sort = _find_order if problem.index_dtype is not None else _sort
    return Plan(
        lambda xs, outs, _: sort(problem, rows_of(xs, axis), rows_of(outs, axis)),
        [routine_of(arrays[0].size, length, bytes_of(arrays, results))],
    )


def _find_order(problem: Sort, keys: Sequence[Array], results: Sequence[Array]) -> None:
    """Write the stable order of elements to an array whose integer dtype holds it."""
    (out,) = results
    if len(problem.groups) == 1:
        _order_last_group(problem, keys, out)
        return
    indices = np.empty(out.shape, np.int64)
    _order(problem, keys, indices)
    each_part(out.shape, lambda part: np.copyto(out[part], indices[part], "unsafe"))


def _sort(problem: Sort, arrays: Sequence[Array], results: Sequence[Array]) -> None:
    """Write keys, and values with them, sorted, to results that may be the inputs."""
    count, word = problem.num_keys, problem.value_word
    keys, values, out_values = arrays[:count], arrays[count:], results[count:]
    first, *others = problem.groups
    if others:
        indices = np.empty(results[0].shape, np.int64)
        sorted_keys = _order(problem, keys, indices)
        fetch(arrays[first.size :], results[first.size :], indices)
    else:
        if first.is_word:
            key_source = sorted_keys = _flat(_keys_of(first, keys), results[0])
        else:
            key_source, sorted_keys = _flat(keys[0], results[0]), results[0]
        if word is not None:
            moved = targets = [_flat(packed(values, word), results[0])]
        else:
            moved = [_flat(x, out) for x, out in zip(values, out_values, strict=True)]
            targets = list(out_values)
        sort_rows([key_source, *moved], [sorted_keys, *targets], _order_of(problem, first))
        if word is not None:
            unpack(moved[0], word, out_values)
    if first.is_word:
        unpack(sorted_keys, first.dtype, results[: first.size])
    elif sorted_keys is not results[0]:
        each_part(sorted_keys.shape, lambda part: np.copyto(results[0][part], sorted_keys[part]))


def _order(problem: Sort, keys: Sequence[Array], indices: Array) -> Array:
    """Write the order of elements; return the first group's sorted keys."""
    _order_last_group(problem, keys, indices)
    sorted_keys = indices
    for group in problem.groups[-2::-1]:
        sorted_keys = np.empty(indices.shape, group.dtype)
        fetch([_keys_of(group, keys)], [sorted_keys], indices)
        moved = [sorted_keys, indices]
        sort_rows(moved, moved, _order_of(problem, group))
    return sorted_keys


def _order_last_group(problem: Sort, keys: Sequence[Array], indices: Array) -> None:
    group = problem.groups[-1]
    row = _flat(_keys_of(group, keys), indices)
    sort_rows([row], [indices], _order_of(problem, group), is_order=True)


def _order_of(problem: Sort, group: Group) -> Order:
    if group.is_word:
        return _word_order(group.dtype, group.descending)
    return Order(group.dtype, bool(group.descending), problem.begin_bit, problem.end_bit)


_word_order = cache(Order)


def rows_of(arrays: Sequence[Array], axis: int | None) -> list[Array]:
    """Return arrays with the sorted axis moved last; unchanged if axis is None."""
    return list(arrays) if axis is None else [np.moveaxis(a, axis, -1) for a in arrays]


def _flat(array: Array, like: Array) -> Array:
    """Return an array flattened if `like` is one row of all elements."""
    return array if array.shape == like.shape else _flattened(array)


def _keys_of(group: Group, keys: Sequence[Array]) -> Array:
    if not group.is_word:
        return keys[group.first]
    return packed([keys[i] for i in group.places], group.dtype)


def packed(arrays: Sequence[Array], word: Dtype) -> Array:
    words = np.empty(arrays[0].shape, word)
    _copy_each(_fields_of(words, word), arrays)
    return words


def unpack(words: Array, word: Dtype, targets: Sequence[Array]) -> None:
    _copy_each(targets, _fields_of(words, word))


def _fields_of(words: Array, word: Dtype) -> list[Array]:
    return [words[name] for name in word.names or ()]


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
