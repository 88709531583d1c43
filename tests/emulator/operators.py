"""Operators for emulated kernels: numba for the host, with the ABI that kernels call."""

from __future__ import annotations

import ctypes
import itertools
import time
from typing import Any, NamedTuple

import numpy as np

from emulator import trial
from emulator.control import machine
from gpualgo._base import records
from gpualgo._base.records import Argument, Separate
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
    rewrite.install()
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

    adoption = rewrite.Adoption(device_function, None if words is None else pointer, number)
    args = tuple(map(argument_type, arg_dtypes))
    with translate_errors(op.shown, arg_dtypes):
        dispatcher = device_function(fn)
        dispatcher.compile(args)
    returned = dispatcher.overloads[args].signature.return_type
    result = result_of(op.shown, returned, result_dtype)
    wrapper = abi_wrapper(dispatcher, arg_dtypes, result)
    signature = types.void(types.voidptr, types.voidptr, types.CPointer(types.voidptr))
    with translate_errors(op.shown, arg_dtypes):
        code = cfunc(signature, nopython=True, error_model="numpy")(wrapper)
    number = next(_numbers)
    _made[number] = HostOperator(code.address, result, words, number, (code, functions))
    trial.figures.add("operators compiled", start)
    return _made[number]


def abi_wrapper(dispatcher: Any, arguments: tuple[Argument, ...], result: np.dtype[Any]) -> Any:
    """Return wrapper(result, state, args), which calls dispatcher on elements in memory.

    Elements are converted by the types' data models: a bool is one byte in memory, a float16 two.
    """
    from numba import types
    from numba.extending import intrinsic

    from gpualgo._operators.numpy_rules import storage

    arg_types = tuple(map(storage.argument_type, arguments))

    @intrinsic  # type: ignore[untyped-decorator]
    def apply(typingctx: Any, to: Any, args: Any) -> Any:
        callee = typingctx.resolve_value_type(dispatcher)
        inner = callee.get_call_type(typingctx, arg_types, {})

        def generate(context: Any, builder: Any, sig: Any, values: Any) -> Any:
            numbers = iter(range(len(records.slots(arguments))))

            def loaded(dtype: Any) -> Any:
                slot = builder.gep(values[1], [context.get_constant(types.intp, next(numbers))])
                return storage.unpacked(context, builder, dtype, builder.load(slot))

            operands = []
            for argument, ty in zip(arguments, arg_types, strict=True):
                loaded_fields = map(loaded, records.slots((argument,)))
                if isinstance(argument, Separate):
                    operands.append(storage.pack_fields(context, builder, ty, loaded_fields))
                else:
                    operands.append(next(loaded_fields))
            function = context.get_function(callee, inner)
            for library in getattr(function, "libs", ()):
                context.active_code_library.add_linking_library(library)
            value = function(builder, operands)
            result_type = storage.element_type(result)
            value = storage.cast(context, builder, value, inner.return_type, result_type)
            storage.pack(context, builder, result, value, values[0])
            return context.get_dummy_value()

        return types.void(to, args), generate

    def wrapper(result, state, args):  # type: ignore[no-untyped-def]
        apply(result, args)

    return wrapper
