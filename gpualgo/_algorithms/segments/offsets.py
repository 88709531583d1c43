"""Offsets of segments: checks of their dtype, shape and, if the host has them, values."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._arrays.view import View, view_of
from gpualgo._base import dtypes, recording
from gpualgo._driver.default_device import CPU
from gpualgo._lazy import is_lazy
from gpualgo._pipeline import device_checks


def view(x: Any, where: str, stream: Any = None, beside: tuple[Any, ...] = ()) -> View:
    """Return the view of offsets; lazy ones are computed on the device of `beside`."""
    if is_lazy(x):
        from gpualgo._lazy.combining import place_lazy
        from gpualgo._lazy.real import made

        (x,) = place_lazy((x,), beside, where)
        x = made(x, False, f"{where}: offsets", stream)
    return view_of(x, f"{where}: offsets")


def check(offsets: View, where: str) -> None:
    """Raise unless offsets are integers in one dimension, at least one."""
    if offsets.dtype.kind not in "iu":
        raise TypeError(f"{where}: offsets has dtype {offsets.dtype}; pass integers")
    dtypes.check(offsets.dtype, f"{where}: offsets")  # integers may have another byte order
    if len(offsets.shape) != 1 or offsets.shape[0] == 0:
        raise ValueError(
            f"{where}: offsets has shape {offsets.shape}; pass a one-dimensional array, one "
            "longer than the number of segments"
        )


def check_values(
    offsets: View, num_items: int, where: str, stream: Any = None, of: str = "x"
) -> None:
    """Raise ValueError for host offsets that fall or are out of range.

    Those on a GPU are checked with GPUALGO_CHECK=1. Skipped while calls are recorded, because their
    arrays may stand for others. `of` is the name of the array that offsets index.
    """
    if recording.active and recording.current() is not None:
        return
    if offsets.device == CPU:
        values = device_checks.of_host(offsets, where, stream, "the host reads the offsets")
    elif device_checks.are_on():
        values = device_checks.values(offsets, where, stream)
    else:
        return
    if int(values[0]) < 0 or int(values[-1]) > num_items:
        # The others are between these, unless they fall.
        end = values[0] if values[0] < 0 else values[-1]
        raise ValueError(
            f"{where}: offsets has {end}, and {of} has {num_items} elements; pass offsets within it"
        )
    falls = values[1:] < values[:-1]
    if falls.any():
        i = int(np.argmax(falls))
        raise ValueError(
            f"{where}: offsets falls from {values[i]} to {values[i + 1]} at index {i + 1}; "
            "pass non-decreasing offsets"
        )
