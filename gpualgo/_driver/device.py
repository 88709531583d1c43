"""One GPU: what it can do, its memory, and what is kept on it between calls.

Everything that belongs to one GPU hangs on its `Device`; a test that needs another GPU puts one in
the table.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar, overload

from gpualgo._base import forks
from gpualgo._driver import driver, lanes, pools, stages, trays, workspace
from gpualgo._driver.context import Context
from gpualgo._driver.driver import check

Value = TypeVar("Value")


class _Lasting(Generic[Value]):
    """An attribute that is found when first asked for, by one thread, and plain from then on."""

    def __init__(self, find: Callable[[Any], Value]) -> None:
        self._find, self.__doc__ = find, find.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, device: None, owner: Any) -> _Lasting[Value]: ...
    @overload
    def __get__(self, device: Device, owner: Any) -> Value: ...
    def __get__(self, device: Device | None, owner: Any) -> Any:
        if device is None:
            return self
        with device.lock:
            if self._name not in device.__dict__:
                device.__dict__[self._name] = self._find(device)
            return device.__dict__[self._name]


class Device:
    """A GPU by its ordinal, made and found by `get`."""

    stand_in: Any = None  # of one that is not here: what takes its kernels and calls (`_api`)

    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal
        self.lock = threading.RLock()
        self.context = context = Context(ordinal)
        self.pool = pools.Pool(context)
        self.storage = storage = workspace.Storage(context, self.pool)
        self.lanes = lanes.Lanes(self._new_stream)
        self.stages = stages.Stages(context)
        size = trays.TRAY_BYTES
        self.trays = trays.Trays(context, size, size, trays.MOST_TRAYS)
        self.large_trays = trays.Trays(context, 0, trays.LARGE_BYTES, trays.MOST_LARGE)
        # Bound here once, as every warm call asks.
        self.current, self.outside_capture = context.current, context.outside_capture
        self.stream_id = context.stream_id
        self.kept_workspace, self.second_workspace = storage.first, storage.second
        self.allocate, self.free = storage.allocate, storage.free

    @_Lasting
    def capability(self) -> tuple[int, int]:
        """Its compute capability."""
        name = "COMPUTE_CAPABILITY"
        return self._attribute(f"{name}_MAJOR"), self._attribute(f"{name}_MINOR")

    @_Lasting
    def num_sms(self) -> int:
        """How many multiprocessors it has."""
        return self._attribute("MULTIPROCESSOR_COUNT")

    @_Lasting
    def shared_limit(self) -> int:
        """How many bytes of shared memory one block may have."""
        return self._attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")

    @_Lasting
    def memory_bytes(self) -> int:
        """How much memory it has, whoever uses it."""
        return int(check(driver.api().cuDeviceTotalMem(self.ordinal), "cuDeviceTotalMem"))

    @_Lasting
    def memory_bandwidth(self) -> float | None:
        """Bytes per second that its memory moves at most; None where the driver does not tell."""
        kilohertz = self._attribute("MEMORY_CLOCK_RATE")
        bits = self._attribute("GLOBAL_MEMORY_BUS_WIDTH")
        return 2e3 * kilohertz * bits / 8 or None  # twice each cycle

    @_Lasting
    def may_overlap(self) -> bool:
        """Whether a kernel can be launched while the one before still runs, in graphs too."""
        version = check(driver.api().cuDriverGetVersion(), "cuDriverGetVersion")
        return bool(self.capability >= (9, 0) and version >= 12030)

    @_Lasting
    def array_stream(self) -> int:
        """A stream of our own on which memory of results is taken and given back.

        Theirs may be gone by then: an array known by protocol names its stream, and does not hold
        it.
        """
        return self._new_stream()

    @_Lasting
    def copy_stream(self) -> int:
        """A stream of our own, for copies of what the host captures and for memory of lanes."""
        return self._new_stream()

    def _new_stream(self) -> int:
        with self.outside_capture():
            return int(check(driver.api().cuStreamCreate(1), "cuStreamCreate"))

    def _attribute(self, name: str) -> int:
        known = driver.api().CUdevice_attribute
        attribute = getattr(known, f"CU_DEVICE_ATTRIBUTE_{name}")
        found = driver.api().cuDeviceGetAttribute(attribute, self.ordinal)
        return int(check(found, "cuDeviceGetAttribute"))


_devices: dict[int, Device] = {}
_left: list[dict[int, Device]] = []  # of parents: what they hold may not be given back in a child
_lock = threading.Lock()


def get(ordinal: int) -> Device:
    """Return the GPU of an ordinal; raise NoDeviceError if there is none."""
    try:
        return _devices[ordinal]
    except KeyError:
        return _added(ordinal)


def _added(ordinal: int) -> Device:
    driver.check_process()
    driver.require_device(ordinal)
    with _lock:
        return _devices.setdefault(ordinal, Device(ordinal))


@contextmanager
def put(device: Device) -> Iterator[None]:
    """Let a device be found by its ordinal within a ``with`` block."""
    with _lock:
        _devices[device.ordinal] = device
    try:
        yield
    finally:
        with _lock:
            _devices.pop(device.ordinal, None)


def known() -> list[Device]:
    """Return the GPUs in use."""
    return list(_devices.values())


@forks.in_child
def _leave() -> None:
    """Use nothing of the parent's in a forked child."""
    global _devices, _lock
    _left.append(_devices)
    _devices, _lock = {}, threading.Lock()
