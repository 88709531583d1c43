"""Compaction of the marked numbers of a chunk, and of marked indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from gpualgo._cpu.pointers import load, pointer_to, store

_words = pointer_to(types.intp)
_bytes = pointer_to(types.uint8)


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
