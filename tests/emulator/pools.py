"""Memory that streams give back and take again: what is freed on a stream may be lent at once.

As from the driver's pools, what one gets may have a past that is still queued: it may be used in
the order of its stream, or by who waits for that. Who does not is too early.
"""

from __future__ import annotations

from collections import defaultdict

from emulator import memory, trial
from emulator import streams as order
from emulator.codes import INVALID_VALUE, Failed
from emulator.machine import lock
from emulator.streams import Stream

GARBAGE = b"\xa5"


class _Freed:
    """Memory whose last work is queued."""

    def __init__(self, address: int, size: int) -> None:
        self.address, self.size = address, size
        self.is_taken = self.is_over = False  # lent anew; all that was queued has run

    def end(self) -> None:
        """Free it, or spoil it for who is too early: they write before this."""
        self.is_over = True
        if self.is_taken:
            memory.fill(self.address, 0, GARBAGE, self.size, 1)
        else:
            memory.free(self.address)


_freed: dict[tuple[int, int], list[_Freed]] = defaultdict(list)  # by size and stream


def take(size: int, stream: Stream, source: str) -> int:
    """Return memory, to be used on a stream first."""
    with lock:
        known = _freed.pop((size, stream.identity), [])
        left = [each for each in known if not each.is_over]
        if left and trial.current.phase.is_newest_first:
            found = left.pop()
            found.is_taken = True
            memory.rename(found.address, source)
            address = found.address
        else:
            address = memory.allocate(size, source, stream.context - order.CONTEXT)
        if left:
            _freed[size, stream.identity] = left
        return address


def give_back(address: int, stream: Stream, *, is_aside: bool = False) -> None:
    """Free memory behind what a stream has queued; `is_aside`: and take it down in no capture."""
    with lock:
        found = memory.find(address)
        if found is None or found.start != address:
            raise Failed(INVALID_VALUE)
        freed = _Freed(address, found.size)
        if stream.capture is None:
            _freed[found.size, stream.identity].append(freed)
        (order.queue_aside if is_aside else order.queue)(stream, freed.end)
