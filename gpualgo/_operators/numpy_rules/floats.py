"""NumPy's functions of real floats as LLVM code; 16-bit floats are computed in float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpualgo._operators.numpy_rules import values
from gpualgo._operators.numpy_rules.storage import f32, from_bits, to_bits
from gpualgo._operators.numpy_rules.values import Float, Integer, choose, is_off

# --- Functions by NumPy's names.


def _fmod(a: Any, b: Any) -> Any:
    return a.libm("fmod", b) if a.code.is_cuda else a.emit("frem", b)


def _floored(a: Any, b: Any) -> tuple[Any, Any]:
    """Return fmod(a, b) adjusted to the sign of b, and whether it was adjusted."""
    remainder = _fmod(a, b)
    is_adjusted = is_off(remainder, b)
    adjusted = choose(is_adjusted, remainder + b, remainder)
    return choose(remainder != 0, adjusted, a.like(0.0).signed(b)), is_adjusted


def _remainder(a: Any, b: Any) -> Any:
    return choose(b == 0, _fmod(a, b), _floored(a, b)[0])


def _floor_divide(a: Any, b: Any) -> Any:
    remainder, is_adjusted = _fmod(a, b), _floored(a, b)[1]
    exact = (a - remainder) / b
    exact = choose(is_adjusted, exact - 1.0, exact)
    below = exact.intrinsic("floor")
    whole = choose(exact - below > 0.5, below + 1.0, below)
    plain = a / b
    signed_zero = a.like(0.0).signed(plain)
    whole = choose(exact == 0, signed_zero, whole)
    return choose(b == 0, plain, whole)


def rint(value: Any) -> Any:
    """Return a value rounded half to even; NVVM has no rint."""
    # Adding a number so large that no bits are left for a fraction rounds half to even.
    big = 2.0**23 if value.raw.type == f32 else 2.0**52
    size = abs(value)
    whole = (size + big - big).signed(value)
    is_fraction = size < big  # others are integers already, or NaN
    return choose(is_fraction, whole, value)


def next_narrow(name: str, a: Any, b: Any) -> Any:
    """Return nextafter of 16-bit floats, which are held as float32."""
    builder = a.code.builder
    bits = [Integer(a.code, to_bits(builder, value.raw, name)) for value in (a, b)]
    return Float(a.code, from_bits(builder, _next_bits(a, b, *bits).raw, name))


def _next_bits(a: Any, b: Any, a_bits: Any, b_bits: Any) -> Any:
    step = choose((b > a) ^ (a < 0), a_bits.like(1), -1)
    return choose(
        a.is_nan(), a_bits, b.is_nan(), b_bits, a == b, b_bits,
        a == 0, b_bits.sign_bit | 1, a_bits + step,
    )  # fmt: skip


def _log_of_sum(exp: str, at_equal: float, scale: float) -> Callable[..., Any]:
    """Return the code of logaddexp or logaddexp2: larger + log1p(exp(-difference))."""
    function, log1p = _library(exp), _library("log1p")

    def log_of_sum(a: Any, b: Any) -> Any:
        difference = a - b
        larger = choose(difference < 0, b, a)
        result = larger + scale * log1p(function(-abs(difference)))
        return choose(a == b, a + at_equal, difference.is_nan(), difference, result)

    return log_of_sum


def _times_ratio(top: float, bottom: float) -> Callable[[Any], Any]:
    """Return the code of a multiplication by a ratio that is rounded to the number's type."""
    single = float(np.float32(top) / np.float32(bottom))
    return lambda a: a * (single if a.raw.type == f32 else top / bottom)


def _library(name: str) -> Callable[..., Any]:
    def function(a: Any, *others: Any) -> Any:
        if not a.code.is_cuda:
            from gpualgo._operators.numpy_rules import elementary  # most operators need none

            if name in elementary.FUNCTIONS:
                return elementary.FUNCTIONS[name](a, *others)
        return a.libm(name, *others)

    return function


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
    "trunc": lambda a: a.intrinsic("trunc"), "fabs": abs, "rint": rint,
    "sign": lambda a: choose(a > 0, 1.0, a < 0, -1.0, a == 0, 0.0, a),
    "divide": lambda a, b: a / b, "reciprocal": lambda a: 1.0 / a,
    "floor_divide": _floor_divide, "remainder": _remainder, "fmod": _fmod,
    "copysign": lambda a, b: a.of_bits(a.bits ^ a.bits.sign_bit).signed(b),
    "nextafter": lambda a, b: a.of_bits(_next_bits(a, b, a.bits, b.bits)),
    "heaviside": lambda a, b: choose(a.is_nan(), a, a == 0, b, a < 0, 0.0, 1.0),
    "signbit": Float.is_negative,
    "logaddexp": _log_of_sum("exp", float(np.log(2)), 1.0),
    "logaddexp2": _log_of_sum("exp2", 1.0, float(1 / np.log(2))),
    "deg2rad": _times_ratio(np.pi, 180.0), "rad2deg": _times_ratio(180.0, np.pi),
    "isnan": Float.is_nan, "isinf": Float.is_infinite, "isfinite": Float.is_finite,
}  # fmt: skip
