"""Views: frozen descriptions of arrays of any library.

A library is an object with `view(x)`, `empty(shape, dtype, device, stream)`, `stream(device)`,
`transposed(x, axes)`, `to_numpy(x)` and `from_numpy(a, like)`. Those for CuPy, torch and the
protocols are imported at their first array. If a library `has_producers`, there is one library
object per producer stream.
"""

from __future__ import annotations

import itertools
import operator
import sys
import types
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpualgo._base import dtypes, recording
from gpualgo._base.errors import OnDask, OnShards
from gpualgo._base.strides import bounds, dense_strides
from gpualgo._driver.default_device import CPU


class View(NamedTuple):
    """An array's memory. `ptr` may be 0 for host arrays: use `address_of`."""

    ptr: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in bytes
    dtype: np.dtype[Any]
    device: int  # a CUDA ordinal, or CPU
    library: Any
    readonly: bool
    owner: Any

    def without_owner(self) -> View:
        """Return the view without its owner, so that it does not keep the memory alive."""
        return self._replace(owner=None)


_make = tuple.__new__  # builds a View without its Python-level constructor

# shape, strides, dtype, device, library
Layout: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], np.dtype[Any], int, Any]
layout_of: Callable[[View], Layout] = operator.itemgetter(slice(1, 6))


def alignment_of(views: Sequence[View]) -> int:
    """Return a number that identifies addresses modulo 16 and distances below 64 bytes.

    Arrays less than 64 bytes (`records.PIECE_BYTES`) from the previous one may be fields of the
    same records.
    """
    previous = views[0].ptr
    alignment = previous & 15
    if len(views) == 1:
        return alignment
    for view in views[1:]:
        pointer = view.ptr
        distance = pointer - previous
        if not -64 < distance < 64:
            distance = 64 + (pointer & 15)
        alignment = alignment << 8 | distance + 64
        previous = pointer
    return alignment


def dense_view(pointer: int, shape: tuple[int, ...], dtype: np.dtype[Any], device: int) -> View:
    strides = dense_strides(shape, dtype.itemsize)
    return View(pointer, shape, strides, dtype, device, None, False, None)


_placeholders = itertools.count(1 << 4)  # beyond the addresses of processes


def placeholder(shape: tuple[int, ...], dtype: np.dtype[Any], device: int) -> View:
    """Return a dense view for planners, whose address is not known yet.

    Each has another one, far from the others: planners take equal addresses for one array, and
    neighbours for fields of a record.
    """
    return dense_view(next(_placeholders) << 44, shape, dtype, device)


class NumPy:
    name = "numpy"
    has_producers = False
    host_device: int | None = None  # None: arrays are processed on the default device

    @staticmethod
    def view(x: Any) -> View:
        return _make(View, (0, x.shape, x.strides, x.dtype, CPU, NumPy, not x.flags.writeable, x))

    @staticmethod
    def transposed(x: Any, axes: tuple[int, ...]) -> Any:
        return x.transpose(axes)

    @staticmethod
    def to_numpy(x: Any) -> np.ndarray[Any, Any]:
        return np.asarray(x)

    @staticmethod
    def from_numpy(a: np.ndarray[Any, Any], like: Any) -> Any:
        return a

    @staticmethod
    def scalar(a: np.ndarray[Any, Any]) -> Any:
        return a[()]


class NumPyOnCPU(NumPy):
    """NumPy for inputs that were created for the CPU."""

    host_device = CPU


_viewers: dict[type, Any] = {np.ndarray: NumPy.view}
known_viewer: Callable[[type], Any] = _viewers.get
"""Return the function that views arrays of a class; None if none of it has been seen."""


def view_of(x: Any, where: str) -> View:
    """Return the view of an array of any dtype; raise TypeError if x is no array."""
    viewer = _viewers.get(type(x))
    if viewer is None:
        with recording.suspended():  # reading a protocol attribute may compute the array
            viewer = _find_viewer(x, where)
    view: View = viewer(x)
    return view


def as_view(x: Any, where: str) -> View:
    """Return the view of x; raise TypeError unless it is an array of a supported dtype."""
    view = view_of(x, where)
    if dtypes.name_of(view.dtype) is None:
        dtypes.check(view.dtype, where)
    return view


