"""Sources of built-in functions that call kernels: `PyObject *f(PyObject *self, PyObject **, n)`.

They use only the interpreter's stable ABI. An object is a word here: its address.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from gpualgo._cpu import plan as at
from gpualgo._cpu.compiler import cast
from gpualgo._cpu.fields import access_by_index, field_offsets
from gpualgo._cpu.packing import (
    copy_bytes,
    inline,
    instruction,
    load,
    load_each,
    pointer_to,
    pointers_to,
    stack,
    status,
    storage,
    store,
)

_WORD = ir.IntType(64)
_words = pointer_to(types.intp)

_to_int = types.ExternalFunction("PyLong_AsLongLong", types.intp(types.intp))
_to_object = types.ExternalFunction("PyLong_FromLongLong", types.intp(types.intp))
_release_gil = types.ExternalFunction("PyEval_SaveThread", types.intp())
_acquire_gil = types.ExternalFunction("PyEval_RestoreThread", types.void(types.intp))
_tuple_item = types.ExternalFunction("PyTuple_GetItem", types.intp(types.intp, types.intp))


def call_kernel(kernel: int, args: int, _count: int) -> int:
    """f(four ints): return the status of the kernel at `self`, which runs without the GIL."""
    argv = _words(args)
    code, table, scratch = _to_int(kernel), _to_int(load(argv, 0)), _to_int(load(argv, 1))
    first, last = _to_int(load(argv, 2)), _to_int(load(argv, 3))
    thread = _release_gil()
    result = status(code, (table, scratch, first, last))
    _acquire_gil(thread)
    return _to_object(result)  # type: ignore[no-any-return]


def launch_kernel(offset: int, most_words: int) -> Callable[[int, int, int], int]:
    """Return the source of f(scratch, *words): launch with these words in the slots of the tables.

    `self` is (address of a LAUNCH_... record, numpy.ndarray). A word is an int, or an array for its
    address. The tables are the call's own copy; the kernels run without the GIL. Returns the first
    status that is not 0.
    """
    words = stack(most_words)

    def call(self_object: int, args: int, count: int) -> int:
        block, array_type = _tuple_item(self_object, 0), _tuple_item(self_object, 1)
        int_type, argv = load(_words(block + offset), -1), _words(args)
        head, table = _words(_to_int(block)), words()
        if count != 1 + load(head, at.LAUNCH_NUM_SLOTS):
            return _to_object(2)  # type: ignore[no-any-return]
        copy_bytes(table, load(head, at.LAUNCH_TABLE), 8 * load(head, at.LAUNCH_WORDS))
        for i in range(count - 1):
            word = load(argv, 1 + i)
            fields, index = _words(word + offset), load(head, at.LAUNCH_SLOTS + i)
            if load(fields, -1) == int_type:
                store(_words(table), index, _to_int(word))
            elif load(fields, -1) == array_type:
                store(_words(table), index, load(fields, 0))
            else:
                return _to_object(2)  # type: ignore[no-any-return]
        scratch, place = _to_int(load(argv, 0)), at.LAUNCH_SLOTS + count - 1
        for _ in range(load(head, at.LAUNCH_NUM_INNER)):
            store(_words(table), load(head, place), scratch + load(head, place + 1))
            place += 2
        thread, result = _release_gil(), 0
        for _ in range(load(head, at.LAUNCH_NUM_STEPS)):
            if result == 0:
                code, start, tasks = load(head, place), load(head, place + 1), load(head, place + 2)
                result = status(code, (table + 8 * start, scratch, 0, tasks))
            place += 3
        _acquire_gil(thread)
        return _to_object(result)  # type: ignore[no-any-return]

    return call


# --- Kernels that convert numbers, and that compute elements and write them to scratch memory.


def convert_kernel(source: np.dtype[Any], target: np.dtype[Any]) -> Callable[..., None]:
    """Return the source of `layout.converter`'s function."""
    as_source, as_target = pointer_to(storage(source)), pointer_to(storage(target))
    convert = cast(source, target)

    def convert_all(converted: int, numbers: int, count: int) -> None:
        for i in range(count):
            store(as_target(converted), i, convert(load(as_source(numbers), i)))

    return convert_all


def compute_kernel(
    fn: Any, numbers: tuple[np.dtype[Any], ...], result: np.dtype[Any], acc: np.dtype[Any],
    capacity: int,
) -> Callable[..., None]:  # fmt: skip
    """Return the source of f(slots, memory, count), which writes elements of acc to memory."""
    sources = pointers_to(tuple(map(storage, numbers)), tuple(range(len(numbers))))
    count, _, _, apart, _, put = access_by_index(acc)
    offsets = tuple(capacity * size for size in field_offsets(acc))
    convert = cast(result, acc)

    def compute(slots: int, memory: int, length: int) -> None:
        inputs, outputs = sources(slots), apart(memory, capacity)
        for i in range(length):
            put(outputs, i, convert(fn(*load_each(inputs, i))))
        for k in range(count):
            store(_words(slots), k, memory + offsets[k])

    return compute


