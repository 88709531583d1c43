"""Sorting 8- and 16-bit integers without values on the GPU: count, then write."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from gpualgo._algorithms.histogram import policy
from gpualgo._algorithms.histogram.cuda import machine_of
from gpualgo._algorithms.histogram.cuda_bins import DeviceBins
from gpualgo._arrays.view import View
from gpualgo._base import dtypes
from gpualgo._cuda import build
from gpualgo._cuda.build import Spec
from gpualgo._cuda.launch import Launch
from gpualgo._cuda.layout import DIVISOR, divisor
from gpualgo._driver import driver
from gpualgo._driver import workspace as memory

_COUNT_HEAD = struct.Struct("<QQQQ")  # CountingSortCount: input, counters, offsets, ticket
_FILL_HEAD = struct.Struct("<QQ")  # CountingSortFill: output, offsets
_FILL = policy.Policy(512, 4, 4)
_TICKET_BYTES = 256  # what follows in the kept tickets holds the counters of 8-bit keys
_SCAN_WORDS = 64  # of shared memory that the last block needs for its scan, at least


_FEW_KEYS = {1: 1 << 18, 2: 1 << 21}  # by their bytes: so many are sorted faster digit by digit


def applies(dtype: np.dtype[Any], begin_bit: int, end_bit: int, num_items: int) -> bool:
    """Return whether so many keys, of which these bits decide, are best sorted by counting."""
    if dtype.kind not in "biu" or num_items <= _FEW_KEYS.get(dtype.itemsize, num_items):
        return False
    return begin_bit == 0 and end_bit == 8 * dtype.itemsize


class Plan:
    """Two kernels, their grids and packed parameters, for one length of gapless keys."""

    __slots__ = ("_clears", "_count", "_counter_bytes", "_fill", "_table_bytes", "device",
                 "temp_storage_bytes")  # fmt: skip

    def __init__(self, keys: View, out: View, num_items: int, descending: bool) -> None:
        self.device = keys.device
        for name, place in (("keys", keys), ("out", out)):
            if place.ptr % place.dtype.itemsize:
                raise ValueError(
                    f"radix_sort: {name} start at address {place.ptr:#x}, which is not a multiple "
                    f"of their item size {place.dtype.itemsize}; copy them to aligned memory"
                )
        dtype = keys.dtype
        machine = machine_of(self.device)
        cut = cut_keys(machine, dtype.itemsize, num_items)
        num_ranks = 1 << 8 * dtype.itemsize
        offset_bytes = 4 if num_items < 1 << 32 else 8
        self._counter_bytes = num_ranks * offset_bytes
        self._clears = dtype.itemsize > 1  # 8-bit keys have their counters among the kept tickets
        self._table_bytes = self._counter_bytes * (1 + self._clears) + offset_bytes
        self.temp_storage_bytes = memory.TICKET_BYTES + self._table_bytes
        work = struct.pack("<qq", num_items, flip_of(dtype, descending))
        count = count_spec(machine, dtype.itemsize, cut, offset_bytes)
        self._count = Launch(
            build.kernel(count, self.device), cut.parts, cut.policy.block_threads, _COUNT_HEAD,
            work + struct.pack(
                f"<qqq{DIVISOR}", num_ranks, cut.replicas, cut.words, *divisor(cut.parts)
            ), self.device,
            policy.SHARED_HEAD_BYTES + 4 * max(cut.words, _SCAN_WORDS),
        )  # fmt: skip
        items = policy.VECTOR_BYTES // dtype.itemsize
        tile = _FILL.block_threads * _FILL.loads * items
        fill = fill_spec(machine, dtype.itemsize, offset_bytes)
        self._fill = Launch(
            build.kernel(fill, self.device), -(-(num_items + items - 1) // tile),
            _FILL.block_threads, _FILL_HEAD, work, self.device,
        )  # fmt: skip

    def launch(self, stream: int, source: int, target: int) -> None:
        """Queue the sort of the keys at `source` into `target`, which may be the same."""
        if driver.is_simple:
            self._queue(stream, source, target)
            return
        with driver.current_device(self.device):  # stream 0 is the current device's
            self._queue(stream, source, target)

    def _queue(self, stream: int, source: int, target: int) -> None:
        with memory.kept_for_several(self.device, stream, self._table_bytes) as workspace:
            if workspace:
                self._queue_in(workspace, stream, source, target)
                return
        with memory.own_workspace(self.device, stream, self._table_bytes) as workspace:
            self._queue_in(workspace, stream, source, target)

    def _queue_in(self, workspace: int, stream: int, source: int, target: int) -> None:
        counters = workspace + _TICKET_BYTES
        offsets = workspace + memory.TICKET_BYTES
        if self._clears:
            counters, offsets = offsets, offsets + self._counter_bytes
            memory.clear(counters, self._counter_bytes, stream)
        self._count(stream, source, counters, offsets, workspace)
        self._fill(stream, target, offsets)


def flip_of(dtype: np.dtype[Any], descending: bool) -> int:
    """Return what makes a key's bits its rank, by exclusive or."""
    bits = 8 * dtype.itemsize
    sign = 1 << (bits - 1) if dtype.kind == "i" else 0
    return sign ^ ((1 << bits) - 1 if descending else 0)


def cut_keys(machine: policy.Machine, itemsize: int, num_items: int) -> policy.Cut:
    """Return how counting is shared out."""
    bins = DeviceBins(f"gpualgo::KeyBins<{_key(itemsize)}>", bytes, table_bins=1 << 8 * itemsize)
    return policy.cut(machine, bins, 1, 1, num_items, itemsize)


def _key(itemsize: int) -> str:
    return dtypes.cpp_name(np.dtype(f"u{itemsize}"))


def count_spec(machine: policy.Machine, itemsize: int, cut: policy.Cut, offset_bytes: int) -> Spec:
    """Return the kernel that counts."""
    return Spec(
        "radix_sort/counting.cuh",
        f"gpualgo::counting_sort_count_kernel<{cut.policy.cpp(machine.capability)}, "
        f"{_key(itemsize)}, {cut.table}, {_key(offset_bytes)}>",
    )


def fill_spec(machine: policy.Machine, itemsize: int, offset_bytes: int) -> Spec:
    """Return the kernel that writes."""
    return Spec(
        "radix_sort/counting.cuh",
        f"gpualgo::counting_sort_fill_kernel<{_FILL.cpp(machine.capability)}, {_key(itemsize)}, "
        f"{_key(offset_bytes)}>",
    )
