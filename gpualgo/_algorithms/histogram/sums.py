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
        return 2 if self.format is None else self.format.digits


@cache
def sum_of(dtype: Dtype) -> Sum:
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


# --- Argument table slots of the kernels of joint and weighted histograms.

MOST = 1024  # samples per call of a stage; buffers stay in L1
SLOT_BYTES = 4 * MOST  # of scratch memory: slots of a run, then those of one dimension

# The table of arguments. After TAIL follow the samples' dimensions, the extents between rows, those
# within a row, and READS fields: each as `packing.fetched` takes it, then its strides between and
# within rows; weights are last. PLACES: offset in scratch memory of the addresses of a run's
# numbers. COMPUTE: 0, or the function that computes samples from them, to COMPUTED.
(DIMS, LENGTH, ROWS, SPLIT, ADD, FINISH) = range(6)
(TABLES, TARGET, ROW_BYTES, SLOTS, PLANE, OUTER, INNER) = range(6, 13)
(READS, PLACES, COMPUTE, COMPUTED, TAIL) = range(13, 18)

# One of DIMS dimensions, which follow TAIL: the stage that finds its slots.
(STAGE, STAGE_TABLE, BINS, STAGE_SIZE) = range(4)

# Head of a thread's tables: the lowest and highest digit that it has added to, and whether there is
# a non-finite weight.
(LOW, HIGH, SPECIALS, HEAD) = range(4)
NO_LOW, NO_HIGH = 1 << 30, -1
IS_NAN, IS_POSITIVE, IS_NEGATIVE = 1, 2, 4  # kinds of non-finite weights


def span_of(mantissa: int) -> int:
    """Return the maximum number of digits that a number of such a float spans."""
    return 3 if mantissa >= 32 else 2
