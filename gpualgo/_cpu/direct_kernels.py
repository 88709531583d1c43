"""Functions of CPython's own kind around kernels: `PyObject *f(PyObject *self, PyObject **, n)`.

All that they ask of the interpreter is in its stable ABI. Objects are words here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from gpualgo._cpu.address import ALIGNED, AXES, CONTIGUOUS, DTYPE, EXTENTS, FLAGS
from gpualgo._cpu.parameters import (
    FOLD_ENTRY,
    FOLD_INIT,
    FOLD_LENGTH,
    FOLD_MOST,
    FOLD_OUT,
    FOLD_PARTIALS,
    FOLD_START,
    FOLD_TABLE,
    FOLD_TILE,
    FOLD_TILES,
    FOLD_WORDS,
    LAUNCH_BRINGS,
    LAUNCH_ENTRY,
    LAUNCH_PLACES,
    LAUNCH_TABLE,
    LAUNCH_TASKS,
    LAUNCH_WORDS,
)
from gpualgo._cpu.pointers import copy_bytes, load, pointer_to, store

_WORD, _STATUS = ir.IntType(64), ir.IntType(32)
_words = pointer_to(types.intp)

_number = types.ExternalFunction("PyLong_AsLongLong", types.intp(types.intp))
_object = types.ExternalFunction("PyLong_FromLongLong", types.intp(types.intp))
_let_go = types.ExternalFunction("PyEval_SaveThread", types.intp())
_take = types.ExternalFunction("PyEval_RestoreThread", types.void(types.intp))
_item = types.ExternalFunction("PyTuple_GetItem", types.intp(types.intp, types.intp))
_found = types.ExternalFunction("PyDict_GetItem", types.intp(types.intp, types.intp))
_keep = types.ExternalFunction("Py_IncRef", types.void(types.intp))
_truth = types.ExternalFunction("PyBool_FromLong", types.intp(types.intp))


def _run(_typing: Any, kernel: Any, args: Any) -> Any:
    """Call a kernel by its address, and return its status."""

    def generate(_context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = ir.FunctionType(_STATUS, [_WORD] * len(signature.args[1]))
        target = builder.inttoptr(values[0], kind.as_pointer())
        args = [builder.extract_value(values[1], i) for i in range(len(kind.args))]
        return builder.zext(builder.call(target, args), _WORD)

    return types.intp(types.intp, types.UniTuple(types.intp, len(args))), generate


_status_of = intrinsic(_run)


def _stack(count: int) -> Any:
    """Return an intrinsic that gives the address of so many words of the caller's stack."""

    def words(_typing: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, _values: Any) -> Any:
            return builder.ptrtoint(cgutils.alloca_once(builder, _WORD, count), _WORD)

        return types.intp(), generate

    return intrinsic(words)


def call_kernel() -> Callable[[int, int, int], int]:
    """Write f(four ints): the status of the kernel at the address that `self` is.

    It runs without the interpreter's lock.
    """

    def call(kernel: int, args: int, _count: int) -> int:
        given = _words(args)
        code, table, scratch = _number(kernel), _number(load(given, 0)), _number(load(given, 1))
        first, last = _number(load(given, 2)), _number(load(given, 3))
        thread = _let_go()
        status = _status_of(code, (table, scratch, first, last))
        _take(thread)
        return _object(status)  # type: ignore[no-any-return]

    return call


def rows_kernel(offset: int) -> Callable[[int, int, int], int]:
    """Write f(keys, row): the same of kernel(address of keys, of row, its length, 0).

    Both are NumPy's arrays of one axis, which have their address at an offset. The lock is held:
    it is for what takes less time than to let go of it.
    """

    def call(kernel: int, args: int, _count: int) -> int:
        given = _words(args)
        keys, row = _words(load(given, 0) + offset), _words(load(given, 1) + offset)
        length = load(_words(load(row, EXTENTS)), 0)
        return _object(  # type: ignore[no-any-return]
            _status_of(_number(kernel), (load(keys, 0), load(row, 0), length, 0))
        )

    return call


