"""NumPy's functions of real floats as LLVM code; 16-bit floats are computed in float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpualgo._operators.numpy_rules import values
from gpualgo._operators.numpy_rules.storage import f32, f64, from_bits, to_bits
from gpualgo._operators.numpy_rules.values import Float, Integer, choose, is_off

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


def _within(x: Any, low: float, high: float) -> Any:
    x = choose(x > high, high, x)
    return choose(x < low, low, x)


def _power_of_two(exponent: Any) -> Any:
    """Return 2 to an integer from -1022 to 1023, of which only the low 12 bits are used."""
    return ((exponent + 1023) << 52).as_float()


def _polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """Return a polynomial, lowest coefficient first, by Estrin's scheme (G. Estrin, 1960)."""
    terms: list[Any] = list(coefficients)
    while len(terms) > 1:
        pairs = [terms[i] + terms[i + 1] * x for i in range(0, len(terms) - 1, 2)]
        terms = pairs + terms[2 * len(pairs) :]
        x = x * x if len(terms) > 1 else x
    return terms[0]


def _reduced(x: Any, is_single: bool) -> tuple[Any, Any, Any]:
    """Return k (in the low bits), r and the rounding error of r, for x = k log 2 + r."""
    shifted = x * _LOG2_E + _MAGIC
    k = shifted - _MAGIC
    if is_single:
        return shifted.bits, x - k * _LN2, 0.0
    high, low = x - k * _LN2_HIGH, k * _LN2_LOW
    r = high - low
    return shifted.bits, r, high - r - low


def _scaled(x: Any, k: Any, sign: Any) -> Any:
    """Return x 2^k, rounded once, for k from -1082 to 1083 with the sign of `sign`.

    x is large enough that 2^-60 x is normal, unless `sign` is negative.
    """
    is_negative = sign < 0.0
    first_exponent = k + choose(is_negative, k.like(60), -60)
    return x * _power_of_two(first_exponent) * choose(is_negative, x.like(2.0**-60), 2.0**60)


def _beyond(r: Any, is_single: bool) -> Any:
    """Return exp(r) - 1 - r for a small r."""
    return r * r * _polynomial(r, _EXP_SINGLE if is_single else _EXP)


def _exp(x: Any, is_single: bool) -> Any:
    x = _within(x, *((-110.0, 90.0) if is_single else (-746.0, 710.0)))
    k, r, _ = _reduced(x, is_single)
    result = 1.0 + (r + _beyond(r, is_single))
    return result * _power_of_two(k) if is_single else _scaled(result, k, x)


def _expm1(x: Any, is_single: bool) -> Any:
    x = _within(x, -40.0, 710.0)
    k, r, error = _reduced(x, is_single)
    # 2^-k is replaced by 0 if it is too small to change 1; for larger k it would be subnormal.
    inverse = _power_of_two(-k)
    one_minus_inverse = 1.0 - choose(x > 60.0, 0.0, inverse)
    rounded_sum = one_minus_inverse + r
    # The rounding error is computed exactly: one_minus_inverse is 0 or larger than |r|.
    error = r - (rounded_sum - one_minus_inverse) + error
    result = _scaled(rounded_sum + (error + _beyond(r, is_single)), k, x)
    return choose(_magnitude(x) < 2.0**-54, x, result)  # keeps -0 and subnormals


def _magnitude(x: Any) -> Any:
    return (x.bits & (2**63 - 1)).as_float()


def _log_parts(bits: Any) -> tuple[Any, Any, Any]:
    """Return e as a double, e shifted to the exponent's bits, and m - 1, for the number 2^e m.

    The bits are those of a positive normal number, whose exponent may have been decreased.
    """
    root = 0x3FE6A09E667F3BCD  # bits of √½
    biased = (bits + ((2048 << 52) - root)) >> 52
    e = (biased | 0x4330000000000000).as_float() - (2.0**52 + 2048.0)  # the bits of 2.0**52
    shift = (biased - 2048) << 52
    return e, shift, (bits - shift).as_float() - 1.0


