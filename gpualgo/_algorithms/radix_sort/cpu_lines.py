"""The kernel that moves keys by whole cache lines, for rows larger than the caches.

A line for each bucket is gathered in a cache, so that memory sees few pages and whole lines: the
"software write-combining" of N. Satish et al. (SIGMOD 2010, 10.1145/1807167.1807207).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gpualgo._algorithms.radix_sort import cpu_kernels as rk
from gpualgo._algorithms.radix_sort.cpu_parameters import (
    BLOCK,
    BUCKETS,
    COUNTS,
    KEYS,
    LENGTH,
    LINE,
    OUT_KEYS,
    OUT_VALUES,
    PARTS,
    SHIFT,
    VALUES,
)  # fmt: skip
from gpualgo._cpu.pointers import copy_bytes, load, pointer_to, store


def _stream_line(_typing: Any, target: Any, source: Any) -> Any:
    """Write a line, which starts a cache line, past the caches: it is not read before."""

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        line = ir.VectorType(ir.IntType(64), LINE // 8)
        value = builder.load(builder.inttoptr(args[1], line.as_pointer()), align=LINE)
        written = builder.store(value, builder.inttoptr(args[0], line.as_pointer()), align=LINE)
        one = ir.Constant(ir.IntType(32), 1)
        written.set_metadata("nontemporal", builder.module.add_metadata([one]))
        return context.get_dummy_value()

    return types.void(types.intp, types.intp), generate


def _fence(_typing: Any) -> Any:
    """Order streamed lines before what this thread does next."""

    def generate(context: Any, builder: Any, _signature: Any, _args: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate


_stream = intrinsic(_stream_line)
_order = intrinsic(_fence)


@rk.inline
def _flush(end: int, line: int, filled: int, valid: int, size: int) -> None:
    """Write the items that end a line's `filled` first, and are `valid`, to end at an address."""
    if valid * size >= LINE:
        _stream(end - LINE, line)
    else:
        number = min(filled, valid) * size
        copy_bytes(end - number, line + filled * size - number, number)


@rk.inline
def _flush_rest(out: int, lines: int, places: int, starts: int, buckets: int, size: int) -> None:
    """Write what is left in the lines of all buckets."""
    place, start = rk.words(places), rk.words(starts)
    for b in range(buckets):
        at = load(place, b)
        filled = (at + out % LINE // size) & (LINE // size - 1)
        _flush(out + at * size, lines + LINE * b, filled, min(filled, at - load(start, b)), size)


def line_kernel(size: int, value_size: int) -> Callable[..., None]:
    """Write the kernel that moves the keys of each part; outputs are aligned to their items."""
    as_key, as_value = pointer_to(rk.word(size)), pointer_to(rk.word(value_size))
    make, pieces, value_bytes = rk.word(value_size), -(-value_size // 8), value_size or 1
    per_line, values_per_line = LINE // size, LINE // value_bytes

    def kernel(table: int, scratch: int, first: int, last: int) -> None:
        p, u = rk.words(table), rk.unsigned(table)
        keys, values = load(p, KEYS), load(p, VALUES)
        out_keys, out_values = load(p, OUT_KEYS), load(p, OUT_VALUES)
        length, parts, buckets = load(p, LENGTH), load(p, PARTS), load(p, BUCKETS)
        shift, mask = load(u, SHIFT), np.uint64(buckets - 1)
        source, value_source = as_key(keys), as_value(values)
        value_scratch = scratch + LINE * buckets
        starts = value_scratch + LINE * buckets
        codes = starts + 8 * buckets
        lines, value_lines, start = as_key(scratch), as_value(value_scratch), rk.words(starts)
        phase, value_phase = out_keys % LINE // size, out_values % LINE // value_bytes
        code = rk.unsigned(codes)
        for part in range(first, last):
            places = load(p, COUNTS) + 8 * buckets * part
            place = rk.words(places)
            copy_bytes(starts, places, 8 * buckets)
            i, stop = length * part // parts, length * (part + 1) // parts
            while i < stop:
                count = min(BLOCK, stop - i)
                rk.read_codes(table, keys + size * i, count, codes)
                for j in range(count):
                    b = types.intp((load(code, j) >> shift) & mask)
                    at = load(place, b) + 1
                    store(place, b, at)
                    if pieces == 0 or out_keys:
                        slot = (at - 1 + phase) & (per_line - 1)
                        store(lines, b * per_line + slot, load(source, i + j))
                        if slot == per_line - 1:
                            line = scratch + LINE * b
                            if at - load(start, b) >= per_line:
                                _stream(out_keys + at * size - LINE, line)
                            else:
                                _flush(
                                    out_keys + at * size, line, per_line, at - load(start, b), size
                                )
                    if pieces:
                        slot = (at - 1 + value_phase) & (values_per_line - 1)
                        to = pieces * (b * values_per_line + slot)
                        if pieces == 1:
                            value = load(value_source, i + j) if values else make(i + j)
                            store(value_lines, to, value)
                        else:
                            store(value_lines, to, load(value_source, 2 * (i + j)))
                            store(value_lines, to + 1, load(value_source, 2 * (i + j) + 1))
                        if slot == values_per_line - 1:
                            end, line = out_values + at * value_bytes, value_scratch + LINE * b
                            valid = at - load(start, b)
                            _flush(end, line, values_per_line, valid, value_bytes)
                i += count
            if out_keys:
                _flush_rest(out_keys, scratch, places, starts, buckets, size)
            if pieces:
                _flush_rest(out_values, value_scratch, places, starts, buckets, value_bytes)
        _order()

    return kernel