def as_bytes_view(x: Any, where: str) -> View:
    """Return the view of an array of any dtype whose items are plain bytes."""
    view = view_of(x, where)
    check_items(view, where)
    return view


def check_items(view: View, where: str) -> None:
    if view.dtype.hasobject or not view.dtype.itemsize:
        raise TypeError(
            f"{where} has dtype {view.dtype}, whose items are not plain bytes; "
            "pass the indices numpy.arange(n) instead and take the items with the result"
        )


# Packages with a viewer module of their own, imported at their first array.
_MODULES = {"cupy": "frameworks", "torch": "frameworks", "gpualgo": "protocols"}
_CARRIERS = ("PyCapsule", "StridedMemoryView")  # of DLPack, and of cuda.core before 1.0


def _find_viewer(x: Any, where: str) -> Any:
    cls = type(x)
    masked = sys.modules.get("numpy.ma")  # not imported here: that takes longer than a first call
    if masked is not None and isinstance(x, masked.MaskedArray):
        raise TypeError(f"{where} is a masked array, whose mask would be lost; use x.filled(value)")
    package = cls.__module__.partition(".")[0]
    if package == "dask" and hasattr(x, "__dask_graph__") and cls.__name__ != "Delayed":
        raise OnDask(where)
    if cls.__name__ == "ShardedArray" and package == "gpualgo":
        raise OnShards(where)
    if package == "jax" and cls.__name__.endswith("Tracer"):
        raise TypeError(f"{where} is traced by JAX, so it has no values; call gpualgo.jax instead")
    module = _MODULES.get(package)
    viewer: Any = None
    if isinstance(x, np.ndarray):
        viewer = NumPy.view
    elif isinstance(x, (np.generic, type)):  # the protocols are attributes of classes, too
        pass
    elif module is None and hasattr(x, "__array_interface__") and not _has_protocol(x):
        viewer = _array_interface_view
    elif module is not None or _has_protocol(x) or cls.__name__ in _CARRIERS:
        viewer = import_module(f"gpualgo._arrays.{module or 'protocols'}").viewer_of(x)
    if "gpualgo._lazy.array.LazyArray" in [f"{c.__module__}.{c.__name__}" for c in cls.__mro__]:
        raise TypeError(f"{where} is a lazy array, which has no memory; pass gpualgo.copy(x)")
    if viewer is None:
        raise _not_an_array(x, where)
    _viewers[cls] = viewer
    return viewer


def _has_protocol(x: Any) -> bool:
    return hasattr(x, "__cuda_array_interface__") or hasattr(x, "__dlpack__")


def _array_interface_view(x: Any) -> View:
    if not recording.active:
        return NumPy.view(np.asarray(x))
    with recording.suspended():
        return NumPy.view(np.asarray(x))


def _not_an_array(x: Any, where: str) -> TypeError:
    if "an argument of the plan" in where:
        return TypeError(
            f"{where} must be an array, got {type(x).__name__}; a plan takes arrays alone, as "
            "`prepare` has fixed the other arguments"
        )
    is_operand = "transform: a" in where
    if isinstance(x, type) and not is_operand:
        return TypeError(f"{where} must be an array, got the class {x.__name__}; pass an array")
    if callable(x):
        order = "op comes before the arrays" if is_operand else "the array comes first"
        order = "gpualgo.sort takes a comparison as less=" if where.endswith(" values") else order
        return TypeError(f"{where} must be an array, got a function; {order}")
    name = where.rpartition(" ")[2]
    called = name if name.isidentifier() and name != "argument" else "x"
    hint = f"wrap it with numpy.asarray({called})"
    if where.endswith(" out"):
        hint = "pass an array to write to, such as numpy.empty(shape, dtype)"
    elif isinstance(x, types.GeneratorType):
        hint = "pass numpy.fromiter(x, dtype)"
    elif isinstance(x, list) and any(hasattr(item, "__dlpack__") for item in x):
        hint = "pass a tuple of arrays"
    elif isinstance(x, (bool, int, float, complex, np.generic)):
        hint += ", or repeat it by gpualgo.lazy.full(n, x)"
    elif isinstance(x, tuple):
        hint = "pass one array"
    elif x is None or isinstance(x, (str, bytes, set, frozenset, dict)):
        hint = "pass an array of numbers"
    return TypeError(f"{where} must be an array, got {type(x).__name__}; {hint}")


