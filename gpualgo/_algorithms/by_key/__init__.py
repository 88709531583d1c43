"""The public functions `reduce_by_key`, `inclusive_scan_by_key` and `exclusive_scan_by_key`."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from gpualgo._algorithms.by_key import problem as calls
from gpualgo._algorithms.by_key.problem import ReducedByKey
from gpualgo._base.errors import Elsewhere
from gpualgo._pipeline import counted
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
    """Return the elements of each key combined: ``aggregate = init op x[i] op x[j] op …``.

    Parameters
    ----------
    keys : array, or tuple of arrays
        Array of any library, shape and strides, flattened in C order; lazy or not. Complex keys
        only with `consecutive`. A tuple or namedtuple of arrays, which are broadcast together, or a
        NumPy structured array, is an array of tuples.
    x : array, or tuple of arrays
        An element for each key, with the shape of `keys`. A key and an element have at most 8
        numbers together.
    init : scalar, or tuple of them, optional
        The initial value of each group, as for `reduce`.
    op : callable
        ``op(a, b)``, associative and pure, as for `reduce`. It need not commute and needs no
        identity: the elements of a group are combined in their order.
    consecutive : bool
        False: a group for each distinct key, in ascending order; keys may be in any order. True: a
        group for each run of equal neighbours, in the order of the runs.
    eq : callable, optional
        ``eq(a, b)`` returns a bool: whether a key b belongs to the run of the previous key a. Only
        with `consecutive`. By default keys are equal if their values are; -0.0 equals 0.0, and all
        NaN are equal.
    dtype : dtype, optional
        The dtype of the accumulator and the aggregates, as for `reduce`.
    out : tuple of two arrays, optional
        Arrays for keys and aggregates (tuples if they are tuples): one-dimensional, of the same
        length, on the device of `x`. Elements after the last result are not written.
    out_count : array, optional
        Array for the number of groups, even if `out` is too short for all: int64, one element, on
        the device of `x`. With it the call does not synchronise.

    Returns
    -------
    (keys, aggregates)
        A namedtuple of one-dimensional arrays; the key of a group is its first in `keys`.

        - Without `out`: new arrays; the call waits for their length.
        - With `out`: the written parts of `out`; the call waits, too.
        - With `out` and `out_count`: `out` itself; the call does not wait and can be recorded in a
          graph.

    Raises
    ------
    TypeError
        `keys` or `x` is not an array, a dtype is not supported, `eq` does not return a bool, or
        `init`, `out` or the result of `op` has a wrong dtype or structure.
    ValueError
        `keys` and `x` differ in shape; `eq` is given without `consecutive`; `out` is too short and
        `out_count` is not given (the message contains the required length); or `out` shares memory
        with an input.
    CompileError
        numba cannot compile `op` or `eq`.

    Notes
    -----
    With `consecutive` each element is read once and each result written once, in one kernel launch;
    temporary storage is 16 bytes for each few thousand elements. Otherwise a stable sort comes
    first. Tables are used instead if keys are integers of a narrow range: on a GPU of less than
    1024, for 2^23 numbers or more; on the CPU of an eighth of their number, for 16384 or more. A
    GPU copies large transposed arrays first.

    The same input gives the same bits on every run and every GPU: runs that continue across tiles
    are combined strictly from left to right (single-pass scan with decoupled look-back: D. Merrill
    and M. Garland, NVIDIA NVR-2016-002, 2016).

    >>> keys, x = np.array([7, 5, 7, 7, 5]), np.array([1, 2, 3, 4, 5])
    >>> ga.reduce_by_key(keys, x)
    ReducedByKey(keys=array([5, 7]), aggregates=array([7, 8]))
    >>> ga.reduce_by_key(keys, x, None, max, consecutive=True)
    ReducedByKey(keys=array([7, 5, 7, 5]), aggregates=array([1, 2, 4, 5]))
    """
    where = "reduce_by_key"
    outs = out, out_count
    try:
        problem, views, op = calls.parse_call(
            calls.Reduction, where, keys, x, init, op, consecutive, eq, dtype, stream, outs
        )
    except Elsewhere as elsewhere:
        options = {"consecutive": consecutive, "eq": eq, "dtype": dtype}
        first_out = out_count if out is None else out
        return elsewhere.call(where, first_out, stream, keys, x, init, op, **options)
    return counted.solve(problem, views, op, init, out, stream, out_count)


def inclusive_scan_by_key(
    keys: ty.AnyArray | ty.Arrays, x: ty.AnyArray | ty.Arrays, init: ty.FirstValues | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, consecutive: bool = False,
    eq: ty.BinaryPredicate | None = None, dtype: ty.DTypes | None = None,
    out: ty.AnyArray | ty.Outs | None = None, stream: ty.Stream | None = None,
) -> Any:  # fmt: skip
    """Return each element combined with all before it of its key: ``y[i] = init op … op x[i]``.

    Parameters
    ----------
    keys, x, op, consecutive, eq, dtype, stream
        As for `reduce_by_key`.
    init : scalar, or tuple of them, optional
        The initial value of each group.
    out : array, or tuple of arrays, optional
        Array for the result: one-dimensional, with the length and device of `x`. With `consecutive`
        it may be `x` itself.

    Returns
    -------
    array, or tuple of arrays
        One-dimensional: a result for each element, at the element's index; in the library of `x`.
        For device arrays the call does not synchronise.

    Raises
    ------
    TypeError, ValueError, CompileError
        As for `reduce_by_key`.

    Notes
    -----
    With `consecutive` each element is read and written once, in one kernel launch; temporary
    storage is 8 bytes for each few thousand elements. Otherwise a stable sort comes first, and
    results are moved back to their elements' indices. Copies, determinism and algorithm are those
    of `reduce_by_key`.

    >>> keys, x = np.array([7, 5, 7, 7, 5]), np.array([1, 2, 3, 4, 5])
    >>> ga.inclusive_scan_by_key(keys, x)
    array([1, 2, 4, 8, 7])
    >>> ga.inclusive_scan_by_key(keys, x, consecutive=True)
    array([1, 2, 3, 7, 5])
    """
    problem, views, op = calls.parse_call(
        calls.InclusiveScan, "inclusive_scan_by_key", keys, x, init, op, consecutive, eq, dtype,
        stream, (out,),
    )  # fmt: skip
    return run(problem, views, op, init, out, stream)


def exclusive_scan_by_key(
    keys: ty.AnyArray | ty.Arrays, x: ty.AnyArray | ty.Arrays, init: ty.FirstValues | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, consecutive: bool = False,
    eq: ty.BinaryPredicate | None = None, dtype: ty.DTypes | None = None,
    out: ty.AnyArray | ty.Outs | None = None, stream: ty.Stream | None = None,
) -> Any:  # fmt: skip
    """Return all elements of the key before each, combined: ``y[i] = init op … op x[i-1]``.

    Parameters
    ----------
    keys, x, op, consecutive, eq, dtype, out, stream
        As for `inclusive_scan_by_key`.
    init : scalar, or tuple of them, optional
        The initial value of each group, which is its first result; by default the operator's
        identity, as for `exclusive_scan`.

    Returns
    -------
    array, or tuple of arrays
        As for `inclusive_scan_by_key`.

    Raises
    ------
    ValueError
        There is neither `init` nor an identity, even if `x` is empty.
    TypeError, ValueError, CompileError
        As for `reduce_by_key`.

    Notes
    -----
    Cost, determinism and algorithm are those of `inclusive_scan_by_key`.

    >>> keys, x = np.array([7, 5, 7, 7, 5]), np.array([1, 2, 3, 4, 5])
    >>> ga.exclusive_scan_by_key(keys, x)
    array([0, 0, 1, 4, 2])
    """
    problem, views, op = calls.parse_call(
        calls.ExclusiveScan, "exclusive_scan_by_key", keys, x, init, op, consecutive, eq, dtype,
        stream, (out,),
    )  # fmt: skip
    return run(problem, views, op, init, out, stream)
