"""NumPy's functions of complex numbers as LLVM code, by the same steps as NumPy."""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir as llvm
from numba import types

from gpualgo._operators.numpy_rules import floats
from gpualgo._operators.numpy_rules.errors import Refused
from gpualgo._operators.numpy_rules.storage import Code, f32, f64

# --- Complex logarithms that are accurate near |z| = 1, and complex powers for GPUs.
#
# numba's log(hypot(x, y)) loses precision near 1, as the absolute value is rounded first.
# Powers on GPUs use these logarithms, as numba's power returns 0 for 1j to an imaginary
# power.

_FAR = 2.0**500  # squares of larger numbers, and of those below 1 / _FAR, may leave the range
_SCALE = 600  # exponent of the power of two by which such numbers are scaled
UNITS = {"log": 1.0, "log2": 1 / math.log(2), "log10": 1 / math.log(10)}  # factors of the log
_HALF_TOP = 709.0  # exp(709) is a finite double, its square is not


def log_of_parts(code: Code, number: Parts, unit: float = 1.0) -> Parts:
    builder, ty = code.builder, number[0].type
    wide = tuple(builder.fpext(part, f64) for part in number) if ty == f32 else number
    is_infinite = code.either(*(floats.FUNCTIONS["isinf"](code, part) for part in number))
    size = (_log_of_single if ty == f32 else _log_of_size)(code, *wide)
    size = builder.select(is_infinite, f64(math.inf), size)  # also if the other part is NaN
    angle = code.libm("atan2", number[1], number[0])
    if unit != 1:
        size, angle = builder.fmul(size, f64(unit)), builder.fmul(angle, ty(unit))
    return (builder.fptrunc(size, ty) if ty == f32 else size), angle


def by_logarithm(code: Code, base: Parts, exponent: Parts) -> Parts:
    """Return the parts of exp(exponent log(base)), computed in double; base is not 0."""
    builder, ty = code.builder, base[0].type
    is_single = ty == f32
    if is_single:
        base, exponent = ((builder.fpext(x, f64), builder.fpext(y, f64))
                          for x, y in (base, exponent))  # fmt: skip
    (x, y), (bx, by) = base, exponent
    size = _log_of_single(code, x, y) if is_single else _log_of_size(code, x, y)
    phase = code.libm("atan2", y, x)
    log_size = builder.fsub(_times_log(code, bx, size), builder.fmul(by, phase))
    angle = builder.fadd(_times_log(code, by, size), builder.fmul(bx, phase))
    # As exp(half)²: the result may be finite although exp(grown) overflows.
    half = builder.fmul(log_size, f64(0.5))
    is_high = builder.fcmp_ordered(">", half, f64(_HALF_TOP))
    root = code.libm("exp", builder.select(is_high, f64(_HALF_TOP), half))
    result = tuple(
        builder.fmul(builder.fmul(root, code.libm(name, angle)), root) for name in ("cos", "sin")
    )
    if is_single:
        result = tuple(builder.fptrunc(part, ty) for part in result)
    return result[0], result[1]


def _log_of_single(code: Code, x: Any, y: Any) -> Any:
    """Return log(hypot(x, y)) for float32 values, whose squares are within a double's range."""
    return code.builder.fmul(f64(0.5), code.libm("log", _squares(code, x, y)))


def _log_of_size(code: Code, x: Any, y: Any) -> Any:
    """Return log(hypot(x, y)), accurate near 1 by log1p."""
    builder = code.builder
    x, y = (floats.FUNCTIONS["absolute"](code, part) for part in (x, y))
    is_first = builder.fcmp_ordered(">=", x, y)
    large, small = builder.select(is_first, x, y), builder.select(is_first, y, x)
    is_far = builder.fcmp_ordered(">", large, f64(_FAR))
    is_tiny = builder.fcmp_ordered("<", large, f64(1 / _FAR))
    scale = code.select(is_far, f64(2.0**-_SCALE), is_tiny, f64(2.0**_SCALE), f64(1.0))
    log_scale = _SCALE * math.log(2)
    shift = code.select(is_far, f64(log_scale), is_tiny, f64(-log_scale), f64(0.0))
    plain = code.libm("log", _squares(code, builder.fmul(large, scale), builder.fmul(small, scale)))
    excess = builder.fmul(builder.fsub(large, f64(1.0)), builder.fadd(large, f64(1.0)))
    near = code.libm("log1p", builder.fadd(excess, builder.fmul(small, small)))
    is_near = code.both(
        builder.fcmp_ordered(">", large, f64(0.7)), builder.fcmp_ordered("<", large, f64(1.5))
    )
    doubled = builder.select(is_near, near, plain)
    return builder.fadd(builder.fmul(f64(0.5), doubled), shift)


