"""Functions for kernels to call on any strided array: offsets of elements, and packing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba import types

from gpualgo._cpu.parameters import CONVERT, CONVERTED, DIRECT, PACK, PACKED, SIZE
from gpualgo._cpu.pointers import call, copy_bytes, load, pointer_to, store

_LONG_BYTES = 128  # the least for which memcpy is faster than a loop
_words = pointer_to(types.intp)


def _offset(index: int, ndim: int, lengths: int, strides: int) -> int:
    """Return the offset in bytes of the index-th element in C order."""
    total = 0
    for d in range(ndim - 1, 0, -1):
        length = load(_words(lengths), d)
        quotient = index // length
        total += (index - quotient * length) * load(_words(strides), d)
        index = quotient
    if ndim > 0:
        total += index * load(_words(strides), 0)
    return total


def _fetched(
    leaf: int, scratch: int, x: int, start: int, count: int, ndim: int, lengths: int, strides: int
) -> int:
    """Return the address of a dense copy of numbers start, start + 1, ... of the array at `x`.

    `leaf` is the address of a table by `layout.leaf`. Contiguous numbers need no copy.
    """
    p = _words(leaf)
    if load(p, DIRECT):
        x += start * load(p, SIZE)
    else:
        packed = scratch + load(p, PACKED)
        if load(p, PACK):  # else it was packed with the array it is interleaved with
            call(load(p, PACK), (packed, x, start, count, ndim, lengths, strides, 1))
        x = packed
    if load(p, CONVERT):
        converted = scratch + load(p, CONVERTED)
        call(load(p, CONVERT), (converted, x, count))
        x = converted
    return x


# Compiled together with the kernels that call them.
offset = numba.njit(nogil=True, error_model="numpy")(_offset)
fetched = numba.njit(nogil=True, error_model="numpy")(_fetched)


def convert_kernel(cast: Any, source: Any, target: Any) -> Callable[..., None]:
    """Return the source of `layout.converter`'s function for two types."""
    as_source, as_target = pointer_to(source), pointer_to(target)

    def convert(converted: int, numbers: int, count: int) -> None:
        for i in range(count):
            store(as_target(converted), i, cast(load(as_source(numbers), i)))

    return convert


def count_kernel(origin: int) -> Callable[..., None]:
    """Return the source of `layout.counter`'s function."""

    def count_positions(
        dense: int,
        start_at: int,
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
        while count > 0:
            n = min(count, inner - column)
            first = start_at - origin + offset(row, ndim - 1, lengths, strides) + column * stride
            target = _words(dense)
            for i in range(n):
                store(target, i, first + i * stride)
            dense += 8 * n
            count -= n
            row += 1
            column = 0

    return count_positions


def pack_kernel(itemsize: int) -> Callable[..., None]:
    """Return the source of `layout.packer`'s function for a size of element."""
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
        total, first_dense = count, dense
        if packing and ndim == 2 and load(_words(strides), 0) == 0:
            count = min(count, inner)  # a repeated row: its copies are made from the first one
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
            copy_bytes(first_dense + packed * itemsize, first_dense, n * itemsize)
            packed += n

    return pack
