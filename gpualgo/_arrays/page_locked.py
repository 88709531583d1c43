"""Host memory that kernels can access in place: page-locked, registered or managed."""

from __future__ import annotations

import contextlib
import math
import operator
import sys
import weakref
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._arrays.view import View, address_of, byte_bounds
from gpualgo._base import dtypes, records
from gpualgo._base.strides import MAX_DIMS
from gpualgo._driver import default_device, driver
from gpualgo._driver import device as gpu
from gpualgo._driver.driver import check

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty


_HOST, _DEVICE = 1, 2  # CUmemorytype; 0: memory unknown to CUDA


def view(array: View, device: int, where: str = "gpualgo", is_aligned: bool = True) -> View | None:
    """Return a host array as kernels on the current device see it; None if they cannot access it.

    None if any byte is pageable, if elements are misaligned (with `is_aligned`), or if there are
    more dimensions than kernels support.
    """
    first = address_of(array)
    if records.is_position(array.dtype):  # index inputs have no memory
        return array._replace(ptr=first - records.ORIGIN, device=device)
    if len(array.shape) > MAX_DIMS or (is_aligned and not _is_aligned(array, first)):
        return None
    low, high = byte_bounds(array)
    if low == high:
        return None
    kind, is_managed, pointer, start, size = _attributes(low)
    if kind == _DEVICE and not is_managed:
        raise ValueError(
            f"{where}: a host array has address {first:#x}, which is GPU memory; "
            f"pass gpualgo.from_pointer({first:#x}, shape, dtype) instead"
        )
    if not (kind == _HOST or is_managed) or not start <= low <= high <= start + size:
        return None
    return View(
        pointer + first - low, array.shape, array.strides, array.dtype, device, array.library,
        array.readonly, array.owner,
    )  # fmt: skip


def is_within(low: int, high: int) -> bool:
    kind, is_managed, _, start, size = _attributes(low)
    return (kind == _HOST or is_managed) and start <= low <= high <= start + size


def _is_aligned(array: View, first: int) -> bool:
    itemsize = array.dtype.itemsize
    if first % itemsize:
        return False
    pairs = zip(array.shape, array.strides, strict=True)
    return all(extent == 1 or stride % itemsize == 0 for extent, stride in pairs)


@cache
def _attribute_ids() -> list[Any]:
    """Return the pointer attributes to query, in the order of `_attributes`."""
    names = "MEMORY_TYPE", "IS_MANAGED", "DEVICE_POINTER", "RANGE_START_ADDR", "RANGE_SIZE"
    attributes = driver.api().CUpointer_attribute
    return [getattr(attributes, f"CU_POINTER_ATTRIBUTE_{name}") for name in names]


def _attributes(address: int) -> tuple[int, bool, int, int, int]:
    """Return an address's memory type, whether it is managed, its device pointer, and its range."""
    ids = _attribute_ids()
    status, values = driver.api().cuPointerGetAttributes(len(ids), ids, address)
    if status:  # memory unknown to CUDA
        return 0, False, 0, 0, 0
    kind, is_managed, pointer, start, size = values
    return int(kind), bool(is_managed), int(pointer), int(start), int(size)


class Memory:
    """Page-locked bytes, freed when the last array that uses them is gone."""

    __slots__ = ("__array_interface__", "__weakref__")

    def __init__(self, size: int, device: int) -> None:
        api = driver.api()
        with gpu.get(device).outside_capture():
            # 3: CU_MEMHOSTALLOC_PORTABLE and DEVICEMAP: every context, mapped for kernels.
            result = api.cuMemHostAlloc(size, 3)
        codes = api.CUresult
        if result[0] in (codes.CUDA_ERROR_OUT_OF_MEMORY, codes.CUDA_ERROR_INVALID_VALUE):
            raise MemoryError(
                f"empty_pinned: the host cannot lock {size} bytes of memory; pass a smaller shape, "
                "or use numpy.empty, whose arrays are copied"
            )
        address = int(check(result, "cuMemHostAlloc"))
        weakref.finalize(self, _free, address, device).atexit = False
        self.__array_interface__ = {
            "version": 3, "shape": (size,), "typestr": "|u1", "data": (address, False),
        }  # fmt: skip


def allocate(size: int, device: int) -> np.ndarray[Any, Any]:
    array: np.ndarray[Any, Any] = np.asarray(Memory(size, device))
    return array


def _free(address: int, device: int) -> None:
    with contextlib.suppress(RuntimeError), gpu.get(device).outside_capture():  # a forked child
        driver.api().cuMemFreeHost(address)


# --- The public function `empty_pinned`: NumPy arrays that kernels read and write in place.

_WHERE = "empty_pinned"


def empty_pinned(shape: ty.Shape, dtype: ty.AnyDType = np.float64) -> np.ndarray[Any, Any]:
    """Return a new NumPy array in page-locked memory, which GPUs read and write in place.

    Parameters
    ----------
    shape : int or sequence of ints
        The shape of the array.
    dtype : dtype
        Any dtype without Python objects; float64 by default.

    Returns
    -------
    numpy.ndarray
        Uninitialised and C-contiguous. Without a GPU an ordinary array, because everything runs on
        the CPU then.

    Raises
    ------
    TypeError
        `shape` does not consist of ints, or `dtype` is not a dtype or has Python objects.
    ValueError
        A length is negative.
    MemoryError
        There is not enough memory, or not enough that can be page-locked.

    Notes
    -----
    Page-locking takes time, so create such an array once and reuse it. Every GPU can use it. If
    inputs and `out` of a call with ``stream=`` are such arrays, the call returns without waiting:
    the result is complete once the stream has run. The memory is freed once no array uses it and
    the work that this package has queued on it has run; wait for work of other libraries yourself.

    See https://github.com/gpualgo/gpualgo/blob/main/docs/memory.md.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> x = ga.empty_pinned((2, 3), np.float32)
    >>> x[...] = 1.5
    >>> float(ga.reduce(x))
    9.0
    """
    extents = _extents(shape)
    item_dtype = _dtype_of(dtype)
    size = math.prod(extents) * item_dtype.itemsize
    if size > sys.maxsize:
        raise MemoryError(f"{_WHERE}: {size} bytes exceed the address space; pass a smaller shape")
    from gpualgo._driver import driver

    if not size or not driver.device_count():
        return np.empty(extents, item_dtype)
    device = max(default_device.current(), 0)  # any GPU's context will do
    return allocate(size, device).view(item_dtype).reshape(extents)


def _extents(shape: Any) -> tuple[int, ...]:
    try:
        values = tuple(shape) if np.iterable(shape) else (shape,)
        extents = tuple(map(operator.index, values))
    except TypeError:
        raise TypeError(
            f"{_WHERE}: shape must be an int or a sequence of ints, got {shape!r}"
        ) from None
    if any(extent < 0 for extent in extents):
        raise ValueError(
            f"{_WHERE}: shape {extents} has a negative extent; pass extents of 0 or more"
        )
    return extents


def _dtype_of(dtype: Any) -> np.dtype[Any]:
    if type(dtype) is str and dtype == "bfloat16":
        return dtypes.bfloat16()
    try:
        result: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        raise TypeError(f"{_WHERE}: dtype {dtype!r} is not a dtype of NumPy") from None
    if result.hasobject or not result.itemsize:
        raise TypeError(
            f"{_WHERE}: dtype {result} has Python objects; use a dtype of numbers or records"
        )
    return result
