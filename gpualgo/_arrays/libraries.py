"""CuPy, PyTorch and the array protocols, each as a library of `_array`.

Imported when one of their arrays first comes by; by then the caller has imported the library.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from gpualgo._arrays import fill
from gpualgo._arrays.view import View, _NumPy
from gpualgo._base import dtypes
from gpualgo._driver import driver
from gpualgo._driver.default_device import CPU

_make = tuple.__new__  # builds the named tuple without its Python-level constructor


def viewer_for(package: str) -> Any:
    """Return the viewer of a package's arrays, None if the package is only half imported."""
    if sys.modules.get(package) is None:
        return None
    return CuPy.view if package == "cupy" else Torch.view


def is_array(package: str, x: Any) -> bool:
    """Return whether x is an array of the package, not another object of it."""
    module = sys.modules[package]
    return isinstance(x, module.ndarray if package == "cupy" else module.Tensor)


class CuPy:
    """CuPy arrays: always on a device."""

    name = "cupy"
    has_homes = False

    @staticmethod
    def view(x: Any) -> View:
        data = x.data
        return _make(View, (
            data.ptr, x.shape, x.strides, x.dtype, data.device_id, CuPy, False, x,
        ))  # fmt: skip

    @staticmethod
    def empty(shape: tuple[int, ...], dtype: np.dtype[Any], device: int, stream: int | None) -> Any:
        """Return an uninitialised array, its memory ordered on the stream it is used on."""
        cupy = sys.modules["cupy"]
        if stream is None and (driver.is_simple or _cupy_device(cupy) == device):
            return cupy.ndarray(shape, dtype)
        with cupy.cuda.Device(device):
            if stream is None:
                return cupy.empty(shape, dtype)
            with _cupy_stream(cupy, stream, device):
                return cupy.empty(shape, dtype)

    @staticmethod
    def fill(x: Any, value: np.ndarray[Any, Any], device: int, stream: int | None) -> None:
        """Write one value everywhere, on the stream."""
        fill.fill(CuPy.view(x), value, CuPy.stream(device) if stream is None else stream)

    @staticmethod
    def stream(device: int) -> int:
        if driver.is_simple:
            pointer: int = _cupy_stream_pointer()
            return pointer
        with sys.modules["cupy"].cuda.Device(device):  # CuPy has a current stream for each
            return int(_cupy_stream_pointer())

    @staticmethod
    def pointer(x: Any) -> int:
        pointer: int = x.data.ptr
        return pointer


def _cupy_stream(cupy: Any, stream: int, device: int) -> Any:
    """Return CuPy's object for a stream that it did not make."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # CuPy 14 has another way, 13 has not
        return cupy.cuda.ExternalStream(stream, device)


def _cupy_device(cupy: Any) -> int:
    return int(cupy.cuda.runtime.getDevice())


def _cupy_stream_pointer() -> Any:
    """Return the handle of CuPy's current stream; replaces itself by the fastest way there is."""
    global _cupy_stream_pointer
    try:
        from cupy_backends.cuda.stream import get_current_stream_ptr as pointer
    except ImportError:
        cupy = sys.modules["cupy"]

        def pointer() -> Any:
            return cupy.cuda.get_current_stream().ptr

    _cupy_stream_pointer = pointer
    return pointer()


_torch_dtypes: dict[Any, np.dtype[Any]] = {}
_to_torch: dict[np.dtype[Any], Any] = {}


def _torch_dtype(dtype: Any) -> np.dtype[Any]:
    found = _torch_dtypes.get(dtype)
    if found is None:
        name = str(dtype).rpartition(".")[2]
        if name not in dtypes.NAMES:
            raise TypeError(
                f"a tensor of {dtype} has no kernel; use one of {', '.join(dtypes.NAMES)}"
            )
        found = _torch_dtypes[dtype] = dtypes.from_name(name)
    return found


class Torch:
    """PyTorch tensors: on the host or a device."""

    name = "torch"
    has_homes = False

    @staticmethod
    def view(x: Any) -> View:
        if x.requires_grad:
            raise TypeError(
                "a tensor that requires grad would lose its gradient here; pass x.detach()"
            )
        if x.is_conj() or x.is_neg():  # its memory holds other numbers than it shows
            raise TypeError(
                "a conjugate or negative view cannot be used; pass x.resolve_conj().resolve_neg()"
            )
        dtype = _torch_dtype(x.dtype)
        itemsize = dtype.itemsize
        device = x.get_device() if x.is_cuda else CPU
        if device == CPU and x.device.type != "cpu":
            raise TypeError(f"a tensor on {x.device} cannot be used; move it with x.cuda()")
        strides = tuple([stride * itemsize for stride in x.stride()])
        return _make(View, (
            x.data_ptr(), tuple(x.shape), strides, dtype, device, Torch, False, x,
        ))  # fmt: skip

    @staticmethod
    def empty(shape: tuple[int, ...], dtype: np.dtype[Any], device: int, stream: int | None) -> Any:
        torch = sys.modules["torch"]
        torch_dtype = _to_torch.get(dtype)
        if torch_dtype is None:
            torch_dtype = _to_torch[dtype] = getattr(torch, str(dtypes.name_of(dtype)))
        if stream is None:
            return torch.empty(shape, dtype=torch_dtype, device=device)
        with torch.cuda.stream(torch.cuda.ExternalStream(stream, device=device)):
            return torch.empty(shape, dtype=torch_dtype, device=device)

    @staticmethod
    def fill(x: Any, value: np.ndarray[Any, Any], device: int, stream: int | None) -> None:
        fill.fill(Torch.view(x), value, Torch.stream(device) if stream is None else stream)

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


def protocol_view(x: Any) -> View:
    """Return the view of an array known only by a protocol."""
    interface = getattr(x, "__cuda_array_interface__", None)
    if interface is not None:
        from gpualgo._arrays import protocols

        return protocols.interface_view(x, interface)
    if type(x).__name__ == "StridedMemoryView":
        return _strided_memory_view(x)
    from gpualgo._arrays import dlpack

    if dlpack.is_capsule(x):
        tensor = dlpack.read(x)
    else:
        kind, device = x.__dlpack_device__()
        if int(kind) in dlpack.DEVICE:
            from gpualgo._arrays import protocols

            tensor = dlpack.read(protocols.capsule_of(x, int(device)))
        elif int(kind) in dlpack.HOST:  # such producers are asked without a stream
            tensor = dlpack.read(dlpack.ask(x))
        else:
            raise _unknown_device(int(kind))
    if tensor.device_type in dlpack.HOST:
        return _NumPy.view(dlpack.as_numpy(tensor))
    if tensor.device_type not in dlpack.DEVICE:
        raise _unknown_device(tensor.device_type)
    from gpualgo._arrays import protocols

    return protocols.borrowed_view(protocols.Borrowed(tensor))


def _unknown_device(kind: int) -> TypeError:
    return TypeError(f"a DLPack array on device type {kind} cannot be used; copy it to CPU or CUDA")


def _strided_memory_view(x: Any) -> View:
    """Return the view of a cuda.core StridedMemoryView, on the host or a GPU."""
    from gpualgo._arrays import dlpack

    tensor = dlpack.from_strided_memory_view(x)
    if tensor.device_type == dlpack.CPU:
        return _NumPy.view(dlpack.as_numpy(tensor))
    from gpualgo._arrays import protocols

    return protocols.strided_memory_view(tensor)
