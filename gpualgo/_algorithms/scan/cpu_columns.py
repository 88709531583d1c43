"""The functions of a scan down columns: rows of neighbouring elements, one after another."""

from __future__ import annotations

from typing import Any

from numba import types

from gpualgo._algorithms.scan.cpu_chain import Function, inline
from gpualgo._algorithms.scan.cpu_parameters import (
    COLUMNS,
    INIT,
    LENGTH,
    OUT,
    OUT_STEP,
    OUT_STRIDE,
    OUTER,
    PACK,
    TILE,
    WIDTH,
    X_STEP,
    X_STRIDE,
    X,
)  # fmt: skip
from gpualgo._algorithms.scan.cpu_parameters import COLUMNS_TAIL as TAIL
from gpualgo._cpu.packing import offset
from gpualgo._cpu.pointers import call, copy_bytes, load, pointer_to, same, store

_words = pointer_to(types.intp)


def column_functions(
    fn: Any, cast: Any, types_: tuple[Any, Any], sizes: tuple[int, int], exclusive: bool
) -> tuple[Function, Function, Function]:
    """Write the functions for columns: a chain is up to COLUMNS of them, a link TILE rows.

    A chain's prefix is two rows: what a link starts from, and what the next one does.
    """
    as_x, as_a = pointer_to(types_[0]), pointer_to(types_[1])
    x_size, a_size = sizes
    casting = cast is not None
    convert = cast or same

    @inline
    def place(table: int, chain: int, link: int) -> tuple[int, int, int, int]:
        """Return where a link starts in x and out, and how many columns and rows it has."""
        p = _words(table)
        outer, at = load(p, OUTER), table + 8 * TAIL
        strips = (load(p, WIDTH) + COLUMNS - 1) // COLUMNS
        row = chain // strips
        column, top = (chain - row * strips) * COLUMNS, link * load(p, TILE)
        source = load(p, X) + offset(row, outer, at, at + 8 * outer)
        target = load(p, OUT) + offset(row, outer, at, at + 16 * outer)
        source += column * load(p, X_STRIDE) + top * load(p, X_STEP)
        target += column * load(p, OUT_STRIDE) + top * load(p, OUT_STEP)
        width = min(COLUMNS, load(p, WIDTH) - column)
        return source, target, width, min(load(p, TILE), load(p, LENGTH) - top)

    @inline
    def read(table: int, scratch: int, source: int, width: int) -> int:
        """Return where a row of x lies, dense and of the accumulator's type."""
        p = _words(table)
        if load(p, PACK):
            run = (table + 8 * WIDTH, table + 8 * X_STRIDE)
            call(load(p, PACK), (scratch, source, 0, width, 1, *run, 1))
            source = scratch
        if casting:
            converted = scratch + COLUMNS * x_size
            for j in range(width):
                store(as_a(converted), j, convert(load(as_x(source), j)))
            source = converted
        return source

    def aggregate(
        table: int, scratch: int, chain: int, link: int, prefix: int, target: int
    ) -> None:
        source, _, width, rows = place(table, chain, link)
        step, acc = load(_words(table), X_STEP), as_a(target)
        copy_bytes(target, read(table, scratch, source, width), width * a_size)
        for r in range(1, rows):
            row = as_a(read(table, scratch, source + r * step, width))
            for j in range(width):
                store(acc, j, fn(load(acc, j), load(row, j)))

    def fold(table: int, scratch: int, chain: int, link: int, prefix: int, source: int) -> None:
        _, _, width, _ = place(table, chain, link)
        num_bytes, init = width * a_size, load(_words(table), INIT)
        before, after, row = as_a(prefix), as_a(prefix + num_bytes), as_a(source)
        if link > 0:
            copy_bytes(prefix, prefix + num_bytes, num_bytes)
        elif init:
            for j in range(width):
                store(before, j, load(as_a(init), 0))
        if link > 0 or init:
            for j in range(width):
                store(after, j, fn(load(before, j), load(row, j)))
        else:
            copy_bytes(prefix + num_bytes, source, num_bytes)

    def emit(table: int, scratch: int, chain: int, link: int, prefix: int, own: int) -> None:
        p = _words(table)
        source, target, width, rows = place(table, chain, link)
        acc_at = scratch + COLUMNS * (x_size + a_size)
        acc, stride = as_a(acc_at), load(p, OUT_STRIDE)
        is_started = link > 0 or load(p, INIT) != 0
        if link > 0:
            copy_bytes(acc_at, prefix, width * a_size)
        elif is_started:
            for j in range(width):
                store(acc, j, load(as_a(load(p, INIT)), 0))
        for r in range(rows):
            row = read(table, scratch, source + r * load(p, X_STEP), width)
            result = target + r * load(p, OUT_STEP)
            for late in range(2):
                if late == exclusive and is_started:
                    for j in range(width):
                        store(acc, j, fn(load(acc, j), load(as_a(row), j)))
                elif late == exclusive:
                    copy_bytes(acc_at, row, width * a_size)
                    is_started = True
                elif stride == a_size:
                    copy_bytes(result, acc_at, width * a_size)
                else:
                    for j in range(width):
                        store(as_a(result + j * stride), 0, load(acc, j))

    return aggregate, fold, emit
