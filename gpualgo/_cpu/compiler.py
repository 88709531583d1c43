"""Compiles kernels and operators by numba and LLVM.

A kernel is first compiled to a shell: the bitcode of a kernel that calls its operator by symbol.
All operators on the same dtypes share it, so a new operator costs only its own compilation,
inlining and machine code. An operator is compiled to the bitcode of a function on storage scalars:
elements as stored in memory, float16 and bfloat16 as uint16 bits.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from copy import copy
from functools import cache
from typing import Any

import llvmlite.binding as binding
import numpy as np
from llvmlite import ir
from llvmlite.binding import Linkage
from numba import njit, types
from numba.core import cgutils, compiler, compiler_lock, config
from numba.core.compiler_lock import global_compiler_lock

from gpualgo._base import forks, records
from gpualgo._base.records import Argument, Separate
from gpualgo._cpu import image
from gpualgo._cpu import llvm as own
from gpualgo._cpu import memory as state
from gpualgo._cpu.image import WORDS
from gpualgo._cpu.packing import instruction, storage
from gpualgo._operators.captured import NUMBER_WORDS, STATE_WORDS
from gpualgo._operators.numpy_rules import rewrite
from gpualgo._operators.numpy_rules import storage as elements
from gpualgo._operators.numpy_rules.errors import check_numba, translate_errors
from gpualgo._operators.numpy_rules.rules import result_of
from gpualgo._operators.numpy_rules.storage import Narrow, argument_type, element_type
from gpualgo._operators.operator import Operator
from gpualgo._operators.tokens import digest_of

# --- Checks that numba can compile.
#
# Forks wait for compilations: the child cannot free numba's locks.

forks.wait_for(compiler_lock.global_compiler_lock._lock, around=own.LOCK)  # an RLock, too


def check() -> None:
    """Raise CompileError if numba is disabled, RuntimeError in a child forked while compiling."""
    check_numba()
    forks.check("compiling for the CPU")


OPERATOR = "gpualgo_operator"
"""Symbol of an operator's function on storage scalars, in numba's calling convention."""

own.free_passes()

OPTIONS = {"nogil": True, "error_model": "numpy"}

_PLACEHOLDER = ctypes.c_int64()
_UNRESOLVED = ".numba.unresolved$"
_ARITHMETIC = ("fadd", "fsub", "fmul", "fdiv")
_HEAVY = 16  # instructions of these kinds for each element


class Unlinked:
    """A function compiled by numba to LLVM IR, without machine code."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        check()
        dispatcher = njit(**OPTIONS, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
        target, options = dispatcher._compiler.targetdescr, dispatcher._compiler.targetoptions
        flags = compiler.Flags()
        target.options.parse_as_flags(flags, options)
        flags.no_compile = True
        self.context = target.target_context
        self.library = self.context.codegen().create_library(function.__qualname__)
        compiled = compiler.compile_extra(
            target.typing_context, self.context, function, args=args, return_type=None,
            flags=flags, locals={}, library=self.library,
        )  # fmt: skip
        self.described = compiled.fndesc
        self.return_type = compiled.signature.return_type

    def declare(self, module: ir.Module) -> Any:
        fndesc = self.described
        function_type = self.context.call_conv.get_function_type(fndesc.restype, fndesc.argtypes)
        return ir.Function(module, function_type, fndesc.llvm_func_name)

    def join(self, module: ir.Module) -> Any:
        """Link the function, a module that wraps it and all functions they call."""
        self.library.add_ir_module(module)
        final = self.library._final_module
        for linked_library in dict.fromkeys(self.library._linking_libraries):
            final.link_in(linked_library._get_module_for_linking(), preserve=True)
        _resolve(final, self.context.create_module("gpualgo recursion"))
        return final


def operator_call(arg_dtypes: tuple[Argument, ...], result_dtype: np.dtype[Any]) -> Any:
    """Return the intrinsic by which a shell calls its operator."""
    args = tuple(map(storage, records.slots(arg_dtypes)))
    result = storage(result_dtype)
    # numba also generates machine code, which never runs but needs an address for each symbol.
    binding.add_symbol(OPERATOR, ctypes.addressof(_PLACEHOLDER))

    @instruction(result, *args)
    def operator(context: Any, builder: Any, *values: Any) -> Any:
        convention = context.call_conv
        function_type = convention.get_function_type(result, args)
        function = cgutils.get_or_insert_function(builder.module, function_type, OPERATOR)
        status, value = convention.call_function(builder, function, result, args, values)
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return value

    return operator


def compile_shell(function: Callable[..., None]) -> bytes:
    """Return a kernel's bitcode, simplified as far as possible without its operator.

    If the function returns a word, so does the entry: such a function must not raise.
    """
    count = function.__code__.co_argcount
    with global_compiler_lock:
        unlinked = Unlinked(function, (types.intp,) * count)
        module = unlinked.context.create_module("gpualgo kernel")
        word, returns = ir.IntType(64), unlinked.return_type == types.intp
        entry_type = ir.FunctionType(word if returns else ir.IntType(32), [word] * count)
        entry = ir.Function(module, entry_type, image.ENTRY)
        builder = ir.IRBuilder(entry.append_basic_block())
        fndesc = unlinked.described
        status, value = unlinked.context.call_conv.call_function(
            builder, unlinked.declare(module), fndesc.restype, fndesc.argtypes, entry.args
        )
        builder.ret(value if returns else builder.zext(status.is_error, ir.IntType(32)))
        final = unlinked.join(module)
        _hide(final, image.ENTRY)
        _simplify(final, unlinked.context.codegen()._tm)
        bitcode: bytes = final.as_bitcode()
        return bitcode


def machine_code(shell: bytes, operator: bytes | None) -> image.Image:
    check()
    with global_compiler_lock:
        module, machine = link_modules(shell, operator)
        needed = [
            value.name
            for value in (*module.functions, *module.global_variables)
            if value.is_declaration and not value.name.startswith("llvm.")
        ]
        return image.of_object(machine.emit_object(module), needed)


def _hide(module: Any, entry: str) -> None:
    """Make all functions except the entry internal, so that LLVM drops them once inlined.

    Those with forms for vectors are kept, as only the vectoriser refers to these.
    """
    for function in module.functions:
        is_kept = function.name == entry or function.linkage == Linkage.weak_odr
        if not function.is_declaration and not is_kept:
            function.linkage = "internal"


def _simplify(module: Any, machine: Any) -> None:
    """Run LLVM's quick passes; loop passes wait for the operator."""
    tuning = binding.create_pipeline_tuning_options(speed_level=1)
    tuning.loop_vectorization = tuning.slp_vectorization = tuning.loop_unrolling = False
    builder = binding.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)


