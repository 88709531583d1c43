"""Conversion of arguments to arrays that the functions here accept."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from gpualgo._algorithms.histogram.arguments import to_host
from gpualgo._arrays.view import view_of
from gpualgo._base import dtypes
from gpualgo._lazy import is_lazy
from gpualgo.lazy import asarray as lazy_of


class NotTaken(TypeError):
    """NumPy supports the call and this package does not: `wrap` delegates it to NumPy."""

    __module__ = "gpualgo.numpy"


# Array types of GPUs and other libraries seen before, whose arrays need no conversion.
ARRAY_TYPES: set[type] = set()


def array_of(x: Any, where: str) -> Any:
    """Return an argument as a NumPy array, a lazy one, or one of another library.

    Raises
    ------
    NotTaken
        It is a subclass of NumPy's array with further meaning, an array of an unknown
        library, or of a dtype without kernels.
    """
    cls = type(x)
    if cls in ARRAY_TYPES:
        return x
    if cls is not np.ndarray:
        if is_lazy(x):
            if x.dtype.names is not None:
                raise NotTaken(f"{where} has tuple elements, which NumPy does not support")
            return x
        if isinstance(x, np.ndarray):
            x = _plain(x, where)
        elif _is_foreign(x):
            view_of(x, where)  # which knows it, or raises
            ARRAY_TYPES.add(cls)
            return x
        elif hasattr(cls, "__array_function__"):
            raise NotTaken(
                f"{where} is a {cls.__module__}.{cls.__qualname__}, which implements NumPy's "
                "functions itself; call those, or pass numpy.asarray(x)"
            )
        elif x is None:
            raise NotTaken(f"{where} is None; pass an array")
        else:
            x = np.asarray(x)
    return _native_numbers(x, where)


def _plain(x: Any, where: str) -> Any:
    """Return a subclass's array as NumPy's own if its class adds no meaning."""
    if isinstance(x, (np.memmap, np.recarray)):
        return x.view(np.ndarray)
    masked = sys.modules.get("numpy.ma")
    if masked is not None and isinstance(x, masked.MaskedArray):
        raise NotTaken(f"{where} is a masked array, whose mask would be lost; use x.filled(value)")
    raise NotTaken(
        f"{where} is a {type(x).__module__}.{type(x).__qualname__}, whose meaning beyond an array "
        "would be lost; pass numpy.asarray(x)"
    )


def _is_foreign(x: Any) -> bool:
    """Return whether x is an array of a GPU or of torch, which algorithms accept."""
    if hasattr(x, "__cuda_array_interface__"):
        return True
    if isinstance(x, np.generic) or not hasattr(x, "__dlpack__"):
        return False
    return not hasattr(x, "__array__") or type(x).__module__.partition(".")[0] == "torch"


def _native_numbers(x: np.ndarray[Any, Any], where: str) -> np.ndarray[Any, Any]:
    dtype = x.dtype
    if dtypes.name_of(dtype) is not None:
        return x
    if not dtype.isnative and dtypes.name_of(dtype.newbyteorder("=")) is not None:
        return x.astype(dtype.newbyteorder("="))
    if dtype.names is not None:
        raise NotTaken(f"{where} has structured dtype {dtype}; pass one of its fields")
    try:
        dtypes.check(dtype, where)
    except TypeError as error:
        raise NotTaken(str(error)) from None
    return x


def is_host(x: Any) -> bool:
    return type(x) is np.ndarray


def as_array(x: Any) -> Any:
    """Return an argument as an array; a number becomes a 0-d array."""
    return x if hasattr(x, "ndim") else np.asarray(x)


def flattened(x: Any) -> Any:
    """Return an array with one axis, lazily unless it is NumPy's."""
    if x.ndim == 1:
        return x
    return x.reshape(-1) if type(x) is np.ndarray else lazy_of(x).reshape(-1)


def host_of(x: Any, where: str) -> Any:
    """Return an array or a result as NumPy's; this waits for a GPU."""
    if isinstance(x, (np.ndarray, np.generic)):
        return x
    return to_host(view_of(x, where), None)
