"""Radix sort on the GPU: canonical rows, the steps to sort them, temporary storage, launches."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gpualgo._algorithms.radix_sort import cuda_counting as counting_sort
from gpualgo._algorithms.radix_sort import cuda_rows as block_sort
from gpualgo._algorithms.radix_sort import policy
from gpualgo._algorithms.radix_sort.cuda_passes import Job, Sorter
from gpualgo._arrays.view import View
from gpualgo._base.extents import Dims
from gpualgo._cuda import copy
from gpualgo._driver import driver, workspace

# Addresses that a step may name: the call's arrays, none, and then pieces of temporary storage.
_KEYS, _VALUES, _OUT, _OUT_VALUES, _NONE, _FIRST_PIECE = range(6)


def run(
    call: Any, keys: View, values: View | None, out: tuple[View, ...], stream_handle: int
) -> None:
    """Sort device arrays into out, whose views are checked; does not wait."""
    first, last = out[0], out[-1]
    value_address = 0 if values is None else values.ptr
    key = (
        keys.ptr & 15, value_address & 15, first.ptr & 15, first.strides, last.ptr & 15,
        last.strides, keys.ptr == first.ptr, value_address == last.ptr,
    )  # fmt: skip
    plan = call.plans.get(key)
    if plan is None:
        plan = call.plans[key] = Plan(call, keys, values, out)
    plan.launch(stream_handle, keys.ptr, value_address, first.ptr, last.ptr)


def temp_storage_bytes(call: Any, keys: View, values: View | None, out: tuple[View, ...]) -> int:
    """Return how many bytes of temporary storage a call takes."""
    return Plan(call, keys, values, out).temp_storage_bytes


class _Operand:
    """An array as rows along the axis that is sorted."""

    def __init__(self, view: View, axis: int | None) -> None:
        self.itemsize, self.address = view.dtype.itemsize, view.ptr
        self.dims = list(zip(view.shape, view.strides, strict=True))
        if axis is not None:
            self.dims.append(self.dims.pop(axis))
        self.strides = [stride for _, stride in self.dims]
        self.row_strides: list[int] = []  # were there no gaps
        step = self.itemsize
        for extent, _ in reversed(self.dims):
            self.row_strides.insert(0, step)
            step *= extent
        self.num_bytes = step
        self.is_gapless = all(
            extent == 1 or stride == rows
            for (extent, stride), rows in zip(self.dims, self.row_strides, strict=True)
        )
        # Gapless rows of words that kernels can move.
        self.is_ready = (
            self.is_gapless and self.itemsize in policy.WORDS and view.ptr % self.itemsize == 0
        )


class Plan:
    """The steps of one call, for one combination of layouts."""

    __slots__ = ("_pieces", "_steps", "_temp_bytes", "device", "temp_storage_bytes")

    def __init__(self, call: Any, keys: View, values: View | None, out: tuple[View, ...]) -> None:
        self.device = keys.device
        self._steps: list[tuple[Callable[..., None], tuple[int, ...]]] = []
        self._pieces: list[int] = []
        self._temp_bytes = self.temp_storage_bytes = 0
        row_items = math.prod(call.shape) if call.axis is None else call.shape[call.axis]
        num_rows = math.prod(call.shape) // row_items
        # Results of flattened arrays are rows already.
        out_axis = None if call.axis is None else call.axis
        source, target = _Operand(keys, call.axis), _Operand(out[0], out_axis)
        if call.index_dtype is not None:
            self._argsort(call, source, target, num_rows, row_items)
        elif values is not None:
            moved, place = _Operand(values, call.axis), _Operand(out[1], out_axis)
            self._pairs(call, source, target, moved, place, num_rows, row_items)
        elif (
            num_rows == 1
            and source.is_ready
            and target.is_ready
            and counting_sort.applies(call.key_dtype, call.begin_bit, call.end_bit, row_items)
        ):
            counting = counting_sort.Plan(keys, out[0], row_items, call.descending)
            self._steps.append((counting.launch, (_KEYS, _OUT)))
            self.temp_storage_bytes = counting.temp_storage_bytes
        else:
            begin, home, is_same = self._gather_source(source, target, _KEYS, _OUT)
            job = self._job(call, num_rows, row_items, is_same, not is_same)
            self._sort(job, begin, _NONE, home, _NONE)
            self._scatter(target, home, _OUT)
        self.temp_storage_bytes = workspace.aligned(self.temp_storage_bytes) + self._temp_bytes

    def _job(
        self, call: Any, num_rows: int, row_items: int, is_in_place: bool, has_to_write: bool,
        **others: Any,
    ) -> Job:  # fmt: skip
        return Job(
            self.device, call.key_dtype, num_rows, row_items, call.descending, call.begin_bit,
            call.end_bit, is_in_place=is_in_place, has_to_write=has_to_write, **others,
        )  # fmt: skip

    def _piece(self, num_bytes: int) -> int:
        """Return the name of a new piece of temporary storage."""
        self._pieces.append(self._temp_bytes)
        self._temp_bytes += workspace.aligned(num_bytes)
        return _FIRST_PIECE + len(self._pieces) - 1

    def _copy(self, operand: _Operand, inward: bool, rows: int, array: int) -> None:
        """Add a copy of an array into gapless rows (inward), or back."""
        near, far = operand.strides, operand.row_strides
        pairs = zip(near, far, strict=True) if inward else zip(far, near, strict=True)
        dims: Dims = [(e, pair) for (e, _), pair in zip(operand.dims, pairs, strict=True)]
        launch = copy.copy(dims, operand.itemsize, operand.address & 15, self.device)
        self._steps.append((launch, (array, rows) if inward else (rows, array)))

    def _gather_source(
        self, source: _Operand, target: _Operand, array: int, out: int
    ) -> tuple[int, int, bool]:
        """Return where sorting starts, where its result goes, and whether that is the same."""
        home = out if target.is_ready else self._piece(target.num_bytes)
        if source.is_ready:
            return array, home, home == out and source.address == target.address
        self._copy(source, True, home, array)
        return home, home, True

    def _scatter(self, target: _Operand, home: int, out: int) -> None:
        if home != out:
            self._copy(target, False, home, out)

    def _sort(self, job: Job, keys: int, values: int, out: int, out_values: int) -> None:
        sorter = block_sort.sorter_of(job) or Sorter(job)
        self._steps.append((sorter.queue, (keys, values, out, out_values)))
        self.temp_storage_bytes = sorter.temp_storage_bytes

    def _argsort(
        self, call: Any, source: _Operand, target: _Operand, num_rows: int, row_items: int
    ) -> None:
        begin = _KEYS
        if not source.is_ready:
            begin = self._piece(source.num_bytes)
            self._copy(source, True, begin, _KEYS)
        home = _OUT if target.is_ready else self._piece(target.num_bytes)
        job = self._job(
            call, num_rows, row_items, False, True, value_bytes=_index_bytes(row_items),
            result_bytes=call.index_dtype.itemsize, makes_indices=True, keeps_keys=False,
        )  # fmt: skip
        self._sort(job, begin, _NONE, _NONE, home)
        self._scatter(target, home, _OUT)

    def _pairs(
        self, call: Any, source: _Operand, target: _Operand, moved: _Operand, place: _Operand,
        num_rows: int, row_items: int,
    ) -> None:  # fmt: skip
        begin, home, keys_same = self._gather_source(source, target, _KEYS, _OUT)
        words = moved.itemsize in policy.WORDS
        if words:
            first, last, same = self._gather_source(moved, place, _VALUES, _OUT_VALUES)
            job = self._job(
                call, num_rows, row_items, keys_same or same, not (keys_same and same),
                value_bytes=moved.itemsize, result_bytes=moved.itemsize,
            )  # fmt: skip
            self._sort(job, begin, first, home, last)
        else:
            # Items of other sizes are gathered once their order is known.
            index_bytes = _index_bytes(row_items)
            indices = self._piece(num_rows * row_items * index_bytes)
            job = self._job(
                call, num_rows, row_items, keys_same, True, value_bytes=index_bytes,
                result_bytes=index_bytes, makes_indices=True,
            )  # fmt: skip
            self._sort(job, begin, _NONE, home, indices)
            last = self._gather_items(moved, place, indices, index_bytes, num_rows, row_items)
        self._scatter(target, home, _OUT)
        self._scatter(place, last, _OUT_VALUES)

    def _gather_items(
        self, moved: _Operand, place: _Operand, indices: int, index_bytes: int, num_rows: int,
        row_items: int,
    ) -> int:  # fmt: skip
        """Add the gather of values; return where they are then."""
        first, alignment = _VALUES, moved.address
        if not moved.is_gapless:
            first, alignment = self._piece(moved.num_bytes), 0
            self._copy(moved, True, first, _VALUES)
        last = _OUT_VALUES
        if not place.is_gapless or (first == _VALUES and moved.address == place.address):
            last = self._piece(place.num_bytes)
        else:
            alignment |= place.address
        launch = copy.gather(
            num_rows, row_items, moved.itemsize, alignment & 15, index_bytes, self.device
        )
        self._steps.append((launch, (first, last, indices)))
        return last

    def launch(self, stream: int, *addresses: int) -> None:
        """Queue the sort: the addresses of keys, values (or 0) and the two outputs."""
        if driver.is_simple:
            self._queue(stream, addresses)
            return
        with driver.current_device(self.device):  # stream 0 is the current device's
            self._queue(stream, addresses)

    def _queue(self, stream: int, addresses: tuple[int, ...]) -> None:
        size = self.temp_storage_bytes
        if not size or (len(self._steps) == 1 and not self._pieces):
            self._run(stream, (*addresses, 0))
            return
        # All storage before the first step, which may write the output: there may not be enough.
        base = workspace.allocate(size, stream, self.device)
        try:
            rest = workspace.Given(base + self._temp_bytes, size - self._temp_bytes)
            with workspace.supplied(rest):
                self._run(stream, (*addresses, 0, *[base + piece for piece in self._pieces]))
        finally:
            workspace.free(base, stream)

    def _run(self, stream: int, addresses: tuple[int, ...]) -> None:
        for step, names in self._steps:
            step(stream, *[addresses[name] for name in names])


def _index_bytes(row_items: int) -> int:
    """Return the size of the indices that are sorted along."""
    return 4 if row_items <= 1 << 32 else 8
