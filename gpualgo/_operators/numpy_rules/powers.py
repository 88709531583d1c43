"""Powers: which constant exponents have special code, and which exponents may be data."""

from __future__ import annotations

from typing import Any

from numba import types

from gpualgo._operators.captured import WHOLE_POWERS
from gpualgo._operators.numpy_rules import codegen
from gpualgo._operators.numpy_rules.code import Code
from gpualgo._operators.numpy_rules.errors import Refused, ValueNeeded
from gpualgo._operators.numpy_rules.promotion import is_inexact
from gpualgo._operators.numpy_rules.table import Entry
from gpualgo._operators.numpy_rules.types import WEAK_KINDS, Weak, native, scalar_type
from gpualgo._operators.numpy_rules.weak import is_within


def constant(
    entry: Entry, args: tuple[types.Type, ...], name: str
) -> tuple[types.Type, Any] | None:
    """Return the type and special code of a power with a constant exponent, None for others."""
    if isinstance(args[1], Weak) and args[1].data:
        _check_power_of_data(args[1], name)
        return None
    exponent = args[1].value if isinstance(args[1], Weak) else None
    if isinstance(exponent, int) and exponent < 0 and not is_inexact(name):
        raise Refused(
            f"integers to negative integer powers are not allowed; write a ** {exponent}.0"
        )
    function_name = None
    if entry.style == "operator" and exponent is not None:
        function_name = {-1: "reciprocal", 0.5: "sqrt"}.get(exponent)
    is_product = isinstance(exponent, (int, float)) and exponent in WHOLE_POWERS
    if (function_name is None and not is_product) or (function_name and not is_inexact(name)):
        return None
    result = args[0] if isinstance(args[0], Weak) else scalar_type(name)
    if isinstance(result, Weak):
        result = Weak(WEAK_KINDS[name])

    def generate(code: Code, values: list[Any]) -> Any:
        (base,) = codegen.cast_all(code, values[:1], args[:1], (name,))
        if function_name is not None:
            value = codegen.compute(code, function_name, name, [base])
        else:
            value = codegen.constant_power(code, name, base, int(exponent))  # type: ignore[arg-type]
        return code.context.cast(code.builder, value, native(result), result)

    return result, generate


def _check_power_of_data(exponent: Weak, name: str) -> None:
    """Raise `ValueNeeded` for a data exponent whose code depends on its value."""
    if is_inexact(name) and not exponent.is_exponent:
        raise ValueNeeded(exponent.data, is_exponent=exponent.kind != "complex")
    if not is_inexact(name) and not is_within(exponent, 0, _MAX_EXPONENT):
        raise ValueNeeded(exponent.data)  # negative exponents raise


_MAX_EXPONENT = 2**63 - 1
