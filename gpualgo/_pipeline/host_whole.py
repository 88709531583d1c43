"""Stages whole host arrays: kernels use page-locked arrays in place, pageable ones are copied.

A call with stream= and only page-locked arrays returns without waiting. All other calls return when
their work is done.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpualgo._arrays import device_array, ordering, page_locked
from gpualgo._arrays.view import (
    NumPy,
    View,
    address_of,
    array_of_addresses,
    byte_bounds,
    dense_view,
    placeholder,
)
from gpualgo._base.records import in_one_piece
from gpualgo._base.strides import dense_strides, order_of, ordered_strides
from gpualgo._cuda.plan import Plan
from gpualgo._driver import default_device, driver, pinned, staging, streams
from gpualgo._driver import device as gpu
from gpualgo._driver.default_device import CPU
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import planners
from gpualgo._pipeline.decide import plan_for
from gpualgo._pipeline.problem import NO_INIT, Array, Problem, Start

# --- Detects host arrays that are fields of the same records, so that one copy moves them all.


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


def _copy(target: int, source: int, size: int) -> None:
    """Copy to or from a page-locked block by several threads."""
    from gpualgo._cpu import launch  # deferred: programs with small arrays never need it

    launch.copy(target, source, size)


pinned.copy = _copy


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
    arrays, count = (*inputs, *outputs), len(inputs)
    with gpu.get(device).current():
        if places is None:
            places = page_locked_views(arrays, device, where, is_aligned=not is_copied)
        has_pageable = None in places
        if has_pageable and stream is not None:
            driver.refuse_capture(handle, pageable(places.index(None) < count, where))
            driver.synchronize(handle)
        operands = [
            _Operand(array, place, is_copied) for array, place in zip(arrays, places, strict=True)
        ]
        sources, targets = operands[:count], operands[count:]
        _join(sources)
        copied = dict.fromkeys(operand.record for operand in operands)
        buffers = [record for record in copied if record.is_lent]
        is_done = False
        try:
            sizes = [buffer.array.nbytes for buffer in buffers]
            with staging.device_buffers(device, handle, sizes) as addresses:
                for buffer, address in zip(buffers, addresses, strict=True):
                    buffer.address = address
                views = [operand.view(device) for operand in operands]
                for record in dict.fromkeys(source.record for source in sources):
                    record.copy(device, handle, is_upload=True)
                yield handle, views[:count], views[count:]
                if is_upper_bound and has_pageable:
                    targets[-1].copy(device, handle, is_upload=False)
                    driver.synchronize(handle)
                    for target, part in zip(targets, written(outputs), strict=True):
                        target.array = part
                for target in targets:
                    target.copy(device, handle, is_upload=False)
            if stream is None or has_pageable:
                driver.synchronize(handle)
                is_done = True
        finally:
            if not is_done:  # also after an error
                streams.keep_until_done(handle, device, *arrays)


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


def begin(device: int, stream: Any, array: np.ndarray[Any, Any], where: str, reason: str) -> int:
    """Return the stream, after waiting for a given stream= as the host reads or writes arrays.

    `reason`: for the error if it is being captured.
    """
    handle = handle_on(device, stream, array, where)
    if stream is not None:
        with gpu.get(device).current():
            driver.refuse_capture(handle, reason)
            driver.synchronize(handle)
    return handle


def host_values(view: View, where: str, stream: Any, why: str) -> np.ndarray[Any, Any]:
    """Return a host array after waiting for stream=, which may still write to it."""
    owner = view.owner
    array: np.ndarray[Any, Any] = (
        owner if type(owner) is np.ndarray else view.library.to_numpy(owner)
    )
    device = default_device.of_streams()
    if stream is not None and device != CPU:
        begin(device, stream, array, where, f"{where}: {why}")
    return array


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
        while end < len(operands) and operands[end].device_view is None:
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
        self.array, self.device_view = array, place
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
        if self.device_view is None:
            array, record = self.array, self.record
            strides = ordered_strides(array.shape, record.array.itemsize, record.order)
            pointer = record.address + self.offset
            return View(pointer, array.shape, strides, array.dtype, device, None, False, None)
        if self.is_lent:
            return self.device_view._replace(
                ptr=self.address + self.device_view.ptr - self.first, owner=None
            )
        return self.device_view

    @property
    def record(self) -> _Operand:
        """The operand that is copied: the records that contain this array, or itself."""
        return self if self.within is None else self.within

    def copy(self, device: int, stream: int, is_upload: bool) -> None:
        """Copy the array to its device memory, or back."""
        if self.device_view is None:
            array = self.array.transpose(self.order) if self.order else self.array
            staging.copy_all([array], self.address, device, stream, is_upload)
        elif self.is_lent:
            host, memory, size = self.first, self.address, self.array.nbytes
            if is_upload:
                staging.move(host, memory, size, stream)
            else:
                staging.move(memory, host, size, stream)


def queue(
    problem: Problem, stream: int, sources: list[View], targets: list[View], op: Any, init: Any
) -> None:
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
        streams.keep_until_done(stream, problem.device, plan)


# --- Shared parts of out-of-core calls: host arrays processed on a GPU block by block.

ALLOWED = 3, 4  # share of the GPU's memory that one call may use, arrays and storage together

Index: TypeAlias = tuple[slice, ...]
Queue: TypeAlias = Callable[..., None]


class Operand:
    """A host array that is processed in blocks; `place` is its view if kernels read it in place."""

    def __init__(self, array: Array, place: View | None) -> None:
        self.array, self.device_view = array, place

    def view(self, index: Any, staged: int, device: int) -> View:
        """Return what the kernel gets for a block: a view in place, or of staged memory."""
        block = self.array[index]
        if self.device_view is None:
            return dense_view(staged, block.shape, block.dtype, device)
        offset = block.__array_interface__["data"][0] - self.array.__array_interface__["data"][0]
        return self.device_view._replace(
            ptr=self.device_view.ptr + offset, shape=block.shape, strides=block.strides
        )


def allowed_bytes(device: int) -> int:
    """Return how much memory a call may use: a share of the GPU's total, whoever uses the rest."""
    share, denominator = ALLOWED
    return gpu.get(device).memory_bytes * share // denominator


