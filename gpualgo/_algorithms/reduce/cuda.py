"""Reduction on the GPU: canonical layout, kernel, temporary storage, launch."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from gpualgo._algorithms.reduce import policy
from gpualgo._arrays import ordering
from gpualgo._arrays.view import View, is_contiguous
from gpualgo._base.extents import Dims, dense_strides, merge
from gpualgo._cuda import build, templates
from gpualgo._cuda.launch import Launch
from gpualgo._cuda.layout import DIVISOR, divisor, pack_layout
from gpualgo._driver import driver, workspace
from gpualgo._operators.captured import check_apart
from gpualgo._operators.operator import Operator, as_operator
from gpualgo._pipeline import checks

_WHERE = "reduce"
_HEAD = struct.Struct("<16sq8xQQQQ")  # ReduceCommon: init, input, output, partials, tickets


def run(call: Any, view: View, op: Any, init: Any, out: Any, stream: Any) -> Any:
    """Reduce a device array into out or a new array of its library; does not wait."""
    library, device, pointer = view.library, view.device, view.ptr
    encoded = None if init is None else call.encode(init)
    place = None
    if out is not None:
        place = checks.output(out, view, call.result_shape, call.acc, _WHERE)
        checks.no_overlap(place, view, _WHERE)
        if call.arrays:
            check_apart(call.arrays, place, _WHERE)
    given = None
    if stream is not None or library.has_homes:
        given = ordering.handle_for(stream, view, _WHERE, outs=(place,))
    key: Any = pointer & 15
    strides = None
    if library.has_homes:
        key = (key, "home")  # not for the warm call, which orders no streams and keeps nothing
    if place is None:
        result = library.empty(call.result_shape, call.acc, device, given)
        target = library.pointer(result)
    else:
        result, target = out, place.ptr
        if not is_contiguous(place):
            strides = place.strides
            key = (key, strides)
    handle = library.stream(device) if given is None else given
    if call.is_empty:
        if 0 not in call.shape:
            start = call.start(as_operator(op, _WHERE, 2), init)
            library.fill(result, start, device, given)
            if library.has_homes:
                ordering.keep(handle, view, result, outs=(place,))
        return result
    plan = call.plans.get(key)
    if plan is None:
        plan = call.plans[key] = new_plan(
            call, view, as_operator(op, _WHERE, 2, call.arrays), strides
        )
    plan.launch(handle, encoded, pointer, target)
    if library.has_homes:
        ordering.keep(handle, view, result, outs=(place,))
    return result


def new_plan(call: Any, view: View, op: Operator, out_strides: tuple[int, ...] | None) -> Plan:
    """Return the plan for this alignment and these output strides."""
    if view.ptr % view.dtype.itemsize:
        raise ValueError(
            f"reduce: x starts at address {view.ptr:#x}, which is not a multiple of its item "
            f"size {view.dtype.itemsize}; copy it to aligned memory"
        )
    strides = _kept_strides(call, out_strides)
    return Plan(view, op, call.axes, call.acc, strides, view.ptr & 15)


def _kept_strides(call: Any, out_strides: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the result's byte strides along the kept axes."""
    if out_strides is not None:
        if len(out_strides) == len(call.shape):
            return out_strides
        return tuple(s for i, s in enumerate(out_strides) if i not in call.axes)
    return dense_strides(call.shape, call.acc.itemsize)


