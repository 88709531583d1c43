"""The public functions `find` and `count`."""

from __future__ import annotations

import functools
import operator
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpualgo._algorithms.reduce.problem import Reduction
from gpualgo._arrays.view import NumPy, as_view, known_viewer, view_of
from gpualgo._base import records
from gpualgo._base.errors import CompileError, Elsewhere
from gpualgo._driver.default_device import CPU
from gpualgo._lazy import expression, is_lazy
from gpualgo._lazy.array import LazyArray, is_number
from gpualgo._lazy.combining import check_count, combined, led_by, parted, place_lazy
from gpualgo._lazy.expression import positions
from gpualgo._lazy.expression_cache import ExpressionCache
from gpualgo._lazy.sources import input_of
from gpualgo._operators.key import facts_of, is_closed
from gpualgo._operators.operator import as_operator, is_function
from gpualgo._pipeline import checks
from gpualgo._pipeline.problem import Array, Call, problem_of
from gpualgo._pipeline.run import ndarray, remember, run, run_remembered

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty


# --- Counting and finding elements: reductions of marks, and of the indices of marked elements.

INDEX, UNSIGNED = np.dtype(np.int64), np.dtype(np.uint64)


class Counting(Reduction):
    shape_attributes = ()
    function: ClassVar[str] = "count"
    composes_operator, op_name = True, "predicate"


class Finding(Reduction):
    """Arguments that equal calls of `find` share: a minimum of unsigned indices; -1 is greatest."""

    shape_attributes = ()
    function: ClassVar[str] = "find"
    composes_operator, op_name = True, "predicate"

    def __init__(self, call: Call) -> None:
        params = call.params
        axis, keepdims, _, form, classes = params
        super().__init__(call._replace(params=(axis, keepdims, UNSIGNED, form, classes)))
        self.params = params
        self.results = tuple(result._replace(dtype=INDEX) for result in self.results)

    def of_empty(self, op: Any, init: Any) -> Array:
        return np.array(-1, INDEX)


# --- Marks of elements as lazy bools: the results of a predicate, or a given array.

_BOOL = np.dtype(np.bool_)
UNMARKED = (1 << 64) - 1


def of(x: Any, predicate: Any, where: str) -> LazyArray:
    if is_number(x):
        view_of(x, f"{where}: x")  # raises, because a number is no array
    part = parted(x, f"{where}: x")
    lazy_x = combined([part], where, lambda nodes: nodes[0], "")
    if not is_function(predicate, where):
        return _checked_array(lazy_x, predicate, where)
    try:
        # captured values are those at the time of the call
        fn = as_operator(predicate, where, 1).fn
        lazy_marks = LazyArray(
            lazy_x.shape, expression.Call(fn, lazy_x.node), lazy_x.leaves, "", lazy_x.forms
        )
        dtype = lazy_marks.dtype
    except (TypeError, ValueError, CompileError) as error:
        text = str(error)
        if text.startswith("lazy: "):
            error.args = (f"{where}: {text.removeprefix('lazy: ')}",)
        checks.name(error, predicate, where, "predicate")
        raise
    if dtype != _BOOL:
        raise TypeError(
            f"{where}: predicate returns {records.shown(dtype)} of {records.shown(lazy_x.dtype)}, "
            "but must return bool; compare, as in lambda a: a != 0"
        )
    return lazy_marks


def _checked_array(lazy_x: LazyArray, predicate: Any, where: str) -> LazyArray:
    """Return marks that are given as an array, after checking that they fit the elements."""
    if not is_lazy(predicate):
        as_view(predicate, f"{where}: predicate")
    lazy_x, predicate = place_lazy((lazy_x, predicate), (), where)
    lazy_marks = parted(predicate, f"{where}: predicate")
    checks.mask(lazy_marks, lazy_x.shape, where)
    checks.same_place([*lazy_x.views, *lazy_marks.views], where)
    return led_by(lazy_marks, lazy_x)


def indices_of_marked(marks: LazyArray, axis: int | None, where: str) -> LazyArray:
    """Return each element's index along an axis if it is marked, else NOWHERE."""
    axes = checks.axes_of(axis, marks.ndim, where)
    axis_shape = tuple(n if i in axes else 1 for i, n in enumerate(marks.shape))
    indices = positions(axis_shape).broadcast_to(marks.shape)
    leaves = (*marks.leaves, indices)
    check_count(leaves, records.MAX_FIELDS, f"{where}: x reads")
    node = expression.Call(_index_or_nowhere, marks.node, expression.Leaf(len(marks.leaves)))
    return LazyArray(marks.shape, node, leaves, "")


class _Closed:
    """The code of a predicate that reads nothing but its element, and keeps no module alive."""

    __slots__ = ("code", "key")

    def __init__(self, code: CodeType) -> None:
        self.code, self.key = code, facts_of(code).closed_key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Closed) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def _elements(
    x: Any, predicate: Any, kind: type[Counting] | type[Finding], axis: int | None
) -> LazyArray:
    """Return what is reduced: marks, or the indices of marked elements."""
    marks = of(x, predicate, kind.function)
    return indices_of_marked(marks, axis, kind.function) if kind is Finding else marks


_ELEMENTS_BY_MASK = ExpressionCache(_elements)
_ELEMENTS_BY_CODE = ExpressionCache(
    lambda x, closed, kind, axis: _elements(x, FunctionType(closed.code, {}), kind, axis)
)


