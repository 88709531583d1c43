"""Merge sort on CPU cores: blocks are sorted, then pairs of runs merged until one is left."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np

from gpualgo._algorithms.merge_sort import problem as mk
from gpualgo._algorithms.merge_sort.problem import BOOL, Comparison, Merge, MergeSort
from gpualgo._algorithms.radix_sort.cpu import each_part, fetch, packed, rows_of, unpack
from gpualgo._algorithms.radix_sort.problem import WORD_SIZES
from gpualgo._cpu.kernels import Applied, Kernel, get_kernel, named
from gpualgo._cpu.launch import run_tasks
from gpualgo._cpu.layout import table
from gpualgo._cpu.memory import address
from gpualgo._cpu.plan import Plan, bytes_of, compiled
from gpualgo._pipeline import planners

Array: TypeAlias = np.ndarray[Any, Any]

_BYTE_WORK = 16  # weight of a comparison for `threads.run`, in bytes


@planners.for_cpu.register(MergeSort)
def _(problem: MergeSort, arrays: Sequence[Array], results: Sequence[Array], op: Any) -> Plan:
    if problem.by_value is not None:
        return planners.cpu_plan(problem.by_value, arrays, results, None)
    count, axis, order = problem.num_keys, problem.axis, problem.order.with_op(op)
    values, length = arrays[count:], problem.row_items
    is_word, word, value_bytes = _moved(values)
    sort = _sort_of(order, results[0].size // length, length, value_bytes)

    def run(arrays: Sequence[Array], results: Sequence[Array], _: int) -> None:
        sources, targets = rows_of(arrays, axis), rows_of(results, axis)
        values, out_values = sources[count:], targets[count:]
        keys, out = to_dense_rows(sources[:count], targets[:count], order.element)
        items = out_items = None
        if is_word:
            items, out_items = to_dense_rows(values, out_values, word)
        elif values:
            out_items = np.empty(out.shape, word)
        sort(keys, out, items, out_items)
        if items is not None and out_items is not None:
            copy_to_targets(out_items, out_values)
        elif out_items is not None:
            fetch(values, out_values, out_items)
        copy_to_targets(out, targets[:count])

    block = mk.block_items(order.element, value_bytes)
    work = bytes_of(arrays, results[count:]) * block.bit_length()
    return Plan(run, [compiled("merge_sort", results[0].size, block, work)])


def _moved(values: Sequence[Array]) -> tuple[bool, np.dtype[Any], int]:
    """Return whether values are moved, not their positions; as which dtype, and its bytes."""
    is_word = len(values) == 1 and values[0].itemsize in WORD_SIZES
    word = np.dtype(f"V{values[0].itemsize}" if is_word else np.int64)
    return is_word, word, word.itemsize if values else 0


def _sort_of(
    order: Comparison, num_rows: int, length: int, value_bytes: int
) -> Callable[[Array, Array, Array | None, Array | None], None]:
    """Return f(keys, out, values, out_values), which sorts dense rows into other rows.

    Without values, positions are moved; without `out_values`, nothing is.
    """
    element, size = order.element, num_rows * length
    block = mk.block_items(element, value_bytes)
    blocks = -(-length // block)
    passes = (blocks - 1).bit_length()
    sort_blocks = _kernel("sort_kernel", order, value_bytes)
    merge = _kernel("merge_kernel", order, value_bytes) if passes else sort_blocks
    work = size * (element.itemsize + value_bytes + _BYTE_WORK)
    block_work = size * (element.itemsize + value_bytes + _BYTE_WORK * block.bit_length())
    scratch_bytes = block * element.itemsize + min(block, length) * value_bytes

    def sort(keys: Array, out: Array, values: Array | None, out_values: Array | None) -> None:
        temp = np.empty(size if passes else 0, element)
        values_temp = np.empty(size if passes else 0, f"V{max(1, value_bytes)}")
        near = address(out), _address(out_values)
        far = address(temp), address(values_temp)
        source, target = near, far if passes % 2 else near
        numbers = [address(keys), _address(values), *target, length, block, blocks]
        run_tasks(sort_blocks, table(numbers), num_rows * blocks, block_work, scratch_bytes)
        run = block
        for _ in range(passes):
            source, target = target, near if target is far else far
            pairs = -(-length // (2 * run))
            pieces = max(1, min(2 * run, length) // mk.PIECE_ITEMS)
            numbers = [*source, *source, *target, length, run, run, run, pairs, pieces]
            run_tasks(merge, table(numbers), num_rows * pairs * pieces, work)
            run *= 2

    return sort


def _address(array: Array | None) -> int:
    return 0 if array is None else address(array)


def _kernel(name: str, order: Comparison, value_bytes: int) -> Kernel:
    options = order.element, order.directions, value_bytes
    return compared("merge_sort", name, order, *options)


def compared(module: str, name: str, order: Comparison, *options: Hashable) -> Kernel:
    """Return a kernel whose first argument is the comparison function, None for one by value."""
    if order.op is None:
        return get_kernel(*named(module, name, None, *options))
    applied = Applied(order.op, (order.element, order.element), BOOL)
    return get_kernel(*named(module, name, *options), applied)


# --- arrays as rows (dense) ------------------------------------------------------------------


def to_dense_rows(
    sources: Sequence[Array], targets: Sequence[Array], element: np.dtype[Any]
) -> tuple[Array, Array]:
    """Return dense rows of elements to sort, and their target, which may be the same array."""
    dense = _dense_target(targets, element)
    return _dense(sources, element).reshape(dense.shape), dense


def _dense(arrays: Sequence[Array], element: np.dtype[Any]) -> Array:
    """Return elements as one dense array: the array itself if possible."""
    items = arrays[0].view(element) if element.kind == "V" and len(arrays) == 1 else arrays[0]
    if len(arrays) > 1:
        return packed(arrays, element)
    if items.flags.c_contiguous:
        return items
    dense = np.empty(items.shape, element)
    copied(items, dense)
    return dense


def _dense_target(results: Sequence[Array], element: np.dtype[Any]) -> Array:
    """Return a dense array for the results: the output itself if possible."""
    if len(results) == 1 and results[0].flags.c_contiguous:
        return results[0].view(element) if element.kind == "V" else results[0]
    return np.empty(results[0].shape, element)


def copy_to_targets(home: Array, targets: Sequence[Array]) -> None:
    """Copy sorted rows to their targets, unless they are there already."""
    if len(targets) > 1:
        unpack(home, home.dtype, targets)
    elif address(home) != address(targets[0]) or home.strides != targets[0].strides:
        copied(home, targets[0].view(home.dtype))


def copied(source: Array, target: Array) -> None:
    each_part(target.shape, lambda part: np.copyto(target[part], source[part]))


# --- Merge of two sorted arrays on CPU cores.


@planners.for_cpu.register(Merge)
def _(problem: Merge, arrays: Sequence[Array], results: Sequence[Array], op: Any) -> Plan:
    count, num_values, order = problem.num_keys, problem.num_values, problem.order.with_op(op)
    (length, other_length), size = problem.lengths, sum(problem.lengths)
    is_word, word, value_bytes = _moved(arrays[2 * count :][:num_values])
    merge, pieces = _kernel("merge_kernel", order, value_bytes), max(1, size // mk.PIECE_ITEMS)
    work = size * (order.element.itemsize + value_bytes + _BYTE_WORK)

    def run(arrays: Sequence[Array], results: Sequence[Array], _: int) -> None:
        a, b = (_dense(arrays[i : i + count], order.element) for i in (0, count))
        values = arrays[2 * count :]
        firsts, seconds = values[:num_values], values[num_values:]
        out = _dense_target(results[:count], order.element)
        out_values: Array | None = None
        items: tuple[Array | None, Array | None] = None, None
        if is_word:
            items = _dense(firsts, word), _dense(seconds, word)
            out_values = _dense_target(results[count:], word)
        elif num_values:
            positions = np.arange(size)
            items = positions[:length], positions[length:]
            out_values = np.empty(size, word)
        a_items, b_items = map(_address, items)
        numbers = [address(a), a_items, address(b), b_items, address(out), _address(out_values)]
        lengths = [size, length, other_length, 0, 1, pieces]
        run_tasks(merge, table(numbers, lengths), pieces, work)
        copy_to_targets(out, results[:count])
        if is_word and out_values is not None:
            copy_to_targets(out_values, results[count:])
        elif out_values is not None:
            pairs = zip(firsts, seconds, strict=True)  # joined in their byte order
            joined = [np.concatenate(pair, out=np.empty(size, pair[0].dtype)) for pair in pairs]
            fetch(joined, results[count:], out_values)

    routine = compiled("merge_sort", results[0].size, mk.PIECE_ITEMS, 4 * bytes_of(arrays))
    return Plan(run, [routine])
