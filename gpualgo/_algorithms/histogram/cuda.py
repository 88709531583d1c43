"""Histogram on the GPU: canonical layout, kernel, joint counters, launch."""

from __future__ import annotations

import math
import struct
import weakref
from typing import Any

from gpualgo._algorithms.histogram import policy
from gpualgo._algorithms.histogram.cuda_bins import DeviceBins, device_bins
from gpualgo._arrays.view import View
from gpualgo._base import recording
from gpualgo._base.extents import Dims, merge
from gpualgo._cuda import build
from gpualgo._cuda.launch import Launch
from gpualgo._cuda.layout import DIVISOR, divisor, pack_layout
from gpualgo._driver import driver, workspace

_WHERE = "histogram"
_HEAD = struct.Struct("<QQQQ")  # HistogramCommon: input, output, counters, tickets
_WRITE_ROWS, _JOIN_ROWS, _ADD_TO_ROWS = range(3)  # HistogramResult
_TICKETS_BYTES = 4 << 10  # of the kept tickets; what follows holds joint counters
_MAX_SLOTS = (1 << 31) - 1  # of a block, which numbers them in 32 bits
_COUNTER_BYTES = 8  # of joint counters that are not the result


def run(call: Any, view: View, out: View, stream: int) -> None:
    """Count a device array of at least one sample into out; does not wait."""
    plan = call.plans.get(out.strides)
    if view.ptr % view.dtype.itemsize or out.ptr % out.dtype.itemsize:
        raise _misaligned(view, out)
    if plan is None:
        plan = call.plans[out.strides] = Plan(call, view, out.strides)
    plan.launch(stream, view.ptr, out.ptr)


def _misaligned(view: View, out: View) -> ValueError:
    name, place = ("x", view) if view.ptr % view.dtype.itemsize else ("out", out)
    return ValueError(
        f"{_WHERE}: {name} starts at address {place.ptr:#x}, which is not a multiple of its item "
        f"size {place.dtype.itemsize}; copy it to aligned memory"
    )


def machine_of(device: int) -> policy.Machine:
    """Return what the cut depends on."""
    return policy.Machine(
        driver.num_sms(device), driver.shared_limit(device), driver.capability(device)
    )


