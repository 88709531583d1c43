"""LLVM code of NumPy's functions by dtype."""

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
    """Return whether a number is nonzero; NaN is true."""
    if name == "bool":
        return value
    if name.startswith("complex"):
        return code.either(*(truth(code, "float", part) for part in complexes.parts(code, value)))
    if is_inexact(name):
        return code.builder.fcmp_unordered("!=", value, value.type(0.0))
    return code.builder.icmp_unsigned("!=", value, value.type(0))


def compute(code: Code, does: str, name: str, values: list[Any]) -> Any:
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
    if name.startswith("complex"):
        return complexes.compare(code, relation, a, b)
    if is_inexact(name):
        return floats.compare(code, relation, a, b)
    return integers.compare(code, relation, name.startswith("int"), a, b)


def rounded_to(code: Code, ty: types.Type, value: Any) -> Any:
    """Return a native value rounded to a type: a float32 to a 16-bit float."""
    return code.context.cast(code.builder, value, native(ty), ty)


def constant_power(code: Code, name: str, base: Any, exponent: int) -> Any:
    """Return base ** exponent by repeated squaring, rounded after each multiplication."""
    if name.startswith("complex"):
        return _complex_power(code, base, exponent)
    multiply = "multiply"
    square, power = base, None
    while exponent:
        if exponent & 1:
            power = square if power is None else compute(code, multiply, name, [power, square])
        exponent >>= 1
        if exponent:
            square = compute(code, multiply, name, [square, square])
    return power


def _complex_power(code: Code, base: Any, exponent: int) -> Any:
    """Return a power of a complex number by the same multiplications as NumPy."""
    multiply = complexes.FUNCTIONS["multiply"]
    if exponent == 3:
        return multiply(code, base, multiply(code, base, base))
    real = complexes.parts(code, base)[0].type
    power, square = complexes.joined(code, real(1.0), real(0.0)), base
    if exponent <= 2:
        return base if exponent == 1 else multiply(code, base, base)
    while exponent:
        if exponent & 1:
            power = multiply(code, power, square)
        exponent >>= 1
        if exponent:
            square = multiply(code, square, square)
    return power


def rounding(code: Code, ty: types.Type, value: Any, decimals: int) -> Any:
    """Return np.round: scale by a power of ten, round half to even, scale back."""
    if decimals == 0:
        return floats.rint(code, value)
    scale = rounded_to(code, ty, value.type(float(10 ** abs(decimals))))
    steps = (code.builder.fmul, code.builder.fdiv)
    scale_up, scale_back = steps if decimals > 0 else steps[::-1]
    whole = floats.rint(code, rounded_to(code, ty, scale_up(value, scale)))
    return rounded_to(code, ty, scale_back(whole, scale))


def widened(code: Code, source: str, target: str, value: Any) -> Any:
    """Return an integer or bool cast to another integer dtype."""
    ty = scalar_type(target)
    return code.context.cast(code.builder, value, scalar_type(source), ty)


def zero_of(name: str) -> Any:
    """Return 0 as an LLVM constant of a dtype's native type."""
    ty = native(scalar_type(name))
    if isinstance(ty, types.Float):
        return (llvm.FloatType() if ty == types.float32 else llvm.DoubleType())(0.0)
    if isinstance(ty, types.Boolean):
        return llvm.IntType(1)(0)
    if not isinstance(ty, types.Integer):
        raise Refused(f"{name} has no zero")
    return llvm.IntType(ty.bitwidth)(0)


def cast_all(code: Code, values: list[Any], sources: Any, names: Any) -> list[Any]:
    """Return scalars cast to other dtypes, as native values."""
    results = []
    for value, source, name in zip(values, sources, names, strict=True):
        target = scalar_type(name)
        cast = code.context.cast(code.builder, value, source, target)
        results.append(code.context.cast(code.builder, cast, target, native(target)))
    return results
