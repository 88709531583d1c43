"""Lazy inputs of algorithms that move elements: made real where the results go."""

from __future__ import annotations

from typing import Any

from gpualgo._arrays.view import overlap, view_of
from gpualgo._base import recording, records
from gpualgo._lazy import is_lazy
from gpualgo._lazy.array import LazyArray
from gpualgo._lazy.combining import zipped
from gpualgo._lazy.hooks import hooks
from gpualgo._operators.operator import Operator


def made(
    x: Any, out: Any, is_flat: bool, where: str, stream: Any, beside: Any = None
) -> Any:  # fmt: skip
    """Return an input's elements in memory: in an output if they fit there, else in new arrays.

    `is_flat`: results have one dimension. What is no lazy array is returned as it is. `beside`:
    another input, which is read later: an output where it lies is not written.
    """
    if not is_lazy(x):
        return x
    if recording.active:
        recorder = recording.current()
        if recorder is not None and not recorder.is_graph:
            raise TypeError(
                f"{where}: a lazy array is made real before it is moved, which no plan does; pass "
                "gpualgo.copy(x)"
            )
    whole = zipped(x, where)
    if is_flat:
        whole = whole.ravel()
    is_there = _fits(whole, out) and (beside is None or not _reads(beside, out, where))
    return hooks.copy(whole, out=out if is_there else None, stream=stream)


def _fits(x: LazyArray, out: Any) -> bool:
    """Return whether an output is of x's shape and dtype; if not, the algorithm will say so."""
    if out is None or isinstance(out, tuple) or x.dtype.names is not None:
        return False
    view = view_of(out, "out")
    return view.shape == x.shape and view.dtype == x.dtype and not view.readonly


def _reads(x: Any, out: Any, where: str) -> bool:
    """Return whether an input, or a function in it, reads memory that an output shares."""
    whole = zipped(x, where)
    captured = Operator(whole.function).arrays
    read = [one for one in whole.views if not records.is_position(one.dtype)]
    return any(overlap(view_of(out, "out"), view) for view in (*read, *captured))