def _resolve(module: Any, definitions: ir.Module) -> None:
    """Define the variables through which mutually recursive functions find each other.

    numba fills them at run time, before it runs the first of these functions.
    """
    defined = {function.name for function in module.functions if not function.is_declaration}
    unresolved = [v.name for v in module.global_variables if v.name.startswith(_UNRESOLVED)]
    for name in unresolved:
        target = name.removeprefix(_UNRESOLVED)
        if target in defined:
            pointer = ir.IntType(8).as_pointer()
            function = ir.Function(definitions, ir.FunctionType(ir.VoidType(), []), target)
            variable = ir.GlobalVariable(definitions, pointer, name)
            variable.global_constant, variable.initializer = True, function.bitcast(pointer)
    if unresolved:
        module.link_in(binding.parse_assembly(str(definitions)))
        for name in unresolved:
            if not (variable := module.get_global_variable(name)).is_declaration:
                variable.linkage = "internal"


def link_modules(shell: bytes, operator: bytes | None) -> tuple[Any, Any]:
    """Return the optimised LLVM module of a shell and its operator, and its target machine."""
    from numba.core.registry import cpu_target

    codegen = cpu_target.target_context.codegen()
    parts = [binding.parse_bitcode(bitcode) for bitcode in (shell, operator) if bitcode is not None]
    if "+avx512f" in codegen._tm_features and operator is not None and _is_heavy(parts[-1]):
        codegen = _widest(codegen)
    library = codegen.create_library("gpualgo kernel")
    module = library._final_module
    for part in parts:
        module.link_in(part)
    _hide(module, image.ENTRY)
    library._optimize_final_module()
    module.verify()
    if image.SUPPORTED:  # constants are near the code, as an image is one block
        return module, _target_machine(codegen, reloc="pic", codemodel="small")
    return module, codegen._tm


