"""Short rows of keys alone that NumPy sorts, once one of their dtype was: no problem is looked up.

Such a call is NumPy's copy and its sort; one look tells that it is, beside where it is to run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from gpualgo._driver.default_device import AUTO

MOST_KEYS = 1 << 15  # of a row that is not asked whether it is in order, and that no GPU takes

Array = np.ndarray[Any, Any]
Mend = Callable[[Array, Array], int]
"""mend(keys, row): zeros and NaNs of a sorted row as keys have them."""

_known: dict[np.dtype[Any], Mend | bool] = {}  # True: there is nothing to mend
_held: list[Any] = []  # code, whose addresses functions have

# Of `radix_sort` behind keys, values to stream, and how many recordings are under way. No other
# objects are these: True is no axis.
_DEFAULTS = (None, False, 0, None, -1, None, None, 0)


def _none_yet(*_: Any) -> bool:
    return False


way_of: Callable[..., Any] = _none_yet
"""Return how a sorted row is mended, True if not at all; False: the general path is to sort it."""


def add(dtype: np.dtype[Any], mend: Any) -> None:
    """Have rows of a dtype sorted so from now on, and mended by a kernel where there is one."""
    global way_of
    from gpualgo._cpu.direct import look_up, of_rows

    if dtype not in _known:
        _held.append(mend)
        _known[dtype] = True if mend is None else of_rows(mend)
        way_of = look_up(_known, MOST_KEYS, *_DEFAULTS)


def clear() -> None:
    """Forget all dtypes: the next call of each is looked at as the first one was."""
    _known.clear()


def is_for_cpu(keys: Array, device: int) -> bool:
    """Return whether it is known that "auto" leaves so short a row to the CPU."""
    auto = sys.modules.get("gpualgo._pipeline.auto")
    return device == AUTO and auto is not None and bool(auto.is_known_pageable(keys))
