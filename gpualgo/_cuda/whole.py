"""Host arrays that a GPU needs whole: copied there in blocks, and the results back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from gpualgo import _streams
from gpualgo._array import View
from gpualgo._cuda import driver, staging

Arrays = Sequence[np.ndarray[Any, Any]]


@contextmanager
def on_device(
    device: int, stream: Any, inputs: Arrays, outputs: Arrays, where: str
) -> Iterator[tuple[int, list[View], list[View]]]:
    """Lend device memory: the inputs' elements in C order, and room for the outputs'.

    Gives the stream and the views; after the block the outputs are copied to their arrays, which
    may be the inputs. Nothing is written to them if anything fails.
    """
    handle = 0 if stream is None else _streams.handle_of(stream, where)
    with driver.current_device(device):
        sizes = [array.nbytes for array in (*inputs, *outputs)]
        with staging.device_buffers(device, handle, sizes) as addresses:
            views = [
                _view(address, array, device)
                for address, array in zip(addresses, (*inputs, *outputs), strict=True)
            ]
            for array, view in zip(inputs, views, strict=False):
                _upload(array, view.ptr, device, handle)
            results = views[len(inputs) :]
            yield handle, views[: len(inputs)], results
            for array, view in zip(outputs, results, strict=True):
                _download(view.ptr, array, device, handle)


def _view(address: int, array: np.ndarray[Any, Any], device: int) -> View:
    strides = []
    step = array.itemsize
    for extent in reversed(array.shape):
        strides.append(step)
        step *= extent
    return View(
        address, array.shape, tuple(reversed(strides)), array.dtype, device, None, False, None
    )


def _blocks(array: np.ndarray[Any, Any]) -> Iterator[tuple[int, np.ndarray[Any, Any]]]:
    """Yield an array's blocks in C order, each with its offset in bytes."""
    offset = 0
    for index in staging.pieces(array.shape, array.itemsize):
        block = array[(*index, ...)]
        yield offset, block
        offset += block.nbytes


def _upload(array: np.ndarray[Any, Any], target: int, device: int, stream: int) -> None:
    count = min(staging.NUM_SLOTS, -(-array.nbytes // staging.CHUNK_BYTES))
    with staging.slots(device, max(1, count)) as slots:
        for number, (offset, block) in enumerate(_blocks(array)):
            slot = slots[number % len(slots)]
            if number >= len(slots):
                slot.wait()
            staging.upload(block, slot, target + offset, stream)


def _download(source: int, array: np.ndarray[Any, Any], device: int, stream: int) -> None:
    """Copy device memory into an array: one block travels while the last is put in its place."""
    count = min(staging.NUM_SLOTS, -(-array.nbytes // staging.CHUNK_BYTES))
    with staging.slots(device, max(1, count)) as slots:
        waiting: list[tuple[staging.Slot, np.ndarray[Any, Any]]] = []
        for number, (offset, block) in enumerate(_blocks(array)):
            if len(waiting) == len(slots):
                _land(*waiting.pop(0))
            slot = slots[number % len(slots)]
            staging.fetch(source + offset, slot.address, block.nbytes, stream)
            slot.record(stream)
            waiting.append((slot, block))
        for slot, block in waiting:
            _land(slot, block)


def _land(slot: staging.Slot, target: np.ndarray[Any, Any]) -> None:
    slot.wait()
    staging.copy(target, slot.array(target.shape, target.dtype))
