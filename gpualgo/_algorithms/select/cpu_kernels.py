"""Kernels of a CPU selection: marking, compaction, and the loop over chunks that calls both.

The loop serves all dtypes and predicates, and is compiled once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from gpualgo._algorithms.select import problem as at
from gpualgo._cpu.fields import access_by_index, same_value
from gpualgo._cpu.packing import (
    call,
    copy_bytes,
    dense_address,
    inline,
    load,
    load_each,
    pointer_to,
    pointers_to,
    storage,
    store,
)
from gpualgo._cpu.plan import START

_words = pointer_to(types.intp)
_bytes = pointer_to(types.uint8)
_BYTE_SUM = 128  # marks whose sum fits into a byte


def mark_kernel(fn: Any, numbers: tuple[np.dtype[Any], ...]) -> Callable[..., None]:
    """Return f(marks, slots, count): writes 1 for elements for which the predicate is true."""
    sources = pointers_to(tuple(map(storage, numbers)), tuple(range(len(numbers))))

    def mark(marks: int, slots: int, count: int) -> None:
        target, read = _bytes(marks), sources(slots)
        for i in range(count):
            store(target, i, types.uint8(fn(*load_each(read, i))))

    return mark


def head_kernel(fn: Any, element: np.dtype[Any]) -> Callable[..., None]:
    """Return f(marks, slots, count): writes 1 for the first element of each run, else 0.

    `fn` says which elements are equal; None: those whose numbers are, all NaN among them.
    """
    read = access_by_index(element)
    pointers, get = read.pointers, read.load
    is_same = same_value(element) if fn is None else fn

    def mark(marks: int, slots: int, count: int) -> None:
        target, source = _bytes(marks), pointers(slots)
        store(target, 0, types.uint8(1))
        for i in range(1, count):
            is_equal = is_same(get(source, i - 1), get(source, i))
            store(target, i, types.uint8(0 if is_equal else 1))

    return mark


@inline
def _counted(marks: int, count: int) -> int:
    total = start = 0
    marked = _bytes(marks)
    while start < count:
        stop = min(start + _BYTE_SUM, count)
        part = types.uint8(0)  # as wide as marks, so that additions vectorise
        for i in range(start, stop):
            part = types.uint8(part + types.uint8(load(marked, i) != 0))
        total += part
        start = stop
    return total


@inline
def copy_out(record: int, packed: int, index: int, count: int) -> None:
    """Copy packed numbers to position `index` of the output, up to its length."""
    p = _words(record)
    count = min(count, load(p, at.CAPACITY) - index)
    if count <= 0:
        return
    if load(p, at.PACK):
        dim = record + 8 * at.CAPACITY, record + 8 * at.STRIDE
        call(load(p, at.PACK), (packed, load(p, at.OUT), index, count, 1, *dim, 0))
    else:
        copy_bytes(load(p, at.OUT) + index * load(p, at.SIZE), packed, count * load(p, at.SIZE))


@inline
def input_entries(table: int) -> int:
    ndim: int = load(_words(table), at.NDIM)
    return table + 8 * (at.TAIL + ndim)


@inline
def load_chunk(table: int, scratch: int, start: int, count: int) -> None:
    """Load some elements, compute them if needed, and store their addresses in the slots."""
    p, slots = _words(table), _words(scratch)
    ndim, inputs, compute = load(p, at.NDIM), load(p, at.INPUTS), load(p, at.COMPUTE)
    is_plain = load(p, at.COUNTS) and not (compute or load(p, at.MARK))
    # counting needs the marks only, the last input
    for k in range(inputs - 1 if is_plain else 0, inputs):
        entry = input_entries(table) + 8 * k * (at.READ + ndim)
        address = load(_words(entry), START)
        lengths, strides = table + 8 * at.TAIL, entry + 8 * at.READ
        store(
            slots, k, dense_address(entry, scratch, address, start, count, ndim, lengths, strides)
        )
    if compute:
        call(compute, (scratch, scratch + load(p, at.COMPUTED), count))


def select_kernel(table: int, scratch: int, first: int, last: int) -> None:
    """Count or write the kept elements of tasks first to last."""
    p, slots = _words(table), _words(scratch)
    outputs = load(p, at.OUTPUTS)
    writes = input_entries(table) + 8 * load(p, at.INPUTS) * (at.READ + load(p, at.NDIM))
    offsets = _words(load(p, at.TASK_OFFSETS))
    packed = scratch + load(p, at.PACKED)
    for task in range(first, last):
        start = task * load(p, at.PER_TASK)
        stop = min(start + load(p, at.PER_TASK), load(p, at.LENGTH))
        kept_index = 0 if load(p, at.COUNTS) else load(offsets, task)
        rest_index = load(p, at.TOTAL) + start - kept_index
        while start < stop:
            earlier = min(load(p, at.COMPARES), start)  # elements that are read for comparison only
            n = min(at.CHUNK - load(p, at.COMPARES), stop - start)
            load_chunk(table, scratch, start - earlier, n + earlier)
            marks = load(slots, outputs)
            if load(p, at.MARK):
                marks = scratch + load(p, at.MARKS)
                call(load(p, at.MARK), (marks, scratch, n + earlier))
            marks += earlier
            if load(p, at.NUMBERS):
                numbers = scratch + load(p, at.NUMBERS)
                for i in range(n + earlier):
                    store(_words(numbers), i, start - earlier + i)
                store(slots, outputs - 1, numbers)
            kept = _counted(marks, n)
            if not load(p, at.COUNTS):
                for k in range(outputs):
                    record = writes + 8 * k * at.WRITTEN
                    pick, source = load(_words(record), at.PICK), load(slots, k)
                    source += earlier * load(_words(record), at.SIZE)
                    call(pick, (packed, source, marks, n, 1))
                    copy_out(record, packed, kept_index, kept)
                    if load(p, at.TOTAL) >= 0:
                        call(pick, (packed, source, marks, n, 0))
                        copy_out(record, packed, rest_index, n - kept)
            kept_index += kept
            rest_index += n - kept
            start += n
        store(offsets, task, kept_index)


def seek_kernel(table: int, scratch: int, first: int, last: int) -> None:
    """Store for each task the first index that is not NOWHERE, or -1."""
    p, slots = _words(table), _words(scratch)
    for task in range(first, last):
        start = task * load(p, at.PER_TASK)
        stop = min(start + load(p, at.PER_TASK), load(p, at.LENGTH))
        found = -1
        while start < stop and found < 0:
            n = min(at.CHUNK, stop - start)
            load_chunk(table, scratch, start, n)
            indices = _words(load(slots, 0))
            is_any = 0
            for i in range(n):  # without a branch, so that it vectorises
                is_any |= ~load(indices, i)
            i = 0
            while is_any and found < 0:
                found = load(indices, i)
                i += 1
            start += n
        store(_words(load(p, at.TASK_OFFSETS)), task, found)


# --- Compaction of the marked numbers of a chunk, and of marked indices.


def pick_kernel(itemsize: int) -> Callable[..., None]:
    """Return f(target, source, marks, count, wanted): copies numbers whose mark is `wanted`.

    The target has room for all numbers.
    """
    words = 2 if itemsize == 16 else 1
    word_at = pointer_to(types.Integer.from_bitwidth(itemsize * 8 // words))

    def pick(target: int, source: int, marks: int, count: int, wanted: int) -> None:
        target_words, read, marked = word_at(target), word_at(source), _bytes(marks)
        kept = 0
        if wanted:
            for i in range(count):  # no branch: half of the predictions would fail
                for w in range(words):
                    store(target_words, words * kept + w, load(read, words * i + w))
                kept += types.intp(load(marked, i) != 0)
            return
        for i in range(count):
            for w in range(words):
                store(target_words, words * kept + w, load(read, words * i + w))
            kept += types.intp(load(marked, i) == 0)

    return pick


def place_kernel(origin: int) -> Callable[..., None]:
    """Return the same function for consecutive indices, of which `source` encodes the first.

    A word holds eight marks; a table maps it to the positions of the set ones. Two stores write
    eight 16-bit positions, behind the memory of the indices that are computed from them afterwards.
    """
    positions_table = _positions_table()

    def pick(target: int, source: int, marks: int, count: int, wanted: int) -> None:
        words, marked = _marks(marks), _bytes(marks)
        short = target + 8 * count
        flip = _FLIP_NONE if wanted else _ALL_MARKS
        kept = 0
        whole_words = count & ~31
        for i in range(0, whole_words, 32):
            w = i >> 3
            any_mark = load(words, w) | load(words, w + 1) | load(words, w + 2) | load(words, w + 3)
            if wanted and not any_mark:  # nothing to write: the usual case with few marks
                continue
            for j in range(4):
                word = load(words, w + j)
                word |= word >> types.uint64(4)  # any bit of a byte makes it true
                word |= word >> types.uint64(2)
                word |= word >> types.uint64(1)
                word = (word & _ALL_MARKS) ^ flip
                table_row = ((word * _GATHER_BITS) >> types.uint64(56)) << types.uint64(1)
                base = types.uint64(i + 8 * j) * _ALL_LANES
                slot = _marks(short + 2 * kept)
                store(slot, 0, positions_table[table_row] + base)
                store(slot, 1, positions_table[table_row | types.uint64(1)] + base)
                kept += types.intp((word * _ALL_MARKS) >> types.uint64(56))
        for i in range(whole_words, count):
            store(_places(short), kept, types.uint16(i))
            kept += types.intp((load(marked, i) != 0) == (wanted != 0))
        first = source - origin
        for i in range(kept):
            store(_words(target), i, first + types.intp(load(_places(short), i)))

    return pick


_marks, _places = pointer_to(types.uint64), pointer_to(types.uint16)
_FLIP_NONE, _ALL_MARKS = np.uint64(0), np.uint64(0x0101010101010101)
_ALL_LANES = np.uint64(0x0001000100010001)
# multiplies bytes of 0 or 1 to collect their bits in the highest byte
_GATHER_BITS = np.uint64(0x0102040810204080)


def _positions_table() -> np.ndarray[Any, Any]:
    """Return for each byte of marks the positions of its set bits, 16 bits each, as two words."""
    table = np.zeros((256, 8), "<u2")
    for bits in range(256):
        positions = [i for i in range(8) if bits >> i & 1]
        table[bits, : len(positions)] = positions
    return table.view("<u8").reshape(-1).astype(np.uint64)
