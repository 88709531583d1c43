"""Copies between host memory and a GPU.

| host memory | copied by |
| page-locked, or small | the driver |
| pageable, contiguous | stages |
| pageable, with gaps, up to 16 MiB | stages, through a contiguous temporary |
| pageable, with gaps, larger | lanes (several threads) |

Device memory is contiguous and in C order of the host array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, TypeAlias

import numpy as np

from gpualgo._base import threads
from gpualgo._base.strides import bounds
from gpualgo._driver import device as gpu
from gpualgo._driver import driver
from gpualgo._driver.driver import check
from gpualgo._driver.pinned import MOST_LANES, SLOT_BYTES, CopyLane, Part

# Smaller copies are left to the driver. Calls with 4 MiB up and down, relative to CuPy's time: 0.8
# to 0.95 by driver copies (one host), 0.5 to 1.3 by stages, which wake threads (three hosts).
DIRECT_BYTES = 6 << 20
GAPS_BYTES = 16 << 20  # one thread makes smaller strided arrays contiguous; lanes copy larger ones
PAGES_BYTES = 256 << 20  # pages of a result are populated in parts of this size before they arrive

Array: TypeAlias = np.ndarray[Any, Any]
Ints: TypeAlias = tuple[int, ...]
Block: TypeAlias = tuple[int, Array]  # device address, and the host memory


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
    copy_all([source], target, device, stream, is_upload=True)


def download(source: int, target: Array, device: int, stream: int) -> None:
    """Copy device memory into an array; complete once the stream has run."""
    copy_all([target], source, device, stream, is_upload=False)


def copy_all(
    arrays: Sequence[Array], memory: int, device: int, stream: int, is_upload: bool
) -> None:
    """Copy arrays to adjacent device memory, or with `is_upload` False from it."""
    strided, parts, temporaries = list[Block](), list[Part](), list[tuple[Array, Array]]()
    offset, num_bytes = 0, sum(array.nbytes for array in arrays)
    # Captured copies run later, when a stage's blocks hold other data.
    is_direct = num_bytes < DIRECT_BYTES or driver.is_capturing(stream)
    for array in arrays:
        if not array.nbytes:
            continue
        is_plain = array.flags.c_contiguous
        if not is_plain and num_bytes >= GAPS_BYTES:
            strided.append((memory + offset, array))
        else:
            plain = array if is_plain else np.empty(array.shape, array.dtype)
            if not is_plain:
                temporaries.append((array, plain))  # kept until the stage has read it
                if is_upload:
                    plain[...] = array
            host, size = plain.ctypes.data, plain.nbytes
            # The driver would refuse memory that is page-locked at one end only.
            is_queued = (
                (is_direct and gpu.is_pageable(host, size)) or gpu.is_page_locked(host, size)
            ) and try_copy(memory + offset, host, size, stream, is_upload)
            if not is_queued:
                parts.append((memory + offset, host, size))
        offset += array.nbytes
    if parts:
        _by_stage(parts if is_upload else _with_pages(parts), device, stream, is_upload)
    if temporaries and not is_upload:
        driver.synchronize(stream)
        for array, plain in temporaries:
            array[...] = plain
    if strided:
        _by_lanes(_upload_blocks if is_upload else _download_blocks, strided, device, stream)


def _by_stage(parts: Iterable[Part], device: int, stream: int, is_upload: bool) -> None:
    with ExitStack() as stack:
        try:
            stage = stack.enter_context(gpu.get(device).stages.lend())
        except MemoryError:  # no memory can be pinned
            for memory, host, size in parts:
                if is_upload:
                    send(host, memory, size, stream)
                else:
                    fetch(memory, host, size, stream)
        else:
            (stage.upload if is_upload else stage.download)(parts, stream)


def _upload_blocks(lane: CopyLane, blocks: Sequence[Block]) -> None:
    for number, (memory, block) in enumerate(blocks):
        slot = lane.slots[number % 2]
        slot.wait()
        np.copyto(slot.array(block.shape, block.dtype), block)
        slot.send(memory, block.nbytes, lane.stream)


def _download_blocks(lane: CopyLane, blocks: Sequence[Block]) -> None:
    for number, (memory, block) in enumerate(blocks):
        slot = lane.slots[number % 2]
        slot.fetch(memory, block.nbytes, lane.stream)
        if number > 0:
            _land(lane.slots[1 - number % 2], blocks[number - 1][1])
    _land(lane.slots[(len(blocks) - 1) % 2], blocks[-1][1])


def _land(slot: Any, target: Array) -> None:
    slot.wait()
    np.copyto(target, slot.array(target.shape, target.dtype))


def _with_pages(parts: Sequence[Part]) -> Iterator[Part]:
    """Yield parts of a download after populating their host pages, each when it is requested.

    Populated earlier, pages of a memory-mapped file could be evicted before they are written.
    """
    for memory, address, size in parts:
        for done in range(0, size, PAGES_BYTES):
            length = min(PAGES_BYTES, size - done)
            threads.populate(address + done, length)
            yield memory + done, address + done, length


def _by_lanes(
    move: Callable[[CopyLane, Sequence[Block]], None], arrays: Sequence[Block], device: int,
    stream: int,
) -> None:  # fmt: skip
    """Copy all blocks of arrays by several threads, a range of neighbouring blocks each."""
    blocks = [
        (offset + inner, block) for offset, array in arrays for inner, block in _blocks(array)
    ]
    shares = min(len(blocks), 2 * MOST_LANES)
    driver.synchronize(stream)  # lanes are not ordered with this stream
    gpu_device = gpu.get(device)

    def body(first: int, last: int) -> None:
        begin, end = (len(blocks) * share // shares for share in (first, last))
        with gpu_device.current(), gpu_device.lanes.lend() as lane:
            move(lane, blocks[begin:end])
            driver.synchronize(lane.stream)

    threads.run(body, shares, sum(array.nbytes for _, array in arrays))


def _blocks(array: Array) -> Iterator[Block]:
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


def values(
    pointer: int, shape: Ints, strides: Ints, dtype: np.dtype[Any], device: int, stream: int,
    reason: str,
) -> Array:  # fmt: skip
    """Return a copy of a device array, with its strides, after waiting for a stream.

    `reason`: why the host reads it, for the error during a capture.
    """
    low, high = bounds(shape, strides, dtype.itemsize)
    raw = np.empty(high - low, np.uint8)
    if raw.size:
        with gpu.get(device).current():
            driver.refuse_capture(stream, reason)
            fetch(pointer + low, raw.ctypes.data, raw.nbytes, stream)
            driver.synchronize(stream)
    array: Array = np.ndarray(shape, dtype, raw, -low, strides)
    return array


def try_copy(memory: int, host: int, size: int, stream: int, is_upload: bool) -> bool:
    """Queue a copy; return False if the driver refuses, as for partly page-locked memory."""
    name = "cuMemcpyHtoDAsync" if is_upload else "cuMemcpyDtoHAsync"
    ends = (memory, host) if is_upload else (host, memory)
    result = getattr(driver.api(), name)(*ends, size, stream)
    if result[0] == 0:
        return True
    # A captured copy cannot use a stage: its blocks hold other data when the graph runs.
    if result[0] != driver.api().CUresult.CUDA_ERROR_INVALID_VALUE or driver.is_capturing(stream):
        check(result, name)
    return False


def move(source: int, target: int, size: int, stream: int) -> None:
    """Queue a copy between any two addresses that the GPU can access."""
    check(driver.api().cuMemcpyAsync(target, source, size, stream), "cuMemcpyAsync")
