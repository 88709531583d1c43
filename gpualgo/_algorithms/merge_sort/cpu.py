"""Sorting by comparisons on the CPU's cores: blocks, then pairs of runs until one is left."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gpualgo._algorithms.merge_sort import cpu_parameters as mk
from gpualgo._algorithms.merge_sort.comparison import BOOL, Comparison
from gpualgo._algorithms.radix_sort.cpu_tuples import each_part, fetch
from gpualgo._base import threads
from gpualgo._cpu.captured import bound
from gpualgo._cpu.kernels import Kernel, get_kernel, scratch
from gpualgo._cpu.layout import address
from gpualgo._cpu.operator import Applied

if TYPE_CHECKING:
    from gpualgo._algorithms.merge_sort.problem import MergeSort

Array: TypeAlias = np.ndarray[Any, Any]

VALUE_BYTES = (1, 2, 4, 8, 16)  # of values that travel with their keys
_BYTE_WORK = 16  # of a comparison, in bytes of `threads.run`


def sort(
    problem: MergeSort, order: Comparison, arrays: Sequence[Array], results: Sequence[Array]
) -> None:
    """Write keys, and values with them, sorted, to outputs that may be the inputs."""
    count, axis = problem.num_keys, problem.axis
    sources, targets = rows_of(arrays, axis), rows_of(results, axis)
    keys, home = gathered(sources[:count], targets[:count], order.element)
    values, out_values = sources[count:], targets[count:]
    moved = target = None
    if len(values) == 1 and values[0].itemsize in VALUE_BYTES:
        moved, target = gathered(values, out_values, np.dtype(f"V{values[0].itemsize}"))
    elif values:
        target = np.empty(home.shape, np.int64)
    if order.op is None:
        Job(order, keys, home, moved, target).run()
    else:
        with bound(order.op):
            Job(order, keys, home, moved, target).run()
    if moved is not None and target is not None:
        scattered(target, out_values)
    elif target is not None:
        fetch(values, out_values, target)
    scattered(home, targets[:count])


class Job:
    """Rows of keys, and of values or positions, which are sorted into others."""

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
        places = [self._place(temp, values_temp, left) for left in range(passes, -1, -1)]
        source = address(self.keys), 0 if self.values is None else address(self.values)
        table = np.array([*source, *places[0], self.row_items, block, blocks], np.int64)
        work = self.home.size * (size + value_bytes + _BYTE_WORK * block.bit_length())
        short = min(block, self.row_items)
        run_tasks(
            self._kernel("sort_kernel"), table, self.num_rows * blocks, work,
            block * size + short * value_bytes,
        )  # fmt: skip
        merge = self._kernel("merge_kernel") if passes else None
        run = block
        for (keys, values), (out, out_values) in pairwise(places):
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

    def _place(self, temp: Array, values_temp: Array, left: int) -> tuple[int, int]:
        """Return where keys and values are while so many passes are left."""
        if left % 2:
            return address(temp), address(values_temp)
        return address(self.home), 0 if self.target is None else address(self.target)

    def _kernel(self, name: str) -> Kernel:
        return kernel(name, self.order, self.value_bytes)


def kernel(name: str, order: Comparison, value_bytes: int) -> Kernel:
    """Return a kernel of cpu_kernels.py."""
    element, ways = order.element, order.ways

    def write(fn: Any = None) -> Any:
        from gpualgo._algorithms.merge_sort import cpu_kernels

        return getattr(cpu_kernels, name)(fn, element, ways, value_bytes)

    key = ("merge_sort", name, element, ways, value_bytes)
    if order.op is None:
        return get_kernel(key, write)
    return get_kernel(key, write, Applied(order.op, (element, element), BOOL))


def run_tasks(
    kernel: Kernel, table: Array, num_tasks: int, work: int, scratch_bytes: int = 0
) -> None:
    """Run a kernel's tasks on all cores."""
    at = address(table)

    def body(first: int, last: int) -> None:
        memory = scratch(scratch_bytes)
        kernel(at, address(memory), first, last)

    threads.run(body, num_tasks, work)


# --- arrays as rows without gaps ----------------------------------------------------------------


def rows_of(arrays: Sequence[Array], axis: int | None) -> list[Array]:
    """Return arrays with the axis that is sorted as their last one; None: as they are."""
    return list(arrays) if axis is None else [np.moveaxis(a, axis, -1) for a in arrays]


def gathered(
    sources: Sequence[Array], targets: Sequence[Array], element: np.dtype[Any]
) -> tuple[Array, Array]:
    """Return rows of elements without gaps to be sorted, and where to: perhaps the same."""
    source, target, shape = sources[0], targets[0], targets[0].shape
    if len(sources) > 1:
        whole = np.empty(source.shape, element)
        for name, each in zip(element.names or (), sources, strict=True):
            copied(each, whole[name])
        return whole.reshape(shape), whole.reshape(shape)
    if element.kind == "V" and element.names is None:
        source, target = source.view(element), target.view(element)
    home = target if target.flags.c_contiguous else np.empty(shape, target.dtype)
    if source.flags.c_contiguous:
        return source.reshape(shape), home
    copied(source, home.reshape(source.shape))
    return home, home


def scattered(home: Array, targets: Sequence[Array]) -> None:
    """Write sorted rows to where they belong, if they are not there."""
    if len(targets) > 1:
        for name, target in zip(home.dtype.names or (), targets, strict=True):
            copied(home[name], target)
    elif address(home) != address(targets[0]) or home.strides != targets[0].strides:
        copied(home, targets[0].view(home.dtype))


def copied(source: Array, target: Array) -> None:
    """Copy an array on all cores."""
    each_part(target.shape, lambda part: np.copyto(target[part], source[part]))
