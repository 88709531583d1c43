"""Everything that an operator may call, each entry with what it computes and by whose rule.

docs/operators.md lists it, and the tests walk over it. What a module of `MODULES` has and this
table has not is refused by name.
"""

from __future__ import annotations

import builtins
import cmath
import math
import operator
from typing import Any, NamedTuple

import numpy as np

from gpualgo._base import dtypes
from gpualgo._operators import markers


class Entry(NamedTuple):
    """One function under one name."""

    name: str  # as it is written: np.add, math.sin, +
    does: str  # what it computes: the name of NumPy's ufunc where there is one
    style: str  # whose types it has: "numpy", "operator" (Python's), "math", or a rule of its own
    arity: tuple[int, int] = (1, 1)  # of its scalars: the fewest and the most
    ulp: int = 0  # how far it may be from NumPy, on real numbers

    @property
    def ufunc(self) -> np.ufunc | None:
        """NumPy's function of what it computes."""
        found = getattr(np, self.does, None)
        return found if isinstance(found, np.ufunc) else None

    @property
    def is_builtin(self) -> bool:
        """Return whether Python has it without an import."""
        return self.name.startswith("builtins.")

    @property
    def shown(self) -> str:
        """Its name in a sentence."""
        return self.name.removeprefix("builtins.")


MODULES = {"numpy": "np", "math": "math", "cmath": "cmath", "operator": "operator",
           "builtins": "builtins", "random": "random", "_operator": "operator"}  # fmt: skip

# What has one rounding at most, and is the same to the bit; NumPy's names, by number of arguments.
_EXACT = {
    1: "absolute negative positive square sign conjugate fabs invert bitwise_count signbit isnan "
       "isinf isfinite floor ceil trunc rint logical_not reciprocal sqrt",
    2: "add subtract multiply divide floor_divide remainder fmod bitwise_and bitwise_or "
       "bitwise_xor left_shift right_shift less less_equal greater greater_equal equal not_equal "
       "logical_and logical_or logical_xor maximum minimum fmax fmin copysign nextafter heaviside "
       "gcd lcm",
}  # fmt: skip
# What comes from a mathematical library, of which NumPy has another than a GPU has.
_LIBM = {
    1: "exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh "
       "arcsinh arccosh arctanh cbrt deg2rad rad2deg",
    2: "power float_power arctan2 hypot logaddexp logaddexp2",
}  # fmt: skip
LIBM = tuple(f"{_LIBM[1]} {_LIBM[2]}".split())
LIBM_ULP = 4
# Of complex numbers these too; all such are within 4 LIBM_ULP of the number's size.
LIBM_OF_COMPLEX = ("absolute", "sqrt", "sign")
_ALIASES = {
    "abs": "absolute", "conj": "conjugate", "bitwise_not": "invert", "bitwise_invert": "invert",
    "true_divide": "divide", "mod": "remainder", "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift", "pow": "power", "acos": "arccos", "asin": "arcsin",
    "atan": "arctan", "atan2": "arctan2", "acosh": "arccosh", "asinh": "arcsinh",
    "atanh": "arctanh", "degrees": "rad2deg", "radians": "deg2rad",
}  # fmt: skip
_OPERATOR = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
    "floordiv": "floor_divide", "mod": "remainder", "pow": "power", "and_": "bitwise_and",
    "or_": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
    "neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert", "inv": "invert",
    "not_": "logical_not", "lt": "less", "le": "less_equal", "gt": "greater",
    "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
}  # fmt: skip
SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "and_": "&", "or_": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "neg": "-", "pos": "+",
    "invert": "~", "not_": "not", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==",
    "ne": "!=",
}  # fmt: skip
_MATH = {
    "sqrt": "sqrt", "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log2": "log2",
    "log10": "log10", "log1p": "log1p", "sin": "sin", "cos": "cos", "tan": "tan",
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "sinh": "sinh",
    "cosh": "cosh", "tanh": "tanh", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
    "cbrt": "cbrt", "hypot": "hypot", "copysign": "copysign", "fmod": "fmod", "pow": "power",
    "fabs": "fabs", "isnan": "isnan", "isinf": "isinf", "isfinite": "isfinite",
    "degrees": "rad2deg", "radians": "deg2rad", "nextafter": "nextafter", "log": "log",
    "erf": "erf", "erfc": "erfc", "gamma": "gamma", "lgamma": "lgamma",
}  # fmt: skip
_CMATH = ("sqrt", "exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "isnan", "isinf",
          "isfinite")  # fmt: skip