def _index_or_nowhere(is_marked: Any, index: Any) -> Any:
    return np.uint64(index) if is_marked else np.uint64(UNMARKED)


def find(
    x: ty.AnyArray | ty.Arrays, predicate: ty.Predicate | ty.AnyArray, *, axis: ty.Axis = None,
    out: ty.AnyArray | None = None, stream: ty.Stream | None = None,
) -> Any:  # fmt: skip
    """Return the index of the first element for which a predicate is true; -1 if there is none.

    Parameters
    ----------
    x : array, or tuple of arrays
        As for `select`.
    predicate : callable or array
        ``predicate(a)`` returns a bool and is pure; or an array of bool with the shape of `x`, lazy
        or not.
    axis : None or int
        The axis to search along; None takes all elements in C order.
    out : array, optional
        Array for the result, with its shape and dtype int64, on the device of `x`.

    Returns
    -------
    array or scalar
        int64, in the library of `x`. A NumPy array reduced over all axes gives a NumPy scalar, a
        device array a device array; the call does not synchronise.

    Raises
    ------
    TypeError
        `x` is not an array, `predicate` neither returns bool nor is an array of bool, or `out` has
        another dtype.
    ValueError
        The shapes of `x` and an array of bool differ; `out` has another shape or shares memory.

    Notes
    -----
    Reads each element once, in one kernel launch. On the CPU without `axis` it stops soon after the
    first match.

    >>> int(ga.find(np.array([1, 5, 7, 5]), lambda a: a > 4))
    1
    >>> ga.find(np.array([[1, 5], [2, 3]]), lambda a: a > 4, axis=1)
    array([ 1, -1])
    """
    if axis is not None:
        axis = checks.plain_axis(axis, "find")
    try:
        return _solve(Finding, x, predicate, axis, False, out, stream)
    except Elsewhere as elsewhere:
        return elsewhere.call("find", out, stream, x, predicate, axis=axis)


def count(
    x: ty.AnyArray | ty.Arrays, predicate: ty.Predicate | ty.AnyArray, *, axis: ty.Axes = None,
    keepdims: bool = False, out: ty.AnyArray | None = None, stream: ty.Stream | None = None,
) -> Any:  # fmt: skip
    """Return the number of elements for which a predicate is true.

    Parameters
    ----------
    x, predicate, out, stream
        As for `find`.
    axis : None, int or tuple of ints
        The axes to count over; None means all.
    keepdims : bool
        Keep the reduced axes with length one.

    Returns
    -------
    array or scalar
        int64, as for `find`.

    Raises
    ------
    TypeError, ValueError, numpy.exceptions.AxisError, CompileError
        As for `find`.

    Notes
    -----
    Reads each element once, in one kernel launch.

    >>> int(ga.count(np.array([1, 5, 7, 5]), lambda a: a > 4))
    3
    """
    if axis is not None:
        axis = checks.plain_axes(axis, "count")
    keepdims = checks.flag_argument(keepdims, "keepdims", "count")
    try:
        return _solve(Counting, x, predicate, axis, keepdims, out, stream)
    except Elsewhere as elsewhere:
        return elsewhere.call("count", out, stream, x, predicate, axis=axis, keepdims=keepdims)


def _solve(
    kind: type[Counting] | type[Finding], x: Any, predicate: Any, axis: Any, keepdims: bool,
    out: Any, stream: Any,
) -> Any:  # fmt: skip
    init = 0 if kind is Counting else None
    is_usual = type(x) is ndarray and stream is None and not keepdims
    if is_usual:
        arrays = (x,) if kind is Counting else (x, _indices(x.shape, axis))
        result = run_remembered(kind.problems.look, predicate, init, out, axis, arrays)
        if result is not None:
            return result
    along, name = axis if kind is Finding else None, f"{kind.function}: x"
    is_array = known_viewer(type(x)) is not None  # neither lazy nor a tuple
    if is_array and known_viewer(type(predicate)) is not None:
        as_view(predicate, f"{kind.function}: predicate")
        elements = _ELEMENTS_BY_MASK((x, predicate), name, kind, along)
    elif is_array and is_closed(predicate):
        elements = _ELEMENTS_BY_CODE((x,), name, _Closed(predicate.__code__), kind, along)
    else:
        elements = _elements(x, predicate, kind, axis)
    fold = min if kind is Finding else operator.add
    views, op, form = input_of(elements, fold, kind.function, beside=(out,))
    params = axis, keepdims, INDEX, form, None
    problem = problem_of(kind, views, op, init, params, kind.function)
    if is_usual and problem.warm is not None and is_closed(predicate):
        owners = [view.owner for view in views[1:]]
        remember(problem, views, predicate, init, axis, (x, *owners))
    return run(problem, views, op, init, out, stream)


@functools.lru_cache(maxsize=256)
def _indices(shape: tuple[int, ...], axis: int | None) -> Array:
    """Return the virtual array of indices along an axis, which `find` reads beside the elements."""
    axes = checks.axes_of(axis, len(shape), "find")
    axis_shape = tuple(n if i in axes else 1 for i, n in enumerate(shape))
    owner: Array = positions(axis_shape).broadcast_to(shape).view(CPU, NumPy).owner
    return owner
