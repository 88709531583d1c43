"""Powers: which exponents have code of their own, and which may be data."""

from __future__ import annotations

from typing import Any

from numba import types

from gpualgo._operators.numbers import WHOLE_POWERS
from gpualgo._operators.numpy_rules import codegen
from gpualgo._operators.numpy_rules.code import Code
from gpualgo._operators.numpy_rules.promotion import is_inexact
from gpualgo._operators.numpy_rules.refusal import Refused, ValueNeeded
from gpualgo._operators.numpy_rules.table import Entry
from gpualgo._operators.numpy_rules.types import WEAK_KINDS, Weak, native, scalar_type
from gpualgo._operators.numpy_rules.weak import is_within


def constant(
    entry: Entry, args: tuple[types.Type, ...], name: str
) -> tuple[types.Type, Any] | None:
    """Return the code of a power with a constant exponent, where it has one of its own."""
    if isinstance(args[1], Weak) and args[1].data:
        _check_power_of_data(args[1], name)
        return None
    exponent = args[1].value if isinstance(args[1], Weak) else None
    if isinstance(exponent, int) and exponent < 0 and not is_inexact(name):
        raise Refused(
            f"integers to negative integer powers are not allowed; write a ** {exponent}.0"
        )
    does = None
    if entry.style == "operator" and exponent is not None:
        does = {-1: "reciprocal", 0.5: "sqrt"}.get(exponent)
    is_product = isinstance(exponent, (int, float)) and exponent in WHOLE_POWERS
    if (does is None and not is_product) or (does and not is_inexact(name)):
        return None
    result = args[0] if isinstance(args[0], Weak) else scalar_type(name)
    if isinstance(result, Weak):
        result = Weak(WEAK_KINDS[name])

    def generate(code: Code, values: list[Any]) -> Any:
        (base,) = codegen.cast_all(code, values[:1], args[:1], (name,))
        if does is not None:
            value = codegen.compute(code, does, name, [base])
        else:
            value = codegen.constant_power(code, name, base, int(exponent))  # type: ignore[arg-type]
        return code.context.cast(code.builder, value, native(result), result)

    return result, generate


def _check_power_of_data(exponent: Weak, name: str) -> None:
    """Raise `ValueNeeded` for an exponent that is data unless all have the same code."""
    if is_inexact(name) and not exponent.is_exponent:
        raise ValueNeeded(exponent.data, is_exponent=exponent.kind != "complex")
    if not is_inexact(name) and not is_within(exponent, 0, _LONGEST):
        raise ValueNeeded(exponent.data)  # negative ones are refused


_LONGEST = 2**63 - 1
