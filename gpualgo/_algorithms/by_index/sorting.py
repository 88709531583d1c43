"""Reductions by index of more results than tables have room for: put together from a sort."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._algorithms.by_index.problem import ByIndex
from gpualgo._algorithms.by_key import calls, grouped
from gpualgo._algorithms.by_key.problem import InclusiveScan
from gpualgo._algorithms.histogram import histogram
from gpualgo._algorithms.radix_sort import argsort, radix_sort
from gpualgo._algorithms.scan import exclusive_scan, inclusive_scan
from gpualgo._algorithms.segments import segmented_reduce
from gpualgo._algorithms.transform import transform
from gpualgo._arrays import ordering
from gpualgo._arrays.view import View
from gpualgo._base import recording, records
from gpualgo._driver.default_device import CPU
from gpualgo._lazy import is_lazy
from gpualgo._lazy.combining import applied, zipped
from gpualgo._lazy.making import full_of
from gpualgo._lazy.real import made
from gpualgo._pipeline import checks, inputs, refusals
from gpualgo._pipeline.inputs import Views
from gpualgo._pipeline.run import run

_WHERE = "reduce_by_index"
_KEYS = tuple(np.dtype(name) for name in ("uint8", "uint16", "uint32", "uint64"))
_COUNT = np.dtype(np.int64)


def reduce(problem: ByIndex, views: Views, call: Any, out: Any, stream: Any) -> Any:
    """Return the results of a call once all its arguments are checked: elements are sorted."""
    recorder = recording.current() if recording.active else None
    if recorder is not None and not recorder.is_graph:
        raise TypeError(
            f"{_WHERE}: elements are sorted first where size is {problem.size}, which no plan "
            "does; call it as it is"
        )
    (indices, x, init, op, dtype), size = call, problem.size
    targets = [] if out is None else calls.check_outputs(problem, views, (size,), out)
    _check_places(problem, views, targets, stream)
    if isinstance(problem.source, records.Computed):
        indices, x = _real(indices, "indices", stream), _real(x, "x", stream)
    keys = _keys(indices, size, stream)
    counts = histogram(keys, size + 1, (0, size + 1), stream=stream)  # the last are left out
    if problem.has_starts:
        offsets = exclusive_scan(counts, stream=stream)
        _, x = _sorted(keys, x, size, problem.x_form, stream)
        return segmented_reduce(x, offsets, init, op, dtype=dtype, out=out, stream=stream)
    empty = problem.encode(init)
    assert empty is not None
    fills = _fills(empty, size, problem.x_form)
    if 0 in problem.shape:
        found = transform(_filled, counts[:size], fills, out=out, stream=stream)
        form = problem.x_form
        return found if form is None or out is not None else form.packed(grouped.leaves(found))
    scans = _scans(keys, x, size, (init, op, dtype), problem.x_form, stream)
    ends = inclusive_scan(counts, stream=stream)[:size]
    last = grouped.at_places(scans, applied(_before, (ends,), _WHERE), _WHERE, "clip")
    return transform(_chosen, counts[:size], last, fills, out=out, stream=stream)


def _check_places(problem: ByIndex, views: Views, targets: list[View], stream: Any) -> None:
    """Raise for a stream, and for arrays on a GPU, that no kernel takes: by our names for them."""
    if views[0].device == CPU:  # arrays travel, and indices were looked at on the stream
        return
    if stream is not None:
        ordering.handle_for(stream, views[0], _WHERE)
    for view, name in zip(views, problem.inputs, strict=True):
        checks.aligned(view, name, _WHERE)
    for target in targets:
        checks.aligned(target, "out", _WHERE)


def _real(x: Any, name: str, stream: Any) -> Any:
    """Return arrays of what is lazy, or a tuple that may hold numbers."""
    where = f"{_WHERE}: {name}"
    return made(zipped(x, where), False, where, stream) if is_lazy(x) or isinstance(x, tuple) else x


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
    least = full_of((), 0, _COUNT, None)
    most = full_of((), size, _COUNT, None)
    with refusals.told_by(_WHERE, "transform"):
        return transform(_kept(dtype.type), indices, least, most, stream=stream)


def _fills(empty: np.ndarray[Any, Any], size: int, form: Any) -> Any:
    """Return lazy arrays of what results hold that no element has."""
    if form is None:
        return full_of(size, empty[()], empty.dtype, None)
    names = empty.dtype.names or ()
    parts = [full_of(size, empty[name][()], empty.dtype[name], None) for name in names]
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
