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
OFFSET = object.__basicsize__
_at = ctypes.c_ssize_t.from_address


def _told(array: Array) -> int:
    """Return what NumPy tells, which takes a microsecond."""
    return int(array.__array_interface__["data"][0])


def _read(array: Array) -> int:
    """Return what stands in the array's object, five times as fast."""
    return _at(id(array) + OFFSET).value


def _is_there() -> bool:
    """Return whether addresses of some arrays stand where they are looked for."""
    if sys.implementation.name != "cpython":  # an id is an address
        return False
    memory = np.zeros(8)
    return all(_read(a) == _told(a) for a in (memory, memory[3:], memory[::-2], memory[:0]))


address: Callable[[Array], int] = _read if _is_there() else _told
"""Return where the first element of an array lies."""


# Words behind the address: how many axes, where extents are, and strides; whose memory it is, the
# dtype, flags. In front of it is the class.
AXES, EXTENTS, DTYPE, FLAGS = 1, 2, 5, 6
CONTIGUOUS, ALIGNED = 1, 1 << 8  # flags: in C order without gaps


def _has_fields() -> bool:
    """Return whether what arrays hold besides stands where it is looked for."""
    if address is not _read:
        return False
    memory = np.zeros((3, 17), np.uint8)
    arrays = memory, memory[:, 1:9], memory.reshape(-1)[1:49].view(np.float64), np.zeros(5)[::2]
    return all(map(_is_as_told, arrays))


def _is_as_told(a: Any) -> bool:
    words = [_at(id(a) + OFFSET + 8 * i).value for i in range(-1, FLAGS + 1)]
    flags = words[1 + FLAGS] & (CONTIGUOUS | ALIGNED)
    told = CONTIGUOUS * a.flags.c_contiguous | ALIGNED * a.flags.aligned
    extents = (ctypes.c_ssize_t * a.ndim).from_address(words[1 + EXTENTS])
    found = words[0], words[1 + AXES] & 0xFFFFFFFF, tuple(extents), words[1 + DTYPE], flags
    return found == (id(np.ndarray), a.ndim, a.shape, id(a.dtype), told)


has_fields = _has_fields()
