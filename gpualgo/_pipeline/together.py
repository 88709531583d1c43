"""Arrays of the host that lie together, as the fields of records do: they travel as one."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpualgo._arrays.view import NumPy, address_of
from gpualgo._base.extents import dense_strides
from gpualgo._base.records import in_one_piece

Array = np.ndarray[Any, Any]


class Together(NamedTuple):
    """Records in C order without gaps between them, and where in one each array's element lies."""

    records: Array
    offsets: tuple[int, ...]


def together(arrays: Sequence[Array]) -> Together | None:
    """Return the memory in which arrays lie together; None if they do not.

    Neighbouring elements of one enclose elements of all others, so that their memory is one piece:
    none of its bytes is another's but what lies between the fields of a record.
    """
    first = arrays[0]
    shape, strides = first.shape, first.strides
    if len(arrays) < 2 or first.size < 2:
        return None
    addresses = []
    for array in arrays:
        if array.shape != shape or array.strides != strides or not array.size:
            return None
        addresses.append(address_of(NumPy.view(array)))
    sizes = [array.itemsize for array in arrays]
    found = in_one_piece(addresses, sizes)
    if found is None or strides != dense_strides(shape, found[1]):
        return None
    offsets, step = found
    if any(step % size or at % size for at, size in zip(offsets, sizes, strict=True)):
        return None  # kernels load whole numbers
    memory = (ctypes.c_ubyte * (step * math.prod(shape))).from_address(min(addresses))
    records: Array = np.frombuffer(memoryview(memory), f"V{step}")
    return Together(records.reshape(shape), offsets)
