"""NumPy's functions of integers and bool as LLVM code.

Division by zero gives 0, overflow wraps, and a shift by the width or more gives 0 or -1 (the sign).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir as llvm

from gpualgo._operators.numpy_rules import values
from gpualgo._operators.numpy_rules.storage import i1
from gpualgo._operators.numpy_rules.values import Integer, choose, is_off, loop


def _sign(a: Any) -> Any:
    positive = (a != 0).extended(a.raw.type)
    return choose(a < 0, -1, positive) if a.signed else positive


def _divided(a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Return a / b and its remainder, both toward zero, and whether b is zero.

    The divisor is replaced by 1 if the division could trap.
    """
    is_zero = b == 0
    if not a.signed:
        divisor = choose(is_zero, 1, b)
        return a.emit("udiv", divisor), a.emit("urem", divisor), is_zero
    is_minus = b == -1
    divisor = choose(is_zero | is_minus, 1, b)
    return choose(is_minus, -a, a.emit("sdiv", divisor)), a.emit("srem", divisor), is_zero


def _floor_divide(a: Any, b: Any) -> Any:
    quotient, remainder, is_zero = _divided(a, b)
    if a.signed:
        quotient = quotient - is_off(remainder, b).extended(a.raw.type)
    return choose(is_zero, 0, quotient)


def _remainder(a: Any, b: Any) -> Any:
    _, remainder, is_zero = _divided(a, b)
    if a.signed:
        remainder = choose(is_off(remainder, b), remainder + b, remainder)
    return choose(is_zero, 0, remainder)


def _fmod(a: Any, b: Any) -> Any:
    _, remainder, is_zero = _divided(a, b)
    return choose(is_zero, 0, remainder)


def _right_shift(a: Any, b: Any) -> Any:
    if not a.signed:
        return _shifted(a, b, "lshr", 0)
    return _shifted(a, b, "ashr", a.emit("ashr", a.raw.type.width - 1))


def _shifted(a: Any, b: Any, instruction: str, beyond: Any) -> Any:
    fits = b.unsigned < a.raw.type.width
    return choose(fits, a.emit(instruction, choose(fits, b, 0)), beyond)


def _power(a: Any, b: Any) -> Any:
    """Return a ** b, wrapped; for b < 0, where NumPy raises, truncated toward zero."""
    if not a.signed:
        return values.power(a, b)
    is_negative = b < 0
    # For a = 1 and a = -1 the power depends only on the exponent's last bit.
    result = values.power(a, choose(is_negative, b & 1, b))
    is_unit = ((a + 1).unsigned <= 2) & (a != 0)
    return choose(is_negative & ~is_unit, 0, result)


def _bitwise_count(a: Any) -> Any:
    count = abs(a).intrinsic("ctpop")
    byte = llvm.IntType(8)
    return count if count.raw.type == byte else count.truncated(byte)


def _gcd(a: Any, b: Any) -> Any:
    def step(high: Any, low: Any) -> list[Any]:
        return [low, high.emit("urem", low)]

    return loop([abs(a), abs(b)], lambda high, low: low != 0, step)[0]


def _lcm(a: Any, b: Any) -> Any:
    gcd = _gcd(a, b)
    return abs(a).emit("udiv", choose(gcd == 0, 1, gcd)) * abs(b)


def _constant(value: int) -> Callable[[Any], Any]:
    return lambda a: Integer(a.code, i1(value))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **values.FUNCTIONS,
    **dict.fromkeys(("floor", "ceil", "trunc"), lambda a: a),
    "bitwise_and": lambda a, b: a & b, "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b, "invert": lambda a: ~a,
    "floor_divide": _floor_divide, "remainder": _remainder, "fmod": _fmod, "power": _power,
    "left_shift": lambda a, b: _shifted(a, b, "shl", 0), "right_shift": _right_shift, "sign": _sign,
    "bitwise_count": _bitwise_count, "gcd": _gcd, "lcm": _lcm,
    "isnan": _constant(0), "isinf": _constant(0), "isfinite": _constant(1),
}  # fmt: skip

BOOL: dict[str, Callable[..., Any]] = {
    **{name: FUNCTIONS[name] for name in (
        "bitwise_and", "bitwise_or", "bitwise_xor", "invert", "absolute", "floor", "ceil", "trunc",
        "maximum", "minimum", "fmax", "fmin", "isnan", "isinf", "isfinite",
    )},
    "add": FUNCTIONS["bitwise_or"], "multiply": FUNCTIONS["bitwise_and"],
}  # fmt: skip
