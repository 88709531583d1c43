"""A CUDA target for numba: device functions as LLVM IR, compiled by libNVVM to LTO-IR.

numba types an operator and lowers it with the registries that it has for the CPU, apart from
mathematics, which is libdevice's. Its modules go to libNVVM as text, in the dialect that llvmlite
prints, which libNVVM reads for every architecture.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import llvmlite.binding as binding
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import callconv, cgutils, compiler, imputils, registry, typing
from numba.core import target_extension as extension
from numba.core.base import BaseContext
from numba.core.codegen import Codegen, CodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.typing.templates import fold_arguments

from gpualgo._base import forks, records
from gpualgo._base.errors import CompileError
from gpualgo._base.records import Argument, Separate
from gpualgo._operators.numpy_rules import codegen, storage
from gpualgo._operators.numpy_rules.errors import Refused
from gpualgo._operators.numpy_rules.storage import PTX, Code

_LAYOUT = (
    "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-"
    "v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
)
_NAME = "gpualgo"  # of the target
_BUILT_IN = (
    "core.optional cpython.builtins cpython.enumimpl cpython.iterators cpython.numbers "
    "cpython.rangeobj cpython.slicing cpython.tupleobj misc.literal np.arrayobj"
)
# Functions of `math` that numba's complex functions call, by number of arguments.
_LIBDEVICE = {
    1: "acos acosh asin asinh atan atanh cos cosh exp fabs log log10 log1p sin sinh sqrt tan tanh",
    2: "atan2 copysign hypot",
}

forks.wait_for(global_compiler_lock._lock)  # a child could not free it
# numba makes the CPU's context when one is asked for, under a lock before which a thread must not
# hold the compiler's.
_CPU = registry.cpu_target.target_context


class _Target(extension.GPU):
    """The key of this target in numba's registry."""


class _Library(CodeLibrary):
    """The modules of a function, and the libraries of the functions that it calls."""

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self.modules: list[ir.Module] = []
        self.linked: dict[_Library, None] = {}  # in order

    def add_ir_module(self, ir_module: ir.Module) -> None:
        self.modules.append(ir_module)

    def add_linking_library(self, library: Any) -> None:
        self.linked[library] = None

    def finalize(self) -> None:
        self._finalized = True

    def everything(self) -> list[ir.Module]:
        """Return all modules, callers first: libNVVM links only what has been called before."""
        libraries: dict[_Library, None] = {}
        pending = [self]
        while pending:
            library = pending.pop()
            if library not in libraries:
                libraries[library] = None
                pending += library.linked
        return [module for library in libraries for module in reversed(library.modules)]

    def get_function(self, name: str) -> Any:
        raise NotImplementedError

    get_llvm_str = get_asm_str = get_function


class _Codegen(Codegen):
    _library_class = _Library

    def __init__(self) -> None:
        self._data_layout = _LAYOUT
        self._target_data = binding.create_target_data(_LAYOUT)

    def _create_empty_module(self, name: str) -> ir.Module:
        module = ir.Module(cgutils.normalize_ir_text(name))
        module.triple, module.data_layout = PTX, _LAYOUT
        return module

    def _add_module(self, module: Any) -> None:
        raise NotImplementedError

    def magic_tuple(self) -> tuple[str, ...]:
        return (PTX,)


class _Context(BaseContext):
    """How numba lowers for this target."""

    def init(self) -> None:
        self._codegen = _Codegen()

    def load_additional_registries(self) -> None:
        for name in _BUILT_IN.split():  # importing them registers what they define
            import_module(f"numba.{name}")
        self.install_registry(import_module("numba.cpython.cmathimpl").registry)
        self.install_registry(_mathematics())

    def create_module(self, name: str) -> ir.Module:
        return self._codegen._create_empty_module(name)

    def codegen(self) -> _Codegen:
        return self._codegen

    @property
    def target_data(self) -> Any:
        return self._codegen.target_data

    @property
    def call_conv(self) -> Any:
        return callconv.MinimalCallConv(self)

    def add_dynamic_addr(self, builder: Any, intaddr: int, info: str) -> Any:
        """Return a function as a value: nothing reads it, as calls know their function."""
        assert info == Function.__name__, f"the address of a {info} is needed on a GPU"
        return cgutils.get_null_value(cgutils.voidptr_t)

    def get_env_manager(self, builder: Any, return_pyobject: bool = False) -> Any:
        """Return a stand-in: device functions have no Python objects."""
        return _NoEnvironment

    def declare_env_global(self, module: ir.Module, envname: str) -> None:
        pass


class _NoEnvironment:
    env_body = env_ptr = None


