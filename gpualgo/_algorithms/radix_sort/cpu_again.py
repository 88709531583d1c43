"""Short rows that NumPy sorts, or orders, once one of their dtype was: no problem is looked up.

Such a call is NumPy's copy and its sort, or its stable order; one look tells that it is, beside
where it is to run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

MOST_KEYS = 1 << 15  # of a row, fewer: nobody asks whether it is in order, and no GPU takes it
MOST_ORDERED = (1 << 14) + 1  # of a row whose order is found, fewer: no GPU takes it

Array = np.ndarray[Any, Any]
Mend = Callable[[Array, Array], int]
"""mend(keys, row): zeros and NaNs of a sorted row as keys have them."""
Coded = tuple[Callable[[Array, Array], int], Callable[[Array, Array], int]]
"""encode(keys, codes), which NumPy sorts in place of keys, and decode(keys, row): keys of codes."""

sort: Callable[[Array], Array | None]
sort_into: Callable[[Array, Any], Array | None]
_known: dict[np.dtype[Any], Mend | Coded | bool] = {}  # True: there is nothing to mend
CODES = np.dtype(np.int16)
_held: list[Any] = []  # code, whose addresses functions have

# Of `radix_sort` behind keys, values to stream, and how many recordings are under way. No other
# objects are these: True is no axis.
DEFAULTS = (None, False, 0, None, -1, None, None, 0)


def _none_yet(*_: Any) -> bool:
    return False


way_of: Callable[..., Any] = _none_yet
"""Return how a sorted row is mended, True if not at all, or what makes codes of keys and keys of
codes; False: the general path is to sort it."""


is_known: Callable[..., Any] = _none_yet
"""Return the same of a row of any length, which `sort` takes."""


def add(
    dtype: np.dtype[Any], kernels: Sequence[Any], sort_row: Callable[[Array], Array | None],
    sort_row_into: Callable[[Array, Any], Array | None],
) -> None:  # fmt: skip
    """Have rows of a dtype sorted so from now on, mended by a kernel if there is one, coded by two.

    The others sort a row of any length, and into `out=`; None: they do not.
    """
    global way_of, is_known, sort, sort_into
    from gpualgo._cpu.direct import look_up, of_rows

    if dtype not in _known:
        _held.append(kernels)
        way: Any = tuple(map(of_rows, kernels))
        sort, sort_into = sort_row, sort_row_into  # other threads look at any time from here on
        _known[dtype] = way if len(way) > 1 else way[0] if way else True
        way_of = look_up(_known, MOST_KEYS, *DEFAULTS)
        is_known = look_up(_known, sys.maxsize, *DEFAULTS)


def sort_coded(keys: Array, out: Array, way: Coded) -> Array:
    """Write keys to another row, sorted as codes; return it."""
    codes = out.view(CODES)
    way[0](keys, codes)
    codes.sort()
    way[1](keys, out)
    return out


_orders: dict[np.dtype[Any], Callable[[Array, bool], Array | None]] = {}
# Of `argsort` behind keys, axis to stream, and how many recordings are under way.
_ORDER_DEFAULTS = (-1, None, None, None, 0)
order_by: Callable[..., Any] = _none_yet
"""Return what finds the order of a row by NumPy; False: the general path is to find it."""


def add_order(dtype: np.dtype[Any]) -> None:
    """Have NumPy put rows of a dtype in order from now on where it is the faster way."""
    global order_by
    from gpualgo._algorithms.radix_sort.cpu_runs import row_order
    from gpualgo._cpu.direct import look_up

    if dtype not in _orders:
        _orders[dtype] = row_order(dtype)
        order_by = look_up(_orders, sys.maxsize, *_ORDER_DEFAULTS)


def clear() -> None:
    """Forget all dtypes: the next call of each is looked at as the first one was."""
    _known.clear()
    _orders.clear()
