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

from gpualgo._operators.numpy_rules import floats, values
from gpualgo._operators.numpy_rules.errors import Refused
from gpualgo._operators.numpy_rules.storage import f32, f64
from gpualgo._operators.numpy_rules.values import Complex, Integer, choose

# --- Complex logarithms and powers that are accurate near |z| = 1.
#
# numba's log(hypot(x, y)) and its power lose precision near 1, as they round the absolute value
# first.

_FAR = 2.0**500  # squares of larger numbers, and of those below 1 / _FAR, may leave the range
_SCALE = 600  # exponent of the power of two by which such numbers are scaled
UNITS = {"log": 1.0, "log2": 1 / math.log(2), "log10": 1 / math.log(10)}  # factors of the log
_HALF_TOP = 709.0  # exp(709) is a finite double, its square is not


def _logarithm(unit: float) -> Callable[[Any], Any]:
    def logarithm(a: Any) -> Any:
        size, angle = _log_of_size(a), a.imag.libm("atan2", a.real)
        size = choose(a.is_infinite(), math.inf, size)  # also if the other part is NaN
        if unit != 1:
            size, angle = size * unit, angle * unit
        return Complex(size.to(angle.raw.type), angle)

    return logarithm


def by_logarithm(base: Any, exponent: Any) -> Any:
    """Return exp(exponent log(base)), computed in double; base is not 0."""
    size = _log_of_size(base)
    ty = base.real.raw.type
    x, y, bx, by = (part.to(f64) for part in (*base.parts, *exponent.parts))
    phase = y.libm("atan2", x)
    log_size = _times_log(bx, size) - by * phase
    angle = _times_log(by, size) + bx * phase
    # As exp(half)²: the result may be finite although exp(log_size) overflows.
    half = log_size * 0.5
    root = choose(half > _HALF_TOP, _HALF_TOP, half).libm("exp")
    real, imag = (root * angle.libm(name) * root for name in ("cos", "sin"))
    return Complex(real.to(ty), imag.to(ty))


def _log_of_size(a: Any) -> Any:
    """Return log(hypot(x, y)) as a double, accurate near 1 by log1p."""
    x, y = (part.to(f64) for part in a.parts)
    if a.real.raw.type == f32:  # squares are within a double's range
        return 0.5 * (x * x + y * y).libm("log")
    x, y = abs(x), abs(y)
    is_first = x >= y
    large, small = choose(is_first, x, y), choose(is_first, y, x)
    is_far, is_tiny = large > _FAR, large < 1 / _FAR
    scale = choose(is_far, 2.0**-_SCALE, is_tiny, 2.0**_SCALE, x.like(1.0))
    log_scale = _SCALE * math.log(2)
    shift = choose(is_far, log_scale, is_tiny, -log_scale, x.like(0.0))
    scaled_large, scaled_small = large * scale, small * scale
    plain = (scaled_large * scaled_large + scaled_small * scaled_small).libm("log")
    near = ((large - 1.0) * (large + 1.0) + small * small).libm("log1p")
    is_near = (large > 0.7) & (large < 1.5)
    return 0.5 * choose(is_near, near, plain) + shift


def _times_log(part: Any, size: Any) -> Any:
    """Return part * size, but 0 for 0 * inf: else real powers of infinities would be NaN."""
    return choose((part == 0) & size.is_infinite(), part, part * size)


def _divide(a: Any, b: Any) -> Any:
    """Divide by Smith's algorithm, as NumPy does; for a zero divisor divide each part by zero."""
    size_r, size_i = abs(b.real), abs(b.imag)
    is_real = size_r >= size_i
    larger, smaller = choose(is_real, b.real, b.imag), choose(is_real, b.imag, b.real)
    ratio = smaller / larger
    scale = 1.0 / (larger + smaller * ratio)
    real = choose(is_real, a.real + a.imag * ratio, a.real * ratio + a.imag) * scale
    imag = choose(is_real, a.imag - a.real * ratio, a.imag * ratio - a.real) * scale
    return choose(b == 0, Complex(a.real / size_r, a.imag / size_r), Complex(real, imag))


def _reciprocal(a: Any) -> Any:
    is_imag = abs(a.real) <= abs(a.imag)
    larger, smaller = choose(is_imag, a.imag, a.real), choose(is_imag, a.real, a.imag)
    ratio = smaller / larger
    denominator = larger + smaller * ratio
    one, minus = 1.0 / denominator, -1.0 / denominator
    return choose(is_imag, Complex(ratio / denominator, minus), Complex(one, -ratio / denominator))


def _sign(a: Any) -> Any:
    size, results = abs(a), []
    for part, other in (a.parts, a.parts[::-1]):
        unit = floats.FUNCTIONS["sign"](part)
        far = choose(part.is_infinite(), choose(other.is_infinite(), math.nan, unit), 0.0)
        near = choose(size == 0, 0.0, part / size)
        results.append(choose(size.is_nan(), math.nan, size.is_infinite(), far, near))
    return Complex(*results)


