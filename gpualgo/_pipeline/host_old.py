"""Host arrays on the GPU: page-locked ones in place, pageable ones through page-locked buffers.

Reduction and transformation take pageable arrays one block at a time, so that they may exceed the
GPU's memory; a scan and a sort have theirs there whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpualgo._algorithms.radix_sort import cuda as device_radix_sort
from gpualgo._algorithms.reduce import cuda as device_reduce
from gpualgo._algorithms.scan import cuda_run as device_scan
from gpualgo._algorithms.transform import cuda as device_transform
from gpualgo._algorithms.transform import host_blocks as lanes
from gpualgo._algorithms.transform import plan_key
from gpualgo._algorithms.transform import plans as transform_plans
from gpualgo._arrays.view import View
from gpualgo._base.extents import dense_strides
from gpualgo._cuda import build
from gpualgo._driver import driver, staging
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import host_captured as tables
from gpualgo._pipeline import host_whole as whole


def reduce(
    call: Any, x: np.ndarray[Any, Any], out: np.ndarray[Any, Any], op: Operator,
    init: np.ndarray[Any, Any] | None, device: int, stream: Any,
) -> None:  # fmt: skip
    """Reduce a host array of at least one element into out, which has at least one."""
    op = tables.on_device(op, device, stream, "reduce")
    with driver.current_device(device):
        (place,) = whole.in_place([x], device, "reduce")
        if place is None:
            _reduce_staged(call, x, out, op, init, device, stream)
            return
        places = [place, *whole.in_place([out], device, "reduce")]
        found = whole.on_device(device, stream, [x], [out], "reduce", places=places)
        with found as (handle, (source,), (target,)):
            key = device, source.ptr & 15, source.strides, target.strides
            plans = {} if op.arrays else call.plans  # copies of arrays lie somewhere else next time
            plan = plans.get(key)
            if plan is None:
                strides = device_reduce._kept_strides(call, target.strides)
                plan = plans[key] = device_reduce.Plan(
                    source, op, call.axes, call.acc, strides, source.ptr & 15
                )
            plan.launch(handle, init, source.ptr, target.ptr)


def _reduce_staged(
    call: Any, x: np.ndarray[Any, Any], out: np.ndarray[Any, Any], op: Operator,
    init: np.ndarray[Any, Any] | None, device: int, stream: Any,
) -> None:  # fmt: skip
    handle = whole.handle_on(device, stream, x, "reduce")
    if stream is not None:
        whole.before_host(handle, whole.pageable(True, "reduce"))
    axes = call.axes
    if len(axes) == x.ndim and x.flags.c_contiguous:
        x, axes = x.reshape(-1), (0,)
    elif not x.flags.aligned:
        x = x.copy()
    flat = np.empty(call.shape, call.acc)
    blocks = list(staging.pieces(x.shape, x.dtype.itemsize))
    _Reduction(call.acc, op, device, handle).run(x, axes, blocks, init, flat)
    out[...] = flat.reshape(out.shape)


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
            views = [lanes.view_of(p, shape, self.acc, self.device) for p in (target, piece)]
            join = device_transform.Plan(self.op, views, shape, self.acc, views[0])
            join.launch(self.stream, target, target, piece)

    def _plan(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], axes: tuple[int, ...]
    ) -> device_reduce.Plan:
        key = (shape, axes)
        if key not in self.plans:
            kept = tuple(n for i, n in enumerate(shape) if i not in axes)
            strides = dense_strides(kept, self.acc.itemsize)
            view = lanes.view_of(0, shape, dtype, self.device)
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

    def run(
        op: Operator, arrays: Sequence[np.ndarray[Any, Any]], out: np.ndarray[Any, Any]
    ) -> None:
        op = tables.on_device(op, device, stream, "transform")
        with driver.current_device(device):
            places = whole.in_place([*arrays, out], device, "transform")
            if None not in places:
                _transform_in_place(op, arrays, out, device, stream, places)
                return
            handle = whole.handle_on(device, stream, out, "transform")
            if stream is not None:
                is_input = places.index(None) < len(arrays)
                driver.refuse_capture(handle, whole.pageable(is_input, "transform"))
            if stream is not None or any(places):  # what was queued there comes first
                driver.synchronize(handle)
            lanes.transform(op, arrays, out, device, places)

    return run


def _transform_in_place(
    op: Operator, arrays: Sequence[np.ndarray[Any, Any]], out: np.ndarray[Any, Any], device: int,
    stream: Any, places: list[View | None],
) -> None:  # fmt: skip
    found = whole.on_device(device, stream, arrays, [out], "transform", places=places)
    with found as (handle, sources, (target,)):
        key = ("in place", plan_key(op, sources, None, target))
        plan = transform_plans.get(key)
        if plan is None:
            plan = device_transform._new_plan(key, op, sources, out.shape, out.dtype, target)
        plan.launch(handle, target.ptr, *[source.ptr for source in sources])


def scan(
    call: Any, x: np.ndarray[Any, Any], result: np.ndarray[Any, Any], op: Operator,
    init: np.ndarray[Any, Any] | None, device: int, stream: Any,
) -> None:  # fmt: skip
    """Scan a host array of at least one element into result."""
    op = tables.on_device(op, device, stream, call.where)
    with whole.on_device(device, stream, [x], [result], call.where) as (handle, (source,), (out,)):
        key = device, source.ptr & 15, source.strides, out.ptr & 15, out.strides
        plans = {} if op.arrays else call.plans  # as above
        plan = plans.get(key)
        if plan is None:
            plan = plans[key] = device_scan.Plan(call, source, op, out.strides, out.ptr & 15)
        plan.launch(handle, init, 0, source.ptr, out.ptr)


def radix_sort(
    call: Any, keys: np.ndarray[Any, Any], values: np.ndarray[Any, Any] | None,
    outs: tuple[np.ndarray[Any, Any], ...], device: int, stream: Any,
) -> None:  # fmt: skip
    """Sort host arrays of at least one key into outs.

    Its passes would cross the bus again and again, so that page-locked arrays are copied as well:
    by one asynchronous copy, or by the kernel that closes their gaps.
    """
    inputs = [keys] if values is None else [keys, values]
    found = whole.on_device(device, stream, inputs, outs, call.where, is_copied=True)
    with found as (handle, sources, targets):
        views = [*sources, *targets]
        addresses = [view.ptr for view in views]
        # Which of them are one array decides, too.
        key = (
            device, *((view.ptr & 15, view.strides) for view in views),
            *(addresses.index(address) for address in addresses),
        )  # fmt: skip
        plan = call.plans.get(key)
        moved = None if values is None else sources[1]
        if plan is None:
            plan = device_radix_sort.Plan(call, sources[0], moved, tuple(targets))
            call.plans[key] = plan
        plan.launch(
            handle, sources[0].ptr, 0 if moved is None else moved.ptr, targets[0].ptr,
            targets[-1].ptr,
        )  # fmt: skip
