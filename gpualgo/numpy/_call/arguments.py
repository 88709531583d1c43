"""What NumPy's functions take here for an array."""

from __future__ import annotations

import operator
import sys
from typing import Any

import numpy as np

from gpualgo._arrays.view import view_of
from gpualgo._base import dtypes
from gpualgo._lazy import is_lazy


class NotTaken(TypeError):
    """NumPy takes it and this does not: `wrap` hands the call on."""

    __module__ = "gpualgo.numpy"


# Types whose arrays are taken as they are: seen before, of a GPU or of another library.
AS_THEY_ARE: set[type] = set()


def array_of(x: Any, where: str) -> Any:
    """Return an argument as an array of NumPy's, a lazy one, or one of another library.

    Raises
    ------
    NotTaken
        It is a subclass of NumPy's array that means more than its elements, an array of a library
        that is not known, or of a dtype that has no kernel.
    """
    cls = type(x)
    if cls in AS_THEY_ARE:
        return x
    if cls is not np.ndarray:
        if is_lazy(x):
            if x.dtype.names is not None:
                raise NotTaken(f"{where} has elements that are tuples, which NumPy has not")
            return x
        if isinstance(x, np.ndarray):
            x = _plain(x, where)
        elif _is_foreign(x):
            view_of(x, where)  # which knows it, or raises
            AS_THEY_ARE.add(cls)
            return x
        elif hasattr(cls, "__array_function__"):
            raise NotTaken(
                f"{where} is a {cls.__module__}.{cls.__qualname__}, which has NumPy functions of "
                "its own; call these, or pass numpy.asarray(x)"
            )
        elif x is None:
            raise NotTaken(f"{where} is None; pass an array")
        else:
            x = np.asarray(x)
    return _of_numbers(x, where)


def _plain(x: Any, where: str) -> Any:
    """Return an array of a subclass that means nothing but its elements as NumPy's own."""
    if isinstance(x, (np.memmap, np.recarray)):
        return x.view(np.ndarray)
    masked = sys.modules.get("numpy.ma")
    if masked is not None and isinstance(x, masked.MaskedArray):
        raise NotTaken(f"{where} is a masked array, whose mask would be lost; use x.filled(value)")
    raise NotTaken(
        f"{where} is a {type(x).__module__}.{type(x).__qualname__}, which is more than an array; "
        "pass numpy.asarray(x)"
    )


def _is_foreign(x: Any) -> bool:
    """Return whether it is an array of a library that algorithms know: of a GPU, or of torch."""
    if hasattr(x, "__cuda_array_interface__"):
        return True
    if isinstance(x, np.generic) or not hasattr(x, "__dlpack__"):
        return False
    return not hasattr(x, "__array__") or type(x).__module__.partition(".")[0] == "torch"


def _of_numbers(x: np.ndarray[Any, Any], where: str) -> np.ndarray[Any, Any]:
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
    """Return whether an array is NumPy's."""
    return type(x) is np.ndarray


def as_array(x: Any, name: str) -> Any:
    """Return an argument as an array, of numbers one without axes."""
    return x if hasattr(x, "ndim") else np.asarray(x)


def axis_of(axis: Any, ndim: int) -> int:
    """Return an axis, counted from 0; AxisError where there is no such one."""
    place = operator.index(axis)
    if not -ndim <= place < ndim:
        raise np.exceptions.AxisError(place, ndim)
    return place % ndim