CONSTRUCTED = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
               "float16", "float32", "float64", "complex64", "complex128")  # fmt: skip
SIZES, PARTS, METHODS = ("shape", "ndim", "size"), ("real", "imag"), ("conjugate", "conj")
CONTROL = ("if", "else", "while", "for", "break", "continue", "pass", "return", "lambda")
# Functions whose arguments are no scalars alone, or which say how the program goes.
PLAIN = ("len", "range", "enumerate", "zip", "slice", "tuple")


def _does_arity(does: str) -> tuple[int, int]:
    return (2, 2) if does in f" {_EXACT[2]} {_LIBM[2]} ".split() else (1, 1)


def _ulp(does: str) -> int:
    if does == "lgamma":
        return 16 * LIBM_ULP  # Python's own is as far off around its zeros
    is_libm = does in f"{_LIBM[1]} {_LIBM[2]} erf erfc gamma lgamma".split()
    return LIBM_ULP if is_libm else 0


def _entries() -> list[Entry]:
    found = [
        Entry(SYMBOLS[name], does, "operator", _does_arity(does), _ulp(does))
        for name, does in _OPERATOR.items()
        if name in SYMBOLS
    ]
    for names in (_EXACT, _LIBM):
        for count, listed in names.items():
            found += [Entry(f"np.{n}", n, "numpy", (count, count), _ulp(n)) for n in listed.split()]
    found += [Entry(f"np.{n}", d, "numpy", _does_arity(d), _ulp(d)) for n, d in _ALIASES.items()]
    found += [
        Entry(f"operator.{n}", d, "operator", _does_arity(d), _ulp(d)) for n, d in _OPERATOR.items()
    ]
    found += [Entry(f"math.{n}", d, "math", _does_arity(d), _ulp(d)) for n, d in _MATH.items()]
    found += [Entry(f"cmath.{n}", n, "cmath", (1, 1), _ulp(n)) for n in _CMATH]
    found += [Entry(f"math.{n}", n, "whole") for n in ("floor", "ceil", "trunc")]
    found += [
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
        Entry("np.real", "real", "part"),
        Entry("np.imag", "imag", "part"),
        Entry("builtins.int", "int64", "construct"),
        Entry("builtins.float", "float64", "construct"),
        Entry("builtins.complex", "complex128", "construct", (1, 2)),
        Entry("np.bool_", "bool", "construct"),
        Entry("np.bool", "bool", "construct"),
    ]
    found += [
        Entry(f"np.{name}", name, "construct", (1, 2) if "complex" in name else (1, 1))
        for name in CONSTRUCTED
    ]
    found += [Entry(f"builtins.{name}", name, "plain", (0, 255)) for name in PLAIN]
    return found


ENTRIES = tuple(_entries())


def function_of(entry: Entry) -> Any:
    """Return the function of an entry; None where this Python or NumPy has none yet."""
    module, _, name = entry.name.rpartition(".")
    if not module:
        symbols = {
            symbol: word for word, symbol in SYMBOLS.items() if _OPERATOR[word] == entry.does
        }
        return getattr(operator, symbols.get(entry.name, "contains"))
    places = {"np": np, "math": math, "cmath": cmath, "operator": operator, "builtins": builtins}
    return getattr(places[module], name, None)


_BY_FUNCTION: dict[Any, Entry] = {}
for _entry in reversed(ENTRIES):  # the first name of a function is the one that it goes by
    _function = function_of(_entry)
    if _function is not None:
        _BY_FUNCTION[_function] = _entry
for _entry, _function in (
    (Entry("strong", "strong", "conversion"), markers.strong),
    (Entry("philox", "philox", "philox", (3, 3)), markers.philox),
):
    _BY_FUNCTION[_function] = _entry  # of the package's own: not listed
# NumPy has several types of one kind and size, and which of them has the name int64 is the
# platform's: np.longlong is int64 as well, np.intc int32.
for _type in set(np.sctypeDict.values()):
    _name = dtypes.name_of(np.dtype(_type))
    if _name is not None and _name != "bfloat16":
        _BY_FUNCTION.setdefault(_type, _BY_FUNCTION[np.dtype(_name).type])
_BFLOAT16 = Entry("ml_dtypes.bfloat16", "bfloat16", "construct")


def entry_of(fn: Any) -> Entry | None:
    """Return the entry of a function, None if the table has none."""
    try:
        found = _BY_FUNCTION.get(fn)
    except TypeError:
        return None
    if found is None and isinstance(fn, type) and fn.__name__ == "bfloat16":
        return _BFLOAT16
    return found
