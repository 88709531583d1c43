"""Rules of functions that convert or select numbers: constructors, rounding, parts, where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir as llvm
from numba import types

from gpualgo._base.dtypes import default_name, is_inexact
from gpualgo._operators.captured import WHOLE_POWERS
from gpualgo._operators.numpy_rules import codegen, complexes, floats
from gpualgo._operators.numpy_rules.errors import Refused, ValueNeeded
from gpualgo._operators.numpy_rules.storage import Code
from gpualgo._operators.numpy_rules.table import Entry
from gpualgo._operators.numpy_rules.types import (
    WEAK_KINDS,
    Weak,
    check_fits,
    common_name,
    is_within,
    native,
    scalar_name,
    scalar_type,
    weak_constant,
)

Planned = tuple[types.Type, Callable[[Code, list[Any]], Any]]


def plan(entry: Entry, args: tuple[types.Type, ...]) -> Planned:
    return _STYLES[entry.style](entry, args)


def constant(code: Code, ty: Weak) -> Any:
    return weak_constant(code.context, code.builder, ty, ty.value)


def _construct(entry: Entry, args: tuple[types.Type, ...]) -> Planned:
    target = scalar_type(entry.does)
    names = [default_name(str(scalar_name(ty))) for ty in args]
    is_complex = entry.does.startswith("complex")
    if len(args) == 2:
        return _of_two_parts(entry, args, target, names)
    if names[0].startswith("complex") and not is_complex and entry.does != "bool":
        raise Refused(
            f"{entry.shown} of a complex number would lose the imaginary part; use a.real"
        )
    if isinstance(args[0], Weak) and not is_inexact(entry.does) and entry.does != "bool":
        check_fits(args[0], entry.does)

    def generate(code: Code, values: list[Any]) -> Any:
        if entry.does == "bool":
            return _truth(code, args[0], values[0])
        return code.context.cast(code.builder, values[0], args[0], target)

    return target, generate


def _truth(code: Code, ty: types.Type, value: Any) -> Any:
    if isinstance(ty, Weak) and ty.is_constant:
        return code.context.get_constant(types.boolean, bool(ty.value))
    value = code.context.cast(code.builder, value, ty, native(ty))
    return codegen.truth(code, default_name(str(scalar_name(ty))), value)


def _of_two_parts(
    entry: Entry, args: tuple[types.Type, ...], target: types.Type, names: list[str]
) -> Planned:
    if any(name.startswith("complex") for name in names):
        raise Refused(f"{entry.shown} of two parts takes real numbers; write a + b * 1j")
    part = types.float32 if entry.does == "complex64" else types.float64

    def generate(code: Code, values: list[Any]) -> Any:
        cast = code.context.cast
        pair = (cast(code.builder, v, ty, part) for v, ty in zip(values, args, strict=True))
        return complexes.joined(code, *pair)

    return target, generate


def _bool(entry: Entry, args: tuple[types.Type, ...]) -> Planned:
    return types.boolean, lambda code, values: _truth(code, args[0], values[0])


def _whole(entry: Entry, args: tuple[types.Type, ...]) -> Planned:
    """math.floor, ceil and trunc, which return a Python int."""
    name = default_name(str(scalar_name(args[0])))
    if name.startswith("complex"):
        raise Refused(f"{entry.shown} has no meaning on {name}; use a.real")
    result = types.uint64 if name == "uint64" else Weak("int")  # int64 does not hold every uint64

    def generate(code: Code, values: list[Any]) -> Any:
        value = code.context.cast(code.builder, values[0], args[0], native(args[0]))
        if is_inexact(name):
            value = floats.FUNCTIONS[entry.does](code, value)
        return code.context.cast(code.builder, value, native(args[0]), native(result))

    return result, generate


def _round(entry: Entry, args: tuple[types.Type, ...]) -> Planned:
    """Python's round: to an int64 without decimals, else as np.round."""
    if len(args) == 2:
        return _numpy_round(entry, args)
    name = default_name(str(scalar_name(args[0])))
    if name.startswith("complex"):
        raise Refused(f"round has no meaning on {name}; use a.real")
    result = types.uint64 if name == "uint64" else types.int64

    def generate(code: Code, values: list[Any]) -> Any:
        value = code.context.cast(code.builder, values[0], args[0], native(args[0]))
        value = floats.rint(code, value) if is_inexact(name) else value
        return code.context.cast(code.builder, value, native(args[0]), result)

    return result, generate


