"""Keys for NumPy's comparisons: in ascending order of the elements' order, NaN last."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from gpualgo._base import dtypes

Array: TypeAlias = np.ndarray[Any, Any]


class Keys:
    """Conversion of elements of a dtype to keys, and comparison of keys."""

    def __init__(self, dtype: np.dtype[Any], descending: bool) -> None:
        self.descending = descending
        self.are_floats = dtypes.kind(dtype) == "f"
        self._is_narrow = self.are_floats and dtype.itemsize == 2  # NumPy compares them one by one

    def of(self, x: Array) -> Array:
        """Return the keys of elements; the elements themselves if possible."""
        if self._is_narrow:
            x = x.astype(np.float32)
        if not self.descending:
            return x
        return np.negative(x) if self.are_floats else np.invert(x)

    def before(self, keys: Array, bound: Any) -> Array:
        """Return which keys come before a bound."""
        result: Array = keys == keys if bound != bound else keys < bound
        return result

    def up_to(self, keys: Array, bound: Any) -> Array:
        """Return which keys come before a bound or equal it."""
        result: Array = np.ones(keys.shape, np.bool_) if bound != bound else keys <= bound
        return result
