"""Fast path for contiguous rows that NumPy sorts or orders: skips the cache of problems.

The plan of a dtype's first row registers its function. Later calls match one look-up, which is a
built-in function, and call it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from gpualgo._pipeline.run import HAS_RANGES

MOST_KEYS = 1 << 15  # shorter rows are sorted on the CPU
MOST_ORDERED = (1 << 14) + 1  # shorter rows are ordered on the CPU

Array = np.ndarray[Any, Any]
Function = Callable[[Array, Any], Array | None]

# Arguments of `radix_sort` after keys (values … stream) and of `argsort` (axis … stream), and no
# active recordings. They are matched by identity, so that axis=True does not match.
_SORT_ARGUMENTS = (None, False, 0, None, -1, None, None, 0)
_ORDER_ARGUMENTS = (-1, None, None, None, 0)
_sorts: dict[np.dtype[Any], Function] = {}
_orders: dict[np.dtype[Any], Function] = {}


def _no_match(*_: Any) -> bool:
    return False


find_sort: Callable[..., Any] = _no_match
"""Return f(keys, out), see `cpu_numpy.row_sort`; False if the fast path does not apply."""

find_order: Callable[..., Any] = _no_match
"""Return f(keys, descending), see `cpu_numpy.row_order`; False if the path does not apply."""


def register_sort(dtype: np.dtype[Any], make: Callable[[np.dtype[Any]], Function]) -> None:
    global find_sort
    if dtype not in _sorts and not HAS_RANGES:
        _sorts[dtype] = make(dtype)  # other threads may call it from here on
        find_sort = _look_up(_sorts, _SORT_ARGUMENTS)


def register_order(dtype: np.dtype[Any], make: Callable[[np.dtype[Any]], Function]) -> None:
    global find_order
    if dtype not in _orders and not HAS_RANGES:
        _orders[dtype] = make(dtype)
        find_order = _look_up(_orders, _ORDER_ARGUMENTS)


def _look_up(table: dict[np.dtype[Any], Function], arguments: tuple[Any, ...]) -> Any:
    from gpualgo._cpu.direct import short_row_lookup

    return short_row_lookup(table, sys.maxsize, *arguments)


def clear() -> None:
    """Forget all dtypes."""
    _sorts.clear()
    _orders.clear()
