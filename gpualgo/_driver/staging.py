"""Pageable host memory to the GPU and back: page-locked buffers, filled while others travel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gpualgo._base import threads
from gpualgo._driver import device as gpu
from gpualgo._driver import driver
from gpualgo._driver.driver import check
from gpualgo._driver.slots import CHUNK_BYTES, NUM_SLOTS, Slot

__all__ = ["CHUNK_BYTES", "NUM_SLOTS", "Slot"]  # of what it imports: callers know it by this name


@contextmanager
def device_buffers(device: int, stream: int, sizes: list[int]) -> Iterator[list[int]]:
    """Allocate device memory for one call; all of it or, with MemoryError, none."""
    found, taken = gpu.get(device), list[int]()
    try:
        for size in sizes:
            taken.append(found.allocate(max(size, 16), stream))
        yield taken
    finally:
        for address in taken:
            found.free(address, stream)


def pieces(
    shape: tuple[int, ...], itemsize: int, limit: int = CHUNK_BYTES
) -> Iterator[tuple[int | slice, ...]]:
    """Cut an array in C order into blocks of at most `limit` bytes, as indices into it."""
    inner = itemsize
    axis = len(shape)
    while axis > 0 and inner * shape[axis - 1] <= limit:
        axis -= 1
        inner *= shape[axis]
    if axis == 0:
        yield ()
        return
    step = max(1, limit // inner)
    for outer in np.ndindex(*shape[: axis - 1]):
        for start in range(0, shape[axis - 1], step):
            yield (*outer, slice(start, min(start + step, shape[axis - 1])))


def copy(target: np.ndarray[Any, Any], source: np.ndarray[Any, Any]) -> None:
    """Copy between host arrays of one shape, on all cores: one is slower than the bus."""
    if target.ndim == 0:
        target[...] = source
        return
    if target.flags.c_contiguous and source.flags.c_contiguous:
        target, source = target.reshape(-1), source.reshape(-1)

    def part(first: int, last: int) -> None:
        np.copyto(target[first:last], source[first:last])

    weight = 64 if target.nbytes >= 1 << 20 else 1  # `run` would take a copy for light work
    threads.run(part, target.shape[0], weight * target.nbytes)


def upload(source: np.ndarray[Any, Any], slot: Slot, target: int, stream: int) -> None:
    """Copy a block to the device through a slot; the slot may be refilled after `slot.wait()`."""
    copy(slot.array(source.shape, source.dtype), source)
    send(slot.address, target, source.nbytes, stream)
    slot.record(stream)


def send(pinned: int, target: int, size: int, stream: int) -> None:
    """Queue a copy from page-locked memory to the device."""
    check(driver.api().cuMemcpyHtoDAsync(target, pinned, size, stream), "cuMemcpyHtoDAsync")


def fetch(source: int, pinned: int, size: int, stream: int) -> None:
    """Queue a copy from the device to page-locked memory."""
    check(driver.api().cuMemcpyDtoHAsync(pinned, source, size, stream), "cuMemcpyDtoHAsync")


def move(source: int, target: int, size: int, stream: int) -> None:
    """Queue a copy between any two places that the GPU can reach."""
    check(driver.api().cuMemcpyAsync(target, source, size, stream), "cuMemcpyAsync")


def download(source: int, target: np.ndarray[Any, Any], stream: int) -> None:
    """Copy device memory into any array of the host, and wait for it."""
    plain = target if target.flags.c_contiguous else np.empty(target.shape, target.dtype)
    fetch(source, plain.ctypes.data, plain.nbytes, stream)
    driver.synchronize(stream)
    if plain is not target:
        target[...] = plain
