"""A driver for machines without a GPU: its device memory is the host's, and it notes every call.

Kernels are launched in name alone. `install` puts it, and fake GPUs, where the package looks;
`stub_kernels` lets calls reach their launches without a compiler, and `FakeArray` is an array that
such calls take: like CuPy's.

One file of more than 300 lines: who needs one of these fakes needs the others.
"""

from __future__ import annotations

import copy
import ctypes
import functools
import gc
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpualgo._arrays import page_locked
from gpualgo._arrays import view as views
from gpualgo._arrays.view import View
from gpualgo._base import recording
from gpualgo._cuda import build
from gpualgo._cuda import operator as bound
from gpualgo._driver import default_device, device, driver, streams
from gpualgo._driver.driver import Kernel

NUM_DEVICES = 2
# Shared memory of a block, by architecture.
SHARED_BYTES = {(7, 5): 64 << 10, (8, 0): 163 << 10, (8, 6): 99 << 10, (9, 0): 227 << 10,
                (10, 0): 227 << 10,
                (12, 0): 99 << 10}  # fmt: skip
_NEW = ("Create", "cuLibraryLoadData", "cuLibraryGetKernel")  # what gives a new object
_NOT_READY = 600  # CUDA_ERROR_NOT_READY


class _Names:
    """An enumeration: each of its names stands for itself."""

    def __getattr__(self, name: str) -> str:
        return name


