"""Arrays known only by a protocol: their views, and the library that allocates their results."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

import numpy as np

from gpualgo._arrays import device_array, dlpack
from gpualgo._arrays.device_array import DeviceArray
from gpualgo._arrays.view import NumPy, View
from gpualgo._base import recording
from gpualgo._base.strides import dense_strides
from gpualgo._driver import device as addresses
from gpualgo._driver import device as gpu
from gpualgo._driver import driver, streams


class Protocol:
    """The library of arrays known by protocol that share one producer stream."""

    name = "cuda-array-interface"
    has_producers = True

    __slots__ = ("producer_stream",)

    def __init__(self, producer_stream: int) -> None:
        self.producer_stream = producer_stream

    def empty(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], device: int, stream: int | None
    ) -> DeviceArray:
        # A graph's capture stream exists only while recording; launches use other streams.
        if stream is None or recording.is_capturing():
            stream = self.producer_stream
        return device_array.empty(shape, dtype, device, stream)

    @staticmethod
    def transposed(x: DeviceArray, axes: tuple[int, ...]) -> DeviceArray:
        return x.transpose(*axes)

    def stream(self, device: int) -> int:
        return self.producer_stream

    @staticmethod
    def pointer(x: Any) -> int:
        pointer: int = x.ptr
        return pointer


@lru_cache(4096)  # bounded, as streams are created and destroyed
def at(producer_stream: int) -> Protocol:
    """Return the library of a producer stream; the same object each time, as calls compare it."""
    return Protocol(producer_stream)


def own_view(x: DeviceArray) -> View:
    library = at(x.stream)
    return View(x.ptr, x.shape, x.strides, x.dtype, x.device, library, x.readonly, x)


def interface_view(x: Any, interface: dict[str, Any]) -> View:
    if interface.get("mask") is not None:
        raise TypeError("a masked CUDA array would lose its mask; pass the data alone")
    shape = tuple(int(n) for n in interface["shape"])
    dtype = np.dtype(interface["typestr"])
    fields = interface.get("descr")
    if dtype.kind == "V" and fields and (len(fields) > 1 or fields[0][0]):
        dtype = np.lib.format.descr_to_dtype(fields)
    address, readonly = interface["data"]
    pointer = int(address or 0)
    strides, stream = interface.get("strides"), int(interface.get("stream") or 0)
    byte_strides = (
        dense_strides(shape, dtype.itemsize) if strides is None else tuple(int(s) for s in strides)
    )
    library = at(0 if stream == 1 else stream)  # both are the legacy default stream
    device = addresses.device_of(pointer)
    return View(pointer, shape, byte_strides, dtype, device, library, bool(readonly), x)


class Borrowed:
    """A DLPack tensor on a GPU that is released after the work queued on it.

    Its producer may reuse the memory on its own stream as soon as the capsule is destroyed.
    """

    __slots__ = ("tensor",)

    def __init__(self, tensor: dlpack.Tensor) -> None:
        self.tensor = tensor

    def __del__(self) -> None:
        if sys.is_finalizing():
            return
        try:
            with gpu.get(self.tensor.device_id).current():
                if driver.is_free(0):
                    streams.keep_until_done(0, self.tensor.device_id, self.tensor.owner)
        except RuntimeError:  # a forked child, or CUDA has shut down: nothing is running
            pass


def borrowed_view(x: Borrowed) -> View:
    return _view_of(x.tensor, x)


def _view_of(tensor: dlpack.Tensor, owner: Any) -> View:
    return View(
        tensor.ptr, tensor.shape, tensor.strides, tensor.dtype, max(tensor.device_id, 0), at(0),
        tensor.readonly, owner,
    )  # fmt: skip


def _capsule_of(producer: Any, device: int) -> Any:
    """Return a producer's capsule after making the legacy default stream wait for its work."""
    driver.require_device(device)
    with gpu.get(device).current():
        return dlpack.ask(producer, stream=1 if driver.is_free(0) else -1)


def protocol_view(x: Any) -> View:
    if not recording.active:
        return _protocol_view(x)
    with recording.suspended():  # reading the protocol attribute may compute the array
        return _protocol_view(x)


def _protocol_view(x: Any) -> View:
    interface = getattr(x, "__cuda_array_interface__", None)
    if interface is not None:
        return interface_view(x, interface)
    if type(x).__name__ == "StridedMemoryView":
        tensor = dlpack.from_strided_memory_view(x)
        is_on_cpu = tensor.device_type == dlpack.CPU
        return NumPy.view(dlpack.as_numpy(tensor)) if is_on_cpu else _view_of(tensor, x)
    if type(x).__name__ == "PyCapsule":  # itself, not an array that makes one
        tensor = dlpack.read(x)
    else:
        kind, device = x.__dlpack_device__()
        if int(kind) in dlpack.DEVICE:
            tensor = dlpack.read(_capsule_of(x, int(device)))
        elif int(kind) in dlpack.HOST:  # host producers take no stream
            tensor = dlpack.read(dlpack.ask(x))
        else:
            raise _unknown_device(int(kind))
    if tensor.device_type in dlpack.HOST:
        return NumPy.view(dlpack.as_numpy(tensor))
    if tensor.device_type not in dlpack.DEVICE:
        raise _unknown_device(tensor.device_type)
    return borrowed_view(Borrowed(tensor))


def _unknown_device(kind: int) -> TypeError:
    return TypeError(f"a DLPack array on device type {kind} cannot be used; copy it to CPU or CUDA")


def viewer_of(x: Any) -> Any:
    if isinstance(x, DeviceArray):
        return own_view
    return borrowed_view if isinstance(x, Borrowed) else protocol_view
