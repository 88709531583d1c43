"""Elementary functions of real floats on the CPU.

Results are within 1.5 units in the last place for float64, and within 1 for float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from gpualgo._operators.numpy_rules.arithmetic import (
    DOUBLE,
    INF,
    LN2,
    LN10,
    NAN,
    PI,
    SINGLE,
    WIDE,
    Real,
    added,
    multiplied,
    parts_of,
    power_of_two,
    quotient_of,
    real,
    summed,
    turned,
    turned_less,
    unless_large,
)
from gpualgo._operators.numpy_rules.storage import f64
from gpualgo._operators.numpy_rules.values import WORDS, Float, Integer, choose

_WORD = WORDS[SINGLE.type]

# --- Exponentials.


def _reduced(x: Real) -> tuple[Any, Any, Any]:
    """Return k (in the low bits), r and the rounding error of r, for x = k log 2 + r."""
    form = x.format
    shifted = x.fused(float(1 / LN2), form.magic)
    k = shifted - form.magic
    high_part, low_part = parts_of(LN2, 41 if form is DOUBLE else 14)
    high = k.fused(-high_part, x)
    r = k.fused(-low_part, high)
    return shifted.bits, r, k.fused(-low_part, high - r)


def _scaled(x: Real, k: Integer, sign: Real) -> Any:
    """Return x 2^k, rounded once, for results of the sign of `sign`: below 1, or from 1 on.

    x is large enough that x 2^-shift is normal, unless `sign` is negative.
    """
    shift = 60 if x.format is DOUBLE else 30
    is_negative = sign < 0.0
    first = k + choose(is_negative, k.like(shift), -shift)
    return x * power_of_two(x, first) * choose(is_negative, x.like(2.0**-shift), 2.0**shift)


def _growth(r: Real, term: Any) -> Any:
    """Return exp(r) - 1 - r + a term for a small r."""
    return (r * r).fused(r.fused(r.polynomial("exp"), 0.5), term)


def _exp_of(k: Integer, r: Real, low: Any, sign: Real) -> Any:
    """Return 2^k exp(r + low)."""
    total, lost = added(1.0, r)
    return _scaled(total + _growth(r, lost + low), k, sign)


def _exp(x: Real) -> Any:
    x = x.within(x.format.lowest, x.format.largest)
    return _exp_of(*_reduced(x), x)


def _exp2(x: Real, low: Any = 0.0) -> Any:
    """Return 2^(x + low)."""
    form = x.format
    x = x.within(form.lowest * 1.45, form.largest * 1.45)
    shifted = x + form.magic
    near = x - (shifted - form.magic)
    high, rest = parts_of(LN2, form.mantissa + 1)
    r, lost = multiplied(near, high)
    if isinstance(low, Real):
        r, more = added(r, low * high)
        lost = lost + more
    return _exp_of(shifted.bits, r, near.fused(rest, lost), x)


def _expm1(x: Real) -> Any:
    form, is_large = x.format, 30.0 if x.format is SINGLE else 60.0
    x = x.within(-is_large * 2 / 3, form.largest)
    k, r, error = _reduced(x)
    # 2^-k is replaced by 0 if it is too small to change 1; for larger k it would be subnormal.
    inverse = power_of_two(x, -k)
    difference, lost = added(1.0, -choose(x > is_large, 0.0, inverse))
    total, more = added(difference, r)  # the difference is 0 or larger than |r|
    result = _scaled(total + _growth(r, lost + (more + error)), k, x)
    tiny = 2.0 ** -(form.mantissa + 2)
    return choose(abs(x) < tiny, x, result)  # keeps -0 and subnormals


def _tanh(x: Real) -> Any:
    """Return (exp(2 x) - 1) / (exp(2 x) + 1), or as a rational function."""
    if x.format.is_wide:
        x = x.within(-9.02, 9.02)
        z = x * x
        return x * z.polynomial("tanh") / z.polynomial("tanh under")
    size = abs(x)
    size = choose(size > 20.0, 20.0, size)
    k, r, error = _reduced(size + size)
    power = power_of_two(x, k)
    growth, rest = added(r, _growth(r, error))
    parts = []
    for one in (-1.0, 1.0):
        base, missed = added(power, power.like(one))
        total, lost = added(base, power * growth)
        parts.append((total, power.fused(rest, missed) + lost))
    (over, more), (under, lost) = parts
    quotient, low = quotient_of(over, under, more, lost)
    return (quotient + low).signed(x)


def _hyperbolic(x: Real, is_odd: bool) -> Any:
    """Return sinh or cosh of x = k log 2 + r, of 2^k ± 2^-k and the functions of r."""
    size = abs(x).within(0.0, x.format.largest + 1.0)
    k, r, error = _reduced(size)
    z = r * r
    even, odd = z * z.polynomial("cosh"), r * z * z.polynomial("sinh") + error
    # 2^-2k is replaced by 0 if it is too small to change 1.
    is_large = size > (15.0 if x.format is SINGLE else 30.0)
    inverse = choose(is_large, 0.0, power_of_two(x, -(k + k)))
    pairs = added(1.0, inverse), added(1.0, -inverse)
    (first, lost), (second, _) = reversed(pairs) if is_odd else pairs
    product, more = multiplied(second, r)
    high, low = added(first, product)
    high = high + (low + more + (second * odd + first * even) + lost)
    result = _scaled(high, k - 1, size)
    if not is_odd:
        return result
    return choose(size < 2.0 ** -(x.format.mantissa // 2 + 2), x, result.signed(x))


# --- Logarithms.


def _log_parts(x: Real, bits: Any) -> tuple[Any, Any, Any]:
    """Return e as a float, e shifted to the exponent's bits, and m - 1, for the number 2^e m.

    The bits are those of a positive normal number like x, whose exponent may have been decreased.
    """
    mantissa, bias = x.format.mantissa, x.format.bias
    offset = 2 * (bias + 1)
    root = 0x3F3504F3 if x.format is SINGLE else 0x3FE6A09E667F3BCD  # bits of √½
    above = bits - root
    biased = (above + (offset << mantissa)) >> mantissa
    e = x.of_bits(biased | (bias + mantissa) << mantissa) - (2.0**mantissa + offset)
    shift = above & -(1 << mantissa)
    return e, shift, x.of_bits(bits - shift) - 1.0


def _normal_bits(x: Real) -> Any:
    """Return the bits for `_log_parts` of a positive number, which may be subnormal."""
    form = x.format
    grown = (x * 2.0 ** (form.mantissa + 2)).bits - ((form.mantissa + 2) << form.mantissa)
    return choose(x < 2.0 ** (1 - form.bias), grown, x.bits)


def _log_tail(f: Real, lost: Any = 0.0) -> Any:
    """Return f - log(1 + f + lost / 2), where `lost` is below the precision of 1 + f."""
    if f.format is SINGLE:
        square, rest = multiplied(f, f)
        rest = rest * 0.5
        if isinstance(lost, Real):
            rest = lost.fused(-0.5, rest - lost * f * f.polynomial("slope"))
        return square.fused(f.fused(f.polynomial("log1p"), 0.5), rest)
    s = f / (2.0 + f)
    z = s * s
    tail = s * (f - z * z.polynomial("log"))
    if isinstance(lost, Real):  # 0.5 - s + s² approximates 0.5 / (1 + f)
        tail = tail - lost * (0.5 - (s - z))
    return tail


def _log_of(e: Real, f: Real, tail: Real) -> Any:
    """Return e log 2 + f - tail."""
    high, low = parts_of(LN2, 41 if e.format is DOUBLE else 14)
    return e.fused(high, f - e.fused(-low, tail))


def _with_special_cases(u: Real, x: Real, result: Real) -> Any:
    """Return log(u): `result` is valid for positive finite u; add the special cases."""
    # log(inf) is inf, log(NaN) is NaN
    return choose(u < 0.0, NAN, u == 0.0, -INF, u < INF, result, x)


def _log(x: Real) -> Any:
    e, _, f = _log_parts(x, _normal_bits(x))
    return _with_special_cases(x, x, _log_of(e, f, _log_tail(f)))


def _log_to(base: Fraction, log_base: Fraction) -> Callable[[Real], Any]:
    """Return the logarithm to a base of which these are log(2) / log(base) and log(base)."""

    def log(x: Real) -> Any:
        form = x.format
        e, _, f = _log_parts(x, _normal_bits(x))
        high, low = parts_of(1 / log_base, form.mantissa + 1)
        whole, part = parts_of(base, form.mantissa + 1 - (11 if form is DOUBLE else 8))
        product, lost = multiplied(f, high)
        total, error = added(e * whole, product)
        rest = e.fused(part, f.fused(low, lost)) + error
        if form is SINGLE:
            square, lost = multiplied(f, f)
            rest = (square * f).fused(f.polynomial("log1p"), lost * 0.5).fused(-high, rest)
            rest = square.fused(-high / 2, rest)
        else:
            rest = _log_tail(f).fused(-high, rest)
        return _with_special_cases(x, x, total + rest)

    return log


def _log1p(x: Real, low: Any = 0.0, extra: Any = 0.0) -> Any:
    """Return log(1 + x + low) + extra log(2)."""
    u = 1.0 + x
    back = u - 1.0
    error = ((1.0 - (u - back)) + (x - back)) + low
    e, shift, f = _log_parts(x, u.bits)
    error = error * x.of_bits(x.like(2.0).bits - shift)
    result = _with_special_cases(u, x, _log_of(e + extra, f, _log_tail(f, error)))
    return choose(x == 0.0, x, result)


def _root_of(x: Real, low: Any) -> tuple[Any, Any]:
    """Return the square root of x + low in two parts."""
    root = x.intrinsic("sqrt")
    return root, choose(x > 0.0, (root.fused(-root, x) + low) / (root + root), 0.0)


# --- Inverse hyperbolic functions, by log1p of a number in two parts.


def _log1p_or_log_of_twice(x: Real, high: Real, low: Any) -> Any:
    """Return log(1 + high + low), or log(2 x) for x so large that it is the same."""
    is_large = x > 2.0 ** (x.format.mantissa + 8)
    low = choose(is_large, 0.0, low)
    return _log1p(choose(is_large, x, high), low, choose(is_large, x.like(1.0), 0.0))


def _arcsinh(x: Real) -> Any:
    size = abs(x)
    square, error = multiplied(size, size)
    total, lost = summed(square, size.like(1.0))
    root, rest = _root_of(total, lost + error)
    high, low = added(size, root - 1.0)
    result = _log1p_or_log_of_twice(size, high, low + rest).signed(x)
    return choose(size < 2.0 ** -(x.format.mantissa // 2 + 2), x, result)


def _arccosh(x: Real) -> Any:
    t = x - 1.0
    more, lost = added(t.like(2.0), t)
    product, error = multiplied(t, more)
    root, rest = _root_of(product, t.fused(lost, error))
    high, low = added(root, t)
    return choose(x < 1.0, NAN, _log1p_or_log_of_twice(x, high, low + rest))


def _arctanh(x: Real) -> Any:
    size = abs(x)
    rest, lost = added(1.0, -size)
    result = (_log1p(*quotient_of(size + size, rest, 0.0, lost)) * 0.5).signed(x)
    return choose(size < 2.0 ** -(x.format.mantissa // 2 + 2), x, result)


# --- Trigonometric functions.


def _angle(up: Real, across: Any, is_back: Integer | None = None) -> Any:
    """Return the angle k π/4 ± arctan(t) of a point, |t| <= tan(π / 8), left of 0 if `is_back`."""
    form = up.format
    is_steep = up > across
    small, large = choose(is_steep, across, up), choose(is_steep, up, across)
    is_mid = small > large * (math.sqrt(2) - 1)
    (total, lost), (difference, more) = added(large, small), added(large, -small)
    top, bottom = choose(is_mid, -difference, small), choose(is_mid, total, large)
    lost, more = choose(is_mid, lost, 0.0), choose(is_mid, -more, 0.0)
    t, rest = quotient_of(top, bottom, more, lost)
    turns = choose(is_mid, t.like(1.0), 0.0)
    turns, is_less = choose(is_steep, 2.0 - turns, turns), is_steep
    if is_back is not None:
        turns, is_less = choose(is_back, 4.0 - turns, turns), is_steep ^ is_back
    z = t * t
    rest = (t * z).fused(z.polynomial("arctan"), rest)
    t, rest = choose(is_less, -t, t), choose(is_less, -rest, rest)
    high, low = parts_of(PI / 4, form.mantissa - 2)
    total, error = added(turns * high, t)
    return total + (error + turns.fused(low, rest))


def _arctan2(y: Real, x: Real) -> Any:
    up, across = abs(y), abs(x)
    is_endless = (up == INF, across == INF)
    is_any = is_endless[0] | is_endless[1]
    up, across = (
        choose(is_any, choose(is_one, size.like(1.0), 0.0), size)
        for is_one, size in zip(is_endless, (up, across), strict=True)
    )
    large = choose(up > across, up, across)
    across = choose(large == 0.0, 1.0, across)
    is_back = x.is_negative()
    # The arctangent of a small quotient is the quotient. Of others no exact product is subnormal.
    is_small = (up < across * 2.0 ** -(x.format.mantissa // 2 + 3)) & ~is_back
    quotient = up / across
    tiny, growth, huge, drop = (2.0 ** (x.format.bias * i // 20) for i in (-14, 10, 18, -2))
    scale = choose(large < tiny, x.like(growth), large > huge, drop, 1.0)
    angle = _angle(up * scale, across * scale, is_back)
    return _unless_nan(x, y, choose(is_small, quotient, angle).signed(y))


def _arctan(x: Real) -> Any:
    size = abs(x)
    size = choose(size > 2.0**100, 2.0**100, size)
    return _angle(size, 1.0).signed(x)


def _arcsin(x: Real, is_cosine: bool = False) -> Any:
    """Return k π/2 - s - …, with the arcsine's polynomial in s²."""
    size, sign = abs(x), x.like(1.0).signed(x)
    is_large = size > 0.5
    z = choose(is_large, (1.0 - size) * 0.5, size * size)
    root, rest = _root_of(z, 0.0) if x.format is SINGLE else (z.intrinsic("sqrt"), z.like(0.0))
    twice, rest = choose(is_large, z.like(2.0), 1.0), choose(is_large, rest, 0.0)
    if is_cosine:
        quarters = choose(is_large, 1.0 - sign, 1.0)
        s, rest = choose(is_large, -sign * root, x) * twice, -sign * rest * twice
    else:
        quarters = choose(is_large, x.like(1.0), 0.0)
        s, rest = choose(is_large, root, -size) * twice, rest * twice
    high, low = parts_of(PI / 2, x.format.mantissa)
    total, error = added(quarters * high, -s)
    tail = (s * z).fused(z.polynomial("arcsin"), rest)
    result = total + (quarters.fused(low, error) - tail)
    return result if is_cosine else result.signed(x)