def placeholder_views(
    dtypes: Sequence[np.dtype[Any]], shape: tuple[int, ...], device: int
) -> list[View]:
    """Return contiguous views with placeholder addresses: plans are built before memory exists."""
    return [placeholder(shape, dtype, device) for dtype in dtypes]


def placeholder_host_views(
    dtypes: Sequence[np.dtype[Any]], shape: tuple[int, ...]
) -> tuple[View, ...]:
    """Return such views as host arrays, to look up a problem."""
    views = placeholder_views(dtypes, shape, CPU)
    return tuple([view._replace(library=NumPy) for view in views])


@contextmanager
def memory(
    device: int, stream: int, sizes: Sequence[int], plans: Sequence[Plan]
) -> Iterator[tuple[list[int], Queue]]:
    """Allocate the memory of a whole call before it writes anything.

    Yields an address for each size, and a function that queues a plan with its sources, targets and
    initial value. The plans run one after the other and share their temporary storage.
    """
    storage = max((plan.temp_storage_bytes for plan in plans), default=0)
    buffers = staging.device_buffers(device, stream, [*sizes, storage])
    with buffers as (*addresses, storage_address), sync_on_error(stream):

        def queue(plan: Plan, *operands: int, words: bytes = b"", start: Start = NO_INIT) -> None:
            with gpu.supplied(gpu.Given(storage_address, gpu.aligned(storage))):
                plan.queue(stream, (*start, words, *operands))

        yield addresses, queue


@contextmanager
def sync_on_error(stream: int) -> Iterator[None]:
    """After an error, wait for copies from and to arrays that the caller may free."""
    try:
        yield
    except BaseException:
        with suppress(Exception):
            driver.settle(stream)
        raise


def indices(shape: tuple[int, ...], axes: Sequence[int], size: int, limit: int) -> Iterator[Index]:
    """Yield blocks as slices of all axes; a block has at most `limit` bytes or one element.

    `axes` are split in this order; one element along them has `size` bytes.
    """
    for piece in staging.pieces(tuple(shape[axis] for axis in axes), size, limit):
        index = [slice(0, extent) for extent in shape]
        for axis, item in zip(axes, piece, strict=False):
            index[axis] = item if isinstance(item, slice) else slice(item, item + 1)
        yield tuple(index)


class WriteState:
    """Records whether a call has begun to write its results."""

    has_begun = False


@contextmanager
def partial_write_guard(
    where: str, arrays: Sequence[Array], results: Sequence[Array]
) -> Iterator[WriteState]:
    """On errors of calls that work in place, add to the message that the input is lost."""
    written = WriteState()
    try:
        yield written
    except Exception as error:
        is_in_place = any(x.ctypes.data == y.ctypes.data for x in arrays for y in results)
        if not (written.has_begun and is_in_place):
            raise
        kind = MemoryError if isinstance(error, MemoryError) else RuntimeError
        raise kind(
            f"{where}: out is the input and partly overwritten, so its elements are lost: {error}"
        ) from error


# --- Copies captured host arrays to a GPU for a call whose other arrays are staged.


def operator_on_device(op: Operator, device: int, stream: Any, where: str) -> Operator:
    """Return op with its captured pageable arrays replaced by copies on the device.

    The copies are complete on return and live as long as the operator and the work that uses it.
    """
    if not op.arrays:
        return op
    with gpu.get(device).current():
        pageable = [
            view.device == CPU and page_locked.view(view, device, where) is None
            for view in op.arrays
        ]
        if stream is not None and any(pageable):
            driver.refuse_capture(
                streams.handle_of(stream, where),
                f"{where}: op captures pageable host memory; make it with gpualgo.empty_pinned",
            )
        return op.with_arrays(
            tuple(
                _copied(view, device) if is_pageable else view
                for view, is_pageable in zip(op.arrays, pageable, strict=True)
            )
        )


def _copied(view: View, device: int) -> View:
    """Return the view of a contiguous copy on the device, which the view's owner frees."""
    from gpualgo._arrays import protocols

    source = np.ascontiguousarray(array_of_addresses(view)).reshape(view.shape)
    stream = gpu.get(device).copy_stream
    copy = device_array.empty(view.shape, view.dtype, device, stream)
    if source.nbytes:
        staging.send(source.ctypes.data, copy.ptr, source.nbytes, stream)
        driver.synchronize(stream)
    return protocols.own_view(copy)
