"""Compiles an operator to the LLVM bitcode of a function on storage scalars, which kernels inline.

A storage scalar is an element as stored in memory: float16 and bfloat16 are uint16 bits, every
other dtype is unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import llvmlite.binding as llvm_binding
import numpy as np
from llvmlite import ir as llvm
from numba import njit
from numba.core import cgutils, datamodel, extending, imputils, ir, ir_utils, rewrites
from numba.core.compiler_lock import global_compiler_lock
from numba.np import arrayobj

from gpualgo._base import records
from gpualgo._base.memo import Memo
from gpualgo._base.records import Argument, Separate
from gpualgo._cpu import compile_kernel
from gpualgo._cpu import memory as state
from gpualgo._cpu.compile_kernel import OPERATOR, OPTIONS, Unlinked
from gpualgo._cpu.image import WORDS
from gpualgo._cpu.packing import storage
from gpualgo._operators.captured import NUMBER_WORDS, STATE_WORDS
from gpualgo._operators.numpy_rules import rewrite
from gpualgo._operators.numpy_rules import storage as elements
from gpualgo._operators.numpy_rules.errors import translate_errors
from gpualgo._operators.numpy_rules.rules import result_of
from gpualgo._operators.numpy_rules.storage import Narrow, argument_type, element_type
from gpualgo._operators.operator import Operator
from gpualgo._operators.tokens import digest_of

_targets: Memo[rewrite.Target] = Memo(1)


def install() -> rewrite.Target:
    """Return the CPU's target, after teaching its numba NumPy's arithmetic."""
    return _targets.made("cpu", _install)


def _install() -> rewrite.Target:
    target = rewrite.Target(
        ir, ir_utils, rewrites, extending, datamodel.models, imputils, arrayobj, False
    )
    rewrite.install(target)
    return target


def compile_operator(
    op: Operator, arg_dtypes: tuple[Argument, ...], result_dtype: np.dtype[Any] | None
) -> tuple[bytes, np.dtype[Any]]:
    compile_kernel.check()
    fn = rewrite.function_of(op, len(arg_dtypes))
    adopter = _Adopter(op)
    args = tuple(map(argument_type, arg_dtypes))
    with global_compiler_lock:
        try:
            with translate_errors(op.shown, arg_dtypes):
                unlinked = Unlinked(rewrite.adopt(fn, adopter.adoption), args)
            result = result_of(op.shown, unlinked.return_type, result_dtype)
            module = unlinked.join(_wrap(unlinked, arg_dtypes, result))
            unlinked.library._optimize_final_module()
            bitcode: bytes = module.as_bitcode()
        finally:
            adopter.functions.clear()  # numba never frees intrinsics, which refer to the adopter
        return bitcode, result


class _Adopter:
    """Compiles the functions of an operator with numba and locates the arrays it captures."""

    def __init__(self, op: Operator) -> None:
        self.functions: dict[Any, Any] = {}
        self.symbol = ""
        captures = op.key.arrays or op.key.numbers
        if captures:
            self.symbol = WORDS + digest_of(op.key)
            # numba also generates machine code, which never runs but needs this address.
            llvm_binding.add_symbol(self.symbol, int(state.captured_words(op.key).ctypes.data))
        words, number = (self.words, self.number) if captures else (None, None)
        self.adoption = rewrite.Adoption(install(), self.device_function, words, number)

    def device_function(self, inner: Any) -> Any:
        """Return numba's dispatcher of a function that the operator calls."""
        if inner not in self.functions:
            self.functions[inner] = njit(**OPTIONS)(rewrite.adopt(inner, self.adoption))
        return self.functions[inner]

    def words(self, builder: Any) -> Any:
        """Return a pointer to the captured words, by a symbol that is resolved on loading."""
        word = llvm.IntType(64)
        array = llvm.ArrayType(word, STATE_WORDS + NUMBER_WORDS)
        add = cgutils.add_global_variable
        variable = builder.module.globals.get(self.symbol)
        if variable is None:
            variable = add(builder.module, array, self.symbol)
        return builder.bitcast(variable, word.as_pointer())

    def number(self, builder: Any, index: int) -> Any:
        pointer = builder.gep(self.words(builder), [llvm.IntType(64)(STATE_WORDS + index)])
        loaded = builder.load(pointer)
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))  # per launch
        return loaded


