"""NumPy-2 typing of the functions that operators call, as numba intrinsics.

A rule says which dtype a function computes in and which it returns; the computing itself is
numba's own implementation for that dtype.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types
from numba.core.errors import TypingError

from gpualgo._numba_types import (
    Weak,
    common_name,
    native,
    scalar_name,
    scalar_type,
)
from gpualgo._promotion import WEAK, is_inexact

_ARITHMETIC = (
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod,
    operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift,
    np.add, np.subtract, np.multiply, np.floor_divide, np.remainder, np.mod,
    np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift,
    np.maximum, np.minimum, np.fmax, np.fmin, builtins.max, builtins.min,
)  # fmt: skip
_UNARY = (
    operator.neg, operator.pos, operator.invert, builtins.abs, np.negative, np.absolute, np.abs,
    np.fabs, np.sign, np.conjugate, np.square,
)  # fmt: skip
_COMPARE = (
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
    np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal,
)  # fmt: skip
_TO_BOOL = (
    operator.not_, builtins.bool, math.isnan, math.isinf, math.isfinite, np.isnan, np.isinf,
    np.isfinite, np.logical_not, np.logical_and, np.logical_or, np.logical_xor,
)  # fmt: skip
_POWER = (operator.pow, builtins.pow, np.power)
_DIVIDE = (operator.truediv, np.true_divide, np.divide)
_FLOATING = (
    math.sqrt, math.exp, math.expm1, math.log, math.log2, math.log10, math.log1p, math.sin,
    math.cos, math.tan, math.asin, math.acos, math.atan, math.atan2, math.sinh, math.cosh,
    math.tanh, math.asinh, math.acosh, math.atanh, math.erf, math.erfc, math.gamma, math.lgamma,
    math.hypot, math.copysign, math.fmod, math.pow, math.fabs, np.fmod,
    np.sqrt, np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.sin, np.cos,
    np.tan, np.arcsin, np.arccos, np.arctan, np.arctan2, np.sinh, np.cosh, np.tanh, np.arcsinh,
    np.arccosh, np.arctanh, np.hypot, np.copysign, np.floor, np.ceil, np.trunc, np.rint,
)  # fmt: skip
_PLAIN = (math.floor, math.ceil, math.trunc, builtins.round)  # numba's own types throughout
_CONSTRUCTORS: dict[Any, str] = {
    getattr(np, name): name
    for name in (
        "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float16", "float32", "float64", "complex64", "complex128",
    )
}  # fmt: skip
_CONSTRUCTORS |= {np.bool_: "bool", builtins.int: "int64", builtins.float: "float64",
                  builtins.complex: "complex128"}  # fmt: skip

# NumPy spells bool arithmetic as logic.
_BOOL_LOGIC = {
    operator.add: operator.or_, operator.mul: operator.and_, np.add: operator.or_,
    np.multiply: operator.and_, operator.invert: operator.not_,
}  # fmt: skip
# One implementation for functions that agree, so that CUDA needs no ufunc machinery for them.
_SAME_AS = {
    np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul,
    np.floor_divide: operator.floordiv, np.remainder: operator.mod, np.mod: operator.mod,
    np.bitwise_and: operator.and_, np.bitwise_or: operator.or_, np.bitwise_xor: operator.xor,
    np.left_shift: operator.lshift, np.right_shift: operator.rshift, np.negative: operator.neg,
    np.absolute: builtins.abs, np.less: operator.lt, np.less_equal: operator.le,
    np.greater: operator.gt, np.greater_equal: operator.ge, np.equal: operator.eq,
    np.not_equal: operator.ne, np.true_divide: operator.truediv, np.power: operator.pow,
    builtins.pow: operator.pow,
}  # fmt: skip

# NumPy's functions of real numbers that the math module has under one name or another.
_REAL_SAME_AS = {
    np.sqrt: math.sqrt, np.exp: math.exp, np.expm1: math.expm1, np.log: math.log,
    np.log2: math.log2, np.log10: math.log10, np.log1p: math.log1p, np.sin: math.sin,
    np.cos: math.cos, np.tan: math.tan, np.arcsin: math.asin, np.arccos: math.acos,
    np.arctan: math.atan, np.arctan2: math.atan2, np.sinh: math.sinh, np.cosh: math.cosh,
    np.tanh: math.tanh, np.arcsinh: math.asinh, np.arccosh: math.acosh, np.arctanh: math.atanh,
    np.fmod: math.fmod, np.hypot: math.hypot, np.copysign: math.copysign, np.fabs: math.fabs,
}  # fmt: skip

_RULES: dict[Any, str] = {}
for _rule, _functions in (
    ("arithmetic", _ARITHMETIC), ("unary", _UNARY), ("compare", _COMPARE), ("bool", _TO_BOOL),
    ("power", _POWER), ("divide", _DIVIDE), ("floating", _FLOATING), ("plain", _PLAIN),
    ("construct", _CONSTRUCTORS), ("where", (np.where,)),
):  # fmt: skip
    _RULES.update(dict.fromkeys(_functions, _rule))

Plan = tuple[Any, tuple[types.Type, ...], types.Type]  # function, argument types, result type


def rule_of(fn: Any) -> str | None:
    """Return the name of the rule that types fn, else None."""
    try:
        found = _RULES.get(fn)
    except TypeError:
        return None
    if found is None and getattr(fn, "__name__", "") == "bfloat16":
        return "construct"
    return found


def folds(fn: Any) -> bool:
    """Return whether fn of many arguments is fn of two, folded."""
    return fn in (builtins.max, builtins.min)


def plan(fn: Any, args: tuple[types.Type, ...]) -> Plan | None:
    """Return what to compute for fn on scalar types; None where an argument is no scalar."""
    name = common_name(args)
    if name is None:
        return None
    rule = rule_of(fn)
    if rule == "construct":
        target = scalar_type(_CONSTRUCTORS.get(fn, "bfloat16"))
        return None, args, target
    if rule == "plain":
        return fn, tuple(native(ty) for ty in args), types.void
    if rule == "compare" or rule == "bool":
        return _SAME_AS.get(fn, fn), _compare_types(name, args), types.boolean
    if rule in ("divide", "floating") and not is_inexact(name):
        name = "float64" if name not in WEAK or rule == "floating" else "float"
        name = "complex128" if rule == "divide" and "complex" in map(scalar_name, args) else name
    if name == "bool" and fn in _BOOL_LOGIC:
        return _BOOL_LOGIC[fn], args, types.boolean
    if name == "bool" and rule in ("power", "unary"):
        name = "int8"
    _check_literals(fn, name, args)
    joint = scalar_type(name)
    result = joint
    if name.startswith("complex") and fn in (builtins.abs, np.absolute, np.abs):
        result = types.float32 if name == "complex64" else types.float64
    callee: Any = _SAME_AS.get(fn, fn)
    if not name.startswith("complex"):
        callee = _REAL_SAME_AS.get(callee, callee)
    return callee, (joint,) * len(args), result


def _compare_types(name: str, args: tuple[types.Type, ...]) -> tuple[types.Type, ...]:
    """Integers compare exactly in numba's own types; all else in the common type."""
    if name in WEAK or not is_inexact(name):
        return tuple(native(ty) for ty in args)
    return (scalar_type(name),) * len(args)


