"""Keys in any order: a stable sort makes equal keys neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._algorithms.by_key import problem as calls
from gpualgo._algorithms.by_key.problem import ByKey, Reduction
from gpualgo._algorithms.radix_sort import argsort, radix_sort
from gpualgo._algorithms.radix_sort.problem import key_dtype_of
from gpualgo._algorithms.transform.copying import copy
from gpualgo._arrays.view import as_bytes_view, overlap
from gpualgo._base import recording
from gpualgo._lazy import is_lazy, places
from gpualgo._lazy.array import LazyArray
from gpualgo._pipeline import checks, counted, inputs
from gpualgo._pipeline.run import run

_REDUCE = "reduce_by_key"


def reduce(
    keys: Any, x: Any, init: Any, op: Any, dtype: Any, out: Any, out_count: Any, stream: Any
) -> Any:
    """Return the result of `reduce_by_key` for keys in any order."""
    keys, x = _materialized(keys, x, (out, out_count), _REDUCE, stream)
    # Checks all arguments before `out` is used.
    problem, views, _ = calls.parse_call(Reduction, _REDUCE, keys, x, init, op, None, dtype, stream)
    _check_order(problem, views)
    _check_apart(views, (*leaves(out), *leaves(out_count)), _REDUCE)
    if 0 not in problem.shape:
        if is_nested(problem.key_form) or is_nested(problem.x_form):
            order = _sorted(argsort, keys, _REDUCE, stream=stream)
            keys, x = gathered(keys, x, order, _REDUCE, stream)
        else:  # keys and elements are sorted together
            keys, x = _sorted(radix_sort, keys, _REDUCE, values=x, stream=stream)
    ordered, views, op = calls.parse_call(
        Reduction, _REDUCE, keys, x, init, op, None, dtype, stream
    )
    return counted.solve(ordered, views, op, out, out_count, stream, init)


def scan(
    kind: Any, where: str, keys: Any, x: Any, init: Any, op: Any, dtype: Any, out: Any, stream: Any
) -> Any:
    """Return the result of a scan by key for keys in any order."""
    keys, x = _materialized(keys, x, (out,), where, stream)
    problem, views, joint_op = calls.parse_call(kind, where, keys, x, init, op, None, dtype, stream)
    _check_order(problem, views)
    solve = run if problem.form is None else inputs.run_tuples
    if 0 in problem.shape:
        return solve(problem, views, joint_op, init, out, stream)
    if out is not None:
        calls.check_outputs(problem, views, problem.results[0].shape, out)
    order = _sorted(argsort, keys, where, stream=stream)
    keys, x = gathered(keys, x, order, where, stream)
    ordered, sources, op = calls.parse_call(kind, where, keys, x, init, op, None, dtype, stream)
    solve = run if ordered.form is None else inputs.run_tuples
    scans = solve(ordered, sources, op, init, None, stream)
    if ordered.form is None:  # move each result to its element's index
        bits = max(1, (order.shape[0] - 1).bit_length())
        outs = None if out is None else (order, out)
        return radix_sort(order, scans, end_bit=bits, out=outs, stream=stream)[1]
    inverse = argsort(order, stream=stream)
    return copy(gather(scans, inverse, where), out=out, stream=stream)


def _materialized(keys: Any, x: Any, outs: Any, where: str, stream: Any) -> tuple[Any, Any]:
    """Return keys and values, computed if they are lazy."""
    recorder = recording.current() if recording.active else None
    if recorder is not None and not recorder.is_graph:
        raise TypeError(
            f"{where}: without consecutive=True keys are sorted first, which a plan does not "
            "support; sort them, and pass consecutive=True"
        )
    if is_lazy(keys) or is_lazy(x):
        from gpualgo._lazy.construction import made

        keys, x = calls.place_lazy_inputs(keys, x, outs, where)
        keys, x = (made(a, False, f"{where}: {n}", stream) for a, n in ((keys, "keys"), (x, "x")))
    return keys, x


def _check_order(problem: ByKey, views: Any) -> None:
    """Raise TypeError for keys that have no order."""
    names = problem.inputs[: problem.num_keys]
    for view, name in zip(views, names, strict=False):
        key_dtype_of(view.dtype, problem.where, name)


def _check_apart(views: Any, outs: Any, where: str) -> None:
    """Raise ValueError if an output shares memory with an input."""
    for out in outs:
        target = as_bytes_view(out, f"{where}: out")
        if any(overlap(target, view) for view in views):
            raise ValueError(f"{where}: out overlaps keys or x; pass a separate array")


def _sorted(sort: Any, keys: Any, where: str, **options: Any) -> Any:
    """Return the result of a sort of flattened keys; its errors name our function and arguments."""
    with checks.renamed_errors(where, sort.__name__, {"values": "x"}):
        return sort(keys, axis=None, **options)


def leaves(x: Any) -> list[Any]:
    """Return the arrays of a result as a flat list."""
    if isinstance(x, tuple):
        return [leaf for item in x for leaf in leaves(item)]
    if isinstance(x, np.ndarray) and x.dtype.names is not None:
        return [x[name] for name in x.dtype.names]
    return [] if x is None else [x]


def is_nested(form: Any) -> bool:
    """Return whether an element has nested tuples."""
    return form is not None and any(item is not None for item in form.items)


def gathered(keys: Any, x: Any, order: Any, where: str, stream: Any) -> tuple[Any, Any]:
    """Return the keys and values at the indices `order`, lazily unless tuples are nested.

    Computed pairs of a key and a value would nest such tuples one level too deep.
    """
    lazy_pair = gather(keys, order, where, name="keys"), gather(x, order, where)
    nested_items = [item for part in lazy_pair if part.form is not None for item in part.form.items]
    if any(item is not None for item in nested_items):
        return copy(lazy_pair[0], stream=stream), copy(lazy_pair[1], stream=stream)
    return lazy_pair


def gather(x: Any, order: Any, where: str, mode: str = "wrap", name: str = "x") -> LazyArray:
    """Return the elements at the indices `order`, lazily; a tuple of arrays stays a tuple."""
    return places.taken(places.aligned(x, f"{where}: {name}"), order, None, mode, where)
