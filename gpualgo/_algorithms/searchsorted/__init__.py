"""The public function `searchsorted`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpualgo._base.errors import Elsewhere
from gpualgo._pipeline.run import run

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty
    from gpualgo._operators.operator import Operator


def searchsorted(
    a: ty.AnyArray | ty.Arrays, v: ty.AnyArray | ty.Arrays | ty.Number, *, side: str = "left",
    less: ty.BinaryFunction | Operator | None = None, descending: ty.Ways = False,
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
        What is looked up, of any shape and strides, on the device of `a`; a
        number only beside arrays of the host. Tuples as those of `a`.
    side : {"left", "right"}
        The first place i for which ``a[i] < v`` is false; or ("right") ``v < a[i]`` is true.
    less : callable, optional
        ``less(a, b)`` says whether a comes before b, a strict weak order, as for `merge_sort`.
        Without it elements are in the order of their values: zeros of both signs are equal, NaN
        is last, and of tuples the first number decides, where it is equal the next.
    descending : bool, or tuple of bools
        `a` is sorted the other way round, by ``less(b, a)``. Without `less` NaN is last anyway,
        and a tuple, built as `a` is, may say it of each number.
    dtype : dtype, optional
        Of the result, any dtype of integers that holds ``len(a)``; int64 without it, or out's.
    out : array, optional
        Where to write the result: of the shape of `v`. It may be `v` itself, and shares no memory
        with `a` or `v` otherwise.
    stream : stream, optional
        A CUDA stream for device arrays; without it the current stream of the array's library.

    Returns
    -------
    array or scalar
        Places from 0 to ``len(a)``, in the shape of `v`; of a NumPy array without dimensions, or
        of a number, a NumPy scalar. A device array is returned without waiting for it.

    Raises
    ------
    TypeError
        An argument is no array or of a dtype that has no order; a and v are built unlike, or have
        no common dtype; `less` returns no bool; dtype is none of integers.
    ValueError
        `a` has not one dimension, side is another word, dtype is too narrow, or out has another
        shape or overlaps.
    CompileError
        numba cannot compile `less`.

    Notes
    -----
    As `numpy.searchsorted`, elements of `a` and of `v` are compared in
    ``numpy.result_type(a, v)``: integers of 64 bits beside floats, or signed beside unsigned ones,
    as float64. Whether `a` is in order is looked at with ``GPUALGO_CHECK=1`` in the environment
    alone (ValueError); else, where it is not, results are places from 0 to ``len(a)`` without a
    meaning.

    One kernel launch, without temporary storage; where `v` has one number for 32 of `a` or more a
    launch before it, which takes samples of `a` into a seventh of its memory (of 8-byte numbers a
    third). Each of `v` and of the result is moved once, and
    for each of `v` about log2(len(a)) elements of `a` are looked at: the first steps, about 12, in
    a tree in shared memory (after P.-V. Khuong and P. Morin, 2017), the others in memory. Results
    are integers, the same on every device. See docs/searchsorted.md.

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
        asked = calls.search_problem(a, v, side, less, descending, dtype, out, stream)
    except Elsewhere as found:
        options = {"side": side, "less": less, "descending": descending, "dtype": dtype}
        return found.call("searchsorted", out, stream, a, v, **options)
    return run(*asked, less, None, out, stream)


def binned(bins: Any, v: Any, side: str, where: str) -> Any:
    """Return places in an array of a GPU that rises or falls, of which nobody has looked how."""
    from gpualgo._algorithms.searchsorted import calls

    return run(*calls.binning_problem(bins, v, side, where), None, None, None, None)
