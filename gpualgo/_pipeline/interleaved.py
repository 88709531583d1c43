"""Detects host arrays that are fields of the same records, so that one copy moves them all."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpualgo._arrays.view import NumPy, address_of
from gpualgo._base.records import in_one_piece
from gpualgo._base.strides import dense_strides

Array = np.ndarray[Any, Any]


class Interleaved(NamedTuple):
    """The contiguous records, and each array's offset within one record."""

    records: Array
    offsets: tuple[int, ...]


def find_interleaved(arrays: Sequence[Array]) -> Interleaved | None:
    """Return the records whose fields the arrays are; None if they are not.

    Each record holds one element of every array, and every byte between the first and last element
    belongs to a record.
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
    layout = in_one_piece(addresses, sizes)
    if layout is None or strides != dense_strides(shape, layout[1]):
        return None
    offsets, step = layout
    if any(step % size or offset % size for offset, size in zip(offsets, sizes, strict=True)):
        return None  # kernels load whole numbers, which must be aligned
    memory = (ctypes.c_ubyte * (step * math.prod(shape))).from_address(min(addresses))
    records: Array = np.frombuffer(memoryview(memory), f"V{step}")
    return Interleaved(records.reshape(shape), offsets)
