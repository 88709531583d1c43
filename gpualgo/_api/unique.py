"""The public function `unique`, put together from sorts, scans and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo import lazy
from gpualgo._algorithms.radix_sort import argsort, radix_sort
from gpualgo._algorithms.runs import solve
from gpualgo._algorithms.scan import exclusive_scan, inclusive_scan
from gpualgo._algorithms.transform.copying import copy
from gpualgo._pipeline import checks

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty

_WHERE = "unique"


def unique(
    x: ty.AnyArray | ty.Arrays, *, consecutive: bool = False, return_index: bool = False,
    return_inverse: bool = False, return_counts: bool = False, out: ty.Outs | None = None,
    out_count: ty.AnyArray | None = None, stream: ty.Stream | None = None,
) -> Any:  # fmt: skip
    """Find the distinct elements, ascending; or, consecutive, the first of each run.

    Parameters
    ----------
    x : array, or tuple of arrays
        As for `radix_sort`; consecutive, as for `run_length_encode`. It is flattened in C order.
    consecutive : bool
        Look for elements that differ from the one before, in the order of `x`, which is not sorted.
    return_index : bool
        Also where each result first stands in `x`.
    return_inverse : bool
        Also which result each element of `x` is, in the shape of `x`.
    return_counts : bool
        Also how many elements are equal to each; consecutive, how many follow one another.
    out, out_count
        Where to write the elements alone: as for `select`. Not with a further result.
    stream : stream, optional
        A CUDA stream for device arrays; without it the current stream of the array's library.

    Returns
    -------
    array, or tuple of arrays
        One dimension, of the dtype of `x`, a tuple where `x` is one. With further results a tuple
        of it and of them, int64, in the order of the arguments.

    Raises
    ------
    TypeError
        `x` is no array or, where it is sorted, of a dtype without an order; out does not fit.
    ValueError
        out is too short (not where `out_count` is given), or it is given with a further result.

    Notes
    -----
    NaN are equal, and last; -0.0 is equal to 0.0: of equal elements the first in `x` is given. A
    stable sort, then one pass. See docs/runs.md.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> x = np.array([3, 1, 3, 3, 2, 1])
    >>> ga.unique(x)
    array([1, 2, 3])
    >>> ga.unique(x, consecutive=True)
    array([3, 1, 3, 2, 1])
    >>> ga.unique(x, return_counts=True)
    (array([1, 2, 3]), array([2, 1, 3]))
    """
    flags = {"consecutive": consecutive, "return_index": return_index,
             "return_inverse": return_inverse, "return_counts": return_counts}  # fmt: skip
    consecutive, *more = [checks.flag(flag, name, _WHERE) for name, flag in flags.items()]
    if any(more) and (out is not None or out_count is not None):
        raise ValueError(
            f"{_WHERE}: out takes the elements alone; leave out return_index, return_inverse and "
            "return_counts"
        )
    if not any(more):
        keys = x if consecutive else _sorted(x, stream)
        return solve(keys, None, False, _WHERE, out, out_count, stream)
    index, inverse, counts = more
    return _described(x, consecutive, index, inverse, counts, stream)


def _sorted(x: Any, stream: Any) -> Any:
    """Return all elements in order, flattened."""
    return radix_sort(x, axis=None, stream=stream)


def _described(
    x: Any, consecutive: bool, index: bool, inverse: bool,
    counts: bool, stream: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """Return distinct elements, and what is asked for besides."""
    keys = _flat(x, stream) if consecutive else _sorted(x, stream)
    order: Any = None if consecutive else argsort(x, axis=None, stream=stream)
    values, lengths = solve(keys, None, True, _WHERE, None, None, stream)
    found = [values]
    if index:
        starts = exclusive_scan(lengths, stream=stream)
        is_moved = order is not None and lengths.shape[0] > 0
        found.append(copy(lazy.take(order, starts), stream=stream) if is_moved else starts)
    if inverse:
        numbers = _numbers(keys, stream) if lengths.shape[0] else lengths
        if order is not None and lengths.shape[0]:
            numbers = copy(lazy.take(numbers, argsort(order, stream=stream)), stream=stream)
        found.append(numbers.reshape(_shape(x)))
    if counts:
        found.append(lengths)
    return tuple(found)


def _flat(x: Any, stream: Any) -> Any:
    """Return elements in C order, each number's array of one dimension."""
    made = copy(x, stream=stream)
    return tuple([one.reshape(-1) for one in made]) if isinstance(made, tuple) else made.reshape(-1)


def _shape(x: Any) -> tuple[int, ...]:
    while isinstance(x, tuple):
        x = x[0]
    return tuple(x.shape)


def _numbers(keys: Any, stream: Any) -> Any:
    """Return which run each element belongs to, counted from 0."""
    parts = keys if isinstance(keys, tuple) else (keys,)
    begins: Any = None
    for part in parts:
        before = lazy.take(part, lazy.arange(part.shape[0]) - 1, mode="clip")  # the first: itself
        differs = lazy.transform(_differs, before, part)
        begins = differs if begins is None else lazy.transform(max, begins, differs)
    return inclusive_scan(begins, stream=stream)


def _differs(a: Any, b: Any) -> Any:
    return np.int64(0) if a == b or (a != a and b != b) else np.int64(1)
