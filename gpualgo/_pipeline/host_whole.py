"""Stages whole host arrays: kernels use page-locked arrays in place, pageable ones are copied.

A call with stream= and only page-locked arrays returns without waiting. All other calls return when
their work is done.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from gpualgo._arrays import ordering, page_locked
from gpualgo._arrays.view import NumPy, View, address_of, byte_bounds
from gpualgo._base.records import in_one_piece
from gpualgo._base.strides import dense_strides, order_of, ordered_strides
from gpualgo._driver import device as gpu
from gpualgo._driver import driver, lifetime, pinned, staging
from gpualgo._pipeline import planners
from gpualgo._pipeline.decide import plan_for
from gpualgo._pipeline.problem import Problem

# --- Detects host arrays that are fields of the same records, so that one copy moves them all.

Array = np.ndarray[Any, Any]


class Interleaved(NamedTuple):
    """The contiguous records, and each array's offset within one record."""

    records: Array
    offsets: tuple[int, ...]


def find_interleaved(arrays: Sequence[Array]) -> Interleaved | None:
    """Return the records whose fields the arrays are; None if they are not.

    Each record holds one element of every array, and every byte between the first and last element
    belongs to a record.
    """
    first = arrays[0]
    shape, strides = first.shape, first.strides
    if len(arrays) < 2 or first.size < 2:
        return None
    addresses = []
    for array in arrays:
        if array.shape != shape or array.strides != strides or not array.size:
            return None
        addresses.append(address_of(NumPy.view(array)))
    sizes = [array.itemsize for array in arrays]
    layout = in_one_piece(addresses, sizes)
    if layout is None or strides != dense_strides(shape, layout[1]):
        return None
    offsets, step = layout
    if any(step % size or offset % size for offset, size in zip(offsets, sizes, strict=True)):
        return None  # kernels load whole numbers, which must be aligned
    memory = (ctypes.c_ubyte * (step * math.prod(shape))).from_address(min(addresses))
    records: Array = np.frombuffer(memoryview(memory), f"V{step}")
    return Interleaved(records.reshape(shape), offsets)


Arrays = Sequence[np.ndarray[Any, Any]]


def _first_copy(target: int, source: int, size: int) -> None:
    """Copy to or from a page-locked block, and let several threads do so from now on."""
    from gpualgo._cpu import team  # deferred: programs with small arrays never need it

    pinned.copy_by(team.copy)
    team.copy(target, source, size)


pinned.copy_by(_first_copy)


def page_locked_views(
    arrays: Arrays, device: int, where: str, is_aligned: bool = True
) -> list[View | None]:
    """Return the arrays as views for kernels on the current device; None for pageable arrays."""
    return [page_locked.view(NumPy.view(a), device, where, is_aligned) for a in arrays]


def views_if_whole(
    inputs: Arrays, outputs: Arrays, places: Sequence[View | None], device: int
) -> tuple[list[View], list[View]]:
    """Return the views that kernels would get for whole arrays; addresses are missing."""
    operands = [
        _Operand(array, place, is_copied=False)
        for array, place in zip((*inputs, *outputs), places, strict=True)
    ]
    _join(operands[: len(inputs)])
    views = [operand.view(device) for operand in operands]
    return views[: len(inputs)], views[len(inputs) :]


@contextmanager
def on_device(
    device: int, stream: Any, inputs: Arrays, outputs: Arrays, where: str,
    is_copied: bool = False, places: list[View | None] | None = None, is_upper_bound: bool = False,
) -> Iterator[tuple[int, list[View], list[View]]]:  # fmt: skip
    """Yield the stream, and device views of the inputs and outputs, for kernels.

    Page-locked arrays are used in place (`places`, if the caller has them already). With
    `is_copied`, contiguous page-locked arrays are copied to the device by one asynchronous copy
    instead. Pageable arrays get contiguous device memory. After the block, outputs are copied to
    their arrays, which may be the inputs; with `is_upper_bound`, only as many elements as the last
    output counts. If anything fails, nothing is written to pageable arrays.
    """
    handle = handle_on(device, stream, inputs[0], where)
    arrays = (*inputs, *outputs)
    with gpu.get(device).current():
        if places is None:
            places = page_locked_views(arrays, device, where, is_aligned=not is_copied)
        has_pageable = None in places
        if has_pageable and stream is not None:
            sync_for_host(handle, pageable(places.index(None) < len(inputs), where))
        operands = [
            _Operand(array, place, is_copied) for array, place in zip(arrays, places, strict=True)
        ]
        _join(operands[: len(inputs)])
        is_done = False
        try:
            is_upper_bound &= has_pageable
            with _lend(operands, len(inputs), device, handle, is_upper_bound) as views:
                yield handle, views[: len(inputs)], views[len(inputs) :]
            if stream is None or has_pageable:
                driver.synchronize(handle)
                is_done = True
        finally:
            if not is_done:  # also after an error
                lifetime.keep_until_done(handle, device, *arrays)


