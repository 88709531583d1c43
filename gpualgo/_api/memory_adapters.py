"""The memory pools of CuPy, torch and RMM as cuda.core MemoryResources."""

from __future__ import annotations

from typing import Any

from cuda.core import Buffer, MemoryResource


class _OfDevice(MemoryResource):
    """Base class: memory on one device that is owned by a Buffer."""

    def __init__(self, device: int) -> None:
        self._device = device

    @property
    def device_id(self) -> int:
        return self._device

    @property
    def is_device_accessible(self) -> bool:
        return True

    @property
    def is_host_accessible(self) -> bool:
        return False

    def deallocate(self, ptr: Any, size: int, *, stream: Any) -> None:
        """Do nothing: the memory is freed with its owner, when the Buffer is released."""


def _handle(stream: Any) -> int:
    return int(stream.__cuda_stream__()[1])


class CuPyResource(_OfDevice):
    """CuPy's current allocator."""

    def __init__(self, device: int) -> None:
        import cupy

        super().__init__(device)
        self._cupy = cupy

    def allocate(self, size: int, *, stream: Any) -> Buffer:
        from gpualgo._arrays.frameworks import _cupy_stream

        with (
            self._cupy.cuda.Device(self._device),
            _cupy_stream(self._cupy, _handle(stream), self._device),
        ):
            memory = self._cupy.cuda.alloc(size)
        return Buffer.from_handle(memory.ptr, size, owner=memory)


class _TorchMemory:
    """A block of torch's caching allocator, freed when it is garbage-collected."""

    def __init__(self, torch: Any, size: int, device: int, stream: int) -> None:
        self._torch = torch
        self.ptr = int(torch.cuda.caching_allocator_alloc(size, device, stream))

    def __del__(self) -> None:
        self._torch.cuda.caching_allocator_delete(self.ptr)


class TorchResource(_OfDevice):
    """Torch's caching allocator."""

    def __init__(self, device: int) -> None:
        import torch

        super().__init__(device)
        self._torch = torch

    def allocate(self, size: int, *, stream: Any) -> Buffer:
        memory = _TorchMemory(self._torch, size, self._device, _handle(stream))
        return Buffer.from_handle(memory.ptr, size, owner=memory)


class RMMResource(_OfDevice):
    """RMM's current resource of the device."""

    def __init__(self, device: int) -> None:
        import rmm  # type: ignore[import-not-found]

        super().__init__(device)
        self._rmm = rmm

    def allocate(self, size: int, *, stream: Any) -> Buffer:
        memory = self._rmm.DeviceBuffer(size=size, stream=self._rmm.pylibrmm.stream.Stream(stream))
        return Buffer.from_handle(int(memory.ptr), size, owner=memory)


ADAPTERS = {"cupy": CuPyResource, "torch": TorchResource, "rmm": RMMResource}
