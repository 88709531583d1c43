"""What elementary functions are made of: polynomials, and operations with their rounding errors.

All are code without branches, calls and loads: LLVM vectorises loops over it. No operation rounds
otherwise with a fused multiply-add than without, so an element's bits depend neither on its index
nor on the processor. `tests/operators/coefficients.py` computes the polynomials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from llvmlite import ir as llvm

from gpualgo._operators.numpy_rules.storage import Code, f32, f64
from gpualgo._operators.numpy_rules.values import WORDS, Float, Integer, choose, loop

# --- Polynomials, lowest coefficient first: for float64, and for float32.

POLYNOMIALS: dict[str, tuple[Sequence[float], Sequence[float]]] = {
    "exp": (  # (exp(r) - 1 - r - r² / 2) / r³ for |r| <= log(2) / 2
        (
            0.16666666666666669, 0.041666666666666664, 0.008333333333330039, 0.0013888888888886537,
            0.00019841269863171557, 2.4801587317228724e-05, 2.7557268276905696e-06,
            2.7557282838800484e-07, 2.5100472505694996e-08, 2.09112987659402e-09,
        ),
        (0.16666667, 0.041666463, 0.008333207, 0.0013935101, 0.00019945136),
    ),
    "log": (  # (2 atanh(s) - 2 s) / s³ in s² for s = f / (2 + f), 1 + f from √½ to √2
        (
            0.666666666666667, 0.3999999999989827, 0.2857142862653362, 0.22222211043776857,
            0.18182895750119193, 0.1533150161114533, 0.1461916613488797,
        ),
        (),
    ),
    "power": (  # ((atanh(s) / s - 1) / s² - 1/3) / s² in s²
        (
            0.2, 0.14285714285714685, 0.1111111111082777, 0.0909090916773562, 0.07692297477068973,
            0.06667402574805938, 0.05853112067730471, 0.058616531170404246,
        ),
        (),
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
    "log1p": (  # (f - log(1 + f) - f² / 2) / f³ for 1 + f from √½ to √2
        (),
        (
            -0.33333313, 0.2500001, -0.20002073, 0.16667996, -0.14220327, 0.12406034, -0.11883575,
            0.11671411, -0.067508556,
        ),
    ),
    "slope": ((), (-0.5276801616751259, 0.47058823529411764)),  # -0.5 / (1 + f)
    "log2": (  # log2(1 + f) / f for 1 + f from √½ to √2
        (),
        (
            1.4426950408708716, -0.7213475209632962, 0.48089836018118987, -0.3606736552955179,
            0.28853739388702887, -0.24045433743635788, 0.20617284926800622, -0.1802710361754635,
            0.15878333424495206, -0.14349001013041662, 0.1449515287925839, -0.14145058773412145,
            0.07553935842392684,
        ),
    ),
    "tanh": (  # the numerator of tanh(x) / x in x² for |x| <= 9.02
        (),
        (
            0.9999999987337173, 0.1367992574606985, 0.0038683394210019405, 2.800759455646641e-05,
            3.058496689626639e-08, -1.2203096694277863e-11,
        ),
    ),
    "tanh under": (  # the denominator
        (),
        (
            1.0, 0.4701325782960963, 0.02724588591795716, 0.00039386481002990595,
            1.2873709159218516e-06,
        ),
    ),
    "tan": (  # ((tan(r) - r) / r³ - 1/3) / r² in r² for |r| <= π / 4
        (
            0.1333333333335877, 0.05396825394778441, 0.021869489189601844, 0.008863224213612145,
            0.003592249266402191, 0.00145497295109177, 0.0005942498455088555,
            0.0002245686493696569, 0.00013237992573769577, -2.0972305978615148e-05,
            8.481311183447762e-05, -4.252887766701221e-05, 2.0331543279259174e-05,
        ),
        (
            0.13333063, 0.054023113, 0.021443881, 0.010468421, 0.0005064323, 0.004189324,
        ),
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
    "cbrt": (  # ((1 - e)^(-1/3) - 1) / e for |e| <= 0.103
        (
            0.3333333333335556, 0.22222223450722445, 0.17283951738326275, 0.1440236864903358,
            0.12482001061721017, 0.1126903817397413, 0.10199319160039569,
        ),
        (0.3333333333335556, 0.223377572915019, 0.17384108151277575),
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

    def fused(self, factor: Any, term: Any) -> Any:
        """Return self * factor + term, rounded once, on every processor."""
        if _is_nothing(factor) or _is_nothing(term):
            return self * factor + term
        if _is_fused(self.code):
            return self.emit("fma", factor, term)
        return _fused(self, self.like(factor), self.like(term))

    def polynomial(self, name: str) -> Any:
        """Return a polynomial of this number by Estrin's scheme (G. Estrin, 1960)."""
        terms: list[Any] = list(POLYNOMIALS[name][self.format is not DOUBLE])
        power = self
        while len(terms) > 1:
            pairs = [power.fused(terms[i + 1], terms[i]) for i in range(0, len(terms) - 1, 2)]
            terms = pairs + terms[2 * len(pairs) :]
            power = power * power if len(terms) > 1 else power
        return terms[0]


