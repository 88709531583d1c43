"""Exact sums of weights: weights as integers with an exponent.

A sum of integers does not depend on its order. A float is an integer times a power of two. It is
added to an integer that covers the dtype's whole range: no bit is lost, and the sum is rounded
once, at the end (docs/adr/0016-exact-sums.md).
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
    """A float format: values m * 2^p with integers m and p, in units of the least one."""

    mantissa: int  # bits that are stored
    exponent: int  # bits

    @property
    def special(self) -> int:
        """The stored exponent of infinities and NaN."""
        return (1 << self.exponent) - 1

    @property
    def digits(self) -> int:
        """Number of digits of a sum of any number of floats, an even number."""
        bits = self.special - 2 + self.mantissa + 1 + _HEADROOM_BITS
        return -(-bits // (2 * DIGIT_BITS)) * 2


_FORMATS = {
    "float16": Format(10, 5),
    "bfloat16": Format(7, 8),
    "float32": Format(23, 8),
    "float64": Format(52, 11),
}


class Sum(NamedTuple):
    """How values of a dtype are summed: `parts` sums of `digits` digits each."""

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
    """Return how results of a dtype are summed."""
    kind = dtypes.kind(dtype)
    if kind in "iu":
        return Sum(dtype, dtype, 1, None)
    parts = 2 if kind == "c" else 1
    number = np.dtype(f"f{dtype.itemsize // 2}") if kind == "c" else dtype
    return Sum(dtype, number, parts, _FORMATS[str(dtypes.name_of(number))])


def dtype_of(weights: Dtype, dtype: Any, where: str) -> Dtype:
    """Return the dtype of sums: `dtype`, else that of the weights, widened if integer."""
    kind = dtypes.kind(weights)
    if dtype is None:
        defaults = {"b": np.dtype(np.int64), "i": np.dtype(np.int64), "u": np.dtype(np.uint64)}
        return defaults.get(kind, weights)
    result = dtypes.as_dtype(dtype, where)
    if result.kind == "b" or not dtypes.can_cast(weights, result):
        raise TypeError(
            f"{where}: weights of dtype {weights} cannot be added up in dtype {result}; "
            f"pass dtype=np.{weights if kind in 'fc' else 'int64'} or convert them first"
        )
    return result
