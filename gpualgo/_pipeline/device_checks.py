"""Checks of what device arrays hold, which calls wait for: where GPUALGO_CHECK=1 asks for them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from gpualgo._arrays import ordering
from gpualgo._arrays.view import View, byte_bounds
from gpualgo._driver import device as gpu
from gpualgo._driver import driver, staging

VARIABLE = "GPUALGO_CHECK"


def are_on() -> bool:
    """Return whether values on devices are looked at, as those of the host are."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


def values(view: View, where: str, stream: Any) -> np.ndarray[Any, Any]:
    """Return what an array of one dimension on a device holds, once its stream has come so far."""
    handle = ordering.handle_for(stream, view, where)
    if handle is None:
        handle = view.library.stream(view.device)
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
