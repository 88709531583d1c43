"""Queries the NVIDIA driver and its GPUs through ctypes, without any CUDA package."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from typing import Any

_COMPUTE_CAPABILITY_MAJOR = 75
_COMPUTE_CAPABILITY_MINOR = 76


@dataclass(frozen=True)
class Gpu:
    """A GPU; `index` is the driver's ordinal."""

    index: int
    name: str
    compute_capability: tuple[int, int]
    memory_bytes: int


@dataclass(frozen=True)
class Driver:
    """The driver: its version, the newest CUDA that it supports, and its GPUs or an error."""

    version: str
    cuda_version: tuple[int, int]
    gpus: tuple[Gpu, ...]
    problem: str


def find_driver() -> Driver | None:
    cuda = _load("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    if cuda is None:
        return None
    number = ctypes.c_int()
    cuda.cuDriverGetVersion(ctypes.byref(number))
    cuda_version = (number.value // 1000, number.value % 1000 // 10)
    code = cuda.cuInit(0)
    problem = "" if code == 0 else _error_name(cuda, code)
    gpus = () if problem else _gpus(cuda)
    return Driver(_version(), cuda_version, gpus, problem)


def _load(name: str) -> Any:
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def _version() -> str:
    nvml = _load("nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1")
    text = ctypes.create_string_buffer(80)
    if nvml is None or nvml.nvmlInit_v2() != 0:
        return "unknown"
    nvml.nvmlSystemGetDriverVersion(text, len(text))
    nvml.nvmlShutdown()
    return text.value.decode() or "unknown"


def _error_name(cuda: Any, code: int) -> str:
    name = ctypes.c_char_p()
    cuda.cuGetErrorName(code, ctypes.byref(name))
    return name.value.decode() if name.value else f"error {code}"


def _gpus(cuda: Any) -> tuple[Gpu, ...]:
    count = ctypes.c_int()
    cuda.cuDeviceGetCount(ctypes.byref(count))
    return tuple(_gpu(cuda, index) for index in range(count.value))


def _gpu(cuda: Any, index: int) -> Gpu:
    device = ctypes.c_int()
    name = ctypes.create_string_buffer(256)
    memory = ctypes.c_size_t()
    cuda.cuDeviceGet(ctypes.byref(device), index)
    cuda.cuDeviceGetName(name, len(name), device)
    cuda.cuDeviceTotalMem_v2(ctypes.byref(memory), device)
    capability = []
    for attribute in (_COMPUTE_CAPABILITY_MAJOR, _COMPUTE_CAPABILITY_MINOR):
        value = ctypes.c_int()
        cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        capability.append(value.value)
    return Gpu(index, name.value.decode(), (capability[0], capability[1]), memory.value)
