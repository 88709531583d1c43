"""The public function `rolling`."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from gpualgo._algorithms.rolling.problem import Rolling
from gpualgo._lazy.sources import parse_input, tried
from gpualgo._pipeline import checks
from gpualgo._pipeline.problem import problem_of
from gpualgo._pipeline.run import run

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty
    from gpualgo._operators.operator import Operator

_WHERE = "rolling"


@overload
def rolling(
    x: ty.Same, window: SupportsIndex, op: ty.BinaryFunction | Operator = operator.add, *,
    axis: int = -1, dtype: ty.DType | None = None, out: ty.Same | None = None,
    stream: ty.Stream | None = None,
) -> ty.Same: ...  # fmt: skip
@overload
def rolling(
    x: ty.Foreign, window: SupportsIndex, op: ty.BinaryFunction | Operator = operator.add, *,
    axis: int = -1, dtype: ty.DType | None = None, out: ty.AnyArray | None = None,
    stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
@overload
def rolling(
    x: ty.Host, window: SupportsIndex, op: ty.BinaryFunction | Operator = operator.add, *,
    axis: int = -1, dtype: ty.DType | None = None, out: ty.Host | None = None,
    stream: ty.Stream | None = None,
) -> ty.NumPyArray: ...  # fmt: skip
@overload
def rolling(  # tuples
    x: ty.Arrays, window: SupportsIndex, op: ty.BinaryFunction | Operator = operator.add, *,
    axis: int = -1, dtype: ty.DTypes | None = None, out: ty.Outs | None = None,
    stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
def rolling(
    x: Any, window: Any, op: Any = operator.add, *, axis: Any = -1, dtype: Any = None,
    out: Any = None, stream: Any = None,
) -> Any:  # fmt: skip
    """Return the elements of each window combined: ``y[i] = x[i] op … op x[i+window-1]``.

    Parameters
    ----------
    x : array, or tuple of arrays
        As for `reduce`, with at least one axis. A tuple or namedtuple of arrays, or a NumPy
        structured array, is an array of tuples: `op` takes and returns tuples of their elements.
    window : int
        The number of neighbours that are combined, from 1 to the length of the axis.
    op : callable
        ``op(a, b)``, associative and pure, as for `inclusive_scan`. It need not commute and needs
        neither an identity nor an inverse.
    axis : int
        The axis to go along, each row separately.
    dtype : dtype, optional
        The dtype of the accumulator and the result, by default ``x.dtype``. Each result of `op` is
        rounded to it. For tuples one dtype for all fields, a tuple, or a structured dtype.
    out : array, or tuple of arrays, optional
        Array for the result, with its shape and dtype, on the device of `x`. It must not share
        memory with `x`. For tuples a tuple like the result, or a structured array.

    Returns
    -------
    array, or tuple of arrays
        With the shape of `x`, but ``n - window + 1`` elements along an axis of n; in the library of
        `x`. For device arrays the call does not synchronise. Tuples give the same kind of tuple, a
        structured array a structured array. With a window of 1 it is `x` converted to `dtype`.

    Raises
    ------
    TypeError
        `x` is not an array, a dtype is not supported, `window` or `axis` is not an int, or `out` or
        the result of `op` has a wrong type.
    ValueError
        `window` is less than 1 or longer than the axis; `out` has another shape or shares memory
        with `x`.
    numpy.exceptions.AxisError
        The axis is out of range, or `x` has no axes.

    Notes
    -----
    Calls `op` three to twenty times for each element, whatever the window. In small windows on the
    CPU it is once for each element of the window but the first. Otherwise blocks of `window`
    elements are scanned from both ends, and each window is a suffix of a block combined with a
    prefix of the next one (M. van Herk, Pattern Recognition Letters 13, 1992; J. Gil and M. Werman,
    IEEE Transactions on Pattern Analysis and Machine Intelligence 15, 1993). Temporary storage: two
    buffers of `x` in the accumulator's dtype, their rows filled up to a multiple of `window`. A GPU
    takes windows of up to 1024 numbers and 4096 bytes, with 512 results or more along the axis, in
    one launch without buffers, except for what does not lie side by side.

    The same input gives the same bits on every run and every GPU, float sums included. How elements
    are grouped depends on the shape, the axis, `window` and the dtype, and on whether a GPU or the
    CPU computes, never on the layout of `x`. A sum has the error of a sum of `window` terms.

    >>> ga.rolling(np.array([3, 1, 4, 1, 5, 9]), 3)
    array([ 8,  6, 10, 15])
    >>> ga.rolling(np.array([[3, 1, 4], [1, 5, 9], [2, 6, 5]]), 2, max, axis=0)
    array([[3, 5, 9],
           [2, 6, 9]])
    >>> ga.rolling(np.array([3, 1, 4, 1]), 2, lambda a, b: a)
    array([3, 1, 4])
    """
    window = checks.integer(window, "window", _WHERE)
    if axis is None:
        raise TypeError(f"{_WHERE}: axis must be an int, got None; pass x.reshape(-1), say")
    axis = checks.plain_axis(axis, _WHERE, "an int")
    views, op, form = parse_input(x, op, _WHERE, beside=(out,))
    params = axis, window, dtype, form, checks.classes_of(dtype)
    problem = problem_of(Rolling, views, op, None, params, _WHERE)
    if problem.is_checked:
        tried(problem, x, op, None, stream)
    return run(problem, views, op, None, out, stream)
