"""Tuning table of radix sorts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from gpualgo._algorithms.radix_sort.problem import (
    Descending,
    Dtype,
    Number,
    flipped_bits,
    numbers,
)
from gpualgo._base import dtypes
from gpualgo._cuda.build import Spec
from gpualgo._cuda.headers import cpp
from gpualgo._cuda.templates import WARP, kernel_spec

MAX_PASSES = 12  # max_passes of radix_sort/histogram.cuh
MAX_ROW_PASSES = 8  # max_row_passes of radix_sort/rows.cuh

# --- Tuning of the GPU radix sort: kernels, template arguments, tile sizes.

DIGIT_BITS = 8
NUM_DIGITS = 1 << DIGIT_BITS
TABLE_BYTES = 4 * NUM_DIGITS
RING = 2048  # most tile states of one pass


@dataclass(frozen=True)
class Policy:
    """Template arguments of radix_pass_kernel (RadixPolicy of radix_sort/passes.cuh)."""

    block_threads: int
    items: int  # keys per thread
    blocks_per_sm: int
    window: int = 8  # tile states that a thread reads at once
    prefetches: bool = False  # to L2, the next tile's keys while one is ranked (from sm_90 on)
    values_follow: bool = False  # values reuse the keys' shared memory instead of having their own
    joins: bool = False  # keys and values of one size as pairs, in shared memory and between passes

    @property
    def tile_items(self) -> int:
        return self.block_threads * self.items

    def shared_bytes(self, key_bytes: int, value_bytes: int, index_bytes: int = 8) -> int:
        """Return the size of RadixPass::Shared, which checks it."""
        tables = (self.block_threads // WARP + index_bytes // 4) * TABLE_BYTES
        in_turn = self.values_follow and value_bytes > 0
        moved = max(key_bytes, value_bytes) if in_turn else key_bytes + value_bytes
        moved *= self.tile_items
        return tables + -(-(moved + 112) // TABLE_BYTES) * TABLE_BYTES


# Keyed by the maximum bytes of a key and of its value. With fewer tiles, blocks wait less for each
# other's counts.
MIDDLE = {
    (4, 0): Policy(1024, 24, 1, 4),
    (4, 4): Policy(1024, 12, 1, 2),
    (4, 8): Policy(1024, 9, 1, 2),
    (4, 16): Policy(1024, 6, 1, 2),
    (8, 0): Policy(1024, 13, 1, 2),
    (8, 4): Policy(1024, 10, 1, 2),
    (8, 8): Policy(1024, 8, 1, 1),
    (8, 16): Policy(1024, 5, 1, 2),
}
# Above this many keys, tiles are larger. ms for 2^28 keys on an H200, with this table and with
# MIDDLE; in the same run, except 8-byte keys with values (two runs).
MIDDLE_KEYS = 1 << 24
LARGE = MIDDLE | {
    (4, 0): Policy(512, 80, 1, 4, prefetches=True),  # 3.77, 4.08
    (4, 4): Policy(512, 48, 1, 4, values_follow=True),  # 6.57, 7.44
    (4, 8): Policy(512, 32, 1, 2, values_follow=True),  # 8.75, 11.3
    (8, 4): Policy(512, 36, 1, 2, values_follow=True),  # 17.0, 22.0
    (8, 8): Policy(640, 22, 1, 1, values_follow=True),  # 21.0, 24.1
}
# Replaces LARGE where key and value have the same size. Not for 8 bytes: 22.7 ms, with LARGE 21.8.
JOINED = {
    4: Policy(512, 44, 1, 2, joins=True)  # 5.98, with LARGE 6.22
}
# Up to this many keys: small tiles, so that every multiprocessor gets some. us for uint32 at most.
SMALLER = {
    1 << 16: Policy(256, 6, 4),  # 27; 29 with (256, 4, 3)
    1 << 17: Policy(384, 8, 2),  # 30; 33 with (256, 4, 3)
    1 << 18: Policy(512, 8, 2),  # 38
    1 << 20: Policy(512, 16, 1, 16),  # 50
    1 << 22: Policy(512, 16, 2),  # 123
}
SMALLER_WIDE = 1 << 20  # the limit if a key and its value take more than 8 bytes


def pass_policy(
    num_keys: int, key_bytes: int, value_bytes: int, index_bytes: int, shared_limit: int
) -> Policy:
    value_size = next(size for size in (0, 4, 8, 16) if value_bytes <= size)
    table = LARGE if num_keys > MIDDLE_KEYS else MIDDLE
    large = table[(4 if key_bytes <= 4 else 8, value_size)]
    joined = JOINED.get(key_bytes) if table is LARGE and key_bytes == value_bytes else None
    if joined and joined.shared_bytes(key_bytes, value_bytes, index_bytes) <= shared_limit:
        large = joined
    policy = next((smaller for most, smaller in SMALLER.items() if num_keys <= most), large)
    if num_keys > SMALLER_WIDE and key_bytes + value_bytes > 8:
        policy = large
    while policy.shared_bytes(key_bytes, value_bytes, index_bytes) > shared_limit:
        if policy.items > 4:
            policy = replace(policy, items=policy.items // 2)
        else:  # fewer warps: each has its own table
            policy = replace(policy, block_threads=policy.block_threads // 2)
    return policy


@dataclass(frozen=True)
class HistogramPolicy:
    """Template arguments of radix_histogram_kernel (RadixHistogramPolicy)."""

    block_threads: int
    loads: int  # vectors of 16 bytes per thread
    replicas: int  # copies of the tables
    blocks_per_sm: int

    def shared_bytes(self, num_passes: int) -> int:
        return num_passes * TABLE_BYTES * self.replicas + 16


LARGE_HISTOGRAM = HistogramPolicy(1024, 4, 32, 1)
SMALL_HISTOGRAM = HistogramPolicy(512, 1, 4, 2)
SMALL_HISTOGRAM_BYTES = 8 << 20


def histogram_policy(num_bytes: int, num_passes: int, shared_limit: int) -> HistogramPolicy:
    policy = SMALL_HISTOGRAM if num_bytes <= SMALL_HISTOGRAM_BYTES else LARGE_HISTOGRAM
    while policy.shared_bytes(num_passes) > shared_limit:
        policy = replace(policy, replicas=policy.replicas // 2)
    return policy


@dataclass(frozen=True)
class RowPolicy:
    """Template arguments of sort_rows_kernel (BlockSortPolicy of radix_sort/rows.cuh)."""

    warps: int  # warps per row
    items: int  # keys per thread
    rows_per_block: int
    blocks_per_sm: int

    @property
    def block_threads(self) -> int:
        return self.warps * self.rows_per_block * WARP

    def shared_bytes(self, key_bytes: int, has_values: bool) -> int:
        """Return the size of the kernel's shared memory, which checks it."""
        items = self.warps * WARP * self.items
        row = self.warps * TABLE_BYTES + items * (key_bytes + 2 * has_values) + 64
        return self.rows_per_block * -(-row // TABLE_BYTES) * TABLE_BYTES


SMALL_ROW = 128  # most keys that lanes sort in registers
MAX_ROW_WARPS = 16
ROWS_PER_BLOCK = 4  # if one warp sorts a row
FEW_ROWS_ITEMS = 8
REGISTERS = 1 << 16  # registers of a multiprocessor


def row_policy(
    num_rows: int, row_items: int, key_bytes: int, value_bytes: int, sms: int, shared_limit: int
) -> RowPolicy | None:
    """Return the policy of sort_rows_kernel; None if rows are too long for a block."""
    items = 32 if key_bytes <= 4 else 16
    if value_bytes > 4:
        items = 16 if value_bytes <= 8 else 8
    per_thread = -(-row_items // WARP)
    if per_thread > items * MAX_ROW_WARPS:
        return None
    if per_thread <= items and num_rows >= sms:
        items, warps = power_of_two(per_thread), 1
    else:
        if num_rows < sms:  # each row has its own multiprocessor: use more warps
            least = power_of_two(-(-per_thread // MAX_ROW_WARPS))
            items = max(least, min(items, FEW_ROWS_ITEMS))
        warps = power_of_two(-(-per_thread // items))
    rows = ROWS_PER_BLOCK if warps == 1 else 1
    registers = 40 + items * (max(1, key_bytes // 4) + (value_bytes > 0))
    blocks = max(1, min(16, REGISTERS // (warps * rows * WARP * registers)))
    policy = RowPolicy(warps, items, rows, blocks)
    return policy if policy.shared_bytes(key_bytes, value_bytes > 0) <= shared_limit else None


def power_of_two(value: int) -> int:
    """Return the least power of two that is not less."""
    return 1 << max(0, value - 1).bit_length()


def word(itemsize: int) -> str:
    if itemsize == 0:
        return "gpualgo::NoValue"
    return "uint4" if itemsize == 16 else f"gpualgo::uint{8 * itemsize}"


@lru_cache(1024)
def histogram_spec(
    dtype: Dtype, descending: Descending, num_passes: int, index_bytes: int,
    policy: HistogramPolicy, overlaps: bool, finds_window: bool = False,
) -> Spec:  # fmt: skip
    sizes = policy.block_threads, policy.loads, policy.replicas
    tuned = cpp("RadixHistogramPolicy", *sizes, overlaps, finds_window)
    types = tuned, num_passes, order(dtype, descending), word(index_bytes)
    return kernel_spec("radix_sort/histogram.cuh", "radix_histogram_kernel", *types)


@lru_cache(1024)
def pass_spec(
    dtype: Dtype, descending: Descending, value_bytes: int, result_bytes: int, index_bytes: int,
    policy: Policy, has_rows: bool, overlaps: bool,
) -> Spec:  # fmt: skip
    """Return the kernel of a pass; `result_bytes`: size of the values that the last pass writes.

    `overlaps`: the kernel may start while the previous one still runs (sm_90).
    """
    tuned = cpp(
        "RadixPolicy", policy.block_threads, policy.items, policy.blocks_per_sm, policy.window,
        policy.shared_bytes(dtype.itemsize, value_bytes, index_bytes), policy.joins,
        policy.values_follow, policy.prefetches and overlaps, overlaps,
    )  # fmt: skip
    words = map(word, (value_bytes, result_bytes, index_bytes))
    types = tuned, has_rows, order(dtype, descending), *words
    return kernel_spec("radix_sort/passes.cuh", "radix_pass_kernel", *types)


@lru_cache(1024)
def rows_spec(dtype: Dtype, descending: Descending, value_bytes: int, policy: RowPolicy) -> Spec:
    tuned = cpp(
        "BlockSortPolicy", policy.warps, policy.items, policy.rows_per_block, policy.blocks_per_sm,
        policy.shared_bytes(dtype.itemsize, value_bytes > 0),
    )  # fmt: skip
    types = tuned, order(dtype, descending), word(value_bytes)
    return kernel_spec("radix_sort/rows.cuh", "sort_rows_kernel", *types)


SMALL_ROWS_THREADS = 256


def small_lanes(row_items: int) -> int:
    """Return how many lanes share a row of sort_small_rows_kernel.

    2^24 float32 on an H200, in us, with 2, 4 and 8 keys of a lane: rows of 8 62, 66, 154, of 16 80,
    67, 97, of 32 97, 86, 86, of 64 153, 111, 106, of 128 –, 156, 136; of 256 with 8 184, and by
    sort_rows_kernel 165.
    """
    capacity = power_of_two(row_items)
    return max(1, capacity // (2 if capacity <= 8 else 4 if capacity <= 32 else 8))


@lru_cache(1024)
def small_rows_spec(dtype: Dtype, descending: Descending, value_bytes: int, row_items: int) -> Spec:
    """Return the kernel that sorts rows in the registers of a warp's lanes."""
    lanes = small_lanes(row_items)
    tuned = cpp("SmallRowsPolicy", SMALL_ROWS_THREADS, lanes, power_of_two(row_items) // lanes)
    types = tuned, order(dtype, descending), word(value_bytes)
    return kernel_spec("radix_sort/rows.cuh", "sort_small_rows_kernel", *types)


# --- Digits of passes, padding and the order of keys.

Digit: TypeAlias = dict[str, int]
"""Position of a pass's digit: the fields of Digit of radix_sort/keys.cuh."""


def padded_digits(digits: list[Digit], count: int) -> list[Digit]:
    return digits + [{"shift": 0, "mask": 0, "flip": 0}] * (count - len(digits))


def digits_of(
    dtype: Dtype, descending: Descending, begin_bit: int, end_bit: int, even: bool
) -> list[Digit]:
    """Return the digits of all passes, the lowest first; `even`: an even number of passes."""
    num_passes = -(-(end_bit - begin_bit) // DIGIT_BITS)
    num_passes += even and num_passes % 2
    width = -(-(end_bit - begin_bit) // num_passes)
    bits = 8 * dtype.itemsize
    flipped = flipped_bits(dtype, descending)
    digits = []
    for shift in range(begin_bit, begin_bit + num_passes * width, width):
        mask = (1 << max(0, min(width, end_bit - shift))) - 1
        shift = min(shift, bits - 1)
        digits.append({"shift": shift, "mask": mask, "flip": flipped >> shift & mask})
    return digits


@lru_cache(1024)
def last_key(dtype: Dtype, descending: Descending) -> int:
    """Return the bits of a key that sorts after all others, used as padding; of floats NaN."""
    fields = numbers(dtype, descending)
    return sum(((1 << n.bits) - 1 ^ (0 if n.is_float else n.flipped)) << n.shift for n in fields)


def order(dtype: Dtype, descending: Descending) -> str:
    """Return the C++ type of the keys' order; integers use the unsigned type."""
    fields = numbers(dtype, descending)
    if not any(number.is_float for number in fields):
        return f"gpualgo::KeyOrder<{_unsigned(dtype)}>"
    names = [_ordered_as(number) for number in fields]
    if dtype.names is None:
        return f"gpualgo::KeyOrder<{names[0]}>"
    return f"gpualgo::KeyOrder<gpualgo::SideBySide<{', '.join(names)}>>"


def _ordered_as(number: Number) -> str:
    if not number.is_float:
        return _unsigned(number.dtype)
    name = dtypes.cpp_name(number.dtype)
    return f"gpualgo::Opposite<{name}>" if number.is_descending else name


def _unsigned(dtype: Dtype) -> str:
    return dtypes.cpp_name(np.dtype(f"u{dtype.itemsize}"))
