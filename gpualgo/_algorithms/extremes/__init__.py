"""The public functions `argmin`, `argmax` and `minmax`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gpualgo._algorithms.extremes.problem import ArgMaximum, ArgMinimum, Extremes, MinimumMaximum
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import View, view_of
from gpualgo._base import records
from gpualgo._base.errors import Elsewhere
from gpualgo._lazy import is_lazy
from gpualgo._lazy.sources import Source
from gpualgo._operators.operator import Operator, builtin, fuse
from gpualgo._pipeline import checks
from gpualgo._pipeline.problem import Problem, problem_of
from gpualgo._pipeline.run import remember, run, run_remembered

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty


class MinMax(NamedTuple):
    """The result of `minmax`."""

    min: Any
    max: Any


def argmin(
    x: ty.AnyArray, axis: ty.Axis = None, *, keepdims: bool = False,
    out: ty.AnyArray | None = None, stream: ty.Stream | None = None,
) -> Any:  # fmt: skip
    """Return the index of the smallest element: its first occurrence, or the first NaN.

    Parameters
    ----------
    x : array
        Any library, shape and strides; any dtype that is not complex.
    axis : None or int
        The axis to search along; None takes all elements in C order.
    keepdims : bool
        Keep the reduced axes with length one.
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
        `x` is not an array, its dtype has no order, or `axis` or `out` has a wrong type.
    ValueError
        There are no elements along the axis; `out` has another shape or shares memory with `x`.

    Notes
    -----
    Reads each element once, in one kernel launch. Results are those of `numpy.argmin`: -0.0 equals
    0.0.

    >>> int(ga.argmin(np.array([3, 1, 2, 1])))
    1
    """
    return _index(ArgMinimum, "argmin", x, axis, keepdims, out, stream)


def argmax(
    x: ty.AnyArray, axis: ty.Axis = None, *, keepdims: bool = False,
    out: ty.AnyArray | None = None, stream: ty.Stream | None = None,
) -> Any:  # fmt: skip
    """Return the index of the largest element: its first occurrence, or the first NaN.

    Parameters
    ----------
    x, axis, keepdims, out, stream
        As for `argmin`.

    Returns
    -------
    array or scalar
        As for `argmin`.

    Raises
    ------
    TypeError, ValueError, numpy.exceptions.AxisError
        As for `argmin`.

    Notes
    -----
    As for `argmin`.

    >>> ga.argmax(np.array([[3, 1, 4], [1, 5, 9]]), axis=1)
    array([2, 2])
    """
    return _index(ArgMaximum, "argmax", x, axis, keepdims, out, stream)


def minmax(
    x: ty.AnyArray, axis: ty.Axes = None, *, keepdims: bool = False,
    out: tuple[ty.AnyArray, ty.AnyArray] | None = None, stream: ty.Stream | None = None,
) -> MinMax:  # fmt: skip
    """Return the smallest and the largest element; both are NaN if there is a NaN.

    Parameters
    ----------
    x, keepdims, stream
        As for `argmin`.
    axis : None, int or tuple of ints
        The axes to reduce; None means all.
    out : tuple of two arrays, optional
        Arrays for both results, with their shape and the dtype of `x`, on its device.

    Returns
    -------
    MinMax
        A namedtuple of ``min`` and ``max``, each of the dtype of `x`; otherwise as for `argmin`.

    Raises
    ------
    TypeError, ValueError, numpy.exceptions.AxisError
        As for `argmin`.

    Notes
    -----
    Reads each element once, in one kernel launch.

    >>> low, high = ga.minmax(np.array([3, 1, 4, 1, 5]))
    >>> int(low), int(high)
    (1, 5)
    """
    if axis is not None:
        axis = checks.plain_axes(axis, "minmax")
    try:
        problem, views, op = _problem_of(MinimumMaximum, x, axis, keepdims, _FORM, out, "minmax")
    except Elsewhere as elsewhere:
        return elsewhere.call("minmax", out, stream, x, axis, keepdims=keepdims)  # type: ignore[no-any-return]
    if out is not None:
        return run(problem, views, op, None, out, stream)  # type: ignore[no-any-return]
    result = run(problem, views, op, None, None, stream, True)
    return MinMax(*result) if type(result) is tuple else result


_FORM = Form(MinMax, (None, None))


def _index(
    kind: type[Extremes], where: str, x: Any, axis: Any, keepdims: Any, out: Any, stream: Any
) -> Any:
    is_usual = keepdims is False and stream is None and (axis is None or type(axis) is int)
    if is_usual:
        result = run_remembered(kind.problems.look, None, None, out, axis, (x,))
        if result is not None:
            return result
    if axis is not None:
        axis = checks.plain_axis(axis, where)
    try:
        problem, views, op = _problem_of(kind, x, axis, keepdims, None, out, where)
    except Elsewhere as elsewhere:
        return elsewhere.call(where, out, stream, x, axis, keepdims=keepdims)
    if is_usual and problem.warm is not None:
        remember(problem, views, op, None, axis, (x,))
    return run(problem, views, op, None, out, stream)


def _problem_of(
    kind: type[Extremes], x: Any, axis: Any, keepdims: Any, form: Form | None, out: Any, where: str
) -> tuple[Problem, tuple[View, ...], Any]:
    keepdims = checks.flag_argument(keepdims, "keepdims", where)
    if is_lazy(x):
        views, op = _computed_input(kind, x, axis, out, where)
        params = axis, keepdims, form, Source(())
        return problem_of(kind, views, op, None, params, where), views, op
    views = (view_of(x, f"{where}: x"),)
    return problem_of(kind, views, None, None, (axis, keepdims, form, None), where, 0), views, None


def _computed_input(
    kind: type[Extremes], x: Any, axis: Any, out: Any, where: str
) -> tuple[tuple[View, ...], Operator]:
    """Return the inputs of (element, index) or (element, element), and the operator.

    Its source makes the pairs.
    """
    from gpualgo._lazy.combining import check_count, combined, parted, place_lazy
    from gpualgo._lazy.expression import Group, Leaf, positions

    (x,) = place_lazy((x,), (out,), where)
    part = parted(x, f"{where}: x")
    if isinstance(x, tuple) or not is_lazy(x):
        raise TypeError(f"{where}: x is a tuple, whose elements have no order; pass one array")
    axes = checks.axes_of(axis, part.ndim, where)
    axis_shape = tuple(n if i in axes else 1 for i, n in enumerate(part.shape))
    indices = positions(axis_shape).broadcast_to(part.shape)
    pair = combined([part], where, lambda nodes: Group(None, nodes[0], nodes[0]), "")
    leaves = pair.leaves
    if kind.has_index:
        leaves = (*leaves, indices)
        pair = type(part)(part.shape, Group(None, part.node, Leaf(len(leaves) - 1)), leaves, "")
    check_count(leaves, records.MAX_FIELDS, f"{where}: x reads")
    return pair.views, fuse(builtin(kind.functor), pair.function)
