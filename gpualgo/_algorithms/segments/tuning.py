"""Kernel parameters and tuning table of reductions and scans of segments."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gpualgo._base import dtypes, records
from gpualgo._base.records import Source
from gpualgo._cuda.build import Spec
from gpualgo._cuda.parameters import I64, POINTER, Parameters, init
from gpualgo._cuda.templates import VECTOR_BYTES, WARP, Access, functor, spec_of
from gpualgo._operators.operator import Operator

# --- Parameter structs of the kernels of segments (segments/reduce.cuh, starts.cuh and scan.cuh).

Dtype = np.dtype[Any]

HEADS_PARAMS = Parameters(
    "SegmentHeadsParams",
    offsets=POINTER, heads=POINTER, bounds=POINTER, num_items=I64, num_offsets=I64,
    offset_step=I64,
)  # fmt: skip


@cache
def reduce_params(source: Source, acc: Dtype, access: Parameters) -> Parameters:
    inputs, outputs = len(records.field_dtypes(source)), len(records.field_dtypes(acc))
    return Parameters(
        "SegmentsParams",
        init=init(acc.itemsize), input=POINTER[inputs], offsets=POINTER, output=POINTER[outputs],
        list=POINTER, chunks=POINTER, partials=POINTER, num_items=I64, num_segments=I64,
        offset_step=I64, per_warp=I64, long_items=I64, chunk_bits=I64, capacity=I64, is_start=I64,
        output_steps=I64[outputs], access=access,
    )  # fmt: skip


@cache
def starts_params(acc: Dtype) -> Parameters:
    count = len(records.field_dtypes(acc))
    return Parameters(
        "SegmentStartsParams",
        starts=POINTER[count], offsets=POINTER, output=POINTER[count], num_items=I64,
        num_segments=I64, offset_step=I64, start_steps=I64[count], output_steps=I64[count],
    )  # fmt: skip


@cache
def scan_params(source: Source, acc: Dtype, access: Parameters) -> Parameters:
    inputs, outputs = len(records.field_dtypes(source)), len(records.field_dtypes(acc))
    return Parameters(
        "SegmentScanParams",
        init=init(acc.itemsize), input=POINTER[inputs], output=POINTER[outputs],
        starts=POINTER[outputs], offsets=POINTER, heads=POINTER, bounds=POINTER, states=POINTER,
        num_items=I64, num_tiles=I64, num_words=I64, num_segments=I64, offset_step=I64,
        start_steps=I64[outputs], output_steps=I64[outputs], access=access,
    )  # fmt: skip


# --- Tuning table of segments on a GPU: kernels, template arguments, tilings.
#
# Tilings depend on lengths and dtypes only, never on the GPU, so that results have the same bits.

# Reductions. Not measured on a GPU yet.
BLOCK_THREADS = 256
ROW_BYTES = 32  # bytes of elements that a lane loads before it combines them
MOST_ROWS = 8
STAGE_ITEMS, STAGE_BYTES = 32, 128  # per lane, in shared memory
JOIN_SHARED = 64  # partials and indices in Joining
BLOCKS_PER_SM = 8  # of the kernels that process the list of chunks
WARP_ITEMS = 1024  # elements of a warp's segments of mean length
LEAST_LONG, LONG_PER_WARP = 512, 1 << 14  # longer segments are cut into chunks
CHUNK_BITS, MOST_CHUNKS = 12, 1 << 15  # log2 of a chunk's least elements; chunks per segment
CHUNK_BYTES = 32  # bytes of an entry in the list of chunks

# Scans. Not measured on a GPU yet.
SCAN_THREADS, SCAN_BLOCKS_PER_SM = 256, 3
SCAN_BYTES, MOST_SCAN_ITEMS = 32, 8  # per thread
WINDOW_BYTES, MOST_WINDOW = 32, 8  # bytes of values whose states a lane reads at once


@dataclass(frozen=True)
class Policy:
    """Template arguments of the kernels of a reduction (SegmentsPolicy)."""

    rows: int
    stage_items: int
    itemsize: int
    overlaps: bool  # a kernel may start while the previous one runs (sm_90)

    @property
    def shared_bytes(self) -> int:
        """Size of Shared; the kernel checks it."""
        size = (self.stage_items * WARP + self.stage_items) * self.itemsize
        return _round_up(BLOCK_THREADS // WARP * size, VECTOR_BYTES)

    @property
    def joining_bytes(self) -> int:
        """Upper bound on the size of Joining."""
        return _round_up(JOIN_SHARED * (self.itemsize + 8), VECTOR_BYTES) + 4 * VECTOR_BYTES

    @property
    def cpp(self) -> str:
        sizes = BLOCK_THREADS, self.rows, self.stage_items, self.shared_bytes
        flag = str(self.overlaps).lower()
        return f"gpualgo::SegmentsPolicy<{', '.join(map(str, sizes))}, {flag}>"


def policy_of(acc: Dtype, overlaps: bool) -> Policy:
    rows = _pow2(ROW_BYTES // acc.itemsize, MOST_ROWS)
    return Policy(rows, _pow2(STAGE_BYTES // acc.itemsize, STAGE_ITEMS), acc.itemsize, overlaps)


class Cut(NamedTuple):
    """Tiling of segments."""

    per_warp: int
    long_items: int
    chunk_bits: int
    capacity: int  # upper bound on the number of chunks


def cut_of(num_items: int, num_segments: int) -> Cut:
    """Return the tiling of elements and segments, of which there is at least one."""
    mean = max(1, num_items // num_segments)
    per_warp = _pow2(WARP_ITEMS // mean, WARP)
    chunk_bits = max(CHUNK_BITS, (-(-num_items // MOST_CHUNKS) - 1).bit_length())
    long_items = min(1 << chunk_bits, max(LEAST_LONG, LONG_PER_WARP // per_warp))
    capacity = num_items // long_items + (num_items >> chunk_bits) + 1
    return Cut(per_warp, long_items, chunk_bits, capacity)


def reduce_specs(
    op: Operator, source: records.Source, acc: Dtype, index: Dtype, access: Access, policy: Policy
) -> list[Spec]:
    """Return the kernels of a reduction, in launch order."""
    types = (
        policy.cpp, functor(op, (acc, acc), acc), records.cpp_name(acc), records.cpp_name(source),
        dtypes.cpp_name(index), access.cpp,
    )  # fmt: skip
    params = reduce_params(source, acc, access.fields)
    return [
        _spec("reduce.cuh", f"segments_{kind}_kernel", types, params, op, acc, source)
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
        """Upper bound on the size of Shared; the kernel checks it."""
        tile = self.tile_items
        values = tile + tile // WARP + self.window * WARP + self.block_threads // WARP + 1
        numbers = 8 * self.block_threads // WARP + 8 * VECTOR_BYTES
        return _round_up(values * self.itemsize, VECTOR_BYTES) + numbers

    @property
    def cpp(self) -> str:
        sizes = (
            self.block_threads, self.items, self.window, SCAN_BLOCKS_PER_SM, self.shared_bytes,
        )  # fmt: skip
        return f"gpualgo::SegmentScanPolicy<{', '.join(map(str, sizes))}>"


def scan_policy_of(acc: Dtype, limit: int) -> ScanPolicy:
    """Return the policy of a scan, given the limit of shared memory in bytes."""
    items = _pow2(SCAN_BYTES // acc.itemsize, MOST_SCAN_ITEMS)
    # fewer for small values, to save registers
    most_window = MOST_WINDOW if acc.itemsize >= 4 else MOST_WINDOW // 2
    window = _pow2(WINDOW_BYTES // acc.itemsize, most_window)
    threads = SCAN_THREADS
    while (policy := ScanPolicy(threads, items, window, acc.itemsize)).shared_bytes > limit:
        threads //= 2
    return policy


def scan_spec(
    op: Operator, source: records.Source, acc: Dtype, access: Access, policy: ScanPolicy,
    is_exclusive: bool, index: Dtype | None,
) -> Spec:  # fmt: skip
    """Return the kernel of a scan; `index` is the offsets' dtype, None without array init."""
    types = (
        policy.cpp, str(is_exclusive).lower(), functor(op, (acc, acc), acc),
        records.cpp_name(acc), records.cpp_name(source),
        "gpualgo::NoStarts" if index is None else dtypes.cpp_name(index), access.cpp,
    )  # fmt: skip
    params = scan_params(source, acc, access.fields)
    return _spec("scan.cuh", "segment_scan_kernel", types, params, op, acc, source)


