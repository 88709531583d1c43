"""Cumulative functions and differences."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpualgo._algorithms.transform import transform
from gpualgo._base import dtypes
from gpualgo._lazy import is_lazy, operators
from gpualgo._lazy.combining import applied
from gpualgo._lazy.expression_cache import ExpressionCache
from gpualgo.lazy import asarray as lazy_of
from gpualgo.lazy import full, reductions
from gpualgo.numpy._call import function, loops
from gpualgo.numpy._call.arguments import NotTaken, array_of, as_array, is_host
from gpualgo.numpy._call.function import numpys
from gpualgo.numpy._folds import accumulated

# --- Cumulative sums and products: one scan each.


def _accumulate(ufunc: np.ufunc, a: Any, axis: Any, dtype: Any, out: Any, name: str) -> Any:
    """Return ``numpy.cumsum`` or its like; a 0-d array counts as one element."""
    x = as_array(a, name)
    if not x.ndim:
        x = x.reshape(1) if type(x) is np.ndarray else lazy_of(x).reshape(1)
    return accumulated(ufunc, x, axis, dtype, out, name)


@numpys("One scan; 16-bit floats: one conversion after it")
def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Return the cumulative sums along an axis, or of all elements in C order.

    >>> gnp.cumsum([1, 2, 3])
    array([1, 3, 6])
    """
    return _accumulate(np.add, a, axis, dtype, out, "cumsum")


@numpys("One scan; 16-bit floats: one conversion after it")
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Return the cumulative products along an axis, or of all elements in C order.

    >>> gnp.cumprod([1, 2, 3, 4])
    array([ 1,  2,  6, 24])
    """
    return _accumulate(np.multiply, a, axis, dtype, out, "cumprod")


def _zero_for_nan(a: Any) -> Any:
    return a if a == a else 0


def _one_for_nan(a: Any) -> Any:
    return a if a == a else 1


_ZERO_FOR_NAN, _ONE_FOR_NAN = (
    ExpressionCache(lambda x, op=op: applied(op, (x,), "nancumsum", x.dtype))
    for op in (_zero_for_nan, _one_for_nan)
)


def _without_nan(a: Any, op: Any, name: str) -> Any:
    """Return the elements with NaN replaced, lazily; unchanged if the dtype has no NaN."""
    x = as_array(a, name)
    if dtypes.kind(function.dtype_of(x, name)) not in "fc":
        return x
    return op((x,), name)


@numpys("One scan that skips NaN while reading; on the CPU one transform before it")
def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Return the cumulative sums; NaN counts as zero.

    >>> gnp.nancumsum([1.0, float("nan"), 3.0])
    array([1., 1., 4.])
    """
    x = _without_nan(a, _ZERO_FOR_NAN, "nancumsum")
    return _accumulate(np.add, x, axis, dtype, out, "nancumsum")


