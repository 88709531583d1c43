"""Kernel parameters and tuning table of reductions by index."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gpualgo._base import records
from gpualgo._base.records import Source
from gpualgo._cuda.build import Spec
from gpualgo._cuda.parameters import I64, POINTER, Parameters, init
from gpualgo._cuda.templates import VECTOR_BYTES, WARP, Access, functor
from gpualgo._operators.operator import Operator

# --- Parameter structs of the kernels of a reduction by index (by_index/tables.cuh).


@cache
def tables_params(source: Source, acc: np.dtype[Any], access: Parameters) -> Parameters:
    inputs, outputs = len(records.field_dtypes(source)), len(records.field_dtypes(acc))
    return Parameters(
        "ByIndexParams",
        init=init(acc.itemsize), input=POINTER[inputs], output=POINTER[outputs],
        starts=POINTER[outputs], values=POINTER, marks=POINTER, group_values=POINTER,
        group_marks=POINTER, num_items=I64, num_shares=I64, share_items=I64, group=I64,
        num_groups=I64, num_columns=I64, size=I64, is_start=I64, value_bytes=I64, table_bytes=I64,
        start_steps=I64[outputs], output_steps=I64[outputs], access=access,
    )  # fmt: skip


# --- Tuning table of reductions by index: template arguments, tilings.
#
# Tilings depend on lengths and dtypes only, never on the GPU, so that results have the same bits.

Dtype = np.dtype[Any]

TABLE_BYTES = 32 << 10  # of a warp's table; with more results elements are sorted first
BLOCK_BYTES = 48 << 10  # of all tables of a block
MOST_WARPS = 8  # per block
ROW_BYTES, MOST_ROWS = 64, 8  # bytes and rows of elements that a lane loads at once
# Minimum of elements per share, in all and per index: enough to make writing and reading a table
# cheap. With fewer elements shares are smaller, so that all processors get some.
SHARE_ITEMS, SHARE_PER_INDEX, ENOUGH_SHARES, MOST_SHARES = 1024, 16, 1 << 11, 1 << 14
SHARE_UNIT = WARP * MOST_ROWS
JOIN_THREADS, JOIN_LOADS = 512, 8
GROUP, FEW_TABLES = 128, 512  # tables that are joined into one; below FEW_TABLES none are
MARK_BYTES = 4  # in a warp's table


class Table(NamedTuple):
    """Sizes of a warp's table."""

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
    """Return the table of `size` results."""
    values = _round_up(size * acc.itemsize, VECTOR_BYTES)
    return Table(values, values + _round_up(size * MARK_BYTES, VECTOR_BYTES))


class Tiling(NamedTuple):
    """Tiling of elements over warps."""

    share_items: int
    num_shares: int

    @property
    def num_groups(self) -> int:
        """Number of groups of tables."""
        return -(-self.num_shares // GROUP) if self.num_shares > FEW_TABLES else 0


def tiling_of(num_items: int, size: int, num_rows: int = 1) -> Tiling:
    """Return the shares of a row's elements (at least one), given its number of results."""
    preferred = min(SHARE_PER_INDEX * size, num_rows * num_items // ENOUGH_SHARES)
    least = max(SHARE_ITEMS, size, preferred, -(-num_items // MOST_SHARES))
    share = _round_up(least, SHARE_UNIT)
    return Tiling(share, -(-num_items // share))


@dataclass(frozen=True)
class Kind:
    """Parameters that determine the kernels."""

    op: Operator
    index: Dtype
    source: records.Source
    acc: Dtype
    access: Access
    has_row_init: bool
    overlaps: bool  # the next kernel may start while the previous one runs (sm_90)

    @property
    def specs(self) -> list[Spec]:
        """The kernels that fold shares, join groups of tables, and join all."""
        rows = max(1, min(MOST_ROWS, ROW_BYTES // records.register_dtype(self.source).itemsize))
        loads = max(1, min(JOIN_LOADS, ROW_BYTES // self.acc.itemsize))
        return [
            self._spec("fold", "", MOST_WARPS * WARP, rows),
            self._spec("group", "", JOIN_THREADS, loads),
            self._spec("join", f"{_flag(self.has_row_init)}, ", JOIN_THREADS, loads),
        ]

    def _spec(self, name: str, flags: str, threads: int, rows: int) -> Spec:
        op, acc, source = self.op, self.acc, self.source
        policy = f"gpualgo::ByIndexPolicy<{threads}, {rows}, {_flag(self.overlaps)}>"
        types = functor(op, (acc, acc), acc), *map(records.cpp_name, (self.index, acc, source))
        kernel = f"gpualgo::by_index_{name}_kernel"
        expression = f"{kernel}<{policy}, {flags}{', '.join(types)}, {self.access.cpp}>"
        params = tables_params(source, acc, self.access.fields)
        computed = source if isinstance(source, records.Computed) else None
        if op.name is not None and computed is None:
            return Spec("by_index/tables.cuh", expression, params)
        return Spec("by_index/tables.cuh", expression, params, op, (acc, acc), acc, computed)


def _flag(is_true: bool) -> str:
    return str(is_true).lower()


def _round_up(size: int, unit: int) -> int:
    return -(-size // unit) * unit