def _is_nothing(term: Any) -> bool:
    return isinstance(term, float) and term == 0


def real(x: Float, form: Format) -> Real:
    return Real(x.code, x.to(form.type).raw, form)


def power_of_two(x: Real, exponent: Integer) -> Any:
    """Return 2 to an integer in the range of x, of which the low bits are used."""
    return x.of_bits((exponent + x.format.bias) << x.format.mantissa)


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
    """Return a product and its rounding error."""
    product = a * b
    return product, 0.0 if a.format.is_wide else a.fused(b, -product)


def _is_fused(code: Code) -> bool:
    codegen = code.context.codegen()
    is_arm = codegen._tm.triple.startswith(("aarch64", "arm64"))
    return is_arm or "+fma" in codegen._tm_features.split(",")


def _fused(a: Real, b: Real, c: Real) -> Any:
    """Return a b + c as an instruction for it does.

    For float64 |a| and |b| are below 2^996, and |a b| is 0 or from 2^-968 to 2^1022, or so small
    that it does not change c.
    """
    if a.raw.type == f32:
        product = real(a, DOUBLE) * real(b, DOUBLE)
        return Real(a.code, _to_odd(product, real(c, DOUBLE)).to(f32).raw, a.format)
    product = a * b  # S. Boldo and G. Melquiond, 2008
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    error = (a_high * b_high - product) + a_high * b_low + a_low * b_high + a_low * b_low
    low, rest = summed(c, error)
    high, low = summed(product, low)
    result, plain = high + _to_odd(rest, low), product + c
    return choose((result != 0.0) & (abs(plain) < INF), result, plain)


def _to_odd(a: Real, b: Real) -> Any:
    """Return a + b, cut to its bits, with the last bit set unless that is exact."""
    total, error = summed(a, b)
    bits = total.bits
    is_inexact = choose(abs(error) > 0.0, bits.like(1), 0)  # 0 for an infinite total
    is_above = ((bits ^ error.bits) >> 63) & is_inexact
    return total.of_bits((bits - is_above) | is_inexact)


def _halves(x: Real) -> tuple[Any, Any]:
    shifted = x * (2.0**27 + 1.0)
    high = shifted - (shifted - x)
    return high, x - high


def quotient_of(top: Real, bottom: Real, tops: Any = 0.0, bottoms: Any = 0.0) -> Any:
    """Return (top + tops) / (bottom + bottoms) as a quotient and a small number to add."""
    inverse = 1.0 / bottom
    quotient = top * inverse
    rest = quotient.fused(-bottom, top)
    if not _is_nothing(tops):
        rest = rest + tops
    if not _is_nothing(bottoms):
        rest = quotient.fused(-bottoms, rest)
    return quotient, rest * inverse


# --- Angles.
#
# |x| is multiplied by 2/π without those bits whose products are multiples of 4, as by M. H. Payne
# and R. N. Hanek (1983). Selects find the bits: loads from a table would not be vectorised.

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


