"""Merge sort on CPU cores: blocks are sorted, then pairs of runs merged until one is left."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gpualgo._algorithms.merge_sort import cpu_parameters as mk
from gpualgo._algorithms.merge_sort.comparison import BOOL, Comparison
from gpualgo._algorithms.radix_sort.cpu_tuples import each_part, fetch
from gpualgo._base import threads
from gpualgo._cpu.address import address
from gpualgo._cpu.captured import captures_bound
from gpualgo._cpu.kernels import Kernel, get_kernel, scratch
from gpualgo._cpu.operator import Applied

if TYPE_CHECKING:
    from gpualgo._algorithms.merge_sort.problem import Merge, MergeSort


Array: TypeAlias = np.ndarray[Any, Any]

VALUE_BYTES = (1, 2, 4, 8, 16)  # sizes of values that are moved with their keys
_BYTE_WORK = 16  # weight of a comparison for `threads.run`, in bytes


def sort(
    problem: MergeSort, order: Comparison, arrays: Sequence[Array], results: Sequence[Array]
) -> None:
    """Write keys, and values with them, sorted, to outputs that may be the inputs."""
    count, axis = problem.num_keys, problem.axis
    sources, targets = rows_of(arrays, axis), rows_of(results, axis)
    keys, key_buffer = to_dense_rows(sources[:count], targets[:count], order.element)
    values, out_values = sources[count:], targets[count:]
    value_rows = value_buffer = None
    if len(values) == 1 and values[0].itemsize in VALUE_BYTES:
        value_rows, value_buffer = to_dense_rows(
            values, out_values, np.dtype(f"V{values[0].itemsize}")
        )
    elif values:
        value_buffer = np.empty(key_buffer.shape, np.int64)
    if order.op is None:
        Job(order, keys, key_buffer, value_rows, value_buffer).run()
    else:
        with captures_bound(order.op):
            Job(order, keys, key_buffer, value_rows, value_buffer).run()
    if value_rows is not None and value_buffer is not None:
        copy_to_targets(value_buffer, out_values)
    elif value_buffer is not None:
        fetch(values, out_values, value_buffer)
    copy_to_targets(key_buffer, targets[:count])


class Job:
    """Merge sort of dense rows of keys, with values or positions, into other rows."""

    def __init__(
        self, order: Comparison, keys: Array, home: Array, values: Array | None,
        target: Array | None,
    ) -> None:  # fmt: skip
        self.order, self.keys, self.home, self.values, self.target = (
            order, keys, home, values, target,
        )  # fmt: skip
        self.value_bytes = 0 if target is None else target.itemsize
        self.row_items = home.shape[-1] if home.ndim else 1
        self.num_rows = home.size // self.row_items

    def run(self) -> None:
        size, value_bytes = self.order.element.itemsize, self.value_bytes
        block = mk.block_items(self.order.element, value_bytes)
        blocks = -(-self.row_items // block)
        passes = (blocks - 1).bit_length()
        temp = np.empty(self.home.size if passes else 0, self.home.dtype)
        values_temp = np.empty(self.home.size if passes else 0, f"V{max(1, value_bytes)}")
        buffers = [self._buffers(temp, values_temp, i) for i in range(passes, -1, -1)]
        source = address(self.keys), 0 if self.values is None else address(self.values)
        table = np.array([*source, *buffers[0], self.row_items, block, blocks], np.int64)
        work = self.home.size * (size + value_bytes + _BYTE_WORK * block.bit_length())
        short = min(block, self.row_items)
        run_tasks(
            self._kernel("sort_kernel"), table, self.num_rows * blocks, work,
            block * size + short * value_bytes,
        )  # fmt: skip
        merge = self._kernel("merge_kernel") if passes else None
        run = block
        for (keys, values), (out, out_values) in pairwise(buffers):
            assert merge is not None
            pairs = -(-self.row_items // (2 * run))
            pieces = max(1, min(2 * run, self.row_items) // mk.PIECE_ITEMS)
            table = np.array(
                [keys, values, keys, values, out, out_values, self.row_items, run, run, run, pairs,
                 pieces], np.int64,
            )  # fmt: skip
            work = self.home.size * (size + value_bytes + _BYTE_WORK)
            run_tasks(merge, table, self.num_rows * pairs * pieces, work)
            run *= 2

    def _buffers(self, temp: Array, values_temp: Array, remaining: int) -> tuple[int, int]:
        """Return the addresses of keys and values before the last `remaining` passes."""
        if remaining % 2:
            return address(temp), address(values_temp)
        return address(self.home), 0 if self.target is None else address(self.target)

    def _kernel(self, name: str) -> Kernel:
        return kernel(name, self.order, self.value_bytes)


def kernel(name: str, order: Comparison, value_bytes: int) -> Kernel:
    """Return a kernel of cpu_kernels.py."""
    element, ways = order.element, order.ways

    def generate(fn: Any = None) -> Any:
        from gpualgo._algorithms.merge_sort import cpu_kernels

        return getattr(cpu_kernels, name)(fn, element, ways, value_bytes)

    key = ("merge_sort", name, element, ways, value_bytes)
    if order.op is None:
        return get_kernel(key, generate)
    return get_kernel(key, generate, Applied(order.op, (element, element), BOOL))


def run_tasks(
    kernel: Kernel, table: Array, num_tasks: int, work: int, scratch_bytes: int = 0
) -> None:
    table_address = address(table)

    def body(first: int, last: int) -> None:
        memory = scratch(scratch_bytes)
        kernel(table_address, address(memory), first, last)

    threads.run(body, num_tasks, work)


# --- arrays as rows (dense) ------------------------------------------------------------------


def rows_of(arrays: Sequence[Array], axis: int | None) -> list[Array]:
    """Return arrays with the sorted axis moved last; unchanged if axis is None."""
    return list(arrays) if axis is None else [np.moveaxis(a, axis, -1) for a in arrays]


def to_dense_rows(
    sources: Sequence[Array], targets: Sequence[Array], element: np.dtype[Any]
) -> tuple[Array, Array]:
    """Return dense rows of elements to sort, and their target, which may be the same array."""
    source, target, shape = sources[0], targets[0], targets[0].shape
    if len(sources) > 1:
        packed = np.empty(source.shape, element)
        for name, field in zip(element.names or (), sources, strict=True):
            copied(field, packed[name])
        return packed.reshape(shape), packed.reshape(shape)
    if element.kind == "V" and element.names is None:
        source, target = source.view(element), target.view(element)
    dense = target if target.flags.c_contiguous else np.empty(shape, target.dtype)
    if source.flags.c_contiguous:
        return source.reshape(shape), dense
    copied(source, dense.reshape(source.shape))
    return dense, dense


def copy_to_targets(home: Array, targets: Sequence[Array]) -> None:
    """Copy sorted rows to their targets, unless they are there already."""
    if len(targets) > 1:
        for name, target in zip(home.dtype.names or (), targets, strict=True):
            copied(home[name], target)
    elif address(home) != address(targets[0]) or home.strides != targets[0].strides:
        copied(home, targets[0].view(home.dtype))


def copied(source: Array, target: Array) -> None:
    """Copy an array on all cores."""
    each_part(target.shape, lambda part: np.copyto(target[part], source[part]))


# --- Merge of two sorted arrays on CPU cores.

# weight of a comparison for `threads.run`, in bytes


def merge(
    problem: Merge, order: Comparison, arrays: Sequence[Array], results: Sequence[Array]
) -> None:
    """Write the merge of two sorted arrays, and of their values, to non-overlapping outputs."""
    count, num_values = problem.num_keys, problem.num_values
    a, b = (_dense(arrays[i : i + count], order.element) for i in (0, count))
    all_values = arrays[2 * count :]
    pairs = list(zip(all_values[:num_values], all_values[num_values:], strict=True))
    key_buffer = _dense_target(results[:count], order.element)
    value_buffer: Array | None = None
    values = a, b  # unused without values
    if len(pairs) == 1 and all_values[0].itemsize in VALUE_BYTES:
        word = np.dtype(f"V{all_values[0].itemsize}")
        values = _dense(all_values[:1], word), _dense(all_values[1:], word)
        value_buffer = _dense_target(results[count:], word)
    elif pairs:
        positions = np.arange(key_buffer.size)
        values = positions[: a.size], positions[a.size :]
        value_buffer = np.empty(key_buffer.size, np.int64)
    if order.op is None:
        _run(order, (a, b), key_buffer, values, value_buffer)
    else:
        with captures_bound(order.op):
            _run(order, (a, b), key_buffer, values, value_buffer)
    copy_to_targets(key_buffer, results[:count])
    if value_buffer is None:
        return
    if value_buffer.dtype.kind == "V":
        copy_to_targets(value_buffer, results[count:])
    else:
        joined = [_concatenated(first, second) for first, second in pairs]
        fetch(joined, results[count:], value_buffer)


def _concatenated(first: Array, second: Array) -> Array:
    """Return two arrays concatenated, in their byte order."""
    joined = np.empty(first.size + second.size, first.dtype)
    joined[: first.size], joined[first.size :] = first, second
    return joined


def _run(
    order: Comparison, keys: tuple[Array, Array], dest: Array, values: tuple[Array, ...],
    target: Array | None,
) -> None:  # fmt: skip
    value_bytes = 0 if target is None else target.itemsize
    moved = [0, 0] if target is None else [address(x) for x in values]
    to = 0 if target is None else address(target)
    a, b = keys
    pieces = max(1, dest.size // mk.PIECE_ITEMS)
    table = np.array(
        [address(a), moved[0], address(b), moved[1], address(dest), to, dest.size, a.size, b.size,
         0, 1, pieces], np.int64,
    )  # fmt: skip
    work = dest.size * (dest.itemsize + value_bytes + _BYTE_WORK)
    run_tasks(kernel("merge_kernel", order, value_bytes), table, pieces, work)


def _dense(arrays: Sequence[Array], element: np.dtype[Any]) -> Array:
    """Return the arrays as one dense array of elements."""
    if len(arrays) == 1:
        items = arrays[0].view(element) if element.kind == "V" else arrays[0]
        return np.ascontiguousarray(items)
    packed = np.empty(arrays[0].shape, element)
    for name, field in zip(element.names or (), arrays, strict=True):
        copied(field, packed[name])
    return packed


def _dense_target(results: Sequence[Array], element: np.dtype[Any]) -> Array:
    """Return a dense array for the results: the output itself if possible."""
    if len(results) == 1 and results[0].flags.c_contiguous:
        return results[0].view(element) if element.kind == "V" else results[0]
    return np.empty(results[0].shape, element)
