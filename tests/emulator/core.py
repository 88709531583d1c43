"""Stands for cuda.core, which calls the real driver: streams, graph builders and memory."""

from __future__ import annotations

import sys
import weakref
from types import ModuleType
from typing import Any

from emulator import array_streams, captures, memory, pools
from emulator import streams as order
from emulator.graphs import Graph as Recorded

_MODES = {"global": order.GLOBAL, "thread_local": order.THREAD_LOCAL, "relaxed": order.RELAXED}


class Stream:
    """A stream, its own or somebody's."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    @classmethod
    def from_handle(cls, handle: int) -> Stream:
        return cls(int(handle))

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle

    def sync(self) -> None:
        order.synchronize(order.find(self.handle))
        array_streams.check()


def _new_stream() -> Stream:
    order.need_context()
    made = Stream(order.create(False).handle)
    weakref.finalize(made, order.destroy, made.handle).atexit = False
    return made


class GraphBuilder:
    """Takes down the work of a stream of its own."""

    def __init__(self) -> None:
        self.stream = _new_stream()
        self.recorded: Recorded | None = None

    def begin_building(self, mode: str = "relaxed") -> GraphBuilder:
        captures.begin(order.find(self.stream.handle), _MODES[mode])
        return self

    def end_building(self) -> GraphBuilder:
        self.recorded = captures.end(order.find(self.stream.handle))
        return self

    def complete(self) -> Graph:
        assert self.recorded is not None
        return Graph(self.recorded)

    def close(self) -> None:
        self.recorded = None


class Graph:
    """What can be launched."""

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded

    def launch(self, stream: Stream) -> None:
        order.need_context()
        order.queue_graph(order.find(stream.handle), self._recorded)

    def update(self, source: GraphBuilder) -> None:
        """Become another graph of as many nodes."""
        assert source.recorded is not None
        if len(source.recorded.nodes) != len(self._recorded.nodes):
            raise RuntimeError("the graphs differ")
        source.recorded.follow(self._recorded)
        self._recorded = source.recorded


class MemoryResource:
    """What lends memory."""


class Buffer:
    """Lent memory."""

    def __init__(self, handle: int, size: int, resource: Any, owner: Any, stream: Any) -> None:
        self.handle, self.size, self._owner = handle, size, owner
        self._stream = stream
        self._close = weakref.finalize(self, Buffer._give_back, handle, size, resource, stream)
        self._close.atexit = False
        self._resource = resource

    @classmethod
    def from_handle(
        cls, ptr: Any, size: int, mr: Any = None, owner: Any = None, stream: Any = None
    ) -> Buffer:
        return cls(int(ptr), size, mr, owner, stream)

    @staticmethod
    def _give_back(handle: int, size: int, resource: Any, stream: Any) -> None:
        if resource is not None:
            resource.deallocate(handle, size, stream=stream)

    def close(self, stream: Any = None) -> None:
        """Give the memory back, in the order of a stream."""
        if self._close.detach() is not None:
            self._give_back(self.handle, self.size, self._resource, stream or self._stream)
        self._owner = None


class DeviceMemoryResource(MemoryResource):
    """The device's own pool."""

    def __init__(self, device: int) -> None:
        self.device_id = device

    is_device_accessible, is_host_accessible = True, False

    def allocate(self, size: int, *, stream: Any) -> Buffer:
        address = pools.take(size, order.find(stream.handle), "cuda.core")
        return Buffer(address, size, self, None, stream)

    def deallocate(self, ptr: Any, size: int, *, stream: Any) -> None:
        pools.give_back(int(ptr), order.find(stream.handle))


class LegacyPinnedMemoryResource(MemoryResource):
    """Page-locked memory."""

    def allocate(self, size: int, *, stream: Any = None) -> Buffer:
        return Buffer(
            memory.allocate(size, "cuda.core", kind=memory.HOST), size, self, None, stream
        )

    def deallocate(self, ptr: Any, size: int, *, stream: Any = None) -> None:
        memory.free(int(ptr))


class Device:
    """The one device."""

    def __init__(self, device: int = 0) -> None:
        self.device_id = device
        self.memory_resource = DeviceMemoryResource(device)

    def set_current(self) -> None:
        array_streams.use_device()

    def create_stream(self) -> Stream:
        return _new_stream()

    def create_graph_builder(self) -> GraphBuilder:
        return GraphBuilder()


def install() -> None:
    """Let `import cuda.core` find this."""
    module: Any = ModuleType("cuda.core", __doc__)
    for found in (
        Stream, GraphBuilder, Graph, MemoryResource, Buffer, DeviceMemoryResource,
        LegacyPinnedMemoryResource, Device,
    ):  # fmt: skip
        setattr(module, found.__name__, found)
    module.LEGACY_DEFAULT_STREAM, module.PER_THREAD_DEFAULT_STREAM = Stream(0), Stream(2)
    sys.modules["cuda.core"] = module
