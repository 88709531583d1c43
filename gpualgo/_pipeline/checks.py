"""Argument checks; each raises an error with one sentence that says what to do."""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpualgo._arrays.forms import Form, form_of, parts_of
from gpualgo._arrays.view import View, as_view, has_duplicates
from gpualgo._base import dtypes, records
from gpualgo._base.errors import CompileError, shown
from gpualgo._driver.default_device import CPU
from gpualgo._operators.key import python_function
from gpualgo._operators.operator import Operator, check_dtype


def plain_axis(axis: Any, where: str, what: str = "None or an int") -> int | None:
    """Return axis as a Python int or None, so that cache keys do not mix up 1, True and 1.0."""
    if axis is None:
        return None
    try:
        return operator.index(_no_bool(axis))
    except TypeError:
        raise TypeError(f"{where}: axis must be {what}, got {shown(axis)}") from None


def plain_axes(axis: Any, where: str) -> int | tuple[int, ...] | None:
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
    """Return the axes as sorted non-negative ints; None means all axes."""
    if axis is None:
        return tuple(range(ndim))
    axis_tuple = axis if isinstance(axis, tuple) else (axis,)
    axes = [_within(index, ndim, where) for index in axis_tuple]
    if len(set(axes)) != len(axes):
        raise ValueError(f"{where}: axis {axis!r} names an axis twice; name each once")
    return tuple(sorted(axes))


def axis_of(axis: int | None, ndim: int, where: str) -> int | None:
    return None if axis is None else _within(axis, ndim, where)


def _within(index: int, ndim: int, where: str) -> int:
    if not -ndim <= index < ndim:
        raise np.exceptions.AxisError(index, ndim, where)
    return index % ndim


def _no_bool(value: Any) -> Any:
    return None if isinstance(value, (bool, np.bool_)) else value


def integer(value: Any, name: str, where: str) -> int:
    """Return the argument as an int; raise TypeError for other types."""
    try:
        return operator.index(_no_bool(value))
    except TypeError:
        raise TypeError(f"{where}: {name} must be an int, got {shown(value)}") from None


def flag_argument(value: Any, name: str, where: str) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{where}: {name} must be True or False, got {shown(value)}")
    return bool(value)


def element(view: View, name: str, where: str) -> None:
    """Raise TypeError unless kernels support elements of this dtype."""
    if dtypes.name_of(view.dtype) is None and not records.is_position(view.dtype):
        dtypes.check(view.dtype, f"{where}: {name}")


def accumulator(view: View, init: Any, dtype: Any, where: str) -> np.dtype[Any]:
    """Return the accumulator's dtype: dtype=, else that of a NumPy init, else that of x."""
    if dtype is not None:
        acc = dtypes.as_dtype(dtype, where)
    elif init is None or type(init) in _WEAK_RANK:
        acc = view.dtype
    else:
        if not isinstance(init, (np.generic, np.ndarray)):
            init_value(init, np.dtype(np.float64), where)  # raises
        acc = dtypes.check(init.dtype, f"{where}: init")
    if not dtypes.can_cast(view.dtype, acc):
        raise TypeError(
            f"{where}: x of dtype {view.dtype} does not fit the accumulator {acc}, the dtype of "
            f"dtype= or init; pass dtype=np.{view.dtype} or such an init, or convert x first"
        )
    return acc


def dtype_of(init: Any) -> Any:
    """Return the dtype of a NumPy init, or the type of any other object (checked later)."""
    return init.dtype if isinstance(init, (np.generic, np.ndarray)) else type(init)


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
        no_function(init, where, what)
        raise TypeError(
            f"{where}: {what} must be a Python or NumPy scalar, got {type(init).__name__}; "
            "pass a number, or an array with one for each result"
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


def no_function(init: Any, where: str, what: str) -> None:
    is_function = isinstance(init, Operator) or (callable(init) and not isinstance(init, type))
    if is_function and what == "init":
        raise TypeError(f"{where}: init is a function; pass the operator as op=, after init")


def start_of(init: Any, like: View, where: str) -> Any:
    """Return init, as a view if it is a device array."""
    if type(init) in _WEAK_RANK or isinstance(init, (np.generic, np.ndarray)):
        return init
    return device_init(init, like, where)


def device_init(init: Any, like: View, where: str) -> View:
    """Return the view of a device array that is passed as init; it must be on the device of x."""
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
    name: str = "out", viewer: Any = as_view, is_upper_bound: bool = False,
) -> View:  # fmt: skip
    """Return the checked view of out=; with `is_upper_bound` its length may be another."""
    view: View = out if type(out) is View else viewer(out, f"{where}: {name}")
    if view.device != like.device:
        raise TypeError(
            f"{where}: {name} is {_describe(view)} but the input is {_describe(like)}; "
            "make it on the input's device"
        )
    if name == "out_count" and view.shape == (1,):
        view = view._replace(shape=(), strides=())
    if view.shape != shape and not (is_upper_bound and len(view.shape) == 1):
        expected = "one dimension" if is_upper_bound else str(shape)
        raise ValueError(f"{where}: {name} has shape {view.shape}, the result has {expected}")
    if view.dtype != dtype:
        raise TypeError(f"{where}: {name} has dtype {view.dtype}, the result has {dtype}")
    if view.readonly:
        raise ValueError(f"{where}: {name} is read-only; pass a writable array")
    if has_duplicates(view):
        raise ValueError(
            f"{where}: {name} has elements that share memory; pass an array whose "
            "elements do not overlap"
        )
    return view


