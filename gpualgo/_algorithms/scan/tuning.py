"""Kernel parameters and tuning table of scans."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from gpualgo._base import records
from gpualgo._base.records import Element
from gpualgo._cuda.build import Spec
from gpualgo._cuda.parameters import I64, POINTER, U32, Parameters, init
from gpualgo._cuda.templates import DIVISOR, VECTOR_BYTES, WARP, Access, functor, layout, spec_of
from gpualgo._operators.operator import Operator

# --- Parameter structs of the scan kernels (scan/*.cuh).

Dtype = np.dtype[Any]

_SMALL_DIVISOR = Parameters(
    "SmallDivisor", lambda value: (value, -(-(1 << 31) // value)), value=U32, magic=U32
)
FLAT_LINES_PARAMS = Parameters("FlatLines", input_stride=I64, output_stride=I64, num_items=I64)
STRIDED_LINES_PARAMS = Parameters("StridedLines", lines=layout(2), elements=layout(2))
DENSE_ROWS_PARAMS = Parameters("DenseRows", strides=I64[2])


def both_fields(acc: Dtype) -> int:
    """Return the number of fields of an element in input and output together."""
    return 2 * len(records.field_dtypes(acc))


@cache
def stepped_lines_params(both: int) -> Parameters:
    return Parameters("SteppedLines", steps=I64[both], lines=layout(both))


@cache
def apart_lines_params(both: int) -> Parameters:
    return Parameters("ApartLines", lines=layout(both))


@cache
def winding_line_params(both: int) -> Parameters:
    return Parameters("WindingLine", elements=layout(both))


@cache
def spaced_rows_params(both: int) -> Parameters:
    return Parameters("SpacedRows", strides=I64[both], lines=layout(both))


@cache
def computed_lines_params(inputs: int, outputs: int) -> Parameters:
    both = inputs + outputs
    return Parameters("ComputedLines", steps=I64[both], lines=layout(both))


@cache
def _common(acc: Dtype, source: Element | None = None) -> Parameters:
    """Return ScanCommon<A, T>; without `source`, inputs have as many fields as `acc`."""
    leaves = len(records.field_dtypes(acc))
    inputs = leaves if source is None else len(records.field_dtypes(source))
    return Parameters(
        "ScanCommon",
        init=init(acc.itemsize), init_address=POINTER, input=POINTER[inputs],
        output=POINTER[leaves], states=POINTER,
    )  # fmt: skip


@cache
def walks_params(acc: Dtype) -> Parameters:
    both = both_fields(acc)
    return Parameters(
        "ScanWalksParams",
        common=_common(acc), num_rows=I64, num_walks=I64, row_strides=I64[both],
        walks=layout(both),
    )  # fmt: skip


@cache
def columns_params(acc: Dtype) -> Parameters:
    both = both_fields(acc)
    return Parameters(
        "ScanColumnsParams",
        common=_common(acc), num_rows=I64, num_tiles=I64, num_chunks=I64, num_words=I64,
        segments=I64, is_flipped=I64, row_strides=I64[both], column_strides=I64[both],
        num_columns=DIVISOR, tiles_per_chunk=DIVISOR, num_strips=DIVISOR, batches=layout(both),
    )  # fmt: skip


@cache
def tiles_params(acc: Dtype, access: Parameters, source: Element) -> Parameters:
    return Parameters(
        "ScanTilesParams",
        common=_common(acc, source), num_tiles=I64, num_items=I64, num_words=I64,
        tiles_per_line=DIVISOR, access=access,
    )  # fmt: skip


@cache
def rows_params(acc: Dtype, access: Parameters) -> Parameters:
    return Parameters(
        "ScanRowsParams",
        common=_common(acc), num_lines=I64, num_items=I64, in_units=_SMALL_DIVISOR,
        out_units=_SMALL_DIVISOR, access=access,
    )  # fmt: skip


# --- Tuning table of scans: kernels, template arguments, tile sizes.
#
# Tiles depend on lengths and dtypes only, never on the GPU, so that results have the same bits.


def vector_items(widest: int) -> int:
    """Return how many elements of `widest` bytes a vector has (Stretch of scan/stretch.cuh)."""
    return 1 << max(1, VECTOR_BYTES // widest).bit_length() - 1


WINDOW = 2 * WARP  # tile aggregates that a warp reads at once


def unused_result(acc: Dtype) -> int:
    """Return the shared memory for results when they share their elements' memory."""
    return acc.itemsize if records.is_record(acc) else 0  # for numbers the padding covers it


