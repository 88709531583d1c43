"""One-line checks of arguments, each with one sentence that says what to do."""

from __future__ import annotations

import math
import operator
from types import FunctionType
from typing import Any

import numpy as np

from gpualgo._arrays.view import View, as_view, has_duplicates
from gpualgo._base import dtypes, records
from gpualgo._base.errors import shown
from gpualgo._driver.default_device import CPU


def plain_axis(axis: Any, where: str, what: str = "None or an int") -> int | None:
    """Return axis as a Python int or None, so that a key tells it from all that is no axis."""
    if axis is None:
        return None
    try:
        return operator.index(_no_bool(axis))
    except TypeError:
        raise TypeError(f"{where}: axis must be {what}, got {shown(axis)}") from None


def plain_axes(axis: Any, where: str) -> int | tuple[int, ...] | None:
    """Return axis as Python ints, as `plain_axis` does."""
    what = "None, an int or a tuple of ints"
    if not isinstance(axis, tuple):
        return plain_axis(axis, where, what)
    if None in axis:
        raise TypeError(f"{where}: axis must be {what}, got {shown(axis)}")
    try:
        return tuple(operator.index(_no_bool(i)) for i in axis)
    except TypeError:
        raise TypeError(f"{where}: axis must be {what}, got {shown(axis)}") from None


def axes_of(axis: int | tuple[int, ...] | None, ndim: int, where: str) -> tuple[int, ...]:
    """Return plain axes as sorted non-negative ones; None means all."""
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, tuple) else (axis,)
    axes = [_within(index, ndim, where) for index in given]
    if len(set(axes)) != len(axes):
        raise ValueError(f"{where}: axis {axis!r} names an axis twice; name each once")
    return tuple(sorted(axes))


def axis_of(axis: int | None, ndim: int, where: str) -> int | None:
    """Return a plain axis as a non-negative one, or None if it is None."""
    return None if axis is None else _within(axis, ndim, where)


def _within(index: int, ndim: int, where: str) -> int:
    if not -ndim <= index < ndim:
        raise np.exceptions.AxisError(index, ndim, where)
    return index % ndim


def _no_bool(value: Any) -> Any:
    return None if isinstance(value, (bool, np.bool_)) else value


def integer(value: Any, name: str, where: str) -> int:
    """Return an argument that is an int."""
    try:
        return operator.index(_no_bool(value))
    except TypeError:
        raise TypeError(f"{where}: {name} must be an int, got {shown(value)}") from None


def flag(value: Any, name: str, where: str) -> bool:
    """Return an argument that says yes or no."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{where}: {name} must be True or False, got {shown(value)}")
    return bool(value)


def element(view: View, name: str, where: str) -> None:
    """Raise TypeError unless kernels hold elements of this dtype."""
    if dtypes.name_of(view.dtype) is None and not records.is_position(view.dtype):
        dtypes.check(view.dtype, f"{where}: {name}")


def accumulator(view: View, init: Any, dtype: Any, where: str) -> np.dtype[Any]:
    """Return the dtype that is accumulated in: dtype=, else a NumPy init's, else x's."""
    if dtype is not None:
        acc = dtypes.as_dtype(dtype, where)
    elif init is None or type(init) in _WEAK_RANK:
        acc = view.dtype
    else:
        acc = init_value_dtype(init, where)
    if not dtypes.can_cast(view.dtype, acc):
        raise TypeError(
            f"{where}: x of dtype {view.dtype} does not fit the accumulator {acc}; "
            f"pass dtype=np.{view.dtype} or convert x first"
        )
    return acc


def dtype_of(init: Any) -> Any:
    """Return a NumPy init's dtype; any other object is named by its type, and refused later."""
    return init.dtype if isinstance(init, (np.generic, np.ndarray)) else type(init)


def init_value_dtype(init: Any, where: str) -> np.dtype[Any]:
    """Return the supported dtype of a NumPy init; refuse any other object."""
    if not isinstance(init, (np.generic, np.ndarray)):
        init_value(init, np.dtype(np.float64), where)
    return dtypes.check(init.dtype, f"{where}: init")


_WEAK_RANK = {bool: 0, int: 1, float: 2, complex: 3}
_KIND_RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def init_value(
    init: Any, acc: np.dtype[Any], where: str, what: str = "init"
) -> np.ndarray[Any, Any]:
    """Return init (or an operator's identity) as a 0-d array of dtype acc."""
    if type(init) in _WEAK_RANK:
        if _WEAK_RANK[type(init)] > _KIND_RANK[dtypes.kind(acc)]:
            raise TypeError(
                f"{where}: {what} {init!r} does not fit dtype {acc}; "
                f"pass dtype=np.{np.asarray(init).dtype} or another {what}"
            )
        if type(init) is int and acc.kind in "iu":
            limits = np.iinfo(acc)
            if not limits.min <= init <= limits.max:
                raise ValueError(
                    f"{where}: {what} {init} is out of range for dtype {acc}; pass a wider dtype="
                )
        return _converted(init, acc, where, what)
    if not isinstance(init, (np.generic, np.ndarray)):
        if isinstance(init, FunctionType):
            raise TypeError(f"{where}: {what} is a function; pass the operator as op=, after init")
        raise TypeError(
            f"{where}: {what} must be a Python or NumPy scalar, got {type(init).__name__}; "
            "pass a number"
        )
    value = np.asarray(init)
    dtypes.check(value.dtype, f"{where}: {what}")
    if value.size != 1:
        raise ValueError(f"{where}: {what} must be one value, got shape {value.shape}; pass one")
    if not dtypes.can_cast(value.dtype, acc):
        raise TypeError(
            f"{where}: {what} of dtype {value.dtype} does not fit {acc}; convert it first"
        )
    return value.reshape(()).astype(acc)


