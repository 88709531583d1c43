"""Keys that NumPy compares: numbers that rise where elements come later, NaN last."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from gpualgo._base import dtypes

Array: TypeAlias = np.ndarray[Any, Any]


class Keys:
    """How keys are made of elements of a dtype, and compared."""

    def __init__(self, dtype: np.dtype[Any], descending: bool) -> None:
        self.descending = descending
        self.are_floats = dtypes.kind(dtype) == "f"
        self._is_narrow = self.are_floats and dtype.itemsize == 2  # which NumPy compares one by one

    def of(self, x: Array) -> Array:
        """Return the keys of elements: these themselves, if they are compared as they are."""
        if self._is_narrow:
            x = x.astype(np.float32)
        if not self.descending:
            return x
        return np.negative(x) if self.are_floats else np.invert(x)

    def before(self, keys: Array, bound: Any) -> Array:
        """Return which keys come before one."""
        found: Array = keys == keys if bound != bound else keys < bound
        return found

    def up_to(self, keys: Array, bound: Any) -> Array:
        """Return which keys come before one, or are equal to it."""
        found: Array = np.ones(keys.shape, np.bool_) if bound != bound else keys <= bound
        return found
