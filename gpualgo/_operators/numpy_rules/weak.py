"""Casts of weak Python numbers, which are exact also for integers beyond 64 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from gpualgo._operators.numpy_rules.errors import Refused, ValueNeeded, shown_integer
from gpualgo._operators.numpy_rules.types import NATIVE, Weak, WeakValue, as_kind, bounds_of


def check_fits(ty: Weak, name: str) -> None:
    """Raise `Refused` for a Python integer that does not fit an integer dtype, as NumPy does."""
    limits = np.iinfo(name)
    if ty.kind == "int" and ty.data and not is_within(ty, limits.min, limits.max):
        raise ValueNeeded(ty.data)
    for value in ty.values or ():
        if ty.kind == "int" and not limits.min <= value <= limits.max:
            raise Refused(
                f"the Python integer {shown_integer(value)} is out of bounds for {name}; "
                "convert the other operand to a wider dtype, or the number to a float"
            )


def is_within(ty: Weak, low: int, high: int) -> bool:
    least, greatest = bounds_of(ty)
    return low <= least and greatest <= high


def cast(context: Any, builder: Any, source: Weak, target: Any, value: Any) -> Any:
    if isinstance(target, types.Integer) and source.kind == "int":
        check_fits(source, target.name)
    if not source.is_constant:
        if source.data and source.kind == "int" and not isinstance(target, types.Integer):
            value = context.cast(builder, value, types.int64, types.float64)  # as NumPy does
            return context.cast(builder, value, types.float64, target)
        return context.cast(builder, value, source.native, target)
    number = source.value
    if isinstance(target, types.Integer) and source.kind == "int":
        return context.get_constant(target, number)
    kind = source.kind if source.kind != "int" else "float"
    constant = context.get_constant_generic(builder, NATIVE[kind], as_kind(kind, number))
    return context.cast(builder, constant, NATIVE[kind], target)


def cast_weak(context: Any, builder: Any, source: Weak, target: Weak, value: Any) -> Any:
    if target.is_constant:
        return value
    return cast(context, builder, source, target.native, value)


def to_boolean(context: Any, builder: Any, source: Weak, target: Any, value: Any) -> Any:
    if source.is_constant:
        return context.get_constant(types.boolean, bool(source.value))
    return context.is_true(builder, source.native, value)


def constant(context: Any, builder: Any, ty: Weak, value: Any) -> Any:
    """Return the LLVM constant of a Python number; 0 beyond 64 bits, as the type has its value."""
    number: Any = value.value if isinstance(value, WeakValue) else value
    if ty.kind == "int" and not -(2**63) <= number < 2**63:
        number = 0
    return context.get_constant_generic(builder, ty.native, number)


def without_members(args: tuple[types.Type, ...], *, stays_member: bool) -> tuple[types.Type, ...]:
    """Return the types with members of an IntEnum replaced by number types.

    NumPy treats members as int64. With only members and Python numbers the result is a Python
    integer, unless the function returns one of its arguments (`stays_member`), such as max.
    """
    members = [type(ty).__name__ == "IntEnumMember" for ty in args]
    if not any(members):
        return args
    pairs = list(zip(members, args, strict=True))
    python = not stays_member and all(is_one or isinstance(ty, Weak) for is_one, ty in pairs)
    return tuple((Weak("int") if python else types.int64) if is_one else ty for is_one, ty in pairs)
