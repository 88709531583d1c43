"""CuPy as an array library; its arrays are always on a device.

Imported at the first CuPy array; by then the caller has imported CuPy.
"""

from __future__ import annotations

import functools
import operator
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from gpualgo._arrays.view import View
from gpualgo._driver import driver

_make = tuple.__new__  # builds the named tuple without its Python-level constructor


def viewer_of(x: Any) -> Any:
    cupy = sys.modules.get("cupy")  # None while its import is in progress
    return CuPy.view if cupy is not None and isinstance(x, cupy.ndarray) else None


class CuPy:
    name = "cupy"
    has_producers = False

    @staticmethod
    def view(x: Any) -> View:
        data = x.data
        return _make(View, (
            data.ptr, x.shape, x.strides, x.dtype, data.device_id, CuPy, False, x,
        ))  # fmt: skip

    @staticmethod
    def empty(shape: tuple[int, ...], dtype: np.dtype[Any], device: int, stream: int | None) -> Any:
        """Return an uninitialised array; its memory is ordered on the stream that uses it."""
        cupy = sys.modules["cupy"]
        if stream is None and (driver.is_simple or _cupy_device(cupy) == device):
            return cupy.ndarray(shape, dtype)
        with cupy.cuda.Device(device):
            if stream is None:
                return cupy.empty(shape, dtype)
            with _cupy_stream(cupy, stream, device):
                return cupy.empty(shape, dtype)

    @staticmethod
    def maker(shape: tuple[int, ...], dtype: np.dtype[Any], device: int) -> Callable[[], Any]:
        """Return a function that allocates such arrays on the current stream."""
        if driver.is_simple:
            return functools.partial(sys.modules["cupy"].ndarray, shape, dtype)
        return functools.partial(CuPy.empty, shape, dtype, device, None)

    @staticmethod
    def transposed(x: Any, axes: tuple[int, ...]) -> Any:
        return x.transpose(axes)

    @staticmethod
    def stream(device: int) -> int:
        if driver.is_simple:
            handle: int = _current_stream().ptr
            return handle
        with sys.modules["cupy"].cuda.Device(device):  # CuPy has a current stream per device
            return int(_current_stream().ptr)

    pointer = operator.attrgetter("data.ptr")


def _cupy_stream(cupy: Any, stream: int, device: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of CuPy 14; 13 has no other class
        return cupy.cuda.ExternalStream(stream, device)


def _cupy_device(cupy: Any) -> int:
    return int(cupy.cuda.runtime.getDevice())


def _current_stream() -> Any:
    """Return CuPy's current stream; the first call replaces this function by CuPy's own."""
    global _current_stream
    _current_stream = sys.modules["cupy"].cuda.get_current_stream
    return _current_stream()
