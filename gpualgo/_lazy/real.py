"""Lazy inputs of algorithms that move elements: made real first."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._base import recording, records
from gpualgo._driver.default_device import CPU
from gpualgo._lazy import is_lazy
from gpualgo._lazy.array import LazyArray
from gpualgo._lazy.combining import zipped
from gpualgo._lazy.hooks import hooks


def made(x: Any, is_flat: bool, where: str, stream: Any) -> Any:
    """Return an input's elements in new arrays, which nobody else knows.

    Not in an output that was given: no argument has been checked yet, and others may read from it.
    `is_flat`: results have one dimension. What is no lazy array is returned as it is.
    """
    if not is_lazy(x):
        return x
    recorder = recording.current() if recording.active else None
    if recorder is not None and not recorder.is_graph and not recorder.is_rough:
        raise TypeError(
            f"{where}: a lazy array is made real before it is moved, which no plan does; pass "
            "gpualgo.copy(x)"
        )
    whole = zipped(x, where)
    if is_flat:
        whole = whole.ravel()
    if recorder is not None and recorder.is_rough:
        return _stand_in(whole)
    return hooks.copy(whole, stream=stream)


def _stand_in(x: LazyArray) -> Any:
    """Return arrays like those that x would be made, of which nothing is computed."""
    device, library = x.place

    def new(dtype: np.dtype[Any]) -> Any:
        if device == CPU:
            return np.empty(x.shape, dtype)  # nothing is written, so no memory is taken
        return library.empty(x.shape, dtype, device, None)

    form = x.form
    return new(x.dtype) if form is None else form.packed([new(d) for d in records.leaves(x.dtype)])
