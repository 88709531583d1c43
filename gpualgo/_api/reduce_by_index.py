"""The public function `reduce_by_index`, put together from sorts, scans and a search."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo import lazy
from gpualgo._algorithms.by_key import calls, grouped
from gpualgo._algorithms.by_key.problem import InclusiveScan
from gpualgo._algorithms.extremes import minmax
from gpualgo._algorithms.histogram import histogram
from gpualgo._algorithms.histogram.arguments import MAX_BINS
from gpualgo._algorithms.radix_sort import argsort, radix_sort
from gpualgo._algorithms.scan import exclusive_scan, inclusive_scan
from gpualgo._algorithms.segments import segmented_reduce
from gpualgo._algorithms.transform import transform
from gpualgo._arrays.view import overlap, view_of
from gpualgo._base import recording, records
from gpualgo._base.errors import CompileError
from gpualgo._driver.default_device import CPU
from gpualgo._lazy.real import made
from gpualgo._operators.operator import as_operator
from gpualgo._pipeline import checks, inputs, starts
from gpualgo._pipeline.problem import PLAIN
from gpualgo._pipeline.run import run

if TYPE_CHECKING:
    from gpualgo._base import annotations as ty
    from gpualgo._operators.operator import Operator

_WHERE = "reduce_by_index"
_KEYS = tuple(np.dtype(name) for name in ("uint8", "uint16", "uint32", "uint64"))


def reduce_by_index(
    indices: ty.AnyArray, x: ty.AnyArray | ty.Arrays, size: int,
    init: ty.FirstValues | None = None, op: ty.BinaryFunction | Operator = operator.add, *,
    dtype: ty.DTypes | None = None, out: ty.AnyArray | ty.Outs | None = None,
    stream: ty.Stream | None = None,
) -> Any:  # fmt: skip
    """Combine the elements of each index: ``result[k] = init op x[i] op x[j] op …``.

    Parameters
    ----------
    indices : array
        Of integers, any shape, any strides; or lazy. On the host from 0 to ``size - 1``; on a GPU
        elements of others are left out.
    x : array, or tuple of arrays
        An element for each index, otherwise as for `reduce_by_key`.
    size : int
        How many results there are, fewer than 2**31 - 2.
    init : scalar, array of length `size`, or tuple of them, optional
        What each starts from, and what those have that no index is of; without it these have the
        operator's identity. An array has a start for each, in the library and on the device of `x`.
    op : callable
        ``op(a, b)``, associative, as for `reduce`. Elements of an index are combined in their
        order. Without `init` it must have an identity: ``gpualgo.Operator(op, identity=...)``
        gives it one.
    dtype : dtype, optional
        The accumulator's and the result's dtype, as for `reduce`.
    out : array, or tuple of arrays, optional
        Where to write the result: its shape and dtype, the library and device of `x`.
    stream : stream, optional
        A CUDA stream for device arrays; without it the current stream of the arrays' library.

    Returns
    -------
    array, or tuple of arrays
        Of one dimension and length `size`; in the library of `x`. A device array is returned
        without waiting for it.

    Raises
    ------
    TypeError
        `indices` are no integers, `x` is no array, or init, out or op's result does not fit.
    ValueError
        An index of a host array is out of range; there is neither init nor an identity; `indices`
        and `x` differ in shape; size is negative or too large; out has another shape or shares
        memory with an input.
    CompileError
        numba cannot compile `op`.

    Notes
    -----
    A stable sort of the elements by as many bits as `size` needs, a scan by key, and a histogram of
    the indices, which tells where each one's last result is. The same input gives the same bits,
    float sums included. See docs/by_key.md.

    Examples
    --------
    >>> import numpy as np, gpualgo as ga
    >>> ga.reduce_by_index(np.array([2, 0, 2, 2]), np.array([1, 2, 3, 4]), 4)
    array([2, 0, 8, 0])
    """
    recorder = recording.current() if recording.active else None
    if recorder is not None and not recorder.is_graph:
        raise TypeError(f"{_WHERE}: indices are sorted first, which no plan does; call it as it is")
    size = checks.integer(size, "size", _WHERE)
    if size < 0:
        raise ValueError(f"{_WHERE}: size is {size}; pass how many results there are")
    if size >= MAX_BINS:
        raise ValueError(f"{_WHERE}: size is {size}, and at most {MAX_BINS - 1} is possible")
    indices = made(indices, False, f"{_WHERE}: indices", stream)
    x = made(x, False, f"{_WHERE}: x", stream)
    if type(init) not in PLAIN and starts.are_arrays(init, _WHERE, one_is_value=False):
        return _from_starts(indices, x, size, (init, op, dtype), out, stream)
    problem = _checked(indices, x, size, (init, op, dtype), out)
    empty = problem.encode(init)
    if empty is None:
        hint = "op has no known identity for an index that no element has"
        empty = problem.identity(as_operator(op, _WHERE, 2), hint)
    fills = _fills(empty, size, problem.x_form)
    keys = _keys(indices, size, stream)
    counts = histogram(keys, size + 1, (0, size + 1), stream=stream)  # the last are left out
    if 0 in problem.shape or size == 0:
        found = transform(_filled, counts[:size], fills, out=out, stream=stream)
        form = problem.x_form
        return found if form is None or out is not None else form.packed(grouped.leaves(found))
    scans = _scans(keys, x, size, (init, op, dtype), problem.x_form, stream)
    ends = inclusive_scan(counts, stream=stream)[:size]
    last = grouped.at_places(scans, lazy.transform(_before, ends), _WHERE, "clip")
    return transform(_chosen, counts[:size], last, fills, out=out, stream=stream)


def _from_starts(indices: Any, x: Any, size: int, how: Any, out: Any, stream: Any) -> Any:
    """Return the results where each has a start of its own: indices are segments, once sorted."""
    init, op, dtype = how
    first, pattern = starts.taken(init, _WHERE)
    problem = _checked(indices, x, size, (starts.values(pattern), op, dtype), out, first)
    keys = _keys(indices, size, stream)
    counts = histogram(keys, size + 1, (0, size + 1), stream=stream)  # the last are left out
    offsets = exclusive_scan(counts, stream=stream)
    _, x = _sorted(keys, x, size, problem.x_form, stream)
    try:
        return segmented_reduce(x, offsets, init, op, dtype=dtype, out=out, stream=stream)
    except (TypeError, ValueError, CompileError) as error:
        if error.args and isinstance(error.args[0], str):
            text = error.args[0].replace("segmented_reduce", _WHERE, 1)
            error.args = (text, *error.args[1:])
        raise


def _checked(indices: Any, x: Any, size: int, how: Any, out: Any, first: Any = ()) -> Any:
    """Return the problem of a scan by index, once all arguments are checked.

    Indices are integers, on the host in range, and no output lies among inputs. `first`: the views
    of a start for each result.
    """
    init, op, dtype = how
    try:
        problem, views, _ = calls.solvable(
            InclusiveScan, _WHERE, indices, x, init, op, None, dtype, None
        )
    except (TypeError, ValueError) as error:
        text = str(error)
        if text.startswith(f"{_WHERE}: keys"):
            error.args = (text.replace("keys", "indices", 1),)
        raise
    if problem.key_form is not None:
        raise TypeError(f"{_WHERE}: indices are tuples; pass one array of integers")
    if views[0].dtype.kind not in "iu":
        raise TypeError(
            f"{_WHERE}: indices have dtype {views[0].dtype}; pass integers, such as "
            "indices.astype(np.int64)"
        )
    if first:
        starts.check(first, views[0], (size,), problem.acc, problem.x_form, _WHERE)
    if out is not None:
        calls.check_outputs(problem, views, (size,), out)
        for view in inputs.outputs(problem, out) if first else ():
            if any(overlap(view_of(view, f"{_WHERE}: out"), start) for start in first):
                raise ValueError(f"{_WHERE}: out overlaps init; pass a separate array")
    # What is recorded reads them when it is launched: then they are left out, as on a GPU.
    is_read_now = not (recording.active and recording.current())
    if views[0].device == CPU and 0 not in problem.shape and is_read_now:
        low, high = (int(found) for found in minmax(indices))
        if low < 0 or high >= size:
            wrong = low if low < 0 else high
            places = f"not from 0 to {size - 1}" if size else "none of no results"
            raise ValueError(f"{_WHERE}: indices hold {wrong}, which is {places}")
    return problem


def _scans(keys: Any, x: Any, size: int, how: Any, form: Any, stream: Any) -> Any:
    """Return the scans of the elements of each key, one behind the other."""
    init, op, dtype = how
    keys, x = _sorted(keys, x, size, form, stream)
    problem, views, op = calls.solvable(
        InclusiveScan, _WHERE, keys, x, init, op, None, dtype, stream
    )
    solve = run if problem.form is None else inputs.solve
    return solve(problem, views, op, init, None, stream)


def _sorted(keys: Any, x: Any, size: int, form: Any, stream: Any) -> Any:
    """Return keys in order, and elements as they go with them."""
    if grouped.is_nested(form):
        order = argsort(keys, axis=None, stream=stream)
        return grouped.taken(keys, x, order, _WHERE, stream)
    return radix_sort(keys, x, axis=None, end_bit=size.bit_length(), stream=stream)


def _keys(indices: Any, size: int, stream: Any) -> Any:
    """Return indices in the narrowest dtype; those out of range become `size`."""
    dtype = next(kind for kind in _KEYS if size <= np.iinfo(kind).max)
    least = lazy.full((), 0, dtype=np.int64)
    most = lazy.full((), size, dtype=np.int64)
    return transform(_kept(dtype.type), indices, least, most, stream=stream)


def _fills(empty: np.ndarray[Any, Any], size: int, form: Any) -> Any:
    """Return lazy arrays of what results hold that no element has."""
    if form is None:
        return lazy.full(size, empty[()], dtype=empty.dtype)
    names = empty.dtype.names or ()
    parts = [lazy.full(size, empty[name][()], dtype=empty.dtype[name]) for name in names]
    return records.built(names, parts, _tuple)


def _tuple(cls: Any, items: list[Any]) -> Any:
    return cls._make(items) if hasattr(cls, "_make") else cls(items)


def _kept(kind: Any) -> Any:
    return lambda i, least, size: kind(i) if i >= least and i < size else kind(size)


def _before(end: Any) -> Any:
    return end - 1


def _chosen(count: Any, value: Any, empty: Any) -> Any:
    return value if count > 0 else empty


def _filled(_: Any, empty: Any) -> Any:
    return empty
