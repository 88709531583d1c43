"""The public function `unique`, composed of sorts, scans and run-length encoding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpualgo import lazy
from gpualgo._algorithms.by_index import reduce_by_index
from gpualgo._algorithms.radix_sort import argsort, radix_sort
from gpualgo._algorithms.runs import solve
from gpualgo._algorithms.scan import exclusive_scan, inclusive_scan
from gpualgo._algorithms.transform import copy, transform
from gpualgo._arrays.view import as_bytes_view, as_view, overlap
from gpualgo._base.errors import Elsewhere
from gpualgo._lazy import combining, is_lazy
from gpualgo._lazy.expression_cache import ExpressionCache
from gpualgo._pipeline import checks, inputs
from gpualgo._pipeline.counted import new_int64

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty

_WHERE = "unique"
_MOST_TABLE = 1 << 30  # up to so many elements `put_back` uses `reduce_by_index`
_MOST_COMPARED = 4  # fields of neighbours that a scan compares, as it reads two arrays for each


def unique(
    x: ty.AnyArray | ty.Arrays, *, consecutive: bool = False, return_index: bool = False,
    return_inverse: bool = False, return_counts: bool = False, out: ty.Outs | None = None,
    out_count: ty.AnyArray | None = None, stream: ty.Stream | None = None,
) -> Any:  # fmt: skip
    """Return the distinct elements in ascending order, or the first of each run (`consecutive`).

    Parameters
    ----------
    x : array, or tuple of arrays
        As for `radix_sort`, or with `consecutive` as for `run_length_encode`. Flattened in C order.
    consecutive : bool
        Return each element that differs from the one before it, in the order of `x`; nothing is
        sorted.
    return_index : bool
        Also return the index in `x` of the first occurrence of each result.
    return_inverse : bool
        Also return, for each element of `x`, the index of its result, with the shape of `x`.
    return_counts : bool
        Also return how many elements are equal to each result, or the lengths of the runs.
    out, out_count
        Arrays for the elements and their number, as for `select`. Not with `return_index`,
        `return_inverse` or `return_counts`.

    Returns
    -------
    array, or tuple of arrays
        One-dimensional, of the dtype of `x`; a tuple if `x` is one. With `return_index`,
        `return_inverse` or `return_counts` a tuple of the elements and the int64 arrays requested,
        in the order of the parameters. The call waits in the same cases as `select`.

    Raises
    ------
    TypeError
        `x` is not an array, or must be sorted and its dtype has no order; `out` has a wrong dtype.
    ValueError
        `out` is too short and `out_count` is not given, or `out` is given together with
        `return_index`, `return_inverse` or `return_counts`.

    Notes
    -----
    NaN are equal to each other and last; -0.0 equals 0.0. Of equal elements the first in `x` is
    returned. Takes a stable sort (except with `consecutive`) and one pass.

    See https://github.com/gpualgo/gpualgo/blob/main/docs/runs.md.

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
    consecutive, *more = [checks.flag_argument(flag, name, _WHERE) for name, flag in flags.items()]
    if any(more) and (out is not None or out_count is not None):
        raise ValueError(
            f"{_WHERE}: out is for the elements only; leave out return_index, return_inverse and "
            "return_counts"
        )
    if is_lazy(x):
        (x,) = combining.place_lazy((x,), (out, out_count), _WHERE)
    try:
        shape = _shape(x, out, out_count)
    except Elsewhere as found_elsewhere:
        target = out_count if out is None else out
        return found_elsewhere.call(_WHERE, target, stream, x, **flags)
    if not any(more):
        keys = x if consecutive else _sorted(x, stream)
        return solve(keys, None, False, _WHERE, out, out_count, stream)
    index, inverse, counts = more
    if consecutive:
        keys, order = _flat(copy(x, stream=stream)), None
    else:
        keys, order = in_order(x, index or inverse, stream)
    wanted = Wanted(index, inverse, counts)
    return of_runs(keys, order, wanted, shape, stream=stream)


_TAKE = ExpressionCache(lambda x, order: lazy.take(x, order))


class Wanted(NamedTuple):
    indices: bool = False
    inverse: bool = False
    counts: bool = False


def in_order(x: Any, needs_order: bool, stream: Any = None) -> tuple[Any, Any]:
    """Return the sorted elements, flattened, and their indices in x if `needs_order`."""
    # The second condition holds for tuples and structured arrays.
    if not needs_order or any(one is not x for one in _fields(x)):
        return _sorted(x, stream), _order(x, stream) if needs_order else None
    if is_lazy(x):
        x = copy(x, stream=stream)
    order = _order(x, stream)
    if not order.shape[0]:
        return copy(x, stream=stream).reshape(-1), order
    return copy(_TAKE((x, order), _WHERE), stream=stream), order


