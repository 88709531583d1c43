"""Values of arrays, for checks: of host arrays always, of device arrays if GPUALGO_CHECK=1."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._arrays import ordering
from gpualgo._arrays.view import View, as_view
from gpualgo._base.log import flag
from gpualgo._driver import default_device, staging
from gpualgo._driver.default_device import CPU

VARIABLE = "GPUALGO_CHECK"


def are_on() -> bool:
    """Return whether values of device arrays are checked."""
    return flag(VARIABLE) is True


def values(
    view: View, where: str, stream: Any, why: str = f"{VARIABLE} is set, so values are checked"
) -> np.ndarray[Any, Any]:
    """Return the values of a device array after waiting for its stream."""
    handle = ordering.handle_for(stream, view, where, (view.library.stream(view.device),))
    return staging.values(
        view.ptr, view.shape, view.strides, view.dtype, view.device, handle, f"{where}: {why}"
    )


def on_host(array: Any, where: str, stream: Any) -> np.ndarray[Any, Any]:
    """Return an array's values as a NumPy array; `values` of a device array."""
    view = as_view(array, where)
    return np.asarray(array) if view.device == CPU else values(view, where, stream)


def of_host(view: View, where: str, stream: Any, why: str) -> np.ndarray[Any, Any]:
    """Return a host array after waiting for stream=, which may still write to it."""
    owner = view.owner
    array: np.ndarray[Any, Any] = (
        owner if type(owner) is np.ndarray else view.library.to_numpy(owner)
    )
    device = default_device.of_streams()
    if stream is not None and device != CPU:
        from gpualgo._pipeline import host_whole

        host_whole.begin(device, stream, array, where, f"{where}: {why}")
    return array
