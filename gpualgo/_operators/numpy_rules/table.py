"""The table of functions that operators may call, with their computations and typing rules.

https://github.com/gpualgo/gpualgo/blob/main/docs/operators.md lists it, and tests
iterate over it. Calls of other functions in `MODULES` raise an error that names the function.
"""

from __future__ import annotations

import builtins
import cmath
import math
import operator
from typing import Any, NamedTuple

import numpy as np

from gpualgo._base import dtypes
from gpualgo._operators.tokens import philox, strong


class Entry(NamedTuple):
    name: str  # as in source code: np.add, math.sin, +
    does: str  # the computation: the name of the NumPy ufunc, if there is one
    style: str  # the typing rule: "numpy", "operator" (Python's), "math", or a special rule
    arity: tuple[int, int] = (1, 1)  # least and greatest number of scalars
    ulp: int = 0  # largest difference from NumPy in ULP, for real numbers

    @property
    def ufunc(self) -> np.ufunc | None:
        function = getattr(np, self.does, None)
        return function if isinstance(function, np.ufunc) else None

    @property
    def is_builtin(self) -> bool:
        return self.name.startswith("builtins.")

    @property
    def shown(self) -> str:
        return self.name.removeprefix("builtins.")


MODULES = {"numpy": "np", "math": "math", "cmath": "cmath", "operator": "operator",
           "builtins": "builtins", "random": "random", "_operator": "operator"}  # fmt: skip

# Functions with at most one rounding, bit-identical to NumPy: NumPy names by number of arguments.
_EXACT = {
    1: "absolute negative positive square sign conjugate fabs invert bitwise_count signbit isnan "
       "isinf isfinite floor ceil trunc rint logical_not reciprocal sqrt",
    2: "add subtract multiply divide floor_divide remainder fmod bitwise_and bitwise_or "
       "bitwise_xor left_shift right_shift less less_equal greater greater_equal equal not_equal "
       "logical_and logical_or logical_xor maximum minimum fmax fmin copysign nextafter heaviside "
       "gcd lcm",
}  # fmt: skip
# Functions of a math library; NumPy's library differs from a GPU's.
_LIBM = {
    1: "exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh "
       "arcsinh arccosh arctanh cbrt deg2rad rad2deg",
    2: "power float_power arctan2 hypot logaddexp logaddexp2",
}  # fmt: skip
LIBM = tuple(f"{_LIBM[1]} {_LIBM[2]}".split())
LIBM_ULP = 4
_ALIASES = {
    "abs": "absolute", "conj": "conjugate", "bitwise_not": "invert", "bitwise_invert": "invert",
    "true_divide": "divide", "mod": "remainder", "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift", "pow": "power", "acos": "arccos", "asin": "arcsin",
    "atan": "arctan", "atan2": "arctan2", "acosh": "arccosh", "asinh": "arcsinh",
    "atanh": "arctanh", "degrees": "rad2deg", "radians": "deg2rad",
}  # fmt: skip
# Functions of the module `operator`: their symbols, if expressions have them, and computations.
_OPERATOR = {
    "add": ("+", "add"), "sub": ("-", "subtract"), "mul": ("*", "multiply"),
    "truediv": ("/", "divide"), "floordiv": ("//", "floor_divide"), "mod": ("%", "remainder"),
    "pow": ("**", "power"), "and_": ("&", "bitwise_and"), "or_": ("|", "bitwise_or"),
    "xor": ("^", "bitwise_xor"), "lshift": ("<<", "left_shift"), "rshift": (">>", "right_shift"),
    "neg": ("-", "negative"), "pos": ("+", "positive"), "abs": ("", "absolute"),
    "invert": ("~", "invert"), "inv": ("", "invert"), "not_": ("not", "logical_not"),
    "lt": ("<", "less"), "le": ("<=", "less_equal"), "gt": (">", "greater"),
    "ge": (">=", "greater_equal"), "eq": ("==", "equal"), "ne": ("!=", "not_equal"),
}  # fmt: skip
_MATH = (
    "sqrt exp exp2 expm1 log2 log10 log1p sin cos tan asin acos atan atan2 sinh cosh tanh asinh "
    "acosh atanh cbrt hypot copysign fmod pow fabs isnan isinf isfinite degrees radians nextafter "
    "log erf erfc gamma lgamma"
)
_CMATH = ("sqrt", "exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "isnan", "isinf",
          "isfinite")  # fmt: skip
CONSTRUCTED = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
               "float16", "float32", "float64", "complex64", "complex128")  # fmt: skip
SIZES, PARTS, METHODS = ("shape", "ndim", "size"), ("real", "imag"), ("conjugate", "conj")
# Functions of control flow, or with arguments other than scalars; numba compiles them.
PLAIN = ("len", "range", "enumerate", "zip", "slice", "tuple")


