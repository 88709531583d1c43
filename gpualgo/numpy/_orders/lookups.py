"""Operators that look elements up in a short array of a GPU: members, in one pass.

The array is captured: its elements come from the caches, and no places are stored to be read again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpualgo._arrays.view import view_of
from gpualgo._driver.default_device import CPU
from gpualgo._lazy import is_lazy

MOST = 1 << 10  # elements of a short array


def is_short_on_gpu(x: Any, where: str) -> bool:
    """Return whether an array lies on a GPU and has few elements, but some."""
    if type(x) is np.ndarray or is_lazy(x) or len(x.shape) != 1:
        return False
    return 0 < x.shape[0] <= MOST and view_of(x, where).device != CPU


def _holds(keys: Any, x: Any) -> Any:
    place, count = np.int64(0), np.int64(len(keys))
    while count > 1:
        half = count // 2
        if keys[place + half - 1] < x:
            place += half
        count -= half
    return keys[place] == x or keys[min(place + 1, len(keys) - 1)] == x


def holding(keys: Any, invert: bool) -> Callable[[Any], Any]:
    """Return what tells whether a number is among sorted ones of the same dtype, or is not."""
    if invert:
        return lambda x: not _holds(keys, x)
    return lambda x: _holds(keys, x)
