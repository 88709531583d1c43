"""exp, expm1, log, log1p and tanh on the CPU, as branch-free code that LLVM vectorizes.

Calls of the math library would prevent vectorization. The code uses no contraction (FMA) and only
baseline instructions: an element has the same bits in vector and scalar iterations and on every
processor. Errors are below 0.52 ULP for float32, computed in float64 and rounded once, and 1.5 ULP
for float64 (tests/operators/test_elementary.py).

Exponentials: x = k log 2 + r with |r| ≤ log(2) / 2, where log 2 is split in two parts so that k
times the first is exact (W. J. Cody and W. Waite, Software Manual for the Elementary Functions,
1980), and a polynomial in r. Logarithms: x = 2^e m with m from √½ to √2, and log m = 2 atanh(s)
with s = (m - 1) / (m + 1), as a polynomial in s² (P.-T. P. Tang, ACM TOMS 16 (4), 1990). log1p adds
the rounding error of 1 + x. tanh of float64 is 1 - 2 / (exp(2x) + 1), and near 0 x + x³ times a
ratio of polynomials in x², with one division. .ci/elementary_coefficients.py computes the
coefficients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir as llvm

from gpualgo._operators.numpy_rules.code import Code, f32, f64

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
_LOG_SINGLE = (
    0.6666666655358509,
    0.40000122584957254,
    0.2855073636310781,
    0.23332762955117523,
)
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


FUNCTIONS: dict[str, Callable[[Code, Any], Any]] = {
    name: _function(name) for name in ("exp", "expm1", "log", "log1p", "tanh")
}