def _check_literals(fn: Any, name: str, args: tuple[types.Type, ...]) -> None:
    if name in WEAK or name == "bool" or is_inexact(name):
        return
    limits = np.iinfo(name)
    for ty in args:
        if isinstance(ty, Weak) and ty.value is not None and not (
            limits.min <= ty.value <= limits.max
        ):  # fmt: skip
            raise TypingError(f"Python integer {ty.value} is out of bounds for {name}")


@cache
def weak_counter(make: Callable[..., Any]) -> Any:
    """Return the intrinsic that turns a loop's int64 counter into a Python int."""

    def weak_counter(typingctx: Any, value: Any) -> Any:
        if not isinstance(value, types.Integer):
            return value(value), _generate_cast
        return Weak("int")(value), lambda context, builder, sig, args: context.cast(
            builder, args[0], sig.args[0], types.int64
        )

    return make(weak_counter)


_intrinsics: dict[tuple[Any, int, Any], Any] = {}


def intrinsic_for(fn: Any, arity: int, make: Callable[..., Any]) -> Any:
    """Return the numba intrinsic that computes fn by its rule, made once per target."""
    key = (fn, arity, make)
    if key not in _intrinsics:
        if arity == 1:

            def typer(typingctx: Any, a: Any) -> Any:
                return _resolve(typingctx, fn, (a,))
        elif arity == 2:

            def typer(typingctx: Any, a: Any, b: Any) -> Any:  # type: ignore[misc]
                return _resolve(typingctx, fn, (a, b))
        elif rule_of(fn) == "where" and arity == 3:

            def typer(typingctx: Any, a: Any, b: Any, c: Any) -> Any:  # type: ignore[misc]
                return _resolve_where(a, b, c)
        else:
            raise TypingError(f"{fn.__name__} cannot be called with {arity} scalars")
        typer.__name__ = f"numpy_{fn.__name__}"
        _intrinsics[key] = make(typer)
    return _intrinsics[key]