@numpys("One scan that skips NaN while reading; on the CPU one transform before it")
def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Return the cumulative products; NaN counts as one.

    >>> gnp.nancumprod([2.0, float("nan"), 3.0])
    array([2., 2., 6.])
    """
    x = _without_nan(a, _ONE_FOR_NAN, "nancumprod")
    return _accumulate(np.multiply, x, axis, dtype, out, "nancumprod")


def _cumulative(
    ufunc: np.ufunc, x: Any, axis: Any, dtype: Any, out: Any, include_initial: bool, name: str
) -> Any:
    x = as_array(x, name)
    if axis is None:
        if x.ndim > 1:
            raise ValueError(f"{name}: an array of {x.ndim} axes needs axis=")
        axis = 0
    if not include_initial:
        return _accumulate(ufunc, x, axis, dtype, out, name)
    if not x.ndim:
        x = lazy_of(x).reshape(1)
    index = function.axis_of(axis, x.ndim, name)
    shape = (*x.shape[:index], x.shape[index] + 1, *x.shape[index + 1 :])
    out = function.out_of(out, name)
    if out is None:
        kind = function.summed(function.dtype_of(x, name), dtype, name)
        out = function.new(x, shape, kind)
    elif tuple(out.shape) != shape:
        raise ValueError(f"{name}: out has shape {tuple(out.shape)}, the result has {shape}")
    leading = (slice(None),) * index
    accumulated(ufunc, x, index, dtype, out[(*leading, slice(1, None))], name)
    function.filled(out[(*leading, slice(0, 1))], ufunc.identity)
    return out


@numpys("One scan; 16-bit floats: one conversion after it")
def cumulative_sum(
    x: Any,
    /,
    *,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    include_initial: bool = False,
) -> Any:
    """Return the cumulative sums along an axis; ``include_initial=True`` puts a zero first.

    >>> gnp.cumulative_sum([1, 2, 3], include_initial=True)
    array([0, 1, 3, 6])
    """
    return _cumulative(np.add, x, axis, dtype, out, include_initial, "cumulative_sum")


@numpys("One scan; 16-bit floats: one conversion after it")
def cumulative_prod(
    x: Any,
    /,
    *,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    include_initial: bool = False,
) -> Any:
    """Return the cumulative products along an axis; ``include_initial=True`` puts a one first.

    >>> gnp.cumulative_prod([1, 2, 3], include_initial=True)
    array([1, 1, 2, 6])
    """
    return _cumulative(np.multiply, x, axis, dtype, out, include_initial, "cumulative_prod")


# --- Functions of neighbouring elements: differences of any order, areas under curves.

_UNSET: Any = np._NoValue
_BOOL = np.dtype(bool)
_FEW_NUMBERS = 16  # a separate kernel writes each
_MAX_ORDER = 4  # highest order computed in one pass: each order reads one more array


def _second(a: Any, b: Any, c: Any) -> Any:
    return (c - b) - (b - a)


def _third(a: Any, b: Any, c: Any, d: Any) -> Any:
    return _second(b, c, d) - _second(a, b, c)


def _fourth(a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
    return _third(b, c, d, e) - _third(a, b, c, d)


def _first(a: Any, b: Any) -> Any:
    return b - a


def _differ(a: Any, b: Any) -> Any:
    return a != b


_BY_ORDER: tuple[Callable[..., Any], ...] = (_first, _second, _third, _fourth)


def _slice(x: Any, axis: int, begin: int, end: int) -> Any:
    return x[(*(slice(None),) * axis, slice(begin, end))]


def _differences(x: Any, order: int, axis: int, out: Any = None) -> Any:
    """Return differences of an order up to _MAX_ORDER in one pass; lazy for lazy arrays."""
    length = max(x.shape[axis] - order, 0)
    begins = [min(i, x.shape[axis]) for i in range(order + 1)]
    parts = [_slice(x, axis, begin, begin + length) for begin in begins]
    is_bool = function.dtype_of(x, "diff") == _BOOL
    op = _differ if is_bool else _BY_ORDER[order - 1]
    if is_lazy(x) and out is None:
        return applied(op, parts, "diff")
    if order == 1 and type(x) is np.ndarray and function.is_few(x.size, 1 << 62):
        ufunc = np.not_equal if is_bool else np.subtract
        return loops.run(ufunc, parts[::-1], 2 * parts[0].size, (out,))
    return transform(op, *parts, out=out)


def _diff(x: Any, n: int, axis: int) -> Any:
    most = 1 if function.dtype_of(x, "diff") == _BOOL else _MAX_ORDER
    while n:
        order = min(n, most)
        x, n = _differences(x, order, axis), n - order
    return x


@numpys("One transform for `n` up to 4, one more for each further 4", arrays=0)
def diff(a: Any, n: Any = 1, axis: Any = -1, prepend: Any = _UNSET, append: Any = _UNSET) -> Any:
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
    if is_host(x) and function.is_few(x.size, function.FEW):
        return np.diff(x, n, axis, prepend, append)
    if not x.ndim:
        raise ValueError("diff: a needs one axis at least")
    axis = function.axis_of(axis, x.ndim, "diff")
    if prepend is _UNSET and append is _UNSET:
        return _diff(x, n, axis)
    parts = [_part(prepend, x, axis, "prepend"), x, _part(append, x, axis, "append")]
    operands = [part for part in parts if part is not None]
    kind = np.result_type(*[function.dtype_of(part, "diff") for part in operands])
    operands = [part for part in operands if part.shape[axis]] or [x]
    return _diff(_concatenated_differences(operands, x, kind, axis), n - 1, axis)


def _part(x: Any, a: Any, axis: int, name: str) -> Any:
    """Return elements to prepend or append, in a's shape except along the axis."""
    if x is _UNSET:
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
    result = function.new(like, tuple(shape), kind)
    start, previous = 0, None
    for part in parts:
        own = function.dtype_of(part, "diff")
        x = part
        if own != kind:
            x = (
                part.astype(kind)
                if type(part) is np.ndarray
                else operators.cast(part, own, kind, "")
            )
        if previous is not None:
            _write_between(previous, _slice(x, axis, 0, 1), _slice(result, axis, start, start + 1))
            start += 1
        count = x.shape[axis] - 1
        if count > 0:
            _differences(x, 1, axis, _slice(result, axis, start, start + count))
        start += count
        previous = _slice(x, axis, count, count + 1)
    return result


def _write_between(left: Any, right: Any, out: Any) -> None:
    """Write the difference of neighbours from two arrays."""
    op = np.not_equal if function.dtype_of(out, "diff") == _BOOL else np.subtract
    is_host = type(left) is type(right) is type(out) is np.ndarray
    if is_host and function.is_few(out.size, function.FEW):
        with np.errstate(all="ignore"):
            op(right, left, out=out)
        return
    transform(op, right, left, out=out)


