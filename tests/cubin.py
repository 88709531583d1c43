"""Machine code taken apart: what makes a kernel what it is, and a digest of that."""

from __future__ import annotations

import hashlib
import re
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

NOBITS, SYMTAB, RELA = 8, 2, 4  # kinds of ELF sections
# Of attributes in .nv.info: their form with a size, and those that begin with a symbol's number
# (where parameters lie, registers, stack).
WITH_SIZE, OF_SYMBOLS = 4, (0x0A, 0x11, 0x12, 0x23, 0x2F)

# Sections that make a kernel what it is; the others hold names and debug information.
SECTIONS = (
    ".text.", ".nv.constant", ".nv.shared.", ".nv.global", ".nv.local.", ".nv.info", ".rel",
)  # fmt: skip


class Section(NamedTuple):
    """A section of an ELF file; what link and info mean depends on its kind."""

    name: str
    kind: int
    size: int
    link: int
    info: int
    content: bytes


class Symbol(NamedTuple):
    """What a section holds under a name."""

    name: str
    section: int
    start: int
    size: int


def _text(table: bytes, start: int) -> str:
    return table[start : table.index(b"\0", start)].decode()


def _unnumbered(name: str) -> str:
    """Return a symbol's name without its program's number, which is another in each process."""
    internal = re.match(r"_ZN(\d+)_INTERNAL_", name)
    return name[internal.end(1) + int(internal[1]) :] if internal else name


class Cubin:
    """Machine code, taken apart."""

    def __init__(self, cubin: bytes) -> None:
        (table,) = struct.unpack_from("<Q", cubin, 0x28)
        step, count, names = struct.unpack_from("<3H", cubin, 0x3A)
        headers = [struct.unpack_from("<2I4Q2I", cubin, table + i * step) for i in range(count)]
        self.sections = []
        for name, kind, _, _, offset, size, link, info in headers:
            content = b"" if kind == NOBITS else cubin[offset : offset + size]
            label = _text(cubin, headers[names][4] + name)
            self.sections.append(Section(label, kind, size, link, info, content))
        self.symbols = []
        (held,) = (section for section in self.sections if section.kind == SYMTAB)
        for name, _, _, section, start, size in struct.iter_unpack("<I2BH2Q", held.content):
            label = _unnumbered(_text(self.sections[held.link].content, name))
            self.symbols.append(Symbol(label, section, start, size))
        self.kernel = " ".join(
            each.name.removeprefix(".text.") for each in self.sections if each.name[:6] == ".text."
        )

    def parts(self, reads_addresses: bool) -> Iterator[tuple[Any, ...]]:
        """Return all that makes a kernel what it is.

        NVRTC puts all constants of headers into memory, in the order of the #includes, and their
        addresses into bank 4. They count if instructions read there.
        """
        for index, (name, kind, size, _, info, content) in enumerate(self.sections):
            is_data = name.startswith((".nv.global", ".nv.constant4", ".rela.nv.constant4"))
            if not name.startswith(SECTIONS) or (is_data and not reads_addresses):
                continue
            label = self._plain(name)
            if kind == RELA:
                yield label, *sorted(self._relocations(content))
            elif name.startswith(".nv.global"):
                yield label, *sorted(self._held(index))
            elif name.startswith(".nv.info"):
                yield label, *self._attributes(content)
            else:  # the upper bits of a kernel's info are its registers, the lower ones a number
                yield label, size, info >> 24, content.hex()

    def _attributes(self, content: bytes) -> Iterator[tuple[Any, ...]]:
        """Return what is said of a kernel, with symbols by their names."""
        at = 0
        while at < len(content):
            form, attribute, value = struct.unpack_from("<2BH", content, at)
            at += 4
            held = content[at : at + value] if form == WITH_SIZE else b""
            at += len(held)
            symbol = ""
            if held and attribute in OF_SYMBOLS:
                symbol = self._plain(self.symbols[struct.unpack_from("<I", held)[0]].name)
                held = held[4:]
            yield form, attribute, value, symbol, held.hex()

    def _plain(self, name: str) -> str:
        """Return a name without the kernel's, which holds the types of its parameters."""
        return name.replace(self.kernel, "kernel")

    def _relocations(self, content: bytes) -> Iterator[tuple[Any, ...]]:
        for offset, info, addend in struct.iter_unpack("<2Qq", content):
            name = self._plain(self.symbols[info >> 32].name)
            yield offset, info & 0xFFFFFFFF, name, addend

    def _held(self, index: int) -> Iterator[tuple[Any, ...]]:
        content = self.sections[index].content
        for name, section, start, size in self.symbols:
            if section == index:
                yield name, size, content[start : start + size].hex()

    def places_data(self) -> bool:
        """Return whether instructions hold addresses of data themselves."""
        data = {i for i, each in enumerate(self.sections) if each.name.startswith(".nv.global")}
        return any(
            self.symbols[info >> 32].section in data
            for section in self.sections
            if section.kind == RELA and section.name.startswith(".rela.text.")
            for _, info, _ in struct.iter_unpack("<2Qq", section.content)
        )


def digest_of(code: bytes) -> str:
    """Return a digest of a cubin's kernel."""
    from cuda.pathfinder import find_nvidia_binary_utility

    cubin = Cubin(code)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(code)
        tool = find_nvidia_binary_utility("cuobjdump")
        command = [str(tool), "-sass", str(path)]
        sass = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "EXIT" in sass, f"no instructions of {cubin.kernel}"
    reads_addresses = "c[0x4]" in sass or cubin.places_data()
    return hashlib.sha256(repr(sorted(cubin.parts(reads_addresses))).encode()).hexdigest()
