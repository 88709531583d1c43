"""Scan on the GPU: canonical layout, kernel, temporary storage, launch."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

from gpualgo import _streams
from gpualgo._array import View, is_contiguous
from gpualgo._cuda import build, driver, memory
from gpualgo._cuda import scan_policy as policy
from gpualgo._cuda.layout import DIVISOR, Dims, divisor, merge, pack_layout
from gpualgo._operator import Operator, as_operator
from gpualgo._scan import check_output

_HEAD = struct.Struct("<16sq8xQQQQ")  # ScanCommon: init, its address, input, output, states
_CONTROL_BYTES = 256  # LookbackControl


def run(call: Any, view: View, op: Any, init: Any, out: Any, stream: Any) -> Any:
    """Scan a device array into out or a new array of its library; does not wait."""
    library, device, pointer = view.library, view.device, view.ptr
    given = None if stream is None else _streams.handle_of(stream, call.where)
    first = init.ptr if type(init) is View else 0
    encoded = None if first else call.encode(init)
    key: Any = pointer & 15
    strides, alignment = None, 0
    if out is None:
        result = library.empty(call.result_shape, call.acc, device, given)
        target = library.pointer(result)
    else:
        place = check_output(call, out, view, init)
        result, target = out, place.ptr
        strides, alignment = place.strides, target & 15
        if alignment or not is_contiguous(place):
            key = (key, alignment, strides)
    if 0 in call.shape:
        return result
    plan = call.plans.get(key)
    if plan is None:
        plan = Plan(call, view, as_operator(op, call.where, 2), strides, alignment)
        call.plans[key] = plan
    handle = library.stream(device) if given is None else given
    plan.launch(handle, encoded, first, pointer, target)
    return result


class Plan:
    """A kernel, its grid and its packed parameters, for one layout."""

    __slots__ = ("_input_start", "_launch", "_output_start", "device", "temp_storage_bytes")

    def __init__(
        self, call: Any, view: View, op: Operator, out_strides: tuple[int, ...] | None,
        out_alignment: int,
    ) -> None:  # fmt: skip
        self.device = view.device
        for name, address, dtype in (
            ("x", view.ptr, view.dtype), ("out", out_alignment, call.acc),
        ):  # fmt: skip
            if address % dtype.itemsize:
                raise ValueError(
                    f"{call.where}: {name} starts at address {address:#x}, which is not a multiple "
                    f"of its item size {dtype.itemsize}; copy it to aligned memory"
                )
        elements, lines = _canonical(call, view, out_strides)
        self._input_start = self._output_start = 0
        if call.is_reverse and not _is_dense(elements, (view.dtype, call.acc)):
            # The scan's first element is the last in memory order; a dense one is turned round
            # by the kernel.
            self._input_start, self._output_start = (
                sum((extent - 1) * strides[i] for extent, strides in elements) for i in (0, 1)
            )
            elements = [(extent, (-s[0], -s[1])) for extent, s in elements]
        self._tiles(call, view, op, elements, lines, out_alignment)

    def _tiles(
        self, call: Any, view: View, op: Operator, elements: Dims, lines: Dims, out_alignment: int
    ) -> None:
        source, acc = view.dtype, call.acc
        num_items = math.prod(extent for extent, _ in elements)
        num_lines = math.prod(extent for extent, _ in lines)
        widest = max(source.itemsize, acc.itemsize)
        cut = policy.tiles_policy(num_items * num_lines * widest, widest)
        tiles_per_line = -(-num_items // cut.tile_items(widest))
        num_tiles = tiles_per_line * num_lines
        access, packed = self._access(call, view, elements, lines, num_items, out_alignment)
        num_words = num_tiles * policy.state_words(acc) if tiles_per_line > 1 else 0
        self.temp_storage_bytes = _CONTROL_BYTES + 8 * num_words
        kept_words = (memory.STATE_BYTES - _CONTROL_BYTES) // 8
        tail = struct.pack(
            f"<qqqq{DIVISOR}", num_tiles, num_items, max(num_words, kept_words),
            int(tiles_per_line > policy.DIRECT_TILES), *divisor(tiles_per_line),
        ) + packed  # fmt: skip
        transfer = policy.transfer(cut, driver.capability(self.device))
        spec = policy.tiles_spec(op, source, acc, access, cut, call.is_exclusive, transfer)
        grid = min(num_tiles, driver.num_sms(self.device) * cut.blocks_per_sm)
        self._launch = driver.Launch(
            build.kernel(spec, self.device), grid, cut.block_threads + 2 * policy.WARP, _HEAD, tail,
            self.device, cut.shared_bytes(source, acc),
        )  # fmt: skip

    def _access(
        self, call: Any, view: View, elements: Dims, lines: Dims, num_items: int,
        out_alignment: int,
    ) -> tuple[str, bytes]:  # fmt: skip
        """Return how the kernel reaches elements, and the parameters that it needs for that."""
        source, acc = view.dtype, call.acc
        if not _is_dense(elements, (source, acc)) or len(lines) > 1:
            layouts = pack_layout(lines, 2) + pack_layout(elements, 2)
            return policy.strided(source, acc), layouts
        strides = lines[0][1] if lines else (0, 0)
        # A reversed scan walks down from the end of a line.
        ends = num_items * source.itemsize, num_items * acc.itemsize
        starts = (view.ptr & 15) | strides[0], out_alignment | strides[1]
        if call.is_reverse:
            starts = starts[0] | ends[0], starts[1] | ends[1]
        access = policy.flat(source, acc, starts, call.is_reverse)
        return access, struct.pack("<qqq", *strides, num_items)

    def launch(
        self, stream: int, init: np.ndarray[Any, Any] | None, init_address: int, source: int,
        target: int,
    ) -> None:  # fmt: skip
        """Queue the scan of the array at `source` into `target`."""
        if driver.is_simple:
            self._queue(stream, init, init_address, source, target)
            return
        with driver.current_device(self.device):  # stream 0 is the current device's
            self._queue(stream, init, init_address, source, target)

    def _queue(
        self, stream: int, init: np.ndarray[Any, Any] | None, init_address: int, source: int,
        target: int,
    ) -> None:  # fmt: skip
        value, given = (b"", 0) if init is None else (init.tobytes(), 1)
        head = (value, given, init_address, source + self._input_start,
                target + self._output_start)  # fmt: skip
        states = memory.kept_states(self.device, stream, self.temp_storage_bytes)
        if states:
            self._launch(stream, *head, states)
            return
        with memory.own_states(self.device, stream, self.temp_storage_bytes) as states:
            self._launch(stream, *head, states)


def _canonical(
    call: Any, view: View, out_strides: tuple[int, ...] | None
) -> tuple[Dims, Dims]:
    """Return the dimensions of a line and those of all lines, each with two byte strides."""
    shape = call.shape
    if out_strides is None or len(out_strides) != len(shape):  # new, or flattened
        step = call.acc.itemsize if out_strides is None else out_strides[0]
        strides = []
        for extent in reversed(shape):
            strides.append(step)
            step *= extent
        out_strides = tuple(reversed(strides))
    dims = [
        (extent, pair)
        for extent, pair in zip(shape, zip(view.strides, out_strides, strict=True), strict=True)
    ]
    if call.axis is None:
        return merge(dims), []
    line = [dims.pop(call.axis)]
    return merge(line), merge(dims)


def _is_dense(elements: Dims, dtypes: tuple[np.dtype[Any], np.dtype[Any]]) -> bool:
    """Return whether input and output have no gaps between a line's elements."""
    if not elements:
        return True
    return len(elements) == 1 and elements[0][1] == (dtypes[0].itemsize, dtypes[1].itemsize)
