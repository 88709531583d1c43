"""Digits of keys: where passes find them, which of their bits are inverted, and what fills places.

A key is a number, or a word of several side by side (words.py): what is said of it is put together
of what is said of each number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpualgo._algorithms.radix_sort import words
from gpualgo._algorithms.radix_sort.words import Dtype, Number, Ways
from gpualgo._base import dtypes

DIGIT_BITS = 8


@dataclass(frozen=True)
class Digit:
    """Where a pass finds its digit (Digit of radix_sort/keys.cuh), and a key for empty places."""

    shift: int
    mask: int
    flip: int
    padding: int  # no key's digit is higher


def packed_digits(digits: Sequence[Digit], count: int) -> list[dict[str, int]]:
    """Return the Digits of kernels; those that are not there are zero."""
    packed = [{"shift": d.shift, "mask": d.mask, "flip": d.flip} for d in digits]
    return packed + [{"shift": 0, "mask": 0, "flip": 0}] * (count - len(packed))


def digits_of(
    dtype: Dtype, descending: Ways, begin_bit: int, end_bit: int, even: bool
) -> list[Digit]:
    """Return the digits of all passes, the lowest first; `even`: an even number of passes."""
    num_passes = -(-(end_bit - begin_bit) // DIGIT_BITS)
    num_passes += even and num_passes % 2
    width = -(-(end_bit - begin_bit) // num_passes)
    bits = 8 * dtype.itemsize
    numbers = words.numbers(dtype, descending)
    flipped = flipped_bits(dtype, descending)
    digits = []
    for shift in range(begin_bit, begin_bit + num_passes * width, width):
        mask = (1 << max(0, min(width, end_bit - shift))) - 1
        shift = min(shift, bits - 1)
        flip = flipped >> shift & mask
        padding = sum(_padding(n, mask << shift, (mask ^ flip) << shift) for n in numbers)
        digits.append(Digit(shift, mask, flip, padding))
    return digits


def flipped_bits(dtype: Dtype, descending: Ways) -> int:
    """Return which bits of an ordered key (KeyOrder) are inverted."""
    return sum(_flipped(n) << n.shift for n in words.numbers(dtype, descending))


def _flipped(number: Number) -> int:
    flipped = (1 << number.bits) - 1 if number.is_descending else 0
    return flipped ^ (1 << number.bits - 1 if dtypes.kind(number.dtype) == "i" else 0)


def last_key(dtype: Dtype, descending: Ways) -> tuple[int, bool]:
    """Return the bits of a key that comes after all others, and if its digits all are highest."""
    key, is_highest = 0, True
    for number in words.numbers(dtype, descending):
        last, is_last_highest = _last(number)
        key |= last << number.shift
        is_highest &= is_last_highest
    return key, is_highest


def _last(number: Number) -> tuple[int, bool]:
    everything = (1 << number.bits) - 1
    if dtypes.kind(number.dtype) != "f":
        return _flipped(number) ^ everything, True
    if number.is_descending:
        return 1 << number.bits - 1 | _infinity(number.dtype), number.dtype != np.float32
    return everything, True


def _padding(number: Number, covered: int, wanted: int) -> int:
    """Return the bits in a key of a number whose part of a digit, once flipped, is as high as any.

    `covered`: the digit's bits in the key; `wanted`: those of them that are to be set.
    """
    everything = (1 << number.bits) - 1
    covered, wanted = (bits >> number.shift & everything for bits in (covered, wanted))
    if dtypes.kind(number.dtype) == "f":
        if wanted:  # NaN
            wanted = everything
        # Of float32, -inf has the lowest first digit alone; the others of +0 are zero.
        elif number.dtype != np.float32 or covered >> number.bits - 1:
            wanted = 1 << number.bits - 1 | _infinity(number.dtype)
    return wanted << number.shift


def _infinity(dtype: Dtype) -> int:
    return int(np.array(np.inf).astype(dtype).view(f"u{dtype.itemsize}"))


def order(dtype: Dtype) -> str:
    """Return the C++ type of the keys' order; that of integers is their unsigned word's."""
    fields = [dtype] if dtype.names is None else [dtype[name] for name in dtype.names]
    if not any(dtypes.kind(field) == "f" for field in fields):
        return f"gpualgo::KeyOrder<{_unsigned(dtype)}>"
    names = [dtypes.cpp_name(f) if dtypes.kind(f) == "f" else _unsigned(f) for f in fields]
    if dtype.names is None:
        return f"gpualgo::KeyOrder<{names[0]}>"
    return f"gpualgo::KeyOrder<gpualgo::SideBySide<{', '.join(names)}>>"


def _unsigned(dtype: np.dtype[Any]) -> str:
    return dtypes.cpp_name(np.dtype(f"u{dtype.itemsize}"))
