"""One GPU: its properties, its memory, and the resources cached on it between calls.

Tests can replace a GPU by another `Device` (`put`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, cached_property, partial
from typing import Any, NamedTuple, Protocol

from gpualgo._base import forks
from gpualgo._driver import driver, pinned
from gpualgo._driver.driver import Context, check
from gpualgo._driver.pinned import CopyLane, Lender, PinnedRing, SmallBuffer

# --- Allocation of device memory: this package's pool on each device, or the caller's resource.

KEPT_SHARE = 4  # up to a quarter of the device's memory stays in the pool when unused


class Pool:
    """Stream-ordered allocation of one device's memory."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._lock = forks.Lock()
        self._handle: Any = None  # this package's pool, once created
        self._resource: Any = None  # the caller's cuda.core MemoryResource
        self._lent: dict[int, Any] = {}  # buffers from resources, by address

    def set_resource(self, resource: Any) -> None:
        """Allocate from a cuda.core MemoryResource from now on; None restores the pool."""
        self._resource = resource

    def allocate(self, size: int, stream: int) -> int:
        """Return the address of `size` bytes, usable in stream order.

        During a capture the memory belongs to the graph, whichever resource is set: a resource
        could hand out freed memory again while the graph still uses it.
        """
        if driver.is_capturing(stream):
            return self._from_graph(size, stream)
        resource, ordinal = self._resource, self._context.ordinal
        if resource is None:
            return self._from_pool(size, stream)
        try:
            with self._context.current():
                buffer = resource.allocate(size, stream=core_stream(stream))
        except Exception as error:
            raise MemoryError(
                f"{type(resource).__name__} failed to allocate {size} bytes on cuda:{ordinal}: "
                f"{error}"
            ) from error
        address = int(buffer.handle)
        self._lent[address] = buffer
        return address

    def open_to(self, ordinal: int) -> None:
        """Let another GPU access current and future allocations of this package's pool."""
        api = driver.api()
        access = api.CUmemAccessDesc()
        access.location.type = api.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        access.location.id = ordinal
        access.flags = api.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        with self._context.outside_capture():
            check(api.cuMemPoolSetAccess(self._pool(), [access], 1), "cuMemPoolSetAccess")

    def is_own(self, handle: int | None) -> bool:
        return handle is not None and self._handle is not None and handle == int(self._handle)

    def free(self, address: int, stream: int) -> None:
        """Free memory after the stream's earlier work."""
        buffer = self._lent.pop(address, None) if self._lent else None
        if buffer is None:
            check(driver.api().cuMemFreeAsync(address, stream), "cuMemFreeAsync")
        else:
            buffer.close(core_stream(stream))

    def _from_graph(self, size: int, stream: int) -> int:
        """Record an allocation: the memory belongs to the graph, not to a pool."""
        with self._context.current():
            result = driver.api().cuMemAllocAsync(size, stream)
        where = f"allocating {size} bytes in a graph on cuda:{self._context.ordinal}"
        return int(check(result, where))

    def _from_pool(self, size: int, stream: int) -> int:
        api, ordinal = driver.api(), self._context.ordinal
        with self._context.outside_capture():  # exempt from captures of other threads
            pool = self._pool()
            result = api.cuMemAllocFromPoolAsync(size, pool, stream)
            if result[0] == api.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
                # Memory freed by earlier calls becomes available once they have run.
                api.cuStreamSynchronize(stream)
                api.cuMemPoolTrimTo(pool, 0)
                result = api.cuMemAllocFromPoolAsync(size, pool, stream)
            if result[0] == api.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
                status, *sizes = api.cuMemGetInfo()
                free_bytes, total = sizes if status == 0 else ("?", "?")
                raise MemoryError(
                    f"cuda:{ordinal} cannot give {size} bytes: {free_bytes} of {total} are free; "
                    "delete arrays, or empty the pools of CuPy and torch (free_all_blocks, "
                    "empty_cache)"
                )
        return int(check(result, f"allocating {size} bytes on cuda:{ordinal}"))

    def _pool(self) -> Any:
        """Return this package's pool; the default pool frees all memory at each synchronization."""
        with self._lock:
            if self._handle is None:
                self._handle = _new_pool(self._context.ordinal)
            return self._handle