class FakeDriver:
    """Stands for cuda.bindings.driver; kernels cannot run."""

    CUstreamCaptureMode = CUstream_flags = CUfunction_attribute = CUresult = _Names()
    CUdevice_attribute = CUlaunchAttributeID = CUpointer_attribute = _Names()
    CUfunction = CUstream = staticmethod(int)
    CUmemAllocationType = CUmemLocationType = CUmemPool_attribute = _Names()
    CUmemAccess_flags = _Names()
    CUDA_VERSION = 13000
    CUlaunchConfig = SimpleNamespace
    cuuint64_t = int

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.capturing: set[int] = set()
        self.is_done = True  # what was queued has run
        self.device_of_stream: dict[int, int] = {}
        self.current = 0
        self.are_peers = True  # GPUs reach each other's memory
        self.is_open = True  # memory is of cuMemAlloc
        self.page_locked: dict[int, int] = {}  # sizes, by address
        self.on_launch: Callable[[], None] = lambda: None
        self._memory: dict[int, Any] = {}

    def __getattr__(self, name: str) -> Callable[..., tuple[Any, ...]]:
        def note(*args: Any) -> tuple[Any, ...]:
            self.calls.append((name, *args))
            return (0, len(self.calls)) if name.endswith(_NEW) else (0,)

        return note

    def named(self, *names: str) -> list[tuple[Any, ...]]:
        """Return the calls of some functions."""
        return [call for call in self.calls if call[0] in names]

    def cuLaunchKernel(self, *args: Any) -> tuple[int]:
        self.calls.append(("cuLaunchKernel", *args))
        self.on_launch()
        return (0,)

    def cuLaunchKernelEx(self, *args: Any) -> tuple[int]:
        self.calls.append(("cuLaunchKernelEx", *args))
        self.on_launch()
        return (0,)

    @staticmethod
    def CUlaunchAttribute() -> Any:
        return SimpleNamespace(value=SimpleNamespace())

    @staticmethod
    def CUmemPoolProps() -> Any:
        return SimpleNamespace(location=SimpleNamespace())

    @staticmethod
    def CUmemAccessDesc() -> Any:
        return SimpleNamespace(location=SimpleNamespace())

    def cuDeviceCanAccessPeer(self, own: int, other: int) -> tuple[int, int]:
        return 0, int(self.are_peers)

    def cuLibraryGetGlobal(self, library: int, name: bytes) -> tuple[int, int, int]:
        return 0, 0xABC, 512

    def cuKernelGetAttribute(self, attribute: str, kernel: int, ordinal: int) -> tuple[int, int]:
        return 0, {"CU_FUNC_ATTRIBUTE_NUM_REGS": 40}.get(attribute, 0)

    def cuStreamIsCapturing(self, stream: int) -> tuple[int, int]:
        return 0, int(stream in self.capturing)

    def cuStreamGetId(self, stream: int) -> tuple[int, int]:
        return 0, stream

    def cuThreadExchangeStreamCaptureMode(self, mode: int) -> tuple[int, int]:
        return 0, mode

    def cuEventQuery(self, event: Any) -> tuple[int]:
        return (0 if self.is_done else _NOT_READY,)

    def cuDevicePrimaryCtxRetain(self, ordinal: int) -> tuple[int, int]:
        return 0, 100 + ordinal

    def cuDevicePrimaryCtxGetState(self, ordinal: int) -> tuple[int, int, int]:
        return 0, 0, 1

    def cuPointerGetAttributes(
        self, count: int, asked: list[str], address: int
    ) -> tuple[int, tuple[int, ...]]:
        for start, size in self.page_locked.items():
            if start <= address < start + size:
                return 0, (1, 0, address, start, size)
        return 0, (0,) * count

    def cuPointerGetAttribute(self, attribute: str, address: int) -> tuple[int, int]:
        return 0, int(self.is_open and attribute.endswith("LEGACY_CUDA_IPC_CAPABLE"))

    def cuCtxGetCurrent(self) -> tuple[int, int]:
        return 0, self.current

    def cuCtxSetCurrent(self, context: int) -> tuple[int]:
        self.current = context
        return (0,)

    def cuStreamGetCtx(self, stream: int) -> tuple[int, int]:
        return 0, 100 + self.device_of_stream[stream]

    def cuCtxGetDevice(self) -> tuple[int, int]:
        return 0, self.current - 100

    def _allocate(self, *call: Any) -> tuple[int, int]:
        self.calls.append(call)
        memory = _aligned(call[1])
        self._memory[memory.ctypes.data] = memory
        return 0, memory.ctypes.data

    def cuMemAlloc(self, size: int) -> tuple[int, int]:
        return self._allocate("cuMemAlloc", size)

    def cuMemHostAlloc(self, size: int, flags: int) -> tuple[int, int]:
        return self._allocate("cuMemHostAlloc", size, flags)

    def cuMemAllocAsync(self, size: int, stream: int) -> tuple[int, int]:
        return self._allocate("cuMemAllocAsync", size, stream)

    def cuMemAllocFromPoolAsync(self, size: int, pool: int, stream: int) -> tuple[int, int]:
        return self._allocate("cuMemAllocFromPoolAsync", size, pool, stream)

    def cuMemFree(self, address: int) -> tuple[int]:
        self.calls.append(("cuMemFree", address))
        self._memory.pop(address, None)
        return (0,)

    def cuMemFreeAsync(self, address: int, stream: int) -> tuple[int]:
        self.calls.append(("cuMemFreeAsync", address, stream))
        self._memory.pop(address, None)
        return (0,)

    def cuDeviceTotalMem(self, ordinal: int) -> tuple[int, int]:
        return 0, 1 << 37

    def cuMemcpyDtoHAsync(self, target: int, source: int, size: int, stream: int) -> tuple[int]:
        ctypes.memmove(target, source, size)
        return (0,)

    def _set(self, address: int, pitch: int, word: bytes, width: int, height: int) -> tuple[int]:
        for row in range(height):
            ctypes.memmove(address + row * pitch, word * width, len(word) * width)
        return (0,)

    def cuMemsetD8Async(self, address: int, value: int, count: int, stream: int) -> tuple[int]:
        return self._set(address, 0, value.to_bytes(1, "little"), count, 1)

    def cuMemsetD16Async(self, address: int, value: int, count: int, stream: int) -> tuple[int]:
        return self._set(address, 0, value.to_bytes(2, "little"), count, 1)

    def cuMemsetD32Async(self, address: int, value: int, count: int, stream: int) -> tuple[int]:
        return self._set(address, 0, value.to_bytes(4, "little"), count, 1)

    def cuMemsetD2D8Async(
        self, address: int, pitch: int, value: int, width: int, height: int, stream: int
    ) -> tuple[int]:
        return self._set(address, pitch, value.to_bytes(1, "little"), width, height)

    def cuMemsetD2D16Async(
        self, address: int, pitch: int, value: int, width: int, height: int, stream: int
    ) -> tuple[int]:
        return self._set(address, pitch, value.to_bytes(2, "little"), width, height)

    def cuMemsetD2D32Async(
        self, address: int, pitch: int, value: int, width: int, height: int, stream: int
    ) -> tuple[int]:
        return self._set(address, pitch, value.to_bytes(4, "little"), width, height)


