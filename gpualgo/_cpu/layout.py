"""Any strided array as runs of elements: merged dimensions, and packing of a range of elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
from numba import types

from gpualgo._cpu.kernels import get_entry
from gpualgo._cpu.pointers import copy_bytes, load, pointer_to, store

Dims = Sequence[tuple[int, ...]]
"""Dimensions, outermost first: (length, stride of each array in bytes, ...)."""


def address(array: np.ndarray[Any, Any]) -> int:
    """Return where the first element of array lies."""
    return int(array.__array_interface__["data"][0])


def merge(dims: Dims) -> list[tuple[int, ...]]:
    """Drop dimensions of length 1 and join neighbours that are one run in every array."""
    merged: list[tuple[int, ...]] = []
    for dim in dims:
        if dim[0] == 1:
            continue
        length, *strides = dim
        if merged and all(
            outer == inner * length for outer, inner in zip(merged[-1][1:], strides, strict=True)
        ):
            merged[-1] = (merged[-1][0] * length, *strides)
        else:
            merged.append(dim)
    return merged


def is_dense(dims: Dims, which: int, itemsize: int) -> bool:
    """Say whether the elements of array number `which` follow one another in memory."""
    for dim in reversed(dims):
        if dim[1 + which] != itemsize:
            return False
        itemsize *= dim[0]
    return True


def table(*lists: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return the numbers of all lists, one after another, as kernels read them."""
    return np.array([number for numbers in lists for number in numbers], np.int64)


_LONG_BYTES = 128  # a run from which memcpy is faster than a loop
_words = pointer_to(types.intp)


def _offset(index: int, ndim: int, lengths: int, strides: int) -> int:
    """Return the offset in bytes of the index-th element in C order."""
    total = 0
    for d in range(ndim - 1, 0, -1):
        length = load(_words(lengths), d)
        rest = index // length
        total += (index - rest * length) * load(_words(strides), d)
        index = rest
    if ndim > 0:
        total += index * load(_words(strides), 0)
    return total


offset = numba.njit("intp(intp,intp,intp,intp)", nogil=True, error_model="numpy")(_offset)


def packer(itemsize: int) -> int:
    """Return the address of the copy between a strided array's elements and a dense buffer.

    ``f(dense, strided, start, count, ndim, lengths, strides, packing)`` copies elements start,
    start + 1, ... in C order. It is compiled once per size, serves every dtype and operator, and is
    called by address, so that an operator's own kernels hold no code for layouts.
    """
    return get_entry(("packer", itemsize), lambda: _pack(itemsize))


def _pack(itemsize: int) -> Callable[..., None]:
    words = 2 if itemsize == 16 else 1
    word_at = pointer_to(types.Integer.from_bitwidth(itemsize * 8 // words))

    def pack(
        dense: int,
        strided: int,
        start: int,
        count: int,
        ndim: int,
        lengths: int,
        strides: int,
        packing: int,
    ) -> None:
        inner, stride = 1, 0
        if ndim > 0:
            inner, stride = load(_words(lengths), ndim - 1), load(_words(strides), ndim - 1)
        row = start // inner
        column = start - row * inner
        total, begin = count, dense
        if packing and ndim == 2 and load(_words(strides), 0) == 0:
            count = min(count, inner)  # one row again and again: the rest is copied from here
        packed = count
        while count > 0:
            n = min(count, inner - column)
            run = strided + offset(row, ndim - 1, lengths, strides) + column * stride
            if stride == itemsize and n * itemsize >= _LONG_BYTES:
                target, source = (dense, run) if packing else (run, dense)
                copy_bytes(target, source, n * itemsize)
            elif packing and stride == 0:
                for w in range(words):
                    value = load(word_at(run), w)
                    for i in range(n):
                        store(word_at(dense), words * i + w, value)
            elif packing:
                for i in range(n):
                    for w in range(words):
                        store(word_at(dense), words * i + w, load(word_at(run + i * stride), w))
            else:
                for i in range(n):
                    for w in range(words):
                        store(word_at(run + i * stride), w, load(word_at(dense), words * i + w))
            dense += n * itemsize
            count -= n
            row += 1
            column = 0
        while packed < total:
            n = min(packed, total - packed)
            copy_bytes(begin + packed * itemsize, begin, n * itemsize)
            packed += n

    return pack
