"""Transfers of small arrays: from any library to the host, and from the host to any library."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._algorithms.histogram.arguments import to_host
from gpualgo._arrays.view import view_of
from gpualgo._driver.default_device import CPU


def host_of(x: Any, where: str) -> Any:
    """Return an array or a result as NumPy's; this waits for a GPU."""
    if isinstance(x, (np.ndarray, np.generic)):
        return x
    return to_host(view_of(x, where), None)


def beside(array: np.ndarray[Any, Any], other: Any, where: str) -> Any:
    """Return a host array in the library and on the device of another."""
    if isinstance(other, (np.ndarray, np.generic)):
        return array
    view = view_of(other, where)
    if view.device == CPU:
        return view.library.from_numpy(array, other)
    from gpualgo._driver import device as gpu
    from gpualgo._driver import staging

    copied = view.library.empty(array.shape, array.dtype, view.device, None)
    if array.size:
        with gpu.get(view.device).current():
            pointer = view_of(copied, where).ptr
            staging.upload(array, pointer, view.device, int(view.library.stream(view.device)))
    return copied
