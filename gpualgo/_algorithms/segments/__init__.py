"""The public functions on segments: `segmented_reduce` and the two scans."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, overload

from gpualgo._algorithms.segments import offsets as of_segments
from gpualgo._algorithms.segments.problem import (
    Segmented,
    SegmentedExclusiveScan,
    SegmentedReduction,
    SegmentedScan,
)
from gpualgo._algorithms.segments.started import STARTED
from gpualgo._lazy.sources import taken, tried
from gpualgo._pipeline import elements, inputs, starts
from gpualgo._pipeline.inputs import Views
from gpualgo._pipeline.problem import PLAIN, problem_of
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
    """Combine segments: ``y[i] = init op x[offsets[i]] op … op x[offsets[i+1] - 1]``.

    Parameters
    ----------
    x : array, or tuple of arrays
        Of one dimension, any library, dtype with kernels and stride; lazy or not. A tuple or
        namedtuple of arrays, which are broadcast together, or a NumPy structured array, is an array
        of tuples: `op` takes and returns tuples of their elements.
    offsets : array
        Where segments begin and end, one more than there are segments, of any integer dtype and
        stride, on the device of `x`. They rise; the first may be above 0 and the
        last below ``len(x)``: elements in no segment are not read.
    init : scalar, array, or tuple of them, optional
        The initial value of every segment, also the result of an empty one (without it op's
        identity); an array gives one for each. NumPy scalars and arrays decide the dtype.
    op : callable
        ``op(a, b)``, associative. It need not commute; without `init` it must have an identity, as
        ``operator.add``, ``mul``, ``and_``, ``or_``, ``xor`` and NumPy's logical functions have,
        or ``gpualgo.Operator(op, identity=...)``.
    dtype : dtype, optional
        The accumulator's and the result's dtype; without it init's if that is a NumPy value, else
        ``x.dtype``. For tuples one for all numbers, a tuple, or a structured dtype.
    out : array, or tuple of arrays, optional
        Where to write the result: its shape and dtype, the device of `x`. For tuples
        a tuple like the result, or a structured array.
    stream : stream, optional
        A CUDA stream for device arrays; without it the current stream of the array's library.

    Returns
    -------
    array, or tuple of arrays
        One result for each segment, in the library of `x`. A device array is returned without
        waiting for it. Tuples give the same kind of tuple, a structured array a structured array.

    Raises
    ------
    TypeError
        `x` is no array, a dtype has no kernel, offsets are no integers, or init, out or op's result
        does not fit.
    ValueError
        `x` or offsets has not one dimension; offsets of the host fall or are outside `x`; there
        is neither init nor an identity, whether or not a segment is empty; out has another shape or
        shares memory with an input.
    CompileError
        numba cannot compile `op`.

    Notes
    -----
    Offsets on a GPU are not checked: an offset outside `x` counts as the nearest end of `x`, and a
    pair that falls is an empty segment, so that a segment is ``x[offsets[i]:offsets[i+1]]`` as
    Python slices it. With GPUALGO_CHECK=1 in the environment the call waits, and raises as for
    the host's.

    Reads each element of a segment once, an offset and writes a result for each segment; three
    launches on a GPU, and temporary storage of up to 40 bytes for each 450 elements. One segment
    may have almost all elements, others one each: long ones are split over all processors. The
    same input gives the same bits on every run and every GPU: the grouping depends only on the
    lengths of a segment and of `x`. See docs/segments.md.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> x, offsets = np.array([3, 1, 4, 1, 5, 9]), np.array([0, 2, 2, 5])
    >>> ga.segmented_reduce(x, offsets)
    array([ 4,  0, 10])
    >>> ga.segmented_reduce(x, offsets, -1, max)
    array([ 3, -1,  5])
    """
    where = "segmented_reduce"
    problem, views, init, op = _parse_call(
        SegmentedReduction, x, offsets, init, op, dtype, out, stream, where
    )
    solve = run if problem.form is None else inputs.solve
    return solve(problem, views, op, init, out, stream)


@overload
def segmented_inclusive_scan(
    x: ty.Same, offsets: ty.AnyArray, init: ty.FirstValue | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, dtype: ty.DType | None = None,
    out: ty.Same | None = None, stream: ty.Stream | None = None,
) -> ty.Same: ...  # fmt: skip
@overload
def segmented_inclusive_scan(
    x: ty.Foreign, offsets: ty.AnyArray, init: ty.FirstValue | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, dtype: ty.DType | None = None,
    out: ty.AnyArray | None = None, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
@overload
def segmented_inclusive_scan(
    x: ty.Host, offsets: ty.AnyArray, init: ty.FirstValue | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, dtype: ty.DType | None = None,
    out: ty.Host | None = None, stream: ty.Stream | None = None,
) -> ty.NumPyArray: ...  # fmt: skip
@overload
def segmented_inclusive_scan(  # tuples
    x: ty.Arrays, offsets: ty.AnyArray, init: ty.FirstValues | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, dtype: ty.DTypes | None = None,
    out: ty.Outs | None = None, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
def segmented_inclusive_scan(
    x: Any, offsets: Any, init: Any = None, op: Any = operator.add, *, dtype: Any = None,
    out: Any = None, stream: Any = None,
) -> Any:  # fmt: skip
    """Combine each element with all before it in its segment: ``y[i] = init op x[b] op … op x[i]``.

    Parameters
    ----------
    x, op, dtype, stream
        As for `segmented_reduce`; `op` needs no identity.
    offsets : array
        Where segments begin and end, as for `segmented_reduce`. Elements in no segment are copied.
    init : scalar, array, or tuple of them, optional
        The initial value of every segment; an array gives one for each, of the accumulator's dtype.
        A Python scalar takes that dtype; a NumPy scalar decides it.
    out : array, or tuple of arrays, optional
        Where to write the result: its shape and dtype, the device of `x`. It may be
        `x` itself. For tuples a tuple like the result, or a structured array.

    Returns
    -------
    array, or tuple of arrays
        Of the shape of `x`, in its library; ``b`` above is where i's segment begins. A device array
        is returned without waiting for it. Tuples give the same kind of tuple, a structured array a
        structured array.

    Raises
    ------
    TypeError, ValueError, CompileError
        As `segmented_reduce`; neither init nor an identity is needed.

    Notes
    -----
    Offsets on a GPU are not checked: one outside `x` counts as its nearest end. A scan starts anew
    at every offset, in any order; elements before the first offset, and from the last one on, are
    copied. If offsets fall, it is undefined which value of an array `init` a segment takes. With
    GPUALGO_CHECK=1 in the environment the call waits, and raises as for the host's.

    Reads and writes each element once, and a bit for each; two launches on a GPU after clearing
    memory, and temporary storage of 1/8 byte per element and 8 bytes per tile for each 32 bits
    of the accumulator. The same input gives the same bits on every run and every GPU (single-pass
    scan with decoupled look-back: Merrill and Garland, NVIDIA NVR-2016-002, 2016). See
    docs/segments.md.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> x = np.array([3, 1, 4, 1, 5, 9])
    >>> ga.segmented_inclusive_scan(x, np.array([0, 2, 5]))
    array([ 3,  4,  4,  5, 10,  9])
    """
    where = "segmented_inclusive_scan"
    problem, views, init, op = _parse_call(
        SegmentedScan, x, offsets, init, op, dtype, out, stream, where
    )
    solve = run if problem.form is None else inputs.solve
    return solve(problem, views, op, init, out, stream)


@overload
def segmented_exclusive_scan(
    x: ty.Same, offsets: ty.AnyArray, init: ty.FirstValue | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, dtype: ty.DType | None = None,
    out: ty.Same | None = None, stream: ty.Stream | None = None,
) -> ty.Same: ...  # fmt: skip
@overload
def segmented_exclusive_scan(
    x: ty.Foreign, offsets: ty.AnyArray, init: ty.FirstValue | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, dtype: ty.DType | None = None,
    out: ty.AnyArray | None = None, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
@overload
def segmented_exclusive_scan(
    x: ty.Host, offsets: ty.AnyArray, init: ty.FirstValue | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, dtype: ty.DType | None = None,
    out: ty.Host | None = None, stream: ty.Stream | None = None,
) -> ty.NumPyArray: ...  # fmt: skip
@overload
def segmented_exclusive_scan(  # tuples
    x: ty.Arrays, offsets: ty.AnyArray, init: ty.FirstValues | None = None,
    op: ty.BinaryFunction | Operator = operator.add, *, dtype: ty.DTypes | None = None,
    out: ty.Outs | None = None, stream: ty.Stream | None = None,
) -> Any: ...  # fmt: skip
def segmented_exclusive_scan(
    x: Any, offsets: Any, init: Any = None, op: Any = operator.add, *, dtype: Any = None,
    out: Any = None, stream: Any = None,
) -> Any:  # fmt: skip
    """Combine all before each element in its segment: ``y[b] = init``, ``y[i] = init op … x[i-1]``.

    Parameters
    ----------
    x, offsets, dtype, out, stream
        As for `segmented_inclusive_scan`.
    init : scalar, array, or tuple of them, optional
        The first result of every segment; an array gives one for each, of the accumulator's dtype.
        Without it the identity of `op`.
    op : callable
        As for `segmented_reduce`; it needs an identity only without `init`.

    Returns
    -------
    array, or tuple of arrays
        As of `segmented_inclusive_scan`. Elements in no segment are copied.

    Raises
    ------
    ValueError
        There is neither init nor an identity, even if there are no segments.
    TypeError, ValueError, CompileError
        As `segmented_inclusive_scan`.

    Notes
    -----
    Offsets on a GPU, cost, determinism and paper: as `segmented_inclusive_scan`.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> x = np.array([3, 1, 4, 1, 5, 9])
    >>> ga.segmented_exclusive_scan(x, np.array([0, 2, 5]))
    array([0, 3, 0, 4, 5, 9])
    """
    where = "segmented_exclusive_scan"
    problem, views, init, op = _parse_call(
        SegmentedExclusiveScan, x, offsets, init, op, dtype, out, stream, where
    )
    solve = run if problem.form is None else inputs.solve
    return solve(problem, views, op, init, out, stream)


def _parse_call(
    kind: type[Segmented], x: Any, offsets: Any, init: Any, op: Any, dtype: Any, out: Any,
    stream: Any, where: str,
) -> tuple[Segmented, Views, Any, Any]:  # fmt: skip
    """Return the problem of a call, its views, its scalar init, and its operator."""
    of_x, op, form = taken(x, op, where, beside=(offsets, init, out))
    offsets_view = of_segments.view(offsets, where, stream, (x, init, out))
    views = (*of_x, offsets_view)
    params: tuple[Any, ...] = dtype, form, elements.classes_of(dtype)
    if type(init) not in PLAIN and starts.are_arrays(init, where, one_is_value=False):
        init_views, pattern = starts.taken(init, where)
        kind, views, init = STARTED[kind], (*views, *init_views), None
        params = (*params, pattern, elements.classes_of(pattern))
    problem = problem_of(kind, views, op, init, params, where)
    if problem.is_checked:
        tried(problem, x, op, init, stream)
    assert isinstance(problem, kind)
    of_segments.check_values(offsets_view, problem.num_items, where, stream)
    return problem, views, init, op