def _times_log(code: Code, part: Any, size: Any) -> Any:
    """Return part * size, but 0 for 0 * inf: else real powers of infinities would be NaN."""
    is_lost = code.both(floats.is_zero(code, part), floats.FUNCTIONS["isinf"](code, size))
    return code.builder.select(is_lost, part, code.builder.fmul(part, size))


def _squares(code: Code, x: Any, y: Any) -> Any:
    return code.builder.fadd(code.builder.fmul(x, x), code.builder.fmul(y, y))


Parts = tuple[Any, Any]


def parts(code: Code, value: Any) -> Parts:
    return code.builder.extract_value(value, 0), code.builder.extract_value(value, 1)


def joined(code: Code, real: Any, imag: Any) -> Any:
    empty = llvm.Constant(llvm.LiteralStructType([real.type, imag.type]), llvm.Undefined)
    return code.builder.insert_value(code.builder.insert_value(empty, real, 0), imag, 1)


def _by_parts(name: str) -> Callable[..., Any]:
    def each(code: Code, *values: Any) -> Any:
        pairs = zip(*(parts(code, value) for value in values), strict=True)
        return joined(code, *(floats.FUNCTIONS[name](code, *pair) for pair in pairs))

    return each


def _multiply(code: Code, a: Any, b: Any) -> Any:
    builder = code.builder
    (ar, ai), (br, bi) = parts(code, a), parts(code, b)
    real = builder.fsub(builder.fmul(ar, br), builder.fmul(ai, bi))
    imag = builder.fadd(builder.fmul(ar, bi), builder.fmul(ai, br))
    return joined(code, real, imag)


def _divide(code: Code, a: Any, b: Any) -> Any:
    """Divide by Smith's algorithm, as NumPy does; for a zero divisor divide each part by zero."""
    builder = code.builder
    (ar, ai), (br, bi) = parts(code, a), parts(code, b)
    size_r, size_i = (floats.FUNCTIONS["absolute"](code, part) for part in (br, bi))
    is_real = builder.fcmp_ordered(">=", size_r, size_i)
    larger, smaller = code.select(is_real, br, bi), code.select(is_real, bi, br)
    ratio = builder.fdiv(smaller, larger)
    scale = builder.fdiv(larger.type(1.0), builder.fadd(larger, builder.fmul(smaller, ratio)))
    real_r = builder.fadd(ar, builder.fmul(ai, ratio))
    real_i = builder.fadd(builder.fmul(ar, ratio), ai)
    imag_r = builder.fsub(ai, builder.fmul(ar, ratio))
    imag_i = builder.fsub(builder.fmul(ai, ratio), ar)
    real = builder.fmul(code.select(is_real, real_r, real_i), scale)
    imag = builder.fmul(code.select(is_real, imag_r, imag_i), scale)
    is_zero = code.both(floats.is_zero(code, br), floats.is_zero(code, bi))
    return joined(
        code,
        code.select(is_zero, builder.fdiv(ar, size_r), real),
        code.select(is_zero, builder.fdiv(ai, size_r), imag),
    )


def _reciprocal(code: Code, a: Any) -> Any:
    builder = code.builder
    real, imag = parts(code, a)
    size_r, size_i = (floats.FUNCTIONS["absolute"](code, part) for part in (real, imag))
    is_imag = builder.fcmp_ordered("<=", size_r, size_i)
    larger, smaller = code.select(is_imag, imag, real), code.select(is_imag, real, imag)
    ratio = builder.fdiv(smaller, larger)
    denominator = builder.fadd(larger, builder.fmul(smaller, ratio))
    one, minus = (builder.fdiv(part, denominator) for part in (larger.type(1.0), larger.type(-1.0)))
    other = builder.fdiv(ratio, denominator)
    other_minus = builder.fdiv(floats.negative(code, ratio), denominator)
    return joined(code, code.select(is_imag, other, one), code.select(is_imag, minus, other_minus))


def _absolute(code: Code, a: Any) -> Any:
    return code.libm("hypot", *parts(code, a))


def _square(code: Code, a: Any) -> Any:
    builder = code.builder
    real, imag = parts(code, a)
    product = builder.fmul(real, imag)
    left, right = builder.fmul(real, real), builder.fmul(imag, imag)
    return joined(code, builder.fsub(left, right), builder.fadd(product, builder.fmul(imag, real)))


