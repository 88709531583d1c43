"""Arrays of every layout amid guard bytes, each with a mirror on the host that says what it holds.

A mirror holds the bytes that a right call leaves: the package's buffers are compared with it byte
for byte, guards and gaps included.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from support import Array, Backend

Host = np.ndarray[Any, Any]

GUARD_BYTES, GUARD = 256, 0xA5
ALIGNMENT = 64  # of buffers on the host; those of devices have theirs


@dataclass(frozen=True)
class Place:
    """Where an array lies: in which buffer, from which byte on, how."""

    buffer: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    is_read_only: bool = False

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def reversed(self) -> Place:
        """Return the same elements, the last axis backwards."""
        if not self.size or not self.shape:
            return self
        end = self.offset + (self.shape[-1] - 1) * self.strides[-1]
        return replace(self, offset=end, strides=(*self.strides[:-1], -self.strides[-1]))

    def shifted(self) -> Place:
        """Return an array that begins one element later."""
        return replace(self, offset=self.offset + self.dtype.itemsize)

    def of(self, memory: Host) -> Host:
        array: Host = np.ndarray(self.shape, self.dtype, memory.data, self.offset, self.strides)
        array.flags.writeable = not self.is_read_only
        return array


def dense(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the strides of C order."""
    return tuple(itemsize * math.prod(shape[i + 1 :]) for i in range(len(shape)))


# How arrays lie, by name: what is made of a shape's dense strides. `plain` is the first.
LAYOUTS = ("plain", "misaligned", "offset", "step", "reversed", "fortran", "padded", "broadcast",
           "read-only", "swapped")  # fmt: skip


def _geometry(
    layout: str, shape: tuple[int, ...], itemsize: int
) -> tuple[int, tuple[int, ...], int]:
    """Return offset, strides and bytes of an array."""
    strides = dense(shape, itemsize)
    nbytes = math.prod(shape) * itemsize
    if layout == "misaligned":
        return 1, strides, nbytes + 1
    if layout == "offset":
        return itemsize, strides, nbytes + itemsize
    if not shape or not nbytes:
        return 0, strides, nbytes
    if layout == "step":
        return 0, (*[2 * s for s in strides[:-1]], 2 * itemsize), 2 * nbytes
    if layout == "fortran":
        return 0, dense(shape[::-1], itemsize)[::-1], nbytes
    if layout == "padded":
        wide = (*shape[:-1], shape[-1] + 3)
        return 0, dense(wide, itemsize), math.prod(wide) * itemsize
    if layout == "reversed":
        return (shape[-1] - 1) * itemsize, (*strides[:-1], -itemsize), nbytes
    if layout == "broadcast":
        return 0, (*[s // shape[-1] for s in strides[:-1]], 0), nbytes
    return 0, strides, nbytes


@dataclass
class Memory:
    """All buffers of a program, as the package has them and as they should be."""

    backend: Backend
    theirs: list[Array] = field(default_factory=list)
    mirrors: list[Host] = field(default_factory=list)
    _last: list[int] = field(default_factory=list)  # buffers of the last step, to be used again
    _now: list[int] = field(default_factory=list)
    _watched: list[int] = field(default_factory=list)

    def begin(self, *, again: bool) -> None:
        """Begin a step; its arrays lie where the last one's did, if so asked."""
        self._last = self._now if again else []
        self._now, self._watched = [], []

    def watch(self, places: Iterable[Place]) -> None:
        """Have the buffers of these arrays compared with this step's."""
        self._watched += [place.buffer for place in places]

    def keep(self) -> None:
        """Let no later step use this one's buffers."""
        self._now = []

    def new(self, layout: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Place:
        """Return where a new array lies, in a buffer of its own."""
        if layout == "swapped":
            dtype = dtype.newbyteorder() if self.backend.xp is np else dtype
        offset, strides, nbytes = _geometry(layout, shape, dtype.itemsize)
        number = self._buffer(nbytes)
        is_read_only = layout == "read-only" and self.backend.xp is np
        return Place(number, GUARD_BYTES + offset, shape, strides, dtype, is_read_only)

    def _buffer(self, nbytes: int) -> int:
        size = nbytes + 2 * GUARD_BYTES
        number = next((k for k in self._last if len(self.mirrors[k]) == size), None)
        if number is None:
            number = len(self.mirrors)
            self.mirrors.append(_aligned(size))
            host = self.backend.xp is np
            self.theirs.append(_aligned(size) if host else self.backend.xp.zeros(size, np.uint8))
        else:
            self._last.remove(number)
        self._now.append(number)
        self._watched.append(number)
        self.mirrors[number][...] = GUARD
        return number

    def mirror(self, place: Place) -> Host:
        return place.of(self.mirrors[place.buffer])

    def array(self, place: Place) -> Array:
        """Return the array that the package is given."""
        memory = self.theirs[place.buffer]
        if self.backend.xp is np:
            return place.of(memory)
        return self.backend.xp.ndarray(
            place.shape, place.dtype, memory[place.offset :].data, place.strides
        )

    def fill(self, place: Place, values: Any) -> None:
        """Let an array hold values, here and in the mirror."""
        into = replace(place, is_read_only=False).of(self.mirrors[place.buffer])
        if place.size:
            shared = [i for i, s in enumerate(place.strides) if s == 0 and place.shape[i] > 1]
            where = tuple(slice(0, 1) if i in shared else slice(None) for i in range(into.ndim))
            into[where] = np.asarray(values)[where]
        self.send(place.buffer)

    def send(self, number: int) -> None:
        memory = self.theirs[number]
        memory[...] = self.backend.to_device(self.mirrors[number])

    def found(self, number: int) -> Host:
        return np.array(self.backend.to_host(self.theirs[number]))

    def differs(self) -> str:
        """Return where the package's buffers of this step are not as they should be."""
        for number in dict.fromkeys(self._watched):
            wrong = np.flatnonzero(self.found(number) != self.mirrors[number])
            if wrong.size:
                return f"buffer {number} has changed at bytes {wrong[:6] - GUARD_BYTES}"
        return ""


def _aligned(size: int) -> Host:
    memory = np.zeros(size + ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % ALIGNMENT
    return memory[begin : begin + size]