@contextmanager
def _lend(
    operands: list[_Operand], num_inputs: int, device: int, stream: int, is_upper_bound: bool
) -> Iterator[list[View]]:
    """Yield the device views of the operands; upload inputs before and download outputs after."""
    buffers = [one for one in dict.fromkeys(operand.record for operand in operands) if one.is_lent]
    sizes = [buffer.array.nbytes for buffer in buffers]
    with staging.device_buffers(device, stream, sizes) as addresses:
        for buffer, address in zip(buffers, addresses, strict=True):
            buffer.address = address
        views = [operand.view(device) for operand in operands]
        for buffer in dict.fromkeys(operand.record for operand in operands[:num_inputs]):
            buffer.upload(device, stream)
        yield views
        outputs = operands[num_inputs:]
        if is_upper_bound:
            outputs[-1].download(device, stream)
            driver.synchronize(stream)
            for operand, part in zip(outputs, written([o.array for o in outputs]), strict=True):
                operand.array = part
        for operand in outputs:
            operand.download(device, stream)


def written(results: Arrays) -> list[np.ndarray[Any, Any]]:
    """Return the written part of each result; the last result holds the number of elements."""
    *arrays, count = results
    return [*[result[: int(count.reshape(()))] for result in arrays], count]


def handle_on(device: int, stream: Any, array: np.ndarray[Any, Any], where: str) -> int:
    """Return the stream on which host arrays are processed: stream=, else the default stream."""
    if stream is None:
        return 0
    view = NumPy.view(array)._replace(device=device)
    return ordering.handle_for(stream, view, where)


def sync_for_host(stream: int, reason: str) -> None:
    """Wait for a stream before the host reads or writes arrays; refuse if it is being captured."""
    driver.refuse_capture(stream, reason)
    driver.synchronize(stream)


def sync_for_host_on(
    device: int, stream: Any, array: np.ndarray[Any, Any], where: str, reason: str
) -> None:
    """Wait for stream= on a device, if given, before the host reads or writes arrays."""
    if stream is not None:
        handle = handle_on(device, stream, array, where)
        with gpu.get(device).current():
            sync_for_host(handle, f"{where}: {reason}")


def pageable(is_input: bool, where: str) -> str:
    """Return the message that says why a call has to wait for the host."""
    if is_input:
        return (
            f"{where}: an array is pageable host memory, or misaligned; "
            "make it with gpualgo.empty_pinned"
        )
    return f"{where}: the result is pageable host memory; pass out= made with gpualgo.empty_pinned"


def _join(operands: Sequence[_Operand]) -> None:
    """Let neighbouring pageable arrays that are fields of the same records travel as one copy."""
    begin = 0
    while begin < len(operands):
        end = begin
        while end < len(operands) and operands[end].place is None:
            end += 1
        joined = None
        while end > begin + 1 and joined is None:
            joined = find_interleaved([operand.array for operand in operands[begin:end]])
            end -= joined is None
        if joined is None:
            begin += 1
            continue
        record = _Operand(joined.records, None, False)
        for operand, offset in zip(operands[begin:end], joined.offsets, strict=True):
            operand.within, operand.offset = record, offset
        begin = end


class _Operand:
    """A host array and its device view: page-locked memory in place, or device memory."""

    def __init__(self, array: np.ndarray[Any, Any], place: View | None, is_copied: bool) -> None:
        self.array, self.place = array, place
        self.is_lent = place is None
        self.address = 0  # of the device memory
        self.within: _Operand | None = None  # the records that contain it, if it travels in them
        self.offset = 0  # its offset within an element of those records
        # Contiguous memory is copied unchanged, in any order of axes.
        self.order = () if place is not None else order_of(array.shape, [array.strides])
        if self.order and not array.transpose(self.order).flags.c_contiguous:
            self.order = ()
        if place is not None and is_copied:
            self.first, past = byte_bounds(place)
            self.is_lent = past - self.first == array.nbytes  # contiguous: one copy suffices

    def view(self, device: int) -> View:
        """Return the device view; staged memory must have its address by now."""
        if self.place is None:
            array, record = self.array, self.record
            strides = ordered_strides(array.shape, record.array.itemsize, record.order)
            pointer = record.address + self.offset
            return View(pointer, array.shape, strides, array.dtype, device, None, False, None)
        if self.is_lent:
            return self.place._replace(ptr=self.address + self.place.ptr - self.first, owner=None)
        return self.place

    @property
    def record(self) -> _Operand:
        """The operand that is copied: the records that contain this array, or itself."""
        return self if self.within is None else self.within

    @property
    def _memory(self) -> np.ndarray[Any, Any]:
        return self.array.transpose(self.order) if self.order else self.array

    def upload(self, device: int, stream: int) -> None:
        if self.place is None:
            staging.upload(self._memory, self.address, device, stream)
        elif self.is_lent:
            staging.move(self.first, self.address, self.array.nbytes, stream)

    def download(self, device: int, stream: int) -> None:
        if self.place is None:
            staging.download(self.address, self._memory, device, stream)
        elif self.is_lent:
            staging.move(self.address, self.first, self.array.nbytes, stream)


def queue(
    problem: Problem, stream: int, sources: list[View], targets: list[View], op: Any, init: Any
) -> None:
    """Queue a problem for device views of arrays."""
    views, outs = tuple(sources), tuple(targets)
    is_cached = op is None or not op.arrays
    if not is_cached:  # copies of captured arrays have another address next time
        plan = planners.cuda_plan(problem, views, op, outs)
    else:
        plan = plan_for(problem, views, op, outs, is_new=False)
    addresses = [view.ptr for view in (*views, *outs)]
    scalars = b"" if op is None else op.words
    plan.queue(stream, (*problem.start(init), scalars, *addresses))
    if not is_cached and plan.tables is not None:  # kernels still read them
        lifetime.keep_until_done(stream, problem.device, plan)
