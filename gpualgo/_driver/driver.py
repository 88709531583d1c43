"""Devices, contexts, kernels and streams: thin over cuda.bindings.

Only cuda.bindings.driver is imported here, so that a first call that finds its kernels in the
disk cache pays for no compiler and no cuda.core.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from gpualgo._base import forks
from gpualgo._base.errors import NoDeviceError
from gpualgo._base.imports import loading

_HINT = (
    "install an NVIDIA driver and the CUDA libraries (pip install 'gpualgo[cu13]'), "
    "or run on the CPU with gpualgo.default_device('cpu'); `gpualgo doctor` shows what is missing"
)
_owner_pid: int | None = None  # the process that called cuInit


@cache
def bindings(name: str) -> Any:
    """Return a module of cuda.bindings."""
    with loading:
        return import_module(f"cuda.bindings.{name}")


@cache
def core() -> Any:
    """Return cuda.core."""
    with loading:
        return import_module("cuda.core")


@cache
def api() -> Any:
    """Return cuda.bindings.driver."""
    return bindings("driver")


@cache
def is_installed() -> bool:
    """Say whether there is a CUDA driver at all: to ask it takes cuda.bindings, and 50 ms more."""
    try:
        ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    except OSError:
        return False
    return True


def check(result: Any, what: str) -> Any:
    """Return the values of a driver call; raise MemoryError or RuntimeError if it failed."""
    error = result[0]
    if error == 0:
        return result[1] if len(result) == 2 else result[1:]
    _, name = api().cuGetErrorName(error)
    _, text = api().cuGetErrorString(error)
    message = f"{what}: {(name or b'').decode()}: {(text or b'').decode()}"
    if error == api().CUresult.CUDA_ERROR_OUT_OF_MEMORY:
        raise MemoryError(message)
    raise RuntimeError(message)


@cache
def _probe() -> tuple[int, str]:
    """Return the number of GPUs and, where there are none, why."""
    global _owner_pid
    try:
        driver = api()
    except ImportError as error:
        return 0, f"the Python package cuda-bindings cannot be imported ({error})"
    try:
        (status,) = driver.cuInit(0)
        if status != 0:
            return 0, f"the driver does not start ({driver.cuGetErrorName(status)[1].decode()})"
        status, count = driver.cuDeviceGetCount()
    except Exception as error:  # cuda.bindings raises when libcuda is not there
        return 0, f"no CUDA driver was found ({str(error).strip().splitlines()[0]})"
    _owner_pid = os.getpid()
    _start(int(count))
    return int(count), "the driver reports no GPU"


def device_count() -> int:
    """Return the number of usable GPUs; 0 where packages or driver are missing."""
    return _probe()[0]


def require_device(ordinal: int) -> None:
    """Raise NoDeviceError, saying what was looked for, unless the GPU is there."""
    count, reason = _probe()
    if count == 0:
        raise NoDeviceError(f"cuda:{ordinal} was asked for but {reason}; {_HINT}")
    if ordinal >= count:
        raise NoDeviceError(
            f"cuda:{ordinal} was asked for but only {count} GPU(s) were found, "
            f"the last one is cuda:{count - 1}"
        )


_shared_lock = threading.Lock()  # of all kernels' limits
is_simple = False  # one device, and not in a forked child: a launch needs no further look


def _start(count: int) -> None:
    """Remember how launches have to look; a forked child loses the short cut."""
    global is_simple
    is_simple = count == 1


@forks.in_child
def _forget() -> None:
    global is_simple, _shared_lock
    is_simple, _shared_lock = False, threading.Lock()


def is_lost() -> bool:
    """Return whether this is a child of the process that started CUDA: nothing of it works here."""
    return _owner_pid is not None and os.getpid() != _owner_pid


def check_process() -> None:
    """Raise in a child of the process that started CUDA."""
    if is_lost():
        raise RuntimeError(
            "CUDA was started before this process was forked and cannot be used in the child; "
            "use multiprocessing's 'spawn' start method"
        )


class Resources(NamedTuple):
    """What a kernel's machine code takes: of a thread, and statically of a block."""

    registers: int
    shared_bytes: int
    local_bytes: int


