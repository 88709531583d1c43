"""Temporary storage: a workspace for each stream, kept; anything larger from the stream's pool."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from gpualgo._cuda import driver
from gpualgo._cuda.driver import check

TICKET_BYTES = 64 << 10  # arrival counters, at the front: zero between launches
KEPT_BYTES = 1 << 20  # partials beyond this are allocated for one call
STATE_BYTES = 1 << 20  # look-back states, likewise: tagged words, which no other use may disturb
_MAX_WORKSPACES = 512  # none is ever freed, as a launch may be about to use it

_Key = tuple[int, int, bool]  # device, the stream's identity, whether for several launches

_workspaces: dict[_Key, int] = {}
_turns: dict[_Key, threading.Lock] = {}
_lock = threading.Lock()


def kept_workspace(device: int, stream: int, partial_bytes: int) -> int:
    """Return a stream's workspace for one launch, tickets first; 0: the call needs its own.

    Launches on one stream follow each other, so they share one. A stream that is being captured
    gets memory inside the graph (`own_workspace`), as the graph may run beside the stream.
    """
    if partial_bytes > KEPT_BYTES or _is_capturing(stream):
        return 0
    return _kept((device, _stream_id(stream, device), False), device, stream)


@contextmanager
def kept_for_several(device: int, stream: int, partial_bytes: int) -> Iterator[int]:
    """Lend a stream's second workspace, for launches that use it one after the other.

    No other thread queues any that use it in between. 0: the call needs one of its own.
    """
    if partial_bytes > KEPT_BYTES or _is_capturing(stream):
        yield 0
        return
    key = (device, _stream_id(stream, device), True)
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
    address = allocate(TICKET_BYTES + partial_bytes, stream, device)
    try:
        clear(address, TICKET_BYTES, stream)
        yield address
    finally:
        free(address, stream)


def kept_states(device: int, stream: int, state_bytes: int) -> int:
    """Return a stream's look-back states (lookback.cuh); 0 where the call needs its own."""
    if state_bytes > STATE_BYTES:
        return 0
    workspace = kept_workspace(device, stream, 0)
    return workspace and workspace + TICKET_BYTES + KEPT_BYTES


@contextmanager
def own_states(device: int, stream: int, state_bytes: int) -> Iterator[int]:
    """Allocate look-back states for one call, in stream order."""
    address = allocate(state_bytes, stream, device)
    try:
        clear(address, state_bytes, stream)
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
        with driver.current_device(device):
            address = int(check(driver.api().cuMemAlloc(size), f"allocating {size} bytes"))
        clear(address, size, stream)
        _turns[key] = threading.Lock()
        _workspaces[key] = address
        return address


def allocate(size: int, stream: int, device: int) -> int:
    """Allocate size bytes on a device, usable in stream order."""
    with driver.current_device(device):
        pointer = check(
            driver.api().cuMemAllocAsync(size, stream),
            f"allocating {size} bytes of temporary storage on cuda:{device}",
        )
    return int(pointer)


def free(address: int, stream: int) -> None:
    """Return memory to the pool once the stream's earlier work is done."""
    check(driver.api().cuMemFreeAsync(address, stream), "cuMemFreeAsync")


def release(address: int, stream: int, device: int) -> None:
    """Return memory as `free` does, from whatever thread and device is current."""
    with driver.current_device(device):
        free(address, stream)


def clear(address: int, size: int, stream: int) -> None:
    """Set device memory to zero, in stream order."""
    check(driver.api().cuMemsetD8Async(address, 0, size, stream), "cuMemsetD8Async")


def _stream_id(stream: int, device: int) -> int:
    """Return a stream's identity, which no later stream shares even if it gets its handle."""
    result = driver.api().cuStreamGetId(stream)
    if result[0] == driver.api().CUresult.CUDA_ERROR_INVALID_CONTEXT:
        driver.adopt_thread(device)
        result = driver.api().cuStreamGetId(stream)
    return int(check(result, "cuStreamGetId"))


def _is_capturing(stream: int) -> bool:
    status, capture = driver.api().cuStreamIsCapturing(stream)
    return bool(status == 0 and int(capture) != 0)
