"""Copies between host memory and a GPU.

| host memory | copied by |
| page-locked, or small and contiguous | the driver |
| pageable, contiguous | blocks, which one thread fills and empties in turn |
| pageable, with gaps | blocks, by several threads |

Device memory is contiguous and in C order of the host array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from gpualgo._base import threads
from gpualgo._driver import device, driver, pinned
from gpualgo._driver import device as gpu
from gpualgo._driver.driver import check
from gpualgo._driver.pinned import SLOT_BYTES, Piece

# Smaller copies are left to the driver. Calls with 4 MiB up and down, relative to CuPy's time: 0.8
# to 0.95 by driver copies (one host), 0.5 to 1.3 by blocks, which wake threads (three hosts).
DIRECT_BYTES = 6 << 20
FIRST_BYTES = 512 << 10  # smaller first block of an upload, so that the bus starts early
PAGES_BYTES = 256 << 20  # pages of a result are populated in parts of this size before they arrive

Array: TypeAlias = np.ndarray[Any, Any]


@contextmanager
def device_buffers(device: int, stream: int, sizes: list[int]) -> Iterator[list[int]]:
    """Allocate device memory for one call; all of it or, with MemoryError, none."""
    gpu_device, buffers = gpu.get(device), list[int]()
    with ExitStack() as stack:
        for size in sizes:
            address = gpu_device.allocate(max(size, 16), stream)
            stack.callback(gpu_device.free, address, stream)
            buffers.append(address)
        yield buffers


def pieces(
    shape: tuple[int, ...], itemsize: int, limit: int = SLOT_BYTES
) -> Iterator[tuple[int | slice, ...]]:
    """Split an array in C order into blocks of at most `limit` bytes; yield their indices."""
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


def upload(source: Array, target: int, device: int, stream: int) -> None:
    """Copy an array to the device; available to work queued on the stream from now on.

    Page-locked memory is read in stream order.
    """
    upload_all([source], target, device, stream)


def upload_all(sources: Sequence[Array], target: int, device: int, stream: int) -> None:
    """Copy arrays to the device, one after the other in memory."""
    is_small = _are_small(sources, stream)
    staged = [
        (offset, source)
        for offset, source in _located(sources)
        if not (
            _is_direct(source, is_small)
            and sends(source.ctypes.data, target + offset, source.nbytes, stream)
        )
    ]
    blocks = gpu.get(device).blocks
    _by_blocks(lambda pieces: blocks.upload(pieces, target, stream), staged, device, FIRST_BYTES)


def download(source: int, target: Array, device: int, stream: int) -> None:
    """Copy device memory into an array; complete once the stream has run."""
    download_all(source, [target], device, stream)


def download_all(source: int, targets: Sequence[Array], device: int, stream: int) -> None:
    """Copy adjacent device memory into several arrays."""
    is_small = _are_small(targets, stream)
    staged = [
        (offset, target)
        for offset, target in _located(targets)
        if not (
            _is_direct(target, is_small)
            and fetches(source + offset, target.ctypes.data, target.nbytes, stream)
        )
    ]
    blocks = gpu.get(device).blocks
    _by_blocks(lambda pieces: blocks.download(pieces, source, stream), staged, device)


def _located(arrays: Sequence[Array]) -> Iterator[Piece]:
    """Yield arrays that have elements, with their offsets one after the other in memory."""
    offset = 0
    for array in arrays:
        if array.nbytes:
            yield offset, array
        offset += array.nbytes


def _are_small(arrays: Sequence[Array], stream: int) -> bool:
    """Return whether the driver copies arrays together.

    Captured copies run later, when blocks hold other data.
    """
    num_bytes = sum(array.nbytes for array in arrays)
    return num_bytes < DIRECT_BYTES or driver.is_capturing(stream)


def _is_direct(array: Array, is_small: bool) -> bool:
    """Return whether the driver copies an array: a small pageable or a page-locked one.

    It would refuse memory that is page-locked at one end only.
    """
    if not array.flags.c_contiguous:
        return False
    place, size = array.ctypes.data, array.nbytes
    is_pageable = is_small and device.is_pageable(place, size)
    return is_pageable or device.is_page_locked(place, place + size)


def _by_blocks(
    move: Callable[[Iterable[Piece]], None], arrays: Sequence[Piece], device: int,
    first_bytes: int | None = None,
) -> None:  # fmt: skip
    """Copy arrays through blocks; several threads do so for arrays with gaps.

    A smaller first block lets the bus start early. Pages of contiguous results are populated when
    their turn comes: earlier, those of a memory-mapped file could be evicted before they are
    written.
    """
    if all(array.flags.c_contiguous for _, array in arrays):
        flat = [(offset, array.reshape(-1).view(np.uint8)) for offset, array in arrays]
        move(piece for each in flat for piece in _flat_pieces(*each, first_bytes))
        return
    blocks = [
        (offset + inner, block) for offset, array in arrays for inner, block in _pieces_of(array)
    ]

    def body(first: int, last: int) -> None:
        with gpu.get(device).current():
            move(blocks[first:last])

    threads.run(body, len(blocks), sum(array.nbytes for _, array in arrays))


def _flat_pieces(offset: int, raw: Array, first_bytes: int | None) -> Iterator[Piece]:
    size = pinned.BLOCK_BYTES
    ends = [*range(first_bytes or size, raw.size, size), raw.size]
    for start, end in pairwise([0, *ends]):
        if first_bytes is None and start % PAGES_BYTES == 0:
            threads.populate(raw.ctypes.data + start, min(PAGES_BYTES, raw.size - start))
        yield offset + start, raw[start:end]


def _pieces_of(array: Array) -> Iterator[Piece]:
    offset = 0
    for index in pieces(array.shape, array.itemsize):
        block = array[(*index, ...)]
        yield offset, block
        offset += block.nbytes


def stretch(array: Array, first: int, end: int) -> list[Array]:
    """Return views that together hold elements [first, end) of an array in C order."""
    if array.flags.c_contiguous:
        array = array.reshape(-1)
    if first == end:
        return []
    if array.ndim < 2:
        return [array.reshape(-1)[first:end]]
    inner = array[0].size
    (row, begin), (last, last_end) = divmod(first, inner), divmod(end, inner)
    if row == last:
        return stretch(array[row], begin, last_end)
    parts = stretch(array[row], begin, inner) if begin else []
    row += begin > 0
    if row < last:
        parts.append(array[row:last])
    return parts + (stretch(array[last], 0, last_end) if last_end else [])


def send(host: int, target: int, size: int, stream: int) -> None:
    """Queue a copy from host to device; pageable memory has been read on return."""
    check(driver.api().cuMemcpyHtoDAsync(target, host, size, stream), "cuMemcpyHtoDAsync")


def fetch(source: int, host: int, size: int, stream: int) -> None:
    """Queue a copy from device to host; into pageable memory it is complete on return."""
    check(driver.api().cuMemcpyDtoHAsync(host, source, size, stream), "cuMemcpyDtoHAsync")


def sends(host: int, target: int, size: int, stream: int) -> bool:
    """Like `send`; return False if the driver refuses, as for partly page-locked memory."""
    result = driver.api().cuMemcpyHtoDAsync(target, host, size, stream)
    return not _is_refused(result, "cuMemcpyHtoDAsync", stream)


def fetches(source: int, host: int, size: int, stream: int) -> bool:
    """Like `fetch`; return False if the driver refuses, as for partly page-locked memory."""
    result = driver.api().cuMemcpyDtoHAsync(host, source, size, stream)
    return not _is_refused(result, "cuMemcpyDtoHAsync", stream)


def _is_refused(result: Any, what: str, stream: int) -> bool:
    if result[0] == 0:
        return False
    # A captured copy cannot use a stage: its blocks hold other data when the graph runs.
    if result[0] != driver.api().CUresult.CUDA_ERROR_INVALID_VALUE or driver.is_capturing(stream):
        check(result, what)
    return True


def move(source: int, target: int, size: int, stream: int) -> None:
    """Queue a copy between any two addresses that the GPU can access."""
    check(driver.api().cuMemcpyAsync(target, source, size, stream), "cuMemcpyAsync")