def mask(marks: Any, shape: tuple[int, ...], where: str) -> None:
    """Raise an error unless an array marks each element of a shape by a bool."""
    dtype = getattr(marks, "dtype", None)
    if dtype != np.bool_:
        found = "no array" if dtype is None else f"an array of {records.shown(dtype)}"
        raise TypeError(
            f"{where}: predicate is {found}, but must be bool; pass a mask such as predicate != 0; "
            "gpualgo.lazy.take takes positions"
        )
    if marks.shape != shape:
        found = f"predicate has shape {marks.shape} and x {shape}"
        raise ValueError(f"{where}: {found}; pass a bool for each element")


def aligned(view: View, name: str, where: str) -> None:
    """Raise ValueError unless each item starts at a multiple of its size."""
    itemsize = 0 if 0 in view.shape else records.step_of(view.dtype)
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
    """Raise ValueError if an array has more than `MAX_DIMS` dimensions."""
    if len(view.shape) > MAX_DIMS:
        raise ValueError(
            f"{where}: {name} has {len(view.shape)} dimensions, at most {MAX_DIMS} are possible; "
            "reshape it to fewer"
        )


MAX_DIMS = 32


def same_place(views: list[View], where: str) -> None:
    """Raise unless all arrays are on one device; their libraries may differ."""
    first = views[0]
    for view in views[1:]:
        if (view.device == CPU) != (first.device == CPU):
            raise TypeError(
                f"{where}: the arrays mix {_describe(first)} and {_describe(view)}; "
                "move all of them to the host or to one GPU first"
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
    device = "the CPU" if view.device == CPU else f"cuda:{view.device}"
    return f"{getattr(view.library, 'name', 'array')} on {device}"


# --- Adds the called function and the operator's source line to error messages.


def name(error: Exception, op: Any, where: str, argument: str = "op") -> None:
    """Prefix an error about op with the called function, and append the operator's source line.

    `argument`: the parameter name of the operator. Errors that already have the prefix stay
    unchanged.
    """
    text = str(error)
    if text.startswith(f"{where}: eq "):
        return
    if not isinstance(error, CompileError) and not text.startswith(("op ", "op:", f"{where}: op ")):
        return
    text = text.removeprefix(f"{where}: ")
    if text.startswith(("op ", "op:")):
        text = argument + text[2:]
    text = f"{where}: {text}"
    function = python_function(getattr(op, "shown", op))
    if function is not None:
        from gpualgo._operators.numpy_rules.errors import source_of

        code = function.__code__
        if f"{code.co_filename}:{code.co_firstlineno}" not in text:
            text = f"{text}: {source_of(function)}"
    error.args = (text,)


@contextlib.contextmanager
def renamed_errors(where: str, part: str, names: dict[str, str] | None = None) -> Iterator[None]:
    """Rewrite errors of a helper algorithm `part` so that they name the public function `where`.

    `names`: maps the helper's argument names to the public function's.
    """
    try:
        yield
    except (TypeError, ValueError, RuntimeError) as error:
        text = str(error)
        if text.startswith(f"{part}: "):
            text = text.removeprefix(f"{part}: ")
            for own, other in (names or {}).items():
                if text.startswith(own):
                    text = f"{other}{text.removeprefix(own)}"
                    break
            error.args = (f"{where}: {text}",)
        raise


# --- Checks of dtype=, init and identities for elements that are tuples, field by field.

Dtype = np.dtype[Any]


def element_of(views: Sequence[View], form: Form | None) -> Dtype:
    """Return the dtype of one element of arrays that form tuples."""
    if form is None:
        return views[0].dtype
    return records.record(form.names, [view.dtype for view in views])


def element_accumulator(
    views: Sequence[View], form: Form | None, init: Any, dtype: Any, where: str
) -> Dtype:
    """Return the accumulator's dtype; each field follows `checks.accumulator`."""
    if form is None:
        return accumulator(views[0], init, dtype, where)
    dtypes_given = dtypes_of(dtype, form.names, where)
    inits = (None,) * len(views) if init is None else numbers_of(init, form.names, where, "init")
    field_dtypes = [
        accumulator(view, field_init, field_dtype, where)
        for view, field_init, field_dtype in zip(views, inits, dtypes_given, strict=True)
    ]
    return records.record(form.names, field_dtypes)


def check_operator(op: Operator, dtype: Dtype, where: str) -> None:
    """Raise TypeError if a recognised operator is not defined on elements of a dtype."""
    if dtype.names is None:
        check_dtype(op, dtype, where)
    elif op.name is not None:
        raise TypeError(
            f"{where}: op {op.name} takes numbers, and x has elements {records.shown(dtype)}; "
            "pass a function of tuples such as lambda a, b: (a[0] + b[0], max(a[1], b[1]))"
        )


def dtypes_of(dtype: Any, names: Sequence[str], where: str) -> tuple[Any, ...]:
    """Return each field's dtype from dtype=: one for all, or a tuple structured like an element."""
    if isinstance(dtype, np.dtype) and dtype.names is not None:
        if len(dtype.names) != len(names):
            raise TypeError(
                f"{where}: out (or dtype) has tuples of {len(dtype.names)}, but elements are "
                f"tuples of {len(names)}; pass as many"
            )
        return tuple(dtype[name] for name in dtype.names)
    if not isinstance(dtype, tuple):
        return (dtype,) * len(names)
    return numbers_of(dtype, names, where, "dtype")


def numbers_of(value: Any, names: Sequence[str], where: str, what: str) -> tuple[Any, ...]:
    """Return the scalars of a nested tuple that has the structure of an element, flattened."""
    numbers = parts_of(value, form_of(names))
    if numbers is not None:
        return tuple(numbers)
    no_function(value, where, what)
    shown = repr(value) if isinstance(value, tuple) else type(value).__name__
    raise TypeError(
        f"{where}: {what} must be a tuple like the elements, with "
        f"{', '.join(f'{what}[{name}]' for name in names)}; got {shown}"
    )


def encoded(value: Any, acc: Dtype, where: str, what: str = "init") -> np.ndarray[Any, Any]:
    """Return an init or identity as a 0-d array of dtype acc."""
    if acc.names is None:
        return init_value(value, acc, where, what)
    record = np.zeros((), acc)
    numbers = numbers_of(value, acc.names, where, what)
    for name, number in zip(acc.names, numbers, strict=True):
        record[name] = init_value(number, acc[name], where, what)
    return record


def kinds_of(init: Any) -> Any:
    """Return what init contributes to the accumulator: dtypes of NumPy scalars, types of others."""
    if isinstance(init, tuple):
        return (type(init), *map(kinds_of, init))
    return dtype_of(init)


def classes_of(dtype: Any) -> Any:
    """Return the tuple classes in dtype=: tuples that compare equal may have different fields."""
    return (type(dtype), *map(classes_of, dtype)) if isinstance(dtype, tuple) else None


class RowInit(NamedTuple):
    """Per-row initial values: the structure and dtypes of the arrays, which are the last inputs."""

    form: Form | None
    dtypes: tuple[Dtype, ...]

    @property
    def num_arrays(self) -> int:
        return len(self.dtypes)


def requested_dtype(found: Dtype, dtype: Any, where: str) -> Dtype:
    """Return the dtype that dtype= requests for results of op; `found` is the dtype op returns."""
    if found.names is None:
        raise TypeError(
            f"{where}: out (or dtype) is a tuple, but op returns a number; pass a single one"
        )
    pairs = zip(dtypes_of(dtype, found.names, where), records.field_dtypes(found), strict=True)
    result: Dtype = records.with_fields(
        found,
        [actual if wanted is None else dtypes.as_dtype(wanted, where) for wanted, actual in pairs],
    )
    return result


# --- Values of arrays: of host arrays always, of device arrays if GPUALGO_CHECK=1.


def device_values(
    view: View, where: str, stream: Any, why: str = "GPUALGO_CHECK is set, so values are checked"
) -> np.ndarray[Any, Any]:
    """Return the values of a device array after waiting for its stream."""
    from gpualgo._arrays import ordering
    from gpualgo._driver import staging

    handle = ordering.handle_for(stream, view, where, (view.library.stream(view.device),))
    return staging.values(
        view.ptr, view.shape, view.strides, view.dtype, view.device, handle, f"{where}: {why}"
    )


def values_on_host(array: Any, where: str, stream: Any) -> np.ndarray[Any, Any]:
    """Return an array's values as a NumPy array; `device_values` of a device array."""
    view = as_view(array, where)
    return np.asarray(array) if view.device == CPU else device_values(view, where, stream)