def _sine_and_cosine(x: Real, is_large: bool) -> tuple[Integer, Any, Any]:
    """Return k (in the low bits), and sine and cosine of r in two parts."""
    k, r, low = (turned if is_large else turned_less)(x)
    z = r * r
    half = z * 0.5
    near = 1.0 - half
    sine = (z * r).fused(z.polynomial("sin"), low * near)
    cosine = (z * z).fused(z.polynomial("cos"), r.fused(-low, (1.0 - near) - half))
    return k, (r, sine), (near, cosine)


def _trigonometric(name: str, quarter: int) -> Callable[[Real], Any]:
    """Return the sine, turned by quarters."""

    def function(x: Real, is_large: bool = False) -> Any:
        k, sine, cosine = _sine_and_cosine(x, is_large)
        k = k + quarter
        is_cosine, is_flipped = (k & 1) != 0, (k & 2) != 0
        high, low = (choose(is_cosine, b, a) for a, b in zip(sine, cosine, strict=True))
        result = high + low
        if quarter:
            return choose(is_flipped, -result, result)
        result = choose(is_flipped ^ x.is_negative(), -result, result)
        return choose(abs(x) < 2.0**-27, x, result)

    return _of_any_size(name, function)


def _of_any_size(name: str, function: Callable[..., Any]) -> Callable[[Real], Any]:
    def complete(x: Real) -> Any:
        limit, form = (2.0**13, WIDE) if x.format is SINGLE else (2.0**19, DOUBLE)
        return unless_large(
            name, x, limit, function(x), lambda large: function(real(large, form), True)
        )

    return complete