def _new_pool(ordinal: int) -> Any:
    api = driver.api()
    properties = api.CUmemPoolProps()
    properties.allocType = api.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = api.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.location.id = ordinal
    pool = check(api.cuMemPoolCreate(properties), "cuMemPoolCreate")
    threshold = api.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
    total = check(api.cuDeviceTotalMem(ordinal), "cuDeviceTotalMem")
    kept = api.cuuint64_t(total // KEPT_SHARE)
    check(api.cuMemPoolSetAttribute(pool, threshold, kept), "cuMemPoolSetAttribute")
    return pool


def core_stream(stream: int) -> Any:
    core = driver.core()
    if stream in (0, 1):
        return core.LEGACY_DEFAULT_STREAM
    return core.PER_THREAD_DEFAULT_STREAM if stream == 2 else core.Stream.from_handle(stream)


# --- Temporary storage: a cached workspace per stream; larger sizes are allocated per call.
#
# If a call is given storage (`supplied`), nothing is cached or allocated for it.

TICKET_BYTES = 512 << 10  # counters and tagged words at the front, zero between launches
KEPT_BYTES = 1 << 20  # partial results; larger ones are allocated per call
STATE_BYTES = 1 << 20  # look-back states, likewise: tagged words that no other use may overwrite
MARK_BYTES = (512 << 10) + 256  # marks of segments, zero between launches
ALIGNMENT = 256
_MAX_WORKSPACES = 512  # per device; never freed, as a launch may be about to use one


class Supplier(Protocol):
    """Storage from which all calls of a thread allocate."""

    def take(self, size: int, device: int) -> int:
        """Return the address of `size` bytes that nothing else uses until the call ends."""


class Given:
    """Storage that a caller provides for one call."""

    def __init__(self, address: int, size: int) -> None:
        self._next, self._end = address, address + size

    def take(self, size: int, device: int) -> int:
        """Return the address of the next `size` bytes."""
        address, self._next = self._next, self._next + aligned(size)
        if address + size > self._end:
            raise ValueError(
                "temp_storage is too small for arrays of this alignment; prepare with such arrays"
            )
        return address


class _Thread(threading.local):
    supplier: Supplier | None = None


_thread = _Thread()


@contextmanager
def supplied(supplier: Supplier) -> Iterator[None]:
    """Let calls of this thread allocate all temporary storage from a supplier."""
    previous, _thread.supplier = _thread.supplier, supplier
    try:
        yield
    finally:
        _thread.supplier = previous


def aligned(size: int) -> int:
    """Round a size up to the alignment of temporary storage."""
    return -(-size // ALIGNMENT) * ALIGNMENT


class Storage:
    def __init__(self, context: Context, pool: Pool) -> None:
        self._context, self._pool = context, pool
        # Workspaces, each with its lock, by number (0 or 1) and stream id.
        self._workspaces: dict[tuple[int, int], tuple[int, forks.Lock]] = {}
        self._lock = forks.Lock()

    def first(self, stream: int) -> int:
        """Return a stream's workspace for one launch; 0 if the call has to allocate its own.

        Launches on one stream run one after the other and share it. A captured stream allocates
        inside the graph (`allocate`), as the graph may run concurrently with the stream.
        """
        workspace = self._workspace(0, stream)
        return 0 if workspace is None else workspace[0]

    @contextmanager
    def second(self, stream: int) -> Iterator[int]:
        """Yield a stream's second workspace, for several launches in turn; 0 if unavailable.

        While it is held, no other thread queues launches that use it, and no signal handler or
        finalizer of this one.
        """
        workspace = self._workspace(1, stream)
        if workspace is None or workspace[1]._is_owned():  # type: ignore[attr-defined]
            yield 0
            return
        with workspace[1]:
            yield workspace[0]

    def _workspace(self, number: int, stream: int) -> tuple[int, forks.Lock] | None:
        """Return one of a stream's two workspaces; None if the call has to allocate its own."""
        if _thread.supplier is not None or driver.is_capturing(stream):
            return None
        key = number, self._context.stream_id(stream)
        return self._workspaces.get(key) or self._new(key, stream)

    def _new(self, key: tuple[int, int], stream: int) -> tuple[int, forks.Lock] | None:
        with self._lock:
            if key not in self._workspaces and len(self._workspaces) < _MAX_WORKSPACES:
                # Not from the pool: the first cuMemAllocAsync of a process takes milliseconds.
                size = TICKET_BYTES + KEPT_BYTES + STATE_BYTES + MARK_BYTES
                with self._context.outside_capture():  # exempt from captures of other threads
                    made = driver.api().cuMemAlloc(size)
                    address = int(check(made, f"allocating {size} bytes"))
                clear(address, size, stream)
                self._workspaces[key] = address, forks.Lock()
            return self._workspaces.get(key)

    def allocate(self, size: int, stream: int) -> int:
        """Return temporary storage, usable in stream order."""
        supplier = _thread.supplier
        if supplier is not None:
            return supplier.take(size, self._context.ordinal)
        return self._pool.allocate(size, stream)

    def free(self, address: int, stream: int) -> None:
        """Free temporary storage after the stream's earlier work."""
        if _thread.supplier is None:
            self._pool.free(address, stream)


def clear(address: int, size: int, stream: int) -> None:
    check(driver.api().cuMemsetD8Async(address, 0, size, stream), "cuMemsetD8Async")


# --- One GPU: its properties, its memory, and the resources cached on it between calls.


class Device:
    """A GPU with an ordinal; use `get`."""

    stand_in: Any = None  # for a simulated GPU: takes its kernels and calls (`_api`)

    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal
        self.context = context = Context(ordinal)
        self.pool = Pool(context)
        self.storage = storage = Storage(context, self.pool)
        self.lanes = Lender(context, lambda: CopyLane(self._new_stream), pinned.MOST_LANES)
        self.stages = Lender(context, lambda: PinnedRing(context), pinned.MOST_STAGES)
        small = partial(SmallBuffer, pinned.TRAY_BYTES)
        self.trays = Lender(context, small, pinned.MOST_TRAYS)
        # Bound once, as every warm call uses them.
        self.current, self.outside_capture = context.current, context.outside_capture
        self.stream_id = context.stream_id
        self.kept_workspace, self.second_workspace = storage.first, storage.second
        self.allocate, self.free = storage.allocate, storage.free

    @cached_property
    def capability(self) -> tuple[int, int]:
        name = "COMPUTE_CAPABILITY"
        return self._attribute(f"{name}_MAJOR"), self._attribute(f"{name}_MINOR")

    @cached_property
    def num_sms(self) -> int:
        return self._attribute("MULTIPROCESSOR_COUNT")

    @cached_property
    def shared_limit(self) -> int:
        """The most shared memory of one block, in bytes."""
        return self._attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")

    @cached_property
    def memory_bytes(self) -> int:
        """Total memory, whoever uses it."""
        return int(check(driver.api().cuDeviceTotalMem(self.ordinal), "cuDeviceTotalMem"))

    @cached_property
    def memory_bandwidth(self) -> float | None:
        """Peak memory bandwidth in bytes per second; None if the driver does not report it."""
        kilohertz = self._attribute("MEMORY_CLOCK_RATE")
        bits = self._attribute("GLOBAL_MEMORY_BUS_WIDTH")
        return 2e3 * kilohertz * bits / 8 or None  # double data rate

    @cached_property
    def may_overlap(self) -> bool:
        """Whether a kernel may start while the previous one still runs, in graphs too."""
        version = check(driver.api().cuDriverGetVersion(), "cuDriverGetVersion")
        return bool(self.capability >= (9, 0) and version >= 12030)

    @cached_property
    def array_stream(self) -> int:
        """A stream of this package that orders allocation and release of results.

        The producer stream of an array known by protocol may be destroyed before the array is.
        """
        stream: int = self.__dict__.setdefault("array_stream", self._new_stream())
        return stream  # the same if several threads make one

    @cached_property
    def copy_stream(self) -> int:
        """A stream of this package for copies of captured host arrays."""
        stream: int = self.__dict__.setdefault("copy_stream", self._new_stream())
        return stream

    def _new_stream(self) -> int:
        with self.outside_capture():
            return int(check(driver.api().cuStreamCreate(1), "cuStreamCreate"))

    def _attribute(self, name: str) -> int:
        names = driver.api().CUdevice_attribute
        attribute = getattr(names, f"CU_DEVICE_ATTRIBUTE_{name}")
        value = driver.api().cuDeviceGetAttribute(attribute, self.ordinal)
        return int(check(value, "cuDeviceGetAttribute"))


_devices: dict[int, Device] = {}
# Devices of parent processes, which a forked child must not release.
_abandoned: list[dict[int, Device]] = []
_lock = forks.Lock()


def get(ordinal: int) -> Device:
    """Return the GPU with an ordinal; raise NoDeviceError if there is none."""
    try:
        return _devices[ordinal]
    except KeyError:
        return _new(ordinal)


def _new(ordinal: int) -> Device:
    driver.check_process()
    driver.require_device(ordinal)
    with _lock:
        return _devices.setdefault(ordinal, Device(ordinal))


@contextmanager
def put(device: Device) -> Iterator[None]:
    """Register a device under its ordinal within a `with` block."""
    with _lock:
        _devices[device.ordinal] = device
    try:
        yield
    finally:
        with _lock:
            _devices.pop(device.ordinal, None)


def known() -> list[Device]:
    """Return the GPUs used so far."""
    return list(_devices.values())


@forks.in_child
def _abandon() -> None:
    """Drop the parent's devices in a forked child."""
    global _devices
    _abandoned.append(_devices)
    _devices = {}


# --- Queries the driver about addresses: device, allocation, page-locking.


class Allocation(NamedTuple):
    start: int
    size: int
    device: int
    ptr: int  # the address as kernels see it


def find(pointer: int) -> Allocation | None:
    """Return the allocation that contains an address; None if no GPU can use it."""
    driver.require_device(0)
    driver.check_process()
    device = _ordinal(pointer)
    if device is None:
        return None
    if device < 0:  # managed memory need not have a device
        if not _attribute("IS_MANAGED", pointer):
            return None
        device = 0
    with get(device).current():
        mapped = _attribute("DEVICE_POINTER", pointer)
        start, size = _attribute("RANGE_START_ADDR", pointer), _attribute("RANGE_SIZE", pointer)
        if start is None or not size:
            status, start, size = driver.api().cuMemGetAddressRange(pointer)
            if status:
                return None
    return None if mapped is None else Allocation(int(start), int(size), device, int(mapped))


def locate(address: int, low: int, high: int, where: str) -> tuple[int, int]:
    """Return an array's device and device pointer; raise if it leaves its allocation.

    `low` and `high` are the bounds of its bytes, relative to `address`.
    """
    allocation = find(address) if address else None
    if low == high:  # the array is empty
        return (0, address) if allocation is None else (allocation.device, allocation.ptr)
    if allocation is None:
        raise ValueError(
            f"{where}: {address:#x} is not the address of memory that a GPU can use; pass that of "
            "device, managed or page-locked memory that is still allocated"
        )
    before, after = address - allocation.start, allocation.start + allocation.size - address
    if before + low < 0 or high > after:
        raise ValueError(
            f"{where}: the array takes the bytes from {low} to {high} around {address:#x}, but "
            f"its allocation only has those from {-before} to {after}; pass a smaller shape"
        )
    return allocation.device, allocation.ptr


def device_of(pointer: int) -> int:
    if not pointer:
        return 0
    driver.require_device(0)
    ordinal = _ordinal(pointer)
    if ordinal is None:
        raise ValueError(
            f"address {pointer:#x} is not memory that a GPU knows; pass a device array"
        )
    return max(ordinal, 0)


def is_pageable(address: int, size: int) -> bool:
    """Return whether host memory is pageable at both ends."""
    return not any(_attribute("MEMORY_TYPE", end) for end in (address, address + size - 1))


def is_known(address: int) -> bool:
    """Return whether the driver knows a host address, so that it is not pageable."""
    status, kind = driver.api().cuPointerGetAttribute(_memory_type(), address)
    return not status and bool(kind)


def is_page_locked(address: int, size: int) -> bool:
    """Return whether host memory of at least one byte is page-locked from end to end."""
    kind = _attribute("MEMORY_TYPE", address)
    if not kind or int(kind) != 1:  # CU_MEMORYTYPE_HOST
        return False
    start, length = _attribute("RANGE_START_ADDR", address), _attribute("RANGE_SIZE", address)
    return bool(start and length) and address + size <= int(start) + int(length)


def is_open(address: int) -> bool:
    """Return whether memory was allocated by cuMemAlloc, which all peer GPUs can access."""
    return bool(_attribute("IS_LEGACY_CUDA_IPC_CAPABLE", address))


def pool_of(address: int) -> int | None:
    """Return the handle of the memory pool of an address; None if it has none."""
    handle = _attribute("MEMPOOL_HANDLE", address)
    return int(handle) or None if handle is not None else None


def _ordinal(pointer: int) -> int | None:
    """Return the device of an address; negative if it has none, None if no GPU knows it."""
    ordinal = _attribute("DEVICE_ORDINAL", pointer)
    if ordinal is None or driver.is_simple:
        return None if ordinal is None else int(ordinal)
    # The driver API of cuda.bindings up to 13.3 returns 0 for every device.
    status, attributes = driver.bindings("runtime").cudaPointerGetAttributes(pointer)
    return None if status else int(attributes.device)


@cache
def _memory_type() -> Any:
    return driver.api().CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE


def _attribute(name: str, pointer: int) -> Any:
    """Return a pointer attribute; None if the driver reports none."""
    api = driver.api()
    attribute = getattr(api.CUpointer_attribute, f"CU_POINTER_ATTRIBUTE_{name}")
    status, value = api.cuPointerGetAttribute(attribute, pointer)
    return None if status else value
