"""The public functions `inclusive_scan` and `exclusive_scan`."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, overload

from gpualgo._algorithms.scan.problem import EXCLUSIVE, INCLUSIVE, ExclusiveScan, Scan
from gpualgo._base.errors import Elsewhere
from gpualgo._lazy.sources import may_be_array, taken, tried
from gpualgo._pipeline import checks, elements, inputs
from gpualgo._pipeline.problem import PLAIN, problem_of
from gpualgo._pipeline.run import run

if TYPE_CHECKING:
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
    x: Any,
    init: Any = None,
    op: Any = operator.add,
    *,
    axis: Any = None,
    reverse: bool = False,
    dtype: Any = None,
    out: Any = None,
    stream: Any = None,
) -> Any:
    """Combine each element with all before it: ``y[i] = init op x[0] op x[1] op … op x[i]``.

    Parameters
    ----------
    x : array, or tuple of arrays
        NumPy, CuPy, PyTorch or anything with ``__cuda_array_interface__`` or DLPack; any shape,
        any strides. A tuple or namedtuple of arrays, which are broadcast together, or a NumPy
        structured array, is an array of tuples: `op` takes and returns tuples of their elements.
    init : scalar, array, or tuple of them, optional
        The value before the first element. A Python scalar takes the accumulator's dtype; a NumPy
        scalar or one-element array decides it. For an array on a GPU also an array of one element
        there: it is read on the device, in the order of the stream. With an axis also an array of
        the shape of `x` without it, on the device of `x`, of the accumulator's dtype: one initial
        value for each line. For tuples a tuple.
    op : callable
        ``op(a, b)``, associative. It need not commute, nor have an identity. A lambda, a function,
        a built-in such as ``operator.mul``, ``max`` or ``np.logical_or``, or a `gpualgo.Operator`.
    axis : None or int
        The axis to go along, each row for itself; None flattens `x` in C order.
    reverse : bool
        Go from the last element to the first: ``y[i] = init op x[n-1] op … op x[i]``.
    dtype : dtype, optional
        The accumulator's and the result's dtype; without it init's if that is a NumPy value or an
        array, else ``x.dtype``. Each result of `op` is rounded to it. For tuples one for all
        numbers, a tuple, or a structured dtype.
    out : array, or tuple of arrays, optional
        Where to write the result: its shape and dtype, the device of `x`. It may be
        `x` itself. For tuples a tuple like the result, or a structured array.
    stream : stream, optional
        A CUDA stream for device arrays; without it the current stream of the array's library.

    Returns
    -------
    array, or tuple of arrays
        Of the shape of `x`, or one-dimensional if `axis` is None; in the library of `x`. A device
        array is returned without waiting for it. Tuples give the same kind of tuple, a structured
        array a structured array.

    Raises
    ------
    TypeError
        `x` is no array, a dtype has no kernel, or axis, init, out or op's result does not fit.
    ValueError
        init is out of range or not one value; out has another shape, or overlaps init or x partly.
    numpy.exceptions.AxisError
        The axis is out of range.
    CompileError
        numba cannot compile `op`.

    Notes
    -----
    Reads and writes each element once: 2 · n · itemsize bytes, one kernel launch on a GPU, and 8
    bytes of temporary storage for each 32 bits of the accumulator and tile of 10 to 40 KB, kept for
    each stream. The same input gives the same bits on every run and every GPU, float sums included:
    aggregates of tiles are folded strictly from left to right (single-pass scan with decoupled
    look-back: Merrill and Garland, NVIDIA NVR-2016-002, 2016). Host arrays may be larger than the
    GPU's memory (docs/memory.md). See docs/scan.md.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> ga.inclusive_scan(np.array([1.0, 2.0, 3.0], np.float32), 0.5, lambda a, b: a + b)
    array([1.5, 3.5, 6.5], dtype=float32)
    >>> ga.inclusive_scan(np.array([[3, 1, 4], [1, 5, 9]]), None, max, axis=1)
    array([[3, 3, 4],
           [1, 5, 9]])
    >>> first, value = np.array([True, False, True]), np.array([1, 2, 3])
    >>> ga.inclusive_scan((first, value), None, lambda a, b: b if b[0] else (a[0], a[1] + b[1]))
    (array([ True,  True,  True]), array([1, 3, 3]))
    """
    try:
        views, op, form = taken(x, op, "inclusive_scan", beside=(init, out))
    except Elsewhere as elsewhere:
        options = {"axis": axis, "reverse": reverse, "dtype": dtype}
        return elsewhere.call("inclusive_scan", out, stream, x, init, op, **options)
    kind: type[Scan] = Scan
    extra_params: tuple[Any, ...] = ()
    if type(init) not in PLAIN:
        from gpualgo._algorithms.scan.started import PerRowInitScan
        from gpualgo._pipeline import starts

        if starts.are_arrays(init, INCLUSIVE, one_is_value=not isinstance(init, tuple)):
            init_views, pattern = starts.taken(init, INCLUSIVE)
            extra_params = pattern, elements.classes_of(pattern)
            kind, views, init = PerRowInitScan, (*views, *init_views), None
        elif may_be_array(init, form):
            init = checks.start_of(init, views[0], INCLUSIVE)
    if reverse is not False:
        reverse = checks.flag(reverse, "reverse", INCLUSIVE)
    if axis is not None and type(axis) is not int:
        axis = checks.plain_axis(axis, INCLUSIVE)
    params = axis, reverse, dtype, form, elements.classes_of(dtype), *extra_params
    problem = problem_of(kind, views, op, init, params, INCLUSIVE)
    if problem.is_checked:
        tried(problem, x, op, init, stream)
    solve = run if problem.form is None else inputs.solve
    return solve(problem, views, op, init, out, stream)


@overload
def exclusive_scan(
    x: ty.Same, init: ty.FirstValue | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, axis: ty.Axis = None,
    reverse: bool = False, dtype: ty.DType | None = None, out: ty.Same | None = None,
    stream: ty.Stream | None = None,
) -> ty.Same: ...  # fmt: skip
@overload
def exclusive_scan(
    x: ty.Foreign, init: ty.FirstValue | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, axis: ty.Axis = None,
    reverse: bool = False, dtype: ty.DType | None = None, out: ty.AnyArray | None = None,
    stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
@overload
def exclusive_scan(
    x: ty.Host, init: ty.FirstValue | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, axis: ty.Axis = None,
    reverse: bool = False, dtype: ty.DType | None = None, out: ty.Host | None = None,
    stream: ty.Stream | None = None,
) -> ty.NumPyArray: ...  # fmt: skip
@overload
def exclusive_scan(  # tuples
    x: ty.Arrays, init: ty.FirstValues | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, axis: ty.Axis = None,
    reverse: bool = False, dtype: ty.DTypes | None = None, out: ty.Outs | None = None,
    stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
def exclusive_scan(
    x: Any,
    init: Any = None,
    op: Any = operator.add,
    *,
    axis: Any = None,
    reverse: bool = False,
    dtype: Any = None,
    out: Any = None,
    stream: Any = None,
) -> Any:
    """Combine all elements before each: ``y[0] = init``, ``y[i] = init op x[0] op … op x[i-1]``.

    Parameters
    ----------
    x, axis, dtype, out, stream
        As for `inclusive_scan`.
    init : scalar, array, or tuple of them, optional
        The first result, as for `inclusive_scan`; without it the operator's identity, which
        ``operator.add``, ``mul``, ``and_``, ``or_``, ``xor`` and NumPy's logical functions have.
    op : callable
        ``op(a, b)``, associative, as for `inclusive_scan`. Without `init` it must have an
        identity: ``gpualgo.Operator(op, identity=...)`` gives it one.
    reverse : bool
        Go from the last element to the first: ``y[i] = init op x[n-1] op … op x[i+1]``.

    Returns
    -------
    array, or tuple of arrays
        Of the shape of `x`, or one-dimensional if `axis` is None; in the library of `x`. A device
        array is returned without waiting for it. Tuples give the same kind of tuple, a structured
        array a structured array.

    Raises
    ------
    ValueError
        There is neither init nor an identity, even if `x` is empty.
    TypeError, ValueError, numpy.exceptions.AxisError, CompileError
        As `inclusive_scan`.

    Notes
    -----
    Cost, determinism and paper: as `inclusive_scan`. See docs/scan.md.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> ga.exclusive_scan(np.array([3, 1, 4, 1]))
    array([0, 3, 4, 8])
    >>> ga.exclusive_scan(np.array([3, 1, 4, 1]), 0, max, reverse=True)
    array([4, 4, 1, 0])
    >>> x = np.array([3, 1, 4])
    >>> ga.exclusive_scan((x, x), (0, 1), lambda a, b: (a[0] + b[0], a[1] * b[1]))
    (array([0, 3, 4]), array([1, 3, 3]))
    """
    try:
        views, op, form = taken(x, op, "exclusive_scan", beside=(init, out))
    except Elsewhere as elsewhere:
        options = {"axis": axis, "reverse": reverse, "dtype": dtype}
        return elsewhere.call("exclusive_scan", out, stream, x, init, op, **options)
    kind: type[Scan] = ExclusiveScan
    extra_params: tuple[Any, ...] = ()
    if type(init) not in PLAIN:
        from gpualgo._algorithms.scan.started import PerRowInitExclusiveScan
        from gpualgo._pipeline import starts

        if starts.are_arrays(init, EXCLUSIVE, one_is_value=not isinstance(init, tuple)):
            init_views, pattern = starts.taken(init, EXCLUSIVE)
            extra_params = pattern, elements.classes_of(pattern)
            kind, views, init = PerRowInitExclusiveScan, (*views, *init_views), None
        elif may_be_array(init, form):
            init = checks.start_of(init, views[0], EXCLUSIVE)
    if reverse is not False:
        reverse = checks.flag(reverse, "reverse", EXCLUSIVE)
    if axis is not None and type(axis) is not int:
        axis = checks.plain_axis(axis, EXCLUSIVE)
    params = axis, reverse, dtype, form, elements.classes_of(dtype), *extra_params
    problem = problem_of(kind, views, op, init, params, EXCLUSIVE)
    if problem.is_checked:
        tried(problem, x, op, init, stream)
    solve = run if problem.form is None else inputs.solve
    return solve(problem, views, op, init, out, stream)
