"""Arrays known only by a protocol: views of them, and a small array class for their results."""

from __future__ import annotations

import sys
import weakref
from typing import Any

import numpy as np

from gpualgo._array import View, as_view, is_contiguous
from gpualgo._cuda import driver, memory


class DeviceArray:
    """Device memory with a shape: what results are when their input was known by protocol only.

    It exports ``__cuda_array_interface__``: hand it to CuPy, torch or numba, or call
    ``copy_to_host()``.
    """

    def __init__(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], device: int, stream: int
    ) -> None:
        self.shape, self.dtype, self.device, self.stream = shape, dtype, device, stream
        self.nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        self.ptr = memory.allocate(self.nbytes, stream, device) if self.nbytes else 0
        if self.ptr:
            weakref.finalize(self, memory.release, self.ptr, stream, device).atexit = False

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.ptr, False),
            "strides": None,
            "version": 3,
            "stream": self.stream or 1,  # 0 is not allowed: 1 is the legacy default stream
        }

    def copy_to_host(self) -> np.ndarray[Any, Any]:
        """Return a NumPy copy, once the work on it has finished."""
        result = np.empty(self.shape, self.dtype)
        if self.nbytes:
            with driver.current_device(self.device):
                driver.synchronize(self.stream)
                driver.check(
                    driver.api().cuMemcpyDtoH(result.ctypes.data, self.ptr, self.nbytes),
                    "cuMemcpyDtoH",
                )
        return result


class Protocol:
    """The library of arrays known by protocol: results are `DeviceArray`s."""

    name = "cuda-array-interface"

    @staticmethod
    def empty(shape: tuple[int, ...], dtype: np.dtype[Any], device: int, stream: int | None) -> Any:
        return DeviceArray(shape, dtype, device, stream or 0)

    @staticmethod
    def fill(x: Any, value: np.ndarray[Any, Any], device: int, stream: int | None) -> None:
        target = view(x, x.__cuda_array_interface__)
        if not is_contiguous(target):
            raise ValueError(
                "an empty reduction into a strided out is not supported; use a plain out"
            )
        source = np.full(target.shape, value)
        with driver.current_device(device):
            driver.check(
                driver.api().cuMemcpyHtoD(target.ptr, source.ctypes.data, source.nbytes),
                "cuMemcpyHtoD",
            )

    @staticmethod
    def stream(device: int) -> int:
        return 0

    @staticmethod
    def pointer(x: Any) -> int:
        return int(x.__cuda_array_interface__["data"][0])


def view(x: Any, interface: dict[str, Any]) -> View:
    """Return the view of a `__cuda_array_interface__`."""
    if interface.get("mask") is not None:
        raise TypeError("a masked CUDA array would lose its mask; pass the data alone")
    shape = tuple(int(n) for n in interface["shape"])
    dtype = np.dtype(interface["typestr"])
    pointer, readonly = interface["data"]
    strides = interface.get("strides")
    plain = _contiguous_strides(shape, dtype.itemsize)
    strides = plain if strides is None else tuple(int(s) for s in strides)
    device = getattr(x, "device", None) if isinstance(x, DeviceArray) else _device_of(pointer)
    _wait_for_producer(interface.get("stream"))
    return View(
        int(pointer or 0), shape, strides, dtype, int(device or 0), Protocol, bool(readonly), x
    )


def _wait_for_producer(stream: int | None) -> None:
    """Wait for work that the producer has queued elsewhere: results run on the default stream."""
    if stream is not None and int(stream) > 2:
        driver.synchronize(int(stream))


def _contiguous_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    strides = []
    for extent in reversed(shape):
        strides.append(itemsize)
        itemsize *= extent
    return tuple(reversed(strides))


def _device_of(pointer: int) -> int:
    if not pointer:
        return 0
    attribute = driver.api().CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    driver.require_device(0)
    try:
        ordinal = driver.check(
            driver.api().cuPointerGetAttribute(attribute, pointer), "cuPointerGetAttribute"
        )
    except RuntimeError as error:
        raise ValueError(
            f"address {pointer:#x} is not memory that a GPU knows ({error}); pass a device array"
        ) from None
    return int(ordinal)


def dlpack_view(x: Any) -> View:
    """Return the view of a DLPack producer on a GPU, through the library at hand."""
    for name in ("cupy", "torch"):
        module = sys.modules.get(name)
        if module is not None:
            return as_view(module.from_dlpack(x), "a DLPack array")
    raise TypeError(
        f"a {type(x).__name__} on a GPU is read through CuPy or torch; import one of them first, "
        "or pass an array with __cuda_array_interface__"
    )
