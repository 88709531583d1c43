"""Data models (memory and register layouts) and casts of weak scalars and 16-bit floats.

`install` registers them with numba. The triple of a module says for which backend code is made.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir as llvm
from numba import types
from numba.core import cgutils, extending
from numba.core.datamodel import models
from numba.core.imputils import lower_constant
from numba.core.typeconv import Conversion
from numba.np.numpy_support import as_dtype, from_dtype

from gpualgo._base import dtypes, records
from gpualgo._base.dtypes import WEAK, result_name
from gpualgo._base.records import Argument, Separate
from gpualgo._operators.captured import extend_to_range
from gpualgo._operators.numpy_rules.errors import Refused, ValueNeeded, shown_integer

# --- numba types that NumPy 2 has and numba lacks: weak Python scalars and 16-bit floats.
#
# `Weak` is a Python int, float or complex, which promotes to the other operand's type. Its type
# includes its possible values if they are few, to check whether they fit the other operand and to
# support values beyond 64 bits. `Narrow` is a float16 or bfloat16: its 16 bits, which are converted
# to float32 for computations only, so that a value that is only moved keeps its bits.

NARROW = ("float16", "bfloat16")
WEAK_KINDS = {"int64": "int", "float64": "float", "complex128": "complex"}
NATIVE = {"int": types.int64, "float": types.float64, "complex": types.complex128}
_PYTHON = {"int": int, "float": float, "complex": complex}
_MAX_VALUES = 8  # of a variable that has different constants on different paths


class Weak(types.Type):
    """A Python scalar of kind int, float or complex.

    `values` are all possible values, if known. `data` are the words of data numbers if it was
    computed from data numbers and constants only; `bounds` is the range of such an integer;
    `is_exponent` says that it is an unmodified data number outside of `SHORT_POWERS`.
    """

    def __init__(
        self, kind: str, values: Iterable[Any] | None = None, data: frozenset[int] = frozenset(),
        bounds: tuple[int, int] | None = None, is_exponent: bool = False,
    ) -> None:  # fmt: skip
        self.kind, self.data, self.is_exponent = kind, data, is_exponent
        self.bounds = bounds if kind == "int" else None
        known = None if values is None else {_text(value): value for value in values}
        if known is not None and len(known) > _MAX_VALUES:
            known = None
        self.values = None if known is None else tuple(known[name] for name in sorted(known))
        of_data = f", {sorted(data)}, {self.bounds}{' **' * is_exponent}" if data else ""
        super().__init__(name=f"Weak({kind}, {None if known is None else sorted(known)}{of_data})")

    @property
    def native(self) -> types.Type:
        return NATIVE[self.kind]

    @property
    def is_constant(self) -> bool:
        return self.values is not None and len(self.values) == 1

    @property
    def value(self) -> Any:
        return self.values[0] if self.values is not None and len(self.values) == 1 else None

    def joined(self, other: Weak) -> Weak:
        kind = max(self.kind, other.kind, key=WEAK.index)
        data = self.data | other.data
        if data and all(ty.data or ty.values is not None for ty in (self, other)):
            # There are few ranges, so that type inference of a loop's variable converges.
            bounds = None
            if kind == "int":
                (low, high), (other_low, other_high) = bounds_of(self), bounds_of(other)
                bounds = extend_to_range(min(low, other_low), max(high, other_high))
            return Weak(kind, None, data, bounds)
        if self.values is None or other.values is None:
            return Weak(kind)
        return Weak(kind, [as_kind(kind, value) for value in (*self.values, *other.values)])

    def unify(self, typingctx: Any, other: types.Type) -> types.Type | None:
        return unify(self, other)

    def can_convert_to(self, typingctx: Any, other: types.Type) -> Conversion | None:
        if isinstance(other, Weak):
            widens = WEAK.index(self.kind) <= WEAK.index(other.kind)
            return Conversion.promote if widens and self.joined(other) == other else None
        return conversion(self.native, other)


class Narrow(types.Type):
    """A 16-bit float, by its dtype name."""

    def __init__(self, dtype_name: str) -> None:
        self.dtype_name = dtype_name
        super().__init__(name=f"Narrow({dtype_name})")

    def unify(self, typingctx: Any, other: types.Type) -> types.Type | None:
        return unify(self, other)

    def can_convert_to(self, typingctx: Any, other: types.Type) -> Conversion | None:
        return None if isinstance(other, Weak) else conversion(types.float32, other)


def bounds_of(ty: Weak) -> tuple[int, int]:
    if ty.bounds is not None:
        return ty.bounds
    assert ty.values is not None
    return min(ty.values), max(ty.values)


def _text(value: complex) -> str:
    """Return a text that is unique to a value; a NaN includes all its bits."""
    bits = "" if value == value else struct.pack(">dd", value.real, value.imag).hex()
    return repr(value) + bits


class Constant:
    """A number as a constant of numba's IR; numba reads its type from `_numba_type_`."""

    def __init__(self, value: Any, ty: types.Type) -> None:
        self.value, self._numba_type_ = value, ty