def is_contiguous(view: View) -> bool:
    step = view.dtype.itemsize
    for extent, stride in zip(reversed(view.shape), reversed(view.strides), strict=True):
        if extent != 1 and stride != step:
            return 0 in view.shape
        step *= extent
    return True


def strides_for(view: View, shape: tuple[int, ...]) -> tuple[int, ...]:
    if view.shape == shape:
        return view.strides
    missing = len(shape) - len(view.shape)
    fitted = tuple(
        0 if n == 1 and m != 1 else s
        for n, s, m in zip(view.shape, view.strides, shape[missing:], strict=True)
    )
    return (0,) * missing + fitted


def address_of(view: View) -> int:
    """Return the address of a view's first element; 0 without memory, as for empty tensors."""
    if view.device != CPU or view.ptr or not hasattr(view.owner, "__array_interface__"):
        return view.ptr
    return int(view.owner.__array_interface__["data"][0])


def byte_bounds(view: View) -> tuple[int, int]:
    start, shape, size = address_of(view), view.shape, view.dtype.itemsize
    if len(shape) == 1 and shape[0] and view.strides[0] > 0:  # fast path for most arrays
        return start, start + (shape[0] - 1) * view.strides[0] + size
    low, high = bounds(shape, view.strides, size)
    return start + low, start + high


def overlap(a: View, b: View) -> bool:
    """Return whether two views share a byte, or might if that is too hard to decide."""
    if a.device != b.device:
        return False
    a_low, a_high = byte_bounds(a)
    b_low, b_high = byte_bounds(b)
    if a_low >= b_high or b_low >= a_high:
        return False
    try:
        shares: Any = np.shares_memory  # its stub allows only -1 and 0 for max_work
        return bool(shares(array_of_addresses(a), array_of_addresses(b), max_work=100_000))
    except np.exceptions.TooHardError:
        return True


def has_duplicates(view: View) -> bool:
    """Return whether two elements share a byte, or might if that is too hard to decide."""
    if 0 in view.shape:
        return False
    axes = [axis for axis, extent in enumerate(view.shape) if extent > 1]
    reach = view.dtype.itemsize  # extent in bytes of the axes with shorter strides
    for axis in sorted(axes, key=lambda axis: abs(view.strides[axis])):
        stride = abs(view.strides[axis])
        if stride < reach:
            return any(_repeats(view, axes[i:]) for i in range(len(axes)))
        reach += stride * (view.shape[axis] - 1)
    return False


def _repeats(view: View, axes: list[int]) -> bool:
    """Return whether elements with different indices along the first axis share a byte."""
    extents, strides = ([sizes[axis] for axis in axes] for sizes in (view.shape, view.strides))
    pointer = address_of(view)
    first = view._replace(ptr=pointer, shape=(1, *extents[1:]), strides=tuple(strides))
    others = view._replace(
        ptr=pointer + strides[0], shape=(extents[0] - 1, *extents[1:]), strides=tuple(strides)
    )
    return overlap(first, others)


def array_of_addresses(view: View) -> np.ndarray[Any, Any]:
    """Return a view's addresses as a NumPy array that is never read."""
    return np.asarray(
        Interface(address_of(view), view.shape, view.strides, f"|V{view.dtype.itemsize}")
    )


class Interface:
    """An object with `__array_interface__`, for NumPy arrays on memory that NumPy does not own."""

    def __init__(
        self, address: int, shape: tuple[int, ...], strides: tuple[int, ...] | None,
        typestr: str = "|V1", readonly: bool = True, owner: Any = None,
    ) -> None:  # fmt: skip
        self.owner = owner  # kept alive
        self.__array_interface__ = {
            "version": 3, "data": (address, readonly), "shape": shape, "strides": strides,
            "typestr": typestr,
        }  # fmt: skip
