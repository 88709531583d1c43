"""Data models (memory and register layouts) and casts of weak scalars and 16-bit floats.

`install` registers them with one numba target; the CPU and CUDA have separate registries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir as llvm
from numba import types
from numba.core import cgutils

from gpualgo._base import dtypes, records
from gpualgo._base.records import Argument, Separate
from gpualgo._operators.numpy_rules.types import (
    Narrow,
    NarrowValue,
    Weak,
    cast_between_weak,
    cast_weak,
    native,
    scalar_type,
    weak_constant,
    weak_to_boolean,
)

_i16, _i32, _i64, _f32 = (*map(llvm.IntType, (16, 32, 64)), llvm.FloatType())


class Narrowing:
    """Conversions of float32 to 16 bits and back, as LLVM code.

    On CUDA they are PTX: NVVM's optimiser would create vectors of half, which it does not support.
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
        name, ty = target.dtype_name, native(source)
        if isinstance(source, Weak):  # float64 is exact, except for large integers
            ty = types.complex128 if source.kind == "complex" else types.float64
            value = context.cast(builder, value, source, ty)
        if ty == types.float64 and name == "float16":
            value = _to_odd(builder, value)  # avoids double rounding
        as_float = context.cast(builder, value, ty, types.float32)
        return self.from_bits(builder, self.to_bits(builder, as_float, name), name)


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


def _cast_native(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    return context.cast(builder, value, native(source), native(target))


def _to_boolean(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    return context.is_true(builder, native(source), value)


def install(extending: Any, models: Any, lower_constant: Any, is_cuda: bool) -> None:
    """Register both types with the target whose `extending` and `models` modules are given."""
    narrowing = Narrowing(is_cuda)

    class WeakModel(models.ProxyModel):
        def __init__(self, manager: Any, fe_type: Weak) -> None:
            self._proxied_model = manager.lookup(fe_type.native)
            super(models.ProxyModel, self).__init__(manager, fe_type)

    class NarrowModel(models.DataModel):
        """A float32 in registers, 16 bits in memory."""

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
    lower_cast = extending.lower_cast
    for numbers in (types.Integer, types.Float, types.Complex):
        lower_cast(Weak, numbers)(cast_weak)
        lower_cast(Narrow, numbers)(_cast_native)
        lower_cast(numbers, Narrow)(narrowing.cast)
        lower_cast(numbers, Weak)(_cast_native)
    lower_cast(Weak, types.Boolean)(weak_to_boolean)
    lower_cast(Narrow, types.Boolean)(_to_boolean)
    lower_cast(types.Boolean, Narrow)(narrowing.cast)
    lower_cast(Weak, Narrow)(narrowing.cast)
    lower_cast(Narrow, Narrow)(narrowing.cast)
    lower_cast(Weak, Weak)(cast_between_weak)
    lower_constant(Weak)(weak_constant)

    @lower_constant(Narrow)  # type: ignore[untyped-decorator]
    def constant(context: Any, builder: Any, ty: Narrow, value: NarrowValue) -> Any:
        return context.get_constant(types.float32, float(value.value))


# --- Elements as numba types: numbers and nested tuples, with their layouts in memory.


def element_type(dtype: np.dtype[Any]) -> types.Type:
    if dtype.names is None:
        return scalar_type(str(dtypes.name_of(dtype)))
    items = [element_type(field) for field in records.field_dtypes(dtype)]
    return records.nest_fields(dtype.names, items, _tuple_type)


def argument_type(argument: Argument) -> types.Type:
    return element_type(argument.dtype if isinstance(argument, Separate) else argument)


def _tuple_type(cls: type, items: Sequence[Any]) -> types.Type:
    return types.BaseTuple.from_types(tuple(items), None if cls is tuple else cls)


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
# C functions to call on the CPU: numba's math lacks them, or lowers them to an LLVM intrinsic.
_EXTERNAL = ("cbrt", "exp2", "pow")
i1, f32, f64 = llvm.IntType(1), llvm.FloatType(), llvm.DoubleType()


@dataclass(frozen=True)
class Code:
    context: Any
    builder: Any
    is_cuda: bool

    @property
    def narrowing(self) -> Narrowing:
        return Narrowing(self.is_cuda)

    def select(self, *cases: Any) -> Any:
        """Return the value of the first true condition: condition, value, …, default."""
        *pairs, result = cases
        for condition, value in reversed(list(zip(pairs[::2], pairs[1::2], strict=True))):
            result = self.builder.select(condition, value, result)
        return result

    def both(self, first: Any, *others: Any) -> Any:
        for other in others:
            first = self.builder.and_(first, other)
        return first

    def either(self, first: Any, *others: Any) -> Any:
        for other in others:
            first = self.builder.or_(first, other)
        return first

    def libm(self, name: str, *values: Any) -> Any:
        ty = values[0].type
        suffix = "f" if ty == f32 else ""
        if self.is_cuda or name in _EXTERNAL:
            symbol = f"__nv_{_LIBDEVICE.get(name, name)}" if self.is_cuda else name
            kind = llvm.FunctionType(ty, [ty] * len(values))
            function = cgutils.get_or_insert_function(self.builder.module, kind, symbol + suffix)
            if symbol == "pow":
                # LLVM replaces calls with some constants, such as 8 ** a by exp2. A number must
                # give the same bits as a constant and as data.
                for attribute in ("nobuiltin", "nounwind", "readnone"):
                    function.attributes.add(attribute)
            return self.builder.call(function, values)
        scalar = types.float32 if ty == f32 else types.float64
        signature = scalar(*(scalar,) * len(values))
        return self.context.get_function(getattr(math, name), signature)(self.builder, values)

    def intrinsic(self, name: str, *values: Any) -> Any:
        if self.is_cuda and name == "trunc":  # CUDA 13.0's NVVM lacks it for float32
            return self.libm(name, *values)
        function = self.builder.module.declare_intrinsic(f"llvm.{name}", [values[0].type])
        return self.builder.call(function, values)

    def loop(self, start: list[Any], goes_on: Callable[..., Any], step: Callable[..., Any]) -> Any:
        builder = self.builder
        before = builder.block
        head = builder.append_basic_block("head")
        body = builder.append_basic_block("body")
        after = builder.append_basic_block("after")
        builder.branch(head)
        builder.position_at_end(head)
        variables = [builder.phi(value.type) for value in start]
        for variable, value in zip(variables, start, strict=True):
            variable.add_incoming(value, before)
        builder.cbranch(goes_on(*variables), body, after)
        builder.position_at_end(body)
        for variable, value in zip(variables, step(*variables), strict=True):
            variable.add_incoming(value, builder.block)
        builder.branch(head)
        builder.position_at_end(after)
        return variables
