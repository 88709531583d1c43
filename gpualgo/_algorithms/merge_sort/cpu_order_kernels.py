"""The order of values as CPU kernels see it: elements as they lie in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.extending import intrinsic

from gpualgo._base import dtypes, records
from gpualgo._cpu.compile_operator import cast


def inline(function: Callable[..., Any]) -> Any:
    """Return function as one that kernels call, compiled when they are."""
    return numba.njit(nogil=True, error_model="numpy")(function)


def before(element: np.dtype[Any], ways: tuple[bool, ...]) -> Any:
    """Return before(a, b) of two elements: numbers as NumPy, zeros equal, NaN last in any case."""
    if element.names is None:
        return _before_number(element, ways[0])
    found = _never
    for i in reversed(range(len(element.names))):
        number = records.leaves(element)[i]
        found = _before_by(_number(i), _before_number(number, ways[i]), found)
    return found


@inline
def _never(a: Any, b: Any) -> Any:
    return False


def _before_by(number: Any, first: Any, rest: Any) -> Any:
    """Return what compares elements by one of their numbers, and where it is equal by the rest."""

    def compare(a: Any, b: Any) -> Any:
        x, y = number(a), number(b)
        if first(x, y):
            return True
        if first(y, x):
            return False
        return rest(a, b)

    return inline(compare)


def _before_number(dtype: np.dtype[Any], falls: bool) -> Any:
    if dtypes.kind(dtype) != "f":
        return _greater if falls else _smaller
    compare = _greater_float if falls else _smaller_float
    if dtype.itemsize > 2:
        return compare
    wide = cast(dtype, np.dtype(np.float32))
    return inline(lambda a, b: compare(wide(a), wide(b)))


_smaller = inline(lambda a, b: a < b)
_greater = inline(lambda a, b: a > b)
_smaller_float = inline(lambda a, b: (a < b) | ((b != b) & (a == a)))
_greater_float = inline(lambda a, b: (a > b) | ((b != b) & (a == a)))


def _number(i: int) -> Any:
    """Return number(record): one of a record's numbers."""

    def take(_typing: Any, record: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return builder.extract_value(args[0], i)

        return record.leaves[i](record), generate

    return intrinsic(take)
