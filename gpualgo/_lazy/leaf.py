"""Leaves of lazy arrays: arrays that they read, and index arrays ("positions").

Each is represented by a NumPy array for its address, shape and strides, so that NumPy computes
slices and transpositions. Those of GPU arrays and positions must never be dereferenced.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from gpualgo._arrays.view import NumPy, View, address_of, strides_for
from gpualgo._base import records
from gpualgo._base.strides import dense_strides
from gpualgo._driver.default_device import CPU

Array = np.ndarray[Any, Any]


class _Interface:
    """An object with `__array_interface__`, for NumPy arrays on memory that NumPy does not own."""

    held: Any = None  # owner of the memory, kept alive

    def __init__(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        self.__array_interface__ = {
            "version": 3, "typestr": "|V1", "data": (address, True), "shape": shape,
            "strides": strides,
        }  # fmt: skip


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
    interface = {**array.__array_interface__, "typestr": dtype.str, "version": 3}
    interface["strides"] = array.strides
    interface.pop("descr", None)
    holder = _Interface(0, (), ())
    holder.__array_interface__ = interface
    return np.asarray(holder)


def of_view(view: View) -> Leaf:
    if view.device == CPU:
        array = view.library.to_numpy(view.owner)
        return Leaf(array, view.dtype, CPU, view.library, view.owner)
    array = np.asarray(_Interface(address_of(view), view.shape, view.strides))
    return Leaf(array, view.dtype, view.device, view.library, view.owner)


def within(view: View, address: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Leaf:
    """Return the leaf of a part of an array that starts at an address."""
    interface = _Interface(address, shape, strides)
    if view.device == CPU:
        interface.held = view.owner
        dtype = view.dtype
        is_plain = dtype.isbuiltin == 1
        interface.__array_interface__["typestr"] = dtype.str if is_plain else f"|V{dtype.itemsize}"
        array = np.asarray(interface)
        array = array if is_plain else array.view(dtype)
    else:
        array = np.asarray(interface)
    return Leaf(array, view.dtype, view.device, view.library, view.owner)


Place = tuple[int, Any]
"""A device and a library; the library is None if other arrays determine both."""


def positions(
    shape: Sequence[int], dtype: np.dtype[Any] = records.POSITION, place: Place = (CPU, None)
) -> Leaf:
    """Return an index leaf: 0, 1, … in C order."""
    shape = tuple(shape)
    array = np.asarray(_Interface(records.ORIGIN, shape, dense_strides(shape, 1)))
    return Leaf(array, dtype, *place, None)


def along(shape: Sequence[int], axis: int, place: Place = (CPU, None)) -> Leaf:
    """Return an index leaf whose elements are the indices along one axis."""
    strides = tuple(int(i == axis) for i in range(len(shape)))
    array = np.asarray(_Interface(records.ORIGIN, tuple(shape), strides))
    return positions((), place=place).with_array(array)


def reshaped(array: Array, shape: tuple[int, ...]) -> Array | None:
    """Return a reshaped view, None if a copy would be needed."""
    if array.size == 0:
        return as_strided(array, shape, dense_strides(shape, array.itemsize))
    old = [(n, s) for n, s in zip(array.shape, array.strides, strict=True) if n != 1]
    strides: list[int] = []
    remaining = 1  # remaining extent of the old dimension that is being split
    step = 0
    for extent in reversed(shape):
        if extent == 1:
            strides.append(strides[-1] if strides else array.itemsize)
            continue
        if remaining == 1:
            n, step = old.pop()
            while old and old[-1][1] == n * step:  # adjacent contiguous dimensions
                n *= old.pop()[0]
            remaining = n
        if remaining % extent:
            return None
        strides.append(step)
        step *= extent
        remaining //= extent
    return as_strided(array, shape, tuple(reversed(strides)))


def whole_shape(extents: tuple[int, ...], size: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape of `size` elements with a -1 replaced; raise ValueError if there is none."""
    known = math.prod(n for n in extents if n != -1)
    if extents.count(-1) == 1 and known and size % known == 0:
        extents = tuple(size // known if n == -1 else n for n in extents)
    if -1 in extents or any(n < 0 for n in extents) or math.prod(extents) != size:
        raise ValueError(
            f"reshape: a lazy array of shape {shape} has {size} elements and cannot have shape "
            f"{extents}"
        )
    return extents
