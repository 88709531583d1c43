"""Fast path for short rows that NumPy sorts or orders: skips the plan cache.

The first call of a dtype registers it. Later calls match one look-up, then run NumPy's copy and
sort, or its stable argsort.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

MOST_KEYS = 1 << 15  # shorter rows are not checked for being sorted, and stay on the CPU
MOST_ORDERED = (1 << 14) + 1  # shorter rows are ordered on the CPU

Array = np.ndarray[Any, Any]
RestoreBits = Callable[[Array, Array], int]
"""mend(keys, row): restore the bits and order of zeros and NaNs in a sorted row."""
EncodeDecode = tuple[Callable[[Array, Array], int], Callable[[Array, Array], int]]
"""encode(keys, codes) writes integer codes, which NumPy sorts; decode(keys, row) restores keys."""

sort: Callable[[Array], Array | None]
sort_into: Callable[[Array, Any], Array | None]
_sorters: dict[np.dtype[Any], RestoreBits | EncodeDecode | bool] = {}  # True: nothing to restore
CODES = np.dtype(np.int16)
_live_kernels: list[Any] = []  # kernels kept alive: functions hold their addresses only

# Defaults of `radix_sort` after keys (values … stream) and no active recordings. They are matched
# by identity, so that axis=True does not match.
DEFAULTS = (None, False, 0, None, -1, None, None, 0)


def _no_match(*_: Any) -> bool:
    return False


find_short_sort: Callable[..., Any] = _no_match
"""Return a short row's `RestoreBits`, `EncodeDecode` or True; False without a fast path."""


find_long_sort: Callable[..., Any] = _no_match
"""Return the same for a row of any length, for `sort`; False if the fast path does not apply."""


def register_sort(
    dtype: np.dtype[Any], kernels: Sequence[Any], sort_row: Callable[[Array], Array | None],
    sort_row_into: Callable[[Array, Any], Array | None],
) -> None:  # fmt: skip
    """Register a dtype: one kernel restores zeros and NaNs, two kernels encode and decode.

    `sort_row` and `sort_row_into` sort a row of any length; they return None if they do not apply.
    """
    global find_short_sort, find_long_sort, sort, sort_into
    from gpualgo._cpu.direct import row_function, short_row_lookup

    if dtype not in _sorters:
        _live_kernels.append(kernels)
        sorter: Any = tuple(map(row_function, kernels))
        sort, sort_into = sort_row, sort_row_into  # other threads may read from here on
        _sorters[dtype] = sorter if len(sorter) > 1 else sorter[0] if sorter else True
        find_short_sort = short_row_lookup(_sorters, MOST_KEYS, *DEFAULTS)
        find_long_sort = short_row_lookup(_sorters, sys.maxsize, *DEFAULTS)


def sort_coded(keys: Array, out: Array, way: EncodeDecode) -> Array:
    """Write keys, sorted as codes, to `out`, which is another row; return it."""
    codes = out.view(CODES)
    way[0](keys, codes)
    codes.sort()
    way[1](keys, out)
    return out


_orders: dict[np.dtype[Any], Callable[[Array, bool], Array | None]] = {}
# Defaults of `argsort` after keys (axis … stream) and no active recordings.
_ORDER_DEFAULTS = (-1, None, None, None, 0)
find_argsort: Callable[..., Any] = _no_match
"""Return the function that orders a row by NumPy; False if the fast path does not apply."""


def register_argsort(dtype: np.dtype[Any]) -> None:
    """Register a dtype whose rows NumPy's argsort orders faster."""
    global find_argsort
    from gpualgo._algorithms.radix_sort.cpu_rows import row_order
    from gpualgo._cpu.direct import short_row_lookup

    if dtype not in _orders:
        _orders[dtype] = row_order(dtype)
        find_argsort = short_row_lookup(_orders, sys.maxsize, *_ORDER_DEFAULTS)


def clear() -> None:
    """Forget all dtypes."""
    _sorters.clear()
    _orders.clear()