def _tan(x: Real, is_large: bool = False) -> Any:
    k, r, low = (turned if is_large else turned_less)(x)
    z, error = multiplied(r, r)
    cube, lost = multiplied(r, z)
    lost = r.fused(error, lost) * (1 / 3)
    slope = z.fused(z.fused(z.fused(17 / 45, 2 / 3), 1.0), 1.0)  # about 1 / cos²(r)
    low = slope.fused(low, lost)
    tail = cube.fused(1 / 3, (cube * z).fused(z.polynomial("tan"), low))
    high, low = added(r, tail)
    inverse = 1.0 / high
    rest = inverse.fused(-low, inverse.fused(-high, 1.0))
    is_odd = (k & 1) != 0
    result = choose(is_odd, inverse.fused(-rest, -inverse), high)
    result = choose(x.is_negative(), -result, result)
    return choose(abs(x) < 2.0**-27, x, result)


# --- Roots and powers.


def _cbrt(x: Real) -> Any:
    form, size = x.format, abs(x)
    # so that no product overflows, and no error is subnormal
    is_small, bits = size < 1.0, 12 if form is SINGLE else 100
    number = size * choose(is_small, x.like(2.0 ** (6 * bits)), 2.0 ** (-3 * bits))
    # A linear function of the bits is number^(-1/3), a tenth off at most.
    word = number.bits if form is SINGLE else (number.bits >> 32).truncated(_WORD)
    top = x.made(x.code.builder.sitofp(word.raw, x.raw.type))
    unit = 2.0 ** (form.mantissa % 32)
    guess = top.fused(-1 / 3, (form.bias * 4 / 3 - 0.068) * unit)
    word = Integer(x.code, x.code.builder.fptosi(guess.raw, _WORD))
    y = x.of_bits(word if form is SINGLE else word.extended(x.bits.raw.type) << 32)
    error = (number * y).fused(-(y * y), 1.0)
    y = (y * error).fused(error.polynomial("cbrt"), y)
    square = y * y
    root = number * square
    # one more step, with an exact remainder
    product, lost = multiplied(root, root)
    rest = root.fused(-lost, product.fused(-root, number))
    root = rest.fused(square * (1 / 3), root)
    result = (root * choose(is_small, x.like(2.0 ** (-2 * bits)), 2.0**bits)).signed(x)
    return choose(x == 0.0, x, size < INF, result, x)


