"""exp, expm1, log, log1p and tanh on the CPU, as code without branches that LLVM makes vectors of.

A call of the mathematical library would keep a loop at one element at a time. Nothing here is
contracted, and no instruction is used that some processors lack: an element has the same bits
wherever it stands, in vectors and in the rest of a loop, and on every processor. float32 is
computed in float64 and rounded once, within 0.52 units in the last place; float64 is within 1.5
(tests/operators/test_elementary.py).

Exponentials: x = k log 2 + r with |r| ≤ log(2) / 2, where log 2 is held in two parts so that k
times the first is exact (W. J. Cody and W. Waite, Software Manual for the Elementary Functions,
1980), and a polynomial of r. Logarithms: x = 2^e m with m from √½ to √2, and log m = 2 atanh(s)
with s = (m - 1) / (m + 1), as a polynomial of s² (P.-T. P. Tang, ACM TOMS 16 (4), 1990). log1p adds
what rounding 1 + x has lost. Coefficients are those of .ci/elementary_coefficients.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir as llvm

from gpualgo._operators.numpy_rules.code import Code, f32, f64

# the error is 1.2e-16
_EXP = (
    0.5000000000000001,
    0.16666666666666669,
    0.04166666666662413,
    0.008333333333330062,
    0.0013888888917213717,
    0.00019841269863053618,
    2.4801521295954376e-05,
    2.7557268459997064e-06,
    2.7620088445409746e-07,
    2.510038549551032e-08,
)
# the error is 1.4e-09
_EXP_SINGLE = (
    0.500000001346581,
    0.16666666681623232,
    0.041666464925285904,
    0.0083333109254809,
    0.0013933649996309251,
    0.00019890990824673654,
)
# the error is 3.7e-17
_LOG = (
    0.6666666666666666,
    0.4000000000000089,
    0.28571428570795937,
    0.2222222239345263,
    0.181817954545265,
    0.15386249788196105,
    0.1326850331279476,
    0.13089445145246312,
)
# the error is 1.2e-09
_LOG_SINGLE = (
    0.6666666655358509,
    0.40000122584957254,
    0.2855073636310781,
    0.23332762955117523,
)
# the error is 2.1e-17
_TANH = (
    -0.3333333333333333,
    0.13333333333332392,
    -0.0539682539670594,
    0.021869488476962563,
    -0.008863234021529514,
    0.003592105532132769,
    -0.0014556239774192678,
    0.0005887537111834804,
    -0.00023410556936672797,
    8.426522203958066e-05,
    -2.0026740085317684e-05,
)
_LN2_HIGH, _LN2_LOW = 0.6931471805592082, 7.371002565167799e-13
_LOG2_E = 1.4426950408889634

_MAGIC = 1.5 * 2.0**52  # added to a double below 2^51, it leaves the nearest integer in low bits
_INF, _NAN = float("inf"), float("nan")
_i64 = llvm.IntType(64)


class _Doubles:
    """Arithmetic on doubles: numbers of Python's are constants."""

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
        """Return found where a relation holds, which it does not of NaN."""
        holds = self.builder.fcmp_ordered(relation, self.of(a), self.of(b))
        return self.builder.select(holds, self.of(found), self.of(other))

    def within(self, x: Any, low: float, high: float) -> Any:
        """Return x moved between two bounds; NaN stays."""
        return self.select("<", x, low, low, self.select(">", x, high, high, x))

    def bits(self, x: Any) -> Any:
        return self.builder.bitcast(self.of(x), _i64)

    def double(self, bits: Any) -> Any:
        return self.builder.bitcast(bits, f64)

    def power_of_two(self, exponent: Any) -> Any:
        """Return 2 to an integer from -1022 to 1023."""
        biased = self.builder.add(exponent, _i64(1023))
        return self.double(self.builder.shl(biased, _i64(52)))

    def magnitude(self, x: Any) -> Any:
        return self.double(self.builder.and_(self.bits(x), _i64(2**63 - 1)))

    def signed(self, x: Any, sign: Any) -> Any:
        """Return x, which is not negative, with the sign of another."""
        top = self.builder.and_(self.bits(sign), _i64(-(2**63)))
        return self.double(self.builder.or_(self.bits(x), top))

    def polynomial(self, x: Any, coefficients: Sequence[float]) -> Any:
        """Return a polynomial, lowest coefficient first, by pairs (G. Estrin, 1960)."""
        terms: list[Any] = list(coefficients)
        while len(terms) > 1:
            pairs = [self.add(terms[i], self.mul(terms[i + 1], x))
                     for i in range(0, len(terms) - 1, 2)]  # fmt: skip
            terms = pairs + terms[2 * len(pairs) :]
            x = self.mul(x, x) if len(terms) > 1 else x
        return terms[0]

    def reduced(self, x: Any) -> tuple[Any, Any, Any]:
        """Return k as an integer, and r and what rounding r has lost, of x = k log 2 + r."""
        shifted = self.add(self.mul(x, _LOG2_E), _MAGIC)
        k = self.sub(shifted, _MAGIC)
        high, low = self.sub(x, self.mul(k, _LN2_HIGH)), self.mul(k, _LN2_LOW)
        r = self.sub(high, low)
        lost = self.sub(self.sub(high, r), low)
        return self.builder.sub(self.bits(shifted), self.bits(_MAGIC)), r, lost

    def scaled(self, x: Any, k: Any) -> Any:
        """Return x 2^k, rounded once, for k from -1100 to 1100."""
        half = self.builder.sub(
            self.builder.lshr(self.builder.add(k, _i64(2200)), _i64(1)), _i64(1100)
        )
        rest = self.builder.sub(k, half)
        return self.mul(self.mul(x, self.power_of_two(half)), self.power_of_two(rest))

    def beyond(self, r: Any, lost: Any, is_single: bool) -> Any:
        """Return exp(r) - 1 - r for a small r."""
        square = self.mul(r, r)
        if is_single:
            return self.mul(square, self.polynomial(r, _EXP_SINGLE))
        return self.add(self.mul(square, self.polynomial(r, _EXP)), lost)

    def exp(self, x: Any, is_single: bool) -> Any:
        bounds = (-110.0, 90.0) if is_single else (-746.0, 710.0)
        k, r, lost = self.reduced(self.within(x, *bounds))
        found = self.add(1.0, self.add(r, self.beyond(r, lost, is_single)))
        return self.mul(found, self.power_of_two(k)) if is_single else self.scaled(found, k)

    def expm1(self, x: Any, is_single: bool) -> Any:
        k, r, lost = self.reduced(self.within(x, -40.0, 710.0))
        # 2^-k is 0 where it is too small to count, and would not be normal.
        counts = self.builder.icmp_signed("<", k, _i64(100))
        inverse = self.power_of_two(
            self.builder.sub(_i64(0), self.builder.select(counts, k, _i64(0)))
        )
        above = self.sub(1.0, self.builder.select(counts, inverse, f64(0.0)))
        near = self.add(above, r)  # what rounding this has lost is exact: above is 0, or above |r|
        rest = self.add(self.sub(r, self.sub(near, above)), self.beyond(r, lost, is_single))
        return self.select("==", x, 0.0, x, self.scaled(self.add(near, rest), k))

    def log_parts(self, x: Any) -> tuple[Any, Any]:
        """Return e as a double and m - 1 of x = 2^e m, for a positive normal x."""
        root = 0x3FE6A09E667F3BCD  # of one half
        offset = self.builder.sub(self.bits(x), _i64(root))
        above = self.builder.lshr(self.builder.add(offset, _i64(2048 << 52)), _i64(52))
        biased = self.builder.or_(above, self.bits(2.0**52))
        e = self.sub(self.double(biased), 2.0**52 + 2048.0)
        shift = self.builder.shl(self.builder.sub(above, _i64(2048)), _i64(52))
        return e, self.sub(self.double(self.builder.sub(self.bits(x), shift)), 1.0)

    def log_of(self, e: Any, f: Any, low: Any, is_single: bool) -> Any:
        """Return e log 2 + log(1 + f) + low."""
        s = self.div(f, self.add(2.0, f))
        z = self.mul(s, s)
        p = self.mul(z, self.polynomial(z, _LOG_SINGLE if is_single else _LOG))
        rest = self.sub(self.mul(s, self.sub(f, p)), low)
        return self.add(self.mul(e, _LN2_HIGH), self.sub(f, self.sub(rest, self.mul(e, _LN2_LOW))))

    def log(self, x: Any, is_single: bool) -> Any:
        if is_single:  # all are normal doubles
            e, f = self.log_parts(x)
        else:
            tiny = 2.0**-1022
            e, f = self.log_parts(self.select("<", x, tiny, self.mul(x, 2.0**54), x))
            e = self.add(e, self.select("<", x, tiny, -54.0, 0.0))
        return self._of_log(x, x, self.log_of(e, f, 0.0, is_single))

    def log1p(self, x: Any, is_single: bool) -> Any:
        u = self.add(1.0, x)
        back = self.sub(u, 1.0)
        lost = self.add(self.sub(1.0, self.sub(u, back)), self.sub(x, back))
        e, f = self.log_parts(u)
        found = self._of_log(u, x, self.log_of(e, f, self.div(lost, u), is_single))
        return self.select("==", x, 0.0, x, found)

    def _of_log(self, u: Any, x: Any, found: Any) -> Any:
        """Return the logarithm of u, of which `found` is right where u is positive and finite."""
        found = self.select("<", u, _INF, found, x)  # infinity and NaN are themselves
        found = self.select("==", u, 0.0, -_INF, found)
        return self.select("<", u, 0.0, _NAN, found)

    def tanh(self, x: Any, is_single: bool) -> Any:
        size = self.magnitude(x)
        size = self.select(">", size, 20.0, 20.0, size)
        if is_single:
            k, r, lost = self.reduced(self.mul(size, 2.0))
            power, growth = self.power_of_two(k), self.add(r, self.beyond(r, lost, True))
            t = self.add(self.mul(power, growth), self.sub(power, 1.0))
            found = self.div(t, self.add(t, 2.0))
        else:
            k, r, lost = self.reduced(self.mul(size, 2.0))
            growth = self.add(1.0, self.add(r, self.beyond(r, lost, False)))
            power = self.mul(growth, self.power_of_two(k))
            large = self.sub(1.0, self.div(2.0, self.add(power, 1.0)))
            z = self.mul(size, size)
            small = self.add(size, self.mul(self.mul(size, z), self.polynomial(z, _TANH)))
            found = self.select("<", size, 0.5625, small, large)
        return self.signed(found, x)


def _function(name: str) -> Callable[[Code, Any], Any]:
    def function(code: Code, x: Any) -> Any:
        is_single = x.type == f32
        doubles = _Doubles(code)
        wide = code.builder.fpext(x, f64) if is_single else x
        found = getattr(doubles, name)(wide, is_single)
        return code.builder.fptrunc(found, f32) if is_single else found

    return function


FUNCTIONS: dict[str, Callable[[Code, Any], Any]] = {
    name: _function(name) for name in ("exp", "expm1", "log", "log1p", "tanh")
}