def _ulp(does: str) -> int:
    if does == "lgamma":
        return 16 * LIBM_ULP  # Python's has the same error near its zeros
    is_libm = does in f"{_LIBM[1]} {_LIBM[2]} erf erfc gamma lgamma".split()
    return LIBM_ULP if is_libm else 0


def _row(name: str, does: str, style: str) -> Entry:
    count = 2 if does in f"{_EXACT[2]} {_LIBM[2]}".split() else 1
    return Entry(name, does, style, (count, count), _ulp(does))


def _entries() -> list[Entry]:
    words = _OPERATOR.items()
    entries = [_row(symbol, does, "operator") for _, (symbol, does) in words if symbol]
    for text in (*_EXACT.values(), *_LIBM.values()):
        entries += [_row(f"np.{name}", name, "numpy") for name in text.split()]
    entries += [_row(f"np.{name}", does, "numpy") for name, does in _ALIASES.items()]
    entries += [_row(f"operator.{word}", does, "operator") for word, (_, does) in words]
    entries += [_row(f"math.{name}", _ALIASES.get(name, name), "math") for name in _MATH.split()]
    entries += [_row(f"cmath.{name}", name, "cmath") for name in _CMATH]
    entries += [Entry(f"math.{n}", n, "whole") for n in ("floor", "ceil", "trunc")]
    entries += [
        Entry("operator.truth", "bool", "bool"),
        Entry("operator.contains", "contains", "contains", (2, 2)),
        Entry("in", "contains", "contains", (2, 2)),
        Entry("builtins.bool", "bool", "bool"),
        Entry("builtins.abs", "absolute", "operator"),
        Entry("builtins.pow", "power", "operator", (2, 2), LIBM_ULP),
        Entry("builtins.max", "max", "extreme", (2, 255)),
        Entry("builtins.min", "min", "extreme", (2, 255)),
        Entry("builtins.divmod", "divmod", "pair", (2, 2)),
        Entry("np.divmod", "divmod", "pair", (2, 2)),
        Entry("builtins.round", "round", "round", (1, 2)),
        Entry("np.round", "round", "np.round", (1, 2)),
        Entry("np.around", "round", "np.round", (1, 2)),
        Entry("np.where", "where", "where", (3, 3)),
        Entry("np.clip", "clip", "clip", (3, 3)),
        Entry("np.real", "real", "part"),
        Entry("np.imag", "imag", "part"),
        Entry("builtins.int", "int64", "construct"),
        Entry("builtins.float", "float64", "construct"),
        Entry("builtins.complex", "complex128", "construct", (1, 2)),
        Entry("np.bool_", "bool", "construct"),
        Entry("np.bool", "bool", "construct"),
    ]
    entries += [
        Entry(f"np.{name}", name, "construct", (1, 2) if "complex" in name else (1, 1))
        for name in CONSTRUCTED
    ]
    entries += [Entry(f"builtins.{name}", name, "plain", (0, 255)) for name in PLAIN]
    return entries


ENTRIES = tuple(_entries())


def function_of(entry: Entry) -> Any:
    module, _, name = entry.name.rpartition(".")
    if not module:
        key = entry.name, entry.does
        word = next((word for word, row in _OPERATOR.items() if row == key), "contains")
        return getattr(operator, word)
    modules = {"np": np, "math": math, "cmath": cmath, "operator": operator, "builtins": builtins}
    return getattr(modules[module], name, None)


_BY_FUNCTION: dict[Any, Entry] = {}
for _entry in reversed(ENTRIES):  # the first entry of a function takes precedence
    _function = function_of(_entry)
    if _function is not None:
        _BY_FUNCTION[_function] = _entry
for _entry, _function in (
    (Entry("strong", "strong", "conversion"), strong),
    (Entry("philox", "philox", "philox", (3, 3)), philox),
):
    _BY_FUNCTION[_function] = _entry  # internal, not in ENTRIES
# NumPy has several types of one kind and size, of which the platform determines the one named
# int64: np.longlong is int64 as well, np.intc int32.
for _type in set(np.sctypeDict.values()):
    _name = dtypes.name_of(np.dtype(_type))
    if _name is not None and _name != "bfloat16":
        _BY_FUNCTION.setdefault(_type, _BY_FUNCTION[np.dtype(_name).type])
_BFLOAT16 = Entry("ml_dtypes.bfloat16", "bfloat16", "construct")


def entry_of(fn: Any) -> Entry | None:
    try:
        entry = _BY_FUNCTION.get(fn)
    except TypeError:
        return None
    if entry is None and isinstance(fn, type) and fn.__name__ == "bfloat16":
        return _BFLOAT16
    return entry
