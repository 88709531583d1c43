"""Wrappers of operators: with a fixed number of parameters, and with the device ABI."""

from __future__ import annotations

import types as pytypes
from typing import Any

import numpy as np

from gpualgo._base import records
from gpualgo._base.records import Argument, Separate
from gpualgo._operators.key import python_function
from gpualgo._operators.numpy_rules import errors, table
from gpualgo._operators.numpy_rules.rewrite import Target
from gpualgo._operators.operator import PYTHON, Operator


def function_of(op: Operator, arity: int) -> pytypes.FunctionType:
    """Return op's function to compile, with exactly `arity` parameters."""
    return as_function(op.function if op.name is None else PYTHON[op.name], arity)


def as_function(fn: Any, arity: int) -> pytypes.FunctionType:
    """Return a Python function of exactly `arity` parameters that computes fn.

    fn may have defaults or variadic parameters, or be a C function.
    """
    function = python_function(fn)
    if function is not None:
        code = function.__code__
        variadic = code.co_flags & 0x0C  # *args, **kwargs
        if code.co_argcount == arity and not variadic and not code.co_kwonlyargcount:
            return function
    elif table.entry_of(fn) is None:
        errors.check_function(fn)
        raise TypeError(
            f"op is a {type(fn).__name__}, which numba cannot compile; "
            "wrap it in a lambda of scalars"
        )
    callee = fn if function is None else function
    wrappers: list[Any] = [
        lambda a: callee(a),
        lambda a, b: callee(a, b),
        lambda a, b, c: callee(a, b, c),
        lambda a, b, c, d: callee(a, b, c, d),
        lambda a, b, c, d, e: callee(a, b, c, d, e),
        lambda a, b, c, d, e, f: callee(a, b, c, d, e, f),
        lambda a, b, c, d, e, f, g: callee(a, b, c, d, e, f, g),
        lambda a, b, c, d, e, f, g, h: callee(a, b, c, d, e, f, g, h),
    ]
    wrapper: pytypes.FunctionType = wrappers[arity - 1]
    return wrapper


def abi_wrapper(
    target: Target, dispatcher: Any, arguments: tuple[Argument, ...], result: np.dtype[Any]
) -> Any:
    """Return wrapper(result, state, args), which calls dispatcher on elements in memory.

    Elements are converted by the types' data models: a bool is one byte in memory, a float16 two.
    """
    from numba import types

    from gpualgo._operators.numpy_rules import storage

    arg_types = tuple(map(storage.argument_type, arguments))

    @target.extending.intrinsic  # type: ignore[untyped-decorator]
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
