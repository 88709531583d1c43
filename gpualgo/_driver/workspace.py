"""Temporary storage: a workspace for each stream, kept; anything larger for one call.

A call may be supplied with storage (`supplied`): then nothing is kept or allocated for it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from gpualgo._driver import driver, pools
from gpualgo._driver.driver import check
from gpualgo._driver.streams import stream_id

TICKET_BYTES = 64 << 10  # counters and tagged words, at the front: zero between launches
KEPT_BYTES = 1 << 20  # partials beyond this are allocated for one call
STATE_BYTES = 1 << 20  # look-back states, likewise: tagged words, which no other use may disturb
ALIGNMENT = 256
_MAX_WORKSPACES = 512  # none is ever freed, as a launch may be about to use it

_Key = tuple[int, int, bool]  # device, the stream's identity, whether for several launches

_workspaces: dict[_Key, int] = {}
_turns: dict[_Key, threading.Lock] = {}
_lock = threading.Lock()


class Supplier(Protocol):
    """Storage that the calls of a thread take theirs from."""

    def take(self, size: int, device: int) -> int:
        """Return the address of so many bytes, which nothing else uses before the call ends."""


class Given:
    """Storage that a caller lends for one call."""

    def __init__(self, address: int, size: int) -> None:
        self._next, self._end = address, address + size

    def take(self, size: int, device: int) -> int:
        """Return the address of the next piece."""
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
    """Let calls of this thread take all temporary storage from a supplier."""
    before, _thread.supplier = _thread.supplier, supplier
    try:
        yield
    finally:
        _thread.supplier = before


def aligned(size: int) -> int:
    """Return what a piece of temporary storage takes."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def kept_workspace(device: int, stream: int, partial_bytes: int) -> int:
    """Return a stream's workspace for one launch, tickets first; 0: the call needs its own.

    Launches on one stream follow each other, so they share one. A stream that is being captured
    gets memory inside the graph (`own_workspace`), as the graph may run beside the stream.
    """
    if partial_bytes > KEPT_BYTES or _thread.supplier is not None or driver.is_capturing(stream):
        return 0
    return _kept((device, stream_id(stream, device), False), device, stream)


@contextmanager
def kept_for_several(device: int, stream: int, partial_bytes: int) -> Iterator[int]:
    """Lend a stream's second workspace, for launches that use it one after the other.

    No other thread queues any that use it in between. 0: the call needs one of its own.
    """
    if partial_bytes > KEPT_BYTES or _thread.supplier is not None or driver.is_capturing(stream):
        yield 0
        return
    key = (device, stream_id(stream, device), True)
    found = _kept(key, device, stream)
    if not found:
        yield 0
        return
    with _turns[key]:
        yield found


def _kept(key: _Key, device: int, stream: int) -> int:
    found = _workspaces.get(key)
    if found is None and len(_workspaces) < _MAX_WORKSPACES:
        found = _new_workspace(key, device, stream)
    return found or 0


@contextmanager
def own_workspace(device: int, stream: int, partial_bytes: int) -> Iterator[int]:
    """Allocate a workspace for one launch, in stream order."""
    with own(device, stream, TICKET_BYTES + partial_bytes, TICKET_BYTES) as address:
        yield address


def kept_states(device: int, stream: int, state_bytes: int) -> int:
    """Return a stream's look-back states (parts/lookback.cuh); 0 where the call needs its own."""
    if state_bytes > STATE_BYTES:
        return 0
    workspace = kept_workspace(device, stream, 0)
    return workspace and workspace + TICKET_BYTES + KEPT_BYTES


@contextmanager
def own_states(device: int, stream: int, state_bytes: int) -> Iterator[int]:
    """Allocate look-back states for one call, in stream order."""
    with own(device, stream, state_bytes, state_bytes) as address:
        yield address


@contextmanager
def own(device: int, stream: int, size: int, zeroed: int) -> Iterator[int]:
    """Allocate storage for one call, of which the first bytes are zero."""
    address = allocate(size, stream, device)
    try:
        if zeroed:
            clear(address, zeroed, stream)
        yield address
    finally:
        free(address, stream)


def _new_workspace(key: _Key, device: int, stream: int) -> int:
    with _lock:
        found = _workspaces.get(key)
        if found is not None:
            return found
        # Not from the pool: a process's first cuMemAllocAsync takes milliseconds.
        size = TICKET_BYTES + KEPT_BYTES + STATE_BYTES
        with driver.outside_capture(device):  # of whatever other threads record
            address = int(check(driver.api().cuMemAlloc(size), f"allocating {size} bytes"))
        clear(address, size, stream)
        _turns[key] = threading.Lock()
        _workspaces[key] = address
        return address


def allocate(size: int, stream: int, device: int) -> int:
    """Return temporary storage, usable in stream order."""
    supplier = _thread.supplier
    if supplier is not None:
        return supplier.take(size, device)
    return pools.allocate(size, stream, device)


def free(address: int, stream: int) -> None:
    """Give temporary storage back once the stream's earlier work is done."""
    if _thread.supplier is None:
        pools.free(address, stream)


def clear(address: int, size: int, stream: int) -> None:
    """Set device memory to zero, in stream order."""
    check(driver.api().cuMemsetD8Async(address, 0, size, stream), "cuMemsetD8Async")
