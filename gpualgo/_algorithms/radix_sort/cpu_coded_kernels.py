"""Kernels that convert 16-bit floats to int16 codes and back, around NumPy's integer sort.

Codes have the order of the sort. The zeros are -1 and 0; NaNs have the largest code, which no other
key has. With SIMD, NumPy sorts int16 in two thirds of the time of float16; it has no SIMD sort of
bfloat16.
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
_to_uint16, _sign, _magnitude = types.uint16, np.uint16(15), np.uint16(0x7FFF)
_NAN, _LOW_ZERO, _ABOVE_ZERO = 0x7FFF, -1, 1
_ZERO = np.uint16(0)


@rk.inline
def _swap_sign_order(bits: Any) -> Any:
    """Convert sign-magnitude bits to two's complement order, or back."""
    return _to_uint16(bits ^ (_to_uint16(_ZERO - (bits >> _sign)) & _magnitude))


def encode_kernel(infinity: int, is_descending: int) -> Callable[..., None]:
    """Return f(keys, codes, length, _), which writes the codes of keys."""
    limit, flip = np.uint16(infinity), np.uint16(0xFFFF if is_descending else 0)

    def kernel(keys: int, codes: int, length: int, _unused: int) -> None:
        source, target = _as_bits(keys), _as_bits(codes)
        for i in range(length):
            bits = load(source, i)
            code = _to_uint16(_swap_sign_order(bits) ^ flip)
            store(target, i, _magnitude if _to_uint16(bits & _magnitude) > limit else code)

    return kernel


def decode_kernel(infinity: int, is_descending: int) -> Callable[..., None]:
    """Return f(keys, rows, length, count): decodes sorted codes, restoring zeros and NaNs from
    keys.

    Rows are contiguous; a count of 0 means one row.
    """
    limit, flip = np.uint16(infinity), np.uint16(0xFFFF if is_descending else 0)
    negative_zero = np.int16(0 if is_descending else -1)

    @rk.inline
    def count(row: int, length: int, end: int) -> int:
        """Return how many codes are less than `end`."""
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
        magnitude = _to_uint16(bits & _magnitude)
        return magnitude > limit if wants_nan else magnitude == _ZERO

    @rk.inline
    def gather(keys: int, length: int, row: int, index: int, todo: int, wants_nan: bool) -> None:
        """Write all zeros (or NaNs) of keys to row[index:]; there are `todo` of them.

        There may be fewer if another thread has written to keys since the row was copied.
        """
        source, target, i = _as_bits(keys), _as_bits(row), 0
        while todo > 0 and i < length:
            stop, has_any = min(length, i + BLOCK), False
            for j in range(i, stop):
                has_any |= is_wanted(load(source, j), wants_nan)
            if has_any:
                for j in range(i, stop):
                    bits = load(source, j)
                    if is_wanted(bits, wants_nan):
                        store(target, index, bits)
                        index += 1
                        todo -= 1
                        if todo == 0:
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
            store(bits, i, _swap_sign_order(_to_uint16(load(bits, i) ^ flip)))
        if above - zero > 1:  # a single zero keeps its sign
            gather(keys, length, row, zero, above - zero, False)
        gather(keys, length, row, nan, length - nan, True)

    def kernel(keys: int, rows: int, length: int, count: int) -> None:
        for i in range(max(1, count)):
            decode(keys + 2 * length * i, rows + 2 * length * i, length)

    return kernel