def _wrap(fn: Unlinked, arguments: tuple[Argument, ...], result: np.dtype[Any]) -> llvm.Module:
    """Return a module with the function that kernels call: it takes and returns storage scalars."""
    context = fn.context
    convention = context.call_conv
    slots = records.slots(arguments)
    returned, stored = storage(result), tuple(map(storage, slots))
    module = context.create_module("gpualgo operator")
    function = llvm.Function(module, convention.get_function_type(returned, stored), OPERATOR)
    names = [f"x{i}" for i in range(len(stored))]
    convention.decorate_function(function, names, stored, noalias=False)
    builder = llvm.IRBuilder(function.append_basic_block("entry"))
    stored_values = zip(convention.decode_arguments(builder, stored, function), slots, strict=True)
    with context.push_code_library(fn.library):
        values = [_argument(context, builder, argument, stored_values) for argument in arguments]
        status, value = convention.call_function(
            builder, fn.declare(module), fn.described.restype, fn.described.argtypes, values
        )
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        value = _to_storage(context, builder, value, fn.described.restype, result)
    convention.return_value(builder, context.get_return_value(builder, returned, value))
    return module


def _argument(context: Any, builder: Any, argument: Argument, stored_values: Iterator[Any]) -> Any:
    """Return an argument in numba's type from its storage scalars."""
    if not isinstance(argument, Separate):
        value, dtype = next(stored_values)
        return _from_storage(context, builder, value, dtype)
    count = len(records.field_dtypes(argument.dtype))
    numbers = [_from_storage(context, builder, *next(stored_values)) for _ in range(count)]
    return elements.pack_fields(context, builder, argument_type(argument), iter(numbers))


def _from_storage(context: Any, builder: Any, value: Any, dtype: np.dtype[Any]) -> Any:
    """Convert a storage scalar to numba's type of the element."""
    if dtype.names is not None:
        numbers = (
            _from_storage(context, builder, builder.extract_value(value, i), field)
            for i, field in enumerate(records.field_dtypes(dtype))
        )
        return elements.pack_fields(context, builder, element_type(dtype), numbers)
    ty = element_type(dtype)
    if not isinstance(ty, Narrow):
        return context.cast(builder, value, storage(dtype), ty)
    return context.data_model_manager[ty].from_data(builder, value)


def _to_storage(context: Any, builder: Any, value: Any, source: Any, dtype: np.dtype[Any]) -> Any:
    """Cast a value to a dtype and return its storage scalar."""
    if dtype.names is not None:
        record = llvm.Constant(context.get_value_type(storage(dtype)), llvm.Undefined)
        numbers = elements.unpack_fields(builder, source, value)
        parts = zip(numbers, elements.flat(source), records.field_dtypes(dtype), strict=True)
        for i, (number, ty, field) in enumerate(parts):
            number = _to_storage(context, builder, number, ty, field)
            record = builder.insert_value(record, number, i)
        return record
    ty = element_type(dtype)
    value = context.cast(builder, value, source, ty)
    return (
        context.data_model_manager[ty].as_data(builder, value) if isinstance(ty, Narrow) else value
    )


def cast(source: np.dtype[Any], target: np.dtype[Any]) -> Any:
    """Return an intrinsic for kernels that converts storage scalars of one dtype to another."""
    install()
    return _cast(source, target)


@cache
def _cast(source: np.dtype[Any], target: np.dtype[Any]) -> Any:
    def convert(_typing: Any, _value: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            value = _from_storage(context, builder, args[0], source)
            return _to_storage(context, builder, value, element_type(source), target)

        return storage(target)(storage(source)), generate

    return extending.intrinsic(convert)
