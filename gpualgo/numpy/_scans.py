"""Cumulative functions and differences."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpualgo import copy, transform
from gpualgo._base import dtypes
from gpualgo._lazy import is_lazy
from gpualgo._lazy.combining import applied
from gpualgo._lazy.expression_cache import ExpressionCache
from gpualgo.lazy import asarray as lazy_of
from gpualgo.lazy import full, reductions
from gpualgo.numpy import _call, _loops
from gpualgo.numpy._call import BOOL, UNSET, NotTaken, array_of, flattened, is_host, numpy_function
from gpualgo.numpy._folds import accumulated, nan_replaced, reduced

# --- Cumulative sums and products: one scan each.

_PASSES = "One scan; 16-bit floats: one conversion after it"


_SKIPPING = {"passes": "One scan that skips NaN while reading; on the CPU one transform before it"}


@numpy_function(
    _PASSES,
    ("cumsum", np.add, None,
     "Return the cumulative sums along an axis, or of all elements in C order.",
     "gnp.cumsum([1, 2, 3])", "array([1, 3, 6])"),
    ("cumprod", np.multiply, None,
     "Return the cumulative products along an axis, or of all elements in C order.",
     "gnp.cumprod([1, 2, 3, 4])", "array([ 1,  2,  6, 24])"),
    ("nancumsum", np.add, 0, "Return the cumulative sums; NaN counts as zero.",
     'gnp.nancumsum([1.0, float("nan"), 3.0])', "array([1., 1., 4.])", _SKIPPING),
    ("nancumprod", np.multiply, 1, "Return the cumulative products; NaN counts as one.",
     'gnp.nancumprod([2.0, float("nan"), 3.0])', "array([2., 2., 6.])", _SKIPPING),
    orders=True,
)  # fmt: skip
def _cumulative(
    name: str, ufunc: np.ufunc, nan: Any, a: Any, axis: Any = None, dtype: Any = None,
    out: Any = None,
) -> Any:  # fmt: skip
    """Return a cumulative sum or product, which counts NaN as `nan` unless this is None."""
    a = nan_replaced(a if a.ndim else flattened(a), nan, name)
    return accumulated(ufunc, a, axis, dtype, out, name)


@numpy_function(
    _PASSES,
    ("cumulative_sum", np.add,
     "Return the cumulative sums along an axis; ``include_initial=True`` puts a zero first.",
     "gnp.cumulative_sum([1, 2, 3], include_initial=True)", "array([0, 1, 3, 6])"),
    ("cumulative_prod", np.multiply,
     "Return the cumulative products along an axis; ``include_initial=True`` puts a one first.",
     "gnp.cumulative_prod([1, 2, 3], include_initial=True)", "array([1, 1, 2, 6])"),
    orders=True,
)  # fmt: skip
def _with_initial(
    name: str, ufunc: np.ufunc, x: Any, /, *, axis: Any = None, dtype: Any = None,
    out: Any = None, include_initial: bool = False,
) -> Any:  # fmt: skip
    """Return a cumulative function of the array API, which may begin with the identity."""
    if axis is None:
        if x.ndim > 1:
            raise ValueError(f"{name}: an array of {x.ndim} axes needs axis=")
        axis = 0
    axis = axis[0] if type(axis) is tuple and len(axis) == 1 else axis
    x = x if x.ndim else flattened(x)
    if not include_initial:
        return accumulated(ufunc, x, axis, dtype, out, name)
    index = _call.axis_of(axis, x.ndim, name)
    shape = (*x.shape[:index], x.shape[index] + 1, *x.shape[index + 1 :])
    out = _call.out_of(out, name)
    if out is None:
        own = _call.dtype_of(x, name)
        kind = reductions.sum_dtype(own) if dtype is None else dtypes.as_dtype(dtype, name)
        out = _call.new(x, shape, kind)
    _call.check_shape(out, tuple(shape), name)
    accumulated(ufunc, x, index, dtype, _slice(out, index, 1, None), name)
    _call.fill(_slice(out, index, 0, 1), ufunc.identity)
    return out


# --- Functions of neighbouring elements: differences of any order, areas under curves.

_FEW_NUMBERS = 16  # a separate kernel writes each
_MAX_ORDER = 4  # highest order computed in one pass: each order reads one more array


def _second(a: Any, b: Any, c: Any) -> Any:
    return (c - b) - (b - a)


def _third(a: Any, b: Any, c: Any, d: Any) -> Any:
    return _second(b, c, d) - _second(a, b, c)


def _fourth(a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
    return _third(b, c, d, e) - _third(a, b, c, d)


_BY_ORDER: dict[int, Callable[..., Any]] = {2: _second, 3: _third, 4: _fourth}


def _slice(x: Any, axis: int, begin: int, end: int | None) -> Any:
    return x[(*(slice(None),) * axis, slice(begin, end))]


def _differences(x: Any, order: int, axis: int, out: Any = None) -> Any:
    """Return differences of an order up to _MAX_ORDER in one pass; lazy for lazy arrays."""
    length = max(x.shape[axis] - order, 0)
    begins = [min(i, x.shape[axis]) for i in range(order + 1)]
    parts = [_slice(x, axis, begin, begin + length) for begin in begins]
    if order == 1:
        return _difference(parts[0], parts[1], out)
    if is_lazy(x) and out is None:
        return applied(_BY_ORDER[order], parts, "diff")
    return transform(_BY_ORDER[order], *parts, out=out)


def _difference(left: Any, right: Any, out: Any) -> Any:
    """Return right - left in one pass; host arrays: NumPy's loop."""
    op = np.not_equal if _call.dtype_of(right, "diff") == BOOL else np.subtract
    if is_lazy(right) and out is None:
        return applied(op, (right, left), "diff")
    is_on_host = type(left) is type(right) is np.ndarray and (out is None or is_host(out))
    if is_on_host and _call.is_few(right.size, _call.ALL):
        return _loops.run(op, (right, left), 2 * right.size, (out,))
    return transform(op, right, left, out=out)


