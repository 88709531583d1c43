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
from typing import Any, NamedTuple

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


class Step(NamedTuple):
    """A launch of a kernel: its table, its number of tasks, and code that the table points to."""

    kernel: Kernel
    table: Array
    tasks: int
    held: Any = None


def launch_function(
    steps: Sequence[Step], slots: Sequence[int], inner: Sequence[tuple[int, int]] = ()
) -> Callable[..., int] | None:
    """Return f(scratch, *words): run launches with these words in their tables, return the status.

    Words are ints, or NumPy arrays for their addresses. `slots` are their indices, counted through
    all tables. `inner` are pairs of such an index and the offset of a buffer in scratch memory.
    None if wrappers are not supported or the tables are too long for a stack.
    """
    table = np.concatenate([step.table for step in steps])
    method = _method("launch", OFFSET, _MOST_WORDS) if has_fields else None
    if method is None or len(table) > _MOST_WORDS:
        return None
    head = [len(table), address(table), len(slots), len(inner), len(steps), *slots]
    for pair in inner:
        head += pair
    start = 0
    for kernel, words, tasks, _ in steps:
        code: Any = kernel
        head += [int(code.loaded.address), start, tasks]
        start += len(words)
    block = np.array(head, np.int64)
    self_object = address(block), np.ndarray, block, table, tuple(steps)
    function: Callable[..., int] = _function(method, self_object)
    return function


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
