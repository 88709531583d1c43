"""Kernels by which threads share the tasks of another one without the interpreter.

A job lies in memory that all of a team see. It is open while SEQUENCE is odd. Who enters adds
itself to INSIDE first and looks at SEQUENCE then; the leader closes the job first and looks at
INSIDE then. All of that is sequentially consistent, so that one of both sees the other: when the
leader has seen nobody inside, nobody reads the job any longer, nor runs its kernel.
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


def _at(builder: Any, job: Any, place: Any) -> Any:
    return builder.gep(builder.inttoptr(job, _WORD.as_pointer()), [place])


def _read(_typing: Any, job: Any, place: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.load_atomic(_at(builder, *args), _ORDER, 8)

    return types.intp(types.intp, types.intp), generate


def _write(_typing: Any, job: Any, place: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        builder.store_atomic(args[2], _at(builder, *args[:2]), _ORDER, 8)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp), generate


def _add(_typing: Any, job: Any, place: Any, value: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _at(builder, *args[:2]), args[2], _ORDER)

    return types.intp(types.intp, types.intp, types.intp), generate


def _pause(_typing: Any) -> Any:
    """Let the other thread of this core work, if there is one."""

    def generate(context: Any, builder: Any, _signature: Any, _args: Any) -> Any:
        name, values = _PAUSES.get(platform.machine().lower(), ("", ()))
        if name:
            given = [ir.Constant(ir.IntType(32), value) for value in values]
            kind = ir.FunctionType(ir.VoidType(), [value.type for value in given])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, name), given)
        return context.get_dummy_value()

    return types.void(), generate


def _status(_typing: Any, function: Any, args: Any) -> Any:
    """Call a kernel by its address; return what it returns, 0 if it raised nothing."""

    def generate(_context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [_WORD] * len(signature.args[1]))
        target = builder.inttoptr(values[0], kind.as_pointer())
        given = [builder.extract_value(values[1], i) for i in range(len(kind.args))]
        return builder.sext(builder.call(target, given), _WORD)

    return types.intp(types.intp, types.UniTuple(types.intp, len(args))), generate


def _give_way(_typing: Any, function: Any) -> Any:
    """Call a C function of no arguments by its address."""

    def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [])
        builder.call(builder.inttoptr(values[0], kind.as_pointer()), [])
        return context.get_dummy_value()

    return types.void(types.intp), generate


def _inline(function: Callable[..., None]) -> Any:
    """Compile what kernels call, when they are."""
    return numba.njit(error_model="numpy")(function)


read, write, add = map(intrinsic, (_read, _write, _add))
pause, status, give_way = map(intrinsic, (_pause, _status, _give_way))


@_inline
def _share(job: int, scratch: int) -> None:
    """Run pieces of the job until none is left, or one has failed."""
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
    """Open the job, share it, close it, and wait until nobody is inside.

    No signal's handler ends that: who is inside uses what the caller lends. After so many looks
    the thread gives way at each, by the function at `yields`: a member's core may be its own.
    """
    now = read(job, JOB_SEQUENCE)
    write(job, JOB_SEQUENCE, now + 1)
    _share(job, scratch)
    write(job, JOB_SEQUENCE, now + 2)
    left = spins
    while read(job, JOB_INSIDE) != 0:
        if left > 0 or yields == 0:
            pause()
            left -= 1
        else:
            give_way(yields)


def serve(job: int, scratch: int, number: int, spins: int) -> None:
    """Share jobs as member `number`, until none has come for so many looks."""
    seen, left = 0, spins
    while left > 0 and read(job, JOB_STOPPED) == 0:
        now = read(job, JOB_SEQUENCE)
        if now % 2 == 0 or now == seen:
            pause()
            left -= 1
            continue
        seen = now
        if number >= read(job, JOB_MEMBERS):  # this may be another job's by now: then not at all
            continue
        add(job, JOB_INSIDE, 1)
        if read(job, JOB_SEQUENCE) == now:
            _share(job, scratch)
            left = spins
        add(job, JOB_INSIDE, -1)
