"""CPU kernels of scans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from gpualgo._algorithms.scan import problem as at
from gpualgo._base import records
from gpualgo._cpu.compiler import cast
from gpualgo._cpu.fields import access_by_address, access_by_index, field_offsets
from gpualgo._cpu.packing import (
    call,
    copy_bytes,
    dense_address,
    inline,
    instruction,
    load,
    offset,
    pointer_to,
    reader,
    storage,
    store,
    writer,
)
from gpualgo._cpu.plan import START

# --- Single-pass scan on the CPU: threads share rows that are cut into links and never wait.
#
# A thread publishes its link's aggregate before it scans the link. It computes the link's
# prefix from the aggregates before it, strictly from left to right, so the prefix has the
# same bits in every thread. An aggregate that is not published in time is recomputed.

Function = Callable[[int, int, int, int, int, int], None]
"""f(table, scratch, chain, link, prefix, aggregate): addresses, except chain and link.

aggregate reduces a link. fold advances the chain's prefix to a link from the aggregates of the link
and of the one before; link 0 initialises it. emit scans a link from its prefix.
"""

_words = pointer_to(types.intp)


_WORD_POINTER = types.CPointer(types.intp)


@instruction(types.intp, _WORD_POINTER, types.intp)
def fetch_increment(_context: Any, builder: Any, pointer: Any, index: Any) -> Any:
    place = builder.gep(pointer, [index])
    return builder.atomic_rmw("add", place, ir.Constant(ir.IntType(64), 1), "monotonic")


@instruction(types.void, _WORD_POINTER, types.intp)
def publish(_context: Any, builder: Any, pointer: Any, index: Any) -> None:
    place = builder.gep(pointer, [index])
    builder.store_atomic(ir.Constant(ir.IntType(64), 1), place, "release", 8)


@instruction(types.boolean, _WORD_POINTER, types.intp)
def is_published(_context: Any, builder: Any, pointer: Any, index: Any) -> Any:
    builder.fence("acquire")  # orders the flag after all earlier reads
    flag = builder.load_atomic(builder.gep(pointer, [index]), "acquire", 8)
    return builder.icmp_signed("!=", flag, ir.Constant(ir.IntType(64), 0))


def emit_all(table: int, scratch: int, first: int, last: int) -> None:
    """Emit links of rows that are not cut; they are independent."""
    p = _words(table)
    for task in range(first, last):
        chain, link = task // load(p, at.LINKS), task % load(p, at.LINKS)
        call(load(p, at.EMIT), (table + 8 * at.CHAIN_TAIL, scratch, chain, link, 0, 0))


def take_links(table: int, scratch: int, first: int, last: int) -> None:
    """Take links in task order until last - first are done or none remain."""
    p = _words(table)
    flags, chains, links = _words(load(p, at.FLAGS)), load(p, at.CHAINS), load(p, at.LINKS)
    arguments, size = table + 8 * at.CHAIN_TAIL, load(p, at.AGGREGATE_BYTES)
    recomputed = scratch + load(p, at.SCRATCH_BYTES)
    folded, prefixes = _words(recomputed + size), recomputed + size + 8 * chains
    for chain in range(chains):
        store(folded, chain, 0)
    for _ in range(first, last):
        task = fetch_increment(p, at.NEXT)
        if task >= load(p, at.TASKS):
            break
        if load(p, at.LINK_MAJOR):
            chain, link = task % chains, task // chains
        else:
            chain, link = task // links, task % links
        link_args = (arguments, scratch, chain)
        prefix, first_flag = prefixes + chain * load(p, at.PREFIX_BYTES), chain * links
        aggregates = load(p, at.AGGREGATES) + first_flag * size
        own_aggregate = aggregates + link * size
        call(load(p, at.AGGREGATE), (*link_args, link, prefix, own_aggregate))
        publish(flags, first_flag + link)
        for j in range(load(folded, chain), link + 1):
            source, polls = aggregates + j * size, load(p, at.MOST_POLLS)
            while polls > 0 and not is_published(flags, first_flag + j):
                polls -= 1
            if not is_published(flags, first_flag + j):
                call(load(p, at.AGGREGATE), (*link_args, j, prefix, recomputed))
                # if it is published by now, its thread may be overwriting the link
                if not is_published(flags, first_flag + j):
                    source = recomputed
            call(load(p, at.FOLD), (*link_args, j, prefix, source))
        store(folded, chain, link + 1)
        call(load(p, at.EMIT), (*link_args, link, prefix, own_aggregate))


# --- Functions of a scan along rows or parts of rows: four strips of elements at once.


@instruction(types.void)
def one_by_one(_context: Any, builder: Any) -> None:
    """Prevent LLVM from gathering distant elements into vectors."""
    builder.asm(ir.FunctionType(ir.VoidType(), []), "", "", [], True)


def strips_kernel(
    fn: Any, name: str, acc: np.dtype[Any], exclusive: bool, source: np.dtype[Any]
) -> Function:
    """Return aggregate, fold or emit for strips: tiles of a cut row, or whole rows.

    A chain's prefix holds the value that each strip of a link starts from, then the next link's.
    There an element is one record; in x and out its fields are in separate arrays.
    """
    a_size, count = acc.itemsize, len(records.field_dtypes(acc))
    get, put = reader(storage(acc)), writer(storage(acc))
    words, moved, *_ = access_by_address(source)
    read, scan_strips = _reader(source, acc), _through(fn, source, acc, exclusive)

    @inline
    def rows_of(table: int, scratch: int, chain: int) -> tuple[Any, Any]:
        """Return the addresses of a chain's fields in x and in out."""
        p = _words(table)
        outer, lengths = load(p, at.OUTER), table + 8 * (at.STRIPS_TAIL + at.LISTS * count)
        for k in range(count):
            strides = lengths + 8 * outer * (1 + k)
            x = load(p, at.STRIPS_TAIL + at.X * count + k) + offset(chain, outer, lengths, strides)
            strides += 8 * outer * count
            y = load(p, at.STRIPS_TAIL + at.OUT * count + k) + offset(
                chain, outer, lengths, strides
            )
            store(_words(scratch), k, x)
            store(_words(scratch + at.SLOTS), k, y)
        return words(scratch), words(scratch + at.SLOTS)

    def aggregate(
        table: int, scratch: int, chain: int, link: int, prefix: int, target: int
    ) -> None:
        p = _words(table)
        # the last tile's aggregate is not needed
        n = min(at.ABREAST, load(p, at.STRIPS) - 1 - link * at.ABREAST)
        if n <= 0:
            return
        k1, k2, k3 = min(1, n - 1), min(2, n - 1), n - 1
        jump = words(table + 8 * (at.STRIPS_TAIL + at.X_JUMP * count))
        sx = words(table + 8 * (at.STRIPS_TAIL + at.X_STEP * count))
        row, _ = rows_of(table, scratch, chain)
        s0 = moved(row, jump, link * at.ABREAST)
        s1, s2, s3 = moved(s0, jump, k1), moved(s0, jump, k2), moved(s0, jump, k3)
        a, b, c, d = read(s0), read(s1), read(s2), read(s3)
        for i in range(1, load(p, at.TILE)):
            one_by_one()
            a, b = fn(a, read(moved(s0, sx, i))), fn(b, read(moved(s1, sx, i)))
            c, d = fn(c, read(moved(s2, sx, i))), fn(d, read(moved(s3, sx, i)))
        put(target, a)
        put(target + k1 * a_size, b)
        put(target + k2 * a_size, c)
        put(target + k3 * a_size, d)

    def fold(table: int, scratch: int, chain: int, link: int, prefix: int, source: int) -> None:
        p = _words(table)
        first, init = 0, load(p, at.INIT)
        if link > 0:
            put(prefix, get(prefix + at.ABREAST * a_size))
        elif init:
            put(prefix, get(init))
        else:
            put(prefix + a_size, get(source))
            first = 1
        for k in range(first, min(at.ABREAST, load(p, at.STRIPS) - 1 - link * at.ABREAST)):
            value_address = prefix + k * a_size
            put(value_address + a_size, fn(get(value_address), get(source + k * a_size)))

    def emit(table: int, scratch: int, chain: int, link: int, prefix: int, own: int) -> None:
        p = _words(table)
        is_cut, init, strips = load(p, at.IS_CUT), load(p, at.INIT), load(p, at.STRIPS)
        jump = words(table + 8 * (at.STRIPS_TAIL + at.X_JUMP * count))
        jump_out = words(table + 8 * (at.STRIPS_TAIL + at.OUT_JUMP * count))
        x_row, out_row = rows_of(table, scratch, chain)
        first, spacing = link * load(p, at.SPAN), 1
        q, stop = first, min(first + load(p, at.SPAN), strips)
        is_whole = is_cut == 0 and stop - first == load(p, at.SPAN)
        if is_whole:
            spacing = load(p, at.SPAN) // at.ABREAST  # four long runs prefetch best
            stop = first + spacing
        while q < stop:
            n, m = at.ABREAST if is_whole else min(at.ABREAST, stop - q), load(p, at.TILE)
            start = init
            if is_cut:
                if q == 0 and init == 0:
                    # the chain's first strip starts from its first element, the others from a
                    # prefix
                    n = 1
                else:
                    start = prefix + (q - first) * a_size
                    n = n - 1 if n > 1 and q + n == strips else n
                m = min(m, load(p, at.LENGTH) - (q + n - 1) * m)
            x, y = moved(x_row, jump, q), moved(out_row, jump_out, q)
            scan_strips(table, x, y, spacing, n, m, start, a_size if is_cut else 0)
            q += 1 if is_whole else n

    return {"aggregate": aggregate, "fold": fold, "emit": emit}[name]


