"""Machine code as one relocatable block, linked from an ELF object when it is compiled.

A process that reads a block from disk copies it into memory, patches a few addresses and calls it;
it loads neither numba nor LLVM. Objects with unsupported features are left to LLVM.
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

import numpy as np

from gpualgo._base.imports import loading

_ALLOCATED, _WRITABLE, _THREAD_LOCAL = 2, 1, 0x400
_NOBITS, _RELA, _SYMTAB, _UNWIND = 8, 4, 2, 0x70000001
_R_64, _R_PC32, _R_PLT32, _R_PC64 = 1, 2, 4, 24

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")

SUPPORTED = sys.platform == "linux" and platform.machine() == "x86_64" and sys.maxsize > 1 << 32


class Image(NamedTuple):
    """A block of machine code, the offset of its entry, and the words to relocate."""

    content: bytes
    entry: int
    own: tuple[int, ...]  # offsets of words to which the block's address is added
    others: tuple[tuple[int, str], ...]  # the same for a symbol's address


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
    """Return an ELF object as a block; None if it uses an unsupported feature."""
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
            return None  # the block is read-only once it is loaded
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
        for position in range(section.offset, section.offset + section.size, _RELOCATION.size):
            offset, info, addend = _RELOCATION.unpack_from(content, position)
            offset += starts[section.info]
            name, section_index, value = symbols[info >> 32]
            if not _relocate(block, offset, info & 0xFFFFFFFF, name, starts.get(section_index),
                             value + addend, section_index == 0, own, others):  # fmt: skip
                return None
    for name, section_index, value in symbols:
        if name == entry and section_index in starts:
            return Image(bytes(block), starts[section_index] + value, tuple(own), tuple(others))
    return None


def _relocate(
    block: bytearray, offset: int, kind: int, name: str, start: int | None, value: int,
    is_other: bool, own: list[int], others: list[tuple[int, str]],
) -> bool:  # fmt: skip
    """Apply one relocation to the block; return False if its kind is not supported."""
    if kind == _R_64 and (start is not None or (is_other and name)):
        struct.pack_into("<q", block, offset, value + (start or 0))
        if start is None:
            others.append((offset, name))
        else:
            own.append(offset)
        return True
    if start is None:
        return False
    distance = start + value - offset
    if kind == _R_PC64:
        struct.pack_into("<q", block, offset, distance)
        return True
    if kind in (_R_PC32, _R_PLT32) and -(1 << 31) <= distance < 1 << 31:
        struct.pack_into("<i", block, offset, distance)
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
    """Return each symbol's name, section (0 if undefined) and offset within the section."""
    symbols = []
    for section in sections:
        if section.kind != _SYMTAB:
            continue
        strings = sections[section.link].offset
        for position in range(section.offset, section.offset + section.size, _SYMBOL.size):
            name, _, _, section_index, value, _ = _SYMBOL.unpack_from(content, position)
            symbols.append((_text(content, strings + name), section_index, value))
    return symbols


def _text(content: bytes, start: int) -> str:
    return content[start : content.index(b"\0", start)].decode()


class LoadedImage:
    """A block in executable memory, which is freed with this object.

    It stays when the interpreter exits: a daemon thread may still run in it. Such a thread ends
    when it asks for the GIL, and the unwinder then reads the code of all its callers.
    """

    def __init__(self, image: Image, address_of: Callable[[str], int]) -> None:
        size = max(len(image.content), 1)
        memory = mmap.mmap(
            -1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE
        )
        keep_alive_forever(memory)
        weakref.finalize(self, _release, memory).atexit = False
        base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        block = bytearray(image.content)
        for offset in image.own:
            _add_to_word(block, offset, base)
        for offset, name in image.others:
            _add_to_word(block, offset, address_of(name))
        memory[: len(block)] = bytes(block)
        if _libc().mprotect(base, size, mmap.PROT_READ | mmap.PROT_EXEC):
            raise OSError(ctypes.get_errno(), "memory cannot be made executable")
        self.address = base + image.entry


