"""Check that inputs are sorted (GPUALGO_CHECK=1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._arrays.view import View, as_view
from gpualgo._base import recording
from gpualgo._driver.default_device import CPU
from gpualgo._pipeline import device_checks

Host = np.ndarray[Any, Any]


def check(
    x: Any, first: View, name: str, where: str, less: Any, descending: Any, stream: Any
) -> None:
    """Raise ValueError unless x is sorted; `first` is the view of its first field.

    Recorded calls are not checked, because their arrays may be placeholders.
    """
    if first.shape[0] < 2 or (recording.active and recording.current() is not None):
        return
    wrong = _inversions(x, first.shape[0], less, descending, where, stream)
    if wrong.size:
        raise ValueError(
            f"{where}: {name} is not in order from element {wrong[0]} on; sort it first, by the "
            "same less and descending"
        )


def _inversions(
    x: Any, length: int, less: Any, descending: Any, where: str, stream: Any
) -> np.ndarray[Any, Any]:
    """Return the elements that a stable sort would move, or that sort before their predecessor."""
    if less is None:
        from gpualgo._algorithms.radix_sort import argsort

        order = _on_host(argsort(x, descending=descending, stream=stream), where, stream)
        return np.flatnonzero(order != np.arange(order.size))
    from gpualgo._algorithms.transform import transform

    pair = _part(x, length, np.s_[1:]), _part(x, length, np.s_[:-1])
    marks = transform(less, *(pair[::-1] if descending else pair), stream=stream)
    return np.flatnonzero(_on_host(marks, where, stream)) + 1


def _part(x: Any, length: int, part: slice) -> Any:
    """Return a slice of x; broadcast items of a tuple are kept."""
    if not isinstance(x, tuple):
        return x[part]
    fields = [item[part] if getattr(item, "shape", ()) == (length,) else item for item in x]
    return type(x)(*fields) if hasattr(x, "_fields") else tuple(fields)


def _on_host(array: Any, where: str, stream: Any) -> Host:
    view = as_view(array, where)
    return np.asarray(array) if view.device == CPU else device_checks.values(view, where, stream)