def conversion(native: types.Type, target: types.Type) -> Conversion | None:
    """Return numba's kind of conversion from a native type to a type that is not weak."""
    if isinstance(target, Narrow):
        return Conversion.safe
    if not isinstance(target, (types.Number, types.Boolean)):
        return None
    if target == native:
        return Conversion.promote
    ranks = [0 if isinstance(t, types.Integer) else 1 if isinstance(t, types.Float) else 2
             for t in (native, target)]  # fmt: skip
    return Conversion.safe if ranks[0] <= ranks[1] else Conversion.unsafe


def as_kind(kind: str, value: Any) -> Any:
    try:
        return _PYTHON[kind](value)
    except OverflowError:
        raise Refused(
            f"the Python integer {shown_integer(value)} is too large for a float"
        ) from None


def scalar_name(ty: types.Type) -> str | None:
    """Return the dtype name of a numba scalar type, the kind of a weak one, None for others."""
    if isinstance(ty, Weak):
        return ty.kind
    if isinstance(ty, Narrow):
        return ty.dtype_name
    ty = types.unliteral(ty)
    if isinstance(ty, (types.Number, types.Boolean)):
        return str(as_dtype(ty).name)
    return None


def scalar_type(name: str) -> types.Type:
    if name in WEAK:
        return Weak(name)
    return Narrow(name) if name in NARROW else from_dtype(np.dtype(name))


def native(ty: types.Type) -> types.Type:
    """Return the numba type in which values of a type are computed."""
    if isinstance(ty, Weak):
        return ty.native
    return types.float32 if isinstance(ty, Narrow) else types.unliteral(ty)


def common_name(args: tuple[types.Type, ...]) -> str | None:
    """Return the promoted dtype name (or weak kind) of scalar types, None if one is no scalar."""
    names = [scalar_name(ty) for ty in args]
    if None in names:
        return None
    strong = [name for name in names if name is not None and name not in WEAK]
    return result_name(strong, [name for name in names if name in WEAK])


def unify(left: types.Type, right: types.Type) -> types.Type | None:
    """Return the type of a variable that has type `left` on one path and `right` on another."""
    if isinstance(left, Weak) and isinstance(right, Weak):
        return left.joined(right)
    name = common_name((left, right))
    return None if name is None else scalar_type(name)


def described(ty: types.Type) -> str:
    name = scalar_name(ty)
    if isinstance(ty, Weak):
        return f"a Python {name}" if ty.value is None else f"the Python {name} {ty.value!r}"
    if name is not None:
        return name
    if ty is types.none:
        return "None"
    if isinstance(ty, types.Optional):
        return f"{described(ty.type)} or None"
    if isinstance(ty, types.BaseTuple):
        others = [item for item in ty if scalar_name(item) is None]
        return f"a tuple that holds {described(others[0])}" if others else f"a tuple of {len(ty)}"
    if isinstance(ty, types.Array):
        return f"an array of {described(ty.dtype)}"
    for kinds, text in _DESCRIPTIONS.items():
        if isinstance(ty, kinds):
            return text
    return f"no number ({str(ty).partition('(')[0].lower()})"


_DESCRIPTIONS: dict[tuple[type, ...], str] = {
    (types.EnumMember, types.IntEnumMember): "a member of an enumeration (take its value)",
    (types.EnumClass, types.IntEnumClass): "an enumeration",
    (types.UnicodeType, types.StringLiteral): "a string",
    (types.RangeType,): "a range (compare with its ends)",
}


# --- Casts of weak Python numbers, which are exact also for integers beyond 64 bits.


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


def cast_weak(context: Any, builder: Any, source: Weak, target: Any, value: Any) -> Any:
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


def cast_between_weak(context: Any, builder: Any, source: Weak, target: Weak, value: Any) -> Any:
    if target.is_constant:
        return value
    return cast_weak(context, builder, source, target.native, value)


def weak_constant(context: Any, builder: Any, ty: Weak, value: Any) -> Any:
    """Return the LLVM constant of a Python number; 0 beyond 64 bits, as the type has its value."""
    number: Any = value.value if isinstance(value, Constant) else value
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


# --- Data models (memory and register layouts) and casts of weak scalars and 16-bit floats.

_i16, _i32, _i64, _f32 = (*map(llvm.IntType, (16, 32, 64)), llvm.FloatType())


# Conversions of float32 to 16 bits and back. On CUDA they are PTX: NVVM's optimiser would create
# vectors of half, which it does not support.

PTX = "nvptx64-nvidia-cuda"
"""The triple of modules for GPUs."""