@cache
def _mathematics() -> imputils.Registry:
    functions = imputils.Registry("gpualgo mathematics")
    for count, names in _LIBDEVICE.items():
        for name in names.split():
            add = functions.lower(getattr(math, name), *(types.Float,) * count)
            add(_lowering(lambda code, *values, name=name: code.libm(name, *values)))
    for name in ("isfinite", "isinf", "isnan"):
        add = functions.lower(getattr(math, name), types.Float)
        add(_lowering(lambda code, x, name=name: codegen.compute(code, name, "float", [x])))
    return functions


def _lowering(compute: Any) -> Any:
    return lambda context, builder, signature, values: compute(Code(context, builder), *values)


@cache
def context() -> _Context:
    extension.target_registry[_NAME] = _Target
    # A typing context of its own: each remembers which target has compiled numba's functions.
    made = _Context(typing.Context(), _NAME)
    Function.targetdescr = SimpleNamespace(target_context=made)
    extension.dispatcher_registry[_Target] = Function
    extension.jit_registry[_Target] = lambda **options: Function
    made.refresh()
    return made


@contextmanager
def selected() -> Iterator[None]:
    """Let this thread alone use numba in a block, for this target."""
    with global_compiler_lock, extension.target_override(_NAME):
        context()  # made for this target: else numba's templates would fill the CPU's context
        yield


class Function:
    """A device function as numba sees it: it is compiled for the types of each call."""

    targetdescr: ClassVar[Any]
    py_func: Any

    def __init__(self, function: Any) -> None:
        self.py_func, self.__name__ = function, function.__name__
        self._signature = inspect.signature(function)
        self.compiled: dict[Any, Any] = {}
        self._is_compiling = False

    @property
    def is_compiling(self) -> bool:
        """Refuse a call by itself, before which numba asks whether the function is compiling."""
        if self._is_compiling:
            raise Refused("op calls itself, for which GPUs have too little stack; write a loop")
        return False

    @property
    def _numba_type_(self) -> types.Type:
        return types.Dispatcher(self)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return the template of a call, as numba asks a dispatcher for it."""
        _, args = self.fold_argument_types(args, kws)
        self.compile(tuple(args))
        signatures = [found.signature for found in self.compiled.values()]
        template = typing.make_concrete_template(self.__name__, self.py_func, signatures)
        return template, self._signature, args, {}

    def fold_argument_types(self, args: Any, kws: Any) -> Any:
        return self._signature, fold_arguments(
            self._signature, args, kws, lambda index, parameter, value: value,
            lambda index, parameter, default: types.Omitted(default),
            lambda index, parameter, values: types.StarArgTuple(values),
        )  # fmt: skip

    def get_overload(self, args: tuple[types.Type, ...]) -> Any:
        return self.compile(tuple(args)).entry_point

    def compile(self, args: tuple[types.Type, ...]) -> Any:
        found = self.compiled.get(args)
        if found is None:
            flags = compiler.Flags()
            flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = True
            flags.error_model = "numpy"
            self._is_compiling = True
            try:
                made = compiler.compile_extra(
                    context().typing_context, context(), self.py_func, args=args,
                    return_type=None, flags=flags, locals={},
                )  # fmt: skip
            finally:
                self._is_compiling = False
            found = self.compiled[args] = made._replace(entry_point=(self, args))
            context().insert_user_function(found.entry_point, found.fndesc, [found.library])
        return found

    def forget(self) -> None:
        """Take what was compiled out of numba's tables."""
        for found in self.compiled.values():
            context().remove_user_function(found.entry_point)
        self.compiled.clear()


def add_entry(
    name: str, compiled: Any, arguments: tuple[Argument, ...], result: np.dtype[Any]
) -> None:
    """Add name(result, state, args) to a compiled function's library: it reads and writes memory.

    Elements are converted by the types' data models: a bool is one byte in memory, a float16 two.
    """
    made, convention, described = context(), context().call_conv, compiled.fndesc
    module = made.create_module(name)
    byte = ir.IntType(8).as_pointer()
    entry_type = ir.FunctionType(ir.VoidType(), [byte, byte, byte.as_pointer()])
    entry = ir.Function(module, entry_type, name)
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    numbers = iter(range(len(records.slots(arguments))))

    def loaded(dtype: Any) -> Any:
        slot = builder.gep(entry.args[2], [ir.IntType(64)(next(numbers))])
        return storage.unpacked(made, builder, dtype, builder.load(slot))

    operands = []
    for argument in arguments:
        fields = map(loaded, records.slots((argument,)))
        if isinstance(argument, Separate):
            ty = storage.argument_type(argument)
            operands.append(storage.pack_fields(made, builder, ty, fields))
        else:
            operands.append(next(fields))
    function = made.declare_function(module, described)
    _, value = convention.call_function(
        builder, function, described.restype, described.argtypes, operands
    )
    with made.push_code_library(compiled.library):
        result_type = storage.element_type(result)
        value = storage.cast(made, builder, value, described.restype, result_type)
        storage.pack(made, builder, result, value, entry.args[0])
    builder.ret_void()
    compiled.library.add_ir_module(module)


