"""Pageable host memory to the GPU and back: page-locked buffers, filled while others travel."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gpualgo._cuda import driver, memory
from gpualgo._cuda.driver import check

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

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """Return the buffer's front as an array."""
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        return self.bytes[:size].view(dtype).reshape(shape)

    def wait(self) -> None:
        """Wait until what was queued before the last record has run."""
        check(driver.api().cuEventSynchronize(self.event), "cuEventSynchronize")

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
        for slot in lent:
            slot.wait()
    finally:
        with _lock:
            _idle[device].extend(lent)
            del _idle[device][2 * NUM_SLOTS :]


@contextmanager
def device_buffers(device: int, stream: int, sizes: list[int]) -> Iterator[list[int]]:
    """Allocate device memory for one call; all of it or, with MemoryError, none."""
    taken: list[int] = []
    try:
        for size in sizes:
            taken.append(memory.allocate(max(size, 16), stream, device))
        yield taken
    finally:
        for address in taken:
            memory.free(address, stream)


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


def upload(source: np.ndarray[Any, Any], slot: Slot, target: int, stream: int) -> None:
    """Copy a block to the device through a slot; the slot may be refilled after `slot.wait()`."""
    staged = slot.array(source.shape, source.dtype)
    np.copyto(staged, source)
    check(
        driver.api().cuMemcpyHtoDAsync(target, slot.address, source.nbytes, stream),
        "cuMemcpyHtoDAsync",
    )
    slot.record(stream)


def download(source: int, target: np.ndarray[Any, Any], stream: int) -> None:
    """Copy device memory into any array of the host, and wait for it."""
    plain = target if target.flags.c_contiguous else np.empty(target.shape, target.dtype)
    api = driver.api()
    check(
        api.cuMemcpyDtoHAsync(plain.ctypes.data, source, plain.nbytes, stream), "cuMemcpyDtoHAsync"
    )
    driver.synchronize(stream)
    if plain is not target:
        target[...] = plain
