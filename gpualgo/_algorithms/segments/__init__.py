"""The public functions on segments: `segmented_reduce` and the two scans."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, overload

from gpualgo._algorithms import typed_as
from gpualgo._algorithms.segments import problem as of_segments
from gpualgo._algorithms.segments.problem import (
    Segmented,
    SegmentedExclusiveScan,
    SegmentedReduction,
    SegmentedScan,
)
from gpualgo._base.errors import Elsewhere
from gpualgo._lazy.sources import parse_input, tried
from gpualgo._pipeline import checks
from gpualgo._pipeline.problem import PLAIN, parse, problem_of
from gpualgo._pipeline.run import run

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty
    from gpualgo._operators.operator import Operator


@overload
def segmented_reduce(
    x: ty.Same, offsets: ty.AnyArray, init: ty.FirstValue | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, dtype: ty.DType | None = None,
    out: ty.Same | None = None, stream: ty.Stream | None = None,
) -> ty.Same: ...  # fmt: skip
@overload
def segmented_reduce(
    x: ty.Foreign, offsets: ty.AnyArray, init: ty.FirstValue | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, dtype: ty.DType | None = None,
    out: ty.AnyArray | None = None, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
@overload
def segmented_reduce(
    x: ty.Host, offsets: ty.AnyArray, init: ty.FirstValue | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, dtype: ty.DType | None = None,
    out: ty.Host | None = None, stream: ty.Stream | None = None,
) -> ty.NumPyArray: ...  # fmt: skip
@overload
def segmented_reduce(  # tuples
    x: ty.Arrays, offsets: ty.AnyArray, init: ty.FirstValues | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, dtype: ty.DTypes | None = None,
    out: ty.Outs | None = None, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
def segmented_reduce(
    x: Any, offsets: Any, init: Any = None, op: Any = operator.add, *, dtype: Any = None,
    out: Any = None, stream: Any = None,
) -> Any:  # fmt: skip
    """Return the elements of each segment combined: ``y[i] = init op x[offsets[i]] op …``.

    Parameters
    ----------
    x : array, or tuple of arrays
        One-dimensional array of any library and stride; lazy or not. A tuple or namedtuple of
        arrays, which are broadcast together, or a NumPy structured array, is an array of tuples:
        `op` takes and returns tuples of their elements.
    offsets : array
        The bounds of the segments: segment i is ``x[offsets[i]:offsets[i+1]]``, so there is one
        offset more than segments. Non-decreasing integers of any dtype, on the device of `x`. The
        first may be above 0 and the last below ``len(x)``: elements in no segment are not read.
    init : scalar, array, or tuple of them, optional
        The initial value of every segment, and so the result of an empty one; by default the
        operator's identity. An array gives an initial value for each segment. NumPy scalars and
        arrays determine the dtype.
    op : callable
        ``op(a, b)``, associative and pure. It need not commute. Without `init` it needs an
        identity: ``operator.add``, ``mul``, ``and_``, ``or_``, ``xor`` and NumPy's logical
        functions have one, and ``gpualgo.Operator(op, identity=...)`` gives one.
    dtype : dtype, optional
        The dtype of the accumulator and the result. By default the dtype of `init` if that is a
        NumPy value, else ``x.dtype``. For tuples one dtype for all fields, a tuple, or a structured
        dtype.
    out : array, or tuple of arrays, optional
        Array for the result, with its shape and dtype, on the device of `x`. For tuples a tuple
        like the result, or a structured array.

    Returns
    -------
    array, or tuple of arrays
        A result for each segment, in the library of `x`. For device arrays the call does not
        synchronise. Tuples give the same kind of tuple, a structured array a structured array.

    Raises
    ------
    TypeError
        `x` is not an array, a dtype is not supported, `offsets` are not integers, or `init`, `out`
        or the result of `op` has a wrong dtype or structure.
    ValueError
        `x` or `offsets` is not one-dimensional; offsets on the host decrease or are out of range;
        there is neither `init` nor an identity, even if no segment is empty; `out` has another
        shape or shares memory with an input.

    Notes
    -----
    Offsets on a GPU are not checked: segments are slices as in Python, so an offset outside `x` is
    clipped, and a segment with decreasing offsets is empty. With GPUALGO_CHECK=1 in the environment
    the call waits and raises as for offsets on the host.

    Reads each element of a segment once, in one launch on a GPU, or two if `x` has more than 2^22
    elements; temporary storage is at most 40 bytes for each 450 elements. Long segments are split
    over all processors. The same input gives the same bits on every run and every GPU: the grouping
    depends only on the lengths of a segment and of `x`.

    >>> x, offsets = np.array([3, 1, 4, 1, 5, 9]), np.array([0, 2, 2, 5])
    >>> ga.segmented_reduce(x, offsets)
    array([ 4,  0, 10])
    >>> ga.segmented_reduce(x, offsets, -1, max)
    array([ 3, -1,  5])
    """
    return _solve("segmented_reduce", SegmentedReduction, x, offsets, init, op, dtype, out, stream)


@typed_as(segmented_reduce)
def segmented_inclusive_scan(
    x: Any, offsets: Any, init: Any = None, op: Any = operator.add, *, dtype: Any = None,
    out: Any = None, stream: Any = None,
) -> Any:  # fmt: skip
    """Return each element combined with all before it in its segment: ``y[i] = init op … op x[i]``.

    Parameters
    ----------
    x, op, dtype, stream
        As for `segmented_reduce`; `op` needs no identity.
    offsets : array
        The bounds of the segments, as for `segmented_reduce`. Elements in no segment are copied.
    init : scalar, array, or tuple of them, optional
        The initial value of every segment. A Python scalar is converted to the accumulator's dtype;
        a NumPy scalar determines that dtype. An array of that dtype gives an initial value for each
        segment.
    out : array, or tuple of arrays, optional
        Array for the result, with its shape and dtype, on the device of `x`. It may be `x` itself.
        For tuples a tuple like the result, or a structured array.

    Returns
    -------
    array, or tuple of arrays
        With the shape of `x`, in its library. For device arrays the call does not synchronise.
        Tuples give the same kind of tuple, a structured array a structured array.

    Raises
    ------
    TypeError, ValueError, CompileError
        As for `segmented_reduce`; neither `init` nor an identity is needed.

    Notes
    -----
    Offsets on a GPU are not checked: an offset outside `x` is clipped. A segment begins at every
    offset, in any order; elements before the first offset and from the last offset on are copied.
    If offsets decrease, it is undefined which value of an array `init` a segment gets. With
    GPUALGO_CHECK=1 in the environment the call waits and raises as for offsets on the host.

    Reads and writes each element once, in one launch on a GPU, or in two after clearing temporary
    storage if `x` has more than 2^22 elements or short segments have starts of their own. Temporary
    storage: 1/8 byte for each element, and 8 bytes for each tile and each 32 bits of the
    accumulator. The same input gives the same bits on every run and every GPU (single-pass scan
    with decoupled look-back: D. Merrill and M. Garland, NVIDIA NVR-2016-002, 2016).

    >>> x = np.array([3, 1, 4, 1, 5, 9])
    >>> ga.segmented_inclusive_scan(x, np.array([0, 2, 5]))
    array([ 3,  4,  4,  5, 10,  9])
    """
    return _solve(
        "segmented_inclusive_scan", SegmentedScan, x, offsets, init, op, dtype, out, stream
    )


@typed_as(segmented_reduce)
def segmented_exclusive_scan(
    x: Any, offsets: Any, init: Any = None, op: Any = operator.add, *, dtype: Any = None,
    out: Any = None, stream: Any = None,
) -> Any:  # fmt: skip
    """Return all elements of the segment before each, combined: ``y[i] = init op … op x[i-1]``.

    Parameters
    ----------
    x, offsets, dtype, out, stream
        As for `segmented_inclusive_scan`.
    init : scalar, array, or tuple of them, optional
        The initial value of every segment, which is its first result; by default the operator's
        identity. An array of the accumulator's dtype gives an initial value for each segment.
    op : callable
        As for `segmented_reduce`; without `init` it needs an identity.

    Returns
    -------
    array, or tuple of arrays
        As for `segmented_inclusive_scan`. Elements in no segment are copied.

    Raises
    ------
    ValueError
        There is neither `init` nor an identity, even if there are no segments.
    TypeError, ValueError, CompileError
        As for `segmented_inclusive_scan`.

    Notes
    -----
    Offsets on a GPU, cost, determinism and algorithm are as for `segmented_inclusive_scan`.

    >>> x = np.array([3, 1, 4, 1, 5, 9])
    >>> ga.segmented_exclusive_scan(x, np.array([0, 2, 5]))
    array([0, 3, 0, 4, 5, 9])
    """
    return _solve(
        "segmented_exclusive_scan", SegmentedExclusiveScan, x, offsets, init, op, dtype, out, stream
    )


def _solve(
    where: str, kind: type[Segmented], x: Any, offsets: Any, init: Any, op: Any, dtype: Any,
    out: Any, stream: Any,
) -> Any:  # fmt: skip
    try:
        of_x, op, form = parse_input(x, op, where, beside=(offsets, init, out))
        offsets_view = of_segments.view(offsets, where, stream, (x, init, out))
    except Elsewhere as elsewhere:
        return elsewhere.call(where, out, stream, x, offsets, init, op, dtype=dtype)
    views = (*of_x, offsets_view)
    params: tuple[Any, ...] = dtype, form, checks.classes_of(dtype)
    if type(init) not in PLAIN:
        init, views, params = parse(init, views, params, where)
    problem = problem_of(kind, views, op, init, params, where)
    assert isinstance(problem, kind)
    of_segments.check_values(offsets_view, problem.num_items, where, stream)
    if problem.is_checked:
        tried(problem, x, op, init, stream)
    return run(problem, views, op, init, out, stream)
