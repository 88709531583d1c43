"""The tests' array library on the emulated GPU: a module by CuPy's name, as far as tests use it."""

from __future__ import annotations

import ctypes
import sys
import time
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from emulator import array_memory, array_operators, array_streams  # noqa: F401
from emulator import streams as order
from emulator.arrays import computed, ndarray, write
from gpualgo._arrays import dlpack

_NUMPY = ("bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float16", "float32", "float64", "complex64", "complex128", "newaxis")  # fmt: skip
_COMPUTED = ("add", "arange", "bincount")


def empty(shape: Any, dtype: Any = float) -> ndarray:
    return ndarray(shape, dtype)


def full(shape: Any, value: Any, dtype: Any = None) -> ndarray:
    made = ndarray(shape, np.asarray(value).dtype if dtype is None else dtype)
    write(made, value)
    return made


def zeros(shape: Any, dtype: Any = float) -> ndarray:
    return full(shape, 0, dtype)


def ones(shape: Any, dtype: Any = float) -> ndarray:
    return full(shape, 1, dtype)


def empty_like(x: ndarray) -> ndarray:
    return empty(x.shape, x.dtype)


def full_like(x: ndarray, value: Any) -> ndarray:
    return full(x.shape, value, x.dtype)


def zeros_like(x: ndarray) -> ndarray:
    return full_like(x, 0)


def ones_like(x: ndarray) -> ndarray:
    return full_like(x, 1)


def asarray(value: Any, dtype: Any = None) -> ndarray:
    """Return an array on the device; what is there already, by any protocol, is not copied."""
    if isinstance(value, ndarray):
        return value if dtype is None or value.dtype == dtype else value.astype(dtype)
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None:
        return _of_interface(value, interface)
    host = np.asarray(value, dtype)
    made = ndarray(host.shape, host.dtype)
    write(made, host)
    return made


def _of_interface(owner: Any, interface: dict[str, Any]) -> ndarray:
    """Return a view of a protocol's array; the current stream waits for its producer."""
    array_streams.use_device()
    stream = interface.get("stream")
    if stream is not None:
        _wait_for(order.find(stream))
    dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
    mem = array_memory.UnownedMemory(interface["data"][0], 0, owner)
    return ndarray(shape, dtype, array_memory.MemoryPointer(mem, 0), interface.get("strides"))


def _wait_for(producer: order.Stream) -> None:
    event = order.Event()
    order.record(event, producer)
    order.wait(order.find(array_streams.current().ptr), event)


def from_dlpack(x: Any) -> ndarray:
    array_streams.use_device()
    capsule = x.__dlpack__(stream=array_streams.current().ptr or 1)
    tensor = dlpack.read(capsule)
    mem = array_memory.UnownedMemory(tensor.ptr, 0, (capsule, x))
    data = array_memory.MemoryPointer(mem, 0)
    return ndarray(tensor.shape, tensor.dtype, data, tensor.strides)


def asnumpy(x: Any) -> np.ndarray[Any, Any]:
    return x.get() if isinstance(x, ndarray) else np.asarray(x)


def broadcast_to(x: ndarray, shape: Any) -> ndarray:
    seen = np.broadcast_to(x.host, shape)
    return as_strided(x, seen.shape, seen.strides)


def as_strided(x: ndarray, shape: Any = None, strides: Any = None) -> ndarray:
    return ndarray(shape, x.dtype, x.data, strides)


def _computed(name: str) -> Any:
    plain = getattr(np, name)

    def function(*args: Any, out: Any = None, **kwargs: Any) -> ndarray:
        return computed(lambda *values: plain(*values, **kwargs), *args, out=out)

    return function


def _empty_pinned(shape: Any, dtype: Any = float) -> np.ndarray[Any, Any]:
    like = np.empty(shape, dtype)
    found = array_memory.alloc_pinned_memory(like.nbytes)
    return np.frombuffer(found, like.dtype, like.size).reshape(like.shape)


class RawKernel:
    """The one kernel that tests launch themselves: the gate (tests/gate.py)."""

    def __init__(self, source: str, name: str) -> None:
        assert name == "wait_until_open", name

    def __call__(self, grid: Any, block: Any, arguments: tuple[Any, ...]) -> None:
        array_streams.use_device()
        opened, given_up, ticket, patience = map(int, arguments)
        gate = _Gate(opened, given_up, ticket, patience / 1e9)
        order.queue(order.find(array_streams.current().ptr), None, gate.is_open)


class _Gate:
    """What the kernel of a gate waits for, and how long."""

    def __init__(self, opened: int, given_up: int, ticket: int, patience: float) -> None:
        self._opened = ctypes.c_uint32.from_address(opened)
        self._given_up = ctypes.c_uint32.from_address(given_up)
        self._ticket, self._patience = ticket, patience
        self._since: float | None = None  # when it ran

    def is_open(self) -> bool:
        """Return whether the stream may go on."""
        if self._opened.value >= self._ticket:
            return True
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        if now - self._since <= self._patience:
            return False
        self._given_up.value = self._ticket
        return True


def install() -> ModuleType:
    """Let `import cupy` find this library."""
    module = ModuleType("cupy", __doc__)
    for name in _NUMPY:
        setattr(module, name, getattr(np, name))
    for name in _COMPUTED:
        setattr(module, name, _computed(name))
    for function in (
        empty, full, zeros, ones, empty_like, full_like, zeros_like, ones_like, asarray, asnumpy,
        from_dlpack, broadcast_to, RawKernel, ndarray,
    ):  # fmt: skip
        setattr(module, function.__name__, function)
    ndarray.__module__ = "cupy"  # by which the package knows a library's arrays
    streams, mem = array_streams, array_memory
    cuda = SimpleNamespace(
        Stream=streams.Stream, ExternalStream=streams.ExternalStream, Event=streams.Event,
        Device=streams.Device, runtime=streams.runtime, get_current_stream=streams.current,
        alloc=mem.alloc, malloc_managed=mem.malloc_managed, set_allocator=mem.set_allocator,
        alloc_pinned_memory=mem.alloc_pinned_memory, MemoryPointer=mem.MemoryPointer,
        UnownedMemory=mem.UnownedMemory,
    )  # fmt: skip
    found: Any = module
    found.cuda, found.lib = (
        cuda,
        SimpleNamespace(stride_tricks=SimpleNamespace(as_strided=as_strided)),
    )
    pool = mem.Pool()
    found.get_default_memory_pool = lambda: pool
    cupyx: Any = ModuleType("cupyx")
    cupyx.empty_pinned = _empty_pinned
    sys.modules.update(cupy=module, cupyx=cupyx)
    return module