def start_of(init: Any, like: View, where: str) -> Any:
    """Return init, as a view if it is an array on a GPU."""
    if type(init) in _WEAK_RANK or isinstance(init, (np.generic, np.ndarray)):
        return init
    return device_init(init, like, where)


def device_init(init: Any, like: View, where: str) -> View:
    """Return the view of an init that is an array beside x on a GPU; refuse any other object."""
    if not (hasattr(init, "__cuda_array_interface__") or hasattr(init, "__dlpack__")):
        init_value(init, np.dtype(np.float64), where)
    view = as_view(init, f"{where}: init")
    if view.device == CPU or view.device != like.device:
        raise TypeError(
            f"{where}: init is {_describe(view)} but x is {_describe(like)}; "
            "pass a Python or NumPy scalar"
        )
    if math.prod(view.shape) != 1:
        raise ValueError(f"{where}: init must be one value, got shape {view.shape}; pass one")
    aligned(view, "init", where)
    return view


def _converted(init: Any, acc: np.dtype[Any], where: str, what: str) -> np.ndarray[Any, Any]:
    """Return a Python scalar in dtype acc, unless it is finite and would become an infinity."""
    try:
        with np.errstate(over="raise"):
            value: np.ndarray[Any, Any] = np.array(init).astype(acc)
            return value
    except (OverflowError, FloatingPointError, TypeError):
        raise ValueError(
            f"{where}: {what} {init!r} is out of range for dtype {acc}; pass a wider dtype="
        ) from None


def output(
    out: Any, like: View, shape: tuple[int, ...], dtype: np.dtype[Any], where: str,
    name: str = "out", viewer: Any = as_view, is_bound: bool = False,
) -> View:  # fmt: skip
    """Return the view of out= once it fits the result; is_bound: one that may be shorter."""
    view: View = out if type(out) is View else viewer(out, f"{where}: {name}")
    if view.device != like.device:
        raise TypeError(
            f"{where}: {name} is {_describe(view)} but the input is {_describe(like)}; "
            "make it on the input's device"
        )
    if name == "out_count" and view.shape == (1,):
        view = view._replace(shape=(), strides=())
    if view.shape != shape and not (is_bound and len(view.shape) == 1):
        wanted = "one dimension" if is_bound else str(shape)
        raise ValueError(f"{where}: {name} has shape {view.shape}, the result has {wanted}")
    if view.dtype != dtype:
        raise TypeError(f"{where}: {name} has dtype {view.dtype}, the result has {dtype}")
    if view.readonly:
        raise ValueError(f"{where}: {name} is read-only; pass a writable array")
    if has_duplicates(view):
        raise ValueError(f"{where}: {name} has elements that share memory; pass a plain array")
    return view


def aligned(view: View, name: str, where: str) -> None:
    """Raise ValueError unless each item starts at a multiple of its size."""
    itemsize = records.step_of(view.dtype)
    if itemsize and view.ptr % itemsize:
        raise ValueError(
            f"{where}: {name} starts at address {view.ptr:#x}, which is not a multiple of its item "
            f"size {itemsize}; copy it to aligned memory"
        )
    for extent, stride in zip(view.shape, view.strides, strict=True):
        if itemsize and extent > 1 and stride % itemsize:
            raise ValueError(
                f"{where}: {name} has a stride of {stride} bytes, which is not a multiple of its "
                f"item size {itemsize}; copy it to aligned memory"
            )


def dimensions(view: View, name: str, where: str) -> None:
    """Raise ValueError for more dimensions than all libraries hold alike."""
    if len(view.shape) > MAX_DIMS:
        raise ValueError(
            f"{where}: {name} has {len(view.shape)} dimensions, at most {MAX_DIMS} are possible; "
            "reshape it to fewer"
        )


MAX_DIMS = 32


def same_place(views: list[View], where: str) -> None:
    """Raise unless all arrays live on one device, of whichever libraries they are."""
    first = views[0]
    for view in views[1:]:
        if (view.device == CPU) != (first.device == CPU):
            raise TypeError(
                f"{where}: the arrays mix {_describe(first)} and {_describe(view)}; "
                "move them to one side first"
            )
        if view.device != first.device:
            raise ValueError(
                f"{where}: the arrays are on {_describe(first)} and {_describe(view)}; "
                "copy them to one device first"
            )


def no_stream(stream: Any, where: str) -> None:
    if stream is not None:
        raise ValueError(f"{where}: stream= needs a GPU, but these arrays are processed on the CPU")


def _describe(view: View) -> str:
    place = "the CPU" if view.device == CPU else f"cuda:{view.device}"
    return f"{getattr(view.library, 'name', 'array')} on {place}"
