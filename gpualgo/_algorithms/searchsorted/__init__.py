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
    """Return the indices r at which elements belong in a sorted array: ``a[r-1] < v ≤ a[r]``.

    Parameters
    ----------
    a : array, or tuple of arrays
        One-dimensional and sorted in the order below: bool, integers, float16, bfloat16, float32 or
        float64; complex numbers only with `less`. A tuple or namedtuple of arrays, which are
        broadcast together, or a NumPy structured array, is an array of tuples of up to 8 numbers.
    v : array, number, or tuple of arrays
        The elements to look up, of any shape and strides, on the device of `a`; a number only if
        `a` is on the host. Tuples as for `a`.
    side : {"left", "right"}
        "left": the first index i for which ``a[i] < v`` is false; "right": the first for which
        ``v < a[i]`` is true.
    less : callable, optional
        ``less(a, b)`` returns whether a comes before b: a strict weak order, as for `merge_sort`.
        By default elements are ordered by value: -0.0 equals 0.0, NaN is last, and tuples are
        compared field by field.
    descending : bool, or tuple of bools
        Whether `a` is in descending order, that of ``less(b, a)``. Without `less` NaN is last
        anyway, and a tuple with the structure of an element of `a` sets the order of each field.
    dtype : dtype, optional
        The dtype of the result: any integer dtype that holds ``len(a)``; by default that of `out`,
        else int64.
    out : array, optional
        Array for the result, with the shape of `v`. It may be `v` itself; otherwise it must not
        share memory with `a` or `v`.

    Returns
    -------
    array or scalar
        Indices from 0 to ``len(a)``, with the shape of `v`; a NumPy scalar if `v` is a number or a
        NumPy array without dimensions. For device arrays the call does not synchronise.

    Raises
    ------
    TypeError
        An argument is not an array, or its dtype has no order; `a` and `v` differ in structure or
        have no common dtype; `less` does not return a bool; `dtype` is not an integer dtype.
    ValueError
        `a` is not one-dimensional, `side` is neither "left" nor "right", `dtype` is too narrow, or
        `out` has another shape or overlaps an input.

    Notes
    -----
    As in `numpy.searchsorted`, elements are compared in ``numpy.result_type(a, v)``: 64-bit
    integers with floats, or signed with unsigned ones, as float64. If `a` is not sorted, results
    are meaningless indices from 0 to ``len(a)``; with ``GPUALGO_CHECK=1`` in the environment a
    ValueError is raised.

    Each search reads about log2(len(a)) elements of `a`, in one kernel launch without temporary
    storage. If `v` has at least 1/32 as many elements as `a`, a launch before it writes samples of
    `a` to temporary storage, 1/7 of the size of `a` (1/3 for 8-byte numbers). About the first 12
    steps of a search use a tree in shared memory (after P.-V. Khuong and P. Morin, 2017). Results
    are the same on every device.

    >>> a = np.array([1, 3, 3, 7])
    >>> ga.searchsorted(a, np.array([[0, 3], [4, 9]]))
    array([[0, 1],
           [3, 4]])
    >>> int(ga.searchsorted(a, 3, side="right"))
    3
    >>> ga.searchsorted(a[::-1], np.array([3, 8]), descending=True)
    array([1, 0])
    """
    from gpualgo._algorithms.searchsorted import problem

    try:
        problem_and_views = problem.search_problem(a, v, side, less, descending, dtype, out, stream)
    except Elsewhere as elsewhere:
        options = {"side": side, "less": less, "descending": descending, "dtype": dtype}
        return elsewhere.call("searchsorted", out, stream, a, v, **options)
    return run(*problem_and_views, less, None, out, stream)