def _resolve(typingctx: Any, fn: Any, args: tuple[types.Type, ...]) -> Any:
    """Return (signature, code generator) of fn on numba types, as an intrinsic does."""
    planned = plan(fn, args)
    if planned is None:
        planned = fn, tuple(native(ty) for ty in args), types.void
    callee, call_types, result = planned
    if callee is None:
        return result(*args), _generate_cast
    exponent = args[1].value if rule_of(fn) == "power" and isinstance(args[1], Weak) else None
    if isinstance(exponent, int) and 1 <= exponent <= _MAX_UNROLLED_POWER:
        return result(*args), _power_generator(typingctx, call_types, exponent, result)
    if callee in _ORDER:
        return result(*args), _extreme_generator(typingctx, callee, call_types, result)
    candidates = (callee, fn, np.fmod) if callee is math.fmod else (callee, fn)  # the CPU's
    callee_type, inner = _implementation(typingctx, candidates, tuple(map(native, call_types)))
    if result is types.void:
        result = inner.return_type
    generate = _call_generator(callee_type, inner, call_types, result)
    if callee is operator.floordiv and call_types == (types.int64, types.int64):
        generate = _wrapping_floordiv(generate)
    return result(*args), generate


def _implementation(typingctx: Any, candidates: Any, args: tuple[types.Type, ...]) -> Any:
    """Return numba's type and signature of the first candidate that this target has."""
    failure: Exception | None = None
    for candidate in candidates:
        try:
            callee = typingctx.resolve_value_type(candidate)
            return callee, callee.get_call_type(typingctx, args, {})
        except Exception as error:  # numba raises several kinds, KeyError among them
            failure = failure or error
    raise TypingError(str(failure)) from failure


def _resolve_where(condition: Any, a: Any, b: Any) -> Any:
    """Return (signature, code generator) of np.where on scalars."""
    name = common_name((a, b))
    if name is None or scalar_name(condition) is None:
        raise TypingError("where needs three scalars")
    result = scalar_type(name)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        chosen = context.is_true(
            builder, native(condition), context.cast(builder, args[0], condition, native(condition))
        )
        values = (
            context.cast(builder, value, source, result)
            for value, source in zip(args[1:], (a, b), strict=True)
        )
        return builder.select(chosen, *values)

    return result(condition, a, b), generate


def _generate_cast(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return context.cast(builder, args[0], sig.args[0], sig.return_type)


def _call_generator(callee: Any, inner: Any, call_types: Any, result: Any) -> Callable[..., Any]:
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


def _wrapping_floordiv(divide: Callable[..., Any]) -> Callable[..., Any]:
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


_ORDER = {builtins.max: operator.gt, builtins.min: operator.lt}
_MAX_UNROLLED_POWER = 16


def _extreme_generator(typingctx: Any, fn: Any, call_types: Any, result: Any) -> Callable[..., Any]:
    """Return code for Python's max or min of two: the second if it is strictly beyond."""
    compare = typingctx.resolve_value_type(_ORDER[fn])
    pair = tuple(map(native, call_types))
    inner = compare.get_call_type(typingctx, pair, {})
    beyond = _call_generator(compare, inner, pair, types.boolean)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        a, b = (
            context.cast(builder, context.cast(builder, value, source, call), call, native(call))
            for value, source, call in zip(args, sig.args, call_types, strict=True)
        )
        condition = beyond(context, builder, types.boolean(pair[1], pair[0]), (b, a))
        return context.cast(builder, builder.select(condition, b, a), pair[0], result)

    return generate


def _power_generator(
    typingctx: Any, call_types: Any, exponent: int, result: Any
) -> Callable[..., Any]:
    """Return code for a constant power: squarings and products, in the base's own type."""
    base_type = call_types[0]
    times = typingctx.resolve_value_type(operator.mul)
    inner = times.get_call_type(typingctx, (native(base_type), native(base_type)), {})
    product = _call_generator(times, inner, (base_type, base_type), base_type)
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
