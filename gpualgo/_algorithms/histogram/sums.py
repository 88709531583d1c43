"""What is added up in a bin, and how exactly: the numbers of weights, as integers at a place.

A sum of integers does not depend on its order. So each float is taken for what it is, an integer
times a power of two, and added to an integer that is as long as the dtype reaches: no bit is lost
and the sum is rounded once, at the end (docs/adr/0016-exact-sums.md).
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gpualgo._base import dtypes

Dtype = np.dtype[Any]

DIGIT_BITS = 32
_HEADROOM_BITS = 43  # above the greatest float, one of them for the sign: 2^42 samples


class Format(NamedTuple):
    """The floats of a dtype: m * 2^p with integers m and p, in units of the least of them."""

    mantissa: int  # bits that are stored
    exponent: int  # bits

    @property
    def special(self) -> int:
        """The exponent, as it is stored, of infinities and NaN."""
        return (1 << self.exponent) - 1

    @property
    def digits(self) -> int:
        """How many digits the sum of any number of floats takes, an even number."""
        bits = self.special - 2 + self.mantissa + 1 + _HEADROOM_BITS
        return -(-bits // (2 * DIGIT_BITS)) * 2


_FORMATS = {
    "float16": Format(10, 5),
    "bfloat16": Format(7, 8),
    "float32": Format(23, 8),
    "float64": Format(52, 11),
}


class Sum(NamedTuple):
    """How values of a dtype are added up: `parts` sums of `digits` digits each."""

    dtype: Dtype  # of the result; weights are converted to it first
    number: Dtype  # of a part
    parts: int  # 2: complex numbers
    format: Format | None  # None: integers, modulo 2^64

    @property
    def digits(self) -> int:
        """The digits of a part's sum."""
        return 2 if self.format is None else self.format.digits


@cache
def sum_of(dtype: Dtype) -> Sum:
    """Return how results of a dtype are added up."""
    kind = dtypes.kind(dtype)
    if kind in "iu":
        return Sum(dtype, dtype, 1, None)
    parts = 2 if kind == "c" else 1
    number = np.dtype(f"f{dtype.itemsize // 2}") if kind == "c" else dtype
    return Sum(dtype, number, parts, _FORMATS[str(dtypes.name_of(number))])


def dtype_of(weights: Dtype, dtype: Any, where: str) -> Dtype:
    """Return the dtype of sums: dtype=, else the weights' own, of integers the widest."""
    kind = dtypes.kind(weights)
    if dtype is None:
        own = {"b": np.dtype(np.int64), "i": np.dtype(np.int64), "u": np.dtype(np.uint64)}
        return own.get(kind, weights)
    found = dtypes.as_dtype(dtype, where)
    if found.kind == "b" or not dtypes.can_cast(weights, found):
        raise TypeError(
            f"{where}: weights of dtype {weights} cannot be added up in dtype {found}; "
            f"pass dtype=np.{weights if kind in 'fc' else 'int64'} or convert them first"
        )
    return found
