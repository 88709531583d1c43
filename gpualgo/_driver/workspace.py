"""Temporary storage: a workspace for each stream, kept; anything larger for one call.

A call may be supplied with storage (`supplied`): then nothing is kept or allocated for it.
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

TICKET_BYTES = 64 << 10  # counters and tagged words, at the front: zero between launches
KEPT_BYTES = 1 << 20  # partials beyond this are allocated for one call
STATE_BYTES = 1 << 20  # look-back states, likewise: tagged words, which no other use may disturb
ALIGNMENT = 256
_MAX_WORKSPACES = 512  # of one device; none is ever freed, as a launch may be about to use it


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
                "temp_storage is too small for arrays that lie as these; prepare with such arrays"
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


class Storage:
    """The temporary storage of one device."""

    def __init__(self, context: Context, pool: Pool) -> None:
        self._context, self._pool = context, pool
        self._first: dict[int, int] = {}  # workspaces by the stream's identity
        self._second: dict[int, tuple[int, threading.Lock]] = {}  # and whose turn it is
        self._lock = threading.Lock()

    def first(self, stream: int) -> int:
        """Return a stream's workspace for one launch, tickets first; 0: the call needs its own.

        Launches on one stream follow each other, so they share one. A stream that is being captured
        gets memory inside the graph (`allocate`), as the graph may run beside the stream.
        """
        if _thread.supplier is not None or driver.is_capturing(stream):
            return 0
        identity = self._context.stream_id(stream)
        return self._first.get(identity) or self._new_first(identity, stream)

    @contextmanager
    def second(self, stream: int) -> Iterator[int]:
        """Lend a stream's second workspace, for launches that use it one after the other.

        No other thread queues any that use it in between. 0: the call needs one of its own.
        """
        if _thread.supplier is not None or driver.is_capturing(stream):
            yield 0
            return
        identity = self._context.stream_id(stream)
        found = self._second.get(identity) or self._new_second(identity, stream)
        if found is None:
            yield 0
            return
        with found[1]:
            yield found[0]

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
        # Not from the pool: a process's first cuMemAllocAsync takes milliseconds.
        size = TICKET_BYTES + KEPT_BYTES + STATE_BYTES
        with self._context.outside_capture():  # of whatever other threads record
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
        """Give temporary storage back once the stream's earlier work is done."""
        if _thread.supplier is None:
            self._pool.free(address, stream)


def clear(address: int, size: int, stream: int) -> None:
    """Set device memory to zero, in stream order."""
    check(driver.api().cuMemsetD8Async(address, 0, size, stream), "cuMemsetD8Async")
