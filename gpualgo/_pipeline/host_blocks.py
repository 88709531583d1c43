"""Shared parts of out-of-core calls: host arrays processed on a GPU block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

import numpy as np

from gpualgo._arrays import device_array, page_locked
from gpualgo._arrays.view import NumPy, View, array_of_addresses, dense_view
from gpualgo._cuda.plan import Plan
from gpualgo._driver import device as gpu
from gpualgo._driver import driver, pools, staging, streams
from gpualgo._driver.default_device import CPU
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import host_whole
from gpualgo._pipeline.problem import NO_INIT, Array, Problem, Start

ALLOWED = 3, 4  # share of the GPU's memory that one call may use, arrays and storage together

Index: TypeAlias = tuple[slice, ...]
Queue: TypeAlias = Callable[..., None]


class Operand:
    """A host array that is processed in blocks; `place` is its view if kernels read it in place."""

    def __init__(self, array: Array, place: View | None) -> None:
        self.array, self.place = array, place

    def view(self, index: Any, staged: int, device: int) -> View:
        """Return what the kernel gets for a block: a view in place, or of staged memory."""
        block = self.array[index]
        if self.place is None:
            return dense_view(staged, block.shape, block.dtype, device)
        offset = block.__array_interface__["data"][0] - self.array.__array_interface__["data"][0]
        return self.place._replace(
            ptr=self.place.ptr + offset, shape=block.shape, strides=block.strides
        )


def allowed_bytes(device: int) -> int:
    """Return how much memory a call may use: a share of the GPU's total, whoever uses the rest."""
    share, denominator = ALLOWED
    return gpu.get(device).memory_bytes * share // denominator


def begin(problem: Problem, array: Array, stream: Any, reason: str) -> int:
    """Return the stream of a call, after waiting for a given stream= as the host takes part."""
    handle = host_whole.handle_on(problem.device, stream, array, problem.where)
    if stream is not None:
        host_whole.sync_for_host(handle, reason)
    return handle


def placeholder_views(
    dtypes: Sequence[np.dtype[Any]], shape: tuple[int, ...], device: int, first: int = 0
) -> list[View]:
    """Return contiguous views with placeholder addresses: plans are built before memory exists.

    Each view has a different address, as plans check whether arrays are the same. Outputs start at
    `first`, the number of inputs.
    """
    return [dense_view(first + i + 1 << 44, shape, dtype, device) for i, dtype in enumerate(dtypes)]


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
            with pools.supplied(pools.Given(storage_address, pools.aligned(storage))):
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


def on_device(op: Operator, device: int, stream: Any, where: str) -> Operator:
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
    source = np.ascontiguousarray(array_of_addresses(view)).reshape(view.shape)
    stream = gpu.get(device).copy_stream
    copy = device_array.empty(view.shape, view.dtype, device, stream)
    if source.nbytes:
        api = driver.api()
        status = api.cuMemcpyHtoDAsync(copy.ptr, source.ctypes.data, source.nbytes, stream)
        driver.check(status, "cuMemcpyHtoDAsync")
        driver.synchronize(stream)
    return view._replace(ptr=copy.ptr, strides=copy.strides, device=device, owner=copy,
                         library=_CopyStream(stream))  # fmt: skip


class _CopyStream:
    """Stand-in library of a captured array: returns the stream on which the copy was written."""

    def __init__(self, stream: int) -> None:
        self._stream = stream

    def stream(self, device: int) -> int:
        return self._stream
