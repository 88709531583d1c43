"""One GPU: its properties, its memory, and the resources cached on it between calls.

Tests can replace a GPU by another `Device` (`put`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar, overload

from gpualgo._base import forks
from gpualgo._driver import driver, pinned, pools
from gpualgo._driver.context import Context
from gpualgo._driver.driver import check

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
