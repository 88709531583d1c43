"""How long memory lives: results of no library, and whatever a stream still uses."""

from __future__ import annotations

import threading
import weakref
from contextlib import suppress
from typing import Any

from gpualgo._base import forks
from gpualgo._driver import device as gpu
from gpualgo._driver import driver
from gpualgo._driver.driver import check
from gpualgo._driver.streams import wait_for


def allocate_array(size: int, stream: int, device: int) -> int:
    """Return memory for a result, to be used on a stream.

    It may outlive the stream and whatever supplies temporary storage.
    """
    found = gpu.get(device)
    own = found.array_stream
    with found.outside_capture():
        address = found.pool.allocate(size, own)
        if driver.is_capturing(stream):  # whose work may not wait for what is not captured
            driver.synchronize(own)
        else:
            wait_for(stream, own, device)
    return address


def release(address: int, device: int, events: dict[int, Any]) -> None:
    """Give a result's memory back once the events have come: its uses, by stream.

    Other libraries may have used it on the legacy default stream, where most of them work.
    """
    with suppress(RuntimeError), gpu.get(device).outside_capture():  # a forked child
        found, api = gpu.get(device), driver.api()
        own = found.array_stream
        if driver.is_free(0):
            wait_for(own, 0, device)
        for event in events.values():
            check(api.cuStreamWaitEvent(own, event, 0), "cuStreamWaitEvent")
            check(api.cuEventDestroy(event), "cuEventDestroy")
        found.pool.free(address, own)


_in_use: dict[Any, list[tuple[Any, Any]]] = {}  # oldest first, by stream
_in_use_lock = threading.RLock()  # a finalizer that runs inside may come here as well


@forks.in_child
def _renew_lock() -> None:
    global _in_use_lock
    _in_use_lock = threading.RLock()


def keep_until_done(stream: int, device: int, *objects: Any) -> None:
    """Hold objects until what is queued on the stream so far has run.

    What a capture records is held by its graph instead.
    """
    if driver.is_capturing(stream):
        return
    api = driver.api()
    with gpu.get(device).current():
        event = check(api.cuEventCreate(2), "cuEventCreate")  # 2: no timing
        check(api.cuEventRecord(event, stream), "cuEventRecord")
    keep_until_event((device, stream), event, objects)


def keep_until_event(key: Any, event: Any, objects: Any) -> None:
    """Hold objects until an event, which is destroyed then; events of a key come in order."""
    api = driver.api()
    finished: list[Any] = []  # let go only outside the lock
    with _in_use_lock, driver.relaxed():  # asking after an event would end others' captures
        _in_use.setdefault(key, []).append((event, objects))
        for other, entries in list(_in_use.items()):
            while entries and not api.cuEventQuery(entries[0][0])[0]:
                finished.append(entries.pop(0))
            if not entries:
                _in_use.pop(other, None)
    for done, _ in finished:
        check(api.cuEventDestroy(done), "cuEventDestroy")


class Memory:
    """Device memory that goes back to the pool when nobody holds it and the GPU is done with it."""

    __slots__ = ("__weakref__", "_events", "device", "stream")

    def __init__(self, stream: int, device: int) -> None:
        self.stream = stream  # held: it may be the handle that holds its stream
        self.device = device
        self._events: dict[int, Any] = {}  # by the stream's identity: after the last use there

    def take(self, size: int) -> int:
        """Return the address of so many bytes, to be used on the stream first."""
        address = allocate_array(size, int(self.stream), self.device)
        free = weakref.finalize(self, release, address, self.device, self._events)
        free.atexit = False
        return address

    def use_on(self, stream: int) -> None:
        """Remember that what is queued on a stream by now uses the memory."""
        if driver.is_capturing(stream):  # the graph holds its arrays
            return
        api = driver.api()
        found = gpu.get(self.device)
        with found.current():
            identity = found.stream_id(stream)
            event = self._events.get(identity)
            if event is None:
                event = driver.check(api.cuEventCreate(2), "cuEventCreate")  # 2: no timing
                event = self._events.setdefault(identity, event)
            driver.check(api.cuEventRecord(event, stream), "cuEventRecord")