def _conjugate(code: Code, a: Any) -> Any:
    real, imag = parts(code, a)
    return joined(code, real, floats.negative(code, imag))


def _sign(code: Code, a: Any) -> Any:
    builder = code.builder
    (real, imag), size = parts(code, a), _absolute(code, a)
    zero, nan = real.type(0.0), real.type(float("nan"))
    is_inf = {part: floats.FUNCTIONS["isinf"](code, part) for part in (real, imag, size)}
    results = []
    for part, other in ((real, imag), (imag, real)):
        unit = floats.FUNCTIONS["sign"](code, part)
        far = code.select(is_inf[part], code.select(is_inf[other], nan, unit), zero)
        near = code.select(floats.is_zero(code, size), zero, builder.fdiv(part, size))
        is_nan = floats.FUNCTIONS["isnan"](code, size)
        results.append(code.select(is_nan, nan, is_inf[size], far, near))
    return joined(code, *results)


def _any_part(name: str) -> Callable[..., Any]:
    def any_part(code: Code, a: Any) -> Any:
        return code.either(*(floats.FUNCTIONS[name](code, part) for part in parts(code, a)))

    return any_part


def _is_finite(code: Code, a: Any) -> Any:
    return code.both(*(floats.FUNCTIONS["isfinite"](code, part) for part in parts(code, a)))


def compare(code: Code, relation: str, a: Any, b: Any) -> Any:
    """Return whether a relation holds; NumPy's order is by real parts, then by imaginary parts."""
    (ar, ai), (br, bi) = parts(code, a), parts(code, b)
    if relation in ("==", "!="):
        join = code.both if relation == "==" else code.either
        return join(floats.compare(code, relation, ar, br), floats.compare(code, relation, ai, bi))
    is_beyond = code.both(
        floats.compare(code, relation[0], ar, br), code.builder.fcmp_ordered("ord", ai, bi)
    )
    is_level = code.both(floats.compare(code, "==", ar, br), floats.compare(code, relation, ai, bi))
    return code.either(is_beyond, is_level)


def _extreme(relation: str, skips_nan: bool) -> Callable[..., Any]:
    def beyond(code: Code, a: Any, b: Any) -> Any:
        is_nan = _any_part("isnan")(code, b if skips_nan else a)
        return code.select(code.either(compare(code, relation, a, b), is_nan), a, b)

    return beyond


def _library(name: str) -> Callable[..., Any]:
    """Return the code that calls numba's implementation for complex numbers."""
    candidates = [getattr(module, name) for module in (cmath, np) if hasattr(module, name)]
    if name == "power":
        candidates = [operator.pow]
    python = getattr(cmath, name.replace("arc", "a"), None)

    def library(code: Code, *values: Any) -> Any:
        is_single = parts(code, values[0])[0].type == f32
        ty = types.complex64 if is_single else types.complex128
        typing = code.context.typing_context
        for fn in [python] if code.is_cuda else candidates:  # NumPy's are C functions
            try:
                callee = typing.resolve_value_type(fn)
                inner = callee.get_call_type(typing, (ty,) * len(values), {})
                function = code.context.get_function(callee, inner)
            except Exception:  # numba raises several kinds, KeyError among them
                continue
            for library in getattr(function, "libs", ()):
                code.context.active_code_library.add_linking_library(library)
            value = function(code.builder, values)
            return code.context.cast(code.builder, value, inner.return_type, ty)
        raise Refused(f"np.{name} of {ty} is not available; compute it from a.real and a.imag")

    return library


def _sin(code: Code, a: Any) -> Any:
    real, imag = parts(code, a)
    first = code.builder.fmul(code.libm("sin", real), code.libm("cosh", imag))
    return joined(code, first, code.builder.fmul(code.libm("cos", real), code.libm("sinh", imag)))


def _cos(code: Code, a: Any) -> Any:
    real, imag = parts(code, a)
    size = code.builder.fmul(code.libm("cos", real), code.libm("cosh", imag))
    cross = code.builder.fmul(code.libm("sin", real), code.libm("sinh", imag))
    return joined(code, size, floats.negative(code, cross))


def _tan(code: Code, a: Any) -> Any:
    real, imag = parts(code, a)
    turned = joined(code, floats.negative(code, imag), real)
    real, imag = parts(code, _library("tanh")(code, turned))
    return joined(code, imag, floats.negative(code, real))


def _exp2(code: Code, a: Any) -> Any:
    scaled = (code.builder.fmul(part, part.type(float(np.log(2)))) for part in parts(code, a))
    return _library("exp")(code, joined(code, *scaled))