class Plan:
    """A kernel, its grid and its packed parameters, for one layout."""

    __slots__ = (
        "_launch", "_partial_bytes", "_partials_at", "_zeroed_bytes", "device",
        "temp_storage_bytes",
    )  # fmt: skip

    def __init__(
        self, view: View, op: Operator, axes: tuple[int, ...], acc: np.dtype[Any],
        out_strides: tuple[int, ...], alignment: int,
    ) -> None:  # fmt: skip
        self.device = view.device
        self._zeroed_bytes = self._partials_at = self._partial_bytes = 0
        reduced = merge([(view.shape[i], (view.strides[i],)) for i in axes])
        kept = [i for i in range(len(view.shape)) if i not in axes]
        outer = merge(
            [
                (view.shape[i], (view.strides[i], out))
                for i, out in zip(kept, out_strides, strict=True)
            ]
        )
        if _is_columns(reduced, outer):
            self._columns(view.dtype, acc, op, reduced, outer, alignment)
        else:
            self._rows(view.dtype, acc, op, reduced, outer, alignment)
        self.temp_storage_bytes = self._zeroed_bytes + self._partial_bytes

    def _rows(
        self, source: np.dtype[Any], acc: np.dtype[Any], op: Operator, reduced: Dims,
        outer: Dims, alignment: int,
    ) -> None:  # fmt: skip
        num_items = math.prod(extent for extent, _ in reduced)
        num_rows = math.prod(extent for extent, _ in outer)
        cut = policy.cut_rows(op, num_rows, num_items, source)
        is_dense = not reduced or (len(reduced) == 1 and reduced[0][1][0] == source.itemsize)
        is_flat = is_dense and (not outer or (len(outer) == 1 and outer[0][1][1] == acc.itemsize))
        row_stride = outer[0][1][0] if outer and is_flat else 0
        if is_flat:
            access = policy.flat((alignment | row_stride) % templates.VECTOR_BYTES == 0)
            packed = struct.pack("<q", row_stride)
        else:
            access = policy.STRIDED
            packed = pack_layout(outer, 2) + pack_layout(reduced, 1)
        blocks = divisor(cut.blocks_per_row)
        tail = struct.pack(f"<qqq{DIVISOR}", num_rows, num_items, cut.chunk_items, *blocks) + packed
        if cut.blocks_per_row > 1:
            self._zeroed_bytes = cut.num_blocks * templates.tagged_bytes(acc)
        kernel = build.kernel(policy.rows_spec(op, source, acc, access, cut), self.device)
        self._launch = Launch(
            kernel, cut.num_blocks, cut.policy.block_threads, _HEAD, tail, self.device
        )

    def _columns(
        self, source: np.dtype[Any], acc: np.dtype[Any], op: Operator, reduced: Dims,
        outer: Dims, alignment: int,
    ) -> None:  # fmt: skip
        num_columns, (column_stride, out_stride) = outer[-1]
        batch = outer[:-1]
        num_rows = math.prod(extent for extent, _ in reduced)
        num_batches = math.prod(extent for extent, _ in batch)
        if column_stride == source.itemsize:
            strides = [s for _, (s,) in reduced] + [s[0] for _, s in batch]
            alignment = math.gcd(16, alignment, *(abs(stride) for stride in strides))
            items = policy.column_items(source, acc, num_columns, alignment)
        else:
            items = 1
        widest = policy.column_items(source, acc, num_columns)
        cut = policy.cut_columns(num_batches, num_rows, num_columns, widest, items)
        tail = (
            struct.pack(
                f"<qqq{DIVISOR}{DIVISOR}qq", num_rows, cut.rows_per_block, num_columns,
                *divisor(cut.num_blocks), *divisor(cut.num_column_tiles), column_stride, out_stride,
            )
            + pack_layout(reduced, 1)
            + pack_layout(batch, 2)
        )  # fmt: skip
        blocks = cut.num_column_tiles * num_batches * cut.num_blocks
        if cut.num_blocks > 1:
            self._zeroed_bytes = self._partials_at = workspace.TICKET_BYTES
            self._partial_bytes = blocks * cut.columns * acc.itemsize
        kernel = build.kernel(policy.columns_spec(op, source, acc, cut), self.device)
        self._launch = Launch(
            kernel, blocks, policy.COLUMNS.block_threads, _HEAD, tail, self.device
        )

    def pack(
        self, init: np.ndarray[Any, Any] | None, source: int, target: int
    ) -> Callable[[int], None]:
        """Return launch(stream) for these addresses; the plan takes no temporary storage."""
        value, given = (b"", 0) if init is None else (init.tobytes(), 1)
        return self._launch.packed(value, given, source, target, 0, 0)

    def launch(
        self, stream: int, init: np.ndarray[Any, Any] | None, source: int, target: int
    ) -> None:
        """Queue the reduction of the array at `source` into `target`."""
        if driver.is_simple:
            self._queue(stream, init, source, target)
            return
        with driver.current_device(self.device):  # stream 0 is the current device's
            self._queue(stream, init, source, target)

    def _queue(
        self, stream: int, init: np.ndarray[Any, Any] | None, source: int, target: int
    ) -> None:
        value, given = (b"", 0) if init is None else (init.tobytes(), 1)
        if not self.temp_storage_bytes:
            self._launch(stream, value, given, source, target, 0, 0)
            return
        if self._zeroed_bytes <= workspace.TICKET_BYTES:
            kept = workspace.kept_workspace(self.device, stream, self._partial_bytes)
            if kept:
                self._launch(stream, value, given, source, target, kept + self._partials_at, kept)
                return
        with workspace.own(self.device, stream, self.temp_storage_bytes, self._zeroed_bytes) as own:
            self._launch(stream, value, given, source, target, own + self._partials_at, own)


def _is_columns(reduced: Dims, outer: Dims) -> bool:
    """Return whether neighbouring results lie closer than the elements of one."""
    if not outer or not reduced or outer[-1][0] == 1:
        return False
    return abs(outer[-1][1][0]) < abs(reduced[-1][1][0])