class FakeDevice(device.Device):
    """A GPU of any architecture, of which the driver is not asked."""

    def __init__(self, ordinal: int, capability: tuple[int, int] = (9, 0)) -> None:
        super().__init__(ordinal)
        self.become(capability)

    def become(self, capability: tuple[int, int]) -> None:
        """Have another architecture."""
        self.__dict__.update(
            capability=capability, num_sms=132, shared_limit=SHARED_BYTES[capability],
            may_overlap=capability >= (9, 0), memory_bandwidth=3.2e12,
        )  # fmt: skip


def gpu(ordinal: int) -> FakeDevice:
    """Return one of the GPUs that `install` has put in."""
    found = device.get(ordinal)
    assert isinstance(found, FakeDevice)
    return found


def install(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    """Replace the driver and its GPUs for one test."""
    gc.collect()  # what lives on a real GPU is freed there
    made = FakeDriver()
    monkeypatch.setattr(driver, "api", lambda: made)
    monkeypatch.setattr(driver, "is_simple", True)
    monkeypatch.setattr(driver, "_probe", lambda: (NUM_DEVICES, ""))
    monkeypatch.setattr(driver, "is_installed", lambda: True)
    monkeypatch.setattr(device, "_memory_type", device._memory_type.__wrapped__)
    monkeypatch.setattr(default_device, "_from_environment", {})  # what "auto" means here
    monkeypatch.setattr(device, "_devices", {n: FakeDevice(n) for n in range(NUM_DEVICES)})
    monkeypatch.setattr(streams, "_in_use", {})
    monkeypatch.setattr(page_locked, "_attribute_ids", lambda: [None] * 5)
    monkeypatch.setattr(recording, "_held", [])
    monkeypatch.setattr(bound, "_recent", type(bound._recent)())
    return made


def stub_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every kernel be built at once; operators give what their first argument is."""

    def result_dtype(op: Any, args: tuple[Any, ...], wanted: Any, capability: Any) -> Any:
        return args[0] if wanted is None else wanted

    def kernel(spec: build.Spec, ordinal: int) -> Kernel:
        return Kernel(b"", spec.expression)

    monkeypatch.setattr(build, "kernel", kernel)
    monkeypatch.setattr(build, "kernels", lambda specs, n: [kernel(spec, n) for spec in specs])
    monkeypatch.setattr(build, "result_dtype", result_dtype)


def _aligned(num_bytes: int) -> np.ndarray[Any, Any]:
    """Return bytes from a multiple of 256 on, as device memory is."""
    memory = np.zeros(num_bytes + 256, np.uint8)
    start = -memory.ctypes.data % 256
    return memory[start : start + num_bytes]


class FakeArray:
    """An array on a fake GPU, in memory of the host."""

    __cuda_array_interface__ = None  # that there is one tells that this is an array

    def __init__(self, shape: tuple[int, ...], dtype: Any, ordinal: int = 0) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        size = self.dtype.itemsize
        self.memory = _aligned(size * int(np.prod(shape)))
        self.strides = np.empty(shape, dtype).strides
        self.data = SimpleNamespace(ptr=self.memory.ctypes.data, device_id=ordinal)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: slice) -> FakeArray:
        part = copy.copy(self)
        part.shape = (len(range(self.shape[0])[index]), *self.shape[1:])
        assert not index.start, "only the first elements are taken"
        return part


class FakeLibrary:
    """The side of the library protocol that CuPy takes, by the same names."""

    name = "cupy"
    has_producers = False

    def view(self, x: FakeArray) -> View:
        ordinal = x.data.device_id
        return View(x.data.ptr, x.shape, x.strides, x.dtype, ordinal, self, False, x)

    def empty(self, shape: Any, dtype: Any, device: int, stream: int | None) -> FakeArray:
        return FakeArray(shape, dtype, device)

    def maker(self, shape: Any, dtype: Any, ordinal: int) -> Callable[[], FakeArray]:
        return functools.partial(FakeArray, shape, dtype, ordinal)

    def stream(self, ordinal: int) -> int:
        return 0

    def pointer(self, x: FakeArray) -> int:
        pointer: int = x.data.ptr
        return pointer


def register_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the package take FakeArrays, of a library that no cached plan knows."""
    monkeypatch.setitem(views._viewers, FakeArray, FakeLibrary().view)
