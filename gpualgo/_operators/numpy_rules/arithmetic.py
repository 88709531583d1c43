"""What elementary functions are made of: polynomials, and operations with their rounding errors.

All are code without branches, calls and loads: LLVM vectorises loops over it. No operation rounds
otherwise with a fused multiply-add than without, so an element's bits depend neither on its index
nor on the processor. `tests/operators/coefficients.py` computes the polynomials.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from gpualgo._operators.numpy_rules.storage import Code, f32, f64
from gpualgo._operators.numpy_rules.values import Float, choose

# --- Polynomials, lowest coefficient first: for float64, and for float32.

POLYNOMIALS: dict[str, tuple[Sequence[float], Sequence[float]]] = {
    "exp": (  # (exp(r) - 1 - r) / r² for |r| <= log(2) / 2
        (
            0.5000000000000006, 0.1666666666666667, 0.041666666666573066, 0.008333333333326136,
            0.001388888893251478, 0.00019841269874820627, 2.480150431378554e-05,
            2.7557255400206422e-06, 2.7626371065696354e-07, 2.5105217004720745e-08,
        ),
        (
            0.5000000047146057, 0.16666666719028936, 0.04166635277111221, 0.00833329846980059,
            0.0013941118895837, 0.00019899285575896282,
        ),
    ),
    "log": (  # (2 atanh(s) - 2 s) / s³ in s² for s = f / (2 + f), 1 + f from √½ to √2
        (
            0.666666666666667, 0.3999999999989827, 0.2857142862653362, 0.22222211043776857,
            0.18182895750119193, 0.1533150161114533, 0.1461916613488797,
        ),
        (0.6666666655358509, 0.40000122584957254, 0.2855073636310781, 0.23332762955117523),
    ),
    "power": (  # ((atanh(s) / s - 1) / s² - 1/3) / s² in s²
        (
            0.2, 0.14285714285714685, 0.1111111111082777, 0.0909090916773562, 0.07692297477068973,
            0.06667402574805938, 0.05853112067730471, 0.058616531170404246,
        ),
        (),
    ),
    "tanh": (  # the numerator of (tanh(x) - x) / x³ in x² for |x| <= 0.625
        (-0.3333333333333333, -0.020498799708498872, -0.0001991780435861287),
        (
            -0.3333333317214036, 0.1333330355691574, -0.053959259577204544, 0.02176891865102821,
            -0.008343945515839153, 0.002292744816178142,
        ),
    ),
    "tanh under": (  # the denominator
        (1.0, 0.4614963991254931, 0.02329133187629886, 0.0002065337374875025), (1.0,),
    ),
    "sinh": (  # (sinh(r) - r) / r³ in r² for |r| <= log(2) / 2
        (
            0.16666666666666669, 0.008333333333330039, 0.00019841269863171557,
            2.7557268276905696e-06, 2.5100472505694996e-08,
        ),
        (0.16666666681704215, 0.008333310844647862, 0.00019891080463998843),
    ),
    "cosh": (  # (cosh(r) - 1) / r² in r² for |r| <= log(2) / 2
        (
            0.5000000000000001, 0.041666666666623824, 0.0013888888917367081,
            2.4801521057868204e-05, 2.7620201591031547e-07,
        ),
        (0.500000001353873, 0.04166646419740569, 0.0013933730715792083),
    ),
    "sin": (  # (sin(r) - r) / r³ in r² for |r| <= π / 4
        (
            -0.16666666666666666, 0.008333333333330946, -0.0001984126983675497,
            2.755731610068303e-06, -2.5051131455427946e-08, 1.591810123027412e-10,
        ),
        (
            -0.16666666663853044, 0.008333331873837089, -0.00019840086263755443,
            2.7249864655139585e-06,
        ),
    ),
    "cos": (  # (cos(r) - 1 + r² / 2) / r⁴ in r² for |r| <= π / 4
        (
            0.041666666666666664, -0.0013888888888887395, 2.4801587298763433e-05,
            -2.7557317270560326e-07, 2.0876146024689747e-09, -1.1382614868556325e-11,
        ),
        (0.04166666465830042, -0.0013888302802309161, 2.454789161981386e-05),
    ),
    "arctan": (  # (arctan(t) - t) / t³ in t² for |t| <= tan(π / 8)
        (
            -0.3333333333333333, 0.19999999999995513, -0.1428571428466482, 0.11111111015117626,
            -0.09090904572487347, 0.07692183059894114, -0.06664509603255386, 0.05858132894427922,
            -0.05085365922344248, 0.03922923713835943, -0.01917392228554793,
        ),
        (
            -0.3333333175970025, 0.19999540146206404, -0.14263943907717944, 0.10743605148917443,
            -0.06451509518644878,
        ),
    ),
    "arcsin": (  # (arcsin(x) - x) / x³ in x² for |x| <= ½
        (
            0.16666666666666669, 0.07499999999998425, 0.04464285714637338, 0.030381944137085216,
            0.022372173002005596, 0.017352391265909227, 0.013971235301124539,
            0.011478952690257387, 0.010324318288744113, 0.00545087818772055,
            0.017419357964884856, -0.014881409392818066, 0.02877844261259304,
        ),
        (
            0.1666666633654049, 0.07500094761172901, 0.04459931916287114, 0.031101727829067168,
            0.017143716819253568, 0.03370072632136513,
        ),
    ),
    "cbrt": (  # (1 + f)^(-1/3) for 1 + f from √½ to √2, to 4.7e-5 and 3.0e-4
        (
            0.9999717060828927, -0.33296004363074994, 0.22471850067410695, -0.18794383566368342,
            0.12474055895636721,
        ),
        (0.9998065702027875, -0.3349981614473625, 0.23687248656556642, -0.1544003200736959),
    ),
}  # fmt: skip

LN2 = Fraction("0.693147180559945309417232121458176568075500134360255254120680009")
LN10 = Fraction("2.302585092994045684017991454684364207601101488628772976033327901")
PI = Fraction("3.141592653589793238462643383279502884197169399375105820974944592")
INF, NAN = float("inf"), float("nan")


def parts_of(value: Fraction, *num_bits: int) -> tuple[float, ...]:
    """Return floats with these numbers of bits, and one more, whose sum is the value."""
    parts = []
    for bits in num_bits:
        scale = Fraction(2) ** (bits - math.frexp(float(value))[1])
        parts.append(float(round(value * scale) / scale))
        value -= Fraction(parts[-1])
    return *parts, float(value)


# --- Floats that have a format.


class Format(NamedTuple):
    """How numbers are computed: in which type, for results of which precision."""

    type: Any
    mantissa: int  # bits after the leading one
    bias: int
    largest: float  # exp(largest) and all larger ones are infinite
    lowest: float  # exp(lowest) is zero
    is_wide: bool = False  # float32 results computed in float64: rounding errors do not matter

    @property
    def magic(self) -> float:
        """Return a number to add to a small x for its nearest integer in the low bits."""
        return 1.5 * 2.0**self.mantissa

    @property
    def half(self) -> int:
        """Return how many bits a factor may have whose product with another one is exact."""
        return (self.mantissa + 1) // 2


DOUBLE = Format(f64, 52, 1023, 710.0, -746.0)
SINGLE = Format(f32, 23, 127, 89.0, -104.0)
WIDE = Format(f64, 52, 1023, 90.0, -110.0, is_wide=True)


class Real(Float):
    """A float of a format. Terms and factors that are Python's 0.0 are left out of formulas."""

    __slots__ = ("format",)

    def __init__(self, code: Code, raw: Any, form: Format) -> None:
        super().__init__(code, raw)
        self.format = form

    def made(self, raw: Any) -> Any:
        return Real(self.code, raw, self.format)

    def __add__(self, other: Any) -> Any:
        return self if _is_nothing(other) else self.emit("fadd", other)

    def __sub__(self, other: Any) -> Any:
        return self if _is_nothing(other) else self.emit("fsub", other)

    def __mul__(self, other: Any) -> Any:
        return 0.0 if _is_nothing(other) else self.emit("fmul", other)

    __radd__, __rmul__ = __add__, __mul__

    def within(self, low: float, high: float) -> Any:
        x = choose(self > high, high, self)
        return choose(x < low, low, x)

    def polynomial(self, name: str, first: int = 0) -> Any:
        """Return a polynomial of this number by Estrin's scheme (G. Estrin, 1960)."""
        terms: list[Any] = list(POLYNOMIALS[name][self.format is not DOUBLE][first:])
        power = self
        while len(terms) > 1:
            pairs = [terms[i] + terms[i + 1] * power for i in range(0, len(terms) - 1, 2)]
            terms = pairs + terms[2 * len(pairs) :]
            power = power * power if len(terms) > 1 else power
        return terms[0]


