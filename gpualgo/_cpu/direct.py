"""Kernels wrapped as built-in functions of CPython, which calls them ten times as fast as ctypes.

ctypes takes 45 ns for each argument and as long again for the call. The wrappers (`direct_kernels`)
are compiled and cached as kernels are.
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
from gpualgo._cpu.image import keep_alive_forever
from gpualgo._cpu.kernels import Kernel, by_ctypes, get_code
from gpualgo._cpu.memory import OFFSET, address, has_fields

_METH_FASTCALL = 0x80
_MOST_WORDS = 512  # of a table that is copied to the stack
_IS_SUPPORTED = sys.implementation.name == "cpython" and struct.calcsize("P") == 8

Array = np.ndarray[Any, Any]


class _Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("code", ctypes.c_void_p), ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )  # fmt: skip


def status_function(kernel: Kernel) -> Callable[[int, int, int, int], int]:
    """Return a function that calls a kernel and returns its status. It does not hold it."""
    code: Any = kernel
    entry, method = int(code.loaded.address), _method("call")
    function: Callable[[int, int, int, int], int] = (
        by_ctypes(entry) if method is None else _function(method, entry)
    )
    return function


def row_function(kernel: Kernel) -> Callable[[Any, Any], int]:
    """Return f(keys, row): the status of kernel(address of keys, of row, length of row, 0).

    Both are one-dimensional NumPy arrays. The function holds the GIL.
    """
    method = _method("rows", OFFSET) if has_fields else None
    if method is None:
        run = status_function(kernel)
        return lambda keys, row: run(address(keys), address(row), len(row), 0)
    code: Any = kernel
    function: Callable[[Any, Any], int] = _function(method, int(code.loaded.address))
    return function


def launch_function(
    kernel: Kernel, table: Array, places: Sequence[int], tasks: int
) -> Callable[..., int] | None:
    """Return f(scratch, *words): run a kernel with these words in its table, return its status.

    Words are ints, or NumPy arrays for their addresses; `places` are their indices in the table.
    None if wrappers are not supported or the table is too long for a stack.
    """
    if not has_fields or len(table) > _MOST_WORDS:
        return None
    method = _method("launch", OFFSET, _MOST_WORDS)
    if method is None:
        return None
    code: Any = kernel
    head = [int(code.loaded.address), tasks, len(table), address(table), len(places), *places]
    block = np.array(head, np.int64)
    self_object = address(block), np.ndarray, block, table, kernel
    function: Callable[..., int] = _function(method, self_object)
    return function


def fold_function(
    kernel: Kernel, table: Array, places: Sequence[int], tile: int, most: int, partials: int
) -> Callable[[int, Any, Any, int], int] | None:
    """Return f(scratch, out, row, init): fold tiles of a row by a kernel, return its status.

    `places`: indices in the kernel's table of init, the length, the number of tiles, the source and
    the target. `tile`: elements in a tile. `most`: the maximum number of tiles in a row.
    `partials`: offset of the tiles' results in scratch memory. Status 2: the row is empty or too
    long. The function holds the GIL. None if wrappers are not supported.
    """
    method = _method("fold", OFFSET, _MOST_WORDS) if has_fields else None
    if method is None or len(table) > _MOST_WORDS:
        return None
    code: Any = kernel
    entry = int(code.loaded.address)
    block = np.array((entry, tile, most, partials, len(table), address(table), *places), np.int64)
    self_object = address(block), block, table, kernel
    function: Callable[[int, Any, Any, int], int] = _function(method, self_object)
    return function


def short_row_lookup(
    table: dict[np.dtype[Any], Any], most: int, *others: Any
) -> Callable[..., Any]:
    """Return f(x, *others): the table's entry for the dtype of a short row x, False for all else.

    A short row is an np.ndarray (no subclass) with one axis, aligned, contiguous, of fewer than
    `most` elements. Further arguments must be the very objects in `others`.
    """
    method = _method("look", OFFSET, most, len(others)) if has_fields else None
    if method is not None:
        function: Callable[..., Any] = _function(method, (np.ndarray, table, *others))
        return function

    def look(x: Any, *args: Any) -> Any:
        if type(x) is not np.ndarray or x.ndim != 1 or len(x) >= most:
            return False
        if any(argument is not expected for argument, expected in zip(args, others, strict=True)):
            return False
        flags = x.flags
        return flags.c_contiguous and flags.aligned and table.get(x.dtype, False)

    return look


def _function(method: int, self_object: Any) -> Any:
    """Return the built-in function of a PyMethodDef with this `self`."""
    new_function = ctypes.pythonapi.PyCFunction_NewEx
    new_function.restype = ctypes.py_object
    new_function.argtypes = ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
    return new_function(method, self_object, None)


@cache
def _method(name: str, *options: int) -> int | None:
    """Return the address of a wrapper's PyMethodDef, None if wrappers are not supported."""
    if not _IS_SUPPORTED:
        return None

    def write() -> Callable[..., Any]:
        from gpualgo._cpu import direct_kernels

        source: Callable[..., Any] = getattr(direct_kernels, f"{name}_kernel")(*options)
        return source

    try:
        loaded = get_code(("direct", name, *options), write)
    except RuntimeError as error:  # the process lacks a function of the stable ABI
        log.log(log.INFO, "kernels are called through ctypes, which is slower: %s", error)
        return None
    method = _Method(name.encode(), loaded.address, _METH_FASTCALL, None)
    keep_alive_forever((loaded, method))  # functions read it when they are freed, even at exit
    return ctypes.addressof(method)
