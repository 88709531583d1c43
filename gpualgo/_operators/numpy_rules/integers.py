"""NumPy's functions of integers and bool as LLVM code.

Division by zero gives 0, overflow wraps, and a shift by the width or more gives 0 or -1 (the sign).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir as llvm

from gpualgo._operators.numpy_rules.storage import Code


def _negative(code: Code, signed: bool, a: Any) -> Any:
    return code.builder.neg(a)


def _absolute(code: Code, signed: bool, a: Any) -> Any:
    if not signed:
        return a
    return code.builder.select(_is_below(code, a), code.builder.neg(a), a)


def _is_below(code: Code, a: Any) -> Any:
    return code.builder.icmp_signed("<", a, a.type(0))


def _sign(code: Code, signed: bool, a: Any) -> Any:
    positive = code.builder.zext(code.builder.icmp_unsigned("!=", a, a.type(0)), a.type)
    return code.select(_is_below(code, a), a.type(-1), positive) if signed else positive


def _parts(code: Code, signed: bool, a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Return a / b and its remainder, both toward zero, and whether b is zero.

    The divisor is replaced by 1 if the division could trap.
    """
    builder = code.builder
    is_zero = builder.icmp_unsigned("==", b, b.type(0))
    one = b.type(1)
    if not signed:
        divisor = builder.select(is_zero, one, b)
        return builder.udiv(a, divisor), builder.urem(a, divisor), is_zero
    is_minus = builder.icmp_signed("==", b, b.type(-1))
    divisor = builder.select(builder.or_(is_zero, is_minus), one, b)
    quotient = builder.sdiv(a, divisor)
    return code.select(is_minus, builder.neg(a), quotient), builder.srem(a, divisor), is_zero


def _is_off(code: Code, signed: bool, remainder: Any, b: Any) -> Any:
    """Return whether a quotient rounded toward zero is one more than the floor."""
    if not signed:
        return llvm.Constant(llvm.IntType(1), 0)
    differ = code.builder.xor(_is_below(code, remainder), _is_below(code, b))
    return code.both(code.builder.icmp_unsigned("!=", remainder, b.type(0)), differ)


def _floor_divide(code: Code, signed: bool, a: Any, b: Any) -> Any:
    quotient, remainder, is_zero = _parts(code, signed, a, b)
    excess = code.builder.zext(_is_off(code, signed, remainder, b), a.type)
    return code.select(is_zero, a.type(0), code.builder.sub(quotient, excess))


def _remainder(code: Code, signed: bool, a: Any, b: Any) -> Any:
    _, remainder, is_zero = _parts(code, signed, a, b)
    is_off = _is_off(code, signed, remainder, b)
    return code.select(
        is_zero, a.type(0), is_off, code.builder.add(remainder, b), remainder
    )  # fmt: skip


def _fmod(code: Code, signed: bool, a: Any, b: Any) -> Any:
    _, remainder, is_zero = _parts(code, signed, a, b)
    return code.select(is_zero, a.type(0), remainder)


def _shift(name: str) -> Callable[..., Any]:
    def shift(code: Code, signed: bool, a: Any, b: Any) -> Any:
        builder = code.builder
        fits = builder.icmp_unsigned("<", b, b.type(a.type.width))
        count = builder.select(fits, b, b.type(0))
        if name == "left":
            return builder.select(fits, builder.shl(a, count), a.type(0))
        if not signed:
            return builder.select(fits, builder.lshr(a, count), a.type(0))
        sign_bits = builder.ashr(a, a.type(a.type.width - 1))
        return builder.select(fits, builder.ashr(a, count), sign_bits)

    return shift


def power(code: Code, signed: bool, a: Any, b: Any) -> Any:
    """Return a ** b, wrapped; for b < 0, where NumPy raises, truncated toward zero."""
    builder, zero, one = code.builder, a.type(0), a.type(1)

    def step(result: Any, square: Any, remaining: Any) -> list[Any]:
        is_odd = builder.trunc(remaining, llvm.IntType(1))
        product = builder.select(is_odd, builder.mul(result, square), result)
        return [product, builder.mul(square, square), builder.lshr(remaining, one)]

    def goes_on(result: Any, square: Any, remaining: Any) -> Any:
        return builder.icmp_unsigned("!=", remaining, zero)

    if not signed:
        return code.loop([one, a, b], goes_on, step)[0]
    is_negative = _is_below(code, b)
    # For a = 1 and a = -1 the power depends only on the exponent's last bit.
    last_bit = builder.and_(b, one)
    result = code.loop([one, a, builder.select(is_negative, last_bit, b)], goes_on, step)[0]
    is_unit = builder.icmp_unsigned("<=", builder.add(a, one), a.type(2))  # -1, 0, 1
    is_unit = code.both(is_unit, builder.icmp_unsigned("!=", a, zero))
    return code.select(code.both(is_negative, builder.not_(is_unit)), zero, result)