def _reader(source: np.dtype[Any], acc: np.dtype[Any]) -> Any:
    read = access_by_address(source).read
    if source == acc:
        return read
    convert = cast(source, acc)
    return inline(lambda addresses: convert(read(addresses)))


def _through(fn: Any, source: np.dtype[Any], acc: np.dtype[Any], exclusive: bool) -> Any:
    """Return the loop over n strips of m elements that start from values `step` bytes apart.

    If `start` is 0 they start from their first elements. If n is below four, the last strip is
    processed several times, with the same effect, because all reads precede the writes.
    """
    get, read = reader(storage(acc)), _reader(source, acc)
    words, moved, _, put = access_by_address(acc)
    count = len(records.field_dtypes(acc))

    @inline
    def through(
        table: int, s0: Any, d0: Any, spacing: int, n: int, m: int, start: int, step: int
    ) -> None:
        lists = table + 8 * at.STRIPS_TAIL
        k1, k2, k3 = min(1, n - 1), min(2, n - 1), n - 1
        jump = words(lists + 8 * at.X_JUMP * count)
        jump_out = words(lists + 8 * at.OUT_JUMP * count)
        s1, d1 = moved(s0, jump, spacing * k1), moved(d0, jump_out, spacing * k1)
        s2, d2 = moved(s0, jump, spacing * k2), moved(d0, jump_out, spacing * k2)
        s3, d3 = moved(s0, jump, spacing * k3), moved(d0, jump_out, spacing * k3)
        sx, sy = words(lists + 8 * at.X_STEP * count), words(lists + 8 * at.OUT_STEP * count)
        first = 0
        if start:
            a, b = get(start), get(start + k1 * step)
            c, d = get(start + k2 * step), get(start + k3 * step)
        else:
            a, b, c, d = read(s0), read(s1), read(s2), read(s3)
            put(d0, a)
            put(d1, b)
            put(d2, c)
            put(d3, d)
            first = 1
        for i in range(first, m):
            one_by_one()
            e, f = read(moved(s0, sx, i)), read(moved(s1, sx, i))
            g, h = read(moved(s2, sx, i)), read(moved(s3, sx, i))
            if not exclusive:
                a, b, c, d = fn(a, e), fn(b, f), fn(c, g), fn(d, h)
            put(moved(d0, sy, i), a)
            put(moved(d1, sy, i), b)
            put(moved(d2, sy, i), c)
            put(moved(d3, sy, i), d)
            if exclusive:
                a, b, c, d = fn(a, e), fn(b, f), fn(c, g), fn(d, h)

    return through