def _diff(x: Any, n: int, axis: int) -> Any:
    most = 1 if _call.dtype_of(x, "diff") == BOOL else _MAX_ORDER
    while n:
        order = min(n, most)
        x, n = _differences(x, order, axis), n - order
    return x


@numpy_function("One transform for `n` up to 4, one more for each further 4", arrays=0)
def diff(a: Any, n: Any = 1, axis: Any = -1, prepend: Any = UNSET, append: Any = UNSET) -> Any:
    """Return the n-th differences of neighbouring elements along an axis.

    >>> gnp.diff([1, 2, 4, 7, 0])
    array([ 1,  2,  3, -7])
    >>> gnp.diff([1, 2, 4, 7, 0], n=2)
    array([  1,   1, -10])
    """
    n = operator.index(n)
    if not n:
        return a
    if n < 0:
        raise ValueError(f"diff: n must not be negative, got {n}")
    x = array_of(a, "diff: a")
    if is_host(x) and _call.is_few(x.size, _call.FEW_FOR_ONE_PASS):
        return np.diff(x, n, axis, prepend, append)
    if not x.ndim:
        raise ValueError("diff: a needs one axis at least")
    axis = _call.axis_of(axis, x.ndim, "diff")
    if prepend is UNSET and append is UNSET:
        return _diff(x, n, axis)
    parts = [_part(prepend, x, axis, "prepend"), x, _part(append, x, axis, "append")]
    operands = [part for part in parts if part is not None]
    kind = np.result_type(*[_call.dtype_of(part, "diff") for part in operands])
    operands = [part for part in operands if part.shape[axis]] or [x]
    return _diff(_concatenated_differences(operands, x, kind, axis), n - 1, axis)


def _part(x: Any, a: Any, axis: int, name: str) -> Any:
    """Return elements to prepend or append, in a's shape except along the axis."""
    if x is UNSET:
        return None
    part = array_of(x, f"diff: {name}")
    if not part.ndim:
        shape = (*a.shape[:axis], 1, *a.shape[axis + 1 :])
        if type(part) is type(a) is np.ndarray:
            return np.broadcast_to(part, shape)
        if type(part) is np.ndarray:  # a number for a GPU array
            return full(shape, part[()])
        return lazy_of(part).broadcast_to(tuple(shape))
    fits = part.ndim == a.ndim and all(
        i == axis or m == n for i, (m, n) in enumerate(zip(part.shape, a.shape, strict=True))
    )
    if not fits:
        raise ValueError(f"diff: {name} has shape {tuple(part.shape)}, a has {tuple(a.shape)}")
    return part


def _concatenated_differences(parts: Sequence[Any], like: Any, kind: Any, axis: int) -> Any:
    """Return differences across concatenated arrays, without concatenating them."""
    length = max(0, sum(x.shape[axis] for x in parts) - 1)
    shape = (*parts[0].shape[:axis], length, *parts[0].shape[axis + 1 :])
    result = _call.new(like, tuple(shape), kind)
    start, previous = 0, None
    for part in parts:
        x = _call.cast(part, kind, "diff")
        if previous is not None:
            _difference(previous, _slice(x, axis, 0, 1), _slice(result, axis, start, start + 1))
            start += 1
        count = x.shape[axis] - 1
        if count > 0:
            _differences(x, 1, axis, _slice(result, axis, start, start + count))
        start += count
        previous = _slice(x, axis, count, count + 1)
    return result


