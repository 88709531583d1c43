"""Kernels around NumPy's sort of floats of two bytes, which it sorts as integers: their codes.

A code is an int16 in the order wanted: the zeros are -1 and 0, NaNs the largest, which no other key
has. NumPy's vectors sort those in two thirds of the time that they take for float16, and bfloat16
has no vectors of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from gpualgo._algorithms.radix_sort import cpu_kernels as rk
from gpualgo._algorithms.radix_sort.cpu_merge_parameters import BLOCK
from gpualgo._cpu.pointers import load, pointer_to, store

_as_bits, _as_code = pointer_to(types.uint16), pointer_to(types.int16)
_make, _sign, _magnitude = types.uint16, np.uint16(15), np.uint16(0x7FFF)
_NAN, _LOW_ZERO, _ABOVE_ZERO = 0x7FFF, -1, 1
_ZERO = np.uint16(0)


@rk.inline
def _turned(bits: Any) -> Any:
    """Return a float's bits in the order of int16, or the bits of what is so."""
    return _make(bits ^ (_make(_ZERO - (bits >> _sign)) & _magnitude))


def encode_kernel(infinity: int, is_descending: int) -> Callable[..., None]:
    """Write f(keys, codes, length, _)."""
    limit, flip = np.uint16(infinity), np.uint16(0xFFFF if is_descending else 0)

    def kernel(keys: int, codes: int, length: int, _unused: int) -> None:
        source, target = _as_bits(keys), _as_bits(codes)
        for i in range(length):
            bits = load(source, i)
            code = _make(_turned(bits) ^ flip)
            store(target, i, _magnitude if _make(bits & _magnitude) > limit else code)

    return kernel


def decode_kernel(infinity: int, is_descending: int) -> Callable[..., None]:
    """Write f(keys, rows, length, count): floats of sorted codes, zeros and NaNs as keys have them.

    Rows lie one behind the other; a count of 0 is one, too.
    """
    limit, flip = np.uint16(infinity), np.uint16(0xFFFF if is_descending else 0)
    negative_zero = np.int16(0 if is_descending else -1)

    @rk.inline
    def count(row: int, length: int, end: int) -> int:
        """Return how many codes are below an end."""
        low, high = 0, length
        while low < high:
            middle = (low + high) // 2
            if load(_as_code(row), middle) < end:
                low = middle + 1
            else:
                high = middle
        return low

    @rk.inline
    def is_wanted(bits: Any, wants_nan: bool) -> Any:
        magnitude = _make(bits & _magnitude)
        return magnitude > limit if wants_nan else magnitude == _ZERO

    @rk.inline
    def gather(keys: int, length: int, row: int, at: int, left: int, wants_nan: bool) -> None:
        """Write all zeros, or NaNs, of keys to places of a row; there are `left` of them.

        Fewer are found where another thread has written to keys since the row was copied.
        """
        source, target, i = _as_bits(keys), _as_bits(row), 0
        while left > 0 and i < length:
            stop, found = min(length, i + BLOCK), False
            for j in range(i, stop):
                found |= is_wanted(load(source, j), wants_nan)
            if found:
                for j in range(i, stop):
                    bits = load(source, j)
                    if is_wanted(bits, wants_nan):
                        store(target, at, bits)
                        at += 1
                        left -= 1
                        if left == 0:
                            break
            i = stop

    @rk.inline
    def decode(keys: int, row: int, length: int) -> None:
        codes, bits, has_negative, zero, above = _as_code(row), _as_bits(row), False, 0, 0
        nan = length
        if length and load(codes, length - 1) == _NAN:
            nan = count(row, length, _NAN)
        for i in range(length):
            has_negative |= load(codes, i) == negative_zero
        if has_negative:
            zero, above = count(row, length, _LOW_ZERO), count(row, length, _ABOVE_ZERO)
        for i in range(length):
            store(bits, i, _turned(_make(load(bits, i) ^ flip)))
        if above - zero > 1:  # one alone has its sign
            gather(keys, length, row, zero, above - zero, False)
        gather(keys, length, row, nan, length - nan, True)

    def kernel(keys: int, rows: int, length: int, number: int) -> None:
        for i in range(max(1, number)):
            decode(keys + 2 * length * i, rows + 2 * length * i, length)

    return kernel
