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
from typing import Any, NamedTuple

import numpy as np

from gpualgo._base.imports import loading

_ALLOCATED, _WRITABLE = 2, 1
_NOBITS, _RELA, _SYMTAB = 8, 4, 2

# Relocations of x86-64 (below 256) and AArch64, by what they write: a word with an address, or the
# distance to it in so many bytes; and into an instruction the distance in words, the distance of
# pages, or the low 12 bits of an address, shifted. Some refer to a word with the symbol's address.
_ADDRESSES = (1, 257)
_DISTANCES = {2: 4, 4: 4, 9: 4, 24: 8, 41: 4, 42: 4, 260: 8, 261: 4}
_BRANCHES, _PAGES = (282, 283), (275, 311)
_LOW_BITS = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4, 312: 3}
_BY_WORD = (9, 41, 42, 311, 312)
_CALLS = (4, *_BRANCHES)
_JUMP_X86 = bytes.fromhex("ff25020000000000")  # jmp *8(code)
_JUMP_ARM = struct.pack("<II", 0x58000050, 0xD61F0200)  # ldr x16, #8; br x16

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")

ENTRY = "gpualgo_entry"
"""Symbol of a kernel: `int32 gpualgo_entry(int64...)` returns 0 unless an operator raised."""

WORDS = "gpualgo_words_"
"""Prefix of the symbol of an operator's captured words; the operator's digest follows."""

OBJECT = -1
MACHINE = platform.machine()
SUPPORTED = sys.platform == "linux" and MACHINE in ("x86_64", "aarch64") and sys.maxsize > 1 << 32


class Image(NamedTuple):
    """A block of machine code and the words to relocate, or an object file for LLVM."""

    content: bytes
    entry: int  # offset in the block, or OBJECT
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


class _Symbol(NamedTuple):
    name: str
    section: int  # 0 if undefined
    offset: int  # within the section


def of_object(content: bytes, needed: list[str]) -> Image:
    """Return a kernel's object file as a block if possible; `needed` names undefined symbols."""
    return link(content, ENTRY) or Image(content, OBJECT, (), tuple((0, name) for name in needed))


def link(content: bytes, entry: str) -> Image | None:
    """Return an ELF object as a block; None if it uses an unsupported feature."""
    if not SUPPORTED or content[:6] != b"\x7fELF\x02\x01":
        return None
    sections = _sections(content)
    block = _Block()
    for index, section in enumerate(sections):
        if not section.flags & _ALLOCATED or section.name == ".eh_frame" or not section.size:
            continue
        is_variable = section.flags & _WRITABLE and ".data.rel.ro" not in section.name
        if is_variable or section.kind == _NOBITS or section.alignment > mmap.PAGESIZE:
            return None  # the block is read-only once it is loaded
        data = content[section.offset : section.offset + section.size]
        block.starts[index] = block.append(data, section.alignment)
    symbols = _symbols(content, sections)
    for section in sections:
        if section.kind != _RELA or section.info not in block.starts:
            continue
        for position in range(section.offset, section.offset + section.size, _RELOCATION.size):
            offset, info, addend = _RELOCATION.unpack_from(content, position)
            offset += block.starts[section.info]
            if not block.relocate(offset, info & 0xFFFFFFFF, symbols[info >> 32], addend):
                return None
    for symbol in symbols:
        start = block.find(symbol)
        if symbol.name == entry and start is not None:
            return Image(bytes(block.content), start, tuple(block.own), tuple(block.others))
    return None


