"""NumPy's functions of real floats as LLVM code; 16-bit floats are computed in float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir as llvm

from gpualgo._operators.numpy_rules.storage import Code, f32, f64, from_bits, to_bits

# --- Exponentials, logarithms and tanh on the CPU, in double precision.


# approximation error 2.0e-17
_EXP = (
    0.5000000000000006,
    0.1666666666666667,
    0.041666666666573066,
    0.008333333333326136,
    0.001388888893251478,
    0.00019841269874820627,
    2.480150431378554e-05,
    2.7557255400206422e-06,
    2.7626371065696354e-07,
    2.5105217004720745e-08,
)
# approximation error 2.4e-10
_EXP_SINGLE = (
    0.5000000047146057,
    0.16666666719028936,
    0.04166635277111221,
    0.00833329846980059,
    0.0013941118895837,
    0.00019899285575896282,
)
# approximation error 3.2e-16
_LOG = (
    0.666666666666667,
    0.3999999999989827,
    0.2857142862653362,
    0.22222211043776857,
    0.18182895750119193,
    0.1533150161114533,
    0.1461916613488797,
)
# approximation error 1.2e-09
_LOG_SINGLE = (0.6666666655358509, 0.40000122584957254, 0.2855073636310781, 0.23332762955117523)
# approximation error 1.8e-17
_TANH_OVER = (-0.3333333333333333, -0.020498799708498872, -0.0001991780435861287)
_TANH_UNDER = (1.0, 0.4614963991254931, 0.02329133187629886, 0.0002065337374875025)
_LN2, _LN2_HIGH, _LN2_LOW = 0.6931471805599453, 0.6931471805592082, 7.371002565167799e-13
_LOG2_E = 1.4426950408889634

_MAGIC = 1.5 * 2.0**52  # x + _MAGIC has the nearest integer of x in its low bits, for |x| < 2^51
_INF, _NAN = float("inf"), float("nan")
_i64 = llvm.IntType(64)


class _Doubles:
    """Code of arithmetic on doubles; Python floats are constants."""

    def __init__(self, code: Code) -> None:
        self.code, self.builder = code, code.builder

    def of(self, value: Any) -> Any:
        return f64(value) if isinstance(value, float) else value

    def add(self, a: Any, b: Any) -> Any:
        return self.builder.fadd(self.of(a), self.of(b))

    def sub(self, a: Any, b: Any) -> Any:
        return self.builder.fsub(self.of(a), self.of(b))

    def mul(self, a: Any, b: Any) -> Any:
        return self.builder.fmul(self.of(a), self.of(b))

    def div(self, a: Any, b: Any) -> Any:
        return self.builder.fdiv(self.of(a), self.of(b))

    def select(self, relation: str, a: Any, b: Any, found: Any, other: Any) -> Any:
        """Return `found` if a relation holds, else `other`; relations with NaN do not hold."""
        holds = self.builder.fcmp_ordered(relation, self.of(a), self.of(b))
        return self.builder.select(holds, self.of(found), self.of(other))

    def within(self, x: Any, low: float, high: float) -> Any:
        x = self.select(">", x, high, high, x)
        return self.select("<", x, low, low, x)

    def bits(self, x: Any) -> Any:
        return self.builder.bitcast(self.of(x), _i64)

    def double(self, bits: Any) -> Any:
        return self.builder.bitcast(bits, f64)

    def power_of_two(self, exponent: Any) -> Any:
        """Return 2 to an integer from -1022 to 1023, of which only the low 12 bits are used."""
        biased = self.builder.add(exponent, _i64(1023))
        return self.double(self.builder.shl(biased, _i64(52)))

    def magnitude(self, x: Any) -> Any:
        return self.double(self.builder.and_(self.bits(x), _i64(2**63 - 1)))

    def signed(self, x: Any, sign: Any) -> Any:
        """Return x, which is not negative, with the sign of `sign`."""
        top = self.builder.and_(self.bits(sign), _i64(-(2**63)))
        return self.double(self.builder.or_(self.bits(x), top))

    def polynomial(self, x: Any, coefficients: Sequence[float]) -> Any:
        """Return a polynomial, lowest coefficient first, by Estrin's scheme (G. Estrin, 1960)."""
        terms: list[Any] = list(coefficients)
        while len(terms) > 1:
            pairs = [self.add(terms[i], self.mul(terms[i + 1], x))
                     for i in range(0, len(terms) - 1, 2)]  # fmt: skip
            terms = pairs + terms[2 * len(pairs) :]
            x = self.mul(x, x) if len(terms) > 1 else x
        return terms[0]

    def reduced(self, x: Any, is_single: bool) -> tuple[Any, Any, Any]:
        """Return k (in the low bits), r and the rounding error of r, for x = k log 2 + r."""
        shifted = self.add(self.mul(x, _LOG2_E), _MAGIC)
        k = self.sub(shifted, _MAGIC)
        if is_single:
            return self.bits(shifted), self.sub(x, self.mul(k, _LN2)), 0.0
        high, low = self.sub(x, self.mul(k, _LN2_HIGH)), self.mul(k, _LN2_LOW)
        r = self.sub(high, low)
        return self.bits(shifted), r, self.sub(self.sub(high, r), low)

    def scaled(self, x: Any, k: Any, sign: Any) -> Any:
        """Return x 2^k, rounded once, for k from -1082 to 1083 with the sign of `sign`.

        x is large enough that 2^-60 x is normal, unless `sign` is negative.
        """
        is_negative = self.builder.fcmp_ordered("<", sign, f64(0.0))
        first_exponent = self.builder.add(k, self.builder.select(is_negative, _i64(60), _i64(-60)))
        second_factor = self.builder.select(is_negative, f64(2.0**-60), f64(2.0**60))
        return self.mul(self.mul(x, self.power_of_two(first_exponent)), second_factor)

    def beyond(self, r: Any, is_single: bool) -> Any:
        """Return exp(r) - 1 - r for a small r."""
        square = self.mul(r, r)
        coefficients = _EXP_SINGLE if is_single else _EXP
        return self.mul(square, self.polynomial(r, coefficients))

    def exp(self, x: Any, is_single: bool) -> Any:
        x = self.within(x, *((-110.0, 90.0) if is_single else (-746.0, 710.0)))
        k, r, _ = self.reduced(x, is_single)
        result = self.add(1.0, self.add(r, self.beyond(r, is_single)))
        return self.mul(result, self.power_of_two(k)) if is_single else self.scaled(result, k, x)

    def expm1(self, x: Any, is_single: bool) -> Any:
        x = self.within(x, -40.0, 710.0)
        k, r, error = self.reduced(x, is_single)
        # 2^-k is replaced by 0 if it is too small to change 1; for larger k it would be subnormal.
        inverse = self.power_of_two(self.builder.sub(_i64(0), k))
        one_minus_inverse = self.sub(1.0, self.select(">", x, 60.0, 0.0, inverse))
        rounded_sum = self.add(one_minus_inverse, r)
        # The rounding error is computed exactly: one_minus_inverse is 0 or larger than |r|.
        error = self.add(self.sub(r, self.sub(rounded_sum, one_minus_inverse)), error)
        correction = self.add(error, self.beyond(r, is_single))
        result = self.scaled(self.add(rounded_sum, correction), k, x)
        return self.select("<", self.magnitude(x), 2.0**-54, x, result)  # keeps -0 and subnormals

    def log_parts(self, bits: Any) -> tuple[Any, Any, Any]:
        """Return e as a double, e shifted to the exponent's bits, and m - 1, for the number 2^e m.

        The bits are those of a positive normal number, whose exponent may have been decreased.
        """
        root = 0x3FE6A09E667F3BCD  # bits of √½
        biased = self.builder.add(bits, _i64((2048 << 52) - root))
        biased = self.builder.lshr(biased, _i64(52))
        e = self.sub(self.double(self.builder.or_(biased, self.bits(2.0**52))), 2.0**52 + 2048.0)
        shift = self.builder.shl(self.builder.sub(biased, _i64(2048)), _i64(52))
        return e, shift, self.sub(self.double(self.builder.sub(bits, shift)), 1.0)

    def log_of(self, e: Any, f: Any, lost: Any, is_single: bool) -> Any:
        """Return e log 2 + log(1 + f + lost / 2), where `lost` is below the precision of 1 + f."""
        s = self.div(f, self.add(2.0, f))
        z = self.mul(s, s)
        p = self.polynomial(z, _LOG_SINGLE if is_single else _LOG)
        tail = self.mul(s, self.sub(f, self.mul(z, p)))
        if lost is not None:  # 0.5 - s + s² approximates 0.5 / (1 + f)
            tail = self.sub(tail, self.mul(lost, self.sub(0.5, self.sub(s, z))))
        if is_single:
            return self.add(self.mul(e, _LN2), self.sub(f, tail))
        return self.add(self.mul(e, _LN2_HIGH), self.sub(f, self.sub(tail, self.mul(e, _LN2_LOW))))

    def log(self, x: Any, is_single: bool) -> Any:
        bits = self.bits(x)
        if not is_single:  # float32 numbers are normal as doubles
            is_tiny = self.builder.fcmp_ordered("<", x, f64(2.0**-1022))
            grown = self.builder.sub(self.bits(self.mul(x, 2.0**54)), _i64(54 << 52))
            bits = self.builder.select(is_tiny, grown, bits)
        e, _, f = self.log_parts(bits)
        return self._with_special_cases(x, x, self.log_of(e, f, None, is_single))

    def log1p(self, x: Any, is_single: bool) -> Any:
        u = self.add(1.0, x)
        back = self.sub(u, 1.0)
        error = self.add(self.sub(1.0, self.sub(u, back)), self.sub(x, back))
        e, shift, f = self.log_parts(self.bits(u))
        error = self.mul(error, self.double(self.builder.sub(self.bits(2.0), shift)))
        result = self._with_special_cases(u, x, self.log_of(e, f, error, is_single))
        return self.select("==", x, 0.0, x, result)

    def _with_special_cases(self, u: Any, x: Any, result: Any) -> Any:
        """Return log(u): `result` is valid for positive finite u; add the special cases."""
        result = self.select("<", u, _INF, result, x)  # log(inf) is inf, log(NaN) is NaN
        result = self.select("==", u, 0.0, -_INF, result)
        return self.select("<", u, 0.0, _NAN, result)

    def tanh(self, x: Any, is_single: bool) -> Any:
        size = self.magnitude(x)
        size = self.select(">", size, 20.0, 20.0, size)
        k, r, _ = self.reduced(self.add(size, size), is_single)
        power, growth = self.power_of_two(k), self.add(r, self.beyond(r, is_single))
        if is_single:
            t = self.add(self.mul(power, growth), self.sub(power, 1.0))
            return self.signed(self.div(t, self.add(t, 2.0)), x)
        under = self.add(self.mul(power, self.add(1.0, growth)), 1.0)
        z = self.mul(size, size)
        small = self.mul(self.mul(size, z), self.polynomial(z, _TANH_OVER))
        is_small = self.builder.fcmp_ordered("<", size, f64(0.625))
        over = self.builder.select(is_small, small, f64(-2.0))
        under = self.builder.select(is_small, self.polynomial(z, _TANH_UNDER), under)
        base = self.builder.select(is_small, size, f64(1.0))
        return self.signed(self.add(base, self.div(over, under)), x)


def _function(name: str) -> Callable[[Code, Any], Any]:
    def function(code: Code, x: Any) -> Any:
        is_single = x.type == f32
        doubles = _Doubles(code)
        wide = code.builder.fpext(x, f64) if is_single else x
        result = getattr(doubles, name)(wide, is_single)
        return code.builder.fptrunc(result, f32) if is_single else result

    return function


_ELEMENTARY: dict[str, Callable[[Code, Any], Any]] = {
    name: _function(name) for name in ("exp", "expm1", "log", "log1p", "tanh")
}


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

    def log_of_sum(code: Code, a: Any, b: Any) -> Any:
        builder = code.builder
        difference = builder.fsub(a, b)
        larger = builder.select(_is_below(code, difference), b, a)
        smaller = code.libm(exp, negative(code, _absolute(code, difference)))
        added = builder.fmul(a.type(scale), code.libm("log1p", smaller))
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
    cpu = _ELEMENTARY.get(name)
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
