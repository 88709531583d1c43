"""Devices, kernels and streams: a thin layer over cuda.bindings.

Only cuda.bindings.driver is imported at first: a call whose kernels are in the disk cache loads
neither a compiler nor cuda.core.
"""

from __future__ import annotations

import ctypes
import os
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
is_simple = False  # one device, and not a forked child: launches need no context switch


@cache
def bindings(name: str) -> Any:
    with loading():
        return import_module(f"cuda.bindings.{name}")


@cache
def core() -> Any:
    with loading():
        return import_module("cuda.core")


@cache
def api() -> Any:
    return bindings("driver")


@cache
def is_installed() -> bool:
    """Return whether a CUDA driver library exists; avoids the 50 ms to load cuda.bindings."""
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
    """Return the number of GPUs and, if there are none, the reason."""
    global _owner_pid, is_simple
    try:
        driver = api()
    except ImportError as error:
        return 0, f"the Python package cuda-bindings cannot be imported ({error})"
    try:
        (status,) = driver.cuInit(0)
        if status != 0:
            return 0, f"the driver does not start ({driver.cuGetErrorName(status)[1].decode()})"
        status, count = driver.cuDeviceGetCount()
    except Exception as error:  # raised by cuda.bindings if libcuda is missing
        return 0, f"no CUDA driver was found ({str(error).strip().splitlines()[0]})"
    _owner_pid = os.getpid()
    is_simple = int(count) == 1
    return int(count), "the driver reports no GPU"


def device_count() -> int:
    """Return the number of usable GPUs; 0 if packages or the driver are missing."""
    return _probe()[0]


def require_device(ordinal: int) -> None:
    """Raise NoDeviceError with the reason unless the GPU exists."""
    count, reason = _probe()
    if count == 0:
        raise NoDeviceError(f"cuda:{ordinal} was asked for but {reason}; {_HINT}")
    if ordinal >= count:
        raise NoDeviceError(
            f"cuda:{ordinal} was asked for but only {count} GPU(s) were found, "
            f"the last one is cuda:{count - 1}"
        )


_shared_lock = forks.Lock()  # guards the shared-memory limits of all kernels


@forks.in_child
def _reset_in_child() -> None:
    global is_simple
    is_simple = False


def is_lost() -> bool:
    """Return whether CUDA was initialized in a parent process and so cannot be used in this one."""
    return _owner_pid is not None and os.getpid() != _owner_pid


def check_process() -> None:
    """Raise in a forked child of the process that initialized CUDA."""
    if is_lost():
        raise RuntimeError(
            "CUDA was started before this process was forked and cannot be used in the child; "
            "use multiprocessing's 'spawn' start method"
        )


class Resources(NamedTuple):
    """Registers and local memory per thread, and static shared memory per block, of a kernel."""

    registers: int
    shared_bytes: int
    local_bytes: int


