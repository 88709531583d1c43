"""Host memory to the GPU and back: small and page-locked arrays by the driver, others by stages.

Large arrays with gaps go by lanes, whose threads close these.

What arrives is as the host has it in C order; the device's memory has no gaps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, TypeAlias

import numpy as np

from gpualgo._base import pages, threads
from gpualgo._driver import addresses, driver
from gpualgo._driver import device as gpu
from gpualgo._driver.driver import check
from gpualgo._driver.lanes import MOST_LANES, SLOT_BYTES, Lane
from gpualgo._driver.stages import Part

# Below, the driver's own copies: calls with 4 MiB up and down took 0.8 to 0.95 of what CuPy takes
# by them on one host, by stages, for which threads wake up, 0.5 to 1.3 on three.
DIRECT_BYTES = 6 << 20
GAPS_BYTES = 16 << 20  # with gaps one thread puts so much together, for more the lanes do
PAGES_BYTES = 256 << 20  # of a result that get their pages before they arrive; blocks of a stage

Array: TypeAlias = np.ndarray[Any, Any]
Block: TypeAlias = tuple[int, Array]  # how many bytes lie before it, and where it lies on the host


@contextmanager
def device_buffers(device: int, stream: int, sizes: list[int]) -> Iterator[list[int]]:
    """Allocate device memory for one call; all of it or, with MemoryError, none."""
    found, taken = gpu.get(device), list[int]()
    with ExitStack() as stack:
        for size in sizes:
            address = found.allocate(max(size, 16), stream)
            stack.callback(found.free, address, stream)
            taken.append(address)
        yield taken


def pieces(
    shape: tuple[int, ...], itemsize: int, limit: int = SLOT_BYTES
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


def upload(source: Array, target: int, device: int, stream: int) -> None:
    """Copy an array to the device: it is there for what is queued on the stream from now on.

    Page-locked memory is read when the stream comes to it.
    """
    upload_all([source], target, device, stream)


def upload_all(sources: Sequence[Array], target: int, device: int, stream: int) -> None:
    """Copy arrays to the device, one behind the other."""
    rest, parts, closed = list[Block](), list[Part](), list[Array]()
    offset, way = 0, _Way(sources, stream)
    for source in sources:
        if not source.nbytes:
            continue
        plain = way.plain(source)
        if plain is None:
            rest.append((offset, source))
        else:
            if plain is not source:
                plain[...] = source
                closed.append(plain)  # held until the stage has read it
            place, size = plain.ctypes.data, plain.nbytes
            if way.is_staged(place, size) or not sends(place, target + offset, size, stream):
                parts.append((offset, place, size))
        offset += source.nbytes
    if parts:
        with gpu.get(device).stages.lend(stream) as stage:
            if stage is not None:
                stage.upload(parts, target, stream)
            else:
                for offset, place, size in parts:
                    send(place, target + offset, size, stream)
    if not rest:
        return

    def move(lane: Lane, blocks: Sequence[Block]) -> None:
        for number, (offset, block) in enumerate(blocks):
            slot = lane.slots[number % 2]
            if number > 1:
                slot.wait()
            np.copyto(slot.array(block.shape, block.dtype), block)
            send(slot.address, target + offset, block.nbytes, lane.stream)
            slot.record(lane.stream)

    _by_lanes(move, rest, device, stream)


def download(source: int, target: Array, device: int, stream: int) -> None:
    """Copy device memory into an array, which may be looked at once the stream has run."""
    download_all(source, [target], device, stream)


def download_all(source: int, targets: Sequence[Array], device: int, stream: int) -> None:
    """Copy device memory into arrays that lie there one behind the other."""
    rest, parts, copies = list[Block](), list[Part](), list[tuple[Array, Array]]()
    offset, way = 0, _Way(targets, stream)
    for target in targets:
        if not target.nbytes:
            continue
        plain = way.plain(target)
        if plain is None:
            rest.append((offset, target))
        else:
            place, size = plain.ctypes.data, plain.nbytes
            if way.is_staged(place, size) or not fetches(source + offset, place, size, stream):
                parts.append((offset, place, size))
            if plain is not target:
                copies.append((target, plain))
        offset += target.nbytes
    if parts:
        with gpu.get(device).stages.lend(stream) as stage:
            if stage is not None:
                stage.download(_with_pages(parts), source, stream)
            else:
                for offset, place, size in _with_pages(parts):
                    fetch(source + offset, place, size, stream)
    if copies:
        driver.synchronize(stream)
    for target, plain in copies:
        target[...] = plain
    if not rest:
        return

    def move(lane: Lane, blocks: Sequence[Block]) -> None:
        for number, (offset, block) in enumerate(blocks):
            slot = lane.slots[number % 2]
            fetch(source + offset, slot.address, block.nbytes, lane.stream)
            slot.record(lane.stream)
            if number > 0:
                land(lane.slots[1 - number % 2], blocks[number - 1][1])
        land(lane.slots[(len(blocks) - 1) % 2], blocks[-1][1])

    _by_lanes(move, rest, device, stream)


def _with_pages(parts: Sequence[Part]) -> Iterator[Part]:
    """Cut what arrives into parts that have their pages, each as its turn comes.

    Pages of a file that the host's memory does not hold would else be gone when they are written.
    """
    for offset, place, size in parts:
        for done in range(0, size, PAGES_BYTES):
            length = min(PAGES_BYTES, size - done)
            pages.populate(place + done, length)
            yield offset + done, place + done, length


class _Way:
    """How arrays that travel together do."""

    def __init__(self, arrays: Sequence[Array], stream: int) -> None:
        num_bytes = sum(array.nbytes for array in arrays)
        # What a capture records is done later, when blocks hold something else.
        self._is_direct = num_bytes < DIRECT_BYTES or driver.is_capturing(stream)
        self._is_closed = num_bytes < GAPS_BYTES

    def plain(self, array: Array) -> Array | None:
        """Return an array without gaps: itself, or room for it; None: it goes by lanes."""
        if array.flags.c_contiguous:
            return array
        return np.empty(array.shape, array.dtype) if self._is_closed else None

    def is_staged(self, place: int, num_bytes: int) -> bool:
        """Return whether memory goes by a stage, not by the driver's own copy.

        Page-locked memory is copied as it is. Memory that is page-locked at one end alone the
        driver would refuse.
        """
        if self._is_direct and addresses.is_pageable(place, num_bytes):
            return False
        return not addresses.is_page_locked(place, num_bytes)


def land(slot: Any, target: Array) -> None:
    """Put what has been fetched into a slot in its place."""
    slot.wait()
    np.copyto(target, slot.array(target.shape, target.dtype))


def _by_lanes(
    move: Callable[[Lane, Sequence[Block]], None], arrays: Sequence[Block], device: int, stream: int
) -> None:
    """Move all blocks of arrays, threads a share of neighbours each."""
    blocks = [
        (offset + inner, block) for offset, array in arrays for inner, block in _blocks(array)
    ]
    shares = min(len(blocks), 2 * MOST_LANES)
    driver.synchronize(stream)  # lanes wait for nothing that is queued there
    found = gpu.get(device)

    def body(first: int, last: int) -> None:
        begin, end = (len(blocks) * share // shares for share in (first, last))
        with found.current(), found.lanes.lend() as lane:
            move(lane, blocks[begin:end])

    threads.run(body, shares, sum(array.nbytes for _, array in arrays))


def _blocks(array: Array) -> Iterator[Block]:
    """Yield an array's blocks in C order."""
    offset = 0
    for index in pieces(array.shape, array.itemsize):
        block = array[(*index, ...)]
        yield offset, block
        offset += block.nbytes