def _is_heavy(operator: Any) -> bool:
    """Return whether an operator's float arithmetic takes longer than memory access."""
    is_arithmetic = (
        instruction.opcode in _ARITHMETIC
        for function in operator.functions
        for block in function.blocks
        for instruction in block.instructions
    )
    return sum(is_arithmetic) >= _HEAVY


@cache
def _widest(codegen: Any) -> Any:
    """Return a copy of a code generator that uses AVX-512's full width; LLVM uses half by default.

    Such code lowers the clock of some processors for a while, by up to a tenth.
    """
    widest = copy(codegen)
    widest._tm_features += ",-prefer-256-bit"
    widest._tm = _target_machine(widest)
    return widest


@cache
def _target_machine(codegen: Any, **others: Any) -> Any:
    options = {"opt": config.OPT}
    codegen._customize_tm_options(options)
    target = binding.Target.from_triple(binding.get_process_triple())
    return target.create_target_machine(**options | others)


# --- Operators.


def compile_operator(
    op: Operator, arg_dtypes: tuple[Argument, ...], result_dtype: np.dtype[Any] | None
) -> tuple[bytes, np.dtype[Any]]:
    check()
    rewrite.install()
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
            binding.add_symbol(self.symbol, int(state.state_of(op.key).words.ctypes.data))
        words, number = (self.words, self.number) if captures else (None, None)
        self.adoption = rewrite.Adoption(self.device_function, words, number)

    def device_function(self, inner: Any) -> Any:
        """Return numba's dispatcher of a function that the operator calls."""
        if inner not in self.functions:
            self.functions[inner] = njit(**OPTIONS)(rewrite.adopt(inner, self.adoption))
        return self.functions[inner]

    def words(self, builder: Any) -> Any:
        """Return a pointer to the captured words, by a symbol that is resolved on loading."""
        word = ir.IntType(64)
        array = ir.ArrayType(word, STATE_WORDS + NUMBER_WORDS)
        add = cgutils.add_global_variable
        variable = builder.module.globals.get(self.symbol)
        if variable is None:
            variable = add(builder.module, array, self.symbol)
        return builder.bitcast(variable, word.as_pointer())

    def number(self, builder: Any, index: int) -> Any:
        pointer = builder.gep(self.words(builder), [ir.IntType(64)(STATE_WORDS + index)])
        loaded = builder.load(pointer)
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))  # per launch
        return loaded


def _wrap(fn: Unlinked, arguments: tuple[Argument, ...], result: np.dtype[Any]) -> ir.Module:
    """Return a module with the function that kernels call: it takes and returns storage scalars."""
    context = fn.context
    convention = context.call_conv
    slots = records.slots(arguments)
    returned, stored = storage(result), tuple(map(storage, slots))
    module = context.create_module("gpualgo operator")
    function = ir.Function(module, convention.get_function_type(returned, stored), OPERATOR)
    names = [f"x{i}" for i in range(len(stored))]
    convention.decorate_function(function, names, stored, noalias=False)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
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
    # The bits of a 16-bit float are stored as they are.
    return value if isinstance(ty, Narrow) else context.cast(builder, value, storage(dtype), ty)


def _to_storage(context: Any, builder: Any, value: Any, source: Any, dtype: np.dtype[Any]) -> Any:
    """Cast a value to a dtype and return its storage scalar."""
    if dtype.names is not None:
        record = ir.Constant(context.get_value_type(storage(dtype)), ir.Undefined)
        numbers = elements.unpack_fields(builder, source, value)
        parts = zip(numbers, elements.flat(source), records.field_dtypes(dtype), strict=True)
        for i, (number, ty, field) in enumerate(parts):
            number = _to_storage(context, builder, number, ty, field)
            record = builder.insert_value(record, number, i)
        return record
    return context.cast(builder, value, source, element_type(dtype))


def cast(source: np.dtype[Any], target: np.dtype[Any]) -> Any:
    """Return an intrinsic for kernels that converts storage scalars of one dtype to another."""
    rewrite.install()
    return _cast(source, target)


@cache
def _cast(source: np.dtype[Any], target: np.dtype[Any]) -> Any:
    @instruction(storage(target), storage(source))
    def convert(context: Any, builder: Any, stored: Any) -> Any:
        value = _from_storage(context, builder, stored, source)
        return _to_storage(context, builder, value, element_type(source), target)

    return convert
