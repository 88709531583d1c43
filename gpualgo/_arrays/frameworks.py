"""PyTorch and CuPy as array libraries.

Imported at their first array; by then the caller has imported the package.
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
from gpualgo._base import dtypes
from gpualgo._driver import driver
from gpualgo._driver.default_device import CPU

_make = tuple.__new__  # builds the named tuple without its Python-level constructor
_torch_dtypes: dict[Any, np.dtype[Any]] = {}
_to_torch: dict[np.dtype[Any], Any] = {}


def _torch_dtype(dtype: Any) -> np.dtype[Any]:
    numpy_dtype = _torch_dtypes.get(dtype)
    if numpy_dtype is None:
        name = str(dtype).rpartition(".")[2]
        if name not in dtypes.NAMES:
            raise TypeError(
                f"a tensor of {dtype} has no kernel; use one of {', '.join(dtypes.NAMES)}"
            )
        numpy_dtype = _torch_dtypes[dtype] = dtypes.from_name(name)
    return numpy_dtype


def _torch_dtype_of(dtype: np.dtype[Any]) -> Any:
    torch_dtype = _to_torch.get(dtype)
    if torch_dtype is None:
        name = str(dtypes.name_of(dtype))
        torch_dtype = _to_torch[dtype] = getattr(sys.modules["torch"], name)
    return torch_dtype


def viewer_of(x: Any) -> Any:
    """Return the viewer of a tensor or a CuPy array; None for other objects of these packages."""
    package = type(x).__module__.partition(".")[0]
    module = sys.modules.get(package)  # None while its import is in progress
    name, library = ("Tensor", Torch) if package == "torch" else ("ndarray", CuPy)
    return library.view if module is not None and isinstance(x, getattr(module, name)) else None


class Torch:
    """Its tensors are on the host or a device."""

    name = "torch"
    has_producers = False

    @staticmethod
    def view(x: Any) -> View:
        if x.requires_grad:
            raise TypeError(
                "a tensor that requires grad would lose its gradient here; pass x.detach(), or "
                "call the function of gpualgo.torch"
            )
        if x.is_conj() or x.is_neg():  # its memory does not hold the values that it represents
            raise TypeError(
                "a conjugate or negative view cannot be used; pass x.resolve_conj().resolve_neg()"
            )
        dtype = _torch_dtype(x.dtype)
        itemsize = dtype.itemsize
        device = x.get_device() if x.is_cuda else CPU
        if device == CPU and x.device.type != "cpu":
            raise TypeError(f"a tensor on {x.device} cannot be used; move it with x.cuda()")
        try:
            strides = tuple([stride * itemsize for stride in x.stride()])
            pointer, shape = x.data_ptr(), tuple(x.shape)
        except RuntimeError:  # raised if it has no strides or no memory of its own
            pointer, shape, strides = 0, (1,), (0,)
        if not pointer and 0 not in shape:
            raise TypeError(
                f"a tensor without memory of its own, of layout {x.layout}, cannot be used; pass "
                "x.to_dense(), or torch.nested.to_padded_tensor(x, 0.0) of a nested one"
            )
        return _make(View, (
            pointer, shape, strides, dtype, device, Torch, False, x,
        ))  # fmt: skip

    @staticmethod
    def empty(shape: tuple[int, ...], dtype: np.dtype[Any], device: int, stream: int | None) -> Any:
        torch = sys.modules["torch"]
        torch_dtype = _torch_dtype_of(dtype)
        if stream is None:
            return torch.empty(shape, dtype=torch_dtype, device=device)
        with torch.cuda.stream(torch.cuda.ExternalStream(stream, device=device)):
            return torch.empty(shape, dtype=torch_dtype, device=device)

    @staticmethod
    def maker(shape: tuple[int, ...], dtype: np.dtype[Any], device: int) -> Callable[[], Any]:
        """Return a function that allocates such tensors on the current stream."""
        torch = sys.modules["torch"]
        cuda = torch.device("cuda", device)
        return functools.partial(torch.empty, shape, dtype=_torch_dtype_of(dtype), device=cuda)

    @staticmethod
    def transposed(x: Any, axes: tuple[int, ...]) -> Any:
        return x.permute(axes)

    @staticmethod
    def stream(device: int) -> int:
        torch = sys.modules["torch"]
        return int(torch._C._cuda_getCurrentRawStream(device))

    @staticmethod
    def pointer(x: Any) -> int:
        return int(x.data_ptr())

    @staticmethod
    def to_numpy(x: Any) -> np.ndarray[Any, Any]:
        torch = sys.modules["torch"]
        if x.dtype == torch.bfloat16:
            bits: np.ndarray[Any, Any] = x.view(torch.int16).numpy()
            return bits.view(dtypes.bfloat16())
        array: np.ndarray[Any, Any] = x.numpy()
        return array

    @staticmethod
    def from_numpy(a: np.ndarray[Any, Any], like: Any) -> Any:
        torch = sys.modules["torch"]
        if dtypes.name_of(a.dtype) == "bfloat16":
            return torch.from_numpy(a.view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(a)

    @staticmethod
    def scalar(a: Any) -> Any:
        return a


class CuPy:
    """Its arrays are always on a device."""

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
        if stream is None and (driver.is_simple or int(cupy.cuda.runtime.getDevice()) == device):
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


def _current_stream() -> Any:
    """Return CuPy's current stream; the first call replaces this function by CuPy's own."""
    global _current_stream
    _current_stream = sys.modules["cupy"].cuda.get_current_stream
    return _current_stream()
