"""NumPy's functions of real floats as LLVM code; 16-bit floats are computed in float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir as llvm

from gpualgo._operators.numpy_rules import elementary
from gpualgo._operators.numpy_rules.storage import Code, f32, from_bits, to_bits

# --- Functions by NumPy's names.

_INT = {llvm.FloatType(): llvm.IntType(32), llvm.DoubleType(): llvm.IntType(64)}


def negative(code: Code, a: Any) -> Any:
    return code.builder.fsub(a.type(-0.0), a)  # NVVM lacks fneg on some architectures


def _absolute(code: Code, a: Any) -> Any:
    return code.libm("fabs", a) if code.is_cuda else code.intrinsic("fabs", a)


def _is_nan(code: Code, a: Any) -> Any:
    return code.builder.fcmp_unordered("uno", a, a)


def is_zero(code: Code, a: Any) -> Any:
    return code.builder.fcmp_ordered("==", a, a.type(0.0))


def _is_below(code: Code, a: Any) -> Any:
    return code.builder.fcmp_ordered("<", a, a.type(0.0))


def signbit(code: Code, a: Any) -> Any:
    word = _INT[a.type]
    return code.builder.icmp_signed("<", code.builder.bitcast(a, word), word(0))


def _copysign(code: Code, a: Any, b: Any) -> Any:
    builder, word = code.builder, _INT[a.type]
    size = builder.and_(builder.bitcast(a, word), word((1 << (word.width - 1)) - 1))
    sign = builder.and_(builder.bitcast(b, word), word(-(1 << (word.width - 1))))
    return builder.bitcast(builder.or_(size, sign), a.type)


def _sign(code: Code, a: Any) -> Any:
    above = code.builder.fcmp_ordered(">", a, a.type(0.0))
    return code.select(
        above, a.type(1.0), _is_below(code, a), a.type(-1.0),
        is_zero(code, a), a.type(0.0), a,
    )  # fmt: skip


def _fmod(code: Code, a: Any, b: Any) -> Any:
    return code.libm("fmod", a, b) if code.is_cuda else code.builder.frem(a, b)


def _floored(code: Code, a: Any, b: Any) -> tuple[Any, Any]:
    """Return fmod(a, b) adjusted to the sign of b, and whether it was adjusted."""
    remainder = _fmod(code, a, b)
    not_zero = code.builder.fcmp_unordered("!=", remainder, a.type(0.0))
    differ = code.builder.xor(_is_below(code, remainder), _is_below(code, b))
    is_adjusted = code.both(not_zero, differ)
    adjusted = code.builder.select(is_adjusted, code.builder.fadd(remainder, b), remainder)
    return code.select(not_zero, adjusted, _copysign(code, a.type(0.0), b)), is_adjusted


def _remainder(code: Code, a: Any, b: Any) -> Any:
    return code.select(is_zero(code, b), _fmod(code, a, b), _floored(code, a, b)[0])


def _floor_divide(code: Code, a: Any, b: Any) -> Any:
    builder = code.builder
    remainder, is_adjusted = _fmod(code, a, b), _floored(code, a, b)[1]
    exact = builder.fdiv(builder.fsub(a, remainder), b)
    exact = builder.select(is_adjusted, builder.fsub(exact, a.type(1.0)), exact)
    below = code.intrinsic("floor", exact)
    is_short = builder.fcmp_ordered(">", builder.fsub(exact, below), a.type(0.5))
    whole = builder.select(is_short, builder.fadd(below, a.type(1.0)), below)
    plain = builder.fdiv(a, b)
    signed_zero = _copysign(code, a.type(0.0), plain)
    whole = builder.select(is_zero(code, exact), signed_zero, whole)
    return builder.select(is_zero(code, b), plain, whole)


def rint(code: Code, value: Any) -> Any:
    """Return a value rounded half to even; NVVM has no rint."""
    # Adding a number so large that no bits are left for a fraction rounds half to even.
    builder = code.builder
    big = value.type(2.0**23 if value.type == f32 else 2.0**52)
    size = _absolute(code, value)
    whole = builder.fsub(builder.fadd(size, big), big)
    is_whole = builder.fcmp_unordered(">=", size, big)  # an integer already, or NaN
    return builder.select(is_whole, value, _copysign(code, whole, value))


def _extreme(relation: str, skips_nan: bool) -> Callable[..., Any]:
    """Return the code of the larger or smaller of two; a NaN is returned, or skipped."""

    def beyond(code: Code, a: Any, b: Any) -> Any:
        is_first = code.builder.fcmp_ordered(relation, a, b)
        return code.select(code.either(is_first, _is_nan(code, b if skips_nan else a)), a, b)

    return beyond


def _nextafter(code: Code, a: Any, b: Any) -> Any:
    bits = [code.builder.bitcast(value, _INT[a.type]) for value in (a, b)]
    return code.builder.bitcast(_next_bits(code, a, b, *bits), a.type)


def next_narrow(code: Code, name: str, a: Any, b: Any) -> Any:
    """Return nextafter of 16-bit floats, which are held as float32."""
    bits = [to_bits(code.builder, value, name) for value in (a, b)]
    return from_bits(code.builder, _next_bits(code, a, b, *bits), name)


def _next_bits(code: Code, a: Any, b: Any, a_bits: Any, b_bits: Any) -> Any:
    builder, word = code.builder, a_bits.type
    sign = builder.and_(b_bits, word(-(1 << (word.width - 1))))
    grows = builder.fcmp_ordered(">", b, a)
    outwards = builder.xor(grows, _is_below(code, a))
    step = builder.select(outwards, word(1), word(-1))
    return code.select(
        _is_nan(code, a), a_bits, _is_nan(code, b), b_bits,
        builder.fcmp_ordered("==", a, b), b_bits,
        is_zero(code, a), builder.or_(sign, word(1)),
        builder.add(a_bits, step),
    )  # fmt: skip


def _heaviside(code: Code, a: Any, b: Any) -> Any:
    return code.select(
        _is_nan(code, a), a, is_zero(code, a), b, _is_below(code, a), a.type(0.0), a.type(1.0)
    )


def _log_of_sum(exp: str, at_equal: float, scale: float) -> Callable[..., Any]:
    """Return the code of logaddexp or logaddexp2: larger + log1p(exp(-difference))."""
    function, log1p = _library(exp), _library("log1p")

    def log_of_sum(code: Code, a: Any, b: Any) -> Any:
        builder = code.builder
        difference = builder.fsub(a, b)
        larger = builder.select(_is_below(code, difference), b, a)
        smaller = function(code, negative(code, _absolute(code, difference)))
        added = builder.fmul(a.type(scale), log1p(code, smaller))
        result = builder.fadd(larger, added)
        is_equal = builder.fcmp_ordered("==", a, b)
        doubled = builder.fadd(a, a.type(at_equal))
        return code.select(is_equal, doubled, _is_nan(code, difference), difference, result)

    return log_of_sum


def _scaled(number: float) -> Callable[..., Any]:
    return lambda code, a: code.builder.fmul(a, a.type(number))


def _scaled_f32(code: Code, a: Any, top: float, bottom: float) -> Any:
    number = np.float32(top) / np.float32(bottom) if a.type == f32 else top / bottom
    return code.builder.fmul(a, a.type(float(number)))


def _plain(name: str) -> Callable[..., Any]:
    return lambda code, a, b: getattr(code.builder, name)(a, b)


def _same(code: Code, a: Any) -> Any:
    return a


def _infinite(relation: str) -> Callable[..., Any]:
    def infinite(code: Code, a: Any) -> Any:
        return code.builder.fcmp_ordered(relation, _absolute(code, a), a.type(float("inf")))

    return infinite


def _intrinsic(name: str) -> Callable[..., Any]:
    return lambda code, a: code.intrinsic(name, a)


def _library(name: str) -> Callable[..., Any]:
    cpu = elementary.FUNCTIONS.get(name)
    if cpu is None:
        return lambda code, *values: code.libm(name, *values)
    return lambda code, *values: code.libm(name, *values) if code.is_cuda else cpu(code, *values)


_LIBRARY = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh",
    "arccosh": "acosh", "arctanh": "atanh", "power": "pow", "float_power": "pow",
    **{name: name for name in (
        "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan",
        "sinh", "cosh", "tanh", "cbrt", "hypot", "erf", "erfc", "gamma", "lgamma",
    )},
}  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _library(math_name) for name, math_name in _LIBRARY.items()},
    **{name: _intrinsic(name) for name in ("floor", "ceil", "trunc")},
    "add": _plain("fadd"), "subtract": _plain("fsub"), "multiply": _plain("fmul"),
    "divide": _plain("fdiv"), "floor_divide": _floor_divide, "remainder": _remainder,
    "negative": negative, "positive": _same, "conjugate": _same, "absolute": _absolute,
    "fabs": _absolute, "sign": _sign, "rint": rint, "copysign": _copysign, "signbit": signbit,
    "square": lambda code, a: code.builder.fmul(a, a),
    "reciprocal": lambda code, a: code.builder.fdiv(a.type(1.0), a),
    "fmod": _fmod, "maximum": _extreme(">=", False), "minimum": _extreme("<=", False),
    "fmax": _extreme(">=", True), "fmin": _extreme("<=", True),
    "nextafter": _nextafter, "heaviside": _heaviside,
    "logaddexp": _log_of_sum("exp", float(np.log(2)), 1.0),
    "logaddexp2": _log_of_sum("exp2", 1.0, float(1 / np.log(2))),
    "deg2rad": lambda code, a: _scaled_f32(code, a, np.pi, 180.0),
    "rad2deg": lambda code, a: _scaled_f32(code, a, 180.0, np.pi),
    "isnan": _is_nan, "isinf": _infinite("=="), "isfinite": _infinite("<"),
}  # fmt: skip


def compare(code: Code, relation: str, a: Any, b: Any) -> Any:
    """Return whether a relation holds; with NaN only != does."""
    if relation == "!=":
        return code.builder.fcmp_unordered(relation, a, b)
    return code.builder.fcmp_ordered(relation, a, b)
