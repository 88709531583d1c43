"""DLPack import and export: reads capsules without consuming them, and exports device memory.

An imported capsule owns the memory: its destructor frees it after the last view is gone. Exported
capsules are created by NumPy, whose destructor and deleter are compiled code, safe in any thread;
only the fields that NumPy cannot know are set here.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from gpualgo._arrays.view import Interface
from gpualgo._base import dtypes
from gpualgo._base.strides import dense_strides

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  # kDLCPU and so on
HOST = (CPU, CUDA_HOST)
DEVICE = (CUDA, CUDA_MANAGED)
_READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY
_BFLOAT = 4  # kDLBfloat
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}  # by DLDataTypeCode


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),  # in elements; NULL: C order
        ("byte_offset", ctypes.c_uint64),
    )


class _Version(ctypes.Structure):
    _fields_ = (("major", ctypes.c_uint32), ("minor", ctypes.c_uint32))


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("version", _Version),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _DLTensor),
    )


# Separate prototypes: those of ctypes.pythonapi are shared by the whole process.
_name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
    ("PyCapsule_GetName", ctypes.pythonapi)
)
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class Tensor(NamedTuple):
    """The contents of a capsule."""

    ptr: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in bytes
    dtype: np.dtype[Any]
    device_type: int
    device_id: int
    readonly: bool
    owner: Any


# Whether NumPy creates versioned capsules, which can be marked read-only.
KNOWS_VERSIONS = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


def ask(producer: Any, **stream: int) -> Any:
    """Return a producer's capsule; without max_version if the producer does not accept it."""
    try:
        return producer.__dlpack__(max_version=(1, 0), **stream)
    except TypeError:
        return producer.__dlpack__(**stream)


def read(capsule: Any) -> Tensor:
    """Return the tensor of a capsule; the tensor keeps the capsule alive."""
    name = _name_of(capsule) or b""
    if name.startswith(b"used_dltensor"):
        raise ValueError(
            "a DLPack capsule can be consumed only once, and this one has been; pass the "
            "array that it came from"
        )
    tensor, flags = _fields(capsule, name)
    ndim = tensor.ndim
    dtype = _dtype_of(tensor)
    shape = tuple(tensor.shape[:ndim]) if ndim else ()
    if ndim and tensor.strides:
        strides = tuple(stride * dtype.itemsize for stride in tensor.strides[:ndim])
    else:
        strides = dense_strides(shape, dtype.itemsize)
    pointer = (tensor.data or 0) + tensor.byte_offset
    if not tensor.data and 0 not in shape:
        raise ValueError(f"a DLPack capsule of shape {shape} has no memory; pass another array")
    return Tensor(
        pointer, shape, strides, dtype, tensor.device_type, tensor.device_id,
        bool(flags & _READ_ONLY), capsule,
    )  # fmt: skip


def _fields(capsule: Any, name: bytes) -> tuple[_DLTensor, int]:
    if name == b"dltensor":  # the struct starts with the tensor
        return _DLTensor.from_address(_pointer_of(capsule, name)), 0
    if name != b"dltensor_versioned":
        raise TypeError(
            f"a capsule named {name.decode(errors='replace')!r} is not a DLPack array; "
            "pass what x.__dlpack__() returns, or x itself"
        )
    address = _pointer_of(capsule, name)
    version = _Version.from_address(address)
    if version.major != 1:  # of other versions only the version may be read
        raise ValueError(
            f"a DLPack capsule has version {version.major}.{version.minor}, of which only 1.x can "
            "be read; make it with x.__dlpack__(max_version=(1, 0))"
        )
    managed = _Versioned.from_address(address)
    return managed.tensor, managed.flags


def _dtype_of(tensor: _DLTensor) -> np.dtype[Any]:
    code, bits, lanes = tensor.code, tensor.bits, tensor.lanes
    if lanes == 1 and (code, bits) == (_BFLOAT, 16):
        return dtypes.bfloat16()
    kind = _KINDS.get(code)
    name = f"{kind}{bits // 8}"
    try:
        if kind is None or lanes != 1 or bits % 8:
            raise TypeError(name)
        return np.dtype("bool" if name == "b1" else name)
    except TypeError:
        raise TypeError(
            f"a DLPack array of type code {code} with {bits} bits and {lanes} lanes has no dtype "
            f"here; use one of {', '.join(dtypes.NAMES)}"
        ) from None


def from_strided_memory_view(x: Any) -> Tensor:
    """Return the tensor of a cuda.core StridedMemoryView, which it keeps alive."""
    if x.dtype is None:
        raise TypeError("a StridedMemoryView without a dtype has no elements; make it with dtype=")
    shape, dtype = tuple(x.shape), np.dtype(x.dtype)
    size = dtype.itemsize
    strides = (
        dense_strides(shape, size) if x.strides is None else tuple(s * size for s in x.strides)
    )
    kind = CUDA if x.is_device_accessible else CPU
    readonly = bool(x.readonly)
    return Tensor(int(x.ptr), shape, strides, dtype, kind, int(x.device_id), readonly, x)


def _array_over(tensor: Tensor, typestr: str) -> np.ndarray[Any, Any]:
    """Return a NumPy array over the memory; its base keeps the owner alive."""
    array = np.asarray(
        Interface(tensor.ptr, tensor.shape, tensor.strides, typestr, tensor.readonly, tensor.owner)
    )
    if tensor.readonly:
        array.flags.writeable = False
    return array


def as_numpy(tensor: Tensor) -> np.ndarray[Any, Any]:
    array = _array_over(tensor, tensor.dtype.str)
    return array if array.dtype == tensor.dtype else array.view(tensor.dtype)


def export(tensor: Tensor, max_version: Any) -> Any:
    """Return a capsule for memory on any device; it keeps the owner alive."""
    is_versioned = KNOWS_VERSIONS and max_version is not None and max_version[0] >= 1
    if tensor.readonly and not is_versioned:
        hint = "pass max_version=(1, 0)" if KNOWS_VERSIONS else "this requires NumPy 2.1 or newer"
        raise BufferError(
            f"__dlpack__: a read-only array can be exported to consumers of DLPack 1.0 only; {hint}"
        )
    is_bfloat = dtypes.name_of(tensor.dtype) == "bfloat16"
    array = _array_over(tensor, "<u2" if is_bfloat else tensor.dtype.str)
    capsule: Any = array.__dlpack__(max_version=(1, 0)) if is_versioned else array.__dlpack__()
    dl_tensor, _ = _fields(capsule, _name_of(capsule))
    dl_tensor.device_type, dl_tensor.device_id = tensor.device_type, tensor.device_id
    if is_bfloat:
        dl_tensor.code = _BFLOAT
    if 0 in tensor.shape:  # for empty arrays NumPy sets its own pointer
        dl_tensor.data = None
    return capsule
