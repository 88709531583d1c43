"""Memory that the emulated GPU knows: allocations of exact size, copies and fills within them."""

from __future__ import annotations

import bisect
import ctypes
import itertools
import mmap
from collections import Counter
from typing import Any, NamedTuple

from emulator import machine, trial
from emulator.codes import INVALID_VALUE, OUT_OF_MEMORY, Failed
from emulator.machine import lock

TOTAL_BYTES = 4 << 30  # of the device; what it holds takes memory of this machine
HOST, DEVICE = 1, 2  # CUmemorytype
_PAGEABLE = 0


class Allocation(NamedTuple):
    """Memory of one kind: of the device, page-locked, or both's."""

    start: int
    size: int
    kind: int  # CUmemorytype
    is_managed: bool
    source: str  # the call that made it
    test: str
    number: int
    device: int = 0

    @property
    def end(self) -> int:
        return self.start + self.size


_known: dict[int, Allocation] = {}
_starts: list[int] = []  # of `_known`, in order
_numbers = itertools.count()
_used = _most_used = 0  # bytes of the device


def allocate(
    size: int, source: str, device: int = 0, kind: int = DEVICE, is_managed: bool = False
) -> int:
    """Return new memory."""
    global _used, _most_used
    if size <= 0:
        raise Failed(INVALID_VALUE)
    with lock:
        if kind == DEVICE:
            if _used + size > TOTAL_BYTES:
                raise Failed(OUT_OF_MEMORY)
            _used += size
            _most_used = max(_most_used, _used)
        elif size > TOTAL_BYTES:
            raise Failed(OUT_OF_MEMORY)
        if kind == HOST or is_managed:
            address = _of_host(size, source)
        else:
            address = machine.allocate(size, f"{size} bytes of {source}")
        _enter(Allocation(
            address, size, kind, is_managed, source, trial.current.name, next(_numbers),
            device,
        ))  # fmt: skip
        return address


def free(address: int) -> None:
    """Give memory back: what still uses it goes beyond all bounds."""
    global _used
    with lock:
        found = _leave(address)
        if found.kind == DEVICE:
            _used -= found.size
        if found.kind == HOST or found.is_managed:
            machine.unregister(address)
            _mapped.pop(address, None)  # None: the host has allocated it
        else:
            machine.free(address)


def rename(address: int, source: str) -> None:
    """Say who has lent memory that was lent before."""
    _known[address] = _known[address]._replace(source=source, test=trial.current.name)


def register(address: int, size: int) -> None:
    """Lock memory that the host has allocated."""
    with lock:
        if any(find(place) is not None for place in (address, address + size - 1)):
            raise Failed(INVALID_VALUE)
        _enter(Allocation(
            address, size, HOST, False, "cuMemHostRegister", trial.current.name, next(_numbers)
        ))  # fmt: skip
        machine.register(address, size, f"{size} bytes of cuMemHostRegister")


def _of_host(size: int, source: str) -> int:
    """Return memory that the host reads and writes as it likes."""
    mapped = (ctypes.c_char * size).from_buffer(mmap.mmap(-1, size))
    address = ctypes.addressof(mapped)
    _mapped[address] = mapped
    machine.register(address, size, f"{size} bytes of {source}")
    return address


_mapped: dict[int, Any] = {}


def _enter(made: Allocation) -> None:
    _known[made.start] = made
    bisect.insort(_starts, made.start)


def _leave(address: int) -> Allocation:
    if address not in _known:
        raise Failed(INVALID_VALUE)
    del _starts[bisect.bisect_left(_starts, address)]
    return _known.pop(address)


def find(address: int) -> Allocation | None:
    """Return the allocation that an address lies in."""
    place = bisect.bisect_right(_starts, address) - 1
    found = _known[_starts[place]] if place >= 0 else None
    return found if found is not None and address < found.end else None


def most_used() -> int:
    """Return the most bytes of the device that were ever in use at once."""
    return _most_used


def num_free() -> int:
    """Return how many bytes the device has left."""
    return TOTAL_BYTES - _used


def left(since: int = 0) -> Counter[str]:
    """Return the bytes that are allocated still, by the call and the test that made them."""
    found: Counter[str] = Counter()
    for each in _known.values():
        if each.number >= since and each.kind == DEVICE:
            found[f"{each.source} in {each.test}"] += each.size
    return found


def copy(target: int, source: int, size: int) -> None:
    """Copy now; remember what is wrong with the places."""
    if size:
        _note(machine.copy(target, source, size))


def fill(address: int, pitch: int, word: bytes, width: int, height: int) -> None:
    """Write one word everywhere now."""
    if width and height:
        _note(machine.fill(address, pitch, word, width, height))


def _note(report: str | None) -> None:
    if report is not None:
        trial.current.fail(report)


def is_pageable(address: int) -> bool:
    """Return whether an address is memory of the host that the GPU does not know."""
    return find(address) is None


def snapshot(address: int, size: int) -> ctypes.Array[ctypes.c_char]:
    """Return a copy of the host's memory as it is now."""
    return (ctypes.c_char * max(size, 1)).from_buffer_copy(ctypes.string_at(address, size))