def _log_of(e: Any, f: Any, lost: Any, is_single: bool) -> Any:
    """Return e log 2 + log(1 + f + lost / 2), where `lost` is below the precision of 1 + f."""
    s = f / (2.0 + f)
    z = s * s
    tail = s * (f - z * _polynomial(z, _LOG_SINGLE if is_single else _LOG))
    if lost is not None:  # 0.5 - s + s² approximates 0.5 / (1 + f)
        tail = tail - lost * (0.5 - (s - z))
    if is_single:
        return e * _LN2 + (f - tail)
    return e * _LN2_HIGH + (f - (tail - e * _LN2_LOW))


def _log(x: Any, is_single: bool) -> Any:
    bits = x.bits
    if not is_single:  # float32 numbers are normal as doubles
        bits = choose(x < 2.0**-1022, (x * 2.0**54).bits - (54 << 52), bits)
    e, _, f = _log_parts(bits)
    return _with_special_cases(x, x, _log_of(e, f, None, is_single))


def _log1p(x: Any, is_single: bool) -> Any:
    u = 1.0 + x
    back = u - 1.0
    error = 1.0 - (u - back) + (x - back)
    e, shift, f = _log_parts(u.bits)
    error = error * (x.like(2.0).bits - shift).as_float()
    result = _with_special_cases(u, x, _log_of(e, f, error, is_single))
    return choose(x == 0.0, x, result)


def _with_special_cases(u: Any, x: Any, result: Any) -> Any:
    """Return log(u): `result` is valid for positive finite u; add the special cases."""
    result = choose(u < _INF, result, x)  # log(inf) is inf, log(NaN) is NaN
    return choose(u < 0.0, _NAN, u == 0.0, -_INF, result)


def _tanh(x: Any, is_single: bool) -> Any:
    size = _magnitude(x)
    size = choose(size > 20.0, 20.0, size)
    k, r, _ = _reduced(size + size, is_single)
    power, growth = _power_of_two(k), r + _beyond(r, is_single)
    if is_single:
        t = power * growth + (power - 1.0)
        result = t / (t + 2.0)
    else:
        under = power * (1.0 + growth) + 1.0
        z = size * size
        is_small = size < 0.625
        over = choose(is_small, size * z * _polynomial(z, _TANH_OVER), -2.0)
        under = choose(is_small, _polynomial(z, _TANH_UNDER), under)
        result = choose(is_small, size, 1.0) + over / under
    return (result.bits | (x.bits & -(2**63))).as_float()  # with the sign of x


