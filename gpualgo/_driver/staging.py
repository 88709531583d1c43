"""Pageable host memory to the GPU and back: page-locked buffers, filled while others travel."""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from gpualgo._base import threads
from gpualgo._driver import driver, workspace
from gpualgo._driver.driver import check

CHUNK_BYTES = 32 << 20  # of each page-locked buffer; larger gains nothing on PCIe 5
NUM_SLOTS = 3

_lock = threading.Lock()
_idle: dict[int, list[Slot]] = {}


class Slot:
    """A page-locked buffer and the event that says when the GPU is done with it."""

    __slots__ = ("address", "bytes", "event")

    def __init__(self) -> None:
        api = driver.api()
        # 1: CU_MEMHOSTALLOC_PORTABLE, usable from every context.
        self.address = int(check(api.cuMemHostAlloc(CHUNK_BYTES, 1), "allocating pinned memory"))
        raw = (ctypes.c_ubyte * CHUNK_BYTES).from_address(self.address)
        self.bytes: np.ndarray[Any, Any] = np.ctypeslib.as_array(raw)
        self.event = check(api.cuEventCreate(2), "cuEventCreate")  # 2: no timing

    def array(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], offset: int = 0
    ) -> np.ndarray[Any, Any]:
        """Return the buffer's bytes from an offset on as an array."""
        size = math.prod(shape) * dtype.itemsize
        return self.bytes[offset : offset + size].view(dtype).reshape(shape)

    def wait(self) -> None:
        """Wait until what was queued before the last record has run."""
        check(driver.api().cuEventSynchronize(self.event), "cuEventSynchronize")

    def free(self) -> None:
        """Give the page-locked memory back; nothing may use the slot any more."""
        check(driver.api().cuEventDestroy(self.event), "cuEventDestroy")
        check(driver.api().cuMemFreeHost(self.address), "cuMemFreeHost")

    def record(self, stream: int) -> None:
        check(driver.api().cuEventRecord(self.event, stream), "cuEventRecord")


@contextmanager
def slots(device: int, count: int) -> Iterator[list[Slot]]:
    """Lend page-locked buffers; they are kept for the next call."""
    with _lock:
        idle = _idle.setdefault(device, [])
        lent = [idle.pop() for _ in range(min(count, len(idle)))]
    try:
        while len(lent) < count:
            lent.append(Slot())
        yield lent
    finally:
        for slot in lent:  # after an error, too: the GPU may be reading it
            slot.wait()
        with _lock:
            _idle[device].extend(lent)
            surplus = _idle[device][2 * NUM_SLOTS :]
            del _idle[device][2 * NUM_SLOTS :]
        for slot in surplus:
            slot.free()


@contextmanager
def device_buffers(device: int, stream: int, sizes: list[int]) -> Iterator[list[int]]:
    """Allocate device memory for one call; all of it or, with MemoryError, none."""
    taken: list[int] = []
    try:
        for size in sizes:
            taken.append(workspace.allocate(max(size, 16), stream, device))
        yield taken
    finally:
        for address in taken:
            workspace.free(address, stream)


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


@cache
def lanes(device: int) -> tuple[int, int]:
    """Return two streams of our own, on which blocks travel side by side."""
    with driver.current_device(device):
        streams = [check(driver.api().cuStreamCreate(1), "cuStreamCreate") for _ in range(2)]
    return int(streams[0]), int(streams[1])
