"""LLVM code for what the rules decide, by numba's own implementations where it has them."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import Any

from numba import types

from gpualgo._operators.numpy_rules.types import native


def generate_cast(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return context.cast(builder, args[0], sig.args[0], sig.return_type)


def call_generator(callee: Any, inner: Any, call_types: Any, result: Any) -> Callable[..., Any]:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        values = []
        for value, source, call, formal in zip(args, sig.args, call_types, inner.args, strict=True):
            rounded = context.cast(builder, value, source, call)
            computed = context.cast(builder, rounded, call, native(call))
            values.append(context.cast(builder, computed, native(call), formal))
        function = context.get_function(callee, inner)
        for library in getattr(function, "libs", ()):
            context.active_code_library.add_linking_library(library)
        value = function(builder, values)
        return context.cast(builder, value, inner.return_type, result)

    return generate


def wrapping_floordiv(divide: Callable[..., Any]) -> Callable[..., Any]:
    """Let the smallest int64 divided by -1 wrap as in NumPy, where numba gives 0."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        dividend, divisor = (
            context.cast(builder, value, source, types.int64)
            for value, source in zip(args, sig.args, strict=True)
        )
        minus_one = context.get_constant(types.int64, -1)
        is_negation = builder.icmp_signed("==", divisor, minus_one)
        return builder.select(
            is_negation, builder.neg(dividend), divide(context, builder, sig, args)
        )

    return generate


ORDER = {builtins.max: operator.gt, builtins.min: operator.lt}
MAX_UNROLLED_POWER = 16


def extreme_generator(typingctx: Any, fn: Any, call_types: Any, result: Any) -> Callable[..., Any]:
    """Return code for Python's max or min of two: the second if it is strictly beyond."""
    compare = typingctx.resolve_value_type(ORDER[fn])
    pair = tuple(map(native, call_types))
    inner = compare.get_call_type(typingctx, pair, {})
    beyond = call_generator(compare, inner, pair, types.boolean)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        a, b = (
            context.cast(builder, context.cast(builder, value, source, call), call, native(call))
            for value, source, call in zip(args, sig.args, call_types, strict=True)
        )
        condition = beyond(context, builder, types.boolean(pair[1], pair[0]), (b, a))
        return context.cast(builder, builder.select(condition, b, a), pair[0], result)

    return generate


def power_generator(
    typingctx: Any, call_types: Any, exponent: int, result: Any
) -> Callable[..., Any]:
    """Return code for a constant power: squarings and products, in the base's own type."""
    base_type = call_types[0]
    times = typingctx.resolve_value_type(operator.mul)
    inner = times.get_call_type(typingctx, (native(base_type), native(base_type)), {})
    product = call_generator(times, inner, (base_type, base_type), base_type)
    pair = base_type(base_type, base_type)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        square = context.cast(builder, args[0], sig.args[0], base_type)
        power, remaining = None, exponent
        while remaining:
            if remaining & 1:
                factors = (power, square)
                power = square if power is None else product(context, builder, pair, factors)
            remaining >>= 1
            if remaining:
                square = product(context, builder, pair, (square, square))
        return context.cast(builder, power, base_type, result)

    return generate


def sign_generator(typingctx: Any, ty: types.Type, result: Any) -> Callable[..., Any]:
    """Return code for the sign of a real number; that of 0 or NaN is itself."""
    one = native(ty)
    above, below = (
        typingctx.resolve_value_type(fn).get_call_type(typingctx, (one, one), {})
        for fn in (operator.gt, operator.lt)
    )

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        value = context.cast(builder, args[0], sig.args[0], one)
        zero, plus = (context.get_constant(one, number) for number in (0, 1))
        minus = context.cast(builder, context.get_constant(types.int64, -1), types.int64, one)

        def holds(fn: Any, inner: Any) -> Any:
            operands = [
                context.cast(builder, operand, one, formal)
                for operand, formal in zip((value, zero), inner.args, strict=True)
            ]
            return context.get_function(fn, inner)(builder, operands)

        negative = builder.select(holds(operator.lt, below), minus, value)
        sign = builder.select(holds(operator.gt, above), plus, negative)
        return context.cast(builder, sign, one, result)

    return generate


def rounded(builder: Any, value: Any, name: str) -> Any:
    """Return value rounded as LLVM's floor, ceil, trunc or rint does."""
    if name != "rint":
        function = builder.module.declare_intrinsic(f"llvm.{name}", [value.type])
        return builder.call(function, [value])
    # NVVM has no rint. Adding a number that leaves no bits for a fraction rounds to even.
    zero = value.type(0.0)
    big = value.type(2.0**23 if str(value.type) == "float" else 2.0**52)
    is_below = builder.fcmp_ordered("<", value, zero)
    size = builder.select(is_below, builder.fsub(value.type(-0.0), value), value)
    whole = builder.fsub(builder.fadd(size, big), big)
    signed = builder.select(is_below, builder.fsub(value.type(-0.0), whole), whole)
    is_settled = builder.or_(  # a zero keeps its sign; what is large or NaN is whole already
        builder.fcmp_unordered(">=", size, big), builder.fcmp_ordered("==", value, zero)
    )
    return builder.select(is_settled, value, signed)