class _Block:
    def __init__(self) -> None:
        self.content, self.starts = bytearray(), dict[int, int]()  # starts of sections
        self.own, self.others = list[int](), list[tuple[int, str]]()  # see `Image`
        self._jumps: dict[_Symbol, int] = {}

    def append(self, content: bytes, alignment: int) -> int:
        self.content += bytes(-len(self.content) % max(alignment, 1)) + content
        return len(self.content) - len(content)

    def find(self, symbol: _Symbol) -> int | None:
        """Return a symbol's offset in the block, None if it is not there."""
        start = self.starts.get(symbol.section)
        return None if start is None else start + symbol.offset

    def relocate(self, offset: int, kind: int, symbol: _Symbol, addend: int) -> bool:
        """Apply one relocation; return False if it is not supported."""
        target = self.find(symbol)
        if target is None and (symbol.section or not symbol.name):
            return False
        if kind in _ADDRESSES:
            struct.pack_into("<q", self.content, offset, addend + (target or 0))
            if target is None:
                self.others.append((offset, symbol.name))
            else:
                self.own.append(offset)
            return True
        if kind in _BY_WORD or (kind in _CALLS and target is None):
            jump = _JUMP_X86 if kind < 256 else _JUMP_ARM
            target = self._jump(symbol, jump) + (len(jump) if kind in _BY_WORD else 0)
        if target is None:
            return False
        target += addend
        distance = target - offset
        if kind in _DISTANCES:
            size = _DISTANCES[kind]
            if not -(1 << 8 * size - 1) <= distance < 1 << 8 * size - 1:
                return False
            self.content[offset : offset + size] = distance.to_bytes(size, "little", signed=True)
            return True
        if kind in _BRANCHES and -(1 << 27) <= distance < 1 << 27:
            bits = distance >> 2 & 0x3FFFFFF
        elif kind in _PAGES:
            pages = (target >> 12) - (offset >> 12)
            bits = (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
        elif kind in _LOW_BITS:
            bits = (target & 0xFFF) >> _LOW_BITS[kind] << 10
        else:
            return False
        _add_to(self.content, "<I", offset, bits)
        return True

    def _jump(self, symbol: _Symbol, jump: bytes) -> int:
        """Return the offset of code that jumps to a symbol; the symbol's address follows it."""
        if symbol not in self._jumps:
            self._jumps[symbol] = self.append(jump + bytes(8), 8)
            self.relocate(self._jumps[symbol] + len(jump), _ADDRESSES[0], symbol, 0)
        return self._jumps[symbol]


def _sections(content: bytes) -> list[_Section]:
    (table,) = struct.unpack_from("<Q", content, 0x28)
    size, count, names = struct.unpack_from("<HHH", content, 0x3A)
    rows = [_SECTION.unpack_from(content, table + size * i) for i in range(count)]
    strings = rows[names][4]
    return [
        _Section(_text(content, strings + row[0]), row[1], row[2], *row[4:9]) for row in rows
    ]  # fmt: skip


def _symbols(content: bytes, sections: list[_Section]) -> list[_Symbol]:
    symbols = []
    for section in sections:
        if section.kind != _SYMTAB:
            continue
        strings = sections[section.link].offset
        for position in range(section.offset, section.offset + section.size, _SYMBOL.size):
            name, _, _, section_index, value, _ = _SYMBOL.unpack_from(content, position)
            symbols.append(_Symbol(_text(content, strings + name), section_index, value))
    return symbols


def _text(content: bytes, start: int) -> str:
    return content[start : content.index(b"\0", start)].decode()


def keep_alive_forever(thing: Any) -> None:
    """Keep an object alive even when the interpreter exits, which frees all others."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _release(thing: Any) -> None:
    """Undo `keep_alive_forever`; not called when the interpreter exits."""
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(thing))


def _add_to(block: bytearray | mmap.mmap, format: str, offset: int, number: int) -> None:
    (value,) = struct.unpack_from(format, block, offset)
    struct.pack_into(format, block, offset, (value + number) % (1 << 64))


class Loaded:
    """Executable code, which is freed with this object; it keeps an operator's captured words.

    The memory stays when the interpreter exits: a daemon thread may still run in it. Such a thread
    ends when it asks for the GIL, and the unwinder then reads the code of all its callers.
    """

    def __init__(self, image: Image, words: np.ndarray[Any, Any] | None) -> None:
        self._words = words
        self.function: Callable[[int, int, int, int], int] | None = None  # by which it is called
        if image.entry == OBJECT:
            with loading():
                from gpualgo._cpu import llvm

            symbols = {name: self._address_of(name) for _, name in image.others}
            self._code = llvm.Loaded(image.content, ENTRY, symbols)
            self.address = self._code.address
            return
        size = max(len(image.content), 1)
        memory = mmap.mmap(
            -1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE
        )
        keep_alive_forever(memory)
        weakref.finalize(self, _release, memory).atexit = False
        base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        memory[: len(image.content)] = image.content
        for offset in image.own:
            _add_to(memory, "<Q", offset, base)
        for offset, name in image.others:
            _add_to(memory, "<Q", offset, self._address_of(name))
        if MACHINE == "aarch64":  # its cores do not see by themselves that memory has become code
            clear = ctypes.CDLL("libgcc_s.so.1")["__clear_cache"]
            clear(ctypes.c_void_p(base), ctypes.c_void_p(base + size))
        mprotect, area = ctypes.CDLL(None, use_errno=True).mprotect, ctypes.c_size_t(size)
        if mprotect(ctypes.c_void_p(base), area, mmap.PROT_READ | mmap.PROT_EXEC):
            raise OSError(ctypes.get_errno(), "memory cannot be made executable")
        self.address = base + image.entry

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
