"""Calls of the emulated driver: memory, copies and what is known of an address."""

from __future__ import annotations

import ctypes
import itertools
from types import SimpleNamespace
from typing import Any

from emulator import memory, pools, work
from emulator import streams as order
from emulator.calls import call
from emulator.codes import INVALID_VALUE, OUT_OF_MEMORY, Failed, Names
from emulator.memory import DEVICE, HOST, Allocation


class MemoryCalls:
    """What the driver answers about memory."""

    CUpointer_attribute = CUmemAllocationType = CUmemLocationType = CUmemPool_attribute = Names()
    CUmemAccess_flags = Names()

    @staticmethod
    def CUmemAccessDesc() -> Any:
        return SimpleNamespace(location=SimpleNamespace())

    def __init__(self) -> None:
        self._handles = itertools.count(1)
        self._room: dict[int, int] = {}  # what each pool lends at once, at most
        self._devices: dict[int, int] = {}  # of each pool
        self._pools: dict[int, int] = {}  # from which memory was lent last

    @staticmethod
    def CUmemPoolProps() -> Any:
        return SimpleNamespace(location=SimpleNamespace())

    @call(2)
    def cuMemGetInfo(self) -> tuple[int, int]:
        order.need_context()
        return memory.num_free(), memory.TOTAL_BYTES

    @call(1)
    def cuMemAlloc(self, size: int) -> int:
        order.need_context()
        order.check_safe()
        address = memory.allocate(size, "cuMemAlloc", order.device())
        self._pools.pop(address, None)
        return address

    @call()
    def cuMemFree(self, address: int) -> None:
        order.need_context()
        order.check_safe()
        memory.free(int(address))

    @call(1)
    def cuMemAllocManaged(self, size: int, flags: int) -> int:
        order.need_context()
        return memory.allocate(size, "cuMemAllocManaged", order.device(), is_managed=True)

    @call(1)
    def cuMemHostAlloc(self, size: int, flags: int) -> int:
        order.need_context()
        order.check_safe()
        return memory.allocate(size, "cuMemHostAlloc", kind=HOST)

    @call()
    def cuMemFreeHost(self, address: int) -> None:
        order.need_context()
        order.check_safe()
        memory.free(int(address))

    @call()
    def cuMemHostRegister(self, address: int, size: int, flags: int) -> None:
        order.need_context()
        memory.register(int(address), size)

    @call()
    def cuMemHostUnregister(self, address: int) -> None:
        order.need_context()
        memory.free(int(address))

    # --- in the order of streams

    @call(1)
    def cuMemPoolCreate(self, properties: Any) -> int:
        pool = next(self._handles)
        self._room[pool] = getattr(properties, "maxSize", 0) or memory.TOTAL_BYTES
        self._devices[pool] = int(getattr(properties.location, "id", 0))
        return pool

    @call()
    def cuMemPoolSetAttribute(self, pool: int, attribute: Any, value: Any) -> None:
        pass

    @call()
    def cuMemPoolSetAccess(self, pool: int, accesses: Any, count: int) -> None:
        pass

    @call()
    def cuMemPoolTrimTo(self, pool: int, kept: int) -> None:
        pass

    @call(1)
    def cuMemAllocFromPoolAsync(self, size: int, pool: int, stream: int) -> int:
        order.need_context()
        if size > self._room[pool]:
            raise Failed(OUT_OF_MEMORY)
        if self._devices[pool] != order.find(stream).context - order.CONTEXT:
            raise Failed(INVALID_VALUE)  # the driver takes it, but it is never meant
        address = self._allocated(size, stream, "cuMemAllocFromPoolAsync")
        self._pools[address] = pool
        return address

    @call(1)
    def cuMemAllocAsync(self, size: int, stream: int) -> int:
        order.need_context()
        return self._allocated(size, stream, "cuMemAllocAsync")

    def _allocated(self, size: int, stream: int, source: str) -> int:
        found = order.find(stream)
        if found.capture is None:
            return pools.take(size, found, source)
        address = memory.allocate(size, source, order.device())
        found.capture.graph.own(address)
        return address

    @call()
    def cuMemFreeAsync(self, address: int, stream: int) -> None:
        order.need_context()
        found = order.find(stream)
        if found.capture is None or not found.capture.graph.owns(int(address)):
            pools.give_back(int(address), found)  # a graph's memory goes with the graph

    # --- copies

    @call()
    def cuMemcpyHtoDAsync(self, target: int, source: Any, size: int, stream: int) -> None:
        order.need_context()
        if isinstance(source, (bytes, bytearray)):
            source = (ctypes.c_char * max(size, 1)).from_buffer_copy(source)
        self._copy(target, source, size, stream)

    @call(waits=True)
    def cuMemcpyDtoHAsync(self, target: int, source: int, size: int, stream: int) -> None:
        order.need_context()
        self._copy(target, source, size, stream)

    @call(waits=True)
    def cuMemcpyAsync(self, target: int, source: int, size: int, stream: int) -> None:
        order.need_context()
        self._copy(target, source, size, stream)

    @call()
    def cuMemcpyPeerAsync(
        self, target: int, to: int, source: int, of: int, size: int, stream: int
    ) -> None:
        order.need_context()
        self._copy(target, source, size, stream)

    def _copy(self, target: int, source: Any, size: int, stream: int) -> None:
        """Queue a copy; pageable memory is read before the call returns, and written as well."""
        found, target = order.find(stream), int(target)
        held = None
        if isinstance(source, ctypes.Array):
            held, source = source, ctypes.addressof(source)
        elif memory.is_pageable(source := int(source)):
            held = memory.snapshot(source, size)
            source = ctypes.addressof(held)

        def run(held: Any = held) -> None:
            memory.copy(target, source, size)

        order.queue(found, run)
        if memory.is_pageable(target) and found.capture is None:
            work.finish(found.last)

    # --- fills

    def _fill(
        self, address: int, pitch: int, word: bytes, width: int, height: int, stream: int
    ) -> None:
        order.need_context()
        place = int(address)
        if place % len(word) or pitch % len(word):
            raise Failed(INVALID_VALUE)
        order.queue(order.find(stream), lambda: memory.fill(place, pitch, word, width, height))

    @call()
    def cuMemsetD8Async(self, address: int, value: int, count: int, stream: int) -> None:
        self._fill(address, 0, value.to_bytes(1, "little"), count, 1, stream)

    @call()
    def cuMemsetD16Async(self, address: int, value: int, count: int, stream: int) -> None:
        self._fill(address, 0, value.to_bytes(2, "little"), count, 1, stream)

    @call()
    def cuMemsetD32Async(self, address: int, value: int, count: int, stream: int) -> None:
        self._fill(address, 0, value.to_bytes(4, "little"), count, 1, stream)

    @call()
    def cuMemsetD2D8Async(
        self, address: int, pitch: int, value: int, width: int, height: int, stream: int
    ) -> None:
        self._fill(address, pitch, value.to_bytes(1, "little"), width, height, stream)

    @call()
    def cuMemsetD2D16Async(
        self, address: int, pitch: int, value: int, width: int, height: int, stream: int
    ) -> None:
        self._fill(address, pitch, value.to_bytes(2, "little"), width, height, stream)

    @call()
    def cuMemsetD2D32Async(
        self, address: int, pitch: int, value: int, width: int, height: int, stream: int
    ) -> None:
        self._fill(address, pitch, value.to_bytes(4, "little"), width, height, stream)

    # --- what is known of an address

    @call(1)
    def cuPointerGetAttribute(self, attribute: str, address: int) -> int:
        found = memory.find(int(address))
        if found is None:
            raise Failed(INVALID_VALUE)
        return self._about(found, attribute, int(address))

    @call(1)
    def cuPointerGetAttributes(self, count: int, asked: list[str], address: int) -> list[int]:
        found = memory.find(int(address))
        return [0 if found is None else self._about(found, name, int(address)) for name in asked]

    def _about(self, found: Allocation, attribute: str, address: int) -> int:
        return {
            "MEMORY_TYPE": DEVICE if found.is_managed else found.kind,
            "IS_MANAGED": int(found.is_managed),
            "DEVICE_POINTER": address,
            "DEVICE_ORDINAL": found.device,
            "RANGE_START_ADDR": found.start,
            "RANGE_SIZE": found.size,
            "MEMPOOL_HANDLE": self._pools.get(found.start, 0),
        }[attribute.removeprefix("CU_POINTER_ATTRIBUTE_")]

    @call(2)
    def cuMemGetAddressRange(self, address: int) -> tuple[int, int]:
        found = memory.find(int(address))
        if found is None:
            raise Failed(INVALID_VALUE)
        return found.start, found.size