def _expm1(code: Code, a: Any) -> Any:
    builder = code.builder
    real, imag = parts(code, a)
    half = code.libm("sin", builder.fmul(imag, imag.type(0.5)))
    correction = builder.fmul(imag.type(2.0), builder.fmul(half, half))
    scaled = builder.fmul(code.libm("expm1", real), code.libm("cos", imag))
    turned = builder.fmul(code.libm("exp", real), code.libm("sin", imag))
    return joined(code, builder.fsub(scaled, correction), turned)


def _log1p(code: Code, a: Any) -> Any:
    real, imag = parts(code, a)
    real = code.builder.fadd(real, real.type(1.0))
    size = code.libm("log", code.libm("hypot", real, imag))
    return joined(code, size, code.libm("atan2", imag, real))


def _logarithm(name: str) -> Callable[..., Any]:
    def logarithm(code: Code, a: Any) -> Any:
        return joined(code, *log_of_parts(code, parts(code, a), UNITS[name]))

    return logarithm


_MAX_WHOLE = 100  # NumPy, too, uses logarithms for larger exponents


def _power(code: Code, a: Any, b: Any) -> Any:
    """Return a ** b; whole exponents use multiplications, as in NumPy."""
    builder = code.builder
    (ar, ai), (br, bi) = parts(code, a), parts(code, b)
    one, zero, nan = ar.type(1.0), ar.type(0.0), ar.type(float("nan"))
    size = floats.FUNCTIONS["absolute"](code, br)
    is_whole = code.both(
        floats.is_zero(code, bi),
        floats.compare(code, "==", br, code.intrinsic("trunc", br)),
        floats.compare(code, "<", size, ar.type(float(_MAX_WHOLE))),
    )
    count = builder.fptosi(builder.select(is_whole, size, zero), llvm.IntType(32))
    product = _whole_power(code, a, count)
    inverse = _divide(code, joined(code, one, zero), product)
    is_below = floats.compare(code, "<", br, zero)
    return code.select(
        code.both(floats.is_zero(code, br), floats.is_zero(code, bi)), joined(code, one, zero),
        code.both(floats.is_zero(code, ar), floats.is_zero(code, ai)),
        code.select(floats.compare(code, ">", br, zero), joined(code, zero, zero),
                    joined(code, nan, nan)),
        is_whole, code.select(is_below, inverse, product),
        _power_by_logarithm(code, a, b),
    )  # fmt: skip


def _power_by_logarithm(code: Code, a: Any, b: Any) -> Any:
    if code.is_cuda:
        return joined(code, *by_logarithm(code, parts(code, a), parts(code, b)))
    return _library("power")(code, a, b)  # the C library's, as NumPy's is


def _whole_power(code: Code, a: Any, count: Any) -> Any:
    builder, i32 = code.builder, llvm.IntType(32)
    real = parts(code, a)[0].type

    def step(power: Any, square: Any, remaining: Any) -> list[Any]:
        is_odd = builder.trunc(remaining, llvm.IntType(1))
        grown = builder.select(is_odd, _multiply(code, power, square), power)
        return [grown, _multiply(code, square, square), builder.lshr(remaining, i32(1))]

    def goes_on(power: Any, square: Any, remaining: Any) -> Any:
        return builder.icmp_unsigned("!=", remaining, i32(0))

    start = [joined(code, real(1.0), real(0.0)), a, count]
    result = code.loop(start, goes_on, step)[0]
    square = _multiply(code, a, a)
    return code.select(
        builder.icmp_unsigned("==", count, i32(1)), a,
        builder.icmp_unsigned("==", count, i32(2)), square,
        builder.icmp_unsigned("==", count, i32(3)), _multiply(code, a, square), result,
    )  # fmt: skip


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _by_parts(name) for name in ("add", "subtract", "negative", "positive", "rint")},
    **{name: _library(name) for name in (
        "sqrt", "exp", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "arcsinh", "arctanh",
    )},
    **{name: _logarithm(name) for name in UNITS},
    "power": _power, "float_power": _power, "sin": _sin, "cos": _cos, "tan": _tan,
    "exp2": _exp2, "expm1": _expm1, "log1p": _log1p,
    "multiply": _multiply, "divide": _divide, "reciprocal": _reciprocal, "absolute": _absolute,
    "square": _square, "conjugate": _conjugate, "sign": _sign, "isnan": _any_part("isnan"),
    "isinf": _any_part("isinf"), "isfinite": _is_finite,
    "maximum": _extreme(">=", False), "minimum": _extreme("<=", False),
    "fmax": _extreme(">=", True), "fmin": _extreme("<=", True),
}  # fmt: skip