# --- Kernel that copies memory: each task copies one piece.


def copy_pieces(table: int, scratch: int, first: int, last: int) -> None:
    """Copy the pieces of some tasks, which are contiguous, at once."""
    p = _words(table)
    start, end = first * load(p, at.PIECE), min(last * load(p, at.PIECE), load(p, at.SIZE_OF_ALL))
    copy_bytes(load(p, at.TARGET) + start, load(p, at.SOURCE) + start, end - start)


# --- Kernels by which threads share another thread's tasks without the GIL.
#
# The job is in memory shared by the team. It is open while SEQUENCE is odd. A member first
# adds itself to INSIDE and then reads SEQUENCE; the leader first closes the job and then
# reads INSIDE. These accesses are sequentially consistent, so one of the two sees the other:
# once the leader reads 0 in INSIDE, no member reads the job or runs its kernel.

_ORDER = "seq_cst"
_X86, _ARM = ("llvm.x86.sse2.pause", ()), ("llvm.aarch64.hint", (1,))
_PAUSES = {"x86_64": _X86, "amd64": _X86, "aarch64": _ARM, "arm64": _ARM}


def _pointer_to_word(builder: Any, job: Any, index: Any) -> Any:
    return builder.gep(builder.inttoptr(job, _WORD.as_pointer()), [index])


@instruction(types.intp, types.intp, types.intp)
def read(_context: Any, builder: Any, *place: Any) -> Any:
    return builder.load_atomic(_pointer_to_word(builder, *place), _ORDER, 8)


@instruction(types.void, types.intp, types.intp, types.intp)
def write(_context: Any, builder: Any, job: Any, index: Any, value: Any) -> None:
    builder.store_atomic(value, _pointer_to_word(builder, job, index), _ORDER, 8)


@instruction(types.intp, types.intp, types.intp, types.intp)
def add(_context: Any, builder: Any, job: Any, index: Any, value: Any) -> Any:
    return builder.atomic_rmw("add", _pointer_to_word(builder, job, index), value, _ORDER)


@instruction(types.void)
def pause(_context: Any, builder: Any) -> None:
    """Let the other hardware thread of this core run."""
    name, values = _PAUSES.get(platform.machine().lower(), ("", ()))
    if name:
        operands = [ir.Constant(ir.IntType(32), value) for value in values]
        kind = ir.FunctionType(ir.VoidType(), [value.type for value in operands])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, name), operands)


@instruction(types.void, types.intp)
def give_way(_context: Any, builder: Any, function: Any) -> None:
    """Call a C function without arguments by its address."""
    function_type = ir.FunctionType(ir.IntType(32), [])
    builder.call(builder.inttoptr(function, function_type.as_pointer()), [])


@inline
def _share(job: int, scratch: int) -> None:
    """Run pieces of the job until none is left or one has failed."""
    tasks, piece = read(job, at.JOB_TASKS), read(job, at.JOB_PIECE)
    while True:
        first = add(job, at.JOB_NEXT, piece)
        if first >= tasks:
            return
        args = (read(job, at.JOB_TABLE), scratch, first, min(first + piece, tasks))
        if status(read(job, at.JOB_ENTRY), args) != 0:
            write(job, at.JOB_FAILED, 1)
            write(job, at.JOB_NEXT, tasks)
            return


def lead(job: int, scratch: int, spins: int, yields: int) -> None:
    """Open the job, share it, close it, and wait until no member is inside.

    No signal handler interrupts this: members use the caller's memory. After `spins` polls the
    thread calls the function at `yields` between polls: it may occupy a member's core.
    """
    sequence = read(job, at.JOB_SEQUENCE)
    write(job, at.JOB_SEQUENCE, sequence + 1)
    _share(job, scratch)
    write(job, at.JOB_SEQUENCE, sequence + 2)
    remaining = spins
    while read(job, at.JOB_INSIDE) != 0:
        if remaining > 0 or yields == 0:
            pause()
            remaining -= 1
        else:
            give_way(yields)


def serve(job: int, scratch: int, number: int, spins: int) -> None:
    """Share jobs as member `number`, until none has come for so many polls."""
    last_sequence, remaining = 0, spins
    while remaining > 0 and read(job, at.JOB_STOPPED) == 0:
        sequence = read(job, at.JOB_SEQUENCE)
        if sequence % 2 == 0 or sequence == last_sequence:
            pause()
            remaining -= 1
            continue
        last_sequence = sequence
        if number >= read(job, at.JOB_MEMBERS):  # if a new job has begun, this may skip it
            continue
        add(job, at.JOB_INSIDE, 1)
        if read(job, at.JOB_SEQUENCE) == sequence:
            _share(job, scratch)
            remaining = spins
        add(job, at.JOB_INSIDE, -1)
