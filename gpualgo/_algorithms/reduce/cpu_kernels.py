"""The two kernels of a reduction: tiles along the reduced elements, and rows of columns.

Both leave one partial for each tile or block of rows; reduce.py folds the partials the same way.
Which elements a partial holds depends on shapes and strides alone, never on threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types

from gpualgo._algorithms.reduce.cpu_parameters import (
    CAST,
    COLUMNS,
    COUNT,
    DIRECT,
    INIT,
    KEPT,
    LENGTH,
    OUT,
    OUT_STRIDE,
    PACK,
    REDUCED,
    ROWS,
    TAIL,
    TILE,
    TILE_MAJOR,
    TILE_STRIDE,
    TILES,
    WIDTH,
    X_SIZE,
    X_STRIDE,
    X,
)  # fmt: skip
from gpualgo._cpu.packing import offset
from gpualgo._cpu.pointers import call, copy_bytes, load, pointer_to, pointers_to, same, store

_words = pointer_to(types.intp)


def tile_kernel(fn: Any, cast: Any, x_type: Any, a_type: Any, a_size: int) -> Callable[..., None]:
    """Write the kernel that folds TILE elements at a time as a tree of fours, left before right.

    A level takes four neighbours to one; what is left of a level, three at most, is carried to
    its end. No step waits for another of its level, so LLVM vectorises any operator it can.
    Complex128 goes by twos: LLVM's code for eight interleaved doubles is slower than scalar code.
    """
    fan = 2 if a_size == 16 else 4
    as_x, as_a = pointer_to(x_type), pointer_to(a_type)
    casting = cast is not None
    convert = cast or same

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p = _words(table)
        kept, reduced, x_size = load(p, KEPT), load(p, REDUCED), load(p, X_SIZE)
        tiles, count = load(p, TILES), load(p, COUNT)
        kept_at = table + 8 * TAIL
        reduced_at = kept_at + 24 * kept
        cast_at = scratch + TILE * x_size
        level_at = cast_at + TILE * a_size
        for task in range(first, last):
            if load(p, TILE_MAJOR):
                tile = task // count
                output = task - tile * count
            else:
                output = task // tiles
                tile = task - output * tiles
            start = tile * TILE
            m = min(TILE, load(p, LENGTH) - start)
            source = load(p, X) + offset(output, kept, kept_at, kept_at + 8 * kept)
            if load(p, DIRECT):
                source += start * x_size
            else:
                at = (reduced_at, reduced_at + 8 * reduced)
                call(load(p, PACK), (scratch, source, start, m, reduced, *at, 1))
                source = scratch
            if casting and load(p, CAST):
                for i in range(m):
                    store(as_a(cast_at), i, convert(load(as_x(source), i)))
                source = cast_at
            # Addresses, not pointers, change places: LLVM then sees no common base, and vectorises.
            here, there = level_at, level_at + (TILE // 2 + 16) * a_size
            while m >= fan:
                src, dst, groups = as_a(source), as_a(here), m // fan
                for i in range(groups):
                    value = fn(load(src, fan * i), load(src, fan * i + 1))
                    if fan == 4:
                        value = fn(value, fn(load(src, fan * i + 2), load(src, fan * i + 3)))
                    store(dst, i, value)
                rest = m - groups * fan
                for i in range(rest):
                    store(dst, groups + i, load(src, fan * groups + i))
                m = groups + rest
                source, here, there = here, there, here
            last_level = as_a(source)
            value = load(last_level, 0)
            for i in range(1, m):
                value = fn(value, load(last_level, i))
            if load(p, INIT):
                value = fn(load(as_a(load(p, INIT)), 0), value)
            target = load(p, OUT) + offset(output, kept, kept_at, kept_at + 16 * kept)
            store(as_a(target + tile * load(p, TILE_STRIDE)), 0, value)

    return kernel


def column_kernel(fn: Any, cast: Any, x_type: Any, a_type: Any, a_size: int) -> Callable[..., None]:
    """Write the kernel that folds ROWS rows of COLUMNS columns, row after row, columns abreast.

    A column is a place in one kept dimension, of WIDTH places X_STRIDE bytes apart.
    """
    as_x, as_a = pointer_to(x_type), pointer_to(a_type)
    four = pointers_to((a_type,) * 4, (0, 1, 2, 3))
    casting = cast is not None
    convert = cast or same

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p = _words(table)
        kept, reduced, x_size = load(p, KEPT), load(p, REDUCED), load(p, X_SIZE)
        count, width = load(p, COUNT), load(p, WIDTH)
        kept_at = table + 8 * TAIL
        reduced_at = kept_at + 24 * kept
        strips = (width + COLUMNS - 1) // COLUMNS
        cast_at = scratch + 4 * COLUMNS * x_size
        sums = cast_at + 4 * COLUMNS * a_size
        rows_at = sums + COLUMNS * a_size
        acc = as_a(sums)
        for task in range(first, last):
            strip = task % strips
            outer = task // strips % count
            block = task // strips // count
            w = min(COLUMNS, width - strip * COLUMNS)
            start = block * ROWS
            rows = min(ROWS, load(p, LENGTH) - start)
            corner = load(p, X) + offset(outer, kept, kept_at, kept_at + 8 * kept)
            corner += strip * COLUMNS * load(p, X_STRIDE)
            r = 0
            while r < rows:
                batch = 4 if 0 < r <= rows - 4 else 1
                for k in range(batch):
                    index = start + r + k
                    source = corner + offset(index, reduced, reduced_at, reduced_at + 8 * reduced)
                    if not load(p, DIRECT):
                        buffer = scratch + k * COLUMNS * x_size
                        at = (table + 8 * WIDTH, table + 8 * X_STRIDE)
                        call(load(p, PACK), (buffer, source, 0, w, 1, *at, 1))
                        source = buffer
                    if casting and load(p, CAST):
                        target = cast_at + k * COLUMNS * a_size
                        for j in range(w):
                            store(as_a(target), j, convert(load(as_x(source), j)))
                        source = target
                    store(_words(rows_at), k, source)
                if batch == 4:
                    a, b, c, d = four(rows_at)
                    for j in range(w):
                        pair = fn(fn(load(a, j), load(b, j)), fn(load(c, j), load(d, j)))
                        store(acc, j, fn(load(acc, j), pair))
                elif r == 0:
                    copy_bytes(sums, load(_words(rows_at), 0), w * a_size)
                else:
                    row = as_a(load(_words(rows_at), 0))
                    for j in range(w):
                        store(acc, j, fn(load(acc, j), load(row, j)))
                r += batch
            if load(p, INIT):
                value = load(as_a(load(p, INIT)), 0)
                for j in range(w):
                    store(acc, j, fn(value, load(acc, j)))
            target = load(p, OUT) + offset(outer, kept, kept_at, kept_at + 16 * kept)
            target += strip * COLUMNS * load(p, OUT_STRIDE) + block * load(p, TILE_STRIDE)
            if load(p, OUT_STRIDE) == a_size:
                copy_bytes(target, sums, w * a_size)
            else:
                for j in range(w):
                    store(as_a(target + j * load(p, OUT_STRIDE)), 0, load(acc, j))

    return kernel