@dataclass(frozen=True)
class Policy:
    """Template arguments of scan_tiles_kernel (ScanPolicy of scan/tiles.cuh)."""

    block_threads: int
    vectors: int  # of 16 bytes per thread and tile; odd, to avoid bank conflicts
    blocks_per_sm: int
    stages: int = 3  # tiles in shared memory

    def lane_items(self, widest: int) -> int:
        """Return how many elements of a tile each thread scans."""
        return self.vectors * vector_items(widest)

    def tile_items(self, widest: int) -> int:
        return self.block_threads * self.lane_items(widest)

    def shared_bytes(self, source: Element, acc: np.dtype[Any]) -> int:
        """Return the size of ScanShared with padding; scan/tiles.cuh checks it."""
        items = self.tile_items(max(source.itemsize, acc.itemsize))
        results = 0 if source.itemsize == acc.itemsize else items * acc.itemsize
        warps = self.block_threads // WARP
        values = 2 * WINDOW + self.stages * self.block_threads + warps + self.stages + 1
        remaining = values * acc.itemsize + 8 * self.stages * warps + 112 + unused_result(acc)
        return int(self.stages * items * source.itemsize + results + remaining)

    def fitting(self, source: Element, acc: np.dtype[Any], limit: int) -> Policy:
        """Return this policy with as many stages as fit into `limit` bytes of shared memory."""
        policy = self
        while policy.stages > 1 and policy.shared_bytes(source, acc) > limit:
            policy = replace(policy, stages=policy.stages - 1)
        return policy


# GB/s at 2^28 on an H200. The stages of two blocks fill shared memory.
LARGE = Policy(256, 9, 2)  # 3870 (float32)
LARGE_WIDE = Policy(192, 11, 2)  # 8 bytes and more: 3740 (float64)


@dataclass(frozen=True)
class WavePolicy:
    """Template arguments of scan_wave_kernel (ScanWavePolicy of scan/wave.cuh)."""

    block_threads: int
    rows: int  # per warp: each 32 vectors of 16 bytes
    blocks_per_sm: int

    def tile_items(self, widest: int) -> int:
        return self.block_threads * self.rows * vector_items(widest)


# Upper bound on the bytes of all lines: these kernels keep all elements in registers.
WAVES = {
    512 << 10: WavePolicy(256, 2, 1),
    2 << 20: WavePolicy(256, 4, 1),
    16 << 20: WavePolicy(512, 4, 2),
}
# Used instead of the last for dtypes of which two blocks do not fit in registers.
WIDE_WAVE, WIDE_WAVE_BYTES = WavePolicy(512, 4, 1), 8 << 20


def tiles_policy(num_bytes: int, widest: int) -> Policy | WavePolicy:
    """Return the policy for few long lines with `num_bytes` bytes in the wider dtype."""
    for limit, wave in WAVES.items():
        if num_bytes > limit:
            continue
        if widest in (4, 8) or wave.blocks_per_sm == 1:
            return wave
        if num_bytes <= WIDE_WAVE_BYTES:
            return WIDE_WAVE
    return LARGE if widest <= 4 else LARGE_WIDE


# Wide records: fewer threads per block, with about as many bytes per stage. The stages of narrow
# records are those of numbers. Prefixes are computed serially, so few tiles are faster.
WIDE_RECORD, STAGE_BYTES, SHARED_BYTES = 32, 27 << 10, 113 << 10
NARROW_STAGE_BYTES = 36 << 10
WAVE_BYTES = 2 << 20  # limit for records of more than a vector
WAVE_REGISTERS = 64  # bytes of a thread's elements


