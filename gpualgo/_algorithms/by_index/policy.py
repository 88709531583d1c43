"""Reductions by index: which template arguments, how the work is cut. One table.

The cut depends on lengths and types alone, never on the GPU, so that neither do the bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpualgo._algorithms.by_index import parameters
from gpualgo._base import records
from gpualgo._cuda.build import Spec
from gpualgo._cuda.templates import VECTOR_BYTES, WARP, Access, functor
from gpualgo._operators.operator import Operator

Dtype = np.dtype[Any]

TABLE_BYTES = 32 << 10  # of a warp's table; of more results elements are sorted first
BLOCK_BYTES = 48 << 10  # of those of a block
MOST_WARPS = 8  # of a block
ROW_BYTES, MOST_ROWS = 64, 8  # of elements that a lane loads at once
# A share has so many elements at least, and for each index: few beside what tables take to write
# and to read. Of fewer elements shares are smaller, so that there are some for all processors.
SHARE_ITEMS, SHARE_PER_INDEX, ENOUGH_SHARES, MOST_SHARES = 1024, 16, 1 << 11, 1 << 14
SHARE_UNIT = WARP * MOST_ROWS
JOIN_THREADS, JOIN_LOADS = 512, 8
GROUP, FEW_TABLES = 128, 512  # tables that are joined to one; of fewer than that none are
MARK_BYTES = 4  # in a warp's table


class Table(NamedTuple):
    """The sizes of a warp's table."""

    value_bytes: int
    table_bytes: int

    @property
    def fits(self) -> bool:
        """Return whether shared memory has room for it, on every GPU."""
        return self.table_bytes <= TABLE_BYTES

    @property
    def warps(self) -> int:
        """Return how many a block has: a power of two."""
        most = max(1, min(MOST_WARPS, BLOCK_BYTES // self.table_bytes))
        return 1 << most.bit_length() - 1


def table_of(size: int, acc: Dtype) -> Table:
    """Return the table of so many results."""
    values = _up(size * acc.itemsize, VECTOR_BYTES)
    return Table(values, values + _up(size * MARK_BYTES, VECTOR_BYTES))


class Cut(NamedTuple):
    """How elements are shared out to warps."""

    share_items: int
    num_shares: int

    @property
    def num_groups(self) -> int:
        """Return how many groups of tables there are."""
        return -(-self.num_shares // GROUP) if self.num_shares > FEW_TABLES else 0


def cut_of(num_items: int, size: int) -> Cut:
    """Return the shares of so many elements, some at least, with so many results."""
    wanted = min(SHARE_PER_INDEX * size, num_items // ENOUGH_SHARES)
    least = max(SHARE_ITEMS, size, wanted, -(-num_items // MOST_SHARES))
    share = _up(least, SHARE_UNIT)
    return Cut(share, -(-num_items // share))


@dataclass(frozen=True)
class Kind:
    """What decides the kernels."""

    op: Operator
    index: Dtype
    source: records.Source
    acc: Dtype
    access: Access
    has_starts: bool
    overlaps: bool  # the second may be launched while the first still runs (sm_90)

    @property
    def specs(self) -> list[Spec]:
        """Return the kernels: that folds shares, joins groups of tables, and joins all."""
        rows = max(1, min(MOST_ROWS, ROW_BYTES // records.held(self.source).itemsize))
        loads = max(1, min(JOIN_LOADS, ROW_BYTES // self.acc.itemsize))
        return [
            self._spec("fold", "", MOST_WARPS * WARP, rows),
            self._spec("group", "", JOIN_THREADS, loads),
            self._spec("join", f"{_flag(self.has_starts)}, ", JOIN_THREADS, loads),
        ]

    def _spec(self, name: str, flags: str, threads: int, rows: int) -> Spec:
        op, acc, source = self.op, self.acc, self.source
        policy = f"gpualgo::ByIndexPolicy<{threads}, {rows}, {_flag(self.overlaps)}>"
        types = functor(op, (acc, acc), acc), *map(records.cpp_name, (self.index, acc, source))
        kernel = f"gpualgo::by_index_{name}_kernel"
        expression = f"{kernel}<{policy}, {flags}{', '.join(types)}, {self.access.cpp}>"
        takes = parameters.tables(source, acc, self.access.fields)
        computed = source if isinstance(source, records.Computed) else None
        if op.name is not None and computed is None:
            return Spec("by_index/tables.cuh", expression, takes)
        return Spec("by_index/tables.cuh", expression, takes, op, (acc, acc), acc, computed)


def _flag(is_true: bool) -> str:
    return str(is_true).lower()


def _up(size: int, unit: int) -> int:
    return -(-size // unit) * unit