def _turned_single(x: Real) -> tuple[Any, Any]:
    """Return k (in the low bits, up to fours) and r for |x| = k π/2 + r, x a float32."""
    size = abs(x)
    scaled, row = size, [0.0, 0.0, 0.0]
    for i in range(4):  # x without 2^32i times a part of a turn
        turn = Fraction(_two_over_pi(), 1 << _PRECISION + 2) * 2 ** (32 * i) % 2**23
        parts = parts_of(turn, 29, 29)
        if i == 0:
            row = [*parts]
            continue
        is_beyond = size > math.nextafter(2.0 ** (32 * i), 0.0)
        row = [choose(is_beyond, x.like(a), b) for a, b in zip(parts, row, strict=True)]
        scaled = choose(is_beyond, size * 2.0 ** (-32 * i), scaled)
    p0, p1, p2 = (scaled * part for part in row)
    p0, p1 = p0 - p0.intrinsic("rint"), p1 - p1.intrinsic("rint")
    k = ((p0 + p1 + p2) * 4.0).intrinsic("rint")
    r = (((p0 - k * 0.25) + p1) + p2) * float(2 * PI)
    return (k + x.format.magic).bits, r


def turned(x: Real) -> tuple[Any, Any, Any]:
    """Return k (in the low bits, up to fours) and r in two parts, for |x| = k π/2 + r."""
    if x.format.is_wide:
        return *_turned_single(x), 0.0
    form, size = x.format, abs(x)
    exponent = x.of_bits(size.bits >> form.mantissa | x.like(2.0**form.mantissa).bits)
    exponent = exponent - (2.0**form.mantissa + form.bias)
    exponent = choose(exponent < 0.0, 0.0, exponent)
    shifted = (exponent - 26.0) * (1 / 53) + form.magic
    row = shifted - form.magic  # of 53 exponents
    # Bits of 2/π of the values 2^53 to 2^1, 2^0 to 2^-52, …
    words: list[Any] = [
        float((_two_over_pi() >> _PRECISION + 1 - 53 * i) % (1 << 53)) for i in range(24)
    ]
    for step in (16, 8, 4, 2, 1):
        is_later, later = (shifted.bits & step) != 0, words[step:]
        words = [
            choose(is_later, x.like(later[i]), words[i]) if i < len(later) else words[i]
            for i in range(min(step + 4, len(words)))
        ]
    size = size * power_of_two(x, (row * -53.0 + form.magic).bits)
    products = [multiplied(size * 2.0 ** (1 - 53 * i), words[i]) for i in range(5)]
    (p0, e0), (p1, e1), (p2, e2), (p3, e3), (p4, _) = products
    total, rest, lows = _without_fours(p0), e3 + p4, []
    for term in (_without_fours(e0), _without_fours(p1), e1, p2):
        total, low = summed(total, term)
        lows.append(low)
    k = total.intrinsic("rint")
    total = total - k
    for term in (e2, p3, *lows):
        total, low = summed(total, term)
        rest = rest + low
    quarter, less = parts_of(PI / 2, 53)
    r, error = multiplied(total, quarter)
    return (k + form.magic).bits, r, error + (total * less + rest * quarter)


def _without_fours(x: Real) -> Any:
    return x - (x * 0.25).intrinsic("rint") * 4.0


def turned_less(x: Real) -> tuple[Any, Any, Any]:
    """Return what `turned` does, for an |x| that is not large."""
    form, size = x.format, abs(x)
    shifted = size.fused(float(2 / PI), form.magic)
    k = shifted - form.magic
    first, second, third = parts_of(PI / 2, *((8, 24) if form is SINGLE else (33, 53)))
    product, error = multiplied(k, second)
    r, low = summed(size - k * first, -product)  # the first product and difference are exact
    return shifted.bits, r, k.fused(-third, low - error)


# --- Rare cases.
#
# A branch for each element would keep LLVM from vectorising a loop. A function has forms for
# vectors instead, which branch once for all of their elements.