def keep_alive_forever(thing: Any) -> None:
    """Keep an object alive even when the interpreter exits, which frees all others."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _release(thing: Any) -> None:
    """Undo `keep_alive_forever`; not called when the interpreter exits."""
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(thing))


def _add_to_word(block: bytearray, offset: int, address: int) -> None:
    (value,) = struct.unpack_from("<Q", block, offset)
    struct.pack_into("<Q", block, offset, (value + address) % (1 << 64))


@cache
def _libc() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    library.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return library


def encode_image(image: Image) -> tuple[bytes, ...]:
    """Return an image as the fields of a cache file."""
    own = struct.pack(f"<{len(image.own)}Q", *image.own)
    others = "\n".join(f"{offset} {name}" for offset, name in image.others)
    return struct.pack("<Q", image.entry), own, others.encode(), image.content


def decode_image(fields: tuple[bytes, ...]) -> Image:
    """Return the image in a cache file's fields, which have been checked."""
    entry, own, others, content = fields
    pairs = (line.split(" ", 1) for line in others.decode().splitlines())
    return Image(
        content, struct.unpack("<Q", entry)[0], struct.unpack(f"<{len(own) // 8}Q", own),
        tuple((int(offset), name) for offset, name in pairs),
    )  # fmt: skip


# --- Machine code of a kernel, as stored on disk and as loaded into memory.

ENTRY = "gpualgo_entry"
"""Symbol of a kernel: `int32 gpualgo_entry(int64...)` returns 0 unless an operator raised."""

WORDS = "gpualgo_words_"
"""Prefix of the symbol of an operator's captured words; the operator's digest follows."""

_OBJECT, _IMAGE = b"object", b"image"


class Code(NamedTuple):
    kind: bytes
    fields: tuple[bytes, ...]


def of_object(content: bytes, needed: list[str]) -> Code:
    """Return the code of an object file; `needed` names its undefined symbols."""
    block = link(content, ENTRY)
    if block is not None:
        return Code(_IMAGE, encode_image(block))
    return Code(_OBJECT, ("\n".join(needed).encode(), content))


def encode(code: Code) -> tuple[bytes, ...]:
    return code.kind, *code.fields


def decode(fields: tuple[bytes, ...] | None) -> Code | None:
    """Return the code in a cache file's fields; None if they are missing or malformed."""
    if fields is None or (fields[0], len(fields)) not in ((_IMAGE, 5), (_OBJECT, 3)):
        return None
    return Code(fields[0], fields[1:])


class Loaded:
    """Executable code, which keeps its operator's captured words alive."""

    def __init__(self, code: Code, words: np.ndarray[Any, Any] | None) -> None:
        self._words = words
        if code.kind == _IMAGE:
            block = LoadedImage(decode_image(code.fields), self._address_of)
            self._code: Any = block
        else:
            with loading():
                from gpualgo._cpu import llvm

            names = code.fields[0].decode().splitlines()
            symbols = {name: self._address_of(name) for name in names}
            self._code = llvm.Loaded(code.fields[1], ENTRY, symbols)
        self.address: int = self._code.address

    def _address_of(self, name: str) -> int:
        if name.startswith(WORDS):
            assert self._words is not None
            return int(self._words.ctypes.data)
        address = _address_in_process(name) or _address_in_numba(name)
        if not address:
            raise RuntimeError(f"compiled code needs {name}, which this process does not define")
        return address


def _address_in_process(name: str) -> int | None:
    """Return the address of a function in Python's own libraries or the C math library."""
    for library in (None, "libm.so.6"):
        try:
            function = getattr(ctypes.CDLL(library), name)
        except (AttributeError, OSError, TypeError):  # no such function or library; Windows
            continue
        return ctypes.cast(function, ctypes.c_void_p).value
    return None


def _address_in_numba(name: str) -> int | None:
    with loading():
        import numba.core.registry

        from gpualgo._cpu import llvm

    _ = numba.core.registry.cpu_target.target_context  # registers the symbols
    return llvm.address_of(name)
