"""The public function `adjacent_difference`."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, overload

from gpualgo._algorithms.adjacent_difference.problem import AdjacentDifference
from gpualgo._lazy.sources import taken
from gpualgo._pipeline import checks, inputs
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
    """Combine each element with the one before it: ``y[0] = x[0]``, ``y[i] = op(x[i], x[i-1])``.

    Parameters
    ----------
    x : array, or tuple of arrays
        Of any library, any dtype with kernels, one axis at least, any strides; lazy or not. A tuple
        or namedtuple of arrays, which are broadcast together, or a NumPy structured array, is an
        array of tuples: `op` takes and returns tuples of their elements.
    op : callable
        ``op(a, b)`` of an element a and the one before it, b. It need not be associative.
    axis : int
        The axis to go along, each line for itself.
    out : array, or tuple of arrays, optional
        Where to write the result: its shape and dtype, the device of `x`. It may share
        no memory with `x`. For tuples a tuple like the result, or a structured array.
    stream : stream, optional
        A CUDA stream for device arrays; without it the current stream of the array's library.

    Returns
    -------
    array, or tuple of arrays
        Of the shape of `x`, in its library, of the dtype that `transform` gives for `op`;
        ``y[0]`` is ``x[0]`` converted to it, as NumPy's ``astype`` does. A device array is returned
        without waiting for it.

    Raises
    ------
    TypeError
        `x` is no array, a dtype has no kernel, `axis` is no int, `op` takes another number of
        arguments, its result has another structure than `x`'s elements or is real while they are
        complex, or out does not fit.
    ValueError
        out has another shape or shares memory with `x`.
    numpy.exceptions.AxisError
        The axis is out of range; `x` has none.
    CompileError
        numba cannot compile `op`.

    Notes
    -----
    Reads each element from memory and writes each result once, in one kernel launch, with no
    temporary storage; on the CPU lazy arrays are computed into memory first. See
    https://github.com/gpualgo/gpualgo/blob/main/docs/adjacent_difference.md.

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
    views, op, form = taken(x, op, _WHERE, beside=(out,))
    problem = problem_of(AdjacentDifference, views, op, None, (axis, form), _WHERE)
    solve = run if problem.form is None else inputs.solve
    return solve(problem, views, op, None, out, stream)
