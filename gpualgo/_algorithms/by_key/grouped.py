"""Keys in any order: a stable sort brings equal ones together."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._algorithms.by_key import calls
from gpualgo._algorithms.by_key.problem import ByKey, Reduction
from gpualgo._algorithms.radix_sort import argsort, radix_sort
from gpualgo._algorithms.radix_sort.problem import key_dtype_of
from gpualgo._algorithms.transform.copying import copy
from gpualgo._arrays.view import as_bytes_view, overlap
from gpualgo._base import recording
from gpualgo._lazy import is_lazy, places
from gpualgo._lazy.array import LazyArray
from gpualgo._pipeline import counted, inputs, refusals
from gpualgo._pipeline.run import run

_REDUCE = "reduce_by_key"


def reduce(
    keys: Any, x: Any, init: Any, op: Any, dtype: Any, out: Any, out_count: Any, stream: Any
) -> Any:
    """Return what `reduce_by_key` does of keys in any order."""
    keys, x = _real(keys, x, (out, out_count), _REDUCE, stream)
    # Checks all arguments, and shows no outputs but new ones to who comes first.
    problem, views, _ = calls.solvable(Reduction, _REDUCE, keys, x, init, op, None, dtype, stream)
    _check_order(problem, views)
    _check_apart(views, (*leaves(out), *leaves(out_count)), _REDUCE)
    if 0 not in problem.shape:
        if is_nested(problem.key_form) or is_nested(problem.x_form):
            order = _sorted(argsort, keys, _REDUCE, stream=stream)
            keys, x = taken(keys, x, order, _REDUCE, stream)
        else:  # they travel side by side
            keys, x = _sorted(radix_sort, keys, _REDUCE, values=x, stream=stream)
    found, views, op = calls.solvable(Reduction, _REDUCE, keys, x, init, op, None, dtype, stream)
    return counted.solve(found, views, op, out, out_count, stream, init)


def scan(
    kind: Any, where: str, keys: Any, x: Any, init: Any, op: Any, dtype: Any, out: Any, stream: Any
) -> Any:
    """Return what a scan by key does of keys in any order."""
    keys, x = _real(keys, x, (out,), where, stream)
    problem, views, given = calls.solvable(kind, where, keys, x, init, op, None, dtype, stream)
    _check_order(problem, views)
    solve = run if problem.form is None else inputs.solve
    if 0 in problem.shape:
        return solve(problem, views, given, init, out, stream)
    if out is not None:
        calls.check_outputs(problem, views, problem.results[0].shape, out)
    order = _sorted(argsort, keys, where, stream=stream)
    keys, x = taken(keys, x, order, where, stream)
    found, sources, op = calls.solvable(kind, where, keys, x, init, op, None, dtype, stream)
    solve = run if found.form is None else inputs.solve
    made = solve(found, sources, op, init, None, stream)
    if found.form is None:  # each result is brought to where its element is
        bits = max(1, (order.shape[0] - 1).bit_length())
        outs = None if out is None else (order, out)
        return radix_sort(order, made, end_bit=bits, out=outs, stream=stream)[1]
    back = argsort(order, stream=stream)
    return copy(at_places(made, back, where), out=out, stream=stream)


def _real(keys: Any, x: Any, outs: Any, where: str, stream: Any) -> tuple[Any, Any]:
    """Return keys and values that are no lazy arrays."""
    recorder = recording.current() if recording.active else None
    if recorder is not None and not recorder.is_graph:
        raise TypeError(
            f"{where}: keys in any order are sorted first, which no plan does; sort them, and "
            "pass consecutive=True"
        )
    if is_lazy(keys) or is_lazy(x):
        from gpualgo._lazy.real import made

        keys, x = calls.placed(keys, x, outs, where)
        keys, x = (made(a, False, f"{where}: {n}", stream) for a, n in ((keys, "keys"), (x, "x")))
    return keys, x


def _check_order(problem: ByKey, views: Any) -> None:
    """Raise TypeError for keys that have no order."""
    names = problem.inputs[: problem.num_keys]
    for view, name in zip(views, names, strict=False):
        key_dtype_of(view.dtype, problem.where, name)


def _check_apart(views: Any, outs: Any, where: str) -> None:
    """Raise ValueError where an output shares memory with an input."""
    for out in outs:
        target = as_bytes_view(out, f"{where}: out")
        if any(overlap(target, view) for view in views):
            raise ValueError(f"{where}: out overlaps keys or x; pass a separate array")


def _sorted(sort: Any, keys: Any, where: str, **more: Any) -> Any:
    """Return what a sort makes of flattened keys, which it calls by our names: x its values."""
    with refusals.told_by(where, sort.__name__, {"values": "x"}):
        return sort(keys, axis=None, **more)


def leaves(x: Any) -> list[Any]:
    """Return the arrays of a result, one after the other."""
    if isinstance(x, tuple):
        return [leaf for item in x for leaf in leaves(item)]
    if isinstance(x, np.ndarray) and x.dtype.names is not None:
        return [x[name] for name in x.dtype.names]
    return [] if x is None else [x]


def is_nested(form: Any) -> bool:
    """Return whether an element has a tuple within."""
    return form is not None and any(item is not None for item in form.items)


def taken(keys: Any, x: Any, order: Any, where: str, stream: Any) -> tuple[Any, Any]:
    """Return keys and values at places, lazily; with tuples within a tuple they are made real.

    Pairs of a key and a value, which computed ones are, would hold those one level deeper.
    """
    found = at_places(keys, order, where, name="keys"), at_places(x, order, where)
    inner = [item for one in found if one.form is not None for item in one.form.items]
    if any(item is not None for item in inner):
        return copy(found[0], stream=stream), copy(found[1], stream=stream)
    return found


def at_places(x: Any, order: Any, where: str, mode: str = "wrap", name: str = "x") -> LazyArray:
    """Return elements at places, lazily; a tuple of arrays stays one."""
    return places.taken(places.aligned(x, f"{where}: {name}"), order, None, mode, where)
