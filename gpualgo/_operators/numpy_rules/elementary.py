"""Elementary functions of real floats on the CPU.

Results are within 1.5 units in the last place for float64, and within 1 for float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

from gpualgo._operators.numpy_rules.expressions import (
    DOUBLE,
    INF,
    LN2,
    LN10,
    NAN,
    PI,
    SINGLE,
    Number,
    added,
    multiplied,
    parts_of,
    quotient_of,
    summed,
)
from gpualgo._operators.numpy_rules.storage import Code, f64

# --- Exponentials.


def _power_of_two(exponent: Number) -> Any:
    """Return 2 to an integer in the exponent's range, of which the low bits are used."""
    form = exponent.format
    return ((exponent + form.bias) << form.mantissa).float


def _reduced(x: Number) -> tuple[Any, Any, Any]:
    """Return k (in the low bits), r and the rounding error of r, for x = k log 2 + r."""
    form = x.format
    shifted = x * float(1 / LN2) + form.magic
    k = shifted - form.magic
    if form.is_wide:
        return shifted.bits, x - k * float(LN2), 0.0
    high_part, low_part = parts_of(LN2, 41 if form is DOUBLE else 14)
    high, low = x - k * high_part, k * low_part
    r = high - low
    return shifted.bits, r, (high - r) - low


def _scaled(x: Number, k: Number, sign: Number) -> Any:
    """Return x 2^k, rounded once, for results of the sign of `sign`: below 1, or from 1 on.

    x is large enough that x 2^-shift is normal, unless `sign` is negative.
    """
    if x.format.is_wide:
        return x * _power_of_two(k)
    shift = 60 if x.format is DOUBLE else 30
    is_negative = sign < 0.0
    first = k + is_negative.then(shift, -shift)
    return x * _power_of_two(first) * is_negative.then(2.0**-shift, 2.0**shift)


def _beyond(r: Number, is_exact: bool = False) -> Any:
    """Return exp(r) - 1 - r for a small r; the product with a first coefficient of ½ is exact."""
    square = r * r
    if is_exact:
        return square * 0.5 + square * r * r.polynomial("exp", 1)
    return square * r.polynomial("exp")


def _exp(x: Number) -> Any:
    x = x.within(x.format.lowest, x.format.largest)
    k, r, _ = _reduced(x)
    return _scaled(1.0 + (r + _beyond(r)), k, x)


def _exp2(x: Number, low: Any = 0.0) -> Any:
    """Return 2^(x + low)."""
    form = x.format
    x = x.within(form.lowest * 1.45, form.largest * 1.45)
    shifted = x + form.magic
    r = ((x - (shifted - form.magic)) + low) * float(LN2)
    return _scaled(1.0 + (r + _beyond(r)), shifted.bits, x)


def _expm1(x: Number) -> Any:
    form, is_large = x.format, 30.0 if x.format is SINGLE else 60.0
    x = x.within(-is_large * 2 / 3, form.largest)
    k, r, error = _reduced(x)
    # 2^-k is replaced by 0 if it is too small to change 1; for larger k it would be subnormal.
    inverse = _power_of_two(0 - k)
    difference, lost = added(1.0, -1.0 * (x > is_large).then(0.0, inverse))
    total, more = added(difference, r)  # the difference is 0 or larger than |r|
    result = _scaled(total + (lost + (more + error) + _beyond(r, form is SINGLE)), k, x)
    tiny = 2.0 ** -(form.mantissa + 2)
    return (x.magnitude < tiny).then(x, result)  # keeps -0 and subnormals


def _tanh(x: Number) -> Any:
    most = 10.0 if x.format is SINGLE else 20.0
    size = x.magnitude
    size = (size > most).then(most, size)
    k, r, _ = _reduced(size + size)
    power, growth = _power_of_two(k), r + _beyond(r)
    if x.format.is_wide:
        t = power * growth + (power - 1.0)
        return (t / (t + 2.0)).signed(x)
    under, lost = added(power + 1.0, power * growth)
    z = size * size
    is_small = size < 0.625
    over = is_small.then(size * z * z.polynomial("tanh"), -2.0)
    quotient = over / is_small.then(z.polynomial("tanh under"), under)
    # -2 / (under + lost) is about quotient + quotient² lost / 2
    rest = is_small.then(0.0, quotient * quotient * (lost * 0.5))
    total, error = added(is_small.then(size, 1.0), quotient)
    return (total + (error + rest)).signed(x)


