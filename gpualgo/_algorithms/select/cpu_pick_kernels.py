"""What moves up the marked numbers of a chunk, and what writes down marked positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from gpualgo._cpu.pointers import load, pointer_to, store

_words, _bytes = pointer_to(types.intp), pointer_to(types.uint8)


def pick_kernel(itemsize: int) -> Callable[..., None]:
    """Write f(target, source, marks, count, wanted): what is marked so, one after another.

    The target has room for all.
    """
    words = 2 if itemsize == 16 else 1
    word_at = pointer_to(types.Integer.from_bitwidth(itemsize * 8 // words))

    def pick(target: int, source: int, marks: int, count: int, wanted: int) -> None:
        to, read, marked = word_at(target), word_at(source), _bytes(marks)
        place = 0
        if wanted:
            for i in range(count):  # without a branch, which would be guessed wrong half the times
                for w in range(words):
                    store(to, words * place + w, load(read, words * i + w))
                place += types.intp(load(marked, i) != 0)
            return
        for i in range(count):
            for w in range(words):
                store(to, words * place + w, load(read, words * i + w))
            place += types.intp(load(marked, i) == 0)

    return pick


def place_kernel(origin: int) -> Callable[..., None]:
    """Write the same of positions that rise by 1, of which `source` is the first.

    Eight marks are a word, and a table tells where in it they are set: two stores write eight
    places, of 16 bits, which lie in the target behind the positions that are made of them then.
    """
    table = _places_of_marks()

    def pick(target: int, source: int, marks: int, count: int, wanted: int) -> None:
        words, marked = _marks(marks), _bytes(marks)
        short = target + 8 * count
        other = _NO_MARKS if wanted else _EACH_MARK
        place = 0
        whole = count & ~31
        for i in range(0, whole, 32):
            at = i >> 3
            some = load(words, at) | load(words, at + 1) | load(words, at + 2) | load(words, at + 3)
            if wanted and not some:  # nothing is written: of few marks this is the rule
                continue
            for j in range(4):
                word = load(words, at + j)
                word |= word >> types.uint64(4)  # whatever a byte that is true holds
                word |= word >> types.uint64(2)
                word |= word >> types.uint64(1)
                word = (word & _EACH_MARK) ^ other
                row = ((word * _GATHERED) >> types.uint64(56)) << types.uint64(1)
                begin = types.uint64(i + 8 * j) * _EACH_PLACE
                to = _marks(short + 2 * place)
                store(to, 0, table[row] + begin)
                store(to, 1, table[row | types.uint64(1)] + begin)
                place += types.intp((word * _EACH_MARK) >> types.uint64(56))
        for i in range(whole, count):
            store(_places(short), place, types.uint16(i))
            place += types.intp((load(marked, i) != 0) == (wanted != 0))
        first = source - origin
        for i in range(place):
            store(_words(target), i, first + types.intp(load(_places(short), i)))

    return pick


_marks, _places = pointer_to(types.uint64), pointer_to(types.uint16)
_NO_MARKS, _EACH_MARK = np.uint64(0), np.uint64(0x0101010101010101)
_EACH_PLACE = np.uint64(0x0001000100010001)
_GATHERED = np.uint64(0x0102040810204080)  # times bytes of 0 or 1: their bits, in the highest byte


def _places_of_marks() -> np.ndarray[Any, Any]:
    """Return for each byte of marks where those are that are set, 16 bits each, as two words."""
    found = np.zeros((256, 8), "<u2")
    for bits in range(256):
        places = [i for i in range(8) if bits >> i & 1]
        found[bits, : len(places)] = places
    return found.view("<u8").reshape(-1).astype(np.uint64)