def _library(name: str) -> Callable[..., Any]:
    """Return the code that calls numba's implementation for complex numbers."""
    on_gpu = getattr(cmath, name.replace("arc", "a"), None)  # NumPy's are C functions
    on_cpu = operator.pow if name == "power" else getattr(cmath, name, None) or getattr(np, name)

    def library(first: Any, *others: Any) -> Any:
        code, raw = first.code, [value.raw for value in (first, *others)]
        ty = types.complex64 if first.real.raw.type == f32 else types.complex128
        typing = code.context.typing_context
        try:
            callee = typing.resolve_value_type(on_gpu if code.is_cuda else on_cpu)
            inner = callee.get_call_type(typing, (ty,) * len(raw), {})
            function = code.context.get_function(callee, inner)
        except Exception:  # numba raises several kinds, KeyError among them
            raise Refused(
                f"np.{name} of {ty} is not available; compute it from a.real and a.imag"
            ) from None
        for library in getattr(function, "libs", ()):
            code.context.active_code_library.add_linking_library(library)
        value = function(code.builder, raw)
        return first.made(code.context.cast(code.builder, value, inner.return_type, ty))

    return library


def _sqrt(a: Any) -> Any:
    """Return numba's root of a scaled number: its steps overflow for large ones, or lose bits."""
    x, y = a.parts
    most, least = (2.0**124, 2.0**-100) if x.raw.type == f32 else (2.0**1020, 2.0**-960)
    is_large = (abs(x) > most) | (abs(y) > most)
    is_small = (abs(x) < least) & (abs(y) < least)
    scale = choose(is_large, 0.25, is_small, 2.0**100, x.like(1.0))
    back = choose(is_large, 2.0, is_small, 2.0**-50, x.like(1.0))
    root = _library("sqrt")(Complex(x * scale, y * scale))
    return Complex(root.real * back, root.imag * back)


def _sin(a: Any) -> Any:
    x, y = a.parts
    return Complex(x.libm("sin") * y.libm("cosh"), x.libm("cos") * y.libm("sinh"))


def _cos(a: Any) -> Any:
    x, y = a.parts
    return Complex(x.libm("cos") * y.libm("cosh"), -(x.libm("sin") * y.libm("sinh")))


def _tan(a: Any) -> Any:
    turned = _library("tanh")(Complex(-a.imag, a.real))
    return Complex(turned.imag, -turned.real)


def _exp2(a: Any) -> Any:
    log2 = float(np.log(2))
    return _library("exp")(Complex(a.real * log2, a.imag * log2))


def _expm1(a: Any) -> Any:
    x, y = a.parts
    half = (y * 0.5).libm("sin")
    real = x.libm("expm1") * y.libm("cos") - 2.0 * (half * half)
    return Complex(real, x.libm("exp") * y.libm("sin"))


def _log1p(a: Any) -> Any:
    real = a.real + 1.0
    return Complex(real.libm("hypot", a.imag).libm("log"), a.imag.libm("atan2", real))


_MAX_WHOLE = 100  # NumPy, too, uses logarithms for larger exponents


def _power(a: Any, b: Any) -> Any:
    """Return a ** b; whole exponents use multiplications, as in NumPy."""
    one, size = a.like(1), abs(b.real)
    is_whole = (b.imag == 0) & (b.real == b.real.intrinsic("trunc")) & (size < float(_MAX_WHOLE))
    count = a.code.builder.fptosi(choose(is_whole, size, 0.0).raw, llvm.IntType(32))
    count, square = Integer(a.code, count), a * a
    product = values.power(a, count)
    product = choose(count == 1, a, count == 2, square, count == 3, a * square, product)
    by_zero = choose(b.real > 0, a.like(0), Complex(b.real.like(math.nan), math.nan))
    whole = choose(b.real < 0, _divide(one, product), product)
    return choose(b == 0, one, a == 0, by_zero, is_whole, whole, by_logarithm(a, b))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **values.FUNCTIONS,
    **{name: _library(name) for name in (
        "exp", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "arcsinh", "arctanh",
    )},
    **{name: _logarithm(unit) for name, unit in UNITS.items()},
    "absolute": lambda a: floats.FUNCTIONS["hypot"](a.real, a.imag),
    "rint": lambda a: Complex(floats.rint(a.real), floats.rint(a.imag)),
    "power": _power, "float_power": _power, "sqrt": _sqrt, "sin": _sin, "cos": _cos, "tan": _tan,
    "exp2": _exp2, "expm1": _expm1, "log1p": _log1p, "divide": _divide,
    "reciprocal": _reciprocal, "sign": _sign,
    "isnan": Complex.is_nan, "isinf": Complex.is_infinite, "isfinite": Complex.is_finite,
}  # fmt: skip
