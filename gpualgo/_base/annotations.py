"""What public arguments and results are, for type checkers: nothing imports it at run time.

What is an array, a stream or an operator is told by what it has, as the functions themselves do, so
that no library has to be installed for its arrays to be known.
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

    # Results of these are of their own type, which says nothing of the dtype.
    Same = TypeVar("Same", bound="Tensor | DeviceArray")
    Kind = TypeVar("Kind", bound=np.dtype[Any])
    ValueKind = TypeVar("ValueKind", bound=np.dtype[Any])


class HostArray(Protocol):
    """NumPy's arrays, and what has their interface: NumPy's arrays come back."""

    @property
    def __array_interface__(self) -> Any: ...


class CudaArray(Protocol):
    """Memory on a GPU; a property here, though a library's stub may call it a method."""

    @property
    def __cuda_array_interface__(self) -> Any: ...


class DLPackArray(Protocol):
    """A producer of DLPack capsules."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __dlpack_device__(self) -> Any: ...


class Tensor(DLPackArray, Protocol):
    """A tensor of PyTorch."""

    requires_grad: Any

    def data_ptr(self) -> int: ...


class DeviceArray(CudaArray, DLPackArray, Protocol):
    """`gpualgo.DeviceArray`."""

    ptr: int

    def copy_to_host(self) -> np.ndarray[Any, Any]: ...


class HashableHost(HostArray, Protocol):
    """Another array than NumPy's, which alone of all these has no hash."""

    def __hash__(self) -> int: ...


class HashableProducer(DLPackArray, Protocol):
    """A producer of DLPack capsules other than NumPy's arrays."""

    def __hash__(self) -> int: ...


class UnhashableProducer(DLPackArray, Protocol):
    """The rest, NumPy's arrays among them, apart from PyTorch's."""

    __hash__: ClassVar[None]  # type: ignore[assignment]


class Lazy(Protocol):
    """A lazy array of `gpualgo.lazy`."""

    @property
    def leaves(self) -> tuple[Any, ...]: ...
    @property
    def function(self) -> Any: ...


AnyArray: TypeAlias = "HostArray | CudaArray | DLPackArray | CapsuleType | Lazy"
# Arrays as elements' numbers, and a number beside them; in a tuple within it, too.
Arrays: TypeAlias = "tuple[AnyArray | Number | tuple[AnyArray | Number, ...], ...]"
Argument: TypeAlias = "AnyArray | Number | Arrays"
NumPyArray: TypeAlias = "np.ndarray[Any, Any]"
# One overload alone may fit NumPy's arrays: where two do and the array's type holds Any, as the
# shape of an NDArray is, mypy takes the result for Any.
Foreign: TypeAlias = "CudaArray | CapsuleType | HashableProducer | Lazy"
Host: TypeAlias = "HostArray | UnhashableProducer"


class CudaStream(Protocol):
    """The protocol of streams: `__cuda_stream__`, a method or its value."""

    @property
    def __cuda_stream__(self) -> Any: ...


class TorchStream(Protocol):
    """PyTorch's streams before they had the protocol."""

    @property
    def cuda_stream(self) -> Any: ...


class CupyStream(Protocol):
    """CuPy's streams before they had the protocol."""

    @property
    def ptr(self) -> Any: ...
    def synchronize(self) -> Any: ...


class NumbaStream(Protocol):
    """numba's streams."""

    @property
    def handle(self) -> Any: ...
    def synchronize(self) -> Any: ...


Stream: TypeAlias = (
    "SupportsIndex | ctypes.c_void_p | CudaStream | TorchStream | CupyStream | NumbaStream"
)


class TorchDType(Protocol):
    """`torch.float32` and its like."""

    @property
    def is_floating_point(self) -> bool: ...
    @property
    def is_complex(self) -> bool: ...


class MemoryResource(Protocol):
    """A MemoryResource of cuda.core."""

    @property
    def device_id(self) -> int: ...
    @property
    def is_device_accessible(self) -> bool: ...
    @property
    def allocate(self) -> Callable[..., Any]: ...
    @property
    def deallocate(self) -> Callable[..., Any]: ...


DType: TypeAlias = "str | type[Any] | np.dtype[Any] | TorchDType"  # one that kernels know
AnyDType: TypeAlias = "npt.DTypeLike"  # records, too

# One for all numbers of an element, or as the element is.
DTypeTuple: TypeAlias = "tuple[DType | tuple[DType, ...], ...]"
DTypes: TypeAlias = "DType | DTypeTuple"

Axis: TypeAlias = "SupportsIndex | None"
Axes: TypeAlias = "SupportsIndex | tuple[SupportsIndex, ...] | None"
Shape: TypeAlias = "SupportsIndex | Sequence[SupportsIndex]"

Number: TypeAlias = "complex | np.generic"
Scalar: TypeAlias = "complex | np.generic | np.ndarray[Any, Any]"  # an array of one element
FirstValue: TypeAlias = "Scalar | AnyArray"  # on a GPU, too, or one for each row
# A tuple as the elements are; of a structured array a structured scalar, too.
FirstValues: TypeAlias = "Scalar | tuple[FirstValue | tuple[FirstValue, ...], ...]"
OutTuple: TypeAlias = "tuple[AnyArray | tuple[AnyArray, ...], ...]"
Outs: TypeAlias = "AnyArray | OutTuple"
# Of keys and of values.
OutPair: TypeAlias = "tuple[Outs, Outs]"
Ways: TypeAlias = "bool | tuple[bool | tuple[bool, ...], ...]"  # for each number of an element
Real: TypeAlias = "float | np.number[Any] | np.ndarray[Any, Any]"
Bins: TypeAlias = "SupportsIndex | Sequence[float | np.number[Any]] | AnyArray"
# Of tuples of arrays: the same for each dimension, or one for each.
FlatArrays: TypeAlias = "tuple[AnyArray | Number, ...]"
JointBins: TypeAlias = "SupportsIndex | tuple[Bins, ...]"
JointRange: TypeAlias = "tuple[Range | None, ...] | list[Any]"
Range: TypeAlias = "tuple[Real, Real] | list[Any] | np.ndarray[Any, Any]"

Function: TypeAlias = "Callable[..., Any]"  # of as many scalars as there are arrays
BinaryFunction: TypeAlias = "Callable[[Any, Any], Any]"

Address: TypeAlias = "SupportsInt | SupportsIndex | ctypes.c_void_p"
Resource: TypeAlias = "MemoryResource | Literal['cupy', 'torch', 'rmm'] | None"
