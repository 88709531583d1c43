"""Kernels by which threads share another thread's tasks without the GIL.

The job is in memory shared by the team. It is open while SEQUENCE is odd. A member first adds
itself to INSIDE and then reads SEQUENCE; the leader first closes the job and then reads INSIDE.
These accesses are sequentially consistent, so one of the two sees the other: once the leader reads
0 in INSIDE, no member reads the job or runs its kernel.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from gpualgo._cpu.parameters import (
    JOB_ENTRY,
    JOB_FAILED,
    JOB_INSIDE,
    JOB_MEMBERS,
    JOB_NEXT,
    JOB_PIECE,
    JOB_SEQUENCE,
    JOB_STOPPED,
    JOB_TABLE,
    JOB_TASKS,
)

_WORD = ir.IntType(64)
_ORDER = "seq_cst"
_X86, _ARM = ("llvm.x86.sse2.pause", ()), ("llvm.aarch64.hint", (1,))
_PAUSES = {"x86_64": _X86, "amd64": _X86, "aarch64": _ARM, "arm64": _ARM}


def _pointer_to_word(builder: Any, job: Any, index: Any) -> Any:
    return builder.gep(builder.inttoptr(job, _WORD.as_pointer()), [index])


def _read(_typing: Any, job: Any, index: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.load_atomic(_pointer_to_word(builder, *args), _ORDER, 8)

    return types.intp(types.intp, types.intp), generate


def _write(_typing: Any, job: Any, index: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        builder.store_atomic(args[2], _pointer_to_word(builder, *args[:2]), _ORDER, 8)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp), generate


def _add(_typing: Any, job: Any, index: Any, value: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _pointer_to_word(builder, *args[:2]), args[2], _ORDER)

    return types.intp(types.intp, types.intp, types.intp), generate


def _pause(_typing: Any) -> Any:
    """Let the other hardware thread of this core run."""

    def generate(context: Any, builder: Any, _signature: Any, _args: Any) -> Any:
        name, values = _PAUSES.get(platform.machine().lower(), ("", ()))
        if name:
            operands = [ir.Constant(ir.IntType(32), value) for value in values]
            kind = ir.FunctionType(ir.VoidType(), [value.type for value in operands])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, name), operands)
        return context.get_dummy_value()

    return types.void(), generate


def _status(_typing: Any, function: Any, args: Any) -> Any:
    """Call a kernel by its address and return its status."""

    def generate(_context: Any, builder: Any, signature: Any, values: Any) -> Any:
        function_type = ir.FunctionType(ir.IntType(32), [_WORD] * len(signature.args[1]))
        target = builder.inttoptr(values[0], function_type.as_pointer())
        words = [builder.extract_value(values[1], i) for i in range(len(function_type.args))]
        return builder.sext(builder.call(target, words), _WORD)

    return types.intp(types.intp, types.UniTuple(types.intp, len(args))), generate


def _call_yield(_typing: Any, function: Any) -> Any:
    """Call a C function without arguments by its address."""

    def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        function_type = ir.FunctionType(ir.IntType(32), [])
        builder.call(builder.inttoptr(values[0], function_type.as_pointer()), [])
        return context.get_dummy_value()

    return types.void(types.intp), generate


def _inline(function: Callable[..., None]) -> Any:
    """Compile a function together with the kernels that call it."""
    return numba.njit(error_model="numpy")(function)


read, write, add = map(intrinsic, (_read, _write, _add))
pause, status, give_way = map(intrinsic, (_pause, _status, _call_yield))


@_inline
def _share(job: int, scratch: int) -> None:
    """Run pieces of the job until none is left or one has failed."""
    tasks, piece = read(job, JOB_TASKS), read(job, JOB_PIECE)
    while True:
        first = add(job, JOB_NEXT, piece)
        if first >= tasks:
            return
        args = (read(job, JOB_TABLE), scratch, first, min(first + piece, tasks))
        if status(read(job, JOB_ENTRY), args) != 0:
            write(job, JOB_FAILED, 1)
            write(job, JOB_NEXT, tasks)
            return


def lead(job: int, scratch: int, spins: int, yields: int) -> None:
    """Open the job, share it, close it, and wait until no member is inside.

    No signal handler interrupts this: members use the caller's memory. After `spins` polls the
    thread calls the function at `yields` between polls: it may occupy a member's core.
    """
    sequence = read(job, JOB_SEQUENCE)
    write(job, JOB_SEQUENCE, sequence + 1)
    _share(job, scratch)
    write(job, JOB_SEQUENCE, sequence + 2)
    remaining = spins
    while read(job, JOB_INSIDE) != 0:
        if remaining > 0 or yields == 0:
            pause()
            remaining -= 1
        else:
            give_way(yields)


def serve(job: int, scratch: int, number: int, spins: int) -> None:
    """Share jobs as member `number`, until none has come for so many polls."""
    last_sequence, remaining = 0, spins
    while remaining > 0 and read(job, JOB_STOPPED) == 0:
        sequence = read(job, JOB_SEQUENCE)
        if sequence % 2 == 0 or sequence == last_sequence:
            pause()
            remaining -= 1
            continue
        last_sequence = sequence
        if number >= read(job, JOB_MEMBERS):  # if a new job has begun, this may skip it
            continue
        add(job, JOB_INSIDE, 1)
        if read(job, JOB_SEQUENCE) == sequence:
            _share(job, scratch)
            remaining = spins
        add(job, JOB_INSIDE, -1)
