"""Comparison by value in CPU kernels, of elements in their storage representation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.extending import intrinsic

from gpualgo._base import dtypes, records
from gpualgo._cpu.compile_operator import cast


def inline(function: Callable[..., Any]) -> Any:
    """Return function compiled as a device function for kernels."""
    return numba.njit(nogil=True, error_model="numpy")(function)


def before(element: np.dtype[Any], ways: tuple[bool, ...]) -> Any:
    """Return before(a, b): NumPy's order; zeros are equal, NaN is last in both directions."""
    if element.names is None:
        return _before_number(element, ways[0])
    compare = _never
    for i in reversed(range(len(element.names))):
        dtype = records.leaves(element)[i]
        compare = _before_by(_field(i), _before_number(dtype, ways[i]), compare)
    return compare


@inline
def _never(a: Any, b: Any) -> Any:
    return False


def _before_by(get_field: Any, first: Any, tie_break: Any) -> Any:
    """Return a comparison by one field, then by `tie_break` if the fields are equal."""

    def compare(a: Any, b: Any) -> Any:
        x, y = get_field(a), get_field(b)
        if first(x, y):
            return True
        if first(y, x):
            return False
        return tie_break(a, b)

    return inline(compare)


def _before_number(dtype: np.dtype[Any], descending: bool) -> Any:
    if dtypes.kind(dtype) != "f":
        return _greater if descending else _smaller
    compare = _greater_float if descending else _smaller_float
    if dtype.itemsize > 2:
        return compare
    wide = cast(dtype, np.dtype(np.float32))
    return inline(lambda a, b: compare(wide(a), wide(b)))


_smaller = inline(lambda a, b: a < b)
_greater = inline(lambda a, b: a > b)
_smaller_float = inline(lambda a, b: (a < b) | ((b != b) & (a == a)))
_greater_float = inline(lambda a, b: (a > b) | ((b != b) & (a == a)))


def _field(i: int) -> Any:
    """Return f(record), which extracts field i."""

    def extract(_typing: Any, record: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return builder.extract_value(args[0], i)

        return record.leaves[i](record), generate

    return intrinsic(extract)
