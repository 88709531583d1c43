"""Fast path for default sums of short 1-D arrays: skips the plan cache.

The first sum of a dtype registers a function that folds a row's tiles and their partials in the
order of the general path, so results have the same bits.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

MOST_TILES = 8  # of a row; the interpreter's lock is held for a few µs
MOST_ELEMENTS = (1 << 15) + 1  # exclusive upper bound on a row's elements

Array = np.ndarray[Any, Any]
Fold = Callable[[Array, Array, int], int]
"""fold(row, out, address of init or 0): returns a status, nonzero for empty rows."""


def _no_fold(*_: Any) -> Any:
    return False


_fold_by_dtype: dict[np.dtype[Any], Fold] = {}
fold_for: Callable[..., Any] = _no_fold
"""Return the fold of a short row that is summed with default arguments, or False."""


def add(dtype: np.dtype[Any], fold: Fold) -> None:
    """Use `fold` for later sums of rows of this dtype."""
    global fold_for
    from gpualgo._cpu.direct import short_row_lookup

    if dtype not in _fold_by_dtype:
        _fold_by_dtype[dtype] = fold
        # Default values of `reduce`'s arguments after x: init to stream, then active recordings.
        defaults = None, operator.add, None, False, None, None, None, 0
        fold_for = short_row_lookup(_fold_by_dtype, MOST_ELEMENTS, *defaults)


def clear() -> None:
    """Forget all dtypes, so that the next call of each takes the general path."""
    _fold_by_dtype.clear()
