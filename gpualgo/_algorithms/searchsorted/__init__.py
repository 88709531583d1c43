"""The public function `searchsorted`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpualgo._base.errors import Elsewhere
from gpualgo._pipeline.run import run

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty
    from gpualgo._operators.operator import Operator


def searchsorted(
    a: ty.AnyArray | ty.Arrays, v: ty.AnyArray | ty.Arrays | ty.Number, *, side: ty.Side = "left",
    less: ty.BinaryPredicate | Operator | None = None, descending: ty.Ways = False,
    dtype: ty.DType | None = None, out: ty.AnyArray | None = None,
    stream: ty.Stream | None = None,
) -> Any:  # fmt: skip
    """Find where elements belong in a sorted array: ``a[r-1] < v ≤ a[r]``, r the result.

    Parameters
    ----------
    a : array, or tuple of arrays
        Of one dimension, sorted by the order below, any strides: bool, integers, float16, bfloat16,
        float32 or float64, complex numbers with `less`. A tuple or namedtuple of arrays, which are
        broadcast together, or a NumPy structured array, is an array of tuples of up to 8 numbers.
    v : array, number, or tuple of arrays
        The elements to look up, of any shape and strides, on the device of `a`; a number only if
        `a` is on the host. Tuples as those of `a`.
    side : {"left", "right"}
        "left": the first index i for which ``a[i] < v`` is false; "right": the first for which
        ``v < a[i]`` is true.
    less : callable, optional
        ``less(a, b)`` returns whether a comes before b, a strict weak order, as for `merge_sort`.
        Without it elements are ordered by value: zeros of both signs are equal, NaN is last, and
        tuples are compared number by number, the first one first.
    descending : bool, or tuple of bools
        `a` is sorted in descending order, by ``less(b, a)``. Without `less` NaN is last anyway, and
        a tuple, of the structure of an element of `a`, sets the order of each number.
    dtype : dtype, optional
        The result's dtype: any integer dtype that holds ``len(a)``; without it out's, or int64.
    out : array, optional
        Where to write the result: of the shape of `v`. It may be `v` itself, and shares no memory
        with `a` or `v` otherwise.
    stream : stream, optional
        A CUDA stream for device arrays; without it the current stream of the array's library.

    Returns
    -------
    array or scalar
        Indices from 0 to ``len(a)``, in the shape of `v`; if `v` is a number or a NumPy array
        without dimensions, a NumPy scalar. A device array is returned without waiting for it.

    Raises
    ------
    TypeError
        An argument is no array or of a dtype that has no order; a and v differ in structure, or
        have no common dtype; `less` returns no bool; dtype is no integer dtype.
    ValueError
        `a` has not one dimension, side is neither "left" nor "right", dtype is too narrow, or out
        has another shape or overlaps.
    CompileError
        numba cannot compile `less`.

    Notes
    -----
    As in `numpy.searchsorted`, elements of `a` and of `v` are compared in
    ``numpy.result_type(a, v)``: 64-bit integers with floats, or signed with unsigned ones, as
    float64. The order of `a` is checked only with ``GPUALGO_CHECK=1`` in the environment
    (ValueError). Otherwise, if `a` is not sorted, results are meaningless indices from 0 to
    ``len(a)``.

    One kernel launch, without temporary storage. If `v` has at least one number for 32 of `a`, a
    second launch comes first, which writes samples of `a` to temporary storage of a seventh of its
    memory (a third for 8-byte numbers). Elements of `v` and of the result are read or written once.
    Each search reads about log2(len(a)) elements of `a`: the first steps, about 12, use a tree in
    shared memory (after P.-V. Khuong and P. Morin, 2017), the others use memory. Results are
    integers, the same on every device. See docs/searchsorted.md.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> a = np.array([1, 3, 3, 7])
    >>> ga.searchsorted(a, np.array([[0, 3], [4, 9]]))
    array([[0, 1],
           [3, 4]])
    >>> int(ga.searchsorted(a, 3, side="right"))
    3
    >>> ga.searchsorted(a[::-1], np.array([3, 8]), descending=True)
    array([1, 0])
    """
    from gpualgo._algorithms.searchsorted import calls

    try:
        problem_and_views = calls.search_problem(a, v, side, less, descending, dtype, out, stream)
    except Elsewhere as elsewhere:
        options = {"side": side, "less": less, "descending": descending, "dtype": dtype}
        return elsewhere.call("searchsorted", out, stream, a, v, **options)
    return run(*problem_and_views, less, None, out, stream)


def binned(bins: Any, v: Any, side: str, where: str) -> Any:
    """Return the indices of v in an array on a GPU that is sorted in either direction."""
    from gpualgo._algorithms.searchsorted import calls

    return run(*calls.binning_problem(bins, v, side, where), None, None, None, None)
