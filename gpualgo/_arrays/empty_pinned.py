"""The public function `empty_pinned`: NumPy arrays that kernels read and write in place."""

from __future__ import annotations

import math
import operator
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._base import dtypes
from gpualgo._driver import default_device

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty

_WHERE = "empty_pinned"


def empty_pinned(shape: ty.Shape, dtype: ty.AnyDType = np.float64) -> np.ndarray[Any, Any]:
    """Return a new NumPy array in page-locked memory, which GPUs read and write in place.

    Parameters
    ----------
    shape : int or sequence of ints
        The shape of the array.
    dtype : dtype
        Any dtype without Python objects; float64 by default.

    Returns
    -------
    numpy.ndarray
        Uninitialised and C-contiguous. Without a GPU an ordinary array, because everything runs on
        the CPU then.

    Raises
    ------
    TypeError
        `shape` does not consist of ints, or `dtype` is not a dtype or has Python objects.
    ValueError
        A length is negative.
    MemoryError
        There is not enough memory, or not enough that can be page-locked.

    Notes
    -----
    Page-locking takes time, so create such an array once and reuse it. Every GPU can use it. If
    inputs and `out` of a call with ``stream=`` are such arrays, the call returns without waiting:
    the result is complete once the stream has run. The memory is freed once no array uses it and
    the work that this package has queued on it has run; wait for work of other libraries yourself.

    See https://github.com/gpualgo/gpualgo/blob/main/docs/memory.md.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> x = ga.empty_pinned((2, 3), np.float32)
    >>> x[...] = 1.5
    >>> float(ga.reduce(x))
    9.0
    """
    extents = _extents(shape)
    item_dtype = _dtype_of(dtype)
    size = math.prod(extents) * item_dtype.itemsize
    if size > sys.maxsize:
        raise MemoryError(f"{_WHERE}: {size} bytes exceed the address space; pass a smaller shape")
    from gpualgo._driver import driver

    if not size or not driver.device_count():
        return np.empty(extents, item_dtype)
    from gpualgo._arrays import page_locked

    device = max(default_device.current(), 0)  # any GPU's context will do
    return page_locked.allocate(size, device).view(item_dtype).reshape(extents)


def _extents(shape: Any) -> tuple[int, ...]:
    try:
        values = tuple(shape) if np.iterable(shape) else (shape,)
        extents = tuple(map(operator.index, values))
    except TypeError:
        raise TypeError(
            f"{_WHERE}: shape must be an int or a sequence of ints, got {shape!r}"
        ) from None
    if any(extent < 0 for extent in extents):
        raise ValueError(
            f"{_WHERE}: shape {extents} has a negative extent; pass extents of 0 or more"
        )
    return extents


def _dtype_of(dtype: Any) -> np.dtype[Any]:
    if type(dtype) is str and dtype == "bfloat16":
        return dtypes.bfloat16()
    try:
        result: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        raise TypeError(f"{_WHERE}: dtype {dtype!r} is not a dtype of NumPy") from None
    if result.hasobject or not result.itemsize:
        raise TypeError(
            f"{_WHERE}: dtype {result} has Python objects; use a dtype of numbers or records"
        )
    return result
