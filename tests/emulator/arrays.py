"""The tests' arrays on the emulated GPU: CuPy's class as far as the tests use it.

What is done with them is queued on the current stream and done by NumPy when it runs.
"""

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from emulator import array_memory, array_streams, memory
from emulator import streams as order
from emulator.array_memory import MemoryPointer
from gpualgo._arrays import dlpack

Host = np.ndarray[Any, Any]


class ndarray:
    """An array on the device."""

    __array_ufunc__ = None  # NumPy's scalars leave operators to it
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None
    ) -> None:
        self.dtype = np.dtype(dtype)
        self.shape = tuple(map(operator.index, shape)) if np.iterable(shape) else (int(shape),)
        size = math.prod(self.shape) * self.dtype.itemsize
        self.data = array_memory.alloc(size) if memptr is None else memptr
        self.strides = strides or array_memory.dense(self.shape, self.dtype.itemsize)

    # --- what it is

    @property
    def host(self) -> Host:
        """The array as the host sees it, whatever is queued."""
        low, high = array_memory.bounds(self.shape, self.strides, self.dtype.itemsize)
        start: Any = (ctypes.c_char * (high - low)).from_address(self.data.ptr + low)
        return np.ndarray(self.shape, self.dtype, start, -low, self.strides)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def flags(self) -> Any:
        return self.host.flags

    @property
    def device(self) -> array_streams.Device:
        return array_streams.Device(0)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"array on the emulated GPU ({self.dtype}, shape {self.shape})"

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        interface: dict[str, Any] = {
            "shape": self.shape, "typestr": self.dtype.str, "version": 3,
            "data": (self.data.ptr if self.size else 0, False),
            "strides": None if self.flags.c_contiguous else self.strides,
            "stream": array_streams.current().ptr or 1,
        }  # fmt: skip
        if self.dtype.names:
            interface["descr"] = self.dtype.descr
        return interface

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, 0

    def __dlpack__(self, stream: Any = None, *, max_version: Any = None, **other: Any) -> Any:
        array_streams.use_device()
        own = array_streams.current().ptr
        if stream != -1:
            event = order.Event()
            order.record(event, order.find(own))
            order.wait(order.find(stream or 0), event)
        tensor = dlpack.Tensor(
            self.data.ptr, self.shape, self.strides, self.dtype, dlpack.CUDA, 0, False, self
        )
        return dlpack.export(tensor, max_version)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed; use .get()")

    # --- views

    def _seen(self, host: Host) -> ndarray:
        """Return a view of a part that the host sees."""
        place = int(host.__array_interface__["data"][0]) if host.size else self.data.ptr
        data = MemoryPointer(self.data.mem, place - self.data.mem.ptr)
        return ndarray(host.shape, host.dtype, data, host.strides)

    def __getitem__(self, key: Any) -> ndarray:
        if isinstance(key, ndarray) or (isinstance(key, tuple) and any(
            isinstance(each, ndarray) for each in key
        )):  # fmt: skip
            return computed(lambda x, *i: x[i], self, *(key if isinstance(key, tuple) else (key,)))
        return self._seen(self._part(key))

    def _part(self, key: Any) -> Host:
        """Return a view, of one element as well."""
        host = self.host
        found = host[key]
        if isinstance(found, np.ndarray):
            return found
        return host[(*key, ...) if isinstance(key, tuple) else (key, ...)]

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, ndarray):
            key = key.get()
        write(self._seen(self._part(key)), value)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    @property
    def T(self) -> ndarray:
        return self._seen(self.host.T)

    def transpose(self, *axes: Any) -> ndarray:
        return self._seen(self.host.transpose(*axes))

    def swapaxes(self, a: int, b: int) -> ndarray:
        return self._seen(self.host.swapaxes(a, b))

    def view(self, dtype: Any = None) -> ndarray:
        return self._seen(self.host.view(self.dtype if dtype is None else dtype))

    def reshape(self, *shape: Any) -> ndarray:
        host = self.host
        found = host.reshape(*shape)
        if not found.size or np.may_share_memory(found, host):
            return self._seen(found)
        return computed(lambda x: x.reshape(*shape), self)

    def ravel(self) -> ndarray:
        return self.reshape(-1)

    @property
    def real(self) -> ndarray:
        return self._seen(self.host.real)

    @property
    def imag(self) -> ndarray:
        return self._seen(self.host.imag)

    # --- values

    def get(self, stream: Any = None, out: Any = None, blocking: bool = True) -> Host:
        """Return the values, once the current stream has run, or with `out` write them there."""
        array_streams.use_device()
        stream = stream or array_streams.current()
        target = np.empty(self.shape, self.dtype) if out is None else out
        queued = order.find(stream.ptr)
        order.queue(queued, lambda: read(self, target))
        if blocking or memory.is_pageable(target.ctypes.data):
            order.synchronize(queued)
            array_streams.check()
        return target

    def set(self, values: Host, stream: Any = None) -> None:
        write(self, values)

    def item(self) -> Any:
        return self.get().item()

    def tolist(self) -> Any:
        return self.get().tolist()

    def __int__(self) -> int:
        return int(self.get())

    def __float__(self) -> float:
        return float(self.get())

    def __complex__(self) -> complex:
        return complex(self.get())

    def __bool__(self) -> bool:
        return bool(self.get())

    def __index__(self) -> int:
        return operator.index(self.get()[()])

    def copy(self, order: str = "C") -> ndarray:
        return computed(lambda x: x.copy(), self)

    def astype(self, dtype: Any, copy: bool = True) -> ndarray:
        return computed(lambda x: x.astype(dtype), self)

    def fill(self, value: Any) -> None:
        write(self, value)

    def sum(self, *args: Any, **kwargs: Any) -> ndarray:
        return computed(lambda x: x.sum(*args, **kwargs), self)

    def min(self, *args: Any) -> ndarray:
        return computed(lambda x: x.min(*args), self)

    def max(self, *args: Any) -> ndarray:
        return computed(lambda x: x.max(*args), self)

    def all(self, *args: Any) -> ndarray:
        return computed(lambda x: x.all(*args), self)

    def any(self, *args: Any) -> ndarray:
        return computed(lambda x: x.any(*args), self)


