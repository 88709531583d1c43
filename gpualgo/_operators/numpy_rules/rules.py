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

from gpualgo._operators.numpy_rules.codegen import (
    MAX_UNROLLED_POWER,
    ORDER,
    call_generator,
    extreme_generator,
    generate_cast,
    power_generator,
    rounded,
    sign_generator,
    wrapping_floordiv,
)
from gpualgo._operators.numpy_rules.functions import (
    BOOL_LOGIC,
    COMPLEX_SAME_AS,
    CONSTRUCTORS,
    REAL_SAME_AS,
    ROUNDING,
    SAME_AS,
    rule_of,
)
from gpualgo._operators.numpy_rules.promotion import WEAK, is_inexact
from gpualgo._operators.numpy_rules.types import Weak, common_name, native, scalar_name, scalar_type

Plan = tuple[Any, tuple[types.Type, ...], types.Type]  # function, argument types, result type


def plan(fn: Any, args: tuple[types.Type, ...]) -> Plan | None:
    """Return what to compute for fn on scalar types; None where an argument is no scalar."""
    name = common_name(args)
    if name is None:
        return None
    rule = rule_of(fn)
    callee: Any
    if rule == "construct":
        target = scalar_type(CONSTRUCTORS.get(fn, "bfloat16"))
        return None, args, target
    if rule == "plain":
        return fn, tuple(native(ty) for ty in args), types.void
    if rule == "compare" or rule == "bool":
        callee = SAME_AS.get(fn, fn)
        if not name.startswith("complex"):
            callee = REAL_SAME_AS.get(callee, callee)
        return callee, _compare_types(name, args), types.boolean
    if rule in ("divide", "floating") and not is_inexact(name):
        name = "float64" if name not in WEAK or rule == "floating" else "float"
        name = "complex128" if rule == "divide" and "complex" in map(scalar_name, args) else name
    if name == "bool" and fn in BOOL_LOGIC:
        return BOOL_LOGIC[fn], args, types.boolean
    if name == "bool" and rule in ("power", "unary"):
        name = "int8"
    _check_literals(fn, name, args)
    joint = scalar_type(name)
    result = joint
    if name.startswith("complex") and fn in (builtins.abs, np.absolute, np.abs):
        result = types.float32 if name == "complex64" else types.float64
    callee = SAME_AS.get(fn, fn)
    same = COMPLEX_SAME_AS if name.startswith("complex") else REAL_SAME_AS
    callee = same.get(callee, callee)
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
            return value(value), generate_cast
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
    if fn in ROUNDING and common_name(args) is not None:
        return _resolve_rounding(fn, args[0])
    planned = plan(fn, args)
    if planned is None:
        planned = fn, tuple(native(ty) for ty in args), types.void
    callee, call_types, result = planned
    if callee is None:
        return result(*args), generate_cast
    exponent = args[1].value if rule_of(fn) == "power" and isinstance(args[1], Weak) else None
    exponent = 2 if fn is np.square else exponent
    if fn is np.sign and not str(call_types[0]).startswith("complex"):
        return result(*args), sign_generator(typingctx, call_types[0], result)
    if isinstance(exponent, int) and 1 <= exponent <= MAX_UNROLLED_POWER:
        return result(*args), power_generator(typingctx, call_types, exponent, result)
    if callee in ORDER:
        return result(*args), extreme_generator(typingctx, callee, call_types, result)
    candidates = (callee, fn, np.fmod) if callee is math.fmod else (callee, fn)  # the CPU's
    callee_type, inner = _implementation(typingctx, candidates, tuple(map(native, call_types)))
    if result is types.void:
        result = inner.return_type
    generate = call_generator(callee_type, inner, call_types, result)
    if callee is operator.floordiv and call_types == (types.int64, types.int64):
        generate = wrapping_floordiv(generate)
    return result(*args), generate


def _resolve_rounding(fn: Any, ty: types.Type) -> Any:
    """Return (signature, code generator) of floor, ceil, trunc or rint."""
    is_python = not isinstance(fn, np.ufunc)
    name = str(scalar_name(ty))
    if name.startswith("complex"):
        raise TypingError(f"{fn.__name__} has no meaning on {name}")
    result = Weak("int") if is_python else scalar_type(name)
    if not is_inexact(name) and name != "float":
        if fn is np.rint:
            result = types.float64
        return result(ty), generate_cast
    computed = native(ty)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        value = context.cast(builder, args[0], ty, computed)
        value = rounded(builder, value, ROUNDING[fn])
        return context.cast(builder, value, computed, result)

    return result(ty), generate


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
