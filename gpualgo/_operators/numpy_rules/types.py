"""numba types for what NumPy 2 has and numba has not: weak scalars and 16-bit floats.

`Weak` is a Python int, float or complex whose type yields to its partner's; `Narrow` is a float16
or bfloat16, stored in 16 bits and held in a register as a float32 that is rounded already.
`install` registers both with one numba target (the CPU's, or CUDA's, which has registries of its
own).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir as llvm
from numba import typeof, types
from numba.core.typeconv import Conversion
from numba.np.numpy_support import as_dtype, from_dtype

from gpualgo._operators.numpy_rules.promotion import WEAK, result_name

NARROW = ("float16", "bfloat16")
_WEAK_NATIVE = {"int": types.int64, "float": types.float64, "complex": types.complex128}


class Weak(types.Type):
    """A Python scalar of kind int, float or complex; `value` where it is a constant."""

    def __init__(self, kind: str, value: Any = None) -> None:
        self.kind, self.value = kind, value
        super().__init__(name=f"Weak({kind}, {value!r})")

    @property
    def native(self) -> types.Type:
        return _WEAK_NATIVE[self.kind]

    def unify(self, typingctx: Any, other: types.Type) -> types.Type | None:
        return unify(self, other)

    def can_convert_to(self, typingctx: Any, other: types.Type) -> Conversion | None:
        return _conversion(self, self.native, other)


class Narrow(types.Type):
    """A 16-bit float, by its dtype name."""

    def __init__(self, dtype_name: str) -> None:
        self.dtype_name = dtype_name
        super().__init__(name=f"Narrow({dtype_name})")

    def unify(self, typingctx: Any, other: types.Type) -> types.Type | None:
        return unify(self, other)

    def can_convert_to(self, typingctx: Any, other: types.Type) -> Conversion | None:
        return _conversion(self, types.float32, other)


class WeakValue:
    """A Python scalar as a constant of numba's IR; numba asks it for its type."""

    def __init__(self, value: complex) -> None:
        self.value = value
        self._numba_type_ = Weak(type(value).__name__, value)


def _conversion(source: types.Type, native: types.Type, target: types.Type) -> Conversion | None:
    if isinstance(target, Weak):
        known = isinstance(source, Weak) and WEAK.index(source.kind) <= WEAK.index(target.kind)
        return Conversion.promote if known else None
    if isinstance(target, Narrow):
        return Conversion.safe
    if not isinstance(target, (types.Number, types.Boolean)):
        return None
    if target == native:
        return Conversion.promote
    ranks = [0 if isinstance(t, types.Integer) else 1 if isinstance(t, types.Float) else 2
             for t in (native, target)]  # fmt: skip
    return Conversion.safe if ranks[0] <= ranks[1] else Conversion.unsafe


def scalar_name(ty: types.Type) -> str | None:
    """Return the dtype name of a numba scalar type, the kind of a weak one, or None."""
    if isinstance(ty, Weak):
        return ty.kind
    if isinstance(ty, Narrow):
        return ty.dtype_name
    if isinstance(ty, types.Omitted):  # a default value
        kind = type(ty.value).__name__
        return kind if kind in WEAK else scalar_name(typeof(ty.value))
    ty = types.unliteral(ty)
    if isinstance(ty, (types.Number, types.Boolean)):
        return str(as_dtype(ty).name)
    return None


def scalar_type(name: str) -> types.Type:
    """Return the numba type of a dtype name or a weak kind."""
    if name in WEAK:
        return Weak(name)
    return Narrow(name) if name in NARROW else from_dtype(np.dtype(name))


def native(ty: types.Type) -> types.Type:
    """Return the type that numba itself computes on."""
    if isinstance(ty, Weak):
        return ty.native
    if isinstance(ty, types.Omitted):
        return typeof(ty.value)
    return types.float32 if isinstance(ty, Narrow) else types.unliteral(ty)


def common_name(args: tuple[types.Type, ...]) -> str | None:
    """Return the promoted dtype name (or weak kind) of scalar types, None if one is none."""
    names = [scalar_name(ty) for ty in args]
    if None in names:
        return None
    strong = [name for name in names if name is not None and name not in WEAK]
    return result_name(strong, [name for name in names if name in WEAK])


def unify(left: types.Type, right: types.Type) -> types.Type | None:
    """Return the type of a variable that holds left on one path and right on another."""
    name = common_name((left, right))
    return None if name is None else scalar_type(name)


# --- 16-bit floats in LLVM ----------------------------------------------------------------

_i16, _i32, _f32 = llvm.IntType(16), llvm.IntType(32), llvm.FloatType()


