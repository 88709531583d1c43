"""The public function `adjacent_difference`."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, overload

from gpualgo._algorithms.adjacent_difference.problem import AdjacentDifference
from gpualgo._lazy.sources import parse_input
from gpualgo._pipeline import checks, front, inputs
from gpualgo._pipeline.problem import problem_of
from gpualgo._pipeline.run import run

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty
    from gpualgo._operators.operator import Operator

_WHERE = "adjacent_difference"


@overload
def adjacent_difference(
    x: ty.Same, op: ty.BinaryFunction | Operator = operator.sub, *, axis: int = -1,
    out: ty.Same | None = None, stream: ty.Stream | None = None,
) -> ty.Same: ...  # fmt: skip
@overload
def adjacent_difference(
    x: ty.Foreign, op: ty.BinaryFunction | Operator = operator.sub, *, axis: int = -1,
    out: ty.AnyArray | None = None, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
@overload
def adjacent_difference(
    x: ty.Host, op: ty.BinaryFunction | Operator = operator.sub, *, axis: int = -1,
    out: ty.Host | None = None, stream: ty.Stream | None = None,
) -> ty.NumPyArray: ...  # fmt: skip
@overload
def adjacent_difference(  # tuples
    x: ty.Arrays, op: ty.BinaryFunction | Operator = operator.sub, *, axis: int = -1,
    out: ty.Outs | None = None, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
def adjacent_difference(
    x: Any, op: Any = operator.sub, *, axis: Any = -1, out: Any = None, stream: Any = None
) -> Any:
    """Return elements combined with the one before: ``y[0] = x[0]``, ``y[i] = op(x[i], x[i-1])``.

    Parameters
    ----------
    x : array, or tuple of arrays
        As for `reduce`, with at least one axis. A tuple or namedtuple of arrays, or a NumPy
        structured array, is an array of tuples: `op` takes and returns tuples of their elements.
    op : callable
        ``op(a, b)`` of an element a and the element b before it; pure. It need not be associative.
    axis : int
        The axis to go along, each row separately.
    out : array, or tuple of arrays, optional
        Array for the result, with its shape and dtype, on the device of `x`. It must not share
        memory with `x`. For tuples a tuple like the result, or a structured array.
    stream : stream, optional
        CUDA stream for device arrays; by default the current stream of the array's library.

    Returns
    -------
    array, or tuple of arrays
        With the shape of `x`, in its library, of the dtype that `transform` gives for `op`;
        ``y[0]`` is ``x[0]`` converted to it, as NumPy's ``astype`` does. For device arrays the call
        does not synchronise.

    Raises
    ------
    TypeError
        `x` is not an array, a dtype is not supported, `axis` is not an int, `op` takes another
        number of arguments, its result has another structure than the elements of `x` or is real
        while they are complex, or `out` has a wrong dtype or structure.
    ValueError
        `out` has another shape or shares memory with `x`.
    numpy.exceptions.AxisError
        The axis is out of range, or `x` has no axes.
    CompileError
        numba cannot compile `op`.

    Notes
    -----
    Reads each element and writes each result once, in one kernel launch, without temporary storage.
    On the CPU lazy arrays are materialized first.

    See https://github.com/gpualgo/gpualgo/blob/main/docs/adjacent_difference.md.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> ga.adjacent_difference(np.array([3, 1, 4, 1, 5]))
    array([ 3, -2,  3, -3,  4])
    >>> ga.adjacent_difference(np.array([[1, 2], [3, 5]]), lambda a, b: a * 10 + b, axis=0)
    array([[ 1,  2],
           [31, 52]])
    """
    if type(axis) is not int:
        if axis is None:
            raise TypeError(f"{_WHERE}: axis must be an int, got None; pass x.reshape(-1), say")
        axis = checks.plain_axis(axis, _WHERE, "an int")
    if stream is None:
        result = front.run(AdjacentDifference.problems.look, op, None, out, axis, x)
        if result is not None:
            return result
    views, op, form = parse_input(x, op, _WHERE, beside=(out,))
    problem = problem_of(AdjacentDifference, views, op, None, (axis, form), _WHERE)
    if stream is None and problem.warm is not None:
        front.remember(problem, views, op, None, axis, x)
    solve = run if problem.form is None else inputs.run_tuples
    return solve(problem, views, op, None, out, stream)