def add_words_entry(
    name: str, compiled: Any, arguments: tuple[Argument, ...], result: np.dtype[Any]
) -> str:
    """Add name_words(words...), which calls name by way of memory; return its name (ADR 42).

    libNVVM puts that memory into registers.
    """
    module = context().create_module(f"{name}_words")
    byte = ir.IntType(8).as_pointer()
    slots = records.slots(arguments)
    returned = ir.LiteralStructType([_word(size) for _, size in _numbers(result)])
    passed = [_word(size) for dtype in slots for _, size in _numbers(dtype)]
    entry = ir.Function(module, ir.FunctionType(returned, passed), f"{name}_words")
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    words = iter(entry.args)
    addresses = builder.alloca(ir.ArrayType(byte, len(slots)))
    for i, dtype in enumerate(slots):
        memory = _memory(builder, dtype)
        for offset, size in _numbers(dtype):
            word, number = next(words), ir.IntType(8 * size)
            value = word if word.type == number else builder.trunc(word, number)
            builder.store(value, _number_at(builder, memory, offset, number))
        builder.store(memory, builder.gep(addresses, [ir.IntType(32)(0), ir.IntType(32)(i)]))
    memory, pointers = _memory(builder, result), byte.as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, byte, pointers])
    function = cgutils.get_or_insert_function(module, kind, name)
    builder.call(function, [memory, byte(None), builder.bitcast(addresses, pointers)])
    packed = ir.Constant(returned, ir.Undefined)
    for i, (offset, size) in enumerate(_numbers(result)):
        loaded = builder.load(_number_at(builder, memory, offset, ir.IntType(8 * size)))
        word = loaded if loaded.type == _word(size) else builder.zext(loaded, _word(size))
        packed = builder.insert_value(packed, word, i)
    builder.ret(packed)
    compiled.library.add_ir_module(module)
    return f"{name}_words"


def _numbers(dtype: Any) -> list[tuple[int, int]]:
    """Return where an element's numbers lie and their sizes; a complex number is two."""
    numbers = []
    fields = zip(records.field_dtypes(dtype), records.offsets(dtype), strict=True)
    for field, offset in fields:
        parts = 2 if field.kind == "c" else 1
        size = field.itemsize // parts
        numbers += [(offset + size * part, size) for part in range(parts)]
    return numbers


def _word(size: int) -> ir.Type:
    """Return the type in which a number of so many bytes is passed."""
    return ir.IntType(64 if size > 4 else 32)


def _memory(builder: ir.IRBuilder, dtype: Any) -> Any:
    memory = builder.alloca(ir.ArrayType(ir.IntType(64), -(-dtype.itemsize // 8)))
    return builder.bitcast(memory, ir.IntType(8).as_pointer())


def _number_at(builder: ir.IRBuilder, memory: Any, offset: int, number: Any) -> Any:
    return builder.bitcast(builder.gep(memory, [ir.IntType(64)(offset)]), number.as_pointer())


def texts_of(library: _Library, nvvm: Any, exported: str) -> list[str]:
    """Return the text of a library's modules: one function is visible, others are inlined."""
    texts = []
    for module in library.everything():
        for function in module.functions:
            if function.name == exported:
                function.linkage = "external"
            elif not function.is_declaration and function.linkage in ("", "external"):
                function.linkage = "linkonce_odr"
                function.attributes.add("alwaysinline")
        if "nvvmir.version" not in module.namedmetadata:
            numbers = module.add_metadata([ir.IntType(32)(n) for n in nvvm.ir_version()])
            module.add_named_metadata("nvvmir.version", numbers)
        texts.append(str(module))
    return texts


def compile_texts(capability: tuple[int, int], nvvm: Any, texts: list[str], kind: str) -> bytes:
    """Return the code of modules, compiled by cuda.bindings.nvvm: an option says of which kind."""
    program = nvvm.create_program()
    try:
        for i, text in enumerate(map(str.encode, texts)):
            nvvm.add_module_to_program(program, text, len(text), f"{i}.ll")
        device = libdevice()
        nvvm.lazy_add_module_to_program(program, device, len(device), "libdevice")
        options = [f"-arch=compute_{capability[0]}{capability[1]}", "-opt=3", kind]
        try:
            nvvm.compile_program(program, len(options), options)
        except nvvm.nvvmError as error:
            log = bytearray(nvvm.get_program_log_size(program))
            nvvm.get_program_log(program, log)
            raise CompileError(f"libNVVM: {log.decode(errors='replace')}") from error
        code = bytearray(nvvm.get_compiled_result_size(program))
        nvvm.get_compiled_result(program, code)
        return bytes(code)
    finally:
        nvvm.destroy_program(program)


@cache
def libdevice() -> bytes:
    return Path(import_module("cuda.pathfinder").find_bitcode_lib("device")).read_bytes()
