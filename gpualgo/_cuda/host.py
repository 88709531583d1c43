"""Host arrays on the GPU: in blocks through page-locked buffers.

Reduction and transformation take one block at a time, so arrays may exceed the GPU's memory; a
scan, a sort and a histogram have theirs there whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpualgo import _streams
from gpualgo._array import View
from gpualgo._cuda import build, driver, staging, whole
from gpualgo._cuda import histogram as device_histogram
from gpualgo._cuda import radix_sort as device_radix_sort
from gpualgo._cuda import reduce as device_reduce
from gpualgo._cuda import scan as device_scan
from gpualgo._cuda import transform as device_transform
from gpualgo._operator import Operator


def _view(pointer: int, shape: tuple[int, ...], dtype: np.dtype[Any], device: int) -> View:
    strides = device_transform._strides_of_new(shape, dtype)
    return View(pointer, shape, strides, dtype, device, None, False, None)


def reduce(
    call: Any, x: np.ndarray[Any, Any], out: np.ndarray[Any, Any], op: Operator,
    init: np.ndarray[Any, Any] | None, device: int, stream: Any,
) -> None:  # fmt: skip
    """Reduce a host array of at least one element into out, a host array without gaps."""
    handle = 0 if stream is None else _streams.handle_of(stream, "reduce")
    axes = call.axes
    if len(axes) == x.ndim and x.flags.c_contiguous:
        x, axes = x.reshape(-1), (0,)
    elif not x.flags.aligned:
        x = x.copy()
    job = _Reduction(call.acc, op, device, handle)
    with driver.current_device(device):
        blocks = list(staging.pieces(x.shape, x.dtype.itemsize))
        job.run(x, axes, blocks, init, out)


class _Reduction:
    """Blocks in C order: a block's result starts its outputs, or is appended to them."""

    def __init__(self, acc: np.dtype[Any], op: Operator, device: int, stream: int) -> None:
        self.acc, self.op, self.device, self.stream = acc, op, device, stream
        self.plans: dict[Any, device_reduce.Plan] = {}

    def run(
        self, x: np.ndarray[Any, Any], axes: tuple[int, ...], blocks: list[Any],
        init: np.ndarray[Any, Any] | None, out: np.ndarray[Any, Any],
    ) -> None:  # fmt: skip
        size = self.acc.itemsize
        chunk = min(x.nbytes, staging.CHUNK_BYTES)
        sizes = [chunk, chunk, out.nbytes, min(out.nbytes, chunk * size)]
        started: set[int] = set()
        count = min(len(blocks), staging.NUM_SLOTS - 1)
        with (
            staging.device_buffers(self.device, self.stream, sizes) as (*chunks, total, piece),
            staging.slots(self.device, count) as slots,
        ):
            for number, index in enumerate(blocks):
                slot, target = slots[number % count], chunks[number % 2]
                if number >= count:
                    slot.wait()
                block = x[(*index, ...)]
                staging.upload(block, slot, target, self.stream)
                self._append(x, axes, index, block, target, init, total, piece, started)
            staging.download(total, out, self.stream)

    def _append(
        self, x: np.ndarray[Any, Any], axes: tuple[int, ...], index: Any,
        block: np.ndarray[Any, Any], source: int, init: np.ndarray[Any, Any] | None, total: int,
        piece: int, started: set[int],
    ) -> None:  # fmt: skip
        """Reduce a block on the device and put it behind what its outputs hold already."""
        offset, shape, inner = _outputs_of(x.shape, axes, index)
        target = total + offset * self.acc.itemsize
        is_new = offset not in started
        started.add(offset)
        plan = self._plan(block.shape, x.dtype, inner)
        plan.launch(self.stream, init if is_new else None, source, target if is_new else piece)
        if not is_new:
            views = [_view(p, shape, self.acc, self.device) for p in (target, piece)]
            join = device_transform.Plan(self.op, views, shape, self.acc, views[0])
            join.launch(self.stream, target, target, piece)

    def _plan(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], axes: tuple[int, ...]
    ) -> device_reduce.Plan:
        key = (shape, axes)
        if key not in self.plans:
            kept = tuple(n for i, n in enumerate(shape) if i not in axes)
            strides = device_transform._strides_of_new(kept, self.acc)
            view = _view(0, shape, dtype, self.device)
            self.plans[key] = device_reduce.Plan(view, self.op, axes, self.acc, strides, 0)
        return self.plans[key]


def _outputs_of(
    shape: tuple[int, ...], axes: tuple[int, ...], index: tuple[int | slice, ...]
) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Return the first output of a block, its outputs' shape, and the axes it reduces itself."""
    position = 0
    kept: list[int] = []
    for axis, extent in enumerate(shape):
        item = index[axis] if axis < len(index) else slice(0, extent)
        start, length = (item, 1) if isinstance(item, int) else (item.start, item.stop - item.start)
        if axis in axes:
            continue
        position = position * extent + start
        if not isinstance(item, int):
            kept.append(length)
    dropped = sum(isinstance(item, int) for item in index)
    inner = tuple(axis - dropped for axis in axes if axis >= dropped)
    return position, tuple(kept), inner


def result_dtype(
    op: Operator, dtypes: tuple[np.dtype[Any], ...], wanted: Any, device: int
) -> np.dtype[Any]:
    """Return the dtype of a transformation's result."""
    return build.result_dtype(op, dtypes, wanted, driver.capability(device))