def _hyperbolic(x: Number, is_odd: bool) -> Any:
    """Return sinh or cosh of x = k log 2 + r, of 2^k ± 2^-k and the functions of r."""
    size = x.magnitude.within(0.0, x.format.largest + 1.0)
    k, r, error = _reduced(size)
    z = r * r
    even, odd = z * z.polynomial("cosh"), r * z * z.polynomial("sinh") + error
    # 2^-2k is replaced by 0 if it is too small to change 1.
    is_large = size > (15.0 if x.format is SINGLE else 30.0)
    inverse = is_large.then(0.0, _power_of_two(0 - (k + k)))
    (total, lost), difference = added(1.0, inverse), 1.0 - inverse
    first, second = (difference, total) if is_odd else (total, difference)
    product, more = multiplied(second, r)
    high, low = added(first, product)
    high = high + (low + more + (second * odd + first * even) + (0.0 if is_odd else lost))
    result = _scaled(high, k - 1, size)
    if not is_odd:
        return result
    return (size < 2.0 ** -(x.format.mantissa // 2 + 2)).then(x, result.signed(x))


# --- Logarithms.


def _log_parts(bits: Number) -> tuple[Any, Any, Any]:
    """Return e as a float, e shifted to the exponent's bits, and m - 1, for the number 2^e m.

    The bits are those of a positive normal number, whose exponent may have been decreased.
    """
    form = bits.format
    mantissa, offset = form.mantissa, 2 * (form.bias + 1)
    root = 0x3FE6A09E667F3BCD if form.type == f64 else 0x3F3504F3  # bits of √½
    biased = (bits + ((offset << mantissa) - root)) >> mantissa
    e = (biased | (form.bias + mantissa) << mantissa).float - (2.0**mantissa + offset)
    shift = (biased - offset) << mantissa
    return e, shift, (bits - shift).float - 1.0


def _normal_bits(x: Number) -> Any:
    """Return the bits for `_log_parts` of a positive number, which may be subnormal."""
    form = x.format
    if form.is_wide:
        return x.bits
    grown = (x * 2.0 ** (form.mantissa + 2)).bits - ((form.mantissa + 2) << form.mantissa)
    bits = (x < 2.0 ** (1 - form.bias)).then(grown, x.bits)
    return bits


def _log_tail(f: Number, lost: Any = 0.0) -> Any:
    """Return f - log(1 + f + lost / 2), where `lost` is below the precision of 1 + f."""
    s = f / (2.0 + f)
    z = s * s
    tail = s * (f - z * z.polynomial("log"))
    if isinstance(lost, Number):  # 0.5 - s + s² approximates 0.5 / (1 + f)
        tail = tail - lost * (0.5 - (s - z))
    return tail


def _log_of(e: Number, f: Number, tail: Number) -> Any:
    """Return e log 2 + f - tail."""
    if e.format.is_wide:
        return e * float(LN2) + (f - tail)
    high, low = parts_of(LN2, 41 if e.format is DOUBLE else 14)
    return e * high + (f - (tail - e * low))


def _with_special_cases(u: Number, x: Number, result: Number) -> Any:
    """Return log(u): `result` is valid for positive finite u; add the special cases."""
    result = (u < INF).then(result, x)  # log(inf) is inf, log(NaN) is NaN
    result = u.equals(0.0).then(-INF, result)
    result = (u < 0.0).then(NAN, result)
    return result


def _log(x: Number) -> Any:
    e, _, f = _log_parts(_normal_bits(x))
    return _with_special_cases(x, x, _log_of(e, f, _log_tail(f)))


def _log_to(base: Fraction, log_base: Fraction) -> Callable[[Number], Any]:
    """Return the logarithm to a base of which these are log(2) / log(base) and log(base)."""

    def log(x: Number) -> Any:
        form = x.format
        e, _, f = _log_parts(_normal_bits(x))
        tail = _log_tail(f)
        if form.is_wide:
            return _with_special_cases(x, x, e * float(base) + (f - tail) * float(1 / log_base))
        # f is cut, so that its product with the factor's upper half is exact.
        cut = (f.bits & -(1 << form.mantissa + 2 - form.half)).float
        high, low = parts_of(1 / log_base, form.half)
        whole, part = parts_of(base, form.mantissa + 1 - (11 if form is DOUBLE else 8))
        total, error = added(e * whole, cut * high)
        rest = ((f - cut) - tail) * float(1 / log_base) + cut * low + e * part
        return _with_special_cases(x, x, total + (error + rest))

    return log


def _log1p(x: Number, low: Any = 0.0, extra: Any = 0.0) -> Any:
    """Return log(1 + x + low) + extra log(2)."""
    u = 1.0 + x
    back = u - 1.0
    error = ((1.0 - (u - back)) + (x - back)) + low
    e, shift, f = _log_parts(u.bits)
    error = error * (((x.format.bias + 1) << x.format.mantissa) - shift).float
    result = _with_special_cases(u, x, _log_of(e + extra, f, _log_tail(f, error)))
    result = x.equals(0.0).then(x, result)
    return result


def _root_of(x: Number, low: Any) -> tuple[Any, Any]:
    """Return the square root of x + low in two parts."""
    root = x.root
    if x.format.is_wide:
        return root, 0.0
    square, rest = multiplied(root, root)
    return root, (x > 0.0).then((((x - square) - rest) + low) / (root + root), 0.0)


# --- Inverse hyperbolic functions, by log1p of a number in two parts.


def _arcsinh(x: Number) -> Any:
    size = x.magnitude
    is_large = size > 2.0 ** (x.format.mantissa + 8)  # there arcsinh is log(2 size)
    square = size * size
    high, low = added(size, square / (1.0 + (square + 1.0).root))
    high, low = is_large.then(size, high), is_large.then(0.0, low)
    return _log1p(high, low, is_large.then(1.0, 0.0)).signed(x)


def _arccosh(x: Number) -> Any:
    is_large = x > 2.0 ** (x.format.mantissa + 8)
    t = x - 1.0
    root, rest = _root_of(*multiplied(t, t + 2.0))
    high, low = added(root, t)
    high, low = is_large.then(x, high), is_large.then(0.0, low + rest)
    result = _log1p(high, low, is_large.then(1.0, 0.0))
    result = (x < 1.0).then(NAN, result)
    return result


def _arctanh(x: Number) -> Any:
    size = x.magnitude
    rest, lost = added(1.0, -1.0 * size)
    result = (_log1p(*quotient_of(size + size, rest, 0.0, lost)) * 0.5).signed(x)
    return (size < 2.0 ** -(x.format.mantissa // 2 + 2)).then(x, result)


# --- Trigonometric functions.


def _angle(up: Number, across: Any, is_back: Number | None = None) -> Any:
    """Return the angle k π/4 ± arctan(t) of a point, |t| <= tan(π / 8), left of 0 if `is_back`."""
    form = up.format
    is_steep = up > across
    small, large = is_steep.then(across, up), is_steep.then(up, across)
    is_mid = small > large * (math.sqrt(2) - 1)
    (total, lost), (difference, more) = added(large, small), added(large, -1.0 * small)
    top, bottom = is_mid.then(-1.0 * difference, small), is_mid.then(total, large)
    if not form.is_wide:
        lost, more = is_mid.then(lost, 0.0), is_mid.then(-1.0 * more, 0.0)
    t, rest = quotient_of(top, bottom, more, lost)
    if not form.is_wide:  # errors of subnormal products are not exact
        rest = (small < 2.0 ** -(form.bias * 3 // 4)).then(0.0, rest)
    z = t * t
    rest = t * z * z.polynomial("arctan") + rest
    turns = is_mid.then(1.0, 0.0)
    turns, is_less = is_steep.then(2.0 - turns, turns), is_steep
    if is_back is not None:
        turns, is_less = is_back.then(4.0 - turns, turns), is_steep ^ is_back
    t, rest = t.flipped(is_less), rest.flipped(is_less)
    high, low = parts_of(PI / 4, form.mantissa - 2)
    total, error = added(turns * high, t)
    return total + (error + (rest + turns * low))


def _arctan2(y: Number, x: Number) -> Any:
    up, across = y.magnitude, x.magnitude
    is_endless = (up.equals(INF), across.equals(INF))
    is_any = is_endless[0] | is_endless[1]
    up, across = (
        is_any.then(is_one.then(1.0, 0.0), size)
        for is_one, size in zip(is_endless, (up, across), strict=True)
    )
    large = (up > across).then(up, across)
    across = large.equals(0.0).then(1.0, across)
    if not x.format.is_wide:  # no exact product overflows or is subnormal
        scale = (large < 2.0**-700).then(2.0**500, (large > 2.0**900).then(2.0**-100, 1.0))
        up, across = up * scale, across * scale
    return _unless_nan(x, y, _angle(up, across, x.is_negative).signed(y))


def _arctan(x: Number) -> Any:
    size = x.magnitude
    size = (size > 2.0**100).then(2.0**100, size)
    return _angle(size, 1.0).signed(x)


def _arcsin(x: Number, is_cosine: bool = False) -> Any:
    """Return k π/2 - s - …, with the arcsine's polynomial in s²."""
    size, sign = x.magnitude, x.constant(1.0).signed(x)
    is_large = size > 0.5
    z = is_large.then((1.0 - size) * 0.5, size * size)
    root, twice = z.root, is_large.then(2.0, 1.0)
    if is_cosine:
        quarters, s = is_large.then(1.0 - sign, 1.0), is_large.then(-1.0 * sign * root, x) * twice
    else:
        quarters, s = is_large.then(1.0, 0.0), is_large.then(root, -1.0 * size) * twice
    high, low = parts_of(PI / 2, x.format.mantissa)
    total, error = added(quarters * high, -1.0 * s)
    result = total + ((error + quarters * low) - s * z * z.polynomial("arcsin"))
    return result if is_cosine else result.signed(x)


_PRECISION = 1400


@cache
def _two_over_pi() -> int:
    """Return 2/π times 2^_PRECISION."""

    def arctan(inverse: int) -> int:
        term = total = (1 << _PRECISION) // inverse
        for n in range(3, _PRECISION, 2):
            term //= -inverse * inverse
            total += term // n
        return total

    pi = 4 * (4 * arctan(5) - arctan(239))  # J. Machin's formula, 1706
    return (1 << 2 * _PRECISION + 1) // pi


# |x| is multiplied by 2/π without those bits whose products are multiples of 4, as by M. H. Payne
# and R. N. Hanek (1983). Selects find the bits: loads from a table would not be vectorised.


def _turned_single(x: Number) -> tuple[Any, Any]:
    """Return k (in the low bits, up to fours) and r for |x| = k π/2 + r, x a float32."""
    size = x.magnitude
    scaled, row = size, [0.0, 0.0, 0.0]
    for i in range(4):  # x without 2^32i times a part of a turn
        turn = Fraction(_two_over_pi(), 1 << _PRECISION + 2) * 2 ** (32 * i) % 2**23
        parts = parts_of(turn, 29, 29)
        if i == 0:
            row = [*parts]
            continue
        is_beyond = size > math.nextafter(2.0 ** (32 * i), 0.0)
        row = [is_beyond.then(part, other) for part, other in zip(parts, row, strict=True)]
        scaled = is_beyond.then(size * 2.0 ** (-32 * i), scaled)
    p0, p1, p2 = (scaled * part for part in row)
    p0, p1 = p0 - p0.whole, p1 - p1.whole
    k = ((p0 + p1 + p2) * 4.0).whole
    r = (((p0 - k * 0.25) + p1) + p2) * float(2 * PI)
    return (k + x.format.magic).bits, r


def _turned(x: Number) -> tuple[Any, Any, Any]:
    """Return k (in the low bits, up to fours) and r in two parts, for |x| = k π/2 + r."""
    if x.format.is_wide:
        return *_turned_single(x), 0.0
    form = x.format
    size = x.magnitude
    exponent = (size.bits >> form.mantissa | x.constant(2.0**form.mantissa).bits).float
    exponent = exponent - (2.0**form.mantissa + form.bias)
    exponent = (exponent < 0.0).then(0.0, exponent)
    shifted = (exponent - 26.0) * (1 / 53) + form.magic
    row = shifted - form.magic  # of 53 exponents
    # Bits of 2/π of the values 2^53 to 2^1, 2^0 to 2^-52, …
    words: list[Any] = [
        float((_two_over_pi() >> _PRECISION + 1 - 53 * i) % (1 << 53)) for i in range(24)
    ]
    for step in (16, 8, 4, 2, 1):
        is_later, later = (shifted.bits & step).holds("!=", 0), words[step:]
        words = [
            is_later.then(later[i], words[i]) if i < len(later) else words[i]
            for i in range(min(step + 4, len(words)))
        ]
    size = size * _power_of_two((row * -53.0 + form.magic).bits)
    products = [multiplied(size * 2.0 ** (1 - 53 * i), words[i]) for i in range(5)]
    (p0, e0), (p1, e1), (p2, e2), (p3, e3), (p4, _) = products
    total, rest, lows = _without_fours(p0), e3 + p4, []
    for term in (_without_fours(e0), _without_fours(p1), e1, p2):
        total, low = summed(total, term)
        lows.append(low)
    k = total.whole
    total = total - k
    for term in (e2, p3, *lows):
        total, low = summed(total, term)
        rest = rest + low
    quarter, less = parts_of(PI / 2, 53)
    r, error = multiplied(total, quarter)
    return (k + form.magic).bits, r, error + (total * less + rest * quarter)


def _without_fours(x: Number) -> Any:
    fours = (x * 0.25).whole * 4.0
    return x - fours


def _sine_and_cosine(x: Number) -> tuple[Number, Any, Any]:
    """Return k (in the low bits), and sine and cosine of r in two parts."""
    k, r, low = _turned(x)
    z = r * r
    half = z * 0.5
    near = 1.0 - half
    sine = z * r * z.polynomial("sin")
    cosine = z * z * z.polynomial("cos")
    if not x.format.is_wide:
        sine = sine + low * near
        cosine = ((1.0 - near) - half) + (cosine - r * low)
    return k, (r, sine), (near, cosine)


def _trigonometric(quarter: int) -> Callable[[Number], Any]:
    """Return the sine, turned by quarters."""

    def function(x: Number) -> Any:
        k, sine, cosine = _sine_and_cosine(x)
        k = k + quarter
        is_cosine = (k & 1).holds("!=", 0)
        high, low = (is_cosine.then(b, a) for a, b in zip(sine, cosine, strict=True))
        result = (high + low).flipped((k & 2).holds("!=", 0))
        if quarter:
            return result
        result = result.flipped(x.is_negative)
        return result if x.format.is_wide else (x.magnitude < 2.0**-27).then(x, result)

    return function


def _tan(x: Number) -> Any:
    k, sine, cosine = _sine_and_cosine(x)
    (high, low), (under, rest) = added(*sine), added(*cosine)
    is_odd = (k & 1).holds("!=", 0)
    top, bottom = is_odd.then(under, high), is_odd.then(high, under)
    tops = bottoms = 0.0
    if not x.format.is_wide:
        tops, bottoms = is_odd.then(rest, low), is_odd.then(low, rest)
    quotient, error = quotient_of(top, bottom, tops, bottoms)
    result = (quotient + error).flipped(is_odd).flipped(x.is_negative)
    return result if x.format.is_wide else (x.magnitude < 2.0**-27).then(x, result)


# --- Roots and powers.


def _cbrt(x: Number) -> Any:
    form = x.format
    size = x.magnitude
    e, _, f = _log_parts(_normal_bits(size))
    shifted = e * (1 / 3) + form.magic
    rest = e - (shifted - form.magic) * 3.0
    above, below = rest > 0.5, rest < -0.5
    factor = above.then(2.0 ** (-1 / 3), below.then(2.0 ** (1 / 3), 1.0))
    number = (1.0 + f) * above.then(2.0, below.then(0.5, 1.0))
    y = f.polynomial("cbrt") * factor  # number^(-1/3)
    error = 1.0 - number * y * (y * y)
    y = y + y * (error * (1 / 3 + error * (2 / 9)))
    root = number * (y * y)
    if not form.is_wide:  # one more step, with an exact remainder
        square, lost = multiplied(root, root)
        cube, less = multiplied(square, root)
        root = root + ((number - cube) - (less + lost * root)) * (y * y * (1 / 3))
    result = (root * _power_of_two(shifted.bits)).signed(x)
    result = (size < INF).then(result, x)
    return x.equals(0.0).then(x, result)


def _hypot(a: Number, b: Number) -> Any:
    form = a.format
    a, b = a.magnitude, b.magnitude
    if form.is_wide:
        result = (a * a + b * b).root
    else:
        is_less = a < b
        large, small = is_less.then(b, a), is_less.then(a, b)
        scale = (large < 2.0**-400).then(2.0**600, (large > 2.0**400).then(2.0**-600, 1.0))
        large, small = large * scale, small * scale
        square, lost = multiplied(large, large)
        other, less = multiplied(small, small)
        total, error = added(square, other)
        root, low = _root_of(total, error + (lost + less))
        result = (root + low) / scale
    is_infinite = a.equals(INF) | b.equals(INF)
    result = is_infinite.then(INF, result)
    return result


def _log2_in_parts(x: Number) -> tuple[Any, Any]:
    """Return log2 of a positive number to about 2^-66 of it."""
    e, _, f = _log_parts(_normal_bits(x))
    under, lost = added(2.0, f)
    s, low = quotient_of(f, under, 0.0, lost)
    square, error = multiplied(s, s)
    error = error + 2.0 * s * low
    # atanh(s) = s + s w, w = s²/3 + s⁴ (…)
    third, rest = parts_of(Fraction(1, 3), 53)
    high, less = multiplied(square, third)
    less = less + (error * third + square * rest)
    w, more = added(high, square * square * square.polynomial("power"))
    more = more + less
    product, error = multiplied(s, w)
    total, lower = added(s, product)
    lower = lower + (low + (error + (s * more + low * w)))
    # times 2 / log(2)
    factor, part = parts_of(2 / LN2, 53)
    high, error = multiplied(total, factor)
    error = error + (lower * factor + total * part)
    result, lost = added(e, high)
    return result, lost + error


def _power(x: Number, y: Number) -> Any:
    size = x.magnitude
    if x.format is SINGLE:
        result = _exp(y.widened * _log(size.widened)).narrowed
    else:
        high, low = _log2_in_parts(size)
        high = size.equals(0.0).then(-INF, size.equals(INF).then(INF, high))
        product, error = multiplied(high, y)
        is_moderate = product.magnitude < 1100.0
        result = _exp2(product, is_moderate.then(error + low * y, 0.0))
    is_whole = y.whole.equals(y)
    half = y * 0.5
    is_odd = is_whole & half.whole.holds("!=", half)
    result = result.flipped(x.is_negative & is_odd)
    is_undefined = (x < 0.0) & (size < INF) & y.whole.holds("!=", y)
    result = _unless_nan(x, y, is_undefined.then(NAN, result))
    is_one = (size.equals(1.0) & y.magnitude.equals(INF)) | x.equals(1.0) | y.equals(0.0)
    return is_one.then(1.0, result)


def _unless_nan(x: Number, y: Number, result: Number) -> Any:
    is_nan = x.new(x.code.builder.fcmp_unordered("uno", x.value, y.value))
    result = is_nan.then(x + y, result)
    return result


# --- The functions of LLVM values by the names of a math library.

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": _exp, "exp2": _exp2, "expm1": _expm1, "tanh": _tanh,
    "sinh": lambda x: _hyperbolic(x, True), "cosh": lambda x: _hyperbolic(x, False),
    "log": _log, "log1p": _log1p, "log2": _log_to(Fraction(1), LN2),
    "log10": _log_to(LN2 / LN10, LN10),
    "asinh": _arcsinh, "acosh": _arccosh, "atanh": _arctanh,
    "sin": _trigonometric(0), "cos": _trigonometric(1), "tan": _tan,
    "asin": _arcsin, "acos": lambda x: _arcsin(x, True), "atan": _arctan, "atan2": _arctan2,
    "cbrt": _cbrt, "hypot": _hypot, "pow": _power,
}  # fmt: skip
# Those within 1 unit in the last place in float32 arithmetic, and faster; others use float64.
_IN_FLOAT32 = (
    "exp", "exp2", "expm1", "tanh", "sinh", "cosh", "log", "log1p", "atan", "pow",
)  # fmt: skip


def _function(name: str) -> Callable[..., Any]:
    function = _FUNCTIONS[name]

    def generate(code: Code, *values: Any) -> Any:
        if values[0].type == f64:
            return function(*(Number(code, value, DOUBLE) for value in values)).value
        numbers = [Number(code, value, SINGLE) for value in values]
        if name in _IN_FLOAT32:
            return function(*numbers).value
        return function(*(number.widened for number in numbers)).narrowed.value

    return generate


FUNCTIONS: dict[str, Callable[..., Any]] = {name: _function(name) for name in _FUNCTIONS}
