"""The public functions `radix_sort` and `argsort`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np

from gpualgo._algorithms import materialized
from gpualgo._algorithms.radix_sort.problem import Forms, Sort, arguments_of, descending_by_field
from gpualgo._arrays.view import NumPy, View, as_view
from gpualgo._base.errors import Elsewhere
from gpualgo._lazy import is_lazy
from gpualgo._pipeline import checks
from gpualgo._pipeline.problem import Problem, problem_of
from gpualgo._pipeline.run import remember, run, run_remembered

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty

ndarray = np.ndarray
_LOOK = Sort.problems.look
_FIRST_BIT = 0  # the default of begin_bit, compared by identity

# In the keys of calls with default arguments (`run_remembered`).
SORT_OPTIONS = "radix_sort", False, -1
ARGSORT_OPTIONS = "argsort", False, -1, None


@overload
def radix_sort(
    keys: np.ndarray[Any, ty.Kind], values: None = None, *, descending: ty.Ways = False,
    begin_bit: SupportsIndex = 0, end_bit: SupportsIndex | None = None, axis: ty.Axis = -1,
    out: ty.NumPyArray | None = None, stream: ty.Stream | None = None,
) -> np.ndarray[Any, ty.Kind]: ...  # fmt: skip
@overload
def radix_sort(
    keys: ty.Same, values: None = None, *, descending: bool = False,
    begin_bit: SupportsIndex = 0, end_bit: SupportsIndex | None = None, axis: ty.Axis = -1,
    out: ty.Same | None = None, stream: ty.Stream | None = None,
) -> ty.Same: ...  # fmt: skip
@overload
def radix_sort(
    keys: ty.Foreign | ty.HashableHost, values: None = None, *, descending: bool = False,
    begin_bit: SupportsIndex = 0, end_bit: SupportsIndex | None = None, axis: ty.Axis = -1,
    out: ty.AnyArray | None = None, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
@overload
def radix_sort(
    keys: np.ndarray[Any, ty.Kind], values: np.ndarray[Any, ty.ValueKind], *,
    descending: ty.Ways = False, begin_bit: SupportsIndex = 0, end_bit: SupportsIndex | None = None,
    axis: ty.Axis = -1, out: tuple[ty.NumPyArray, ty.NumPyArray] | None = None,
    stream: ty.Stream | None = None,
) -> tuple[np.ndarray[Any, ty.Kind], np.ndarray[Any, ty.ValueKind]]: ...  # fmt: skip
@overload
def radix_sort(
    keys: ty.Same, values: ty.Same, *, descending: bool = False,
    begin_bit: SupportsIndex = 0, end_bit: SupportsIndex | None = None, axis: ty.Axis = -1,
    out: tuple[ty.Same, ty.Same] | None = None, stream: ty.Stream | None = None,
) -> tuple[ty.Same, ty.Same]: ...  # fmt: skip
@overload
def radix_sort(
    keys: ty.Foreign | ty.HashableHost, values: ty.AnyArray, *, descending: bool = False,
    begin_bit: SupportsIndex = 0, end_bit: SupportsIndex | None = None, axis: ty.Axis = -1,
    out: tuple[ty.AnyArray, ty.AnyArray] | None = None, stream: ty.Stream | None = None,
) -> tuple[Any, Any]: ...  # fmt: skip
@overload  # tuples
def radix_sort(
    keys: ty.Arrays, values: ty.AnyArray | ty.Arrays | None = None, *,
    descending: ty.Ways = False, axis: ty.Axis = -1, out: ty.Outs | ty.OutPair | None = None,
    stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
@overload
def radix_sort(
    keys: ty.AnyArray, values: ty.Arrays, *, descending: ty.Ways = False,
    begin_bit: SupportsIndex = 0, end_bit: SupportsIndex | None = None, axis: ty.Axis = -1,
    out: ty.OutPair | None = None, stream: ty.Stream | None = None,
) -> tuple[Any, Any]: ...  # fmt: skip
def radix_sort(
    keys: Any, values: Any = None, *, descending: Any = False, begin_bit: SupportsIndex = 0,
    end_bit: SupportsIndex | None = None, axis: ty.Axis = -1, out: Any = None, stream: Any = None,
) -> Any:  # fmt: skip
    """Return stably sorted keys, and values moved with them: ``keys[p]``, p = ``argsort(keys)``.

    Parameters
    ----------
    keys : array, or tuple of arrays
        Array of bool, integers, float16, bfloat16, float32 or float64; any library, shape and
        strides. A tuple or namedtuple of arrays, which are broadcast together, or a NumPy
        structured array, is an array of tuples of up to 8 numbers, compared field by field.
    values : array, or tuple of arrays, optional
        Moved with their keys: the shape and device of `keys`, any dtype without Python objects,
        structured ones included. A tuple's arrays are broadcast to the shape of `keys`.
    descending : bool, or tuple of bools
        Largest first; NaN stays last, and equal keys keep their input order. A tuple with the
        structure of `keys` sets it for each field.
    begin_bit, end_bit : int
        Compare only the bits ``[begin_bit, end_bit)`` of integer keys, 0 being the lowest; by
        default all. The sign bit of signed keys is inverted, so that negative keys come first. Not
        for tuples.
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
        An argument is not an array, or its dtype cannot be sorted (complex) or moved (objects);
        bits are given for bool, float or tuple keys; `descending` or `out` has a wrong structure;
        `out` has another dtype or is on another device.
    ValueError
        Shapes differ or do not broadcast, the range of bits is empty or too wide, or `out` partly
        overlaps an input.

    Notes
    -----
    NaN of either sign is last, also when descending, and -0.0 equals 0.0. Both keep their bits and,
    like all equal keys, their order, so the result is unique.

    A row is read once to count its digits, then read and written once for each 8 bits of the key in
    which keys differ. Temporary storage: a copy of keys and values, and a bounded table. Tuples of
    at most 8 bytes are packed into one key and sorted once; wider ones take one sort for each 8
    bytes. Page-locked host arrays are copied to the GPU and back. Host arrays may be larger than
    the GPU's memory: a row that does not fit is copied twice in each direction and needs a copy of
    itself on the host. The GPU's algorithm is "onesweep" (A. Adinets and D. Merrill,
    arXiv:2206.01784, 2022).

    >>> ga.radix_sort(np.array([3.0, np.nan, -1.0, 2.0], np.float32))
    array([-1.,  2.,  3., nan], dtype=float32)
    >>> ga.radix_sort(np.array([2, 1, 2, 0]), np.array(["b", "a", "c", "d"]), descending=True)
    (array([2, 2, 1, 0]), array(['b', 'c', 'a', 'd'], dtype='<U1'))
    >>> year, rain = np.array([2001, 2000, 2001, 2000]), np.array([3.5, 1.0, 7.0, 2.0], np.float32)
    >>> ga.radix_sort((year, rain), descending=(False, True))
    (array([2000, 2000, 2001, 2001]), array([2. , 1. , 7. , 3.5], dtype=float32))
    """
    is_usual = begin_bit is _FIRST_BIT and end_bit is None and stream is None
    is_usual = is_usual and type(descending) is bool and (axis is None or type(axis) is int)
    options = "radix_sort", descending, axis
    arrays = (keys,) if values is None else (keys, values)
    if is_usual:
        result = run_remembered(_LOOK, None, None, out, options, arrays)
        if result is not None:
            return result
    where, bits = "radix_sort", (begin_bit, end_bit)
    try:
        parsed = sort_spec(where, keys, values, descending, bits, axis, out, stream)
    except Elsewhere as elsewhere:
        named = {"descending": descending, "axis": axis}
        named |= {} if bits == (0, None) else {"begin_bit": begin_bit, "end_bit": end_bit}
        return elsewhere.call(where, out, stream, keys, values, **named)
    problem, views, out = parsed
    if is_usual and problem.warm is not None:
        remember(problem, views, None, None, options, arrays)
    return run(problem, views, None, None, out, stream)


def sort_spec(
    where: str, keys: Any, values: Any, descending: Any, bits: tuple[Any, Any], axis: Any,
    out: Any, stream: Any, index_dtype: Any = None,
) -> tuple[Problem, tuple[View, ...], Any]:  # fmt: skip
    """Return the problem, views and out of a call; with an index dtype, of an argsort."""
    views: tuple[View, ...]
    forms: Forms
    if values is None and type(keys) is ndarray and keys.dtype.names is None:
        views, forms = (NumPy.view(keys),), (None,)
    else:
        if is_lazy(keys) or is_lazy(values):
            keys, values, target = materialize(keys, values, axis, out, stream, where)
            out = target if index_dtype is None else out
        views, forms = arguments_of((keys,) if values is None else (keys, values), where)
    begin_bit, end_bit = bits
    if type(begin_bit) is not int:
        begin_bit = checks.integer(begin_bit, "begin_bit", where)
    if end_bit is not None and type(end_bit) is not int:
        end_bit = checks.integer(end_bit, "end_bit", where)
    if forms[0] is not None and (begin_bit, end_bit) != (0, None):
        raise TypeError(
            f"{where}: begin_bit and end_bit have no meaning for keys of several numbers; "
            "leave them out, and shift or mask the numbers instead"
        )
    if type(axis) is not int:
        axis = checks.plain_axis(axis, where)
    directions = descending_by_field(descending, forms[0], where)
    params = directions, begin_bit, end_bit, axis, index_dtype, forms
    return problem_of(Sort, views, None, None, params, where, 0), views, out


def materialize(
    keys: Any, values: Any, axis: Any, out: Any, stream: Any, where: str
) -> tuple[Any, Any, Any]:
    """Return keys, values and out with lazy inputs computed; new arrays are sorted in place."""
    are_lazy = is_lazy(keys) and (values is None or is_lazy(values))
    arguments, is_flat = {"keys": keys, "values": values}, axis is None and are_lazy
    keys, values = materialized(arguments, (out,), where, stream, is_flat)
    if out is None and are_lazy:
        out = keys if values is None else (keys, values)
    return keys, values, out


@overload
def argsort(
    keys: ty.Same, *, descending: bool = False, axis: ty.Axis = -1,
    dtype: ty.DType | None = None, out: ty.Same | None = None, stream: ty.Stream | None = None,
) -> ty.Same: ...  # fmt: skip
@overload
def argsort(
    keys: ty.Foreign, *, descending: bool = False, axis: ty.Axis = -1,
    dtype: ty.DType | None = None, out: ty.AnyArray | None = None, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
@overload
def argsort(
    keys: ty.Host, *, descending: ty.Ways = False, axis: ty.Axis = -1,
    dtype: ty.DType | None = None, out: ty.Host | None = None, stream: ty.Stream | None = None,
) -> ty.NumPyArray: ...  # fmt: skip
@overload  # tuples
def argsort(
    keys: ty.Arrays, *, descending: ty.Ways = False, axis: ty.Axis = -1,
    dtype: ty.DType | None = None, out: ty.AnyArray | None = None, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
def argsort(
    keys: Any, *, descending: Any = False, axis: ty.Axis = -1, dtype: Any = None, out: Any = None,
    stream: Any = None,
) -> Any:  # fmt: skip
    """Return the indices p that sort keys stably: ``keys[p[0]] ≤ keys[p[1]] ≤ …``.

    Parameters
    ----------
    keys : array, or tuple of arrays
        As for `radix_sort`.
    descending : bool, or tuple of bools
        Largest first; NaN stays last, and equal keys keep their input order. A tuple with the
        structure of `keys` sets it for each field.
    axis : int or None
        The axis to sort along, each row separately; None flattens in C order.
    dtype : dtype, optional
        The dtype of the indices: int64, int32, uint64 or uint32. By default that of `out`, else
        int64.
    out : array, optional
        Array for the indices, with the shape of `keys` (flattened if `axis` is None). It must not
        overlap `keys`.

    Returns
    -------
    array
        Indices along the axis, from 0 on; for device arrays the call does not synchronise.

    Raises
    ------
    TypeError
        `keys` is not an array or its dtype cannot be sorted; `dtype` is none of these, or not that
        of `out`.
    ValueError
        The index dtype is too narrow for a row, or `out` has another shape or overlaps `keys`.

    Notes
    -----
    The order of keys is that of `radix_sort`; the result is that of ``numpy.argsort`` with
    ``kind="stable"``. The first pass generates the indices.

    >>> ga.argsort(np.array([0.0, 2.0, -0.0, 1.0]))
    array([0, 2, 3, 1])
    >>> ga.argsort(np.array([[1, 3, 3]], np.uint8), descending=True, dtype=np.int32)
    array([[1, 2, 0]], dtype=int32)
    >>> ga.argsort((np.array([1, 0, 1, 0]), np.array([5, 7, 4, 6])))
    array([3, 1, 2, 0])
    """
    is_usual = dtype is None and stream is None and type(descending) is bool
    is_usual = is_usual and (axis is None or type(axis) is int)
    if is_usual:
        known = "argsort", descending, axis, out.dtype if type(out) is ndarray else None
        result = run_remembered(_LOOK, None, None, out, known, (keys,))
        if result is not None:
            return result
    try:
        index_dtype = dtype
        if dtype is None:
            index_dtype = np.int64 if out is None else as_view(out, "argsort: out").dtype
        options = descending, (0, None), axis, out, stream, index_dtype
        problem, views, _ = sort_spec("argsort", keys, None, *options)
    except Elsewhere as elsewhere:
        named = {"descending": descending, "axis": axis, "dtype": dtype}
        return elsewhere.call("argsort", out, stream, keys, **named)
    if is_usual and problem.warm is not None:
        remember(problem, views, None, None, known, (keys,))
    return run(problem, views, None, None, out, stream)