@numpys("One transform")
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Return the differences of neighbouring elements in C order, with optional ends.

    >>> gnp.ediff1d([1, 2, 4], to_begin=-9)
    array([-9,  1,  2])
    """
    x = as_array(ary, "ediff1d")
    if x.ndim != 1:
        x = x.reshape(-1) if type(x) is np.ndarray else lazy_of(x).reshape(-1)
    kind = function.dtype_of(x, "ediff1d")
    if kind == _BOOL:
        raise TypeError("ediff1d: bool has no difference; use diff")
    begin, end = (
        _extra(one, kind, name) for one, name in ((to_begin, "to_begin"), (to_end, "to_end"))
    )
    if begin is None and end is None:
        return _evaluated(_differences(x, 1, 0), ary)
    count, first = max(x.shape[0] - 1, 0), 0 if begin is None else begin.shape[0]
    last = 0 if end is None else end.shape[0]
    result = function.new(x, (first + count + last,), kind)
    for part, offset in ((begin, 0), (end, first + count)):
        if part is not None and part.shape[0]:
            _write(part, _slice(result, 0, offset, offset + part.shape[0]), kind)
    if count:
        _differences(x, 1, 0, _slice(result, 0, first, first + count))
    return result


def _evaluated(x: Any, original: Any) -> Any:
    return x if is_lazy(original) or not is_lazy(x) else function.evaluate_into(x, None, "ediff1d")


def _write(part: Any, target: Any, kind: Any) -> None:
    """Write prepended or appended elements; few host numbers may be written to a device array."""
    if type(part) is not np.ndarray:
        function.written_to(operators.cast(part, part.dtype, kind, "ediff1d"), target)
    elif type(target) is np.ndarray:
        target[...] = part
    elif part.size > _FEW_NUMBERS:
        raise NotTaken(
            f"ediff1d: {part.size} numbers of to_begin or to_end are in host memory, but ary is "
            "not; pass an array of its library"
        )
    else:
        for i, number in enumerate(part.astype(kind)):
            function.filled(_slice(target, 0, i, i + 1), number)


def _extra(x: Any, kind: Any, name: str) -> Any:
    """Return prepended or appended elements as one axis; lazy unless in host memory."""
    if x is None:
        return None
    part = array_of(x, f"ediff1d: {name}")
    part = part if type(part) is np.ndarray else lazy_of(part)
    if not np.can_cast(part.dtype, kind, "same_kind"):
        raise TypeError(f"ediff1d: {name} has dtype {part.dtype}, which does not become {kind}")
    return part.reshape(-1)


def _area(left: Any, right: Any, width: Any) -> Any:
    return width * (right + left) / 2.0


def _area_between(left: Any, right: Any, start: Any, end: Any) -> Any:
    return (end - start) * (right + left) / 2.0


def _area_between_bool(left: Any, right: Any, start: Any, end: Any) -> Any:
    return (end != start) * (right + left) / 2.0


@numpys("One reduction that computes the areas while reading", arrays=2)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    """Return the integral along an axis by the trapezoidal rule.

    >>> float(gnp.trapezoid([1, 2, 3]))
    4.0
    >>> float(gnp.trapezoid([1, 2, 3], x=[4, 6, 8]))
    8.0
    """
    name = "trapezoid"
    values = as_array(y, name)
    if not values.ndim:
        raise np.exceptions.AxisError(-1, 0, name)
    axis = function.axis_of(axis, values.ndim, name)
    if x is not None:
        positions = as_array(x, name)
        x_axis = axis if positions.ndim == 1 else function.axis_of(axis, positions.ndim, name)
        areas = _AREAS_BETWEEN((values, positions), name, axis, x_axis)
    elif type(dx) in (bool, int, float, complex):
        areas = _AREAS((values,), name, axis, dx, type(dx))
    else:
        areas = _areas(lazy_of(values), axis, _number(array_of(dx, f"{name}: dx")))
    return reductions.reduced(np.add, areas, axis, None, None, False, None, name)


def _sides(x: Any, axis: int) -> tuple[Any, Any]:
    """Return the left and the right neighbours: all elements but the last, all but the first."""
    length = x.shape[axis]
    return _slice(x, axis, 0, max(length - 1, 0)), _slice(x, axis, min(1, length), length)


def _areas(y: Any, axis: int, dx: Any, _kind: Any = None) -> Any:
    return applied(_area, (*_sides(y, axis), dx), "trapezoid")


def _areas_between(y: Any, x: Any, axis: int, x_axis: int) -> Any:
    if x.ndim == 1:
        x, x_axis = x.reshape((-1, *(1,) * (y.ndim - 1 - axis))), 0
    op = _area_between_bool if x.dtype == _BOOL else _area_between
    return applied(op, (*_sides(y, axis), *_sides(x, x_axis)), "trapezoid")


_AREAS, _AREAS_BETWEEN = ExpressionCache(_areas), ExpressionCache(_areas_between)


def _number(x: Any) -> Any:
    return x[()] if type(x) is np.ndarray and not x.ndim else x