def _is_nothing(term: Any) -> bool:
    return isinstance(term, float) and term == 0


def real(x: Float, form: Format) -> Real:
    return Real(x.code, x.to(form.type).raw, form)


# --- Operations with their rounding errors.


def added(a: Any, b: Real) -> tuple[Any, Any]:
    """Return a + b and its rounding error, for |a| >= |b| or a = 0."""
    total = a + b
    return total, 0.0 if b.format.is_wide else (a - total) + b


def summed(a: Real, b: Real) -> tuple[Any, Any]:
    """Return a + b and its rounding error (D. Knuth, 1969)."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def multiplied(a: Real, b: Any) -> tuple[Any, Any]:
    """Return a product and its rounding error, by a fused multiply-add if the processor has it.

    Otherwise by T. J. Dekker's exact products (1971), which give the same bits.
    """
    product = a * b
    if a.format.is_wide:
        return product, 0.0
    if _is_fused(a.code):
        return product, a.emit("fma", b, -product)
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(a.like(b))
    rest = (a_high * b_high - product) + a_high * b_low + a_low * b_high
    return product, rest + a_low * b_low


def _is_fused(code: Code) -> bool:
    features = code.context.codegen()._tm_features
    return "+fma" in features.split(",") or code.context.codegen()._tm.triple.startswith("aarch64")


def _halves(x: Real) -> tuple[Any, Any]:
    shifted = x * (2.0 ** (x.format.mantissa + 1 - x.format.half) + 1.0)
    high = shifted - (shifted - x)
    return high, x - high


def quotient_of(top: Real, bottom: Real, tops: Any = 0.0, bottoms: Any = 0.0) -> Any:
    """Return (top + tops) / (bottom + bottoms) as a rounded quotient and a small number to add."""
    quotient = top / bottom
    if top.format.is_wide:
        return quotient, 0.0
    product, error = multiplied(quotient, bottom)
    return quotient, (((top - product) - error) + (tops - quotient * bottoms)) / bottom
