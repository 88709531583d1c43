"""The public functions `reduce_by_key`, `inclusive_scan_by_key` and `exclusive_scan_by_key`."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from gpualgo._algorithms.by_key import calls
from gpualgo._algorithms.by_key.problem import (
    ExclusiveScan,
    InclusiveScan,
    ReducedByKey,
    Reduction,
)
from gpualgo._base.errors import Elsewhere
from gpualgo._pipeline import checks, counted, inputs
from gpualgo._pipeline.run import run

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty
    from gpualgo._operators.operator import Operator

__all__ = ["ReducedByKey", "exclusive_scan_by_key", "inclusive_scan_by_key", "reduce_by_key"]


def reduce_by_key(
    keys: ty.AnyArray | ty.Arrays, x: ty.AnyArray | ty.Arrays, init: ty.FirstValues | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, consecutive: bool = False,
    eq: ty.BinaryPredicate | None = None, dtype: ty.DTypes | None = None,
    out: ty.OutPair | None = None, out_count: ty.AnyArray | None = None,
    stream: ty.Stream | None = None,
) -> Any:  # fmt: skip
    """Combine the elements of equal keys: ``aggregate = init op x[i] op x[j] op …``.

    Parameters
    ----------
    keys : array, or tuple of arrays
        NumPy, CuPy, PyTorch or anything with ``__cuda_array_interface__`` or DLPack; any shape,
        which is flattened in C order, any strides; or lazy. A tuple or namedtuple of arrays, which
        are broadcast together, or a NumPy structured array, is an array of tuples. Not complex,
        unless `consecutive`.
    x : array, or tuple of arrays
        An element for each key: of the shape of `keys`, otherwise as `keys`. A key and an element
        have at most 8 numbers together.
    init : scalar, or tuple of them, optional
        The initial value of each group, as for `reduce`.
    op : callable
        ``op(a, b)``, associative, as for `reduce`. It need not commute, nor have an identity:
        elements of a group are combined in their order.
    consecutive : bool
        Group neighbours only: each run of equal keys gives a result, in the order of the runs.
        Without it keys may come in any order, and each distinct key gives a result, ascending.
    eq : callable, optional
        ``eq(a, b)`` returns a bool: whether a key b belongs to the run of the previous key a. Only
        with `consecutive`. Without `eq`, keys of equal values are equal: zeros of both signs, and
        all NaN.
    dtype : dtype, optional
        The accumulator's and the aggregates' dtype, as for `reduce`.
    out : tuple of two arrays, optional
        Where to write keys and aggregates (tuples if they are tuples): one dimension, one length,
        the device of `x`. Nothing is written past their ends, or after the last result.
    out_count : array, optional
        Where to write the number of results, even if `out` is too short for all: int64, of one
        element, on the device of `x`. With it the call does not wait.
    stream : stream, optional
        A CUDA stream for device arrays; without it the current stream of the arrays' library.

    Returns
    -------
    (keys, aggregates)
        A namedtuple of arrays of one dimension; the key of a group is its first in `keys`. Without
        `out`: new arrays; the call waits for their length. With `out` alone: the parts of it that
        were written, also after waiting. With `out` and `out_count`: `out` itself, without waiting,
        which can be recorded into a graph.

    Raises
    ------
    TypeError
        `keys` or `x` is no array, a dtype has no kernel, `eq` returns no bool, or init, out or op's
        result does not fit.
    ValueError
        `keys` and `x` differ in shape, `eq` is given without `consecutive`, out is too short and
        `out_count` is not given (the message has the length), or out shares memory with an input.
    CompileError
        numba cannot compile `op` or `eq`.

    Notes
    -----
    With `consecutive` each element is read and each result written once, in one kernel launch;
    temporary storage 16 bytes for each few thousand elements. Otherwise a stable sort comes first.
    The same input gives the same bits on every run and every GPU: runs that continue across tiles
    are folded strictly from left to right (single-pass scan with decoupled look-back: Merrill and
    Garland, NVIDIA NVR-2016-002, 2016). See docs/by_key.md.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> keys, x = np.array([7, 5, 7, 7, 5]), np.array([1, 2, 3, 4, 5])
    >>> ga.reduce_by_key(keys, x)
    ReducedByKey(keys=array([5, 7]), aggregates=array([7, 8]))
    >>> ga.reduce_by_key(keys, x, None, max, consecutive=True)
    ReducedByKey(keys=array([7, 5, 7, 5]), aggregates=array([1, 2, 4, 5]))
    """
    where = "reduce_by_key"
    is_grouped = _consecutive(consecutive, eq, where)
    try:
        if not is_grouped:
            from gpualgo._algorithms.by_key import grouped

            return grouped.reduce(keys, x, init, op, dtype, out, out_count, stream)
        outs = (out, out_count)
        problem, views, op = calls.solvable(
            Reduction, where, keys, x, init, op, eq, dtype, stream, outs
        )
    except Elsewhere as elsewhere:
        options = {"consecutive": consecutive, "eq": eq, "dtype": dtype}
        first_out = out_count if out is None else out
        return elsewhere.call(where, first_out, stream, keys, x, init, op, **options)
    return counted.solve(problem, views, op, out, out_count, stream, init)


def inclusive_scan_by_key(
    keys: ty.AnyArray | ty.Arrays, x: ty.AnyArray | ty.Arrays, init: ty.FirstValues | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, consecutive: bool = False,
    eq: ty.BinaryPredicate | None = None, dtype: ty.DTypes | None = None,
    out: ty.AnyArray | ty.Outs | None = None, stream: ty.Stream | None = None,
) -> Any:  # fmt: skip
    """Combine each element with all before it of an equal key: ``y[i] = init op … op x[i]``.

    Parameters
    ----------
    keys, x, op, consecutive, eq, dtype, stream
        As for `reduce_by_key`.
    init : scalar, or tuple of them, optional
        The initial value of each group.
    out : array, or tuple of arrays, optional
        Where to write the result: one dimension, of the length and device of `x`. With
        `consecutive` it may be `x` itself.

    Returns
    -------
    array, or tuple of arrays
        A result for each element, at the element's index, in one dimension; in the library of `x`.
        A device array is returned without waiting for it.

    Raises
    ------
    TypeError, ValueError, CompileError
        As `reduce_by_key`.

    Notes
    -----
    With `consecutive` each element is read and written once, in one kernel launch; temporary
    storage 8 bytes for each few thousand elements. Otherwise a stable sort comes first, and results
    are moved back to their elements' indices. Determinism and paper: as `reduce_by_key`. See
    docs/by_key.md.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> keys, x = np.array([7, 5, 7, 7, 5]), np.array([1, 2, 3, 4, 5])
    >>> ga.inclusive_scan_by_key(keys, x)
    array([1, 2, 4, 8, 7])
    >>> ga.inclusive_scan_by_key(keys, x, consecutive=True)
    array([1, 2, 3, 7, 5])
    """
    kind, where = InclusiveScan, "inclusive_scan_by_key"
    if not _consecutive(consecutive, eq, where):
        return _grouped_scan(kind, where, keys, x, init, op, dtype, out, stream)
    problem, views, op = calls.solvable(kind, where, keys, x, init, op, eq, dtype, stream, (out,))
    solve = run if problem.form is None else inputs.solve
    return solve(problem, views, op, init, out, stream)


def exclusive_scan_by_key(
    keys: ty.AnyArray | ty.Arrays, x: ty.AnyArray | ty.Arrays, init: ty.FirstValues | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, consecutive: bool = False,
    eq: ty.BinaryPredicate | None = None, dtype: ty.DTypes | None = None,
    out: ty.AnyArray | ty.Outs | None = None, stream: ty.Stream | None = None,
) -> Any:  # fmt: skip
    """Combine all elements before each of an equal key: ``y[i] = init op x[h] op … op x[i-1]``.

    Parameters
    ----------
    keys, x, op, consecutive, eq, dtype, out, stream
        As for `inclusive_scan_by_key`.
    init : scalar, or tuple of them, optional
        The first result of each group; without it the operator's identity, as for `exclusive_scan`.

    Returns
    -------
    array, or tuple of arrays
        As of `inclusive_scan_by_key`.

    Raises
    ------
    ValueError
        There is neither init nor an identity, even if `x` is empty.
    TypeError, ValueError, CompileError
        As `reduce_by_key`.

    Notes
    -----
    Cost, determinism and paper: as `inclusive_scan_by_key`. See docs/by_key.md.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> keys, x = np.array([7, 5, 7, 7, 5]), np.array([1, 2, 3, 4, 5])
    >>> ga.exclusive_scan_by_key(keys, x)
    array([0, 0, 1, 4, 2])
    """
    kind, where = ExclusiveScan, "exclusive_scan_by_key"
    if not _consecutive(consecutive, eq, where):
        return _grouped_scan(kind, where, keys, x, init, op, dtype, out, stream)
    problem, views, op = calls.solvable(kind, where, keys, x, init, op, eq, dtype, stream, (out,))
    solve = run if problem.form is None else inputs.solve
    return solve(problem, views, op, init, out, stream)


def _consecutive(consecutive: Any, eq: Any, where: str) -> bool:
    """Return whether only neighbours are grouped."""
    if consecutive is not True:
        consecutive = checks.flag(consecutive, "consecutive", where)
    if eq is not None and not consecutive:
        raise ValueError(
            f"{where}: eq is given without consecutive, and keys in any order are grouped by the "
            "order of their values; pass consecutive=True, or no eq"
        )
    return bool(consecutive)


def _grouped_scan(kind: Any, *arguments: Any) -> Any:
    from gpualgo._algorithms.by_key import grouped

    return grouped.scan(kind, *arguments)