def unless_large(
    name: str, x: Real, limit: float, usual: Real, rare: Callable[[Real], Any]
) -> Any:  # fmt: skip
    """Return `usual`, but rare(x) for |x| > limit; the name stands for the two last."""
    module, ty = x.code.builder.module, x.raw.type
    symbol = f"gpualgo_{name}_{ty}"
    if (function := module.globals.get(symbol)) is None:
        widest = vector_bits(x.code) // (32 if ty == f32 else 64)
        forms = {n: f"{symbol}_{n}" for n in ((widest, widest // 2) if ty == f32 else (widest,))}
        function = new_function(module, symbol, ty, [ty, ty])
        names = ",".join(f"_ZGV_LLVM_N{n}vv_{symbol}({form})" for n, form in forms.items())
        set.add(function.attributes, f'"vector-function-abi-variant"="{names}"')

        def computed(builder: Any, number: Any) -> Any:
            return rare(Real(Code(x.code.context, builder), number, x.format)).to(ty).raw

        builder, (number, other) = llvm.IRBuilder(function.append_basic_block()), function.args
        is_large = _is_beyond(builder, number, limit)
        with builder.if_then(is_large, likely=False):
            builder.ret(computed(builder, number))
        builder.ret(other)
        for n, form in forms.items():
            kind = llvm.VectorType(ty, n)
            vector = new_function(module, form, kind, [kind, kind])
            _vector_form(vector, x.code, limit, computed)
    return x.made(x.code.builder.call(function, [x.raw, usual.raw]))


def vector_bits(code: Code) -> int:
    features = code.context.codegen()._tm_features.split(",")
    return 512 if "+avx512f" in features else 256 if "+avx" in features else 128


def new_function(module: Any, name: str, ty: Any, args: Sequence[Any]) -> Any:
    """Return a new function that is kept although only vector code calls it."""
    function = llvm.Function(module, llvm.FunctionType(ty, args), name)
    function.linkage = "weak_odr"
    for attribute in ("noinline", "nounwind", "readnone", "speculatable", "willreturn"):
        set.add(function.attributes, attribute)
    return function


def vector(values: Sequence[Any]) -> Any:
    builder, item = values[0].code.builder, values[0].raw.type
    raw = llvm.Constant(llvm.VectorType(item, len(values)), llvm.Undefined)
    for i, value in enumerate(values):
        raw = builder.insert_element(raw, value.raw, llvm.IntType(32)(i))
    return raw


def _is_beyond(builder: Any, numbers: Any, limit: float) -> Any:
    """Return whether |number| > limit, of a number or of each of a vector."""
    ty = numbers.type
    ends = (limit, -limit) if ty in WORDS else ([limit] * ty.count, [-limit] * ty.count)
    above, below = (
        builder.fcmp_ordered(sign, numbers, ty(end)) for sign, end in zip("><", ends, strict=True)
    )
    return builder.or_(above, below)


def _vector_form(function: Any, code: Code, limit: float, rare: Callable[..., Any]) -> None:
    builder, (numbers, result) = llvm.IRBuilder(function.append_basic_block()), function.args
    vector, inner, word = numbers.type, Code(code.context, builder), llvm.IntType(32)
    place = builder.alloca(vector)
    are_beyond = _is_beyond(builder, numbers, limit)
    bits = builder.bitcast(are_beyond, llvm.IntType(vector.count))
    with builder.if_then(builder.icmp_unsigned("!=", bits, bits.type(0)), likely=False):
        builder.store(numbers, place)
        first = builder.bitcast(place, vector.element.as_pointer())

        def step(i: Integer) -> list[Any]:  # of a loop that LLVM vectorises
            pointer = builder.gep(first, [i.raw])
            builder.store(rare(builder, builder.load(pointer)), pointer)
            return [i + 1]

        loop([Integer(inner, word(0))], lambda i: i != vector.count, step)
        builder.ret(builder.select(are_beyond, builder.load(place), result))
    builder.ret(result)
