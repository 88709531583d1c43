"""Operator -> numba function on storage scalars, for the CPU kernels to call and inline.

A storage scalar is an element as it lies in memory: float16 and bfloat16 are uint16 bits, every
other dtype is itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir as llvm
from numba import njit, types
from numba.core import datamodel, extending, imputils, ir, ir_utils, rewrites
from numba.np import arrayobj

from gpualgo._base import dtypes
from gpualgo._base.memo import Memo
from gpualgo._cpu import captured as state
from gpualgo._cpu import forking
from gpualgo._operators.numpy_rules import rewrite, wrap
from gpualgo._operators.numpy_rules.errors import explained, result_of
from gpualgo._operators.numpy_rules.types import Narrow, scalar_type
from gpualgo._operators.operator import Operator

_compiled: Memo[CompiledOperator] = Memo(1024)
_targets: Memo[rewrite.Target] = Memo(1)
_OPTIONS = {"nogil": True, "error_model": "numpy"}


@dataclass(frozen=True)
class CompiledOperator:
    """A numba dispatcher on storage scalars, and the dtype that it returns."""

    fn: Any
    result_dtype: np.dtype[Any]


def _install() -> rewrite.Target:
    target = rewrite.Target(
        ir, ir_utils, rewrites, extending, datamodel.models, imputils, arrayobj, False
    )
    rewrite.install(target)
    return target


def compile_operator(
    op: Operator,
    arg_dtypes: tuple[np.dtype[Any], ...],
    result_dtype: np.dtype[Any] | None,
) -> CompiledOperator:
    """Compile op for arguments of arg_dtypes; its result is cast to result_dtype if given."""
    key = (op.key, arg_dtypes, result_dtype)
    return _compiled.made(key, lambda: _compile(op, arg_dtypes, result_dtype))


def compile_cast(source: np.dtype[Any], target: np.dtype[Any]) -> CompiledOperator:
    """Compile the conversion of one dtype into another."""
    return compile_operator(_IDENTITY, (source,), target)


_IDENTITY = Operator(lambda a: a)


def _compile(
    op: Operator, arg_dtypes: tuple[np.dtype[Any], ...], result_dtype: np.dtype[Any] | None
) -> CompiledOperator:
    forking.check()
    fn = wrap.function_of(op, len(arg_dtypes))
    source = op.fn
    read = state.words_of(op.key) if op.arrays else None
    place = 0 if read is None else int(read.ctypes.data)
    functions: dict[Any, Any] = {}

    def device_function(inner: Any) -> Any:
        if inner not in functions:
            functions[inner] = njit(**_OPTIONS)(rewrite.adopt(inner, adoption))
        return functions[inner]

    def words(builder: Any) -> Any:
        word = llvm.IntType(64)
        return builder.inttoptr(word(place), word.as_pointer())

    adoption = rewrite.Adoption(
        _targets.made("cpu", _install), device_function, None if read is None else words
    )
    args = tuple(scalar_type(str(dtypes.name_of(dtype))) for dtype in arg_dtypes)
    with explained(source, arg_dtypes):
        dispatcher = device_function(fn)
        dispatcher.compile(args)
    if op is _IDENTITY:
        assert result_dtype is not None
        result = result_dtype
    else:
        returned = dispatcher.overloads[args].signature.return_type
        result = result_of(source, returned, result_dtype)
    loads = [_loader(arg) for arg in args]
    finish = _finisher(scalar_type(str(dtypes.name_of(result))))
    wrapper = njit(**_OPTIONS)(_wrapper(dispatcher, finish, loads))
    wrapper.words = read  # kernels hold the function, and so what it reads
    return CompiledOperator(wrapper, result)


@cache
def _loader(ty: types.Type) -> Any:
    """Return the intrinsic that makes ty out of its storage."""

    @extending.intrinsic
    def load(typingctx: Any, stored: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            if not isinstance(ty, Narrow):
                return context.cast(builder, args[0], stored, ty)
            return context.data_model_manager[ty].from_data(builder, args[0])

        return ty(stored), generate

    return load


@cache
def _finisher(ty: types.Type) -> Any:
    """Return the intrinsic that casts to ty and gives its storage."""

    @extending.intrinsic
    def finish(typingctx: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            result = context.cast(builder, args[0], value, ty)
            if not isinstance(ty, Narrow):
                return result
            return context.data_model_manager[ty].as_data(builder, result)

        return (types.uint16 if isinstance(ty, Narrow) else ty)(value), generate

    return finish


def _wrapper(fn: Any, finish: Any, load: list[Any]) -> Any:
    """Return the storage-to-storage function of fn, for its number of arguments."""
    if len(load) == 1:
        (la,) = load
        return lambda a: finish(fn(la(a)))
    if len(load) == 2:
        la, lb = load
        return lambda a, b: finish(fn(la(a), lb(b)))
    if len(load) == 3:
        la, lb, lc = load
        return lambda a, b, c: finish(fn(la(a), lb(b), lc(c)))
    if len(load) == 4:
        la, lb, lc, ld = load
        return lambda a, b, c, d: finish(fn(la(a), lb(b), lc(c), ld(d)))
    return _wide_wrapper(fn, finish, load)


def _wide_wrapper(fn: Any, finish: Any, load: list[Any]) -> Any:
    la, lb, lc, ld, le = load[:5]
    if len(load) == 5:
        return lambda a, b, c, d, e: finish(fn(la(a), lb(b), lc(c), ld(d), le(e)))
    lf = load[5]
    if len(load) == 6:
        return lambda a, b, c, d, e, f: finish(fn(la(a), lb(b), lc(c), ld(d), le(e), lf(f)))
    lg = load[6]
    if len(load) == 7:
        return lambda a, b, c, d, e, f, g: finish(
            fn(la(a), lb(b), lc(c), ld(d), le(e), lf(f), lg(g))
        )
    lh = load[7]
    return lambda a, b, c, d, e, f, g, h: finish(
        fn(la(a), lb(b), lc(c), ld(d), le(e), lf(f), lg(g), lh(h))
    )
