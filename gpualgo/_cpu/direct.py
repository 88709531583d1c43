"""Kernels as functions of CPython's own kind, which it calls in a tenth of the time of ctypes.

For each argument ctypes takes 45 ns, and as long again for the call. What stands between the
interpreter and a kernel here is compiled and kept as kernels are (`direct_kernels`).
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from gpualgo._base import log
from gpualgo._cpu.address import OFFSET, address, has_fields
from gpualgo._cpu.image import kept_for_good
from gpualgo._cpu.kernels import Kernel, by_ctypes, get_code

_METH_FASTCALL = 0x80
_MOST_WORDS = 512  # of a table on a stack
_IS_KNOWN = sys.implementation.name == "cpython" and struct.calcsize("P") == 8

Array = np.ndarray[Any, Any]


class _Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("code", ctypes.c_void_p), ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )  # fmt: skip


def unchecked(kernel: Kernel) -> Callable[[int, int, int, int], int]:
    """Return what calls a kernel's code, and returns its status; hold the kernel meanwhile."""
    code: Any = kernel
    at, method = int(code.loaded.address), _method("call")
    found: Callable[[int, int, int, int], int] = (
        by_ctypes(at) if method is None else _function(method, at)
    )
    return found


def of_rows(kernel: Kernel) -> Callable[[Any, Any], int]:
    """Return f(keys, row): the status of kernel(address of keys, of row, length, 0).

    Both are NumPy's, of one axis. The interpreter's lock is held meanwhile.
    """
    method = _method("rows", OFFSET) if has_fields else None
    if method is None:
        run = unchecked(kernel)
        return lambda keys, row: run(address(keys), address(row), len(row), 0)
    code: Any = kernel
    found: Callable[[Any, Any], int] = _function(method, int(code.loaded.address))
    return found


def launcher(
    kernel: Kernel, table: Array, places: Sequence[int], tasks: int
) -> Callable[..., int] | None:
    """Return f(scratch, *words): the status of a kernel for a table with these words in places.

    Words are ints, or NumPy's arrays, whose addresses they are then. None: there is no such way, or
    the table is too long for a stack.
    """
    if not has_fields or len(table) > _MOST_WORDS:
        return None
    method = _method("launch", OFFSET, _MOST_WORDS)
    if method is None:
        return None
    code: Any = kernel
    head = [int(code.loaded.address), tasks, len(table), address(table), len(places), *places]
    block = np.array(head, np.int64)
    held = address(block), np.ndarray, block, table, kernel
    found: Callable[..., int] = _function(method, held)
    return found


def folder(
    kernel: Kernel, table: Array, places: Sequence[int], tile: int, most: int, partials: int
) -> Callable[[int, Any, Any, int], int] | None:
    """Return f(scratch, out, row, init): the status of a kernel that folds tiles of a row.

    `places`: where in its table init, the length, the number of tiles, the source and the target
    are; `tile`: how many elements are folded to one, of which a row leaves `most` at most;
    `partials`: where in scratch memory these lie. Status 2: the row is empty, or too long. The
    interpreter's lock is held meanwhile. None: there is no such way.
    """
    method = _method("fold", OFFSET, _MOST_WORDS) if has_fields else None
    if method is None or len(table) > _MOST_WORDS:
        return None
    code: Any = kernel
    entry = int(code.loaded.address)
    block = np.array((entry, tile, most, partials, len(table), address(table), *places), np.int64)
    held = address(block), block, table, kernel
    found: Callable[[int, Any, Any, int], int] = _function(method, held)
    return found


def look_up(table: dict[np.dtype[Any], Any], most: int, *others: Any) -> Callable[..., Any]:
    """Return f(x, *others): what the table has for the dtype of a short row, False for all else.

    A row is an array of NumPy's own class with one axis, aligned and without gaps, of fewer than
    `most` elements. Further arguments are to be these very objects.
    """
    method = _method("look", OFFSET, most, len(others)) if has_fields else None
    if method is not None:
        found: Callable[..., Any] = _function(method, (np.ndarray, table, *others))
        return found

    def look(x: Any, *given: Any) -> Any:
        if type(x) is not np.ndarray or x.ndim != 1 or len(x) >= most:
            return False
        if any(one is not other for one, other in zip(given, others, strict=True)):
            return False
        flags = x.flags
        return flags.c_contiguous and flags.aligned and table.get(x.dtype, False)

    return look


def _function(method: int, held: Any) -> Any:
    """Return the function of a description; `held` is its `self`."""
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
    return make(method, held, None)


@cache
def _method(name: str, *options: int) -> int | None:
    """Return where the description of a function is."""
    if not _IS_KNOWN:
        return None

    def write() -> Callable[..., Any]:
        from gpualgo._cpu import direct_kernels

        written: Callable[..., Any] = getattr(direct_kernels, f"{name}_kernel")(*options)
        return written

    try:
        loaded = get_code(("direct", name, *options), write)
    except RuntimeError as error:  # this process has a function less than the stable ABI
        log.tell(log.INFO, "kernels are called by ctypes: %s", error)
        return None
    method = _Method(name.encode(), loaded.address, _METH_FASTCALL, None)
    kept_for_good((loaded, method))  # functions read it when they are let go of, however late
    return ctypes.addressof(method)
