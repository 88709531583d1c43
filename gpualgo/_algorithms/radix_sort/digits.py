"""Digits of keys: their positions, inverted bits, and padding keys.

A key is a number, or a word of several (problem.py); the properties of a word combine those
of its numbers.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from gpualgo._algorithms.radix_sort import problem
from gpualgo._algorithms.radix_sort.problem import Descending, Dtype, Number
from gpualgo._base import dtypes

# --- Argument table slots and sizes of the CPU kernels of the radix sort and around NumPy's sort.

BLOCK = 256  # keys converted to codes at once; they stay in L1
CODES_BYTES = 8 * BLOCK

# The table of arguments. VALUES 0: a key's position is its value. OUT_KEYS 0: only values are
# written. COUNTS holds a number for each part and bucket, SURVEY two words for each part. ENTRY is
# the kernel that `invoke` runs.
KEYS, VALUES, OUT_KEYS, OUT_VALUES, LENGTH, PARTS, COUNTS, SURVEY, SHIFT, BUCKETS = range(10)
ENTRY, CODES, KEY_BYTES, FLIP, USED, SIZE = range(10, 16)

# Up to this many keys, each is compared with all others; of one byte, which take one pass else.
SHORT, SHORT_BYTES = 128, 48
ROW_BITS = 8  # digit width

# Rows append to that table: addresses of kernels; the size of values; for keys, values and their
# outputs in turn, the function that packs a strided row (0 if dense), and the stride along the row.
# Then the lengths of the outer dimensions and their strides in each array.
FIND, COUNT, PLACE, MOVE, TAKE, VALUE_BYTES, PACKS = range(SIZE, SIZE + 7)
STEPS, NDIM, HEAD = PACKS + 4, PACKS + 8, PACKS + 9

# Scratch memory of a thread: its own table, addresses of the row, counts, the survey's result, work
# space of the kernels; then two buffers for keys and two for values.
ROW = 8 * SIZE
ROW_COUNTS = ROW + 32
ROW_SURVEY = ROW_COUNTS + (8 << ROW_BITS)
ROW_WORK = ROW_SURVEY + 16
BUFFERS = (ROW_WORK + CODES_BYTES + (8 << ROW_BITS) + 63) // 64 * 64


DIGIT_BITS = 8


Digit: TypeAlias = dict[str, int]
"""Position of a pass's digit: the fields of Digit of radix_sort/keys.cuh."""


def padded_digits(digits: list[Digit], count: int) -> list[Digit]:
    return digits + [{"shift": 0, "mask": 0, "flip": 0}] * (count - len(digits))


def digits_of(
    dtype: Dtype, descending: Descending, begin_bit: int, end_bit: int, even: bool
) -> list[Digit]:
    """Return the digits of all passes, the lowest first; `even`: an even number of passes."""
    num_passes = -(-(end_bit - begin_bit) // DIGIT_BITS)
    num_passes += even and num_passes % 2
    width = -(-(end_bit - begin_bit) // num_passes)
    bits = 8 * dtype.itemsize
    flipped = flipped_bits(dtype, descending)
    digits = []
    for shift in range(begin_bit, begin_bit + num_passes * width, width):
        mask = (1 << max(0, min(width, end_bit - shift))) - 1
        shift = min(shift, bits - 1)
        digits.append({"shift": shift, "mask": mask, "flip": flipped >> shift & mask})
    return digits


def flipped_bits(dtype: Dtype, descending: Descending) -> int:
    """Return which bits of an ordered key (KeyOrder) are inverted."""
    return sum(n.flipped << n.shift for n in problem.numbers(dtype, descending))


def opposite_signs(dtype: Dtype, descending: Descending) -> int:
    """Return the sign bits of descending floats, which are inverted before keys become ordered."""
    numbers = problem.numbers(dtype, descending)
    return sum(1 << n.shift + n.bits - 1 for n in numbers if n.is_float and n.is_descending)


def last_key(dtype: Dtype, descending: Descending) -> int:
    """Return the bits of a key that sorts after all others, used as padding; of floats NaN."""
    numbers = problem.numbers(dtype, descending)
    return sum(((1 << n.bits) - 1 ^ (0 if n.is_float else n.flipped)) << n.shift for n in numbers)


def order(dtype: Dtype, descending: Descending) -> str:
    """Return the C++ type of the keys' order; integers use the unsigned type."""
    numbers = problem.numbers(dtype, descending)
    if not any(number.is_float for number in numbers):
        return f"gpualgo::KeyOrder<{_unsigned(dtype)}>"
    names = [_ordered_as(number) for number in numbers]
    if dtype.names is None:
        return f"gpualgo::KeyOrder<{names[0]}>"
    return f"gpualgo::KeyOrder<gpualgo::SideBySide<{', '.join(names)}>>"


def _ordered_as(number: Number) -> str:
    if not number.is_float:
        return _unsigned(number.dtype)
    name = dtypes.cpp_name(number.dtype)
    return f"gpualgo::Opposite<{name}>" if number.is_descending else name


def _unsigned(dtype: np.dtype[Any]) -> str:
    return dtypes.cpp_name(np.dtype(f"u{dtype.itemsize}"))
