"""PyTorch as an array library; its tensors are on the host or a device.

Imported at the first tensor; by then the caller has imported torch.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from gpualgo._arrays.view import View
from gpualgo._base import dtypes
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
    torch = sys.modules.get("torch")  # None while its import is in progress
    return Torch.view if torch is not None and isinstance(x, torch.Tensor) else None


class Torch:
    name = "torch"
    has_producers = False

    @staticmethod
    def view(x: Any) -> View:
        if x.requires_grad:
            raise TypeError(
                "a tensor that requires grad would lose its gradient here; pass x.detach()"
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
