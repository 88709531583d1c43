"""The two kernels of a reduction: tiles along the reduced elements, and rows of columns.

Each leaves one partial per tile or block of rows; cpu.py runs them again on the partials. Which
elements a partial combines depends on shapes and strides only, never on threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from gpualgo._algorithms.reduce import problem as at
from gpualgo._base import records
from gpualgo._cpu.fields import access_by_index, field_offsets
from gpualgo._cpu.packing import (
    call,
    copy_bytes,
    dense_address,
    inline,
    load,
    offset,
    pointer_to,
    storage,
    store,
)
from gpualgo._cpu.plan import SIZE, START

_words = pointer_to(types.intp)


def tile_kernel(
    fn: Any, acc: np.dtype[Any], is_computed: bool, is_ordered: bool
) -> Callable[..., None]:
    """Return the kernel that folds one tile at a time as a 4-ary tree.

    A level combines groups of four: neighbours, left before right, or if order does not matter,
    elements LANES apart, which LLVM vectorises without shuffles. Up to three remaining elements go
    to the end of the next level. complex128 uses pairs of neighbours: LLVM's code for eight
    interleaved doubles is slower than scalar code. Computed elements are computed in chunks, which
    are in L1 when the first level reads them.
    """
    fan, lanes = 2 if np.dtype(np.complex128) in records.field_dtypes(acc) else 4, at.LANES
    tile_size, capacity = at.tile_of(acc), at.level_of(acc)
    count, sizes, pointers, apart, get, put = access_by_index(acc)
    offsets = tuple(capacity * size for size in field_offsets(acc))
    level_bytes = at.SLOTS + capacity * sum(sizes)
    as_a = pointer_to(storage(acc))

    @inline
    def level(src: Any, dst: Any, start: int, m: int) -> int:
        """Write the next level of m elements of src to dst from `start` on; return its end."""
        groups = m // fan
        done = 0
        if not is_ordered:  # all numbers have at most four bytes
            for block in range(groups // lanes):
                j = 4 * lanes * block
                for i in range(j, j + lanes):
                    value = fn(get(src, i), get(src, i + lanes))
                    value = fn(value, fn(get(src, i + 2 * lanes), get(src, i + 3 * lanes)))
                    put(dst, start + done + i - j, value)
                done += lanes
        for i in range(done, groups):
            j = fan * i
            value = fn(get(src, j), get(src, j + 1))
            if fan == 4:
                value = fn(value, fn(get(src, j + 2), get(src, j + 3)))
            put(dst, start + i, value)
        remaining = m - groups * fan
        for i in range(remaining):
            put(dst, start + groups + i, get(src, fan * groups + i))
        return start + groups + remaining

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p = _words(table)
        kept, reduced = load(p, at.KEPT), load(p, at.REDUCED)
        tiles, outputs = load(p, at.TILES), load(p, at.COUNT)
        kept_at = table + 8 * at.TAIL
        reduced_at = kept_at + 8 * kept
        numbers_at = reduced_at + 8 * reduced
        number_bytes = 8 * (at.NUMBER + 2 * kept + reduced)
        targets = scratch + at.SLOTS
        level_at = targets + 3 * at.SLOTS
        for k in range(count):
            store(_words(level_at - at.SLOTS), k, level_at + offsets[k])
            store(_words(level_at + level_bytes - at.SLOTS), k, level_at + level_bytes + offsets[k])
        for task in range(first, last):
            if load(p, at.TILE_MAJOR):
                tile = task // outputs
                output = task - tile * outputs
            else:
                output = task // tiles
                tile = task - output * tiles
            start = tile * tile_size
            m = min(tile_size, load(p, at.LENGTH) - start)
            for k in range(load(p, at.INPUTS)):
                entry = numbers_at + k * number_bytes
                q, strides = _words(entry), entry + 8 * at.NUMBER
                x = load(q, START) + offset(output, kept, kept_at, strides)
                x = dense_address(
                    entry, scratch, x, start, m, reduced, reduced_at, strides + 16 * kept
                )
                store(_words(scratch), k, x)
            for k in range(count):
                entry = numbers_at + k * number_bytes
                q, strides = _words(entry), entry + 8 * at.NUMBER
                y = load(q, at.OUT) + offset(output, kept, kept_at, strides + 8 * kept)
                store(_words(targets), k, y + tile * load(q, at.TILE_STRIDE))
            # Swap addresses, not pointers: LLVM then sees no common base, and vectorises.
            source, dst, spare = scratch, level_at, level_at + level_bytes
            if is_computed:
                remaining, slots = m, targets + at.SLOTS
                m = 0
                for chunk in range(0, remaining, at.CHUNK):
                    for k in range(load(p, at.INPUTS)):
                        size = load(_words(numbers_at + k * number_bytes), SIZE)
                        store(_words(slots), k, load(_words(scratch), k) + chunk * size)
                    part = min(at.CHUNK, remaining - chunk)
                    call(load(p, at.COMPUTE), (slots, scratch + load(p, at.COMPUTED), part))
                    m = level(pointers(slots), apart(dst, capacity), m, part)
                source, dst, spare = dst - at.SLOTS, spare, dst
            while m >= fan:
                m = level(pointers(source), apart(dst, capacity), 0, m)
                source, dst, spare = dst - at.SLOTS, spare, dst
            last_level = pointers(source)
            value = get(last_level, 0)
            for i in range(1, m):
                value = fn(value, get(last_level, i))
            if load(p, at.INIT):
                value = fn(load(as_a(load(p, at.INIT)), 0), value)
            put(pointers(targets), 0, value)

    return kernel


def column_kernel(fn: Any, acc: np.dtype[Any], is_computed: bool) -> Callable[..., None]:
    """Return the kernel that folds ROWS rows of columns, one row after the other.

    A column is an index of one kept dimension of extent WIDTH and stride X_STRIDE bytes.
    """
    columns = at.columns_of(acc)
    count, sizes, pointers, apart, get, put = access_by_index(acc)
    offsets = tuple(columns * size for size in field_offsets(acc))
    as_a = pointer_to(storage(acc))

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p = _words(table)
        kept, reduced = load(p, at.KEPT), load(p, at.REDUCED)
        outputs, width = load(p, at.COUNT), load(p, at.WIDTH)
        kept_at = table + 8 * at.TAIL
        reduced_at = kept_at + 8 * kept
        numbers_at = reduced_at + 8 * reduced
        number_bytes = 8 * (at.NUMBER + 2 * kept + reduced)
        strips = (width + columns - 1) // columns
        sums = scratch + at.SLOTS * at.BATCH
        total = apart(sums, columns)
        for task in range(first, last):
            strip = task % strips
            outer = task // strips % outputs
            block = task // strips // outputs
            column, w = strip * columns, min(columns, width - strip * columns)
            start = block * at.ROWS
            rows = min(at.ROWS, load(p, at.LENGTH) - start)
            r = 0
            while r < rows:
                batch = at.BATCH if 0 < r <= rows - at.BATCH else 1
                for b in range(batch):
                    index, memory = start + r + b, scratch + b * load(p, at.ROW_BYTES)
                    for k in range(load(p, at.INPUTS)):
                        entry = numbers_at + k * number_bytes
                        q, strides = _words(entry), entry + 8 * at.NUMBER
                        x = load(q, START) + offset(outer, kept, kept_at, strides)
                        x += offset(index, reduced, reduced_at, strides + 16 * kept)
                        dim = (table + 8 * at.WIDTH, entry + 8 * at.X_STRIDE)
                        x = dense_address(entry, memory, x, column, w, 1, *dim)
                        store(_words(scratch + b * at.SLOTS), k, x)
                    if is_computed:
                        slots = scratch + b * at.SLOTS
                        call(load(p, at.COMPUTE), (slots, memory + load(p, at.COMPUTED), w))
                if batch == at.BATCH:
                    x0, x1 = pointers(scratch), pointers(scratch + at.SLOTS)
                    x2, x3 = pointers(scratch + 2 * at.SLOTS), pointers(scratch + 3 * at.SLOTS)
                    for j in range(w):
                        value = fn(fn(get(x0, j), get(x1, j)), fn(get(x2, j), get(x3, j)))
                        put(total, j, fn(get(total, j), value))
                elif r == 0:
                    for k in range(count):
                        copy_bytes(sums + offsets[k], load(_words(scratch), k), w * sizes[k])
                else:
                    row = pointers(scratch)
                    for j in range(w):
                        put(total, j, fn(get(total, j), get(row, j)))
                r += batch
            if load(p, at.INIT):
                value = load(as_a(load(p, at.INIT)), 0)
                for j in range(w):
                    put(total, j, fn(value, get(total, j)))
            for k in range(count):
                entry = numbers_at + k * number_bytes
                q, strides = _words(entry), entry + 8 * at.NUMBER
                y = load(q, at.OUT) + offset(outer, kept, kept_at, strides + 8 * kept)
                y += column * load(q, at.OUT_STRIDE) + block * load(q, at.TILE_STRIDE)
                if load(q, at.OUT_STRIDE) == sizes[k]:
                    copy_bytes(y, sums + offsets[k], w * sizes[k])
                else:
                    dim = (table + 8 * at.WIDTH, entry + 8 * at.OUT_STRIDE)
                    call(load(q, at.OUT_PACK), (sums + offsets[k], y, 0, w, 1, *dim, 0))

    return kernel
