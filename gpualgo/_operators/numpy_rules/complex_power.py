"""Complex logarithms that are accurate near |z| = 1, and complex powers for GPUs.

numba's log(hypot(x, y)) loses precision near 1, as the absolute value is rounded first. Powers on
GPUs use these logarithms, as numba-cuda's power returns 0 for 1j to an imaginary power.
"""

from __future__ import annotations

import math
from typing import Any

from gpualgo._operators.numpy_rules import floats
from gpualgo._operators.numpy_rules.code import Code, f32, f64

Parts = tuple[Any, Any]

_FAR = 2.0**500  # squares of larger numbers, and of those below 1 / _FAR, may leave the range
_SCALE = 600  # exponent of the power of two by which such numbers are scaled
UNITS = {"log": 1.0, "log2": 1 / math.log(2), "log10": 1 / math.log(10)}  # factors of the log
_HALF_TOP = 709.0  # exp(709) is a finite double, its square is not


def logarithm(code: Code, number: Parts, unit: float = 1.0) -> Parts:
    """Return the parts of log(number) * unit; the unit of log10 is 1 / log(10)."""
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
