"""Operators that look up elements in a short array on a GPU: membership in one pass.

The operator captures the array, so its elements are cached and no indices are stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpualgo._arrays.view import view_of
from gpualgo._driver.default_device import CPU
from gpualgo._lazy import is_lazy

MOST = 1 << 10  # elements of the longest short array


def is_short_on_gpu(x: Any, where: str) -> bool:
    """Return whether an array is on a GPU, short and not empty."""
    if type(x) is np.ndarray or is_lazy(x) or len(x.shape) != 1:
        return False
    return 0 < x.shape[0] <= MOST and view_of(x, where).device != CPU


def _contains(keys: Any, x: Any) -> Any:
    index, count = np.int64(0), np.int64(len(keys))
    while count > 1:
        half = count // 2
        if keys[index + half - 1] < x:
            index += half
        count -= half
    return keys[index] == x or keys[min(index + 1, len(keys) - 1)] == x


def holding(keys: Any, invert: bool) -> Callable[[Any], Any]:
    """Return an operator: whether a number is in a sorted array of its dtype, or is not."""
    if invert:
        return lambda x: not _contains(keys, x)
    return lambda x: _contains(keys, x)
