"""Kernel that moves keys by whole cache lines, for rows larger than the caches.

Each bucket collects a line in cache before writing it: the "software write-combining" of N. Satish
et al. (SIGMOD 2010, 10.1145/1807167.1807207).
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
    """Write an aligned cache line with a non-temporal store, without reading it first."""

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        line = ir.VectorType(ir.IntType(64), LINE // 8)
        value = builder.load(builder.inttoptr(args[1], line.as_pointer()), align=LINE)
        stored = builder.store(value, builder.inttoptr(args[0], line.as_pointer()), align=LINE)
        one = ir.Constant(ir.IntType(32), 1)
        stored.set_metadata("nontemporal", builder.module.add_metadata([one]))
        return context.get_dummy_value()

    return types.void(types.intp, types.intp), generate


def _fence(_typing: Any) -> Any:
    """Order non-temporal stores before this thread's later writes."""

    def generate(context: Any, builder: Any, _signature: Any, _args: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate


_stream = intrinsic(_stream_line)
_order = intrinsic(_fence)


@rk.inline
def _flush(end: int, line: int, filled: int, valid: int, size: int) -> None:
    """Write the last `valid` of a line's first `filled` items so that they end at address `end`."""
    if valid * size >= LINE:
        _stream(end - LINE, line)
    else:
        num_bytes = min(filled, valid) * size
        copy_bytes(end - num_bytes, line + filled * size - num_bytes, num_bytes)


@rk.inline
def _flush_rest(out: int, lines: int, ends: int, starts: int, buckets: int, size: int) -> None:
    """Write the partly filled lines of all buckets."""
    bucket_end, start = rk.words(ends), rk.words(starts)
    for b in range(buckets):
        end = load(bucket_end, b)
        filled = (end + out % LINE // size) & (LINE // size - 1)
        _flush(out + end * size, lines + LINE * b, filled, min(filled, end - load(start, b)), size)


def line_kernel(size: int, value_size: int) -> Callable[..., None]:
    """Return the kernel that moves the keys of each part; outputs are aligned to their items."""
    as_key, as_value = pointer_to(rk.word(size)), pointer_to(rk.word(value_size))
    cast, nwords, value_bytes = rk.word(value_size), -(-value_size // 8), value_size or 1
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
            next_index = rk.words(places)
            copy_bytes(starts, places, 8 * buckets)
            i, stop = length * part // parts, length * (part + 1) // parts
            while i < stop:
                count = min(BLOCK, stop - i)
                rk.read_codes(table, keys + size * i, count, codes)
                for j in range(count):
                    b = types.intp((load(code, j) >> shift) & mask)
                    at = load(next_index, b) + 1
                    store(next_index, b, at)
                    if nwords == 0 or out_keys:
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
                    if nwords:
                        slot = (at - 1 + value_phase) & (values_per_line - 1)
                        offset = nwords * (b * values_per_line + slot)
                        if nwords == 1:
                            value = load(value_source, i + j) if values else cast(i + j)
                            store(value_lines, offset, value)
                        else:
                            store(value_lines, offset, load(value_source, 2 * (i + j)))
                            store(value_lines, offset + 1, load(value_source, 2 * (i + j) + 1))
                        if slot == values_per_line - 1:
                            end, line = out_values + at * value_bytes, value_scratch + LINE * b
                            valid = at - load(start, b)
                            _flush(end, line, values_per_line, valid, value_bytes)
                i += count
            if out_keys:
                _flush_rest(out_keys, scratch, places, starts, buckets, size)
            if nwords:
                _flush_rest(out_values, value_scratch, places, starts, buckets, value_bytes)
        _order()

    return kernel