def of_runs(
    keys: Any, order: Any, wanted: Wanted, shape: tuple[int, ...], *, eq: Any = None,
    differs: Any = None, stream: Any = None,
) -> tuple[Any, ...]:  # fmt: skip
    """Return the first element of each run of sorted elements, and the further results in `wanted`.

    `order`: indices of the elements in the original array of `shape`; None if they were not moved.
    `eq`: equality as for `run_length_encode`. `differs`: returns int64 1 if two numbers belong to
    different runs, else 0.
    """
    values, lengths = solve(keys, eq, True, _WHERE, None, None, stream)
    results = [values]
    is_moved = order is not None and lengths.shape[0] > 0
    if wanted.indices:
        starts = exclusive_scan(lengths, stream=stream)
        results.append(copy(lazy.take(order, starts), stream=stream) if is_moved else starts)
    if wanted.inverse:
        run_numbers = _run_numbers(list(_fields(keys)), differs or _differs, stream)
        if is_moved:
            run_numbers = put_back(order, run_numbers, stream)
        results.append(run_numbers.reshape(shape))
    if wanted.counts:
        results.append(lengths)
    return tuple(results)


def put_back(order: Any, values: Any, stream: Any = None) -> Any:
    """Undo a permutation: return result with ``result[order] = values``."""
    size = values.shape[0]
    if isinstance(order, np.ndarray) and size < _MOST_TABLE:
        return reduce_by_index(order, values, size, stream=stream)
    bits = max(1, (size - 1).bit_length())
    return radix_sort(order, values, end_bit=bits, stream=stream)[1]


def _shape(x: Any, *outs: Any) -> tuple[int, ...]:
    """Return the shape of x after checking it and that no output overlaps it."""
    if is_lazy(x):
        return tuple(combining.zipped(x, f"{_WHERE}: x").shape)
    try:
        views, _ = inputs.spread(x, f"{_WHERE}: x")
    except inputs.NumberOnGPU:
        return tuple(combining.zipped(x, f"{_WHERE}: x").shape)
    for out, name in zip(outs, ("out", "out_count"), strict=True):
        for leaf in () if out is None else _fields(out):
            target = as_bytes_view(leaf, f"{_WHERE}: {name}")
            if any(overlap(target, view) for view in views):
                raise ValueError(f"{_WHERE}: {name} overlaps x; pass a separate array")
    return views[0].shape


def _fields(x: Any) -> Iterator[Any]:
    """Yield the arrays of each field of x, contiguous."""
    if isinstance(x, tuple):
        for item in x:
            yield from _fields(item)
    elif isinstance(x, np.ndarray) and x.dtype.names is not None:
        yield from (np.ascontiguousarray(x[name]) for name in x.dtype.names)
    else:
        yield x


def _sorted(x: Any, stream: Any) -> Any:
    with checks.renamed_errors(_WHERE, "radix_sort", {"keys": "x"}):
        return radix_sort(x, axis=None, stream=stream)


def _order(x: Any, stream: Any) -> Any:
    """Return the indices in x of the sorted elements."""
    with checks.renamed_errors(_WHERE, "argsort", {"keys": "x"}):
        return argsort(x, axis=None, stream=stream)


def _flat(x: Any) -> Any:
    """Return contiguous arrays, each reshaped to one dimension."""
    if not isinstance(x, tuple):
        return x.reshape(-1)
    items = map(_flat, x)
    return type(x)._make(items) if hasattr(x, "_make") else tuple(items)


def _run_numbers(parts: list[Any], apart: Any, stream: Any) -> Any:
    """Return the index of the run that each element belongs to."""
    first = parts[0]
    run_numbers = new_int64(as_view(first, _WHERE), first.shape, stream, _WHERE)
    transform(_zero, first[:1], out=run_numbers[:1], stream=stream)
    if run_numbers.shape[0] < 2:
        return run_numbers
    begins: Any = None
    for part in parts:
        differs = _BEGINS((part,), _WHERE, apart)
        begins = differs if begins is None else lazy.transform(max, begins, differs)
    if len(parts) > _MOST_COMPARED:
        begins = copy(begins, out=run_numbers[1:], stream=stream)
    inclusive_scan(begins, out=run_numbers[1:], stream=stream)
    return run_numbers


_BEGINS = ExpressionCache(lambda part, apart: lazy.transform(apart, part[:-1], part[1:]))


def _zero(a: Any) -> Any:
    return np.int64(0)


def _differs(a: Any, b: Any) -> Any:
    return np.int64(0) if a == b or (a != a and b != b) else np.int64(1)
