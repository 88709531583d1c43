"""Reduction on a GPU: canonical layout, kernel, temporary storage."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpualgo._algorithms.reduce import policy
from gpualgo._arrays.view import View
from gpualgo._base.extents import Dims, merge
from gpualgo._cuda import build
from gpualgo._cuda.launch import Launch
from gpualgo._cuda.pieces import KEPT, TICKETS, Piece
from gpualgo._cuda.plan import NONE, Places, Plan
from gpualgo._cuda.templates import START, VECTOR_BYTES, tagged_bytes
from gpualgo._driver.workspace import TICKET_BYTES
from gpualgo._operators.operator import Operator

_AT = Places(1, 1)


def _takes(partials: int = NONE, tickets: int = NONE) -> dict[str, Any]:
    """Return the places that a kernel takes."""
    common = {
        "init": START, "input": _AT.source(0), "output": _AT.target(0),
        "partials": partials, "tickets": tickets,
    }  # fmt: skip
    return {"common": common}


def plan_of(
    view: View, op: Operator, axes: tuple[int, ...], acc: np.dtype[Any],
    out_strides: tuple[int, ...],
) -> Plan:  # fmt: skip
    """Return the plan of a reduction over axes into results of these byte strides."""
    reduced = merge([(view.shape[i], (view.strides[i],)) for i in axes])
    kept = [i for i in range(len(view.shape)) if i not in axes]
    outer = merge(
        [(view.shape[i], (view.strides[i], out)) for i, out in zip(kept, out_strides, strict=True)]
    )
    plan = _columns if _is_columns(reduced, outer) else _rows
    return plan(view, acc, op, reduced, outer)


def _rows(view: View, acc: np.dtype[Any], op: Operator, reduced: Dims, outer: Dims) -> Plan:
    source, device = view.dtype, view.device
    num_items = math.prod(extent for extent, _ in reduced)
    num_rows = math.prod(extent for extent, _ in outer)
    cut = policy.cut_rows(op, num_rows, num_items, source)
    is_dense = not reduced or (len(reduced) == 1 and reduced[0][1][0] == source.itemsize)
    is_flat = is_dense and (not outer or (len(outer) == 1 and outer[0][1][1] == acc.itemsize))
    row_stride = outer[0][1][0] if outer and is_flat else 0
    if is_flat:
        access = policy.flat((view.ptr | row_stride) % VECTOR_BYTES == 0)
        reached: dict[str, Any] = {"row_stride": row_stride}
    else:
        access, reached = policy.STRIDED, {"rows": outer, "elements": reduced}
    pieces, takes = [], _takes()
    if cut.blocks_per_row > 1:  # blocks join by tagged words, zero at first
        pieces = [Piece(cut.num_blocks * tagged_bytes(acc), TICKETS, is_zeroed=True)]
        takes = _takes(partials=_AT.piece(0), tickets=_AT.piece(0))
    spec = policy.rows_spec(op, source, acc, access, cut)
    packed = spec.parameters.pack(
        num_rows=num_rows, num_items=num_items, chunk_items=cut.chunk_items,
        blocks_per_row=cut.blocks_per_row, access=reached,
    )  # fmt: skip
    kernel, threads = build.kernel(spec, device), cut.policy.block_threads
    return Plan(device, [Launch(kernel, cut.num_blocks, threads, packed, device, takes)], pieces)


def _columns(view: View, acc: np.dtype[Any], op: Operator, reduced: Dims, outer: Dims) -> Plan:
    source, device = view.dtype, view.device
    num_columns, (column_stride, out_stride) = outer[-1]
    batch = outer[:-1]
    num_rows = math.prod(extent for extent, _ in reduced)
    num_batches = math.prod(extent for extent, _ in batch)
    items = 1
    if column_stride == source.itemsize:
        strides = [s for _, (s,) in reduced] + [s[0] for _, s in batch]
        alignment = math.gcd(16, view.ptr, *(abs(stride) for stride in strides))
        items = policy.column_items(source, acc, num_columns, alignment)
    widest = policy.column_items(source, acc, num_columns)
    cut = policy.cut_columns(num_batches, num_rows, num_columns, widest, items)
    spec = policy.columns_spec(op, source, acc, cut)
    packed = spec.parameters.pack(
        num_rows=num_rows, rows_per_block=cut.rows_per_block, num_columns=num_columns,
        num_blocks=cut.num_blocks, num_column_tiles=cut.num_column_tiles,
        column_stride=column_stride, output_column_stride=out_stride, rows=reduced, batch=batch,
    )  # fmt: skip
    blocks = cut.num_column_tiles * num_batches * cut.num_blocks
    pieces, takes = [], _takes()
    if cut.num_blocks > 1:
        partials = blocks * cut.columns * acc.itemsize
        pieces = [Piece(TICKET_BYTES, TICKETS, is_zeroed=True), Piece(partials, KEPT)]
        takes = _takes(partials=_AT.piece(1), tickets=_AT.piece(0))
    kernel, threads = build.kernel(spec, device), policy.COLUMNS.block_threads
    return Plan(device, [Launch(kernel, blocks, threads, packed, device, takes)], pieces)


def _is_columns(reduced: Dims, outer: Dims) -> bool:
    """Return whether neighbouring results lie closer than the elements of one."""
    if not outer or not reduced or outer[-1][0] == 1:
        return False
    return abs(outer[-1][1][0]) < abs(reduced[-1][1][0])
