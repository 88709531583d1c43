"""The functions that operators may call, by the rule that types them."""

from __future__ import annotations

import builtins
import cmath
import math
import operator
from typing import Any

import numpy as np

_ARITHMETIC = (
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod,
    operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift,
    np.add, np.subtract, np.multiply, np.floor_divide, np.remainder, np.mod,
    np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift,
    np.maximum, np.minimum, np.fmax, np.fmin, builtins.max, builtins.min,
)  # fmt: skip
_UNARY = (
    operator.neg, operator.pos, operator.invert, builtins.abs, np.negative, np.absolute, np.abs,
    np.fabs, np.sign, np.conjugate, np.square,
)  # fmt: skip
_COMPARE = (
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
    np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal,
)  # fmt: skip
_TO_BOOL = (
    operator.not_, builtins.bool, math.isnan, math.isinf, math.isfinite, np.isnan, np.isinf,
    np.isfinite, np.logical_not, np.logical_and, np.logical_or, np.logical_xor,
)  # fmt: skip
_POWER = (operator.pow, builtins.pow, np.power)
_DIVIDE = (operator.truediv, np.true_divide, np.divide)
_FLOATING = (
    math.sqrt, math.exp, math.expm1, math.log, math.log2, math.log10, math.log1p, math.sin,
    math.cos, math.tan, math.asin, math.acos, math.atan, math.atan2, math.sinh, math.cosh,
    math.tanh, math.asinh, math.acosh, math.atanh, math.erf, math.erfc, math.gamma, math.lgamma,
    math.hypot, math.copysign, math.fmod, math.pow, math.fabs, np.fmod,
    np.sqrt, np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.sin, np.cos,
    np.tan, np.arcsin, np.arccos, np.arctan, np.arctan2, np.sinh, np.cosh, np.tanh, np.arcsinh,
    np.arccosh, np.arctanh, np.hypot, np.copysign,
)  # fmt: skip
_PLAIN = (builtins.round,)  # numba's own types throughout
CONSTRUCTORS: dict[Any, str] = {
    getattr(np, name): name
    for name in (
        "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float16", "float32", "float64", "complex64", "complex128",
    )
}  # fmt: skip
CONSTRUCTORS |= {np.bool_: "bool", builtins.int: "int64", builtins.float: "float64",
                  builtins.complex: "complex128"}  # fmt: skip

# LLVM's name of each rounding; math's give a Python int, NumPy's their argument's dtype.
ROUNDING = {
    math.floor: "floor", math.ceil: "ceil", math.trunc: "trunc", np.floor: "floor",
    np.ceil: "ceil", np.trunc: "trunc", np.rint: "rint",
}  # fmt: skip

# NumPy spells bool arithmetic as logic.
BOOL_LOGIC = {
    operator.add: operator.or_, operator.mul: operator.and_, np.add: operator.or_,
    np.multiply: operator.and_, operator.invert: operator.not_,
}  # fmt: skip
# One implementation for functions that agree, so that CUDA needs no ufunc machinery for them.
SAME_AS = {
    np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul,
    np.floor_divide: operator.floordiv, np.remainder: operator.mod, np.mod: operator.mod,
    np.bitwise_and: operator.and_, np.bitwise_or: operator.or_, np.bitwise_xor: operator.xor,
    np.left_shift: operator.lshift, np.right_shift: operator.rshift, np.negative: operator.neg,
    np.absolute: builtins.abs, np.less: operator.lt, np.less_equal: operator.le,
    np.greater: operator.gt, np.greater_equal: operator.ge, np.equal: operator.eq,
    np.not_equal: operator.ne, np.true_divide: operator.truediv, np.power: operator.pow,
    builtins.pow: operator.pow,
}  # fmt: skip

# NumPy's functions of real numbers that the math module has under one name or another.
REAL_SAME_AS = {
    np.sqrt: math.sqrt, np.exp: math.exp, np.expm1: math.expm1, np.log: math.log,
    np.log2: math.log2, np.log10: math.log10, np.log1p: math.log1p, np.sin: math.sin,
    np.cos: math.cos, np.tan: math.tan, np.arcsin: math.asin, np.arccos: math.acos,
    np.arctan: math.atan, np.arctan2: math.atan2, np.sinh: math.sinh, np.cosh: math.cosh,
    np.tanh: math.tanh, np.arcsinh: math.asinh, np.arccosh: math.acosh, np.arctanh: math.atanh,
    np.isnan: math.isnan, np.isinf: math.isinf, np.isfinite: math.isfinite,
    np.fmod: math.fmod, np.hypot: math.hypot, np.copysign: math.copysign, np.fabs: math.fabs,
}  # fmt: skip

if hasattr(math, "exp2"):  # Python 3.11
    REAL_SAME_AS[np.exp2] = math.exp2
COMPLEX_SAME_AS = {
    getattr(np, name): getattr(cmath, name)
    for name in ("sqrt", "exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh")
}

_RULES: dict[Any, str] = {}
for _rule, _functions in (
    ("arithmetic", _ARITHMETIC), ("unary", _UNARY), ("compare", _COMPARE), ("bool", _TO_BOOL),
    ("power", _POWER), ("divide", _DIVIDE), ("floating", _FLOATING), ("plain", _PLAIN),
    ("construct", CONSTRUCTORS), ("where", (np.where,)),
    ("rounding", ROUNDING),
):  # fmt: skip
    _RULES.update(dict.fromkeys(_functions, _rule))


def rule_of(fn: Any) -> str | None:
    """Return the name of the rule that types fn, else None."""
    try:
        found = _RULES.get(fn)
    except TypeError:
        return None
    if found is None and getattr(fn, "__name__", "") == "bfloat16":
        return "construct"
    return found


def folds(fn: Any) -> bool:
    """Return whether fn of many arguments is fn of two, folded."""
    return fn in (builtins.max, builtins.min)
