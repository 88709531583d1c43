"""The machine's calls (include/control.h), for Python."""

from __future__ import annotations

import ctypes
import functools

from emulator import toolchain


class Settings(ctypes.Structure):
    """How a launch goes: see `Settings` in include/control.h."""

    _fields_ = (
        ("seed", ctypes.c_uint64),
        ("order", ctypes.c_int32),
        ("residency", ctypes.c_int32),
        ("blocks_any_order", ctypes.c_int32),
        ("races", ctypes.c_int32),
        ("preempt", ctypes.c_double),
        ("weak", ctypes.c_int32),
        ("max_steps", ctypes.c_uint64),
        ("uninitialised", ctypes.c_int32),
    )


STATS = (
    "switches",
    "accesses",
    "polls",
    "copies",
    "resident_blocks",
    "clock_bytes",
    "old_loads",
    "late_stores",
)

_VOID, _WORD, _INT = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32
_SIGNATURES = {
    "emu_alloc": (_VOID, [_WORD, ctypes.c_char_p]),
    "emu_free": (None, [_VOID]),
    "emu_register": (None, [_VOID, _WORD, ctypes.c_char_p]),
    "emu_unregister": (None, [_VOID]),
    "emu_copy": (ctypes.c_int, [_VOID, _VOID, _WORD]),
    "emu_fill": (ctypes.c_int, [_VOID, _WORD, _VOID, _WORD, _WORD, _WORD]),
    "emu_launch": (
        ctypes.c_int,
        [_VOID, _VOID, _INT, _INT, _WORD, _VOID, _WORD, ctypes.POINTER(Settings)],
    ),
    "emu_report": (ctypes.c_char_p, []),
    "emu_stats": (None, [ctypes.POINTER(_WORD)]),
}


@functools.cache
def machine() -> ctypes.CDLL:
    """Return the machine with the types of its calls."""
    library = toolchain.machine()
    for name, (result, arguments) in _SIGNATURES.items():
        call = getattr(library, name)
        call.restype, call.argtypes = result, arguments
    return library


def stats() -> dict[str, int]:
    """Return the figures of the last launch."""
    out = (_WORD * len(STATS))()
    machine().emu_stats(out)
    return dict(zip(STATS, out, strict=True))