class Plan:
    """A kernel, its grid and its packed parameters, for one layout."""

    __slots__ = ("__weakref__", "_has_table", "_input_start", "_is_kept", "_launch",
                 "_num_counters", "_out_bytes", "_result", "device",
                 "temp_storage_bytes")  # fmt: skip

    def __init__(
        self, call: Any, view: View, out_strides: tuple[int, ...], is_result_on_host: bool = False
    ) -> None:
        self.device = view.device
        self._input_start, samples, kept = _canonical(call, view, out_strides)
        machine = machine_of(view.device)
        bins = device_bins(call.bins, machine.capability)
        size = view.dtype.itemsize
        num_places = math.prod(extent for extent, _ in kept)
        num_samples = math.prod(extent for extent, _ in samples)
        channels = _flat_channels(samples, kept, size)
        if channels * bins.table_bins > _MAX_SLOTS:
            channels = 0
        if channels and num_samples < policy.SHORT_ROW and num_places > 4 * machine.num_sms:
            channels = 0 if policy.channels_of_block(machine, bins, num_places) > 1 else channels
        if channels:
            cut = policy.cut(
                machine, bins, channels, num_places // channels, num_samples * channels, size
            )
            spec = policy.flat_spec(machine, view.dtype, bins, cut)
            work = struct.pack("<q", num_samples * channels)
        else:
            group = 1
            if _is_side_by_side(samples, kept) or num_samples < policy.SHORT_ROW:
                group = policy.channels_of_block(machine, bins, num_places)
            cut = policy.cut(machine, bins, group, -(-num_places // group), num_samples * group)
            spec = policy.strided_spec(machine, view.dtype, bins, cut)
            work = struct.pack("<qqq", num_samples, num_places, group) + pack_layout(samples, 1)
        self._choose_result(call, cut, num_places, None if is_result_on_host else out_strides)
        tail = self._pack_common(call, bins, cut, kept, out_strides) + work
        self._has_table = bool(bins.table)
        tail += bins.pack(self._upload(bins.table) if bins.table else 0)
        self._launch = Launch(
            build.kernel(spec, self.device), cut.num_blocks, cut.policy.block_threads, _HEAD, tail,
            self.device, cut.shared_bytes(bins),
        )  # fmt: skip

    def _choose_result(
        self, call: Any, cut: policy.Cut, num_places: int, out_strides: tuple[int, ...] | None
    ) -> None:
        """Decide how blocks join: in the kept tickets, in the result, or in memory of the call.

        Never in a result of other strides, nor in one on the host (None), which is far for atomics.
        """
        self._num_counters = num_places * call.num_bins
        self._out_bytes = self._num_counters * call.dtype.itemsize
        fits = self._num_counters * _COUNTER_BYTES <= workspace.TICKET_BYTES - _TICKETS_BYTES
        fits = fits and cut.num_rows * 4 <= _TICKETS_BYTES
        is_dense = out_strides == call.strides and call.dtype.itemsize >= 4
        self.temp_storage_bytes, self._is_kept = 0, fits
        if cut.parts == 1 and cut.table == policy.REPLICATED:
            self._result = _WRITE_ROWS
        elif is_dense and not fits:
            self._result = _ADD_TO_ROWS
        else:
            self._result = _JOIN_ROWS
            tickets = _TICKETS_BYTES if fits else workspace.aligned(cut.num_rows * 4)
            self.temp_storage_bytes = tickets + self._num_counters * _COUNTER_BYTES

    def _pack_common(
        self, call: Any, bins: DeviceBins, cut: policy.Cut, kept: Dims,
        out_strides: tuple[int, ...],
    ) -> bytes:  # fmt: skip
        size = call.dtype.itemsize
        counter_bytes = size if self._result == _ADD_TO_ROWS else _COUNTER_BYTES
        slots = cut.channels * bins.table_bins
        return struct.pack(
            f"<8q{DIVISOR}", counter_bytes, self._result, call.num_bins, size, out_strides[-1],
            slots, cut.replicas, cut.words, *divisor(cut.parts),
        ) + pack_layout(kept, 2)  # fmt: skip

    def _upload(self, table: bytes) -> int:
        """Return where a copy of table lies on the device, for as long as this plan lives."""
        address = _upload(table, self.device)
        weakref.finalize(self, _discard, address, self.device).atexit = False
        return address

    def launch(self, stream: int, source: int, target: int) -> None:
        """Queue the histogram of the array at `source` into `target`."""
        if driver.is_simple:
            self._queue(stream, source, target)
            return
        with driver.current_device(self.device):  # stream 0 is the current device's
            self._queue(stream, source, target)

    def _queue(self, stream: int, source: int, target: int) -> None:
        source += self._input_start
        if self._has_table and driver.is_capturing(stream):
            recording.keep_alive(self)
        if self._result == _WRITE_ROWS:
            self._launch(stream, source, target, 0, 0)
        elif self._result == _ADD_TO_ROWS:
            workspace.clear(target, self._out_bytes, stream)
            self._launch(stream, source, target, target, 0)
        else:
            size = self.temp_storage_bytes
            counters = size - self._num_counters * _COUNTER_BYTES  # from the tickets on
            tickets = workspace.kept_workspace(self.device, stream, 0) if self._is_kept else 0
            if tickets:
                self._launch(stream, source, target, tickets + counters, tickets)
                return
            with workspace.own_states(self.device, stream, size) as tickets:
                self._launch(stream, source, target, tickets + counters, tickets)


def _upload(data: bytes, device: int) -> int:
    """Return the address of a copy of data that every stream may read."""
    api = driver.api()
    with driver.outside_capture(device):
        address = int(driver.check(api.cuMemAlloc(len(data)), f"allocating {len(data)} bytes"))
        driver.write(address, data)
    return address


def _discard(address: int, device: int) -> None:
    """Free what `_upload` returned, once no kernel reads it."""
    with driver.outside_capture(device):
        driver.api().cuMemFree(address)


def _canonical(call: Any, view: View, out_strides: tuple[int, ...]) -> tuple[int, Dims, Dims]:
    """Return the byte offset of the first sample, and the dimensions counted over and kept.

    Samples may be taken in any order: strides are made positive and sorted.
    """
    start = 0
    counted = []
    for axis in call.axes:
        extent, stride = view.shape[axis], view.strides[axis]
        if stride < 0:
            start += (extent - 1) * stride
            stride = -stride
        counted.append((extent, (stride,)))
    counted.sort(key=lambda dim: -dim[1][0])
    places = [i for i in range(len(view.shape)) if i not in call.axes]
    kept = [
        (view.shape[i], (view.strides[i], out))
        for i, out in zip(places, out_strides[:-1], strict=True)
    ]
    return start, merge(counted), merge(kept)


def _flat_channels(samples: Dims, kept: Dims, size: int) -> int:
    """Return how many histograms' samples alternate in rows without gaps; 0 if rows have gaps."""
    if len(samples) > 1:
        return 0
    if not samples or samples[0][1][0] == size:
        return 1
    if kept and kept[-1][1][0] == size:
        channels = kept[-1][0]
        if channels <= policy.MAX_CHANNELS and samples[0][1][0] == channels * size:
            return channels
    return 0


def _is_side_by_side(samples: Dims, kept: Dims) -> bool:
    """Return whether neighbouring histograms' samples lie closer than those of one."""
    return bool(kept and samples) and abs(kept[-1][1][0]) < samples[-1][1][0]