def heads_spec(index: Dtype) -> Spec:
    """Return the kernel that marks segment starts."""
    name = f"gpualgo::segment_heads_kernel<{dtypes.cpp_name(index)}, {BLOCK_THREADS}>"
    return Spec("segments/heads.cuh", name, HEADS_PARAMS)


def starts_spec(op: Operator, acc: Dtype, index: Dtype) -> Spec:
    """Return the kernel that combines initial values with the segments' results."""
    types = (
        str(BLOCK_THREADS), functor(op, (acc, acc), acc), records.cpp_name(acc),
        dtypes.cpp_name(index),
    )  # fmt: skip
    params = starts_params(acc)
    return _spec("starts.cuh", "segment_starts_kernel", types, params, op, acc, acc)


def _spec(
    header: str, kernel: str, types: tuple[str, ...], params: Parameters, op: Operator, acc: Dtype,
    source: records.Source,
) -> Spec:  # fmt: skip
    expression = f"gpualgo::{kernel}<{', '.join(types)}>"
    return spec_of(f"segments/{header}", expression, params, op, acc, source)


def _round_up(number: int, step: int) -> int:
    return -(-number // step) * step


def _pow2(number: int, limit: int) -> int:
    """Return the largest power of two that exceeds neither `number` nor `limit`."""
    return min(limit, 1 << max(1, number).bit_length() - 1)
