"""Type aliases and protocols of public signatures, for type checkers; not imported at run time.

Arrays, streams and operators are protocols, so that type checking needs no array library.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    Protocol,
    SupportsIndex,
    SupportsInt,
    TypeAlias,
)

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import CapsuleType, TypeVar

    # Functions of these arrays return the same type, which does not carry a dtype.
    Same = TypeVar("Same", bound="Tensor | DeviceArray")
    Kind = TypeVar("Kind", bound=np.dtype[Any])
    ValueKind = TypeVar("ValueKind", bound=np.dtype[Any])
    Value = TypeVar("Value", bound=np.generic)


class HostArray(Protocol):
    """NumPy arrays and objects with their interface; results are NumPy arrays."""

    @property
    def __array_interface__(self) -> Any: ...


class CudaArray(Protocol):
    """An array in GPU memory; declared as a property, also matches stubs that declare a method."""

    @property
    def __cuda_array_interface__(self) -> Any: ...


class DLPackArray(Protocol):
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __dlpack_device__(self) -> Any: ...


class Tensor(DLPackArray, Protocol):
    requires_grad: Any

    def data_ptr(self) -> int: ...


class DeviceArray(CudaArray, DLPackArray, Protocol):
    ptr: int

    def copy_to_host(self) -> np.ndarray[Any, Any]: ...


class HashableHost(HostArray, Protocol):
    """A host array that is hashable, so no NumPy array: NumPy arrays are unhashable."""

    def __hash__(self) -> int: ...


class HashableProducer(DLPackArray, Protocol):
    """A producer of DLPack capsules that is hashable, so no NumPy array."""

    def __hash__(self) -> int: ...


class UnhashableProducer(DLPackArray, Protocol):
    """An unhashable producer of DLPack capsules, such as a NumPy array."""

    __hash__: ClassVar[None]  # type: ignore[assignment]


class Lazy(Protocol):
    @property
    def leaves(self) -> tuple[Any, ...]: ...
    @property
    def function(self) -> Any: ...


AnyArray: TypeAlias = "HostArray | CudaArray | DLPackArray | CapsuleType | Lazy"
# A tuple of arrays and numbers, which may hold inner tuples: one item for each field of an element.
Arrays: TypeAlias = "tuple[AnyArray | Number | tuple[AnyArray | Number, ...], ...]"
Argument: TypeAlias = "AnyArray | Number | Arrays"
NumPyArray: TypeAlias = "np.ndarray[Any, Any]"
# Only one overload may match NumPy arrays: if two do and the array's type contains Any (the shape
# of an NDArray is Any), mypy infers Any as the result.
Foreign: TypeAlias = "CudaArray | CapsuleType | HashableProducer | Lazy"
Host: TypeAlias = "HostArray | UnhashableProducer"


class CudaStream(Protocol):
    @property
    def __cuda_stream__(self) -> Any: ...


class TorchStream(Protocol):
    """PyTorch streams without `__cuda_stream__` (older releases)."""

    @property
    def cuda_stream(self) -> Any: ...


class CupyStream(Protocol):
    """CuPy streams without `__cuda_stream__` (older releases)."""

    @property
    def ptr(self) -> Any: ...
    def synchronize(self) -> Any: ...


class NumbaStream(Protocol):
    @property
    def handle(self) -> Any: ...
    def synchronize(self) -> Any: ...


Stream: TypeAlias = (
    "SupportsIndex | ctypes.c_void_p | CudaStream | TorchStream | CupyStream | NumbaStream"
)


class TorchDType(Protocol):
    @property
    def is_floating_point(self) -> bool: ...
    @property
    def is_complex(self) -> bool: ...


class MemoryResource(Protocol):
    @property
    def device_id(self) -> int: ...
    @property
    def is_device_accessible(self) -> bool: ...
    @property
    def allocate(self) -> Callable[..., Any]: ...
    @property
    def deallocate(self) -> Callable[..., Any]: ...


DType: TypeAlias = "str | type[Any] | np.dtype[Any] | TorchDType"  # one that kernels support
AnyDType: TypeAlias = "npt.DTypeLike"  # structured dtypes, too

# One dtype for all fields of an element, or a tuple with the structure of the element.
DTypeTuple: TypeAlias = "tuple[DType | tuple[DType, ...], ...]"
DTypes: TypeAlias = "DType | DTypeTuple"

Axis: TypeAlias = "SupportsIndex | None"
Axes: TypeAlias = "SupportsIndex | tuple[SupportsIndex, ...] | None"
Shape: TypeAlias = "SupportsIndex | Sequence[SupportsIndex]"

Number: TypeAlias = "complex | np.generic"
Scalar: TypeAlias = "complex | np.generic | np.ndarray[Any, Any]"  # an array of one element
FirstValue: TypeAlias = "Scalar | AnyArray"  # an array, also on a GPU, holds one value for each row
# A tuple with the structure of the elements, or a structured scalar for structured arrays.
FirstValues: TypeAlias = "Scalar | tuple[FirstValue | tuple[FirstValue, ...], ...]"
OutTuple: TypeAlias = "tuple[AnyArray | tuple[AnyArray, ...], ...]"
Outs: TypeAlias = "AnyArray | OutTuple"
# Outputs for keys and for values.
OutPair: TypeAlias = "tuple[Outs, Outs]"
Ways: TypeAlias = "bool | tuple[bool | tuple[bool, ...], ...]"  # descending, for each field
Real: TypeAlias = "float | np.number[Any] | np.ndarray[Any, Any]"
Bins: TypeAlias = "SupportsIndex | Sequence[float | np.number[Any]] | AnyArray"
# Bins and ranges of joint histograms: one for all dimensions, or one for each.
FlatArrays: TypeAlias = "tuple[AnyArray | Number, ...]"
JointBins: TypeAlias = "SupportsIndex | tuple[Bins, ...]"
JointRange: TypeAlias = "tuple[Range | None, ...] | list[Any]"
Range: TypeAlias = "tuple[Real, Real] | list[Any] | np.ndarray[Any, Any]"

Function: TypeAlias = "Callable[..., Any]"  # takes one scalar for each array
BinaryFunction: TypeAlias = "Callable[[Any, Any], Any]"
# NumPy's functions of an element are typed as those of an array.
Truth: TypeAlias = "bool | np.bool[bool] | np.ndarray[Any, np.dtype[np.bool[bool]]]"
Predicate: TypeAlias = "Callable[[Any], Truth]"
BinaryPredicate: TypeAlias = "Callable[[Any, Any], Truth]"

Side: TypeAlias = Literal["left", "right"]
TopMode: TypeAlias = Literal["largest", "smallest"]
TakeMode: TypeAlias = Literal["wrap", "clip"]
GPU: TypeAlias = Literal[
    "cuda", "cuda:0", "cuda:1", "cuda:2", "cuda:3", "cuda:4", "cuda:5", "cuda:6", "cuda:7",
    "cuda:8", "cuda:9", "cuda:10", "cuda:11", "cuda:12", "cuda:13", "cuda:14", "cuda:15",
]  # fmt: skip
Device: TypeAlias = "GPU | Literal['cpu']"
DefaultDevice: TypeAlias = "Device | Literal['auto']"

Address: TypeAlias = "SupportsInt | SupportsIndex | ctypes.c_void_p"
Resource: TypeAlias = "MemoryResource | Literal['cupy', 'torch', 'rmm'] | None"
