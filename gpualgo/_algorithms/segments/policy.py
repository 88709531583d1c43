"""Segments on a GPU: which kernels, which template arguments, how the work is cut. One table.

The cut depends on lengths and types alone, never on the GPU, so that neither do the bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpualgo._algorithms.segments import parameters
from gpualgo._base import dtypes, records
from gpualgo._cuda.build import Spec
from gpualgo._cuda.parameters import Parameters
from gpualgo._cuda.templates import VECTOR_BYTES, WARP, Access, functor, spec_of
from gpualgo._operators.operator import Operator

Dtype = np.dtype[Any]

# Reductions. Not measured on a GPU yet.
BLOCK_THREADS = 256
ROW_BYTES = 32  # of elements that a lane loads before it combines any
MOST_ROWS = 8
STAGE_ITEMS, STAGE_BYTES = 32, 128  # that a lane has in shared memory
JOIN_SHARED = 64  # partials and places in Joining
BLOCKS_PER_SM = 8  # of the kernels that take what is in the list
WARP_ITEMS = 1024  # of a warp's segments of mean length
LEAST_LONG, LONG_PER_WARP = 512, 1 << 14  # what is longer is cut into chunks
CHUNK_BITS, MOST_CHUNKS = 12, 1 << 15  # of elements of a chunk, at least; of a segment
CHUNK_BYTES = 32  # of an entry in the list

# Scans. Not measured on a GPU yet.
SCAN_THREADS, SCAN_BLOCKS_PER_SM = 256, 3
SCAN_BYTES, MOST_SCAN_ITEMS = 32, 8  # that a thread has
WINDOW_BYTES, MOST_WINDOW = 32, 8  # of values whose states a lane reads at once


@dataclass(frozen=True)
class Policy:
    """Template arguments of the kernels of a reduction (SegmentsPolicy)."""

    rows: int
    stage_items: int
    itemsize: int
    overlaps: bool  # kernels may be launched while the one before still runs (sm_90)

    @property
    def shared_bytes(self) -> int:
        """Return the size of Shared, which checks it."""
        size = (self.stage_items * WARP + self.stage_items) * self.itemsize
        return _up(BLOCK_THREADS // WARP * size, VECTOR_BYTES)

    @property
    def joining_bytes(self) -> int:
        """Return what Joining takes at most."""
        return _up(JOIN_SHARED * (self.itemsize + 8), VECTOR_BYTES) + 4 * VECTOR_BYTES

    @property
    def cpp(self) -> str:
        sizes = BLOCK_THREADS, self.rows, self.stage_items, self.shared_bytes
        flag = str(self.overlaps).lower()
        return f"gpualgo::SegmentsPolicy<{', '.join(map(str, sizes))}, {flag}>"


def policy_of(acc: Dtype, overlaps: bool) -> Policy:
    """Return the policy of a reduction."""
    rows = _power(ROW_BYTES // acc.itemsize, MOST_ROWS)
    return Policy(rows, _power(STAGE_BYTES // acc.itemsize, STAGE_ITEMS), acc.itemsize, overlaps)


class Cut(NamedTuple):
    """How segments are shared out."""

    per_warp: int
    long_items: int
    chunk_bits: int
    capacity: int  # chunks that segments apart can have


def cut_of(num_items: int, num_segments: int) -> Cut:
    """Return the cut of so many elements and segments, of which there are some."""
    mean = max(1, num_items // num_segments)
    per_warp = _power(WARP_ITEMS // mean, WARP)
    chunk_bits = max(CHUNK_BITS, (-(-num_items // MOST_CHUNKS) - 1).bit_length())
    long_items = min(1 << chunk_bits, max(LEAST_LONG, LONG_PER_WARP // per_warp))
    capacity = num_items // long_items + (num_items >> chunk_bits) + 1
    return Cut(per_warp, long_items, chunk_bits, capacity)


def reduce_specs(
    op: Operator, source: records.Source, acc: Dtype, index: Dtype, access: Access, policy: Policy
) -> list[Spec]:
    """Return the kernels of a reduction, in their order."""
    types = (
        policy.cpp, functor(op, (acc, acc), acc), records.cpp_name(acc), records.cpp_name(source),
        dtypes.cpp_name(index), access.cpp,
    )  # fmt: skip
    takes = parameters.reduce(source, acc, access.fields)
    return [
        _spec("reduce.cuh", f"segments_{kind}_kernel", types, takes, op, acc, source)
        for kind in ("short", "long", "join")
    ]


@dataclass(frozen=True)
class ScanPolicy:
    """Template arguments of segment_scan_kernel (SegmentScanPolicy)."""

    block_threads: int
    items: int
    window: int
    itemsize: int

    @property
    def tile_items(self) -> int:
        return self.block_threads * self.items

    @property
    def shared_bytes(self) -> int:
        """Return what Shared takes at most, which checks it."""
        tile = self.tile_items
        values = tile + tile // WARP + self.window * WARP + self.block_threads // WARP + 1
        numbers = 8 * self.block_threads // WARP + 8 * VECTOR_BYTES
        return _up(values * self.itemsize, VECTOR_BYTES) + numbers

    @property
    def cpp(self) -> str:
        sizes = (
            self.block_threads, self.items, self.window, SCAN_BLOCKS_PER_SM, self.shared_bytes,
        )  # fmt: skip
        return f"gpualgo::SegmentScanPolicy<{', '.join(map(str, sizes))}>"


def scan_policy_of(acc: Dtype, limit: int) -> ScanPolicy:
    """Return the policy of a scan where so many bytes of shared memory can be had."""
    items = _power(SCAN_BYTES // acc.itemsize, MOST_SCAN_ITEMS)
    most = MOST_WINDOW if acc.itemsize >= 4 else MOST_WINDOW // 2  # registers
    window = _power(WINDOW_BYTES // acc.itemsize, most)
    threads = SCAN_THREADS
    while (found := ScanPolicy(threads, items, window, acc.itemsize)).shared_bytes > limit:
        threads //= 2
    return found


def scan_spec(
    op: Operator, source: records.Source, acc: Dtype, access: Access, policy: ScanPolicy,
    is_exclusive: bool, index: Dtype | None,
) -> Spec:  # fmt: skip
    """Return the kernel of a scan; `index`: of offsets, where each segment has a start."""
    types = (
        policy.cpp, str(is_exclusive).lower(), functor(op, (acc, acc), acc),
        records.cpp_name(acc), records.cpp_name(source),
        "gpualgo::NoStarts" if index is None else dtypes.cpp_name(index), access.cpp,
    )  # fmt: skip
    takes = parameters.scan(source, acc, access.fields)
    return _spec("scan.cuh", "segment_scan_kernel", types, takes, op, acc, source)


def heads_spec(index: Dtype) -> Spec:
    """Return the kernel that marks where segments begin."""
    name = f"gpualgo::segment_heads_kernel<{dtypes.cpp_name(index)}, {BLOCK_THREADS}>"
    return Spec("segments/heads.cuh", name, parameters.HEADS)


def starts_spec(op: Operator, acc: Dtype, index: Dtype) -> Spec:
    """Return the kernel that puts starts before what segments come to."""
    types = (
        str(BLOCK_THREADS), functor(op, (acc, acc), acc), records.cpp_name(acc),
        dtypes.cpp_name(index),
    )  # fmt: skip
    takes = parameters.starts(acc)
    return _spec("starts.cuh", "segment_starts_kernel", types, takes, op, acc, acc)


def _spec(
    header: str, kernel: str, types: tuple[str, ...], takes: Parameters, op: Operator, acc: Dtype,
    source: records.Source,
) -> Spec:  # fmt: skip
    expression = f"gpualgo::{kernel}<{', '.join(types)}>"
    return spec_of(f"segments/{header}", expression, takes, op, acc, source)


def _up(number: int, step: int) -> int:
    return -(-number // step) * step


def _power(number: int, most: int) -> int:
    """Return the largest power of two that is neither above a number nor above another."""
    return min(most, 1 << max(1, number).bit_length() - 1)
