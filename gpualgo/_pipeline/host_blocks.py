"""What calls share that bring arrays of the host to a GPU block by block: memory, and its bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

import numpy as np

from gpualgo._arrays.view import NumPy, View, dense_view
from gpualgo._cuda.plan import Plan
from gpualgo._driver import device as gpu
from gpualgo._driver import driver, staging, workspace
from gpualgo._driver.default_device import CPU
from gpualgo._pipeline import host_whole
from gpualgo._pipeline.problem import NO_START, Array, Problem, Start

ALLOWED = 3, 4  # of the GPU's memory: what one call may take of it, arrays and storage together

Index: TypeAlias = tuple[slice, ...]
Queue: TypeAlias = Callable[..., None]


class Operand:
    """A host array that is cut into blocks, and its view if kernels take it in place."""

    def __init__(self, array: Array, place: View | None) -> None:
        self.array, self.place = array, place

    def view(self, index: Any, staged: int, device: int) -> View:
        """Return what the kernel sees of a block: itself, or memory of the device."""
        block = self.array[index]
        if self.place is None:
            return dense_view(staged, block.shape, block.dtype, device)
        offset = block.__array_interface__["data"][0] - self.array.__array_interface__["data"][0]
        return self.place._replace(
            ptr=self.place.ptr + offset, shape=block.shape, strides=block.strides
        )


def allowed_bytes(device: int) -> int:
    """Return how much memory a call may take: a part of all that there is, whoever uses it."""
    share, of = ALLOWED
    return gpu.get(device).memory_bytes * share // of


def begin(problem: Problem, array: Array, stream: Any, reason: str) -> int:
    """Return the stream of a call that the host takes part in; what was queued there has run."""
    handle = host_whole.handle_on(problem.device, stream, array, problem.where)
    if stream is not None:
        host_whole.before_host(handle, reason)
    return handle


def dense(
    dtypes: Sequence[np.dtype[Any]], shape: tuple[int, ...], device: int, first: int = 0
) -> list[View]:
    """Return views of arrays without gaps, as plans are made for them before there is memory.

    Each has an address of its own, those of outputs from the number of inputs on: plans ask whether
    arrays are the same.
    """
    return [dense_view(first + i + 1 << 44, shape, dtype, device) for i, dtype in enumerate(dtypes)]


def host(dtypes: Sequence[np.dtype[Any]], shape: tuple[int, ...]) -> tuple[View, ...]:
    """Return views of such arrays of the host, for whom a problem is looked up."""
    views = dense(dtypes, shape, CPU)
    return tuple([view._replace(library=NumPy) for view in views])


@contextmanager
def memory(
    device: int, stream: int, sizes: Sequence[int], plans: Sequence[Plan]
) -> Iterator[tuple[list[int], Queue]]:
    """Take the memory of a whole call at once, before it writes anything.

    Gives an address for each size, and what queues one of the plans: its sources and targets, and
    what it starts from. Plans share their temporary storage, as they follow each other.
    """
    storage = max((plan.temp_storage_bytes for plan in plans), default=0)
    buffers = staging.device_buffers(device, stream, [*sizes, storage])
    with buffers as (*addresses, last), settled(stream):

        def queue(plan: Plan, *operands: int, words: bytes = b"", start: Start = NO_START) -> None:
            with workspace.supplied(workspace.Given(last, workspace.aligned(storage))):
                plan.queue(stream, (*start, words, *operands))

        yield addresses, queue


@contextmanager
def settled(stream: int) -> Iterator[None]:
    """Wait, after an error, for copies from and to arrays that the caller may free."""
    try:
        yield
    except BaseException:
        with suppress(Exception):
            driver.settle(stream)
        raise


def indices(shape: tuple[int, ...], axes: Sequence[int], size: int, limit: int) -> Iterator[Index]:
    """Yield slices of all axes, of which some are cut: a block has `limit` bytes, or one element.

    The axes are cut in their order, an element along them has `size` bytes.
    """
    for cut in staging.pieces(tuple(shape[axis] for axis in axes), size, limit):
        index = [slice(0, extent) for extent in shape]
        for axis, item in zip(axes, cut, strict=False):
            index[axis] = item if isinstance(item, slice) else slice(item, item + 1)
        yield tuple(index)


class Written:
    """Whether a call has begun to write its results."""

    has_begun = False


@contextmanager
def told(where: str, arrays: Sequence[Array], results: Sequence[Array]) -> Iterator[Written]:
    """Say of errors on the way what they leave behind: in place, what there was is lost."""
    written = Written()
    try:
        yield written
    except Exception as error:
        is_in_place = any(x.ctypes.data == y.ctypes.data for x in arrays for y in results)
        if not (written.has_begun and is_in_place):
            raise
        kind = MemoryError if isinstance(error, MemoryError) else RuntimeError
        raise kind(
            f"{where}: out is its input and half written, so that what it held is lost: {error}"
        ) from error
