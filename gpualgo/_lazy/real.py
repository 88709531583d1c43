"""Lazy inputs of algorithms that move elements: made real first."""

from __future__ import annotations

from typing import Any

from gpualgo._base import recording
from gpualgo._lazy import is_lazy
from gpualgo._lazy.combining import zipped
from gpualgo._lazy.hooks import hooks


def made(x: Any, is_flat: bool, where: str, stream: Any) -> Any:
    """Return an input's elements in new arrays, which nobody else knows.

    Not in an output that was given: no argument has been checked yet, and others may read from it.
    `is_flat`: results have one dimension. What is no lazy array is returned as it is.
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
    return hooks.copy(whole, stream=stream)