def computed(function: Callable[..., Any], *operands: Any, out: ndarray | None = None) -> ndarray:
    """Return the array of a function of arrays, computed by NumPy when the stream comes to it."""
    hosts = [x.host if isinstance(x, ndarray) else x for x in operands]
    shapes = [np.zeros(x.shape, x.dtype) if isinstance(x, np.ndarray) else x for x in hosts]
    with np.errstate(all="ignore"):
        like = np.asarray(function(*shapes))
    if out is None:
        out = ndarray(like.shape, like.dtype)
    target, held = out, operands

    def run(held: Any = held) -> None:
        with np.errstate(all="ignore"):
            _store(target, np.asarray(function(*hosts)))

    _queue(run)
    return out


def write(target: ndarray, value: Any) -> None:
    """Queue the writing of values; those of the host are read now, unless page-locked."""
    if isinstance(value, ndarray):
        computed(lambda x: x, value, out=target)
        return
    host = np.asarray(value)
    held = host if not memory.is_pageable(host.ctypes.data) else host.copy()
    _queue(lambda: _store(target, held))


def _queue(run: Callable[[], None]) -> None:
    array_streams.use_device()
    order.queue(order.find(array_streams.current().ptr), run)


def read(source: ndarray, target: Host) -> None:
    """Copy to the host now."""
    if source.flags.c_contiguous and target.flags.c_contiguous and source.dtype == target.dtype:
        memory.copy(target.ctypes.data, source.data.ptr, source.nbytes)
    else:
        target[...] = source.host


def _store(target: ndarray, value: Host) -> None:
    """Write values into device memory now, by the machine's own copies and fills."""
    if not target.size:
        return
    host = np.empty(target.shape, target.dtype)
    with np.errstate(all="ignore"):
        host[...] = value
    if target.flags.c_contiguous:
        memory.copy(target.data.ptr, host.ctypes.data, host.nbytes)
        return
    seen = target.host
    axis = int(np.argmax(target.shape))
    zero, count = bytes(target.dtype.itemsize), target.shape[axis]
    lines = np.moveaxis(seen, axis, -1)
    for index in np.ndindex(lines.shape[:-1]):
        line = lines[index]
        line = line if line.strides[0] >= 0 else line[::-1]
        # Every place is written once by the machine, which notes that it has been.
        memory.fill(line.__array_interface__["data"][0], line.strides[0], zero, 1, count)
    seen[...] = host
