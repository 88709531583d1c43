"""Operators for emulated kernels: numba for the host, with the ABI that kernels call."""

from __future__ import annotations

import ctypes
import itertools
import time
from typing import Any, NamedTuple

import numpy as np

from emulator import trial
from emulator.control import machine
from gpualgo._base.records import Argument
from gpualgo._cpu import compiler as cpu
from gpualgo._cpu.compiler import OPTIONS
from gpualgo._operators.captured import STATE_WORDS
from gpualgo._operators.numpy_rules import rewrite
from gpualgo._operators.numpy_rules.errors import translate_errors
from gpualgo._operators.numpy_rules.rules import result_of
from gpualgo._operators.numpy_rules.storage import argument_type
from gpualgo._operators.operator import Operator


class HostOperator(NamedTuple):
    """A compiled operator: where its code lies, and the words that it reads if it captures."""

    address: int
    result_dtype: np.dtype[Any]
    words: np.ndarray[Any, np.dtype[np.int64]] | None
    number: int
    code: Any  # which is held


# Python does not call them.
_OPTIONS = {**OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_numbers = itertools.count(1)
_made: dict[int, HostOperator] = {}


def by_number(number: int) -> HostOperator:
    """Return an operator by what a library's image says."""
    return _made[number]


def compile_operator(
    op: Operator, arg_dtypes: tuple[Argument, ...], result_dtype: np.dtype[Any] | None
) -> HostOperator:
    """Compile op for arguments of arg_dtypes; its result is cast to result_dtype if given."""
    from numba import cfunc, njit, types

    start = time.perf_counter()
    numbers = ctypes.addressof(ctypes.c_uint64.in_dll(machine(), "emu_numbers"))
    fn = rewrite.function_of(op, len(arg_dtypes))
    target = cpu.install()
    words = np.zeros(STATE_WORDS, np.int64) if op.arrays else None
    functions: dict[Any, Any] = {}

    def device_function(inner: Any) -> Any:
        if inner not in functions:
            functions[inner] = njit(**_OPTIONS)(rewrite.adopt(inner, adoption))
        return functions[inner]

    def pointer(builder: Any) -> Any:
        from llvmlite import ir

        word = ir.IntType(64)
        assert words is not None
        return builder.inttoptr(word(int(words.ctypes.data)), word.as_pointer())

    def number(builder: Any, index: int) -> Any:
        from llvmlite import ir

        word = ir.IntType(64)
        return builder.load(builder.inttoptr(word(numbers + 8 * index), word.as_pointer()))

    adoption = rewrite.Adoption(target, device_function, None if words is None else pointer, number)
    args = tuple(map(argument_type, arg_dtypes))
    with translate_errors(op.shown, arg_dtypes):
        dispatcher = device_function(fn)
        dispatcher.compile(args)
    returned = dispatcher.overloads[args].signature.return_type
    result = result_of(op.shown, returned, result_dtype)
    wrapper = rewrite.abi_wrapper(target, dispatcher, arg_dtypes, result)
    signature = types.void(types.voidptr, types.voidptr, types.CPointer(types.voidptr))
    with translate_errors(op.shown, arg_dtypes):
        code = cfunc(signature, nopython=True, error_model="numpy")(wrapper)
    number = next(_numbers)
    _made[number] = HostOperator(code.address, result, words, number, (code, functions))
    trial.figures.add("operators compiled", start)
    return _made[number]
