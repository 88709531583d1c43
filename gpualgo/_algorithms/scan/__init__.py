"""The public functions `inclusive_scan` and `exclusive_scan`."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, overload

from gpualgo._algorithms import typed_as
from gpualgo._algorithms.scan.problem import EXCLUSIVE, INCLUSIVE, ExclusiveScan, Scan
from gpualgo._base.errors import Elsewhere
from gpualgo._lazy.sources import may_be_array, parse_input, tried
from gpualgo._pipeline import checks
from gpualgo._pipeline.problem import PLAIN, problem_of
from gpualgo._pipeline.run import remember, run, run_remembered

if TYPE_CHECKING:
    from gpualgo._arrays.view import View
    from gpualgo._base import annotations as ty
    from gpualgo._operators.operator import Operator


@overload
def inclusive_scan(
    x: ty.Same, init: ty.FirstValue | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, axis: ty.Axis = None,
    reverse: bool = False, dtype: ty.DType | None = None, out: ty.Same | None = None,
    stream: ty.Stream | None = None,
) -> ty.Same: ...  # fmt: skip
@overload
def inclusive_scan(
    x: ty.Foreign, init: ty.FirstValue | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, axis: ty.Axis = None,
    reverse: bool = False, dtype: ty.DType | None = None, out: ty.AnyArray | None = None,
    stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
@overload
def inclusive_scan(
    x: ty.Host, init: ty.FirstValue | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, axis: ty.Axis = None,
    reverse: bool = False, dtype: ty.DType | None = None, out: ty.Host | None = None,
    stream: ty.Stream | None = None,
) -> ty.NumPyArray: ...  # fmt: skip
@overload
def inclusive_scan(  # tuples
    x: ty.Arrays, init: ty.FirstValues | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, axis: ty.Axis = None,
    reverse: bool = False, dtype: ty.DTypes | None = None, out: ty.Outs | None = None,
    stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
def inclusive_scan(
    x: Any, init: Any = None, op: Any = operator.add, *, axis: Any = None, reverse: bool = False,
    dtype: Any = None, out: Any = None, stream: Any = None,
) -> Any:  # fmt: skip
    """Return each element combined with all before it: ``y[i] = init op x[0] op … op x[i]``.

    Parameters
    ----------
    x : array, or tuple of arrays
        As for `reduce`: any library, shape and strides. A tuple or namedtuple of arrays, or a NumPy
        structured array, is an array of tuples: `op` takes and returns tuples of their elements.
    init : scalar, array, or tuple of them, optional
        The initial value, combined with the first element. A Python scalar is converted to the
        accumulator's dtype; a NumPy scalar or one-element array determines that dtype. If `x` is on
        a GPU, also an array of one element there, which is read in stream order. With `axis`, also
        an array with the shape of `x` without that axis, on the device of `x`, of the accumulator's
        dtype: an initial value for each row. For tuples a tuple.
    op : callable
        ``op(a, b)``, associative and pure. It need not commute and needs no identity. A lambda, a
        function, a built-in such as ``operator.mul``, ``max`` or ``np.logical_or``, or a
        `gpualgo.Operator`.
    axis : None or int
        The axis to scan along, each row separately; None flattens `x` in C order.
    reverse : bool
        Scan from the last element to the first: ``y[i] = init op x[n-1] op … op x[i]``.
    dtype : dtype, optional
        The dtype of the accumulator and the result. By default the dtype of `init` if that is a
        NumPy value or an array, else ``x.dtype``. Each result of `op` is rounded to it. For tuples
        one dtype for all fields, a tuple, or a structured dtype.
    out : array, or tuple of arrays, optional
        Array for the result, with its shape and dtype, on the device of `x`. It may be `x` itself.
        For tuples a tuple like the result, or a structured array.

    Returns
    -------
    array, or tuple of arrays
        With the shape of `x`, one-dimensional if `axis` is None; in the library of `x`. For device
        arrays the call does not synchronise. Tuples give the same kind of tuple, a structured array
        a structured array.

    Raises
    ------
    TypeError
        `x` is not an array, a dtype is not supported, or `axis`, `init`, `out` or the result of
        `op` has a wrong type.
    ValueError
        `init` is out of range or has a wrong shape; `out` has a wrong shape, or partly overlaps
        `init` or `x`.

    Notes
    -----
    Reads and writes each element once, in one kernel launch on a GPU. Temporary storage: 8 bytes
    for each tile of 10 to 40 KB and each 32 bits of the accumulator, kept for each stream. Long
    rows of numbers that are not contiguous, such as ``x[::-1]``, are copied to the result first.
    Host arrays may be larger than the GPU's memory.

    The same input gives the same bits on every run and every GPU, float sums included: aggregates
    of tiles are combined strictly from left to right. The algorithm is the single-pass scan with
    decoupled look-back (D. Merrill and M. Garland, NVIDIA NVR-2016-002, 2016).

    >>> ga.inclusive_scan(np.array([1.0, 2.0, 3.0], np.float32), 0.5, lambda a, b: a + b)
    array([1.5, 3.5, 6.5], dtype=float32)
    >>> ga.inclusive_scan(np.array([[3, 1, 4], [1, 5, 9]]), None, max, axis=1)
    array([[3, 3, 4],
           [1, 5, 9]])
    >>> first, value = np.array([True, False, True]), np.array([1, 2, 3])
    >>> ga.inclusive_scan((first, value), None, lambda a, b: b if b[0] else (a[0], a[1] + b[1]))
    (array([ True,  True,  True]), array([1, 3, 3]))
    """
    return _scan(Scan, INCLUSIVE, x, init, op, axis, reverse, dtype, out, stream)


def _scan(
    kind: type[Scan], where: str, x: Any, init: Any, op: Any, axis: Any, reverse: Any, dtype: Any,
    out: Any, stream: Any,
) -> Any:  # fmt: skip
    is_usual = reverse is False and dtype is None and stream is None
    is_usual = is_usual and (axis is None or type(axis) is int)
    if is_usual:
        result = run_remembered(kind.problems.look, op, init, out, axis, (x,))
        if result is not None:
            return result
    try:
        views, op, form = parse_input(x, op, where, beside=(init, out))
    except Elsewhere as elsewhere:
        options = {"axis": axis, "reverse": reverse, "dtype": dtype}
        return elsewhere.call(where, out, stream, x, init, op, **options)
    if reverse is not False:
        reverse = checks.flag_argument(reverse, "reverse", where)
    if axis is not None and type(axis) is not int:
        axis = checks.plain_axis(axis, where)
    params: tuple[Any, ...] = axis, reverse, dtype, form, checks.classes_of(dtype)
    if type(init) not in PLAIN:
        init, views, params = _parse_init(init, views, params, where)
    problem = problem_of(kind, views, op, init, params, where)
    if is_usual and problem.warm is not None:
        remember(problem, views, op, init, axis, (x,))
    if problem.is_checked:
        tried(problem, x, op, init, stream)
    return run(problem, views, op, init, out, stream)


def _parse_init(
    init: Any, views: tuple[View, ...], params: tuple[Any, ...], where: str
) -> tuple[Any, tuple[View, ...], tuple[Any, ...]]:
    """Return init, the inputs and params, with the arrays of init where they belong."""
    from gpualgo._pipeline.problem import parse

    one_is_value = not isinstance(init, tuple)
    init, views, params = parse(init, views, params, where, one_is_value=one_is_value)
    if init is not None and may_be_array(init, params[3]):
        init = checks.start_of(init, views[0], where)
    return init, views, params


@typed_as(inclusive_scan)
def exclusive_scan(
    x: Any, init: Any = None, op: Any = operator.add, *, axis: Any = None, reverse: bool = False,
    dtype: Any = None, out: Any = None, stream: Any = None,
) -> Any:  # fmt: skip
    """Return all elements before each, combined: ``y[0] = init``, ``y[i] = init op … op x[i-1]``.

    Parameters
    ----------
    x, axis, dtype, out, stream
        As for `inclusive_scan`.
    init : scalar, array, or tuple of them, optional
        The initial value, which is the first result; as for `inclusive_scan`. By default the
        operator's identity: ``operator.add``, ``mul``, ``and_``, ``or_``, ``xor`` and NumPy's
        logical functions have one.
    op : callable
        ``op(a, b)``, associative and pure, as for `inclusive_scan`. Without `init` it needs an
        identity: ``gpualgo.Operator(op, identity=...)`` gives it one.
    reverse : bool
        Scan from the last element to the first: ``y[i] = init op x[n-1] op … op x[i+1]``.

    Returns
    -------
    array, or tuple of arrays
        As for `inclusive_scan`.

    Raises
    ------
    ValueError
        There is neither `init` nor an identity, even if `x` is empty.
    TypeError, ValueError, numpy.exceptions.AxisError, CompileError
        As for `inclusive_scan`.

    Notes
    -----
    Cost, determinism and algorithm are those of `inclusive_scan`.

    >>> ga.exclusive_scan(np.array([3, 1, 4, 1]))
    array([0, 3, 4, 8])
    >>> ga.exclusive_scan(np.array([3, 1, 4, 1]), 0, max, reverse=True)
    array([4, 4, 1, 0])
    >>> x = np.array([3, 1, 4])
    >>> ga.exclusive_scan((x, x), (0, 1), lambda a, b: (a[0] + b[0], a[1] * b[1]))
    (array([0, 3, 4]), array([1, 3, 3]))
    """
    return _scan(ExclusiveScan, EXCLUSIVE, x, init, op, axis, reverse, dtype, out, stream)
