"""The public function `reduce`."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from gpualgo._algorithms.reduce.problem import Reduction
from gpualgo._base.errors import Elsewhere
from gpualgo._lazy.sources import parse_input, tried
from gpualgo._pipeline import checks
from gpualgo._pipeline.problem import PLAIN, problem_of
from gpualgo._pipeline.run import remember, run, run_remembered

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty
    from gpualgo._operators.operator import Operator

_LOOK = Reduction.problems.look


@overload
def reduce(
    x: ty.Same, init: ty.FirstValue | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, axis: ty.Axes = None,
    keepdims: bool = False, dtype: ty.DType | None = None, out: ty.Same | None = None,
    stream: ty.Stream | None = None,
) -> ty.Same: ...  # fmt: skip
@overload
def reduce(  # all of a NumPy array: a scalar of init's dtype
    x: np.ndarray[Any, Any], init: ty.Value, op: ty.BinaryFunction | Operator = operator.add, *,
    axis: None = None, keepdims: Literal[False] = False, dtype: None = None, out: None = None,
    stream: ty.Stream | None = None,
) -> ty.Value: ...  # fmt: skip
@overload
def reduce(  # of the dtype of the array
    x: np.ndarray[Any, np.dtype[ty.Value]], init: complex | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, axis: None = None,
    keepdims: Literal[False] = False, dtype: None = None, out: None = None,
    stream: ty.Stream | None = None,
) -> ty.Value: ...  # fmt: skip
@overload
def reduce(  # of dtype=
    x: np.ndarray[Any, Any], init: complex | np.generic | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, axis: None = None,
    keepdims: Literal[False] = False, dtype: type[ty.Value] | np.dtype[ty.Value],
    out: None = None, stream: ty.Stream | None = None,
) -> ty.Value: ...  # fmt: skip
@overload
def reduce(  # a NumPy array gives an array, or a scalar if all axes are reduced
    x: ty.AnyArray, init: ty.FirstValue | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, axis: ty.Axes = None,
    keepdims: bool = False, dtype: ty.DType | None = None, out: ty.AnyArray | None = None,
    stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
@overload
def reduce(  # tuples
    x: ty.Arrays, init: ty.FirstValues | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, axis: ty.Axes = None,
    keepdims: bool = False, dtype: ty.DTypes | None = None, out: ty.Outs | None = None,
    stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
def reduce(
    x: Any, init: Any = None, op: Any = operator.add, *, axis: Any = None, keepdims: bool = False,
    dtype: Any = None, out: Any = None, stream: Any = None,
) -> Any:  # fmt: skip
    """Return the elements of an array combined: ``init op x[0] op x[1] op … op x[n-1]``.

    Parameters
    ----------
    x : array, or tuple of arrays
        NumPy, CuPy, PyTorch or any array with ``__cuda_array_interface__`` or DLPack; any shape and
        strides; lazy or not. A tuple or namedtuple of arrays, which are broadcast together, or a
        NumPy structured array, is an array of tuples: `op` takes and returns tuples of their
        elements.
    init : scalar, array, or tuple of them, optional
        The initial value. A Python scalar is converted to the accumulator's dtype; a NumPy scalar
        or one-element array determines that dtype. An array with the shape of the result (without
        `keepdims`), on the device of `x`, gives an initial value for each row; without `dtype` it
        determines the accumulator's dtype. For tuples a tuple.
    op : callable
        ``op(a, b)``, associative and pure. It need not commute and needs no identity: elements are
        combined in C order. A lambda, a function, a built-in such as ``operator.mul``, ``max`` or
        ``np.logical_or``, or a `gpualgo.Operator`.
    axis : None, int or tuple of ints
        The axes to reduce; None means all.
    keepdims : bool
        Keep the reduced axes with length one.
    dtype : dtype, optional
        The dtype of the accumulator and the result. By default the dtype of `init` if that is a
        NumPy value, else ``x.dtype``. Each result of `op` is rounded to it. For tuples one dtype
        for all fields, a tuple, or a structured dtype.
    out : array, or tuple of arrays, optional
        Array for the result, with its shape and dtype, on the device of `x`. For tuples a tuple
        like the result, or a structured array.

    Returns
    -------
    array or scalar, or a tuple of them
        In the library of `x`. A NumPy array reduced over all axes gives a NumPy scalar, a device
        array a device array without dimensions; the call does not synchronise. Tuples give the same
        kind of tuple, a structured array a structured array or scalar.

    Raises
    ------
    TypeError
        `x` is not an array, a dtype is not supported, or `init`, `out` or the result of `op` has a
        wrong dtype or structure.
    ValueError
        There are no elements to reduce, and neither `init` nor an identity; a shape does not match;
        `out` shares memory with `x`, or with an `init` that is an array or on a GPU.
    numpy.exceptions.AxisError
        An axis is out of range.

    Notes
    -----
    Reads each element once, in one kernel launch (two if `init` is an array). Temporary storage: at
    most the 2 MB that are kept for each stream. If all axes are reduced by an operator that does
    not commute, a GPU copies large transposed arrays first.

    The same input gives the same bits on every run and every GPU: the grouping depends only on
    shape, memory order, dtype and whether `op` is known to commute. Of three and more dimensions it
    may also depend on gaps between rows.

    >>> float(ga.reduce(np.array([1.0, 2.0, 3.0], np.float32), 0.0, lambda a, b: a + b))
    6.0
    >>> ga.reduce(np.arange(6).reshape(2, 3), None, max, axis=1)
    array([2, 5])
    >>> x, y = np.array([3, 1, 4]), np.array([0.5, 2.5, 1.5])
    >>> ga.reduce((x, y), None, lambda a, b: (a[0] + b[0], max(a[1], b[1])))
    (np.int64(8), np.float64(2.5))
    """
    is_usual = keepdims is False and dtype is None and stream is None
    is_usual = is_usual and (axis is None or type(axis) is int)
    if is_usual:
        result = run_remembered(_LOOK, op, init, out, axis, (x,))
        if result is not None:
            return result
    try:
        views, op, form = parse_input(x, op, "reduce", beside=(init, out))
    except Elsewhere as elsewhere:
        options = {"axis": axis, "keepdims": keepdims, "dtype": dtype}
        return elsewhere.call("reduce", out, stream, x, init, op, **options)
    if keepdims is not False:
        keepdims = checks.flag_argument(keepdims, "keepdims", "reduce")
    if axis is not None and type(axis) is not int:
        axis = checks.plain_axes(axis, "reduce")
    params: tuple[Any, ...] = axis, keepdims, dtype, form, checks.classes_of(dtype)
    if type(init) not in PLAIN:
        from gpualgo._pipeline.problem import parse

        init, views, params = parse(init, views, params, "reduce")
    problem = problem_of(Reduction, views, op, init, params, "reduce")
    if is_usual and problem.warm is not None:
        remember(problem, views, op, init, axis, (x,))
    if problem.is_checked:
        tried(problem, x, op, init, stream)
    return run(problem, views, op, init, out, stream)
