"""The public functions `merge_sort`, `sort` and `merge`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from gpualgo._algorithms import radix_sort, typed_as
from gpualgo._algorithms.merge_sort import problem as calls
from gpualgo._base.errors import Elsewhere
from gpualgo._pipeline.run import run

if TYPE_CHECKING:
    import numpy as np

    from gpualgo._base import annotations as ty
    from gpualgo._operators.operator import Operator


@overload
def merge_sort(
    keys: np.ndarray[Any, ty.Kind], values: None = None, *,
    less: ty.BinaryPredicate | Operator | None = None, descending: ty.Ways = False,
    axis: ty.Axis = -1, out: ty.Outs | None = None, stream: ty.Stream | None = None,
) -> np.ndarray[Any, ty.Kind]: ...  # fmt: skip
@overload
def merge_sort(
    keys: ty.Same, values: None = None, *, less: ty.BinaryPredicate | Operator | None = None,
    descending: bool = False, axis: ty.Axis = -1, out: ty.Same | None = None,
    stream: ty.Stream | None = None,
) -> ty.Same: ...  # fmt: skip
@overload
def merge_sort(
    keys: ty.AnyArray | ty.Arrays, values: ty.AnyArray | ty.Arrays | None = None, *,
    less: ty.BinaryPredicate | Operator | None = None, descending: ty.Ways = False,
    axis: ty.Axis = -1, out: ty.Outs | ty.OutPair | None = None,
    stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
def merge_sort(
    keys: Any, values: Any = None, *, less: Any = None, descending: Any = False, axis: ty.Axis = -1,
    out: Any = None, stream: Any = None,
) -> Any:  # fmt: skip
    """Return keys stably sorted by a comparison function, and values moved with them.

    Parameters
    ----------
    keys : array, or tuple of arrays
        Array of any library, shape and strides; complex keys only with `less`. A tuple or
        namedtuple of arrays, which are broadcast together, or a NumPy structured array, is an array
        of tuples of up to 8 numbers.
    values : array, or tuple of arrays, optional
        Moved with their keys: the shape and device of `keys`, any dtype without Python objects,
        structured ones included. A tuple's arrays are broadcast to the shape of `keys`.
    less : callable, optional
        ``less(a, b)`` returns whether a sorts before b: a strict weak order, like ``<``, and pure.
        Keys of which neither sorts before the other are equal and keep their order. Tuples are
        passed as tuples or namedtuples. By default keys are sorted by value, as by `sort`.
    descending : bool, or tuple of bools
        Reverse the order: ``less(b, a)``; equal keys keep their input order. Without `less` NaN
        stays last, and a tuple with the structure of `keys` sets the order for each field.
    axis : int or None
        The axis to sort along, each row separately; None flattens in C order.
    out : array or tuple of two arrays, optional
        Array for the sorted keys; with `values` a tuple (keys, values), each itself a tuple if its
        input is one. An array may be its own input, which is then sorted in place; otherwise it
        must not overlap the inputs.

    Returns
    -------
    array or tuple of two arrays
        The sorted keys; with `values` the tuple (keys, values); `out` itself if given. Tuples give
        the same kind of tuple, a structured array a structured array. For device arrays the call
        does not synchronise.

    Raises
    ------
    TypeError
        An argument is not an array, or its dtype cannot be sorted or moved; `less` does not return
        a bool, or takes another number of arguments; `descending` or `out` has a wrong structure.
    ValueError
        Shapes differ or do not broadcast, or `out` partly overlaps an input.

    Notes
    -----
    `less` is called about n · log2(n) times, only on keys of the input. On a GPU tiles are sorted
    in shared memory and then merged pairwise by "merge path" (O. Green, R. McColl and D. Bader,
    2012): each doubling of the run length reads and writes all keys once. Temporary storage: a copy
    of keys and values.

    >>> ga.merge_sort(np.array([31, 12, 30, 11]), less=lambda a, b: a // 10 < b // 10)
    array([12, 11, 31, 30])
    >>> x, y = np.array([3.0, 1.0]), np.array([4.0, 1.0])
    >>> ga.merge_sort((x, y), less=lambda p, q: p[0] ** 2 + p[1] ** 2 < q[0] ** 2 + q[1] ** 2)
    (array([1., 3.]), array([1., 4.]))
    """
    arguments = keys, values, less, descending, axis, out, stream
    problem, views, out = calls.sort_spec("merge_sort", *arguments)
    return run(problem, views, less, None, out, stream)


@typed_as(merge_sort)
def sort(
    keys: Any, values: Any = None, *, less: Any = None, descending: Any = False, axis: ty.Axis = -1,
    out: Any = None, stream: Any = None,
) -> Any:  # fmt: skip
    """Return keys stably sorted by value or by a comparison function, and values moved with them.

    Parameters
    ----------
    keys, values, less, descending, axis, out, stream
        As for `merge_sort`.

    Returns
    -------
    array or tuple of two arrays
        As for `merge_sort`.

    Raises
    ------
    TypeError, ValueError, numpy.exceptions.AxisError, CompileError
        As for `merge_sort`.

    Notes
    -----
    Without `less` it calls `radix_sort`, which is faster; with it `merge_sort`.

    >>> ga.sort(np.array([3, -4, 1]))
    array([-4,  1,  3])
    >>> ga.sort(np.array([3, -4, 1]), less=lambda a, b: abs(a) < abs(b))
    array([ 1,  3, -4])
    """
    params = descending, axis, out, stream
    try:
        if less is None:
            bits = 0, None
            parsed = radix_sort.sort_spec("sort", keys, values, params[0], bits, *params[1:])
        else:
            parsed = calls.sort_spec("sort", keys, values, less, *params)
    except Elsewhere as elsewhere:
        options = {"less": less, "descending": descending, "axis": axis}
        return elsewhere.call("sort", out, stream, keys, values, **options)
    problem, views, out = parsed
    return run(problem, views, less, None, out, stream)


@overload
def merge(
    a: np.ndarray[Any, ty.Kind], b: np.ndarray[Any, ty.Kind], *, a_values: None = None,
    b_values: None = None, less: ty.BinaryPredicate | Operator | None = None,
    descending: ty.Ways = False, out: ty.Outs | None = None, stream: ty.Stream | None = None,
) -> np.ndarray[Any, ty.Kind]: ...  # fmt: skip
@overload
def merge(
    a: ty.Same, b: ty.Same, *, a_values: None = None, b_values: None = None,
    less: ty.BinaryPredicate | Operator | None = None, descending: bool = False,
    out: ty.Same | None = None, stream: ty.Stream | None = None,
) -> ty.Same: ...  # fmt: skip
@overload
def merge(
    a: ty.AnyArray | ty.Arrays, b: ty.AnyArray | ty.Arrays, *,
    a_values: ty.AnyArray | ty.Arrays | None = None,
    b_values: ty.AnyArray | ty.Arrays | None = None,
    less: ty.BinaryPredicate | Operator | None = None, descending: ty.Ways = False,
    out: ty.Outs | ty.OutPair | None = None, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
def merge(
    a: Any, b: Any, *, a_values: Any = None, b_values: Any = None, less: Any = None,
    descending: Any = False, out: Any = None, stream: Any = None,
) -> Any:  # fmt: skip
    """Return two sorted arrays merged into one; of equal keys those of a come first.

    Parameters
    ----------
    a, b : array, or tuple of arrays
        One-dimensional keys of one dtype, each sorted by `less`; any lengths and strides. Tuples
        and structured arrays as for `merge_sort`.
    a_values, b_values : array, or tuple of arrays, optional
        Moved with their keys: both or neither, of one dtype and structure, as for `merge_sort`.
    less : callable, optional
        As for `merge_sort`.
    descending : bool, or tuple of bools
        As for `merge_sort`; a and b are then in descending order.
    out : array or tuple of two arrays, optional
        Array for the keys; with values a tuple of keys and values. It must not overlap the inputs.

    Returns
    -------
    array or tuple of two arrays
        The keys of both, as `merge_sort` sorts a followed by b; with values the tuple (keys,
        values); `out` itself if given.

    Raises
    ------
    TypeError
        As for `merge_sort`; also if a and b, or their values, differ in dtype or structure, or only
        one has values.
    ValueError
        An array is not one-dimensional, values do not match their keys, or `out` overlaps an input.

    Notes
    -----
    Reads and writes each element once, in one or two kernel launches. If a or b is not sorted, the
    result is undefined; with ``GPUALGO_CHECK=1`` in the environment a ValueError is raised.

    >>> ga.merge(np.array([1, 3, 5]), np.array([2, 3]))
    array([1, 2, 3, 3, 5])
    >>> ga.merge(np.array([1, 3]), np.array([3]), a_values=np.array(["a", "b"]),
    ...          b_values=np.array(["c"]))
    (array([1, 3, 3]), array(['a', 'b', 'c'], dtype='<U1'))
    """
    problem, views = calls.merge_problem(a, b, a_values, b_values, less, descending, out, stream)
    return run(problem, views, less, None, out, stream)