class Kernel:
    """A loaded kernel: a handle that works in every context, and its library, kept alive."""

    __slots__ = ("_kernel", "_shared", "handle", "library", "name")

    def __init__(self, cubin: bytes, name: str) -> None:
        driver = api()
        check_process()
        library = check(
            driver.cuLibraryLoadData(cubin, [], [], 0, [], [], 0), f"loading kernel {name}"
        )
        kernel = check(driver.cuLibraryGetKernel(library, name.encode()), f"finding kernel {name}")
        self.library, self.handle, self.name = library, driver.CUfunction(int(kernel)), name
        self._kernel = kernel
        self._shared: dict[int, int] = {}  # bytes that it may have, by device

    def allow_shared(self, num_bytes: int, device: int) -> None:
        """Let the kernel have so much dynamic shared memory; up to 48 KB need no leave."""
        with _shared_lock:  # leave once given stays: other launches of the kernel may need it
            if num_bytes <= max(48 << 10, self._shared.get(device, 0)):
                return
            attribute = api().CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            status = api().cuKernelSetAttribute(attribute, num_bytes, self._kernel, device)
            check(status, f"giving {self.name} {num_bytes} bytes of shared memory")
            self._shared[device] = num_bytes

    def resources(self, device: int) -> Resources | None:
        """Return what the kernel takes on a device; None where the driver does not tell."""
        found = []
        for name in ("NUM_REGS", "SHARED_SIZE_BYTES", "LOCAL_SIZE_BYTES"):
            attribute = getattr(api().CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
            status, *value = api().cuKernelGetAttribute(attribute, self._kernel, device)
            if status:
                return None
            found.append(int(value[0]))
        return Resources(*found)

    def wrapped(self, submit: Callable[..., Any]) -> Callable[..., Any]:
        """Return how this kernel is launched, given how any kernel is: the same way."""
        return submit


def is_capturing(stream: int) -> bool:
    """Return whether a stream's work is recorded instead of run."""
    status, capture = api().cuStreamIsCapturing(stream)
    return bool(status == 0 and int(capture) != 0)


def is_free(stream: int) -> bool:
    """Return whether a stream can be used now: the legacy default one not beside a capture."""
    status, capture = api().cuStreamIsCapturing(stream)
    return not status and not int(capture)


def refuse_capture(stream: int, reason: str) -> None:
    """Raise RuntimeError if a stream is being captured: what would wait cannot be recorded."""
    if is_capturing(stream):
        raise RuntimeError(f"{reason}; a call that has to wait cannot be recorded in a graph")


@contextmanager
def relaxed() -> Iterator[None]:
    """Do what a capture, by whatever thread, would forbid or be spoilt by, being no part of it."""
    mode = api().CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    before = check(
        api().cuThreadExchangeStreamCaptureMode(mode), "cuThreadExchangeStreamCaptureMode"
    )
    try:
        yield
    finally:
        api().cuThreadExchangeStreamCaptureMode(before)


def synchronize(stream: int) -> None:
    """Wait until a stream has finished."""
    check(api().cuStreamSynchronize(stream), "cuStreamSynchronize")


def settle(stream: int) -> None:
    """Wait after an error, whatever is recorded meanwhile: what is queued uses memory yet."""
    with relaxed():
        synchronize(stream)


def write(address: int, data: bytes) -> None:
    """Write into the current device's memory, past all streams of the caller and their captures.

    Waits until it is done. The caller is `outside_capture`.
    """
    flags = api().CUstream_flags.CU_STREAM_NON_BLOCKING
    stream = check(api().cuStreamCreate(flags), "cuStreamCreate")
    try:
        check(api().cuMemcpyHtoDAsync(address, data, len(data), stream), "cuMemcpyHtoDAsync")
        synchronize(stream)
    finally:
        api().cuStreamDestroy(stream)