@numpy_function("One transform", few=_call.FEW_FOR_ONE_PASS)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Return the differences of neighbouring elements in C order, with optional ends.

    >>> gnp.ediff1d([1, 2, 4], to_begin=-9)
    array([-9,  1,  2])
    """
    x = flattened(ary)
    kind = _call.dtype_of(x, "ediff1d")
    if kind == BOOL:
        raise TypeError("ediff1d: bool has no difference; use diff")
    begin, end = (
        _extra(one, kind, name) for one, name in ((to_begin, "to_begin"), (to_end, "to_end"))
    )
    if to_begin is None and to_end is None:
        differences = _differences(x, 1, 0)
        return copy(differences) if is_lazy(x) and not is_lazy(ary) else differences
    count, first = max(x.shape[0] - 1, 0), begin.shape[0]
    result = _call.new(x, (first + count + end.shape[0],), kind)
    _write(begin, result[:first], kind)
    _write(end, result[first + count :], kind)
    if count:
        _differences(x, 1, 0, result[first : first + count])
    return result


def _write(part: Any, target: Any, kind: Any) -> None:
    """Write prepended or appended elements; few host numbers may be written to a device array."""
    if type(part) is not np.ndarray:
        _call.write(_call.cast(part, kind, "ediff1d"), target)
    elif type(target) is np.ndarray:
        target[...] = part
    elif part.size > _FEW_NUMBERS:
        raise NotTaken(
            f"ediff1d: {part.size} numbers of to_begin or to_end are in host memory, but ary is "
            "not; pass an array of its library"
        )
    else:
        for i, number in enumerate(part.astype(kind)):
            _call.fill(_slice(target, 0, i, i + 1), number)


def _extra(x: Any, kind: Any, name: str) -> Any:
    """Return prepended or appended elements as one axis; lazy unless in host memory."""
    if x is None:
        return np.empty(0, kind)
    part = array_of(x, f"ediff1d: {name}")
    part = part if type(part) is np.ndarray else lazy_of(part)
    if not np.can_cast(part.dtype, kind, "same_kind"):
        raise TypeError(f"ediff1d: {name} has dtype {part.dtype}, which does not become {kind}")
    return part.reshape(-1)


@numpy_function(
    "One reduction that computes the areas while reading", arrays=2, few=_call.FEW_FOR_ONE_PASS,
    orders=True,
)  # fmt: skip
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    """Return the integral along an axis by the trapezoidal rule.

    >>> float(gnp.trapezoid([1, 2, 3]))
    4.0
    >>> float(gnp.trapezoid([1, 2, 3], x=[4, 6, 8]))
    8.0
    """
    name = "trapezoid"
    if not y.ndim:
        raise np.exceptions.AxisError(-1, 0, name)
    axis = _call.axis_of(axis, y.ndim, name)
    if x is not None:
        x = x if hasattr(x, "ndim") else np.asarray(x)
        x_axis = axis if x.ndim == 1 else _call.axis_of(axis, x.ndim, name)
        areas = _AREAS_BETWEEN((y, x), name, axis, x_axis)
    elif type(dx) in (bool, int, float, complex):
        areas = _AREAS((y,), name, axis, dx, type(dx))
    else:
        areas = _areas(lazy_of(y), axis, _call.number_of(array_of(dx, f"{name}: dx")))
    return reduced(np.add, areas, name, axis)


def _sides(x: Any, axis: int) -> tuple[Any, Any]:
    """Return the left and the right neighbours: all elements but the last, all but the first."""
    length = x.shape[axis]
    return _slice(x, axis, 0, max(length - 1, 0)), _slice(x, axis, min(1, length), length)


def _areas(y: Any, axis: int, dx: Any, _kind: Any = None) -> Any:
    operands = (*_sides(y, axis), dx)
    return applied(lambda left, right, dx: dx * (right + left) / 2.0, operands, "trapezoid")


def _areas_between(y: Any, x: Any, axis: int, x_axis: int) -> Any:
    if x.ndim == 1:
        x, x_axis = x.reshape((-1, *(1,) * (y.ndim - 1 - axis))), 0
    start, end = _sides(x, x_axis)
    return _areas(y, axis, end != start if x.dtype == BOOL else end - start)


_AREAS, _AREAS_BETWEEN = ExpressionCache(_areas), ExpressionCache(_areas_between)
