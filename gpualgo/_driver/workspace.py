"""Temporary storage: a cached workspace per stream; larger sizes are allocated per call.

If a call is given storage (`supplied`), nothing is cached or allocated for it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from gpualgo._driver import driver
from gpualgo._driver.context import Context
from gpualgo._driver.driver import check
from gpualgo._driver.pools import Pool

TICKET_BYTES = 64 << 10  # counters and tagged words at the front, zero between launches
KEPT_BYTES = 1 << 20  # partial results; larger ones are allocated per call
STATE_BYTES = 1 << 20  # look-back states, likewise: tagged words that no other use may overwrite
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
        self._first: dict[int, int] = {}  # workspaces by stream id
        self._second: dict[int, tuple[int, threading.Lock]] = {}  # and its lock
        self._lock = threading.Lock()

    def first(self, stream: int) -> int:
        """Return a stream's workspace for one launch; 0 if the call has to allocate its own.

        Launches on one stream run one after the other and share it. A captured stream allocates
        inside the graph (`allocate`), as the graph may run concurrently with the stream.
        """
        if _thread.supplier is not None or driver.is_capturing(stream):
            return 0
        identity = self._context.stream_id(stream)
        return self._first.get(identity) or self._new_first(identity, stream)

    @contextmanager
    def second(self, stream: int) -> Iterator[int]:
        """Yield a stream's second workspace, for several launches in turn; 0 if unavailable.

        While it is held, no other thread queues launches that use it.
        """
        if _thread.supplier is not None or driver.is_capturing(stream):
            yield 0
            return
        identity = self._context.stream_id(stream)
        workspace = self._second.get(identity) or self._new_second(identity, stream)
        if workspace is None:
            yield 0
            return
        with workspace[1]:
            yield workspace[0]

    def _new_first(self, identity: int, stream: int) -> int:
        with self._lock:
            if identity not in self._first and not self._is_full():
                self._first[identity] = self._new(stream)
            return self._first.get(identity, 0)

    def _new_second(self, identity: int, stream: int) -> tuple[int, threading.Lock] | None:
        with self._lock:
            if identity not in self._second and not self._is_full():
                self._second[identity] = self._new(stream), threading.Lock()
            return self._second.get(identity)

    def _is_full(self) -> bool:
        return len(self._first) + len(self._second) >= _MAX_WORKSPACES

    def _new(self, stream: int) -> int:
        # Not from the pool: the first cuMemAllocAsync of a process takes milliseconds.
        size = TICKET_BYTES + KEPT_BYTES + STATE_BYTES
        with self._context.outside_capture():  # exempt from captures of other threads
            address = int(check(driver.api().cuMemAlloc(size), f"allocating {size} bytes"))
        clear(address, size, stream)
        return address

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
    """Set device memory to zero in stream order."""
    check(driver.api().cuMemsetD8Async(address, 0, size, stream), "cuMemsetD8Async")
