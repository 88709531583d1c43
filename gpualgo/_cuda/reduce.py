"""Reduction on the GPU: canonical layout, kernel, temporary storage, launch."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

from gpualgo import _checks, _streams
from gpualgo._array import View
from gpualgo._cuda import build, driver, memory
from gpualgo._cuda import reduce_policy as policy
from gpualgo._cuda.layout import DIVISOR, Dims, divisor, merge, pack_layout
from gpualgo._operator import Operator

_WHERE = "reduce"
_HEAD = struct.Struct("<16sq8xQQQQ")  # ReduceCommon: init, input, output, partials, tickets


def run(call: Any, view: View, op: Operator, init: Any, out: Any, stream: Any) -> Any:
    """Reduce a device array into out or a new array of its library; does not wait."""
    library, device = view.library, view.device
    given = None if stream is None else _streams.handle_of(stream, _WHERE)
    encoded = call.encode(init)
    if out is None:
        result = library.empty(call.result_shape, call.acc, device, given)
        pointer = library.pointer(result)
        strides = None
    else:
        target = _checks.output(out, view, call.result_shape, call.acc, _WHERE)
        _checks.no_overlap(target, view, _WHERE)
        result, pointer = out, target.ptr
        strides = None if target.contiguous else target.strides
    if not pointer or 0 in call.shape:
        return result
    handle = library.stream(device) if given is None else given
    if 0 in view.shape:
        library.fill(result, call.start(view, init), device, given)
        return result
    plan = _plan_for(call, view, op, strides)
    plan.launch(view.ptr, pointer, encoded, handle)
    return result


def _plan_for(call: Any, view: View, op: Operator, out_strides: tuple[int, ...] | None) -> Plan:
    """Return the call's plan for this alignment and these output strides, made once."""
    if call.plan is None:
        call.plan = {}
    alignment = view.ptr & 15
    key = (alignment, out_strides)
    plan: Plan | None = call.plan.get(key)
    if plan is None:
        if view.ptr % view.dtype.itemsize:
            raise ValueError(
                f"reduce: x starts at address {view.ptr:#x}, which is not a multiple of its item "
                f"size {view.dtype.itemsize}; copy it to aligned memory"
            )
        kept_strides = _kept_strides(call, out_strides)
        plan = Plan(view, op, call.axes, call.acc, kept_strides, alignment)
        call.plan[key] = plan
    return plan


def _kept_strides(call: Any, out_strides: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the result's byte strides along the kept axes."""
    if out_strides is not None:
        if len(out_strides) == len(call.shape):
            return out_strides
        return tuple(s for i, s in enumerate(out_strides) if i not in call.axes)
    strides = []
    step = call.acc.itemsize
    for extent in reversed(call.shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


class Plan:
    """A kernel, its grid and its packed parameters, for one layout."""

    __slots__ = ("device", "free", "grid", "kernel", "partial_bytes", "tail", "threads")

    def __init__(
        self, view: View, op: Operator, axes: tuple[int, ...], acc: np.dtype[Any],
        out_strides: tuple[int, ...], alignment: int,
    ) -> None:  # fmt: skip
        self.device = view.device
        self.free: list[driver.Parameters] = []
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
            access = policy.flat((alignment | row_stride) % policy.VECTOR_BYTES == 0)
            packed = struct.pack("<q", row_stride)
        else:
            access = policy.STRIDED
            packed = pack_layout(outer, 2) + pack_layout(reduced, 1)
        blocks = divisor(cut.blocks_per_row)
        self.tail = (
            struct.pack(f"<qqq{DIVISOR}", num_rows, num_items, cut.chunk_items, *blocks) + packed
        )
        self.grid = (cut.num_blocks, 1, 1)
        self.partial_bytes = cut.num_blocks * acc.itemsize if cut.blocks_per_row > 1 else 0
        self.threads = cut.policy.block_threads
        self.kernel = build.kernel(policy.rows_spec(op, source, acc, access, cut), self.device)

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
        cut = policy.cut_columns(num_batches, num_rows, num_columns, items)
        self.tail = (
            struct.pack(
                f"<qqq{DIVISOR}{DIVISOR}qq", num_rows, cut.rows_per_block, num_columns,
                *divisor(cut.num_blocks), *divisor(cut.num_column_tiles), column_stride, out_stride,
            )
            + pack_layout(reduced, 1)
            + pack_layout(batch, 2)
        )  # fmt: skip
        tiles = cut.num_column_tiles * num_batches
        self.grid = (tiles * cut.num_blocks, 1, 1)
        shared = cut.num_blocks > 1
        self.partial_bytes = self.grid[0] * cut.columns * acc.itemsize if shared else 0
        self.threads = policy.COLUMNS.block_threads
        self.kernel = build.kernel(policy.columns_spec(op, source, acc, cut), self.device)

    def launch(
        self, input_pointer: int, output_pointer: int, init: np.ndarray[Any, Any] | None,
        stream: int,
    ) -> None:  # fmt: skip
        if not self.partial_bytes:
            self._launch(input_pointer, output_pointer, init, stream, 0, 0)
            return
        with memory.workspace(self.device, stream, self.partial_bytes) as (tickets, partials):
            self._launch(input_pointer, output_pointer, init, stream, partials, tickets)

    def _launch(
        self, input_pointer: int, output_pointer: int, init: np.ndarray[Any, Any] | None,
        stream: int, partials: int, tickets: int,
    ) -> None:  # fmt: skip
        try:
            parameters = self.free.pop()
        except IndexError:
            parameters = driver.Parameters(_HEAD.size + len(self.tail))
            start = parameters.offset + _HEAD.size
            parameters.buffer[start : start + len(self.tail)] = self.tail
        value, given = (b"", 0) if init is None else (init.tobytes(), 1)
        _HEAD.pack_into(
            parameters.buffer, parameters.offset, value, given, input_pointer, output_pointer,
            partials, tickets,
        )  # fmt: skip
        driver.launch(
            self.kernel, self.grid, self.threads, stream, parameters.address, self.device
        )
        self.free.append(parameters)


def _is_columns(reduced: Dims, outer: Dims) -> bool:
    """Return whether neighbouring results lie closer than the elements of one."""
    if not outer or not reduced or outer[-1][0] == 1:
        return False
    return abs(outer[-1][1][0]) < abs(reduced[-1][1][0])
