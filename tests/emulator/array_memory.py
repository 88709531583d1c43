"""Memory of the tests' arrays, by CuPy's names: given back in the order of a stream."""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

from emulator import array_streams, memory, pools
from emulator import streams as order
from emulator.codes import OUT_OF_MEMORY, Failed
from emulator.memory import HOST


class Memory:
    """Memory of the device, which goes back once its stream has run what it has queued by then."""

    def __init__(self, size: int) -> None:
        self.size, self.device_id = size, 0
        self.ptr = 0
        if size:
            stream = order.find(array_streams.current().ptr)
            try:
                self.ptr = pools.take(size, stream, "an array")
            except Failed as failure:
                raise (MemoryError() if failure.code == OUT_OF_MEMORY else failure) from None
            finalizer = weakref.finalize(self, pools.give_back, self.ptr, stream, is_aside=True)
            finalizer.atexit = False


class UnownedMemory:
    """Memory of somebody else."""

    def __init__(self, ptr: int, size: int, owner: Any, device_id: int = 0) -> None:
        self.ptr, self.size, self.device_id, self._owner = ptr, size, device_id, owner


class ManagedMemory:
    """Memory of the device and the host."""

    def __init__(self, size: int) -> None:
        self.size, self.device_id = size, 0
        self.ptr = memory.allocate(size, "cuMemAllocManaged", is_managed=True)
        weakref.finalize(self, memory.free, self.ptr).atexit = False


class MemoryPointer:
    """An address within memory."""

    def __init__(self, mem: Any, offset: int) -> None:
        self.mem, self.device_id = mem, mem.device_id
        self.ptr = mem.ptr + offset

    def __int__(self) -> int:
        return int(self.ptr)


class PinnedMemory:
    """Page-locked memory of the host, as a buffer."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.ptr = memory.allocate(size, "alloc_pinned_memory", kind=HOST)
        weakref.finalize(self, memory.free, self.ptr).atexit = False

    @property
    def buffer(self) -> Any:
        """The bytes, with their address; whoever reads them holds the memory."""
        found: Any = (ctypes.c_char * self.size).from_address(self.ptr)
        found.memory, found.ptr = self, self.ptr
        return found


def alloc(size: int) -> MemoryPointer:
    """Return new memory, by the allocator that is set."""
    array_streams.use_device()
    return _allocator(size)


def malloc_managed(size: int) -> MemoryPointer:
    array_streams.use_device()
    return MemoryPointer(ManagedMemory(size), 0)


def alloc_pinned_memory(size: int) -> Any:
    array_streams.use_device()
    return PinnedMemory(size).buffer


def _allocate(size: int) -> MemoryPointer:
    return MemoryPointer(Memory(size), 0)


_allocator = _allocate


def set_allocator(allocator: Any = None) -> None:
    """Take memory from somewhere else."""
    global _allocator
    _allocator = allocator or _allocate


class Pool:
    """What is asked of CuPy's memory pool."""

    def free_all_blocks(self) -> None:
        pass

    def used_bytes(self) -> int:
        return memory.TOTAL_BYTES - memory.num_free()

    def total_bytes(self) -> int:
        """Return what it would keep: as much as was ever used at once."""
        return memory.most_used()


def dense(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the strides of an array without gaps, in C order."""
    strides = [itemsize]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * max(extent, 1))
    return tuple(reversed(strides[: len(shape)]))


def bounds(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """Return where an array begins and ends, in bytes from its first element."""
    if 0 in shape:
        return 0, 0
    ends = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    return sum(min(e, 0) for e in ends), sum(max(e, 0) for e in ends) + itemsize
