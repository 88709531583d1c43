"""Machine code as one block: an ELF object whose sections are laid out and joined when it is made.

So a process that finds it on disk copies it into memory, puts a few addresses in, and calls it:
neither numba nor LLVM is loaded. Objects with anything unusual in them are left to LLVM.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
import sys
import weakref
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

_ALLOCATED, _WRITABLE, _THREAD_LOCAL = 2, 1, 0x400
_NOBITS, _RELA, _SYMTAB, _UNWIND = 8, 4, 2, 0x70000001
_R_64, _R_PC32, _R_PLT32, _R_PC64 = 1, 2, 4, 24

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")

SUPPORTED = sys.platform == "linux" and platform.machine() == "x86_64" and sys.maxsize > 1 << 32


class Image(NamedTuple):
    """A block of machine code, its entry, and the words in it that hold addresses."""

    content: bytes
    entry: int
    own: tuple[int, ...]  # places of words to which the block's own address is added
    others: tuple[tuple[int, str], ...]  # places of words to which a symbol's address is added


class _Section(NamedTuple):
    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int


def link(content: bytes, entry: str) -> Image | None:
    """Return an ELF object as a block; None for one that has something unusual in it."""
    if not SUPPORTED or content[:6] != b"\x7fELF\x02\x01":
        return None
    sections = _sections(content)
    starts: dict[int, int] = {}
    block = bytearray()
    for index, section in enumerate(sections):
        if not section.flags & _ALLOCATED or section.kind == _UNWIND or not section.size:
            continue
        if section.flags & _THREAD_LOCAL or section.alignment > mmap.PAGESIZE:
            return None
        if section.flags & _WRITABLE and ".data.rel.ro" not in section.name:
            return None  # the block cannot be written to once it is made
        block += bytes(-len(block) % max(section.alignment, 1))
        starts[index] = len(block)
        is_empty = section.kind == _NOBITS
        end = section.offset + section.size
        block += bytes(section.size) if is_empty else content[section.offset : end]
    symbols = _symbols(content, sections)
    own: list[int] = []
    others: list[tuple[int, str]] = []
    for section in sections:
        if section.kind != _RELA or section.info not in starts:
            continue
        for at in range(section.offset, section.offset + section.size, _RELOCATION.size):
            place, info, addend = _RELOCATION.unpack_from(content, at)
            place += starts[section.info]
            name, where, value = symbols[info >> 32]
            if not _relocate(block, place, info & 0xFFFFFFFF, name, starts.get(where),
                             value + addend, where == 0, own, others):  # fmt: skip
                return None
    for name, where, value in symbols:
        if name == entry and where in starts:
            return Image(bytes(block), starts[where] + value, tuple(own), tuple(others))
    return None


def _relocate(
    block: bytearray, place: int, kind: int, name: str, start: int | None, value: int,
    is_other: bool, own: list[int], others: list[tuple[int, str]],
) -> bool:  # fmt: skip
    """Put a symbol's place where it is used; say whether that is known how to do."""
    if kind == _R_64 and (start is not None or (is_other and name)):
        struct.pack_into("<q", block, place, value + (start or 0))
        if start is None:
            others.append((place, name))
        else:
            own.append(place)
        return True
    if start is None:
        return False
    distance = start + value - place
    if kind == _R_PC64:
        struct.pack_into("<q", block, place, distance)
        return True
    if kind in (_R_PC32, _R_PLT32) and -(1 << 31) <= distance < 1 << 31:
        struct.pack_into("<i", block, place, distance)
        return True
    return False


def _sections(content: bytes) -> list[_Section]:
    (table,) = struct.unpack_from("<Q", content, 0x28)
    size, count, names = struct.unpack_from("<HHH", content, 0x3A)
    rows = [_SECTION.unpack_from(content, table + size * i) for i in range(count)]
    strings = rows[names][4]
    return [
        _Section(_text(content, strings + row[0]), row[1], row[2], *row[4:9]) for row in rows
    ]  # fmt: skip


def _symbols(content: bytes, sections: list[_Section]) -> list[tuple[str, int, int]]:
    """Return each symbol's name, section (0 for none here) and place within it."""
    found = []
    for section in sections:
        if section.kind != _SYMTAB:
            continue
        strings = sections[section.link].offset
        for at in range(section.offset, section.offset + section.size, _SYMBOL.size):
            name, _, _, where, value, _ = _SYMBOL.unpack_from(content, at)
            found.append((_text(content, strings + name), where, value))
    return found


def _text(content: bytes, at: int) -> str:
    return content[at : content.index(b"\0", at)].decode()


class Loaded:
    """A block in memory, which lives as long as this.

    Once the interpreter ends it stays: a daemon's thread may still be in it. Such a thread ends
    where it asks for the interpreter's lock, and the code of all its callers is read then.
    """

    def __init__(self, image: Image, address_of: Callable[[str], int]) -> None:
        size = max(len(image.content), 1)
        memory = mmap.mmap(
            -1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE
        )
        kept_for_good(memory)
        weakref.finalize(self, _let_go, memory).atexit = False
        base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        block = bytearray(image.content)
        for place in image.own:
            _add(block, place, base)
        for place, name in image.others:
            _add(block, place, address_of(name))
        memory[: len(block)] = bytes(block)
        if _libc().mprotect(base, size, mmap.PROT_READ | mmap.PROT_EXEC):
            raise OSError(ctypes.get_errno(), "memory cannot be made executable")
        self.address = base + image.entry


def kept_for_good(thing: Any) -> None:
    """Keep an object beyond the end of the interpreter, which lets go of all else."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _let_go(thing: Any) -> None:
    """Undo `kept_for_good`; not called any more once the interpreter ends."""
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(thing))


def _add(block: bytearray, place: int, address: int) -> None:
    (value,) = struct.unpack_from("<Q", block, place)
    struct.pack_into("<Q", block, place, (value + address) % (1 << 64))


@cache
def _libc() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    library.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return library


def encode(image: Image) -> tuple[bytes, ...]:
    """Return an image as the fields of a file."""
    own = struct.pack(f"<{len(image.own)}Q", *image.own)
    others = "\n".join(f"{place} {name}" for place, name in image.others)
    return struct.pack("<Q", image.entry), own, others.encode(), image.content


def decode(fields: tuple[bytes, ...]) -> Image:
    """Return the image of a file's fields, which have been checked."""
    entry, own, others, content = fields
    pairs = (line.split(" ", 1) for line in others.decode().splitlines())
    return Image(
        content, struct.unpack("<Q", entry)[0], struct.unpack(f"<{len(own) // 8}Q", own),
        tuple((int(place), name) for place, name in pairs),
    )  # fmt: skip
