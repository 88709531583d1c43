"""Materializes lazy inputs of algorithms that move elements."""

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
    """Return a lazy input materialized in new arrays, flattened if `is_flat`; others unchanged.

    It is not written to the call's output: arguments are unchecked yet, and inputs may overlap it.
    """
    if not is_lazy(x):
        return x
    recorder = recording.current() if recording.active else None
    if recorder is not None and not recorder.is_graph and not recorder.is_rough:
        raise TypeError(
            f"{where}: a lazy array must be materialized first, which a plan does not do; pass "
            "gpualgo.copy(x)"
        )
    lazy = zipped(x, where)
    if is_flat:
        lazy = lazy.ravel()
    if recorder is not None and recorder.is_rough:
        return _placeholder(lazy)
    return hooks.copy(lazy, stream=stream)


def _placeholder(x: LazyArray) -> Any:
    """Return uninitialised arrays with the layout that materializing x would give."""
    device, library = x.place

    def new(dtype: np.dtype[Any]) -> Any:
        if device == CPU:
            return np.empty(x.shape, dtype)  # never written, so it takes no physical memory
        return library.empty(x.shape, dtype, device, None)

    form = x.form
    return new(x.dtype) if form is None else form.packed([new(d) for d in records.leaves(x.dtype)])