class Kernel:
    """A loaded kernel: a handle valid in every context, and the library that contains it."""

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
        self._shared: dict[int, int] = {}  # dynamic shared memory allowed so far, by device

    def allow_shared(self, num_bytes: int, device: int) -> None:
        """Allow so much dynamic shared memory; up to 48 KiB need no permission."""
        with _shared_lock:  # never lowered: other launches of the kernel may need it
            if num_bytes <= max(48 << 10, self._shared.get(device, 0)):
                return
            attribute = api().CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            status = api().cuKernelSetAttribute(attribute, num_bytes, self._kernel, device)
            check(status, f"giving {self.name} {num_bytes} bytes of shared memory")
            self._shared[device] = num_bytes

    def resources(self, device: int) -> Resources | None:
        """Return the kernel's resource use on a device; None if the driver does not report it."""
        values = []
        for name in ("NUM_REGS", "SHARED_SIZE_BYTES", "LOCAL_SIZE_BYTES"):
            attribute = getattr(api().CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
            status, *value = api().cuKernelGetAttribute(attribute, self._kernel, device)
            if status:
                return None
            values.append(int(value[0]))
        return Resources(*values)

    def wrapped(self, submit: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function that launches this kernel; subclasses wrap the driver's `submit`."""
        return submit


def is_capturing(stream: int) -> bool:
    status, capture = api().cuStreamIsCapturing(stream)
    return bool(status == 0 and int(capture) != 0)


def is_free(stream: int) -> bool:
    """Return whether a stream is usable now; the legacy default stream is not during a capture."""
    status, capture = api().cuStreamIsCapturing(stream)
    return not status and not int(capture)


def refuse_capture(stream: int, reason: str) -> None:
    """Raise RuntimeError if a stream is being captured, as waiting cannot be recorded."""
    if is_capturing(stream):
        raise RuntimeError(f"{reason}; a call that has to wait cannot be recorded in a graph")


@contextmanager
def relaxed() -> Iterator[None]:
    """Allow calls that an ongoing capture of any thread would forbid; they are not recorded."""
    mode = api().CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    previous = check(
        api().cuThreadExchangeStreamCaptureMode(mode), "cuThreadExchangeStreamCaptureMode"
    )
    try:
        yield
    finally:
        api().cuThreadExchangeStreamCaptureMode(previous)


def synchronize(stream: int) -> None:
    check(api().cuStreamSynchronize(stream), "cuStreamSynchronize")


def new_event() -> Any:
    return check(api().cuEventCreate(2), "cuEventCreate")  # 2: no timing


def record(stream: int, event: Any) -> Any:
    """Let an event complete when a stream's queued work has run; return it."""
    check(api().cuEventRecord(event, stream), "cuEventRecord")
    return event


def settle(stream: int) -> None:
    """Wait for a stream after an error, even during a capture, as queued work still uses memory."""
    with relaxed():
        synchronize(stream)


def write(address: int, data: bytes) -> None:
    """Copy data to device memory and wait, on a new stream that no capture involves.

    The caller must be in `outside_capture`.
    """
    flags = api().CUstream_flags.CU_STREAM_NON_BLOCKING
    stream = check(api().cuStreamCreate(flags), "cuStreamCreate")
    try:
        check(api().cuMemcpyHtoDAsync(address, data, len(data), stream), "cuMemcpyHtoDAsync")
        synchronize(stream)
    finally:
        api().cuStreamDestroy(stream)


# --- A GPU's primary context, shared with CuPy and torch.


class Context:
    """The primary context of a GPU, retained at first use."""

    __slots__ = ("_handle", "_lock", "ordinal")

    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal
        self._handle: Any = None
        self._lock = forks.Lock()

    @property
    def handle(self) -> Any:
        if self._handle is None:
            with self._lock:
                if self._handle is None:
                    retained = api().cuDevicePrimaryCtxRetain(self.ordinal)
                    self._handle = check(retained, "cuDevicePrimaryCtxRetain")
        return self._handle

    def enter(self) -> Any:
        """Make the context current; return the previous one, or None if it was current already."""
        check_process()
        bindings, handle = api(), self.handle
        previous = check(bindings.cuCtxGetCurrent(), "cuCtxGetCurrent")
        if int(previous) == int(handle):
            return None
        check(bindings.cuCtxSetCurrent(handle), "cuCtxSetCurrent")
        return previous

    def current(self) -> Current:
        return Current(self)

    @contextmanager
    def outside_capture(self) -> Iterator[None]:
        """Make the context current and exempt this thread's work from any stream capture."""
        with Current(self), relaxed():
            yield

    def ensure(self) -> None:
        """Make the context current if the thread has none."""
        if not int(check(api().cuCtxGetCurrent(), "cuCtxGetCurrent")):
            check_process()
            check(api().cuCtxSetCurrent(self.handle), "cuCtxSetCurrent")

    def stream_id(self, stream: int) -> int:
        """Return a stream's unique id, which is never reused, unlike its handle."""
        bindings = api()
        result = bindings.cuStreamGetId(stream)
        if result[0]:
            if result[0] == bindings.CUresult.CUDA_ERROR_INVALID_CONTEXT:
                self.ensure()
                result = bindings.cuStreamGetId(stream)
            check(result, "cuStreamGetId")
        return int(result[1])


class Current:
    """A `with` block in which a context is current; restores the previous one."""

    __slots__ = ("_before", "_context")

    def __init__(self, context: Context) -> None:
        self._context = context

    def __enter__(self) -> None:
        self._before = self._context.enter()

    def __exit__(self, *exc: object) -> None:
        leave(self._before)


def leave(before: Any) -> None:
    if before is not None:
        api().cuCtxSetCurrent(before)
