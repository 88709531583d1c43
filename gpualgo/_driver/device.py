"""One GPU: its properties, its memory, and the resources cached on it between calls.

Tests can replace a GPU by another `Device` (`put`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar, overload

from gpualgo._base import forks
from gpualgo._driver import driver, pinned, pools
from gpualgo._driver.driver import Context, check

Value = TypeVar("Value")


class _CachedAttribute(Generic[Value]):
    """An attribute that is computed on first access, by one thread, and then cached."""

    def __init__(self, find: Callable[[Any], Value]) -> None:
        self._compute, self.__doc__ = find, find.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, device: None, owner: Any) -> _CachedAttribute[Value]: ...
    @overload
    def __get__(self, device: Device, owner: Any) -> Value: ...
    def __get__(self, device: Device | None, owner: Any) -> Any:
        if device is None:
            return self
        with device.lock:
            if self._name not in device.__dict__:
                device.__dict__[self._name] = self._compute(device)
            return device.__dict__[self._name]


class Device:
    """A GPU with an ordinal; use `get`."""

    stand_in: Any = None  # for a simulated GPU: takes its kernels and calls (`_api`)

    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal
        self.lock = threading.RLock()
        self.context = context = Context(ordinal)
        self.pool = pools.Pool(context)
        self.storage = storage = pools.Storage(context, self.pool)
        self.lanes = pinned.CopyLanes(self._new_stream)
        self.stages = pinned.PinnedRings(context)
        size = pinned.TRAY_BYTES
        self.trays = pinned.SmallBuffers(context, size, size, pinned.MOST_TRAYS)
        self.large_trays = pinned.SmallBuffers(context, 0, pinned.LARGE_BYTES, pinned.MOST_LARGE)
        # Bound once, as every warm call uses them.
        self.current, self.outside_capture = context.current, context.outside_capture
        self.stream_id = context.stream_id
        self.kept_workspace, self.second_workspace = storage.first, storage.second
        self.allocate, self.free = storage.allocate, storage.free

    @_CachedAttribute
    def capability(self) -> tuple[int, int]:
        name = "COMPUTE_CAPABILITY"
        return self._attribute(f"{name}_MAJOR"), self._attribute(f"{name}_MINOR")

    @_CachedAttribute
    def num_sms(self) -> int:
        return self._attribute("MULTIPROCESSOR_COUNT")

    @_CachedAttribute
    def shared_limit(self) -> int:
        """The most shared memory of one block, in bytes."""
        return self._attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")

    @_CachedAttribute
    def memory_bytes(self) -> int:
        """Total memory, whoever uses it."""
        return int(check(driver.api().cuDeviceTotalMem(self.ordinal), "cuDeviceTotalMem"))

    @_CachedAttribute
    def memory_bandwidth(self) -> float | None:
        """Peak memory bandwidth in bytes per second; None if the driver does not report it."""
        kilohertz = self._attribute("MEMORY_CLOCK_RATE")
        bits = self._attribute("GLOBAL_MEMORY_BUS_WIDTH")
        return 2e3 * kilohertz * bits / 8 or None  # double data rate

    @_CachedAttribute
    def may_overlap(self) -> bool:
        """Whether a kernel may start while the previous one still runs, in graphs too."""
        version = check(driver.api().cuDriverGetVersion(), "cuDriverGetVersion")
        return bool(self.capability >= (9, 0) and version >= 12030)

    @_CachedAttribute
    def array_stream(self) -> int:
        """A stream of this package that orders allocation and release of results.

        The producer stream of an array known by protocol may be destroyed before the array is.
        """
        return self._new_stream()

    @_CachedAttribute
    def copy_stream(self) -> int:
        """A stream of this package for copies of captured host arrays."""
        return self._new_stream()

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
_lock = threading.Lock()


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
    global _devices, _lock
    _abandoned.append(_devices)
    _devices, _lock = {}, threading.Lock()


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
