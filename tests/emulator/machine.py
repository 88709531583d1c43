"""The machine that runs kernels: its memory, copies and launches, of one thread at a time."""

from __future__ import annotations

import ctypes
import threading

from emulator.control import Settings, machine

lock = threading.RLock()  # whoever uses the machine or what is queued for it holds this


def allocate(size: int, name: str) -> int:
    """Return new memory of exactly so many bytes, between pages that nobody may touch."""
    with lock:
        return int(machine().emu_alloc(size, name.encode()))


def free(address: int) -> None:
    with lock:
        machine().emu_free(address)


def register(address: int, size: int, name: str) -> None:
    """Let kernels use memory of the host."""
    with lock:
        machine().emu_register(address, size, name.encode())


def unregister(address: int) -> None:
    with lock:
        machine().emu_unregister(address)


def copy(target: int, source: int, size: int) -> str | None:
    """Copy; return what is wrong with the places, None if nothing."""
    with lock:
        return _report() if machine().emu_copy(target, source, size) else None


def fill(address: int, pitch: int, word: bytes, width: int, height: int) -> str | None:
    """Write a word to `width` places in each of `height` rows that lie `pitch` bytes apart."""
    with lock:
        failed = machine().emu_fill(address, pitch, word, len(word), width, height)
        return _report() if failed else None


def set_source(function: int, parameters: bytes) -> None:
    """Say which function makes elements, in the next launch; its numbers are read from there.

    An operator's come by way of shared memory, which tells whether a kernel put them there.
    """
    with lock:
        ctypes.c_void_p.in_dll(machine(), "emu_input").value = function
        numbers = (ctypes.c_char * 128).in_dll(machine(), "emu_numbers")
        ctypes.memmove(numbers, parameters, min(128, len(parameters)))


def launch(
    entry: int, operator: int, grid: int, threads: int, shared_bytes: int, parameters: bytes,
    settings: Settings,
) -> str | None:  # fmt: skip
    """Run a kernel; return the report of what it does wrong, None if nothing."""
    with lock:
        block = (ctypes.c_char * (len(parameters) + 16))()
        address = ctypes.addressof(block)
        address += -address % 16
        ctypes.memmove(address, parameters, len(parameters))
        failed = machine().emu_launch(
            entry, operator, grid, threads, shared_bytes, address, len(parameters), settings
        )
        return _report() if failed else None


def _report() -> str:
    return str(machine().emu_report().decode(errors="replace")).strip()
