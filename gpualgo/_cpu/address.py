"""Where an array's memory lies, as an integer."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# NumPy's arrays begin as all objects do, and then have the address of their first element: part of
# the ABI, by which every compiled extension reads it.
_OFFSET = object.__basicsize__
_at = ctypes.c_ssize_t.from_address


def _told(array: Array) -> int:
    """Return what NumPy tells, which takes a microsecond."""
    return int(array.__array_interface__["data"][0])


def _read(array: Array) -> int:
    """Return what stands in the array's object, five times as fast."""
    return _at(id(array) + _OFFSET).value


def _is_there() -> bool:
    """Return whether addresses of some arrays stand where they are looked for."""
    if sys.implementation.name != "cpython":  # an id is an address
        return False
    memory = np.zeros(8)
    return all(_read(a) == _told(a) for a in (memory, memory[3:], memory[::-2], memory[:0]))


address: Callable[[Array], int] = _read if _is_there() else _told
"""Return where the first element of an array lies."""
