"""Functions of a scan down columns: whole rows of neighbouring elements, one after another."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from gpualgo._algorithms.scan.cpu_kernels import Function, inline
from gpualgo._algorithms.scan.cpu_parameters import (  # fmt: skip
    ACROSS,
    COLUMNS,
    DOWN,
    INIT,
    LENGTH,
    NUMBER,
    OUT_ACROSS,
    OUT_AT,
    OUT_DOWN,
    OUT_PACK,
    OUTER,
    SLOTS,
    TILE,
    WIDTH,
)
from gpualgo._algorithms.scan.cpu_parameters import COLUMNS_TAIL as TAIL
from gpualgo._cpu.elements import storage
from gpualgo._cpu.leaves import access_by_index, field_offsets
from gpualgo._cpu.packing import call, copy_bytes, dense_address, load, offset, pointer_to, store
from gpualgo._cpu.parameters import START

_words = pointer_to(types.intp)


def column_functions(
    fn: Any, acc: np.dtype[Any], exclusive: bool
) -> tuple[Function, Function, Function]:
    """Return aggregate, fold and emit; a chain is up to COLUMNS columns, a link TILE rows.

    A chain's prefix is two rows: the prefix of this link and that of the next. Rows in scratch
    memory store all elements' first fields, then the second fields, and so on.
    """
    as_a = pointer_to(storage(acc))
    count, sizes, pointers, apart, get, put = access_by_index(acc)
    ahead, a_size = field_offsets(acc), sum(sizes)

    @inline
    def place(table: int, scratch: int, chain: int, link: int) -> tuple[int, int]:
        """Store a link's first addresses in x and out; return its columns and rows."""
        p = _words(table)
        outer, lengths = load(p, OUTER), table + 8 * TAIL
        strips = (load(p, WIDTH) + COLUMNS - 1) // COLUMNS
        row = chain // strips
        column, top = (chain - row * strips) * COLUMNS, link * load(p, TILE)
        for k in range(count):
            entry = lengths + 8 * outer + 8 * k * (NUMBER + 2 * outer)
            q, strides = _words(entry), entry + 8 * NUMBER
            source = load(q, START) + offset(row, outer, lengths, strides)
            target = load(q, OUT_AT) + offset(row, outer, lengths, strides + 8 * outer)
            source += column * load(q, ACROSS) + top * load(q, DOWN)
            target += column * load(q, OUT_ACROSS) + top * load(q, OUT_DOWN)
            store(_words(scratch), k, source)
            store(_words(scratch + SLOTS), k, target)
        return min(COLUMNS, load(p, WIDTH) - column), min(load(p, TILE), load(p, LENGTH) - top)

    @inline
    def read(table: int, scratch: int, r: int, width: int) -> int:
        """Make row r of x dense and of dtype acc; return where its addresses are stored."""
        p, row = _words(table), scratch + 2 * SLOTS
        outer = load(p, OUTER)
        for k in range(count):
            entry = table + 8 * (TAIL + outer) + 8 * k * (NUMBER + 2 * outer)
            source = load(_words(scratch), k) + r * load(_words(entry), DOWN)
            dim = (table + 8 * WIDTH, entry + 8 * ACROSS)
            store(_words(row), k, dense_address(entry, scratch, source, 0, width, 1, *dim))
        return row

    @inline
    def copy(target: int, row: int, width: int) -> None:
        for k in range(count):
            copy_bytes(target + width * ahead[k], load(_words(row), k), width * sizes[k])

    @inline
    def write(table: int, scratch: int, r: int, source: int, width: int) -> None:
        p = _words(table)
        outer = load(p, OUTER)
        for k in range(count):
            entry = table + 8 * (TAIL + outer) + 8 * k * (NUMBER + 2 * outer)
            q, dense = _words(entry), source + width * ahead[k]
            target = load(_words(scratch + SLOTS), k) + r * load(q, OUT_DOWN)
            if load(q, OUT_ACROSS) == sizes[k]:
                copy_bytes(target, dense, width * sizes[k])
            else:
                dim = (table + 8 * WIDTH, entry + 8 * OUT_ACROSS)
                call(load(q, OUT_PACK), (dense, target, 0, width, 1, *dim, 0))

    def aggregate(
        table: int, scratch: int, chain: int, link: int, prefix: int, target: int
    ) -> None:
        width, rows = place(table, scratch, chain, link)
        copy(target, read(table, scratch, 0, width), width)
        total = apart(target, width)
        for r in range(1, rows):
            row = pointers(read(table, scratch, r, width))
            for j in range(width):
                put(total, j, fn(get(total, j), get(row, j)))

    def fold(table: int, scratch: int, chain: int, link: int, prefix: int, source: int) -> None:
        width, _ = place(table, scratch, chain, link)
        num_bytes, init = width * a_size, load(_words(table), INIT)
        start, after, row = (
            apart(prefix, width),
            apart(prefix + num_bytes, width),
            apart(source, width),
        )
        if link > 0:
            copy_bytes(prefix, prefix + num_bytes, num_bytes)
        elif init:
            for j in range(width):
                put(start, j, load(as_a(init), 0))
        if link > 0 or init:
            for j in range(width):
                put(after, j, fn(get(start, j), get(row, j)))
        else:
            copy_bytes(prefix + num_bytes, source, num_bytes)

    def emit(table: int, scratch: int, chain: int, link: int, prefix: int, own: int) -> None:
        init = load(_words(table), INIT)
        width, rows = place(table, scratch, chain, link)
        total_address = scratch + 3 * SLOTS
        total = apart(total_address, width)
        is_started = link > 0 or init != 0
        if link > 0:
            copy_bytes(total_address, prefix, width * a_size)
        elif is_started:
            for j in range(width):
                put(total, j, load(as_a(init), 0))
        for r in range(rows):
            row = read(table, scratch, r, width)
            for step in range(2):
                if step == exclusive and is_started:
                    x = pointers(row)
                    for j in range(width):
                        put(total, j, fn(get(total, j), get(x, j)))
                elif step == exclusive:
                    copy(total_address, row, width)
                    is_started = True
                else:
                    write(table, scratch, r, total_address, width)

    return aggregate, fold, emit