def transform_on(device: int, stream: Any) -> Callable[..., None]:
    """Return transform(op, arrays, out) for host arrays on a device."""
    handle = 0 if stream is None else _streams.handle_of(stream, "transform")

    def run(
        op: Operator, arrays: Sequence[np.ndarray[Any, Any]], out: np.ndarray[Any, Any]
    ) -> None:
        with driver.current_device(device):
            if stream is not None:  # what the caller queued there comes first
                driver.synchronize(handle)
            _transform(op, arrays, out, device)

    return run


class _Lane:
    """A stream with page-locked and device memory for one block of every operand."""

    def __init__(self, stream: int, slot: staging.Slot, memory: int, share: int) -> None:
        self.stream, self.slot, self.memory, self.share = stream, slot, memory, share
        self.waiting: np.ndarray[Any, Any] | None = None  # where the last block's result belongs

    def start(
        self, op: Operator, blocks: Sequence[np.ndarray[Any, Any]], out: np.ndarray[Any, Any],
        device: int, plans: dict[Any, Any],
    ) -> None:  # fmt: skip
        """Queue one block: up, through the kernel, and down into the page-locked buffer."""
        views = []
        for number, block in enumerate(blocks, start=1):
            offset = number * self.share
            staging.copy(self.slot.array(block.shape, block.dtype, offset), block)
            staging.send(
                self.slot.address + offset, self.memory + offset, block.nbytes, self.stream
            )
            views.append(_view(self.memory + offset, out.shape, block.dtype, device))
        if out.shape not in plans:
            place = _view(self.memory, out.shape, out.dtype, device)
            plans[out.shape] = device_transform.Plan(op, views, out.shape, out.dtype, place)
        plans[out.shape].launch(self.stream, self.memory, *[view.ptr for view in views])
        staging.fetch(self.memory, self.slot.address, out.nbytes, self.stream)
        self.slot.record(self.stream)
        self.waiting = out

    def finish(self) -> None:
        """Wait for the block under way and put its result where it belongs."""
        if self.waiting is not None:
            self.slot.wait()
            out, self.waiting = self.waiting, None
            staging.copy(out, self.slot.array(out.shape, out.dtype))


def _transform(
    op: Operator, arrays: Sequence[np.ndarray[Any, Any]], out: np.ndarray[Any, Any], device: int
) -> None:
    """Send blocks down two lanes in turn: one is filled while the other travels and computes."""
    limit = staging.CHUNK_BYTES // (len(arrays) + 1) & -256
    widest = max(out.dtype.itemsize, *(a.dtype.itemsize for a in arrays))
    blocks = [(*index, ...) for index in staging.pieces(out.shape, widest, limit)]
    share = min(limit, -(-out.size * widest // 256) * 256)  # of the memory, for one operand
    streams = staging.lanes(device)[: len(blocks)]
    size = share * (len(arrays) + 1)
    plans: dict[Any, Any] = {}
    with (
        staging.device_buffers(device, streams[0], [size] * len(streams)) as memories,
        staging.slots(device, len(streams)) as slots,
    ):
        driver.synchronize(streams[0])  # the memory is there for the other lane, too
        lanes = [
            _Lane(stream, slot, memory, share)
            for stream, slot, memory in zip(streams, slots, memories, strict=True)
        ]
        for number, index in enumerate(blocks):
            lane = lanes[number % len(lanes)]
            lane.finish()
            lane.start(op, [array[index] for array in arrays], out[index], device, plans)
        for number in range(len(blocks), len(blocks) + len(lanes)):
            lanes[number % len(lanes)].finish()


def scan(
    call: Any, x: np.ndarray[Any, Any], result: np.ndarray[Any, Any], op: Operator,
    init: np.ndarray[Any, Any] | None, device: int, stream: Any,
) -> None:  # fmt: skip
    """Scan a host array of at least one element into result."""
    with whole.on_device(device, stream, [x], [result], call.where) as (handle, (source,), (out,)):
        plan = call.plans.get(device)
        if plan is None:
            plan = call.plans[device] = device_scan.Plan(call, source, op, None, 0)
        plan.launch(handle, init, 0, source.ptr, out.ptr)


def histogram(
    call: Any, x: np.ndarray[Any, Any], result: np.ndarray[Any, Any], device: int, stream: Any
) -> None:
    """Count a host array of at least one sample into result."""
    with whole.on_device(device, stream, [x], [result], "histogram") as (handle, (source,), (out,)):
        plan = call.plans.get(device)
        if plan is None:
            plan = call.plans[device] = device_histogram.Plan(call, source, out.strides)
        plan.launch(handle, source.ptr, out.ptr)


def radix_sort(
    call: Any, keys: np.ndarray[Any, Any], values: np.ndarray[Any, Any] | None,
    outs: tuple[np.ndarray[Any, Any], ...], device: int, stream: Any,
) -> None:  # fmt: skip
    """Sort host arrays of at least one key into outs."""
    inputs = [keys] if values is None else [keys, values]
    with whole.on_device(device, stream, inputs, outs, call.where) as (handle, sources, targets):
        device_radix_sort.run(
            call, sources[0], None if values is None else sources[1], tuple(targets), handle
        )