def _elementary(compute: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return the code of a function that is computed in double precision."""

    def function(x: Any) -> Any:
        return compute(x.to(f64), x.raw.type == f32).to(x.raw.type)

    return function


_ELEMENTARY: dict[str, Callable[[Any], Any]] = {
    "exp": _elementary(_exp), "expm1": _elementary(_expm1), "log": _elementary(_log),
    "log1p": _elementary(_log1p), "tanh": _elementary(_tanh),
}  # fmt: skip


# --- Functions by NumPy's names.


def _sign_bit(bits: Any) -> Any:
    return bits & -(1 << (bits.raw.type.width - 1))


def _signbit(a: Any) -> Any:
    return Integer(a.code, a.bits.raw, signed=True) < 0


def _copysign(a: Any, b: Any) -> Any:
    size = a.bits & ((1 << (a.bits.raw.type.width - 1)) - 1)
    return (size | _sign_bit(b.bits)).as_float(a.raw.type)


def _sign(a: Any) -> Any:
    return choose(a > 0, 1.0, a < 0, -1.0, a == 0, 0.0, a)


def _fmod(a: Any, b: Any) -> Any:
    return a.libm("fmod", b) if a.code.is_cuda else a.emit("frem", b)


def _floored(a: Any, b: Any) -> tuple[Any, Any]:
    """Return fmod(a, b) adjusted to the sign of b, and whether it was adjusted."""
    remainder = _fmod(a, b)
    is_adjusted = is_off(remainder, b)
    adjusted = choose(is_adjusted, remainder + b, remainder)
    return choose(remainder != 0, adjusted, _copysign(a.like(0.0), b)), is_adjusted


def _remainder(a: Any, b: Any) -> Any:
    return choose(b == 0, _fmod(a, b), _floored(a, b)[0])


def _floor_divide(a: Any, b: Any) -> Any:
    remainder, is_adjusted = _fmod(a, b), _floored(a, b)[1]
    exact = (a - remainder) / b
    exact = choose(is_adjusted, exact - 1.0, exact)
    below = exact.intrinsic("floor")
    whole = choose(exact - below > 0.5, below + 1.0, below)
    plain = a / b
    signed_zero = _copysign(a.like(0.0), plain)
    whole = choose(exact == 0, signed_zero, whole)
    return choose(b == 0, plain, whole)


def rint(value: Any) -> Any:
    """Return a value rounded half to even; NVVM has no rint."""
    # Adding a number so large that no bits are left for a fraction rounds half to even.
    big = 2.0**23 if value.raw.type == f32 else 2.0**52
    size = abs(value)
    whole = _copysign(size + big - big, value)
    is_fraction = size < big  # others are integers already, or NaN
    return choose(is_fraction, whole, value)


def _nextafter(a: Any, b: Any) -> Any:
    return _next_bits(a, b, a.bits, b.bits).as_float(a.raw.type)


def next_narrow(name: str, a: Any, b: Any) -> Any:
    """Return nextafter of 16-bit floats, which are held as float32."""
    builder = a.code.builder
    bits = [Integer(a.code, to_bits(builder, value.raw, name)) for value in (a, b)]
    return Float(a.code, from_bits(builder, _next_bits(a, b, *bits).raw, name))


def _next_bits(a: Any, b: Any, a_bits: Any, b_bits: Any) -> Any:
    step = choose((b > a) ^ (a < 0), a_bits.like(1), -1)
    return choose(
        a.is_nan(), a_bits, b.is_nan(), b_bits, a == b, b_bits,
        a == 0, _sign_bit(b_bits) | 1, a_bits + step,
    )  # fmt: skip


def _heaviside(a: Any, b: Any) -> Any:
    return choose(a.is_nan(), a, a == 0, b, a < 0, 0.0, 1.0)


def _log_of_sum(exp: str, at_equal: float, scale: float) -> Callable[..., Any]:
    """Return the code of logaddexp or logaddexp2: larger + log1p(exp(-difference))."""

    def log_of_sum(a: Any, b: Any) -> Any:
        difference = a - b
        larger = choose(difference < 0, b, a)
        smaller = (-abs(difference)).libm(exp)
        result = larger + scale * smaller.libm("log1p")
        return choose(a == b, a + at_equal, difference.is_nan(), difference, result)

    return log_of_sum


def _times_ratio(top: float, bottom: float) -> Callable[[Any], Any]:
    """Return the code of a multiplication by a ratio that is rounded to the number's type."""
    single = float(np.float32(top) / np.float32(bottom))
    return lambda a: a * (single if a.raw.type == f32 else top / bottom)


def _library(name: str) -> Callable[..., Any]:
    cpu = _ELEMENTARY.get(name)
    if cpu is None:
        return lambda a, *others: a.libm(name, *others)
    return lambda a: a.libm(name) if a.code.is_cuda else cpu(a)


_LIBRARY = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh",
    "arccosh": "acosh", "arctanh": "atanh", "power": "pow", "float_power": "pow",
    **{name: name for name in (
        "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan",
        "sinh", "cosh", "tanh", "cbrt", "hypot", "erf", "erfc", "gamma", "lgamma",
    )},
}  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **values.FUNCTIONS,
    **{name: _library(math_name) for name, math_name in _LIBRARY.items()},
    "floor": lambda a: a.intrinsic("floor"), "ceil": lambda a: a.intrinsic("ceil"),
    "trunc": lambda a: a.intrinsic("trunc"), "fabs": abs, "rint": rint, "sign": _sign,
    "divide": lambda a, b: a / b, "reciprocal": lambda a: 1.0 / a,
    "floor_divide": _floor_divide, "remainder": _remainder, "fmod": _fmod,
    "copysign": _copysign, "signbit": _signbit, "nextafter": _nextafter, "heaviside": _heaviside,
    "logaddexp": _log_of_sum("exp", float(np.log(2)), 1.0),
    "logaddexp2": _log_of_sum("exp2", 1.0, float(1 / np.log(2))),
    "deg2rad": _times_ratio(np.pi, 180.0), "rad2deg": _times_ratio(180.0, np.pi),
    "isnan": Float.is_nan, "isinf": Float.is_infinite, "isfinite": Float.is_finite,
}  # fmt: skip