def _hypot(a: Real, b: Real) -> Any:
    a, b = abs(a), abs(b)
    if a.format.is_wide:
        result = (a * a + b * b).intrinsic("sqrt")
    else:
        is_less = a < b
        large, small = choose(is_less, b, a), choose(is_less, a, b)
        scale = choose(large < 2.0**-400, a.like(2.0**600), large > 2.0**400, 2.0**-600, 1.0)
        large, small = large * scale, small * scale
        square, lost = multiplied(large, large)
        other, less = multiplied(small, small)
        total, error = added(square, other)
        root, low = _root_of(total, error + (lost + less))
        result = (root + low) / scale
    return choose((a == INF) | (b == INF), INF, result)


def _log2_in_parts(x: Real) -> tuple[Any, Any]:
    """Return log2 of a positive number to about 2^-66 of it."""
    e, _, f = _log_parts(x, _normal_bits(x))
    under, lost = added(2.0, f)
    s, low = quotient_of(f, under, 0.0, lost)
    square, error = multiplied(s, s)
    error = s.fused(low + low, error)
    # log2(1 + f) = g + g w, g = 2 s / log(2), w = s²/3 + s⁴ (…)
    factor, part = parts_of(2 / LN2, 53)
    g, rest = multiplied(s, factor)
    rest = s.fused(part, low.fused(factor, rest))
    third, part = parts_of(Fraction(1, 3), 53)
    high, less = multiplied(square, third)
    less = square.fused(part, error.fused(square.fused(0.4, third), less))
    w, more = added(high, square * square * square.polynomial("power"))
    product, error = multiplied(g, w)
    total, lost = added(e, g)
    result, last = added(total, product)
    return result, (lost + rest.fused(w, rest)) + (g.fused(more + less, error) + last)