def _is_cuda(builder: Any) -> bool:
    return bool(builder.module.triple == PTX)


def to_bits(builder: Any, value: Any, name: str) -> Any:
    """Round a float32 to the nearest 16-bit float, ties to even, and return its bits."""
    if name == "bfloat16":
        return _to_bfloat16(builder, value)
    if _is_cuda(builder):
        kind = llvm.FunctionType(_i16, [_f32])
        return builder.asm(kind, "cvt.rn.f16.f32 $0, $1;", "=h,f", [value], False)
    return builder.bitcast(builder.fptrunc(value, llvm.HalfType()), _i16)


def from_bits(builder: Any, bits: Any, name: str) -> Any:
    if name == "bfloat16":
        return builder.bitcast(builder.shl(builder.zext(bits, _i32), _i32(16)), _f32)
    if _is_cuda(builder):
        kind = llvm.FunctionType(_f32, [_i16])
        return builder.asm(kind, "cvt.f32.f16 $0, $1;", "=f,h", [bits], False)
    return builder.fpext(builder.bitcast(bits, llvm.HalfType()), _f32)


def _to_narrow(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    name, ty = target.dtype_name, native(source)
    value = _native_value(builder, source, value)
    if isinstance(source, Weak):  # float64 is exact, except for large integers
        ty = types.complex128 if source.kind == "complex" else types.float64
        value = context.cast(builder, value, source, ty)
    if ty == types.float64 and name == "float16":
        value = _to_odd(builder, value)  # avoids double rounding
    return to_bits(builder, context.cast(builder, value, ty, types.float32), name)


def _to_bfloat16(builder: Any, value: Any) -> Any:
    bits = builder.bitcast(value, _i32)
    odd = builder.and_(builder.lshr(bits, _i32(16)), _i32(1))
    rounded = builder.add(builder.add(bits, _i32(0x7FFF)), odd)
    # Rounding could turn a NaN into an infinity: set its quiet bit instead.
    quiet = builder.or_(bits, _i32(0x00400000))
    is_nan = builder.fcmp_unordered("uno", value, value)
    return builder.trunc(builder.lshr(builder.select(is_nan, quiet, rounded), _i32(16)), _i16)


def _to_odd(builder: Any, value: Any) -> Any:
    """Round a float64 to 24 bits, to odd: the last bit is set if any lower bit was."""
    bits = builder.bitcast(value, _i64)
    low_bits = builder.and_(bits, _i64((1 << 29) - 1))
    is_inexact = builder.icmp_unsigned("!=", low_bits, _i64(0))
    sticky = builder.shl(builder.zext(is_inexact, _i64), _i64(29))
    high_bits = builder.and_(bits, _i64(-(1 << 29)))
    return builder.bitcast(builder.or_(high_bits, sticky), llvm.DoubleType())


def _native_value(builder: Any, ty: types.Type, value: Any) -> Any:
    return from_bits(builder, value, ty.dtype_name) if isinstance(ty, Narrow) else value


def _cast_native(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    value = _native_value(builder, source, value)
    return context.cast(builder, value, native(source), native(target))


def _to_boolean(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    if isinstance(source, Weak) and source.is_constant:
        return context.get_constant(types.boolean, bool(source.value))
    return context.is_true(builder, native(source), _native_value(builder, source, value))


def install() -> None:
    """Register both types with numba."""

    class WeakModel(models.ProxyModel):
        def __init__(self, manager: Any, fe_type: Weak) -> None:
            self._proxied_model = manager.lookup(fe_type.native)
            super(models.ProxyModel, self).__init__(manager, fe_type)

    class NarrowModel(models.PrimitiveModel):
        def __init__(self, manager: Any, fe_type: Narrow) -> None:
            super().__init__(manager, fe_type, _i16)

    extending.register_model(Weak)(WeakModel)
    extending.register_model(Narrow)(NarrowModel)
    lower_cast = extending.lower_cast
    for numbers in (types.Integer, types.Float, types.Complex):
        lower_cast(Weak, numbers)(cast_weak)
        lower_cast(Narrow, numbers)(_cast_native)
        lower_cast(numbers, Narrow)(_to_narrow)
        lower_cast(numbers, Weak)(_cast_native)
    for ours in (Weak, Narrow):
        lower_cast(ours, types.Boolean)(_to_boolean)
        lower_cast(ours, Narrow)(_to_narrow)
    lower_cast(types.Boolean, Narrow)(_to_narrow)
    lower_cast(Weak, Weak)(cast_between_weak)
    lower_constant(Weak)(weak_constant)

    @lower_constant(Narrow)  # type: ignore[untyped-decorator]
    def constant(context: Any, builder: Any, ty: Narrow, value: Constant) -> Any:
        bits = np.asarray(value.value, dtypes.from_name(ty.dtype_name)).view(np.uint16)
        return _i16(int(bits))


# --- Elements as numba types: numbers and nested tuples, with their layouts in memory.


def element_type(dtype: np.dtype[Any]) -> types.Type:
    if dtype.names is None:
        return scalar_type(str(dtypes.name_of(dtype)))
    items = [element_type(field) for field in records.field_dtypes(dtype)]

    def tuple_type(cls: type, items: Sequence[Any]) -> types.Type:
        return types.BaseTuple.from_types(tuple(items), None if cls is tuple else cls)

    return records.nest_fields(dtype.names, items, tuple_type)


def argument_type(argument: Argument) -> types.Type:
    return element_type(argument.dtype if isinstance(argument, Separate) else argument)


def flat(ty: types.Type) -> tuple[types.Type, ...]:
    if not isinstance(ty, types.BaseTuple):
        return (ty,)
    return tuple(field for item in ty for field in flat(item))


def unpack_fields(builder: Any, ty: types.Type, value: Any) -> Iterator[Any]:
    if not isinstance(ty, types.BaseTuple):
        yield value
        return
    for i, item in enumerate(ty):
        yield from unpack_fields(builder, item, builder.extract_value(value, i))


def pack_fields(context: Any, builder: Any, ty: types.Type, values: Iterator[Any]) -> Any:
    if not isinstance(ty, types.BaseTuple):
        return next(values)
    items = [pack_fields(context, builder, item, values) for item in ty]
    return context.make_tuple(builder, ty, items)


def cast(context: Any, builder: Any, value: Any, source: types.Type, target: types.Type) -> Any:
    numbers = (
        context.cast(builder, number, from_type, to_type)
        for number, from_type, to_type in zip(
            unpack_fields(builder, source, value), flat(source), flat(target), strict=True
        )
    )
    return pack_fields(context, builder, target, numbers)


def unpacked(context: Any, builder: Any, dtype: np.dtype[Any], pointer: Any) -> Any:
    ty = element_type(dtype)
    numbers = (
        context.unpack_value(builder, field, _at(context, builder, pointer, offset, field))
        for field, offset in zip(flat(ty), records.offsets(dtype), strict=True)
    )
    return pack_fields(context, builder, ty, numbers)


def pack(context: Any, builder: Any, dtype: np.dtype[Any], value: Any, pointer: Any) -> None:
    ty = element_type(dtype)
    numbers = unpack_fields(builder, ty, value)
    for number, field, offset in zip(numbers, flat(ty), records.offsets(dtype), strict=True):
        context.pack_value(builder, field, number, _at(context, builder, pointer, offset, field))


def _at(context: Any, builder: Any, pointer: Any, offset: int, ty: types.Type) -> Any:
    byte = builder.bitcast(pointer, llvm.IntType(8).as_pointer())
    address = builder.gep(byte, [llvm.IntType(64)(offset)])
    return builder.bitcast(address, context.get_data_type(ty).as_pointer())


# --- Helpers to generate LLVM code for a target, including calls of its math library.

# libdevice names that differ from those in Python's math.
_LIBDEVICE = {"gamma": "tgamma"}
i1, f32, f64 = llvm.IntType(1), llvm.FloatType(), llvm.DoubleType()


@dataclass(frozen=True)
class Code:
    context: Any
    builder: Any

    @property
    def is_cuda(self) -> bool:
        return _is_cuda(self.builder)

    def libm(self, name: str, *values: Any) -> Any:
        ty = values[0].type
        if self.is_cuda:
            symbol = f"__nv_{_LIBDEVICE.get(name, name)}" + ("f" if ty == f32 else "")
            kind = llvm.FunctionType(ty, [ty] * len(values))
            function = cgutils.get_or_insert_function(self.builder.module, kind, symbol)
            return self.builder.call(function, values)
        scalar = types.float32 if ty == f32 else types.float64
        signature = scalar(*(scalar,) * len(values))
        return self.context.get_function(getattr(math, name), signature)(self.builder, values)

    def intrinsic(self, name: str, *values: Any) -> Any:
        if self.is_cuda and name == "trunc":  # CUDA 13.0's NVVM lacks it for float32
            return self.libm(name, *values)
        function = self.builder.module.declare_intrinsic(f"llvm.{name}", [values[0].type])
        return self.builder.call(function, values)


@dataclass(frozen=True)
class Operand:
    """An argument of a function that operators call: its type, and its value in LLVM code."""

    code: Code
    type: types.Type
    raw: Any

    def to(self, ty: types.Type) -> Any:
        return self.code.context.cast(self.code.builder, self.raw, self.type, ty)

    def native(self, ty: types.Type | None = None) -> Any:
        """Return the value as it is computed with, of its own type or after conversion."""
        ty = ty or self.type
        return self.code.context.cast(self.code.builder, self.to(ty), ty, native(ty))