# --- Functions of a scan down columns: whole rows of neighbouring elements, one after another.


def columns_kernel(fn: Any, name: str, acc: np.dtype[Any], exclusive: bool) -> Function:
    """Return aggregate, fold or emit; a chain is up to COLUMNS columns, a link TILE rows.

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
        outer, lengths = load(p, at.OUTER), table + 8 * at.COLUMNS_TAIL
        strips = (load(p, at.WIDTH) + at.COLUMNS - 1) // at.COLUMNS
        row = chain // strips
        column, top = (chain - row * strips) * at.COLUMNS, link * load(p, at.TILE)
        for k in range(count):
            entry = lengths + 8 * outer + 8 * k * (at.NUMBER + 2 * outer)
            q, strides = _words(entry), entry + 8 * at.NUMBER
            source = load(q, START) + offset(row, outer, lengths, strides)
            target = load(q, at.OUT_AT) + offset(row, outer, lengths, strides + 8 * outer)
            source += column * load(q, at.ACROSS) + top * load(q, at.DOWN)
            target += column * load(q, at.OUT_ACROSS) + top * load(q, at.OUT_DOWN)
            store(_words(scratch), k, source)
            store(_words(scratch + at.SLOTS), k, target)
        return min(at.COLUMNS, load(p, at.WIDTH) - column), min(
            load(p, at.TILE), load(p, at.LENGTH) - top
        )

    @inline
    def read(table: int, scratch: int, r: int, width: int) -> int:
        """Make row r of x dense and of dtype acc; return where its addresses are stored."""
        p, row = _words(table), scratch + 2 * at.SLOTS
        outer = load(p, at.OUTER)
        for k in range(count):
            entry = table + 8 * (at.COLUMNS_TAIL + outer) + 8 * k * (at.NUMBER + 2 * outer)
            source = load(_words(scratch), k) + r * load(_words(entry), at.DOWN)
            dim = (table + 8 * at.WIDTH, entry + 8 * at.ACROSS)
            store(_words(row), k, dense_address(entry, scratch, source, 0, width, 1, *dim))
        return row

    @inline
    def copy(target: int, row: int, width: int) -> None:
        for k in range(count):
            copy_bytes(target + width * ahead[k], load(_words(row), k), width * sizes[k])

    @inline
    def write(table: int, scratch: int, r: int, source: int, width: int) -> None:
        p = _words(table)
        outer = load(p, at.OUTER)
        for k in range(count):
            entry = table + 8 * (at.COLUMNS_TAIL + outer) + 8 * k * (at.NUMBER + 2 * outer)
            q, dense = _words(entry), source + width * ahead[k]
            target = load(_words(scratch + at.SLOTS), k) + r * load(q, at.OUT_DOWN)
            if load(q, at.OUT_ACROSS) == sizes[k]:
                copy_bytes(target, dense, width * sizes[k])
            else:
                dim = (table + 8 * at.WIDTH, entry + 8 * at.OUT_ACROSS)
                call(load(q, at.OUT_PACK), (dense, target, 0, width, 1, *dim, 0))

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
        num_bytes, init = width * a_size, load(_words(table), at.INIT)
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
        init = load(_words(table), at.INIT)
        width, rows = place(table, scratch, chain, link)
        total_address = scratch + 3 * at.SLOTS
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

    return {"aggregate": aggregate, "fold": fold, "emit": emit}[name]
