"""Leaves of lazy arrays: arrays that they read, and index arrays ("positions").

Each is represented by a NumPy array for its address, shape and strides, so that NumPy computes
slices and transpositions. Those of GPU arrays and positions must never be dereferenced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from gpualgo._arrays.view import Interface, NumPy, View, address_of, strides_for
from gpualgo._base import records
from gpualgo._base.strides import dense_strides
from gpualgo._base.strides import reshape as reshaped_strides
from gpualgo._driver.default_device import CPU

Array = np.ndarray[Any, Any]


class Leaf(NamedTuple):
    """An array that a lazy array reads, in the lazy array's shape; or positions."""

    array: Array  # on a GPU and for positions only its address, shape and strides are used
    dtype: np.dtype[Any]
    device: int
    library: Any  # for positions None if they may be used with any arrays
    owner: Any

    @property
    def is_position(self) -> bool:
        return records.is_position(self.dtype)

    @property
    def address(self) -> int:
        """Address of its first element; for positions, the first index."""
        address = int(self.array.__array_interface__["data"][0])
        return address - records.ORIGIN if self.is_position else address

    def view(self, device: int, library: Any) -> View:
        """Return its view; positions get the device and library.

        Host arrays get the library, too: it determines where they are processed.
        """
        array, dtype = self.array, self.dtype
        if self.is_position and any(array.shape) and not any(array.strides):
            dtype = records.SHARED_POSITION
        if device == CPU:
            if self.is_position:
                array = _typed(array, dtype)
            return View(0, array.shape, array.strides, dtype, CPU, library, True, array)
        library = library if self.is_position else self.library
        return View(
            self.address, array.shape, array.strides, dtype, device, library, True, self.owner
        )

    def with_array(self, array: Array) -> Leaf:
        return self._replace(array=array)

    def broadcast_to(self, shape: tuple[int, ...]) -> Leaf:
        if self.array.shape == shape:
            return self
        view = NumPy.view(self.array)
        return self.with_array(as_strided(self.array, shape, strides_for(view, shape)))

    @property
    def place(self) -> tuple[Any, ...]:
        """Key that is equal for leaves with the same elements."""
        array = self.array
        return self.address, array.shape, array.strides, self.dtype, id(self.library)


def _typed(array: Array, dtype: np.dtype[Any]) -> Array:
    """Return positions as an array of their dtype; its strides stay those of 1-byte elements."""
    address = array.__array_interface__["data"][0]
    return np.asarray(Interface(address, array.shape, array.strides, dtype.str))


def of_view(view: View) -> Leaf:
    if view.device == CPU:
        array = view.library.to_numpy(view.owner)
        return Leaf(array, view.dtype, CPU, view.library, view.owner)
    array = np.asarray(Interface(address_of(view), view.shape, view.strides))
    return Leaf(array, view.dtype, view.device, view.library, view.owner)


def within(view: View, address: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Leaf:
    """Return the leaf of a part of an array that starts at an address."""
    array, dtype = np.asarray(Interface(address, shape, strides)), view.dtype
    if view.device == CPU:
        is_plain = dtype.isbuiltin == 1
        typestr = dtype.str if is_plain else f"|V{dtype.itemsize}"
        array = np.asarray(Interface(address, shape, strides, typestr, owner=view.owner))
        array = array if is_plain else array.view(dtype)
    return Leaf(array, dtype, view.device, view.library, view.owner)


Place = tuple[int, Any]
"""A device and a library; the library is None if other arrays determine both."""


def positions(
    shape: Sequence[int], dtype: np.dtype[Any] = records.POSITION, place: Place = (CPU, None)
) -> Leaf:
    """Return an index leaf: 0, 1, … in C order."""
    shape = tuple(shape)
    array = np.asarray(Interface(records.ORIGIN, shape, dense_strides(shape, 1)))
    return Leaf(array, dtype, *place, None)


def along(shape: Sequence[int], axis: int, place: Place = (CPU, None)) -> Leaf:
    """Return an index leaf whose elements are the indices along one axis."""
    strides = tuple(int(i == axis) for i in range(len(shape)))
    array = np.asarray(Interface(records.ORIGIN, tuple(shape), strides))
    return positions((), place=place).with_array(array)


def reshaped(array: Array, shape: tuple[int, ...]) -> Array | None:
    """Return a reshaped view, None if a copy would be needed."""
    try:
        strides = reshaped_strides(array.shape, array.strides, shape, array.itemsize)
    except ValueError:
        return None
    return as_strided(array, shape, strides)
