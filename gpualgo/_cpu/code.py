"""Machine code of a kernel, as stored on disk and as loaded into memory."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from gpualgo._base.imports import loading
from gpualgo._cpu import image

ENTRY = "gpualgo_entry"
"""Symbol of a kernel: `int32 gpualgo_entry(int64...)` returns 0 unless an operator raised."""

WORDS = "gpualgo_words_"
"""Prefix of the symbol of an operator's captured words; the operator's digest follows."""

_OBJECT, _IMAGE = b"object", b"image"


class Code(NamedTuple):
    """Machine code and the names of the symbols that it needs."""

    kind: bytes
    fields: tuple[bytes, ...]


def of_object(content: bytes, needed: list[str]) -> Code:
    """Return the code of an object file; `needed` names its undefined symbols."""
    block = image.link(content, ENTRY)
    if block is not None:
        return Code(_IMAGE, image.encode(block))
    return Code(_OBJECT, ("\n".join(needed).encode(), content))


def encode(code: Code) -> tuple[bytes, ...]:
    """Return the fields of a cache file."""
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
            block = image.Loaded(image.decode(code.fields), self._address_of)
            self._code: Any = block
        else:
            with loading:
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
    """Return the address of a symbol that numba registers with LLVM."""
    with loading:
        import numba.core.registry

        from gpualgo._cpu import llvm

    _ = numba.core.registry.cpu_target.target_context  # registers the symbols
    return llvm.address_of(name)