class _Narrowing:
    """Conversions of float32 to 16 bits and back, as LLVM code.

    NVVM has no vectors of LLVM's half, which its optimiser would make, so CUDA gets PTX.
    """

    def __init__(self, is_cuda: bool) -> None:
        self.is_cuda = is_cuda

    def to_bits(self, builder: Any, value: Any, name: str) -> Any:
        """Round a float32 to the nearest 16-bit float, ties to even, and return its bits."""
        if name == "bfloat16":
            return _to_bfloat16(builder, value)
        if self.is_cuda:
            kind = llvm.FunctionType(_i16, [_f32])
            return builder.asm(kind, "cvt.rn.f16.f32 $0, $1;", "=h,f", [value], False)
        return builder.bitcast(builder.fptrunc(value, llvm.HalfType()), _i16)

    def from_bits(self, builder: Any, bits: Any, name: str) -> Any:
        if name == "bfloat16":
            return builder.bitcast(builder.shl(builder.zext(bits, _i32), _i32(16)), _f32)
        if self.is_cuda:
            kind = llvm.FunctionType(_f32, [_i16])
            return builder.asm(kind, "cvt.f32.f16 $0, $1;", "=f,h", [bits], False)
        return builder.fpext(builder.bitcast(bits, llvm.HalfType()), _f32)

    def cast(self, context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
        """Cast any scalar to a 16-bit float, rounded."""
        as_float = context.cast(builder, value, native(source), types.float32)
        name = target.dtype_name
        return self.from_bits(builder, self.to_bits(builder, as_float, name), name)


def _to_bfloat16(builder: Any, value: Any) -> Any:
    bits = builder.bitcast(value, _i32)
    odd = builder.and_(builder.lshr(bits, _i32(16)), _i32(1))
    rounded = builder.add(builder.add(bits, _i32(0x7FFF)), odd)
    # Rounding must not carry a NaN into an infinity: set its quiet bit instead.
    quiet = builder.or_(bits, _i32(0x00400000))
    is_nan = builder.fcmp_unordered("uno", value, value)
    return builder.trunc(builder.lshr(builder.select(is_nan, quiet, rounded), _i32(16)), _i16)


def _cast_native(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    return context.cast(builder, value, native(source), native(target))


def _to_boolean(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    return context.is_true(builder, native(source), value)


def install(extending: Any, models: Any, lower_constant: Any, is_cuda: bool) -> None:
    """Register both types with the target whose `extending` and data `models` are given."""
    narrowing = _Narrowing(is_cuda)

    class WeakModel(models.ProxyModel):
        def __init__(self, manager: Any, fe_type: Weak) -> None:
            self._proxied_model = manager.lookup(fe_type.native)
            super(models.ProxyModel, self).__init__(manager, fe_type)

    class NarrowModel(models.DataModel):
        """A float32 in a register, 16 bits in memory."""

        def get_value_type(self) -> Any:
            return _f32

        get_argument_type = get_return_type = get_value_type

        def get_data_type(self) -> Any:
            return _i16

        def as_data(self, builder: Any, value: Any) -> Any:
            return narrowing.to_bits(builder, value, self._fe_type.dtype_name)

        def from_data(self, builder: Any, value: Any) -> Any:
            return narrowing.from_bits(builder, value, self._fe_type.dtype_name)

        def as_argument(self, builder: Any, value: Any) -> Any:
            return value

        as_return = from_argument = from_return = as_argument

    extending.register_model(Weak)(WeakModel)
    extending.register_model(Narrow)(NarrowModel)
    for numbers in (types.Integer, types.Float, types.Complex):
        extending.lower_cast(Weak, numbers)(_cast_native)
        extending.lower_cast(Narrow, numbers)(_cast_native)
        extending.lower_cast(numbers, Narrow)(narrowing.cast)
    extending.lower_cast(Weak, types.Boolean)(_to_boolean)
    extending.lower_cast(Narrow, types.Boolean)(_to_boolean)
    extending.lower_cast(types.Boolean, Narrow)(narrowing.cast)
    extending.lower_cast(Weak, Narrow)(narrowing.cast)
    extending.lower_cast(Narrow, Narrow)(narrowing.cast)
    extending.lower_cast(Weak, Weak)(_cast_native)
    for numbers in (types.Integer, types.Float, types.Complex):
        extending.lower_cast(numbers, Weak)(_cast_native)

    @lower_constant(Weak)  # type: ignore[untyped-decorator]
    def constant(context: Any, builder: Any, ty: Weak, value: WeakValue) -> Any:
        return context.get_constant_generic(builder, ty.native, value.value)