def _power_of_single(size: Real, y: Real) -> Any:
    wide = real(size, WIDE)
    e, _, f = _log_parts(wide, wide.bits)
    product = real(y, WIDE) * f.fused(f.polynomial("log2"), e)
    product = product.within(SINGLE.lowest * 1.45, SINGLE.largest * 1.45)
    shifted = product + WIDE.magic
    r = real((product - (shifted - WIDE.magic)) * float(LN2), SINGLE)
    result = _exp_of(shifted.bits.truncated(_WORD), r, 0.0, real(product, SINGLE))
    is_less = (size < 1.0) ^ (y < 0.0)
    is_end = (size == 0.0) | (size == INF)
    return choose(is_end, choose(is_less, size.like(0.0), INF), result)


def _power(x: Real, y: Real) -> Any:
    size = abs(x)
    if x.format is SINGLE:
        result = _power_of_single(size, y)
    else:
        high, low = _log2_in_parts(size)
        high = choose(size == 0.0, -INF, size == INF, INF, high)
        product, error = multiplied(high, y)
        is_moderate = (abs(product) < 1100.0) & (product != 0.0)  # y may be the largest float
        result = _exp2(product, choose(is_moderate, low.fused(y, error), 0.0))
    half = y * 0.5
    is_whole, is_even = y.intrinsic("rint") == y, half.intrinsic("rint") == half
    result = choose(x.is_negative() & is_whole & ~is_even, -result, result)
    is_undefined = (x < 0.0) & (size < INF) & ~is_whole
    result = _unless_nan(x, y, choose(is_undefined, NAN, result))
    is_one = ((size == 1.0) & (abs(y) == INF)) | (x == 1.0) | (y == 0.0)
    return choose(is_one, 1.0, result)


