"""The public function `from_pointer`: an array view over a raw device pointer."""

from __future__ import annotations

import ctypes
import math
import operator
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from gpualgo._base.strides import bounds, dense_strides
from gpualgo._driver import streams

if TYPE_CHECKING:  # else loaded by the first call
    from collections.abc import Sequence

    from gpualgo._arrays.device_array import DeviceArray
    from gpualgo._base import annotations as ty

_WHERE = "from_pointer"
_MAX_BYTES = 1 << 63


def from_pointer(
    ptr: ty.Address,
    shape: ty.Shape,
    dtype: ty.DType | ty.AnyDType,
    *,
    owner: object = None,
    strides: Sequence[SupportsIndex] | None = None,
    readonly: bool = False,
    stream: ty.Stream | None = None,
) -> DeviceArray:
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
    from gpualgo._arrays import device_array
    from gpualgo._driver import addresses, driver

    address = _address(ptr)
    extents = _ints(shape, "shape") if isinstance(shape, (tuple, list)) else _ints([shape], "shape")
    element = device_array.any_dtype(dtype, _WHERE)
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
    device_array.check_alignment(address, extents, byte_strides, element, _WHERE)
    low, high = bounds(extents, byte_strides, element.itemsize)
    device, pointer = addresses.place(address, low, high, _WHERE)
    return device_array.DeviceArray(
        pointer,
        extents,
        byte_strides,
        element,
        device,
        producer if producer != 1 else 0,
        bool(readonly),
        owner,
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
