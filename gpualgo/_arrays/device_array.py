"""DeviceArray: results for arrays known only by protocol, and views of raw device memory."""

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Callable, Iterator
from types import EllipsisType
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from gpualgo._arrays.view import Interface, View
from gpualgo._base import dtypes
from gpualgo._base import strides as _strides
from gpualgo._base.strides import bounds, dense_strides, merge
from gpualgo._driver import device as addresses
from gpualgo._driver import device as gpu
from gpualgo._driver import driver, staging, streams
from gpualgo._driver.streams import Memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpualgo._base import annotations as ty


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
        items = [
            item if item is None or isinstance(item, slice | EllipsisType) else _index(item)
            for item in (key if isinstance(key, tuple) else (key,))
        ]
        if ... not in items:  # so that NumPy returns an array even for a full index
            items.append(...)
        return self._as_numpy("DeviceArray", lambda array: array[tuple(items)], self.dtype)

    def reshape(self, *shape: Any) -> DeviceArray:
        """Return a view with another shape; raise ValueError if that needs a copy."""
        wanted = shape[0] if len(shape) == 1 else shape
        new = _strides.full_shape(wanted, self.size)
        strides = _strides.reshape(self.shape, self.strides, new, self.dtype.itemsize)
        return self._new_view(self.ptr, new, strides, self.dtype)

    def transpose(self, *axes: int) -> DeviceArray:
        """Return a view with its axes permuted, by default reversed."""
        return self._as_numpy("transpose", lambda array: array.transpose(*axes), self.dtype)

    def view(self, dtype: Any) -> DeviceArray:
        """Return a view of the same bytes as items of another dtype, along the last axis."""
        new = any_dtype(dtype, "view")
        seen = self._as_numpy("view", lambda array: array.view(f"V{new.itemsize}"), new)
        check_alignment(seen.ptr, seen.shape, seen.strides, new, "view")
        return seen

    def _as_numpy(
        self, where: str, change: Callable[[Any], Any], dtype: np.dtype[Any]
    ) -> DeviceArray:
        """Return what NumPy makes of an array with these addresses, which is never read."""
        typestr = f"|V{self.dtype.itemsize}"
        array = np.asarray(Interface(self.ptr, self.shape, self.strides, typestr))
        try:
            seen = change(array)
        except (IndexError, ValueError) as error:
            raise type(error)(f"{where}: {error}") from None
        ptr = int(seen.__array_interface__["data"][0]) if seen.size else self.ptr
        return self._new_view(ptr, seen.shape, seen.strides, dtype)

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
        reason = f"{where}: the call waits for the copy"
        array = staging.values(
            self.ptr, self.shape, self.strides, self.dtype, self.device, handle, reason
        )
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


def _index(item: Any) -> int:
    try:
        return operator.index(_no_bool(item))
    except TypeError:
        raise IndexError(
            "DeviceArray: an index must be made of ints, slices, ... and None, got "
            f"{type(item).__name__}; pass the array to a library that gathers"
        ) from None


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


# --- The public function `from_pointer`: an array view over a raw device pointer.


_WHERE = "from_pointer"
_MAX_BYTES = 1 << 63


