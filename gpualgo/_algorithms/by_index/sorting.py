"""Reductions by index of more results than tables can hold: composed from a sort and a scan."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._algorithms import by_key
from gpualgo._algorithms.by_index.problem import ByIndex
from gpualgo._algorithms.by_key import problem as calls
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
from gpualgo._lazy.construction import full_of, made
from gpualgo._pipeline import checks, inputs
from gpualgo._pipeline.inputs import Views
from gpualgo._pipeline.run import run

_WHERE = "reduce_by_index"
_KEYS = tuple(np.dtype(name) for name in ("uint8", "uint16", "uint32", "uint64"))
_COUNT = np.dtype(np.int64)


def reduce(problem: ByIndex, views: Views, call: Any, out: Any, stream: Any) -> Any:
    """Return the results of a call by sorting the elements, once all its arguments are checked."""
    recorder = recording.current() if recording.active else None
    if recorder is not None and not recorder.is_graph:
        raise TypeError(
            f"{_WHERE}: with size {problem.size} elements are sorted first, which a plan does "
            "not support; call the function itself"
        )
    (indices, x, init, op, dtype), size = call, problem.size
    targets = [] if out is None else calls.check_outputs(problem, views, (size,), out)
    _check_gpu_arguments(problem, views, targets, stream)
    if isinstance(problem.source, records.Computed):
        indices, x = _materialized(indices, "indices", stream), _materialized(x, "x", stream)
    keys = _keys(indices, size, stream)
    # out-of-range indices are in the last bin, which is ignored
    counts = histogram(keys, size + 1, (0, size + 1), stream=stream)
    if problem.row_init is not None:
        offsets = exclusive_scan(counts, stream=stream)
        _, x = _sorted(keys, x, size, problem.x_form, stream)
        return segmented_reduce(x, offsets, init, op, dtype=dtype, out=out, stream=stream)
    empty = problem.encode(init)
    assert empty is not None
    fills = _empty_results(empty, size, problem.x_form)
    if 0 in problem.shape:
        filled = transform(_empty_only, counts[:size], fills, out=out, stream=stream)
        form = problem.x_form
        return filled if form is None or out is not None else form.packed(by_key.leaves(filled))
    scans = _scans_of_keys(keys, x, size, (init, op, dtype), problem.x_form, stream)
    ends = inclusive_scan(counts, stream=stream)[:size]
    last = by_key.gather(scans, applied(_previous, (ends,), _WHERE), _WHERE, "clip")
    return transform(_value_or_empty, counts[:size], last, fills, out=out, stream=stream)


def _check_gpu_arguments(problem: ByIndex, views: Views, targets: list[View], stream: Any) -> None:
    """Raise for a stream or GPU arrays that no kernel accepts, naming our arguments."""
    if views[0].device == CPU:  # host arrays are copied, and indices were checked on the stream
        return
    if stream is not None:
        ordering.handle_for(stream, views[0], _WHERE)
    for view, name in zip(views, problem.inputs, strict=True):
        checks.aligned(view, name, _WHERE)
    for target in targets:
        checks.aligned(target, "out", _WHERE)


def _materialized(x: Any, name: str, stream: Any) -> Any:
    """Return an array, computed if it is lazy or a tuple that may contain numbers."""
    where = f"{_WHERE}: {name}"
    return made(zipped(x, where), False, where, stream) if is_lazy(x) or isinstance(x, tuple) else x


def _scans_of_keys(keys: Any, x: Any, size: int, options: Any, form: Any, stream: Any) -> Any:
    """Return the inclusive scans of the elements of each key, one after the other."""
    init, op, dtype = options
    keys, x = _sorted(keys, x, size, form, stream)
    problem, views, op = calls.parse_call(
        InclusiveScan, _WHERE, keys, x, init, op, None, dtype, stream
    )
    solve = run if problem.form is None else inputs.run_tuples
    return solve(problem, views, op, init, None, stream)


def _sorted(keys: Any, x: Any, size: int, form: Any, stream: Any) -> Any:
    """Return the keys in order, and the elements in the keys' order."""
    if by_key.is_nested(form):
        order = argsort(keys, axis=None, stream=stream)
        return by_key.gathered(keys, x, order, _WHERE, stream)
    return radix_sort(keys, x, axis=None, end_bit=size.bit_length(), stream=stream)


def _keys(indices: Any, size: int, stream: Any) -> Any:
    """Return indices in the narrowest dtype; those out of range become `size`."""
    dtype = next(kind for kind in _KEYS if size <= np.iinfo(kind).max)
    zero = full_of((), 0, _COUNT, None)
    size_array = full_of((), size, _COUNT, None)
    with checks.renamed_errors(_WHERE, "transform"):
        return transform(_narrowed(dtype.type), indices, zero, size_array, stream=stream)


def _empty_results(empty: np.ndarray[Any, Any], size: int, form: Any) -> Any:
    """Return lazy arrays of the results of indices without elements."""
    if form is None:
        return full_of(size, empty[()], empty.dtype, None)
    names = empty.dtype.names or ()
    parts = [full_of(size, empty[name][()], empty.dtype[name], None) for name in names]
    return records.nest_fields(names, parts, _make_tuple)


def _make_tuple(cls: Any, items: list[Any]) -> Any:
    return cls._make(items) if hasattr(cls, "_make") else cls(items)


def _narrowed(kind: Any) -> Any:
    return lambda i, least, size: kind(i) if i >= least and i < size else kind(size)


def _previous(end: Any) -> Any:
    return end - 1


def _value_or_empty(count: Any, value: Any, empty: Any) -> Any:
    return value if count > 0 else empty


def _empty_only(_: Any, empty: Any) -> Any:
    return empty
