"""Tuning table of reductions by index: template arguments, tilings.

Tilings depend on lengths and dtypes only, never on the GPU, so that results have the same bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpualgo._cuda.templates import VECTOR_BYTES, WARP

Dtype = np.dtype[Any]

BLOCK_BYTES = 48 << 10  # of all tables of a block
MOST_WARPS = 8  # per block
ROW_BYTES, MOST_ROWS = 96, 8  # bytes and rows of elements that a lane loads at once
# Minimum of elements per share, in all and per index: enough to make writing and reading a table
# cheap. With fewer elements shares are smaller, so that all processors get some.
SHARE_ITEMS, SHARE_PER_INDEX, ENOUGH_SHARES, MOST_SHARES = 1024, 16, 1 << 11, 1 << 14
SHARE_UNIT = 256  # part of the tiling, and so of the bits
JOIN_THREADS, JOIN_LOADS, JOIN_BLOCKS = 512, 8, 4  # JOIN_BLOCKS: per multiprocessor
GROUP, FEW_TABLES = 128, 512  # tables that are joined into one; below FEW_TABLES none are
MARK_BYTES = 4  # in a warp's table: of each result, and of each lane
TABLE_BYTES = (48 << 10) + WARP * MARK_BYTES  # with more results a table has those of a bucket
DIGIT_BITS = 8  # that a pass of a radix sort takes
# Bits of an index within its bucket, unless that needs more passes. A table of 2^9 results of 4
# bytes leaves room for all warps of a multiprocessor; with fewer results more elements of a row
# meet. A column of a warp's results is of one bucket.
BUCKET_BITS, LEAST_BUCKET_BITS = 9, 5


class Table(NamedTuple):
    value_bytes: int
    table_bytes: int

    @property
    def fits(self) -> bool:
        """Whether the table fits into shared memory on every GPU."""
        return self.table_bytes <= TABLE_BYTES

    @property
    def warps(self) -> int:
        """Warps per block: a power of two."""
        limit = max(1, min(MOST_WARPS, BLOCK_BYTES // self.table_bytes))
        return 1 << limit.bit_length() - 1


def table_of(size: int, acc: Dtype) -> Table:
    values = _round_up(size * acc.itemsize, VECTOR_BYTES)
    return Table(values, values + _round_up((size + WARP) * MARK_BYTES, VECTOR_BYTES))


def bucket_bits(size: int, acc: Dtype) -> tuple[int, int]:
    """Return the bits of indices that make buckets: the first one, and the end."""
    bits, most = (size - 1).bit_length(), LEAST_BUCKET_BITS
    while table_of(2 << most, acc).fits:
        most += 1
    passes = max(1, -(-(bits - most) // DIGIT_BITS))
    first = max(bits - passes * DIGIT_BITS, min(BUCKET_BITS, most, bits - 1), LEAST_BUCKET_BITS)
    return first, max(bits, first + 1)


class Tiling(NamedTuple):
    share_items: int
    num_shares: int

    @property
    def num_groups(self) -> int:
        return -(-self.num_shares // GROUP) if self.num_shares > FEW_TABLES else 0


def tiling_of(num_items: int, size: int, num_rows: int = 1) -> Tiling:
    """Return the shares of a row's elements (at least one), given its number of results."""
    preferred = min(SHARE_PER_INDEX * size, num_rows * num_items // ENOUGH_SHARES)
    least = max(SHARE_ITEMS, size, preferred, -(-num_items // MOST_SHARES))
    share = _round_up(least, SHARE_UNIT)
    return Tiling(share, -(-num_items // share))


def _round_up(size: int, unit: int) -> int:
    return -(-size // unit) * unit