def from_pointer(
    ptr: ty.Address, shape: ty.Shape, dtype: ty.DType | ty.AnyDType, *, owner: object = None,
    strides: Sequence[SupportsIndex] | None = None, readonly: bool = False,
    stream: ty.Stream | None = None,
) -> DeviceArray:  # fmt: skip
    """Return an array over memory that a GPU can use: element i is at ``ptr + i · strides``.

    Parameters
    ----------
    ptr : int
        The address of the first element: an int, a ``CUdeviceptr`` of ``cuda.bindings`` or anything
        with ``__int__``. The memory is device, managed or page-locked memory.
    shape : int or tuple of ints
        The shape of the array; if a length is zero, any address is valid.
    dtype : dtype
        The dtype of the elements: a supported one, or any other without Python objects.
    owner : object, optional
        An object that the array and its views keep alive; without it the caller keeps the memory
        alive.
    strides : tuple of ints, optional
        In bytes, of either sign; by default those of a C-contiguous array.
    readonly : bool
        Whether using the array as an output raises an error.
    stream : stream, optional
        The stream that the memory is used on, and on which calls without ``stream=`` run; the
        caller keeps it alive. By default the legacy default stream.

    Returns
    -------
    DeviceArray
        It can be sliced, reshaped and viewed as another dtype, and exports
        ``__cuda_array_interface__`` and DLPack. The call neither copies nor waits.

    Raises
    ------
    TypeError
        An argument is of a wrong type.
    ValueError
        No GPU can use the address, the array is not within the allocation, or elements are not
        aligned to their dtype.
    NoDeviceError
        There is no GPU.

    Notes
    -----
    The driver is asked for the allocation of the address. For memory from a pool, such as CuPy's or
    PyTorch's, the allocation is the whole block of the pool.

    See https://github.com/gpualgo/gpualgo/blob/main/docs/memory.md.

    Examples
    --------
    >>> import cupy, gpualgo as ga                                         # doctest: +SKIP
    >>> memory = cupy.cuda.alloc(400)                                      # doctest: +SKIP
    >>> x = ga.from_pointer(memory.ptr, 100, "float32", owner=memory)      # doctest: +SKIP
    >>> ga.reduce(x[10:])                                                  # doctest: +SKIP
    DeviceArray(shape=(), dtype=float32, cuda:0, ptr=0x302000000)
    """
    address = _address(ptr)
    extents = _ints(shape, "shape") if isinstance(shape, (tuple, list)) else _ints([shape], "shape")
    element = any_dtype(dtype, _WHERE)
    greatest = max(math.prod(extents) * element.itemsize, *extents, 0)
    if min(extents, default=0) < 0 or greatest >= _MAX_BYTES:
        raise ValueError(
            f"{_WHERE}: shape {extents} of {element} cannot be that of an array; pass extents of 0 "
            "or more that fit in the address space"
        )
    byte_strides = dense_strides(extents, element.itemsize)
    if strides is not None:
        byte_strides = _ints(strides, "strides")
        if len(byte_strides) != len(extents):
            raise ValueError(
                f"{_WHERE}: strides {byte_strides} do not match shape {extents}; pass a stride in "
                "bytes for each dimension"
            )
    producer = 0 if stream is None else streams.handle_of(stream, _WHERE)
    driver.require_device(0)
    check_alignment(address, extents, byte_strides, element, _WHERE)
    low, high = bounds(extents, byte_strides, element.itemsize)
    device, pointer = addresses.locate(address, low, high, _WHERE)
    producer = producer if producer != 1 else 0
    return DeviceArray(
        pointer, extents, byte_strides, element, device, producer, bool(readonly), owner
    )


def _address(ptr: Any) -> int:
    """Return ptr as an int; refuse arrays and floats, which have `__int__` but are no addresses."""
    if isinstance(ptr, ctypes.c_void_p):
        ptr = ptr.value or 0
    is_number = isinstance(ptr, (int, np.integer)) and not isinstance(ptr, (bool, np.bool_))
    is_value = isinstance(ptr, (bool, float, np.generic, np.ndarray)) or any(
        hasattr(ptr, name) for name in ("__cuda_array_interface__", "__dlpack__", "__array__")
    )
    if not is_number and (is_value or not hasattr(ptr, "__int__")):
        raise TypeError(
            f"{_WHERE}: ptr must be an address, as int or CUdeviceptr, got {type(ptr).__name__}; "
            "pass an array to the functions directly"
        )
    address = int(ptr)
    if not 0 <= address < 1 << 64:
        raise ValueError(f"{_WHERE}: ptr {address:#x} is not an address; pass one of 64 bits")
    return address


def _ints(values: Any, name: str) -> tuple[int, ...]:
    try:
        return tuple(operator.index(_no_bool(v)) for v in values)
    except TypeError:
        raise TypeError(
            f"{_WHERE}: {name} must consist of ints, got {values!r}; pass a tuple of ints"
        ) from None


def _no_bool(value: Any) -> Any:
    return None if isinstance(value, bool) else value


# --- Fills a device array with one value, in stream order and without host memory.


def fill(target: View, value: np.ndarray[Any, Any], stream: int) -> None:
    if 0 in target.shape:
        return
    data = np.asarray(value).astype(target.dtype).tobytes()
    unit = math.gcd(4, len(data), target.ptr, *target.strides)  # memsets write aligned words
    words = [int.from_bytes(data[i : i + unit], "little") for i in range(0, len(data), unit)]
    dims = merge([(n, (s,)) for n, s in zip(target.shape, target.strides, strict=True)])
    rows, (pitch,) = dims.pop() if dims else (1, (len(data),))
    with gpu.get(target.device).current():
        for index in np.ndindex(*(extent for extent, _ in dims)):
            start = sum(i * stride for i, (_, (stride,)) in zip(index, dims, strict=True))
            _fill_line(target.ptr + start, rows, pitch, words, unit, stream)


def _fill_line(
    address: int, rows: int, pitch: int, words: list[int], unit: int, stream: int
) -> None:
    api = driver.api()
    bits = 8 * unit
    if pitch < 0:
        address, pitch = address + (rows - 1) * pitch, -pitch
    if pitch == unit * len(words) and len(set(words)) == 1:
        queue = getattr(api, f"cuMemsetD{bits}Async")
        driver.check(queue(address, words[0], rows * len(words), stream), "cuMemsetAsync")
        return
    queue = getattr(api, f"cuMemsetD2D{bits}Async")
    for number, word in enumerate(words):
        status = queue(address + number * unit, pitch, word, 1, rows, stream)
        driver.check(status, "cuMemsetD2DAsync")
