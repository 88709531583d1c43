"""Stands for cuda.bindings.driver: what the package, and the tests' arrays, call of it."""

from __future__ import annotations

import ctypes
import itertools
from types import SimpleNamespace
from typing import Any

from emulator import kernels, memory, trial
from emulator import streams as order
from emulator.calls import call
from emulator.codes import (
    COOPERATIVE_LAUNCH_TOO_LARGE,
    INVALID_VALUE,
    NAMES,
    NOT_FOUND,
    NOT_SUPPORTED,
    RESULTS,
    Failed,
    Names,
)
from emulator.driver_memory import MemoryCalls
from emulator.driver_streams import StreamCalls

NUM_SMS, SM_THREADS = 4, 1024  # of a kernel that takes 64 registers
SHARED_BYTES = 227 << 10  # of a block
_ATTRIBUTES = {
    "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR": 9,
    "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR": 0,
    "CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH": 0,
    "CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE": 0,
    "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT": NUM_SMS,
    "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": SHARED_BYTES,
}


class EmulatedDriver(MemoryCalls, StreamCalls):
    """One GPU, or several. Each function returns a code and its values, as cuda.bindings does."""

    CUresult = RESULTS
    CUdevice_attribute = CUfunction_attribute = CUlaunchAttributeID = Names()
    CUfunction = CUstream = CUdeviceptr = staticmethod(int)
    CUlaunchConfig = SimpleNamespace
    cuuint64_t = int

    def __init__(self, num_gpus: int = 1) -> None:
        self._num_gpus = num_gpus
        MemoryCalls.__init__(self)
        StreamCalls.__init__(self)
        self._libraries: dict[int, kernels.Library] = {}
        self._library_handles = itertools.count(0x100, 0x10)

    @staticmethod
    def CUlaunchAttribute() -> Any:
        return SimpleNamespace(value=SimpleNamespace())

    # --- devices and contexts

    @call()
    def cuInit(self, flags: int) -> None:
        pass

    @call(1)
    def cuDeviceGetCount(self) -> int:
        return self._num_gpus

    @call(1)
    def cuDriverGetVersion(self) -> int:
        return 13000

    @call(1)
    def cuDeviceGetAttribute(self, attribute: str, device: int) -> int:
        return _ATTRIBUTES[attribute]

    @call(1)
    def cuDeviceTotalMem(self, device: int) -> int:
        return memory.TOTAL_BYTES

    @call(1)
    def cuDevicePrimaryCtxRetain(self, device: int) -> int:
        return order.CONTEXT + int(device)

    @call(2)
    def cuDevicePrimaryCtxGetState(self, device: int) -> tuple[int, int]:
        return 0, 1

    @call(1)
    def cuCtxGetCurrent(self) -> int:
        return order.thread.context

    @call()
    def cuCtxSetCurrent(self, context: int) -> None:
        order.thread.context = int(context)

    @call(1)
    def cuCtxGetDevice(self) -> int:
        order.need_context()
        return order.device()

    @call(1)
    def cuDeviceCanAccessPeer(self, device: int, peer: int) -> int:
        return 1

    @call()
    def cuCtxEnablePeerAccess(self, context: int, flags: int) -> None:
        order.need_context()

    @call(1)
    def cuGetErrorName(self, error: int) -> bytes:
        return NAMES.get(error, f"error {error}").encode()

    @call(1)
    def cuGetErrorString(self, error: int) -> bytes:
        return b"by the emulated driver"

    # --- libraries and launches

    @call(1)
    def cuLibraryLoadData(self, image: bytes, *options: Any) -> int:
        order.check_safe()
        handle = next(self._library_handles)
        self._libraries[handle] = kernels.Library(image)
        return handle

    @call()
    def cuLibraryUnload(self, library: int) -> None:
        self._libraries.pop(library).unload()

    @call(1)
    def cuLibraryGetKernel(self, library: int, name: bytes) -> int:
        self._libraries[library].name = name.decode()
        return library  # it has one kernel

    @call(2)
    def cuLibraryGetGlobal(self, library: int, name: bytes) -> tuple[int, int]:
        order.need_context()
        found = self._libraries[library]
        if not found.state:
            raise Failed(NOT_FOUND)
        return found.state, kernels.STATE_BYTES

    @call()
    def cuKernelSetAttribute(self, attribute: str, value: int, kernel: int, device: int) -> None:
        if value > SHARED_BYTES:
            raise Failed(INVALID_VALUE)

    @call(1)
    def cuKernelGetAttribute(self, attribute: str, kernel: int, device: int) -> int:
        raise Failed(NOT_SUPPORTED)  # a kernel of the host has no registers

    @call()
    def cuLaunchKernelEx(self, config: Any, kernel: int, parameters: int, extra: int) -> None:
        order.need_context()
        library = self._libraries[int(kernel)]
        stream = order.find(config.hStream)
        grid, threads = config.gridDimX, config.blockDimX
        shared_bytes = config.sharedMemBytes
        if not 0 < threads <= 1024 or not 0 < grid < 1 << 31 or shared_bytes > SHARED_BYTES:
            raise Failed(INVALID_VALUE)
        kernels.check_size(grid, threads)
        block = ctypes.c_void_p.from_address(parameters).value or 0
        given = ctypes.string_at(block, library.num_bytes)  # before the caller writes it anew
        number = getattr(config, "numAttrs", 0)
        attributes = [one.id for one in getattr(config, "attrs", ())[:number]]
        is_cooperative = "CU_LAUNCH_ATTRIBUTE_COOPERATIVE" in attributes
        if is_cooperative and grid * threads > NUM_SMS * SM_THREADS:
            raise Failed(COOPERATIVE_LAUNCH_TOO_LARGE)
        test, runs = trial.current, itertools.count()
        number = test.next_launch()

        def run() -> None:  # several times, if a graph holds it
            settings = test.settings(number, next(runs), grid, threads, is_cooperative)
            library.launch(grid, threads, shared_bytes, given, settings)

        order.queue(stream, run)
