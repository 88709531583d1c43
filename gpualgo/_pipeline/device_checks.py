"""What arrays hold that calls look at: of the host, and of a device where GPUALGO_CHECK=1 asks."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._arrays import ordering
from gpualgo._arrays.view import View, byte_bounds
from gpualgo._base.environment import flag
from gpualgo._driver import default_device, driver, staging
from gpualgo._driver import device as gpu
from gpualgo._driver.default_device import CPU

VARIABLE = "GPUALGO_CHECK"


def are_on() -> bool:
    """Return whether values on devices are looked at, as those of the host are."""
    return flag(VARIABLE) is True


def values(view: View, where: str, stream: Any) -> np.ndarray[Any, Any]:
    """Return what an array on a device holds, once its stream has come so far."""
    handle = ordering.handle_for(stream, view, where, (view.library.stream(view.device),))
    low, high = byte_bounds(view)
    held = np.empty(high - low, np.uint8)
    with gpu.get(view.device).current():
        driver.refuse_capture(handle, f"{where}: {VARIABLE} is set, so values are looked at")
        staging.fetch(low, held.ctypes.data, held.nbytes, handle)
        driver.synchronize(handle)
    found: np.ndarray[Any, Any] = np.ndarray(
        view.shape, view.dtype, held, view.ptr - low, view.strides
    )
    return found


def of_host(view: View, where: str, stream: Any, why: str) -> np.ndarray[Any, Any]:
    """Return an array of the host, once a given stream, which may write it, has come so far."""
    owner = view.owner
    found: np.ndarray[Any, Any] = (
        owner if type(owner) is np.ndarray else view.library.to_numpy(owner)
    )
    device = default_device.of_streams()
    if stream is not None and device != CPU:
        from gpualgo._pipeline import host_whole

        host_whole.before_host_on(device, stream, found, where, why)
    return found