def stretch(array: Array, first: int, end: int) -> list[Array]:
    """Return the parts that hold the elements [first, end) of an array in C order."""
    if array.flags.c_contiguous:
        array = array.reshape(-1)
    if first == end:
        return []
    if array.ndim < 2:
        return [array.reshape(-1)[first:end]]
    inner = array[0].size
    (row, begin), (last, rest) = divmod(first, inner), divmod(end, inner)
    if row == last:
        return stretch(array[row], begin, rest)
    found = stretch(array[row], begin, inner) if begin else []
    row += begin > 0
    if row < last:
        found.append(array[row:last])
    return found + (stretch(array[last], 0, rest) if rest else [])


def send(host: int, target: int, size: int, stream: int) -> None:
    """Queue a copy from the host to the device; of pageable memory it has been read on return."""
    check(driver.api().cuMemcpyHtoDAsync(target, host, size, stream), "cuMemcpyHtoDAsync")


def fetch(source: int, host: int, size: int, stream: int) -> None:
    """Queue a copy from the device to the host; into pageable memory it is done on return."""
    check(driver.api().cuMemcpyDtoHAsync(host, source, size, stream), "cuMemcpyDtoHAsync")


def sends(host: int, target: int, size: int, stream: int) -> bool:
    """Do as `send`; False: the driver refuses, as it does memory that is page-locked in part."""
    result = driver.api().cuMemcpyHtoDAsync(target, host, size, stream)
    return not _is_refused(result, "cuMemcpyHtoDAsync", stream)


def fetches(source: int, host: int, size: int, stream: int) -> bool:
    """Do as `fetch`; False: the driver refuses, as it does memory that is page-locked in part."""
    result = driver.api().cuMemcpyDtoHAsync(host, source, size, stream)
    return not _is_refused(result, "cuMemcpyDtoHAsync", stream)


def _is_refused(result: Any, what: str, stream: int) -> bool:
    if result[0] == 0:
        return False
    # A stage is no way out of a capture: blocks hold something else when it is run.
    if result[0] != driver.api().CUresult.CUDA_ERROR_INVALID_VALUE or driver.is_capturing(stream):
        check(result, what)
    return True


def move(source: int, target: int, size: int, stream: int) -> None:
    """Queue a copy between any two places that the GPU can reach."""
    check(driver.api().cuMemcpyAsync(target, source, size, stream), "cuMemcpyAsync")
