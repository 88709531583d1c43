"""Compiled kernels in memory and on disk: one build per key, whichever threads ask for it.

A kernel is a C function of words. What is compiled for one is written to the disk cache as machine
code, so that the next process needs no compiler; see docs/adr/0012-cpu-code-on-disk.md.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from gpualgo._base import dtypes, log, records
from gpualgo._base.collecting import paused
from gpualgo._base.imports import loading
from gpualgo._base.memo import Memo
from gpualgo._base.records import Apart, Argument
from gpualgo._cpu import code as machine
from gpualgo._cpu import host
from gpualgo._cpu.address import address
from gpualgo._cpu.operator import Applied, compile_operator
from gpualgo._operators import recompiled
from gpualgo._operators.operator import Operator

Kernel = Callable[[int, int, int, int], None]
"""kernel(table, scratch, first, last): addresses of arguments and scratch, a range of tasks."""

Write = Callable[..., Callable[..., None]]
"""Returns a kernel's Python source function; given the function to call, if it has an operator."""

_kernels: Memo[Any] = Memo(1024)
_functions: Memo[machine.Loaded] = Memo(256)
_entries: Memo[machine.Loaded] = Memo(256)
_shells: Memo[bytes] = Memo(64)
_held: list[machine.Loaded] = []  # an address outlives its entry


def get_kernel(key: tuple[Hashable, ...], write: Write, applied: Applied | None = None) -> Kernel:
    """Return the compiled kernel of key; write() makes its Python source function.

    The key holds strings, numbers and dtypes, and all that write() depends on but the operator.
    """
    found: Kernel = _kernels.made(
        _memory_key(key, applied), lambda: _callable(_load(key, write, applied))
    )
    return found


def get_code(
    key: tuple[Hashable, ...], write: Write, applied: Applied | None = None
) -> machine.Loaded:
    """Return key's C function of words, for other kernels to call while it is held."""
    return _functions.made(_memory_key(key, applied), lambda: _load(key, write, applied))


def get_entry(key: tuple[Hashable, ...], write: Write) -> int:
    """Return the address of key's C function of words, for other kernels to call at any time."""

    def make() -> machine.Loaded:
        loaded = _load(key, write, None)
        _held.append(loaded)
        return loaded

    return _entries.made(key, make).address


def _memory_key(key: tuple[Hashable, ...], applied: Applied | None) -> tuple[Hashable, ...]:
    return (key, applied.key) if applied is not None else key


def _callable(loaded: machine.Loaded) -> Kernel:
    kernel: Any = _PROTOTYPE(loaded.address)
    kernel.errcheck = check
    kernel.loaded = loaded  # the code lives as long as who calls it
    called: Kernel = kernel
    return called


# Runs without the GIL. All are words; ctypes converts them fastest as pointers.
_PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)


def by_ctypes(address: int) -> Callable[[int, int, int, int], int]:
    """Return what calls the kernel at an address, and returns its status."""
    return _PROTOTYPE(address)


def check(status: int | None, *_: Any) -> None:
    """Raise unless a kernel's status is 0."""
    if status:
        raise RuntimeError("op raised an error while it ran, which a kernel has nobody to tell")


def _load(key: tuple[Hashable, ...], write: Write, applied: Applied | None) -> machine.Loaded:
    """Return a kernel's code from disk, else compile it and keep it there."""
    parts = "kernel", plain(key), *(() if applied is None else applied.parts)
    if applied is not None:
        recompiled.noted(applied.op)
    words = None if applied is None else applied.words
    found = machine.decode(host.read(*parts))
    if found is not None:
        with contextlib.suppress(RuntimeError):  # it needs what numba had and has no more
            loaded = machine.Loaded(found, words)
            log.tell(log.INFO, "found on disk: CPU kernel %s%s", parts[1], _of(applied))
            return loaded
    with paused, log.making("compiled CPU kernel %s%s", parts[1], _of(applied)):
        made = _compile(key, write, applied)
    loaded = machine.Loaded(made, words)
    host.write(machine.encode(made), *parts)
    return loaded


def _of(applied: Applied | None) -> str:
    return "" if applied is None else f" of {recompiled.place_of(applied.op.shown)}"


def _compile(key: tuple[Hashable, ...], write: Write, applied: Applied | None) -> machine.Code:
    operator = None if applied is None else compile_operator(*applied)  # which may be refused
    with loading:
        from gpualgo._cpu import compile_kernel as compiler

    if applied is None or operator is None:
        return compiler.linked(compiler.shell_of(write()), None)
    args, result = applied.arguments, operator.result_dtype
    shell = _shells.made((key, args, result), lambda: _shell(key, write, args, result))
    return compiler.linked(shell, operator.bitcode)


def _shell(
    key: tuple[Hashable, ...], write: Write, arg_dtypes: tuple[Argument, ...],
    result_dtype: np.dtype[Any],
) -> bytes:  # fmt: skip
    """Return the bitcode of a kernel without its operator, from disk if it is there."""
    from gpualgo._cpu import compile_kernel as compiler

    parts = "shell", plain(key), plain((*arg_dtypes, result_dtype))
    entry = host.read(*parts)
    if entry is not None and len(entry) == 1:
        return entry[0]
    shell = compiler.shell_of(write(compiler.operator_call(arg_dtypes, result_dtype)))
    host.write((shell,), *parts)
    return shell


def plain(value: Hashable) -> str:
    """Return what a key holds as text that is the same in every process."""
    if isinstance(value, Apart):
        return records.label(value)
    if isinstance(value, np.dtype):
        is_known = value.names is not None or dtypes.name_of(value) is not None
        return records.label(value) if is_known else value.str
    if isinstance(value, tuple):
        return "(" + ",".join(map(plain, value)) + ")"
    if value is None or type(value) in (str, int, bool):
        return repr(value)
    raise TypeError(f"a kernel's key holds {value!r}, which other processes cannot compare")


def scratch(num_bytes: int) -> np.ndarray[Any, Any]:
    """Return scratch memory for one range of tasks, on a cache line's boundary."""
    memory = np.empty(num_bytes + 64, np.uint8)
    start = -address(memory) % 64
    return memory[start : start + num_bytes]


def computing(
    op: Operator, source: records.Computed, acc: np.dtype[Any], capacity: int
) -> machine.Loaded:
    """Return the code of f(slots, memory, count): so many elements, of the numbers in slots.

    They are put into memory for `capacity` of them, converted to acc, and slots then hold where.
    """
    numbers = tuple(map(records.number_of, source.numbers))

    def write(fn: Any) -> Any:
        from gpualgo._cpu.computing import compute_kernel

        return compute_kernel(fn, numbers, source.result, acc, capacity)

    applied = Applied(op, numbers, source.result)
    return get_code(("computing", numbers, source.result, acc, capacity), write, applied)
