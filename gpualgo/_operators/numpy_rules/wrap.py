"""What stands around an operator: slots for its arrays, a number of parameters, the device ABI."""

from __future__ import annotations

import types as pytypes
from typing import Any

from gpualgo._operators import captured
from gpualgo._operators.guards import is_full
from gpualgo._operators.key import key_of, names_read, python_function
from gpualgo._operators.numpy_rules import functions
from gpualgo._operators.numpy_rules.rewrite import Target
from gpualgo._operators.operator import PYTHON, Operator


def function_of(op: Operator, arity: int) -> pytypes.FunctionType:
    """Return a Python function of exactly `arity` parameters, with slots instead of arrays."""
    if op.name is not None:
        return as_function(PYTHON[op.name], arity)
    if not op.arrays:
        return as_function(op.fn, arity)
    fn = python_function(op.fn)
    assert fn is not None
    detached = _Detacher().copy(fn, {})
    if key_of(detached) != op.key:
        raise RuntimeError(
            "op reads other values than when it was called; change what it captures between calls"
        )
    return as_function(detached, arity)


class _Detacher:
    """Copies functions without the arrays that they capture, in the order of their key."""

    def __init__(self) -> None:
        self.num_words = 0

    def copy(
        self, fn: pytypes.FunctionType, under_way: dict[int, pytypes.FunctionType]
    ) -> pytypes.FunctionType:
        """Return fn reading slots; `under_way` holds the functions that lead to it."""
        if id(fn) in under_way:
            return under_way[id(fn)]
        cells = tuple(pytypes.CellType() for _ in fn.__closure__ or ())
        names: dict[str, Any] = {"__name__": fn.__module__}
        copy = pytypes.FunctionType(fn.__code__, names, fn.__name__, fn.__defaults__, cells or None)
        copy.__kwdefaults__ = fn.__kwdefaults__
        under_way = {**under_way, id(fn): copy}
        for cell, original in zip(cells, fn.__closure__ or (), strict=True):
            if is_full(original):
                cell.cell_contents = self._replaced(original.cell_contents, under_way)
        for name in names_read(fn.__code__):
            if name in fn.__globals__:
                names[name] = self._replaced(fn.__globals__[name], under_way)
        return copy

    def _replaced(self, value: Any, under_way: dict[int, pytypes.FunctionType]) -> Any:
        if captured.is_array(value):
            slot = captured.Slot(value, self.num_words)
            self.num_words += captured.num_words(slot.ndim)
            return slot
        function = python_function(value)
        return value if function is None else self.copy(function, under_way)


def as_function(fn: Any, arity: int) -> pytypes.FunctionType:
    """Return a Python function of exactly `arity` parameters that computes fn.

    fn may have defaults or a variadic tail, or be a function of a module written in C.
    """
    function = python_function(fn)
    if function is not None:
        code = function.__code__
        variadic = code.co_flags & 0x0C  # *args, **kwargs
        if code.co_argcount == arity and not variadic and not code.co_kwonlyargcount:
            return function
    elif functions.rule_of(fn) is None:
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
    target: Target, dispatcher: Any, arg_types: tuple[Any, ...], result_type: Any
) -> Any:
    """Return wrapper(result, state, args): dispatcher on elements as they lie in memory.

    Elements go through each type's data model: a bool is a byte there, a float16 two.
    """
    from numba import types

    @target.extending.intrinsic  # type: ignore[untyped-decorator]
    def apply(typingctx: Any, result: Any, args: Any) -> Any:
        callee = typingctx.resolve_value_type(dispatcher)
        inner = callee.get_call_type(typingctx, arg_types, {})

        def generate(context: Any, builder: Any, sig: Any, values: Any) -> Any:
            def element(pointer: Any, ty: Any) -> Any:
                return builder.bitcast(pointer, context.get_data_type(ty).as_pointer())

            operands = []
            for i, ty in enumerate(arg_types):
                slot = builder.gep(values[1], [context.get_constant(types.intp, i)])
                operands.append(context.unpack_value(builder, ty, element(builder.load(slot), ty)))
            function = context.get_function(callee, inner)
            for library in getattr(function, "libs", ()):
                context.active_code_library.add_linking_library(library)
            value = function(builder, operands)
            value = context.cast(builder, value, inner.return_type, result_type)
            context.pack_value(builder, result_type, value, element(values[0], result_type))
            return context.get_dummy_value()

        return types.void(result, args), generate

    def wrapper(result, state, args):  # type: ignore[no-untyped-def]
        apply(result, args)

    return wrapper