def look_kernel(offset: int, most: int, others: int) -> Callable[[int, int, int], int]:
    """Write f(x, *others): what a dict has for the dtype of x; False, where x is no short row.

    `self` is (numpy.ndarray, the dict, and what each other argument is to be).
    """
    wanted = CONTIGUOUS | ALIGNED

    def call(held: int, args: int, count: int) -> int:
        given = _words(args)
        fields = _words(load(given, 0) + offset)
        is_row = count == 1 + others and load(fields, -1) == _item(held, 0)
        for i in range(others):
            is_row = is_row and load(given, 1 + i) == _item(held, 2 + i)
        if not is_row:
            return _truth(0)  # type: ignore[no-any-return]
        if load(fields, AXES) & 0xFFFFFFFF != 1 or load(fields, FLAGS) & wanted != wanted:
            return _truth(0)  # type: ignore[no-any-return]
        if load(_words(load(fields, EXTENTS)), 0) >= most:
            return _truth(0)  # type: ignore[no-any-return]
        found = _found(_item(held, 1), load(fields, DTYPE))
        if found == 0:
            return _truth(0)  # type: ignore[no-any-return]
        _keep(found)
        return found  # type: ignore[no-any-return]

    return call


def launch_kernel(offset: int, most_words: int) -> Callable[[int, int, int], int]:
    """Write f(scratch, *words): the status of a launch whose table has these words in its places.

    `self` is (the address of what LAUNCH_... name, numpy.ndarray). A word is an int, or an array,
    whose address it is then. The table is the call's own; the interpreter's lock is let go of.
    """
    room = _stack(most_words)

    def call(held: int, args: int, count: int) -> int:
        block, array = _item(held, 0), _item(held, 1)
        integer, given = load(_words(block + offset), -1), _words(args)
        head, table = _words(_number(block)), room()
        if count != 1 + load(head, LAUNCH_BRINGS):
            return _object(2)  # type: ignore[no-any-return]
        copy_bytes(table, load(head, LAUNCH_TABLE), 8 * load(head, LAUNCH_WORDS))
        for i in range(count - 1):
            word = load(given, 1 + i)
            fields, place = _words(word + offset), load(head, LAUNCH_PLACES + i)
            if load(fields, -1) == integer:
                store(_words(table), place, _number(word))
            elif load(fields, -1) == array:
                store(_words(table), place, load(fields, 0))
            else:
                return _object(2)  # type: ignore[no-any-return]
        scratch = _number(load(given, 0))
        code, tasks = load(head, LAUNCH_ENTRY), load(head, LAUNCH_TASKS)
        thread = _let_go()
        status = _status_of(code, (table, scratch, 0, tasks))
        _take(thread)
        return _object(status)  # type: ignore[no-any-return]

    return call


def fold_kernel(offset: int, most_words: int) -> Callable[[int, int, int], int]:
    """Write f(scratch, out, row, init): the status of a fold of a row's tiles, then of the rest.

    `self` is (the address of what FOLD_... name). Both arrays are NumPy's, `row` of one axis and
    without gaps; init: the address of a first element, or 0. Status 2: the row has no element, or
    too many. The lock is held, as by `rows_kernel`.
    """
    room = _stack(most_words)

    def call(held: int, args: int, count: int) -> int:
        head, given, table = _words(_number(_item(held, 0))), _words(args), room()
        p, scratch = _words(table), _number(load(given, 0))
        out, row = _words(load(given, 1) + offset), _words(load(given, 2) + offset)
        length, tile = load(_words(load(row, EXTENTS)), 0), load(head, FOLD_TILE)
        tiles = (length + tile - 1) // tile
        if count != 4 or tiles < 1 or tiles > load(head, FOLD_MOST):
            return _object(2)  # type: ignore[no-any-return]
        copy_bytes(table, load(head, FOLD_TABLE), 8 * load(head, FOLD_WORDS))
        source, status = load(row, 0), 0
        if tiles > 1:
            partials = scratch + load(head, FOLD_PARTIALS)
            store(p, load(head, FOLD_LENGTH), length)
            store(p, load(head, FOLD_TILES), tiles)
            store(p, load(head, FOLD_START), source)
            store(p, load(head, FOLD_OUT), partials)
            status = _status_of(load(head, FOLD_ENTRY), (table, scratch, 0, tiles))
            source, length = partials, tiles
        if status == 0:
            store(p, load(head, FOLD_INIT), _number(load(given, 3)))
            store(p, load(head, FOLD_LENGTH), length)
            store(p, load(head, FOLD_TILES), 1)
            store(p, load(head, FOLD_START), source)
            store(p, load(head, FOLD_OUT), load(out, 0))
            status = _status_of(load(head, FOLD_ENTRY), (table, scratch, 0, 1))
        return _object(status)  # type: ignore[no-any-return]

    return call