def _numpy_round(entry: Entry, args: tuple[types.Type, ...]) -> Planned:
    name = default_name(str(scalar_name(args[0])))
    decimals = 0
    if len(args) == 2:
        value = args[1].value if isinstance(args[1], Weak) and args[1].kind == "int" else None
        if isinstance(args[1], Weak) and args[1].data:
            raise ValueNeeded(args[1].data)
        if value is None:
            raise Refused(f"{entry.shown}: the number of decimals must be a constant")
        decimals = value
    if name == "bool" or name.startswith("complex") or abs(decimals) > 22:
        raise Refused(f"{entry.shown} of {name} to {decimals} decimals is not supported")
    if not is_inexact(name) and decimals < 0:
        raise Refused(f"{entry.shown} of integers takes no negative number of decimals")
    result = scalar_type(name)

    def generate(code: Code, values: list[Any]) -> Any:
        value = code.context.cast(code.builder, values[0], args[0], result)
        if not is_inexact(name):
            return value
        value = code.context.cast(code.builder, value, result, native(result))
        value = codegen.rounding(code, result, value, decimals)
        return code.context.cast(code.builder, value, native(result), result)

    return result, generate


def _part(entry: Entry, args: tuple[types.Type, ...]) -> Planned:
    (ty,), name = args, str(scalar_name(args[0]))
    if not name.startswith("complex"):
        if entry.does == "real":
            return ty, lambda code, values: values[0]
        return scalar_type(name), lambda code, values: codegen.zero_of(default_name(name))
    result: types.Type = types.float32 if name == "complex64" else types.float64
    if name == "complex":
        result = Weak("float", None, args[0].data)
    index = 0 if entry.does == "real" else 1

    def generate(code: Code, values: list[Any]) -> Any:
        value = code.context.cast(code.builder, values[0], ty, native(ty))
        return code.builder.extract_value(value, index)

    return result, generate


def _where(entry: Entry, args: tuple[types.Type, ...]) -> Planned:
    condition, a, b = args
    name = default_name(str(common_name((a, b))))
    if not is_inexact(name) and name != "bool":
        for ty in (a, b):
            if isinstance(ty, Weak):
                check_fits(ty, name)
    result = scalar_type(name)

    def generate(code: Code, values: list[Any]) -> Any:
        chosen = (
            code.context.cast(code.builder, value, source, result)
            for value, source in zip(values[1:], (a, b), strict=True)
        )
        return code.builder.select(_truth(code, condition, values[0]), *chosen)

    return result, generate


# --- Powers: which constant exponents have special code, and which exponents may be data.


def constant_power(
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


# --- Philox4x64-10: word `position` of a key's stream, four words in a block.


_WORD, _WIDE = llvm.IntType(64), llvm.IntType(128)
_ROUNDS = 10
_MULTIPLIERS = 0xD2E7470EE14C6C93, 0xCA5A826395121157
_WEYL = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B  # added to the keys before each further round


def _philox(entry: Entry, args: tuple[types.Type, ...]) -> Planned:
    def generate(code: Code, values: list[Any]) -> Any:
        builder = code.builder
        position, *keys = (
            code.context.cast(builder, value, ty, types.uint64)
            for value, ty in zip(values, args, strict=True)
        )
        words = _block(code, builder.lshr(position, _WORD(2)), keys)
        low, high = (builder.and_(position, _WORD(bit)) for bit in (1, 2))
        is_odd, is_late = (builder.icmp_unsigned("!=", bit, _WORD(0)) for bit in (low, high))
        pairs = [builder.select(is_odd, words[i + 1], words[i]) for i in (0, 2)]
        return builder.select(is_late, pairs[1], pairs[0])

    return types.uint64, generate


def _block(code: Code, number: Any, keys: list[Any]) -> list[Any]:
    builder = code.builder
    words = [builder.add(number, _WORD(1)), _WORD(0), _WORD(0), _WORD(0)]  # NumPy starts at 1
    for step in range(_ROUNDS):
        if step:
            keys = [builder.add(key, _WORD(weyl)) for key, weyl in zip(keys, _WEYL, strict=True)]
        (high0, low0), (high1, low1) = (
            _product(code, words[2 * i], _MULTIPLIERS[i]) for i in range(2)
        )
        words = [
            builder.xor(builder.xor(high1, words[1]), keys[0]), low1,
            builder.xor(builder.xor(high0, words[3]), keys[1]), low0,
        ]  # fmt: skip
    return words


def _product(code: Code, word: Any, factor: int) -> tuple[Any, Any]:
    builder = code.builder
    low = builder.mul(word, _WORD(factor))
    if code.is_cuda:
        name = "llvm.nvvm.mulhi.ull"
        function = builder.module.globals.get(name) or llvm.Function(
            builder.module, llvm.FunctionType(_WORD, [_WORD, _WORD]), name
        )
        return builder.call(function, [word, _WORD(factor)]), low
    wide = builder.mul(builder.zext(word, _WIDE), _WIDE(factor))
    return builder.trunc(builder.lshr(wide, _WIDE(64)), _WORD), low


_STYLES: dict[str, Callable[..., Planned]] = {
    "construct": _construct, "bool": _bool, "whole": _whole, "round": _round,
    "np.round": _numpy_round, "part": _part, "where": _where, "philox": _philox,
}  # fmt: skip
