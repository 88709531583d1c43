"""Sort orders on the CPU: key size, direction and bits, as kernel parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._algorithms.radix_sort import words
from gpualgo._algorithms.radix_sort.cpu_entries import entry
from gpualgo._algorithms.radix_sort.digits import flipped_bits, opposite_signs
from gpualgo._base import dtypes

_INFINITY = {"float16": 0x7C00, "bfloat16": 0x7F80, "float32": 0x7F800000,
             "float64": 0x7FF0000000000000}  # fmt: skip


def _inverted(dtype: words.Dtype, descending: words.Descending) -> int:
    """Return which bits of a key are inverted before its code is computed."""
    return flipped_bits(dtype, descending) | opposite_signs(dtype, descending)


def infinity_of(dtype: np.dtype[Any]) -> int:
    """Return the bits of a float dtype's infinity; 0 for other dtypes."""
    return _INFINITY.get(str(dtypes.name_of(dtype)), 0)


class Order:
    """Order of two keys: their dtype, the direction and the bits compared."""

    def __init__(self, dtype: np.dtype[Any], descending: bool, begin: int, end: int) -> None:
        self.size, self.descending = dtype.itemsize, descending
        self.is_float = dtypes.kind(dtype) == "f"
        self.full = (1 << 8 * self.size) - 1
        self.begin, self.end = begin, end
        self.used = (1 << end) - (1 << begin)
        self.infinity = infinity_of(dtype)
        self.flip = _inverted(dtype, descending)

    @property
    def is_whole(self) -> bool:
        """Whether all bits are compared."""
        return self.used == self.full

    def numbers(self) -> list[int]:
        """Return the kernels' parameters from slot CODES on, as signed words."""
        numbers = [self._codes(), self.size, self.flip, self.infinity, self.used]
        return [number - (number >> 63 << 64) for number in numbers]

    def _codes(self) -> int:
        """Return the address of the kernel that converts keys to codes."""
        return entry("codes", self.size, self.is_float)


class WordOrder(Order):
    """Order of words that pack several numbers; all their bits are compared."""

    def __init__(self, dtype: words.Dtype, descending: words.Descending) -> None:
        super().__init__(np.dtype(f"u{dtype.itemsize}"), False, 0, words.used_bits(dtype))
        self.flip = _inverted(dtype, descending)
        floats = [n for n in words.numbers(dtype, descending) if dtypes.kind(n.dtype) == "f"]
        self.is_float = bool(floats)
        self._floats: list[int] = []
        for number in floats:
            infinity = _INFINITY[str(dtypes.name_of(number.dtype))]
            self._floats += [number.shift, number.bits, infinity]

    def _codes(self) -> int:
        if not self._floats:
            return super()._codes()
        return entry("word_codes", self.size, *self._floats)
