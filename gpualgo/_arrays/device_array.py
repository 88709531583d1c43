"""DeviceArray: results for arrays known only by protocol, and views of raw device memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from gpualgo._base import dtypes
from gpualgo._base import strides as _strides
from gpualgo._base.strides import bounds, dense_strides
from gpualgo._driver import device as gpu
from gpualgo._driver import driver, streams
from gpualgo._driver.lifetime import Memory


class DeviceArray:
    """An array on a GPU: made by `from_pointer`, or a result for arrays of unknown libraries.

    It can be indexed with integers, slices, ``...`` and ``None``, reshaped, transposed and viewed
    as another dtype; each gives a view, which keeps `owner` alive. It exports
    ``__cuda_array_interface__`` and DLPack: pass it to CuPy, PyTorch or numba, or call
    ``copy_to_host()``.

    The memory of a result is freed once this package's work on it, and all work on the legacy
    default stream, has run. Work of other libraries on other streams must be finished before the
    last reference is dropped.

    Attributes
    ----------
    ptr : int
        The address of the first element.
    shape, strides, dtype
        As in NumPy; strides are in bytes.
    device : int
        The CUDA ordinal.
    stream : int
        The stream that work on the array is queued on, unless a call names another one; consumers
        wait for it.
    readonly : bool
        Whether the array is read-only.
    owner : object
        The object that keeps the memory alive.
    """

    __slots__ = (
        "__weakref__", "device", "dtype", "owner", "ptr", "readonly", "shape", "stream", "strides",
    )  # fmt: skip

    def __init__(
        self, ptr: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any],
        device: int, stream: int, readonly: bool, owner: Any,
    ) -> None:  # fmt: skip
        self.ptr, self.shape, self.strides, self.dtype = ptr, shape, strides, dtype
        self.device, self.stream, self.readonly, self.owner = device, stream, readonly, owner

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def T(self) -> DeviceArray:
        """The array with its axes reversed."""
        return self.transpose()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len: a 0-d DeviceArray has no length; its one element is x[()]")
        return self.shape[0]

    def __iter__(self) -> Iterator[DeviceArray]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> DeviceArray:
        offset, shape, strides = _strides.index(self.shape, self.strides, key)
        return self._new_view(self.ptr + offset, shape, strides, self.dtype)

    def reshape(self, *shape: Any) -> DeviceArray:
        """Return a view with another shape; raise ValueError if that needs a copy."""
        wanted = shape[0] if len(shape) == 1 else shape
        new = _strides.full_shape(wanted, self.size)
        strides = _strides.reshape(self.shape, self.strides, new, self.dtype.itemsize)
        return self._new_view(self.ptr, new, strides, self.dtype)

    def transpose(self, *axes: int) -> DeviceArray:
        """Return a view with its axes permuted, by default reversed."""
        order = axes or tuple(reversed(range(self.ndim)))
        if sorted(axis % max(self.ndim, 1) for axis in order) != list(range(self.ndim)):
            raise ValueError(
                f"transpose: axes {order} do not name each of {self.ndim} axes once; name each once"
            )
        shape = tuple(self.shape[axis] for axis in order)
        return self._new_view(self.ptr, shape, tuple(self.strides[a] for a in order), self.dtype)

    def view(self, dtype: Any) -> DeviceArray:
        """Return a view of the same bytes as items of another dtype, along the last axis."""
        new = any_dtype(dtype, "view")
        size = self.dtype.itemsize
        shape, strides = _strides.retype(self.shape, self.strides, size, new.itemsize)
        check_alignment(self.ptr, shape, strides, new, "view")
        return self._new_view(self.ptr, shape, strides, new)

    def _new_view(
        self, ptr: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]
    ) -> DeviceArray:
        return DeviceArray(
            ptr, shape, strides, dtype, self.device, self.stream, self.readonly, self.owner
        )

    def copy_to_host(self, *, stream: Any = None) -> np.ndarray[Any, Any]:
        """Return a NumPy copy; waits for `stream`, by default the array's own."""
        where = "copy_to_host"
        handle = self.stream if stream is None else streams.handle_of(stream, where)
        low, high = bounds(self.shape, self.strides, self.dtype.itemsize)
        raw = np.empty(high - low, np.uint8)
        if raw.size:
            with gpu.get(self.device).current():
                driver.refuse_capture(handle, f"{where}: the call waits for the copy")
                api = driver.api()
                copied = api.cuMemcpyDtoHAsync(raw.ctypes.data, self.ptr + low, raw.size, handle)
                driver.check(copied, "cuMemcpyDtoHAsync")
                driver.synchronize(handle)
        array: np.ndarray[Any, Any] = np.ndarray(self.shape, self.dtype, raw, -low, self.strides)
        return array if array.flags.c_contiguous else array.copy()

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            "a DeviceArray is not copied to the host implicitly; use "
            "numpy.asarray(x.copy_to_host())"
        )

    def __repr__(self) -> str:
        kind = ", read-only" if self.readonly else ""
        return (
            f"DeviceArray(shape={self.shape}, dtype={self.dtype}, cuda:{self.device}, "
            f"ptr={self.ptr:#x}{kind})"
        )

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        is_contiguous = self.strides == dense_strides(self.shape, self.dtype.itemsize)
        interface: dict[str, Any] = {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.ptr if self.size else 0, self.readonly),
            "strides": None if is_contiguous else self.strides,
            "version": 3,
            "stream": self.stream or 1,  # 0 is not allowed: 1 is the legacy default stream
        }
        if self.dtype.names:
            interface["descr"] = self.dtype.descr
        return interface

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.device  # kDLCUDA

    def __dlpack__(
        self, stream: Any = None, *, max_version: Any = None, dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:  # fmt: skip
        """Return a capsule; the consumer's stream waits for the array's own unless it is -1."""
        from gpualgo._arrays import dlpack

        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError(
                f"__dlpack__: only the memory itself, on cuda:{self.device}, is exported; "
                "leave out copy= and dl_device="
            )
        consumer = _consumer(stream)
        capsule = dlpack.export(
            dlpack.Tensor(
                self.ptr, self.shape, self.strides, self.dtype, 2, self.device, self.readonly, self
            ),
            max_version,
        )
        if consumer is not None and self.size:
            streams.wait_for(consumer, self.stream, self.device)
        return capsule


def _consumer(stream: Any) -> int | None:
    """Return the stream that a DLPack consumer names; None for -1, no ordering."""
    if stream is None:
        return 0
    if not isinstance(stream, int) or isinstance(stream, bool) or stream < -1 or stream == 0:
        raise ValueError(
            f"__dlpack__: stream must be None, -1, 1 (legacy default), 2 (per-thread default) or "
            f"a handle, got {stream!r}"
        )
    return None if stream == -1 else stream


def empty(shape: tuple[int, ...], dtype: np.dtype[Any], device: int, stream: int) -> DeviceArray:
    """Return a new array; its memory is ordered on `stream`, its producer stream."""
    strides = dense_strides(shape, dtype.itemsize)
    nbytes = math.prod(shape) * dtype.itemsize
    pointer, owner = 0, None
    if nbytes:
        owner = Memory(stream, device)
        pointer = owner.take(nbytes)
    return DeviceArray(pointer, shape, strides, dtype, device, int(stream), False, owner)


def any_dtype(value: Any, where: str) -> np.dtype[Any]:
    """Return the dtype of memory: one that kernels support, or any other of plain bytes."""
    try:
        return dtypes.as_dtype(value, where)
    except TypeError:
        try:
            dtype: np.dtype[Any] = np.dtype(value)
        except TypeError:
            dtype = np.dtype(object)
        if dtype.hasobject or not dtype.itemsize:
            raise
    return dtype


def check_alignment(
    ptr: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any], where: str
) -> None:
    """Raise ValueError unless each element is aligned for its dtype."""
    if 0 in shape:
        return
    # Kernels load a whole item at once; records are copied bytewise.
    step = dtype.alignment if dtypes.name_of(dtype) is None else dtype.itemsize
    if ptr % step:
        raise ValueError(
            f"{where}: address {ptr:#x} is not a multiple of {step}, the alignment of {dtype}; "
            "pass an aligned one, or the bytes as uint8"
        )
    for extent, stride in zip(shape, strides, strict=True):
        if extent > 1 and stride % step:
            raise ValueError(
                f"{where}: stride {stride} is not a multiple of {step}, the alignment of {dtype}; "
                "copy the array first"
            )
