"""Typed pointers for numba kernels, which take plain addresses and load and store through them.

A kernel of integers needs one signature for all layouts, alignments and writeability, and compiles
faster than one that takes numba arrays.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from gpualgo._cpu.elements import put


@cache
def pointer_to(element: Any) -> Any:
    """Return an intrinsic that converts an integer address to a pointer to `element`."""
    pointer = types.CPointer(element)

    def as_pointer(_typing: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(pointer))

        return pointer(types.intp), generate

    return intrinsic(as_pointer)


@cache
def pointers_to(elements: tuple[Any, ...], slots: tuple[int, ...]) -> Any:
    """Return an intrinsic that reads slots of a table of addresses as a tuple of pointers."""
    pointers = types.Tuple([types.CPointer(element) for element in elements])

    def as_pointers(_typing: Any, table: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            values = []
            for pointer, slot in zip(pointers, slots, strict=True):
                entry = builder.inttoptr(args[0], context.get_value_type(pointer).as_pointer())
                entry = builder.gep(entry, [ir.Constant(ir.IntType(64), slot)])
                values.append(builder.load(entry))
            return context.make_tuple(builder, pointers, values)

        return pointers(types.intp), generate

    return intrinsic(as_pointers)


def _load(context: Any, builder: Any, element: Any, pointer: Any, index: Any) -> Any:
    model = context.data_model_manager[element]
    # Alignment 1: arrays may be unaligned, and unaligned vector loads cost nothing extra.
    return model.load_from_data_pointer(builder, builder.gep(pointer, [index], inbounds=True), 1)


@cache
def reader(element: Any) -> Any:
    """Return an intrinsic that loads an element from an address."""

    def read(_typing: Any, _address: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], context.get_value_type(types.CPointer(element)))
            return context.data_model_manager[element].load_from_data_pointer(builder, pointer, 1)

        return element(types.intp), generate

    return intrinsic(read)


@cache
def writer(element: Any) -> Any:
    """Return an intrinsic that stores an element at an address."""

    def write(_typing: Any, _address: Any, _value: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], context.get_value_type(types.CPointer(element)))
            put(context, builder, element, args[1], pointer)
            return context.get_dummy_value()

        return types.void(types.intp, element), generate

    return intrinsic(write)


def _load_one(_typing: Any, pointer: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _load(context, builder, signature.args[0].dtype, *args)

    return pointer.dtype(pointer, types.intp), generate


def _load_each(_typing: Any, pointers: Any, index: Any) -> Any:
    result = types.Tuple([pointer.dtype for pointer in pointers])

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = [
            _load(context, builder, pointer.dtype, builder.extract_value(args[0], i), args[1])
            for i, pointer in enumerate(signature.args[0])
        ]
        return context.make_tuple(builder, signature.return_type, values)

    return result(pointers, types.intp), generate


def _store(_typing: Any, pointer: Any, index: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = builder.gep(args[0], [args[1]], inbounds=True)
        put(context, builder, signature.args[0].dtype, args[2], address)
        return context.get_dummy_value()

    return types.void(pointer, types.intp, pointer.dtype), generate


def _same(_typing: Any, value: Any) -> Any:
    return value(value), lambda context, builder, signature, args: args[0]


def _copy_bytes(_typing: Any, target: Any, source: Any, size: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        copy = builder.module.declare_intrinsic("llvm.memcpy", [byte, byte, ir.IntType(64)])
        target, source = (builder.inttoptr(arg, byte) for arg in args[:2])
        builder.call(copy, [target, source, args[2], ir.Constant(ir.IntType(1), 0)])
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp), generate


def _call(_typing: Any, function: Any, args: Any) -> Any:
    """Call a compiled function of intp arguments by its address; its code is not compiled again.

    If the function reports an error, which an operator within raised, the caller returns it, too.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        function_type = ir.FunctionType(ir.IntType(32), [ir.IntType(64)] * len(signature.args[1]))
        target = builder.inttoptr(values[0], function_type.as_pointer())
        args = [builder.extract_value(values[1], i) for i in range(len(function_type.args))]
        status = builder.call(target, args)
        with cgutils.if_unlikely(builder, cgutils.is_not_null(builder, status)):
            context.call_conv.return_exc(builder)
        return context.get_dummy_value()

    return types.void(types.intp, types.UniTuple(types.intp, len(args))), generate


load = intrinsic(_load_one)
load_each = intrinsic(_load_each)
store = intrinsic(_store)
same = intrinsic(_same)
copy_bytes = intrinsic(_copy_bytes)
call = intrinsic(_call)
