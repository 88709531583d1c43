"""Short rows that are summed, once one of their dtype was: no problem is looked up.

One look tells that all is as it is by default, and one function folds the row's tiles, and what
these leave, as the general path does: to the same bits.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

MOST_TILES = 8  # of a row; the interpreter's lock is held for a few µs
MOST_ELEMENTS = (1 << 15) + 1  # of a row, fewer

Array = np.ndarray[Any, Any]
Fold = Callable[[Array, Array, int], int]
"""fold(row, out, address of a first element or 0): the status, not 0 if the row has no elements."""


def _none_yet(*_: Any) -> Any:
    return False


_known: dict[np.dtype[Any], Fold] = {}
way_of: Callable[..., Any] = _none_yet
"""Return the fold of a short row that is summed; False: the general path is to reduce it."""


def add(dtype: np.dtype[Any], fold: Fold) -> None:
    """Have rows of a dtype summed so from now on."""
    global way_of
    from gpualgo._cpu.direct import look_up

    if dtype not in _known:
        _known[dtype] = fold
        # Of `reduce` behind x, init to stream, and how many recordings are under way.
        others = None, operator.add, None, False, None, None, None, 0
        way_of = look_up(_known, MOST_ELEMENTS, *others)


def clear() -> None:
    """Forget all dtypes: the next call of each is looked at as the first one was."""
    _known.clear()