def records_policy(num_bytes: int, source: Element, acc: Dtype) -> Policy | WavePolicy:
    """Return the policy for few long lines of records with `num_bytes` bytes in the wider dtype."""
    widest = max(source.itemsize, acc.itemsize)
    if widest <= VECTOR_BYTES:
        policy = tiles_policy(num_bytes, widest)
        if isinstance(policy, WavePolicy):
            return WIDE_WAVE if policy.blocks_per_sm > 1 else policy
        warps = NARROW_STAGE_BYTES // (policy.lane_items(widest) * widest * WARP)
        policy = replace(policy, block_threads=min(LARGE.block_threads, warps * WARP))
    elif num_bytes <= WAVE_BYTES:
        return WavePolicy(256, min(2, max(1, WAVE_REGISTERS // widest)), 1)
    else:
        threads = 128 if widest <= WIDE_RECORD else 64
        policy = Policy(threads, (STAGE_BYTES // (threads * widest) - 1) | 1, 2)
    fits = policy.shared_bytes(source, acc) <= SHARED_BYTES
    return policy if fits else replace(policy, blocks_per_sm=1)


def policy_of(num_bytes: int, source: Element, acc: Dtype) -> Policy | WavePolicy:
    """Return the policy for few long lines with `num_bytes` bytes in the wider dtype."""
    if records.is_record(acc):
        return records_policy(num_bytes, source, acc)
    return tiles_policy(num_bytes, max(source.itemsize, acc.itemsize))


def transfer(capability: tuple[int, int], source: Element, acc: Dtype, access: Access) -> str:
    """Return how elements are copied to shared memory (Transfer of scan/lines.cuh)."""
    if capability < (8, 0) or isinstance(source, records.Computed):
        return "direct"
    by_numbers = records.is_record(acc) and not access.in_bytes
    return "asynchronous" if capability < (9, 0) or by_numbers else "bulk"


def flat(source: np.dtype[Any], acc: np.dtype[Any], alignments: tuple[int, int], is_reversed: bool
) -> Access:  # fmt: skip
    """Return the access to contiguous lines; `alignments` of input and output are in bytes."""
    types = f"{records.cpp_name(acc)}, {records.cpp_name(source)}"
    widths = [
        VECTOR_BYTES if alignment % VECTOR_BYTES == 0 else dtype.itemsize
        for alignment, dtype in zip(alignments, (source, acc), strict=True)
    ]
    cpp = f"gpualgo::FlatLines<{types}, {widths[0]}, {widths[1]}, {str(is_reversed).lower()}>"
    return Access(cpp, FLAT_LINES_PARAMS)


def strided(source: np.dtype[Any], acc: np.dtype[Any]) -> Access:
    cpp = f"gpualgo::StridedLines<{records.cpp_name(acc)}, {records.cpp_name(source)}>"
    return Access(cpp, STRIDED_LINES_PARAMS)


def stepped(source: Dtype, acc: Dtype, reads: bool = False, writes: bool = False) -> Access:
    """Return the access to lines of records at a constant stride.

    `reads`, `writes`: records are copied whole, with the bytes they have in memory.
    """
    flags = f", {str(reads).lower()}, {str(writes).lower()}" if reads or writes else ""
    cpp = f"gpualgo::SteppedLines<{records.cpp_name(acc)}, {records.cpp_name(source)}{flags}>"
    return Access(cpp, stepped_lines_params(both_fields(acc)), in_bytes=reads)


def apart(source: Dtype, acc: Dtype) -> Access:
    """Return the access to lines of records whose fields are contiguous and vector-aligned."""
    cpp = f"gpualgo::ApartLines<{records.cpp_name(acc)}, {records.cpp_name(source)}>"
    return Access(cpp, apart_lines_params(both_fields(acc)), in_bytes=True)


def computed(source: records.Computed, acc: Dtype) -> Access:
    """Return the access to lines of computed elements whose inputs have constant strides."""
    cpp = f"gpualgo::ComputedLines<{records.cpp_name(acc)}, {records.cpp_name(source)}>"
    counts = len(source.numbers), len(records.field_dtypes(acc))
    return Access(cpp, computed_lines_params(*counts))


def winding(source: Dtype, acc: Dtype) -> Access:
    """Return the access to one line of records of any strides."""
    cpp = f"gpualgo::WindingLine<{records.cpp_name(acc)}, {records.cpp_name(source)}>"
    return Access(cpp, winding_line_params(both_fields(acc)))


def tiles_spec(
    op: Operator, source: Element, acc: np.dtype[Any], access: Access, policy: Policy,
    is_exclusive: bool, capability: tuple[int, int],
) -> Spec:  # fmt: skip
    copy_mode = transfer(capability, source, acc, access)
    arguments = (
        policy.block_threads, policy.vectors, f"gpualgo::Transfer::{copy_mode}", policy.stages,
        policy.blocks_per_sm, policy.shared_bytes(source, acc),
    )  # fmt: skip
    kernel = f"scan_tiles_kernel<gpualgo::ScanPolicy<{', '.join(map(str, arguments))}>"
    return _spec("scan/tiles.cuh", kernel, op, source, acc, access, is_exclusive)


def wave_spec(
    op: Operator, source: Element, acc: np.dtype[Any], access: Access, policy: WavePolicy,
    is_exclusive: bool,
) -> Spec:  # fmt: skip
    """Return scan_wave_kernel, which scans few long lines that fit in registers."""
    arguments = policy.block_threads, policy.rows, policy.blocks_per_sm
    policy_type = f"gpualgo::ScanWavePolicy<{', '.join(map(str, arguments))}>"
    kernel = f"scan_wave_kernel<{policy_type}"
    return _spec("scan/wave.cuh", kernel, op, source, acc, access, is_exclusive)


def _spec(
    header: str, kernel: str, op: Operator, source: Element, acc: np.dtype[Any],
    access: Access, is_exclusive: bool,
) -> Spec:  # fmt: skip
    expression = (
        f"gpualgo::{kernel}, {str(is_exclusive).lower()}, {functor(op, (acc, acc), acc)}, "
        f"{records.cpp_name(acc)}, {records.cpp_name(source)}, {access.cpp}>"
    )
    params = tiles_params(acc, access.fields, source)
    return spec_of(header, expression, params, op, acc, source)
