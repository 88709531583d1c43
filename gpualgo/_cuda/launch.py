"""Launches: a kernel, its grid, and its parameters packed in advance."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any

from gpualgo._driver import driver


def _early_config(arguments: Any) -> Any:
    """Return cuLaunchKernel's arguments, and leave to start early, as cuLaunchKernelEx has them."""
    api = driver.api()
    attribute, config = api.CUlaunchAttribute(), api.CUlaunchConfig()
    kinds = api.CUlaunchAttributeID
    attribute.id = kinds.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    attribute.value.programmaticStreamSerializationAllowed = 1
    config.gridDimX, config.gridDimY, config.gridDimZ = arguments[:3]
    config.blockDimX, config.blockDimY, config.blockDimZ = arguments[3:6]
    config.sharedMemBytes = arguments[6]
    config.attrs, config.numAttrs = [attribute], 1
    return config


class Launch:
    """A kernel with its grid and its parameters: one struct, whose head changes from call to call.

    Packed parameter blocks are lent out and taken back, so that threads never share one.
    """

    __slots__ = ("_configs", "_free", "_handle", "_head", "_pack", "_submit", "_tail", "device",
                 "grid", "kernel", "shared_bytes", "threads")  # fmt: skip

    def __init__(
        self, kernel: driver.Kernel, grid: int, threads: int, head: struct.Struct, tail: bytes,
        device: int, shared_bytes: int = 0, overlaps: bool = False,
    ) -> None:  # fmt: skip
        """`overlaps`: start while the kernel queued before still runs; the kernel waits itself."""
        self.kernel, self.grid, self.threads, self.device = kernel, grid, threads, device
        self.shared_bytes = shared_bytes
        kernel.allow_shared(shared_bytes, device)
        self._head, self._tail = head, tail
        self._pack, self._handle = head.pack_into, kernel.handle
        submit = self._submit_overlapping if overlaps else driver.api().cuLaunchKernel
        self._submit = kernel.wrapped(submit)
        self._free: list[tuple[int, Any, int, Any]] = []
        self._configs: list[Any] = []  # likewise

    def _new_block(self) -> tuple[int, Any, int, Any]:
        size = self._head.size + len(self._tail)
        buffer = bytearray(size + 32)
        base = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
        offset = -base % 16
        buffer[offset + self._head.size : offset + size] = self._tail
        table = (ctypes.c_void_p * 1)(base + offset)
        return ctypes.addressof(table), buffer, offset, table

    def _submit_overlapping(self, handle: Any, *arguments: Any) -> Any:
        """Launch as cuLaunchKernel does, and say that the kernel may start early."""
        api = driver.api()
        try:
            config = self._configs.pop()
        except IndexError:
            config = _early_config(arguments)
        config.hStream = api.CUstream(arguments[7])
        result = api.cuLaunchKernelEx(config, handle, arguments[8], arguments[9])
        self._configs.append(config)
        return result

    def packed(self, *head: Any) -> Callable[[int], None]:
        """Return launch(stream) for parameters that stay; threads may call it side by side."""
        block = self._new_block()
        self._pack(block[1], block[2], *head)
        submit, handle, grid, threads = self._submit, self._handle, self.grid, self.threads
        shared, parameters = self.shared_bytes, block[0]

        def launch(stream: int, block: Any = block) -> None:
            (status,) = submit(handle, grid, 1, 1, threads, 1, 1, shared, stream, parameters, 0)
            if status:
                self(stream, *head)  # which knows what to do

        return launch

    def __call__(self, stream: int, *head: Any) -> None:
        try:
            block = self._free.pop()
        except IndexError:
            block = self._new_block()
        self._pack(block[1], block[2], *head)
        if driver.is_simple:
            (status,) = self._submit(
                self._handle, self.grid, 1, 1, self.threads, 1, 1, self.shared_bytes, stream,
                block[0], 0,
            )  # fmt: skip
            if not status:
                self._free.append(block)
                return
            if status != driver.api().CUresult.CUDA_ERROR_INVALID_CONTEXT:
                driver.check((status,), f"launching {self.kernel.name}")
        # Several devices, a forked child, or a thread that CUDA has not seen yet.
        with driver.current_device(self.device):
            result = self._submit(
                self._handle, self.grid, 1, 1, self.threads, 1, 1, self.shared_bytes, stream,
                block[0], 0,
            )  # fmt: skip
        driver.check(result, f"launching {self.kernel.name}")
        self._free.append(block)
