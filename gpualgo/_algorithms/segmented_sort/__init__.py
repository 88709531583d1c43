"""The public function `segmented_sort`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpualgo._algorithms import materialized
from gpualgo._algorithms.merge_sort.problem import descending_of
from gpualgo._algorithms.segmented_sort.problem import SegmentedSort, arguments_of
from gpualgo._pipeline.problem import problem_of
from gpualgo._pipeline.run import run

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty

_WHERE = "segmented_sort"


def segmented_sort(
    keys: ty.AnyArray | ty.Arrays, offsets: ty.AnyArray, *,
    values: ty.AnyArray | ty.Arrays | None = None, descending: ty.Ways = False,
    out: ty.Outs | ty.OutPair | None = None, stream: ty.Stream | None = None,
) -> Any:  # fmt: skip
    """Return keys stably sorted within each segment, and values moved with them.

    Parameters
    ----------
    keys : array, or tuple of arrays
        One-dimensional, dtypes as for `radix_sort`. A tuple or namedtuple of arrays, which are
        broadcast together, is an array of tuples of up to 8 numbers, compared field by field.
    offsets : array
        The bounds of the segments: segment i is ``keys[offsets[i]:offsets[i+1]]``, as for
        `segmented_reduce`. Elements in no segment are copied.
    values : array, or tuple of arrays, optional
        Moved with their keys, as for `radix_sort`.
    descending : bool, or tuple of bools
        Largest first; NaN stays last, and equal keys keep their input order. A tuple with the
        structure of `keys` sets it for each field.
    out : array or tuple of two arrays, optional
        Array for the sorted keys, with `values` a tuple of keys and values, as for `radix_sort`:
        each may be its own input.

    Returns
    -------
    array or tuple of two arrays
        The sorted keys; with `values` the tuple (keys, values); `out` itself if given. Tuples give
        the same kind of tuple. For device arrays the call does not synchronise.

    Raises
    ------
    TypeError
        An argument is not an array, or its dtype cannot be sorted or moved; `keys` is a structured
        array; `offsets` are not integers; `descending` or `out` has a wrong structure.
    ValueError
        An argument is not one-dimensional; offsets on the host decrease or are out of range; shapes
        differ; `out` partly overlaps an input.

    Notes
    -----
    The order of keys is that of `radix_sort`. Offsets on a GPU are not checked; a segment begins at
    each of them, as for `segmented_inclusive_scan`.

    On a GPU tiles of up to 8192 elements are sorted in one pass. A longer segment takes one more
    pass for each doubling of the tiles that it covers; other segments do not. All processors share
    a long segment. Temporary storage: a copy of keys and values, and a byte for every few elements.

    >>> keys, offsets = np.array([3, 1, 4, 1, 5, 9, 2, 6]), np.array([0, 3, 3, 7])
    >>> ga.segmented_sort(keys, offsets)
    array([1, 3, 4, 1, 2, 5, 9, 6])
    >>> ga.segmented_sort(keys, offsets, values=np.arange(8), descending=True)[1]
    array([2, 0, 1, 5, 4, 6, 3, 7])
    """
    arguments = {"keys": keys, "values": values, "offsets": offsets}
    keys, values, offsets = materialized(arguments, (out,), _WHERE, stream)
    views, forms = arguments_of(keys, offsets, values, _WHERE, stream)
    directions = descending_of(descending, forms[0], None, _WHERE)
    problem = problem_of(SegmentedSort, views, None, None, (directions, forms), _WHERE, 0)
    assert isinstance(problem, SegmentedSort)
    problem.for_data(views, stream)
    return run(problem, views, None, None, out, stream)