def _chosen(relation: str) -> Callable[..., Any]:
    def chosen(code: Code, signed: bool, a: Any, b: Any) -> Any:
        return code.builder.select(compare(code, relation, signed, a, b), a, b)

    return chosen


def _bitwise_count(code: Code, signed: bool, a: Any) -> Any:
    byte = llvm.IntType(8)
    count = code.intrinsic("ctpop", _absolute(code, signed, a))
    return count if count.type == byte else code.builder.trunc(count, byte)


def _gcd(code: Code, signed: bool, a: Any, b: Any) -> Any:
    builder = code.builder

    def step(high: Any, low: Any) -> list[Any]:
        return [low, builder.urem(high, low)]

    def goes_on(high: Any, low: Any) -> Any:
        return builder.icmp_unsigned("!=", low, low.type(0))

    start = [_absolute(code, signed, a), _absolute(code, signed, b)]
    return code.loop(start, goes_on, step)[0]


def _lcm(code: Code, signed: bool, a: Any, b: Any) -> Any:
    builder = code.builder
    gcd = _gcd(code, signed, a, b)
    is_zero = builder.icmp_unsigned("==", gcd, gcd.type(0))
    divisor = builder.select(is_zero, gcd.type(1), gcd)
    reduced = builder.udiv(_absolute(code, signed, a), divisor)
    return builder.mul(reduced, _absolute(code, signed, b))


def _plain(name: str) -> Callable[..., Any]:
    return lambda code, signed, a, b: getattr(code.builder, name)(a, b)


def _same(code: Code, signed: bool, a: Any) -> Any:
    return a


def _constant(value: int) -> Callable[..., Any]:
    return lambda code, signed, a: llvm.Constant(llvm.IntType(1), value)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": _plain("add"), "subtract": _plain("sub"), "multiply": _plain("mul"),
    "bitwise_and": _plain("and_"), "bitwise_or": _plain("or_"), "bitwise_xor": _plain("xor"),
    "floor_divide": _floor_divide, "remainder": _remainder, "fmod": _fmod, "power": power,
    "left_shift": _shift("left"), "right_shift": _shift("right"), "negative": _negative,
    "absolute": _absolute, "sign": _sign, "positive": _same, "conjugate": _same,
    "floor": _same, "ceil": _same, "trunc": _same, "bitwise_count": _bitwise_count,
    "invert": lambda code, signed, a: code.builder.not_(a),
    "square": lambda code, signed, a: code.builder.mul(a, a),
    "maximum": _chosen(">="), "minimum": _chosen("<="), "fmax": _chosen(">="),
    "fmin": _chosen("<="), "gcd": _gcd, "lcm": _lcm,
    "isnan": _constant(0), "isinf": _constant(0), "isfinite": _constant(1),
}  # fmt: skip

BOOL: dict[str, Callable[..., Any]] = {
    **{name: FUNCTIONS[name] for name in (
        "bitwise_and", "bitwise_or", "bitwise_xor", "invert", "absolute", "floor", "ceil", "trunc",
        "maximum", "minimum", "fmax", "fmin", "isnan", "isinf", "isfinite",
    )},
    "add": _plain("or_"), "multiply": _plain("and_"),
}  # fmt: skip


def compare(code: Code, relation: str, signed: bool, a: Any, b: Any) -> Any:
    compare = code.builder.icmp_signed if signed else code.builder.icmp_unsigned
    return compare(relation, a, b)


def compare_mixed(code: Code, relation: str, a: Any, b: Any) -> Any:
    """Return whether a relation holds between an int64 and a uint64, exactly."""
    is_below = _is_below(code, a)
    answer = code.builder.icmp_unsigned(relation, a, b)
    return code.builder.select(
        is_below, llvm.Constant(llvm.IntType(1), relation in "<= !="), answer
    )
