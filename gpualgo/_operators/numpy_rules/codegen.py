"""LLVM code for what the rules decide: which of NumPy's functions, on which dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir as llvm
from numba import types

from gpualgo._operators.numpy_rules import complexes, floats, integers
from gpualgo._operators.numpy_rules.code import Code
from gpualgo._operators.numpy_rules.promotion import is_inexact
from gpualgo._operators.numpy_rules.refusal import Refused
from gpualgo._operators.numpy_rules.types import native, scalar_type

RELATIONS = {"less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==",
             "not_equal": "!="}  # fmt: skip
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_LOGIC = {"logical_and": "and_", "logical_or": "or_", "logical_xor": "xor"}


def truth(code: Code, name: str, value: Any) -> Any:
    """Return whether a number is not zero; NaN is true."""
    if name == "bool":
        return value
    if name.startswith("complex"):
        return code.either(*(truth(code, "float", part) for part in complexes.parts(code, value)))
    if is_inexact(name):
        return code.builder.fcmp_unordered("!=", value, value.type(0.0))
    return code.builder.icmp_unsigned("!=", value, value.type(0))


def compute(code: Code, does: str, name: str, values: list[Any]) -> Any:
    """Return what one of NumPy's functions gives for native values of one dtype."""
    if does in RELATIONS:
        return compare(code, RELATIONS[does], name, *values)
    if does == "logical_not":
        return code.builder.not_(truth(code, name, values[0]))
    if does in _LOGIC:
        return getattr(code.builder, _LOGIC[does])(*(truth(code, name, v) for v in values))
    if does == "nextafter" and name in ("float16", "bfloat16"):
        return floats.next_narrow(code, name, *values)
    function = _functions_of(name)[does]
    if name == "bool" or not is_inexact(name):
        return function(code, name.startswith("int"), *values)
    return function(code, *values)


def has(does: str, name: str) -> bool:
    """Return whether there is code for a function on a dtype."""
    if does in RELATIONS or does == "logical_not" or does in _LOGIC:
        return True
    return does in _functions_of(name)


def _functions_of(name: str) -> dict[str, Callable[..., Any]]:
    if name == "bool":
        return integers.BOOL
    if name.startswith("complex"):
        return complexes.FUNCTIONS
    return floats.FUNCTIONS if is_inexact(name) else integers.FUNCTIONS


def compare(code: Code, relation: str, name: str, a: Any, b: Any) -> Any:
    """Return whether a relation holds between native values of one dtype."""
    if name.startswith("complex"):
        return complexes.compare(code, relation, a, b)
    if is_inexact(name):
        return floats.compare(code, relation, a, b)
    return integers.compare(code, relation, name.startswith("int"), a, b)


def rounded_to(code: Code, ty: types.Type, value: Any) -> Any:
    """Return a native value rounded as the type holds it: float32 as a 16-bit float."""
    return code.context.cast(code.builder, value, native(ty), ty)


def constant_power(code: Code, name: str, base: Any, exponent: int) -> Any:
    """Return base ** exponent by squarings and products, rounded at each."""
    if name.startswith("complex"):
        return _complex_power(code, base, exponent)
    times = "multiply"
    square, power = base, None
    while exponent:
        if exponent & 1:
            power = square if power is None else compute(code, times, name, [power, square])
        exponent >>= 1
        if exponent:
            square = compute(code, times, name, [square, square])
    return power


def _complex_power(code: Code, base: Any, exponent: int) -> Any:
    """Return a complex number's power by the products that NumPy takes."""
    times = complexes.FUNCTIONS["multiply"]
    if exponent == 3:
        return times(code, base, times(code, base, base))
    real = complexes.parts(code, base)[0].type
    power, square = complexes.joined(code, real(1.0), real(0.0)), base
    if exponent <= 2:
        return base if exponent == 1 else times(code, base, base)
    while exponent:
        if exponent & 1:
            power = times(code, power, square)
        exponent >>= 1
        if exponent:
            square = times(code, square, square)
    return power


def rounding(code: Code, ty: types.Type, value: Any, decimals: int) -> Any:
    """Return np.round: scaled by a power of ten, to the even integer, and back."""
    if decimals == 0:
        return floats.rint(code, value)
    scale = rounded_to(code, ty, value.type(float(10 ** abs(decimals))))
    steps = (code.builder.fmul, code.builder.fdiv)
    there, back = steps if decimals > 0 else steps[::-1]
    whole = floats.rint(code, rounded_to(code, ty, there(value, scale)))
    return rounded_to(code, ty, back(whole, scale))


def widened(code: Code, source: str, target: str, value: Any) -> Any:
    """Return an integer or bool of one dtype as one of another."""
    ty = scalar_type(target)
    return code.context.cast(code.builder, value, scalar_type(source), ty)


def zero_of(name: str) -> Any:
    """Return 0 of a dtype as an LLVM constant of its native type."""
    ty = native(scalar_type(name))
    if isinstance(ty, types.Float):
        return (llvm.FloatType() if ty == types.float32 else llvm.DoubleType())(0.0)
    if isinstance(ty, types.Boolean):
        return llvm.IntType(1)(0)
    if not isinstance(ty, types.Integer):
        raise Refused(f"{name} has no zero")
    return llvm.IntType(ty.bitwidth)(0)


def cast_all(code: Code, values: list[Any], sources: Any, names: Any) -> list[Any]:
    """Return scalars in other dtypes, as native values."""
    found = []
    for value, source, name in zip(values, sources, names, strict=True):
        target = scalar_type(name)
        cast = code.context.cast(code.builder, value, source, target)
        found.append(code.context.cast(code.builder, cast, target, native(target)))
    return found