def _unless_nan(x: Real, y: Real, result: Real) -> Any:
    return choose(x.is_nan() | y.is_nan(), x + y, result)


# --- The functions of floats by the names of a math library.

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": _exp, "exp2": _exp2, "expm1": _expm1, "tanh": _tanh,
    "sinh": lambda x: _hyperbolic(x, True), "cosh": lambda x: _hyperbolic(x, False),
    "log": _log, "log1p": _log1p, "log2": _log_to(Fraction(1), LN2),
    "log10": _log_to(LN2 / LN10, LN10),
    "asinh": _arcsinh, "acosh": _arccosh, "atanh": _arctanh,
    "sin": _trigonometric("sin", 0), "cos": _trigonometric("cos", 1),
    "tan": _of_any_size("tan", _tan),
    "asin": _arcsin, "acos": lambda x: _arcsin(x, True), "atan": _arctan, "atan2": _arctan2,
    "cbrt": _cbrt, "hypot": _hypot, "pow": _power,
}  # fmt: skip
_WIDE = ("tanh", "hypot")  # of float32 computed in float64, as that is faster


def _function(name: str) -> Callable[..., Any]:
    function = _FUNCTIONS[name]

    def generate(*numbers: Float) -> Any:
        ty = numbers[0].raw.type
        form = DOUBLE if ty == f64 else WIDE if name in _WIDE else SINGLE
        result = function(*(real(number, form) for number in numbers))
        return numbers[0].made(result.to(ty).raw)

    return generate


FUNCTIONS: dict[str, Callable[..., Any]] = {name: _function(name) for name in _FUNCTIONS}
