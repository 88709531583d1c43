"""Functions for kernels to call on elements of any strided array: types, offsets, packing."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import binding, ir
from numba import from_dtype, types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.extending import intrinsic, register_model

from gpualgo._base import records
from gpualgo._cpu.plan import CONVERT, CONVERTED, DIRECT, PACK, PACKED, SIZE


def inline(function: Callable[..., Any]) -> Any:
    """Compile a function together with the kernels that call it; Python cannot call it."""
    wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return numba.njit(error_model="numpy", **wrappers)(function)


def instruction(result: Any, *args: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator: generate(context, builder, *args) becomes an intrinsic of these types."""

    def decorate(generate: Callable[..., Any]) -> Any:
        def lower(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            value = generate(context, builder, *values)
            return context.get_dummy_value() if result == types.void else value

        def typed(_typing: Any, *_: Any) -> Any:
            return result(*args), lower

        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        names = ["_typing", *(f"x{i}" for i in range(len(args)))]
        parameters = [inspect.Parameter(name, kind) for name in names]
        typed.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return intrinsic(typed)

    return decorate


# --- Numba types of elements: a record's fields in registers, and in memory with NumPy's layout.


class Record(types.Type):
    """An element of several numbers as stored in memory."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.leaves = tuple(map(storage, records.field_dtypes(dtype)))
        self.offsets = records.offsets(dtype)
        super().__init__(name=f"Record({records.label(dtype)})")


@cache
def storage(dtype: np.dtype[Any]) -> Any:
    """Return the numba type of dtype's elements in memory (16-bit floats: uint16)."""
    if dtype.names is not None:
        return Record(dtype)
    if dtype.kind not in "biufc" or dtype == np.float16:
        return types.uint16
    return from_dtype(dtype)


@register_model(Record)
class _RecordModel(models.StructModel):
    """Data model of a record: one register for each number; in memory with the dtype's padding."""

    def __init__(self, manager: Any, ty: Record) -> None:
        super().__init__(manager, ty, [(f"f{i}", leaf) for i, leaf in enumerate(ty.leaves)])

    def get_data_type(self) -> Any:
        ty, parts, end = self._fe_type, [], 0
        self._indices = []
        for model, offset, leaf in zip(
            self._models, ty.offsets, records.field_dtypes(ty.dtype), strict=True
        ):
            if offset > end:
                parts.append(ir.ArrayType(ir.IntType(8), offset - end))
            self._indices.append(len(parts))
            parts.append(model.get_data_type())
            end = offset + leaf.itemsize
        if ty.dtype.itemsize > end:
            parts.append(ir.ArrayType(ir.IntType(8), ty.dtype.itemsize - end))
        return ir.LiteralStructType(parts, packed=True)

    get_return_type = get_data_type

    def as_data(self, builder: Any, value: Any) -> Any:
        record = ir.Constant(self.get_data_type(), ir.Undefined)
        for i, (index, model) in enumerate(zip(self._indices, self._models, strict=True)):
            number = model.as_data(builder, builder.extract_value(value, i))
            record = builder.insert_value(record, number, index)
        return record

    def from_data(self, builder: Any, value: Any) -> Any:
        self.get_data_type()
        record = ir.Constant(self.get_value_type(), ir.Undefined)
        for i, (index, model) in enumerate(zip(self._indices, self._models, strict=True)):
            number = model.from_data(builder, builder.extract_value(value, index))
            record = builder.insert_value(record, number, i)
        return record

    as_return, from_return = as_data, from_data

    def load_from_data_pointer(self, builder: Any, ptr: Any, align: Any = None) -> Any:
        record = ir.Constant(self.get_value_type(), ir.Undefined)
        for i, (model, offset) in enumerate(zip(self._models, self._fe_type.offsets, strict=True)):
            pointer = _pointer_to_field(builder, ptr, offset, model)
            number = model.load_from_data_pointer(builder, pointer, align)
            record = builder.insert_value(record, number, i)
        return record

    def store(self, builder: Any, value: Any, pointer: Any) -> None:
        """Write a record's numbers to memory of any alignment."""
        for i, (model, offset) in enumerate(zip(self._models, self._fe_type.offsets, strict=True)):
            number = model.as_data(builder, builder.extract_value(value, i))
            builder.store(number, _pointer_to_field(builder, pointer, offset, model), 1)


def _pointer_to_field(builder: Any, pointer: Any, offset: int, model: Any) -> Any:
    byte = builder.bitcast(pointer, ir.IntType(8).as_pointer())
    address = builder.gep(byte, [ir.Constant(ir.IntType(64), offset)], inbounds=True)
    return builder.bitcast(address, model.get_data_type().as_pointer())


def put(context: Any, builder: Any, ty: Any, value: Any, pointer: Any) -> None:
    if isinstance(ty, Record):
        context.data_model_manager[ty].store(builder, value, pointer)
    else:
        context.pack_value(builder, ty, value, pointer, 1)


# --- Typed pointers for numba kernels, which take plain addresses and load and store through
# them.
#
# A kernel of integers needs one signature for all layouts, alignments and writeability, and
# compiles faster than one that takes numba arrays.


@cache
def pointer_to(element: Any) -> Any:
    """Return an intrinsic that converts an integer address to a pointer to `element`."""
    pointer = types.CPointer(element)

    @instruction(pointer, types.intp)
    def as_pointer(context: Any, builder: Any, address: Any) -> Any:
        return builder.inttoptr(address, context.get_value_type(pointer))

    return as_pointer


@cache
def pointers_to(elements: tuple[Any, ...], slots: tuple[int, ...]) -> Any:
    """Return an intrinsic that reads slots of a table of addresses as a tuple of pointers."""
    return values_in(types.Tuple([types.CPointer(element) for element in elements]), slots)


def values_in(values: Any, slots: Sequence[int]) -> Any:
    """Return an intrinsic that reads slots of a table of words as a tuple of these types."""

    @instruction(values, types.intp)
    def read(context: Any, builder: Any, table: Any) -> Any:
        loaded = []
        for value, slot in zip(values, slots, strict=True):
            entry = builder.inttoptr(table, context.get_value_type(value).as_pointer())
            loaded.append(builder.load(builder.gep(entry, [ir.Constant(ir.IntType(64), slot)])))
        return context.make_tuple(builder, values, loaded)

    return read


def _load(context: Any, builder: Any, element: Any, pointer: Any, index: Any) -> Any:
    return load_from(context, builder, element, builder.gep(pointer, [index], inbounds=True))


def load_from(context: Any, builder: Any, element: Any, pointer: Any) -> Any:
    # Alignment 1: arrays may be unaligned, and unaligned vector loads cost nothing extra.
    return context.data_model_manager[element].load_from_data_pointer(builder, pointer, 1)


@cache
def reader(element: Any) -> Any:
    as_element = pointer_to(element)
    return inline(lambda address: load(as_element(address), 0))


@cache
def writer(element: Any) -> Any:
    as_element = pointer_to(element)
    return inline(lambda address, value: store(as_element(address), 0, value))


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


def _status(_typing: Any, function: Any, args: Any) -> Any:
    """Call a compiled function of intp arguments by its address and return its status."""

    def generate(_context: Any, builder: Any, signature: Any, values: Any) -> Any:
        count = len(signature.args[1])
        function_type = ir.FunctionType(ir.IntType(32), [ir.IntType(64)] * count)
        target = builder.inttoptr(values[0], function_type.as_pointer())
        words = [builder.extract_value(values[1], i) for i in range(count)]
        return builder.zext(builder.call(target, words), ir.IntType(64))

    return types.intp(types.intp, types.UniTuple(types.intp, len(args))), generate


def _call(_typing: Any, function: Any, args: Any) -> Any:
    """Call such a function, whose code is not compiled again.

    If the function reports an error, which an operator within raised, the caller returns it, too.
    """
    signature, generate_status = _status(_typing, function, args)

    def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        failed = generate_status(context, builder, signature, values)
        with cgutils.if_unlikely(builder, cgutils.is_not_null(builder, failed)):
            context.call_conv.return_exc(builder)
        return context.get_dummy_value()

    return types.void(*signature.args), generate


@instruction(types.void, types.intp, types.intp, types.intp)
def copy_bytes(context: Any, builder: Any, target: Any, source: Any, size: Any) -> None:
    byte = ir.IntType(8).as_pointer()
    copy = builder.module.declare_intrinsic("llvm.memcpy", [byte, byte, ir.IntType(64)])
    target, source = builder.inttoptr(target, byte), builder.inttoptr(source, byte)
    builder.call(copy, [target, source, size, ir.Constant(ir.IntType(1), 0)])


load = intrinsic(_load_one)
load_each = intrinsic(_load_each)
store = intrinsic(_store)
same = intrinsic(_same)
status = intrinsic(_status)
call = intrinsic(_call)


def stack(count: int) -> Any:
    """Return an intrinsic that reserves words on the caller's stack and returns their address."""

    @instruction(types.intp)
    def words(_context: Any, builder: Any) -> Any:
        return builder.ptrtoint(cgutils.alloca_once(builder, _I64, count), _I64)

    return words


_LONG_BYTES = 128  # the least for which memcpy is faster than a loop
_words = pointer_to(types.intp)


@inline
def offset(index: int, ndim: int, lengths: int, strides: int) -> int:
    """Return the offset in bytes of the index-th element in C order."""
    total = 0
    for d in range(ndim - 1, 0, -1):
        length = load(_words(lengths), d)
        quotient = index // length
        total += (index - quotient * length) * load(_words(strides), d)
        index = quotient
    if ndim > 0:
        total += index * load(_words(strides), 0)
    return total


@inline
def dense_address(
    leaf: int, scratch: int, x: int, start: int, count: int, ndim: int, lengths: int, strides: int
) -> int:
    """Return the address of a dense copy of numbers start, start + 1, ... of the array at `x`.

    `leaf` is the address of a table by `layout.leaf`. Contiguous numbers need no copy.
    """
    p = _words(leaf)
    if load(p, DIRECT):
        x += start * load(p, SIZE)
    else:
        packed = scratch + load(p, PACKED)
        call(load(p, PACK), (packed, x, start, count, ndim, lengths, strides, 1))
        x = packed
    if load(p, CONVERT):
        converted = scratch + load(p, CONVERTED)
        call(load(p, CONVERT), (converted, x, count))
        x = converted
    return x


def count_kernel(origin: int) -> Callable[..., None]:
    """Return the source of `layout.counter`'s function."""

    def count_positions(
        dense: int, start_at: int, start: int, count: int, ndim: int, lengths: int, strides: int,
        packing: int,
    ) -> None:  # fmt: skip
        inner, stride = 1, 0
        if ndim > 0:
            inner, stride = load(_words(lengths), ndim - 1), load(_words(strides), ndim - 1)
        row = start // inner
        column = start - row * inner
        while count > 0:
            n = min(count, inner - column)
            first = start_at - origin + offset(row, ndim - 1, lengths, strides) + column * stride
            target = _words(dense)
            for i in range(n):
                store(target, i, first + i * stride)
            dense += 8 * n
            count -= n
            row += 1
            column = 0

    return count_positions


def pack_kernel(itemsize: int, step: int) -> Callable[..., None]:
    """Return the source of `layout.packer`'s function for a size of element.

    Elements that are `step` bytes apart in the innermost dimension are moved by vectors.
    """
    words = 2 if itemsize == 16 else 1
    word_at = pointer_to(types.Integer.from_bitwidth(itemsize * 8 // words))
    batch, pack_batch, unpack_batch = _vector_movers(itemsize, step)

    def pack(
        dense: int, strided: int, start: int, count: int, ndim: int, lengths: int, strides: int,
        packing: int,
    ) -> None:  # fmt: skip
        inner, stride = 1, 0
        if ndim > 0:
            inner, stride = load(_words(lengths), ndim - 1), load(_words(strides), ndim - 1)
        row = start // inner
        column = start - row * inner
        total, first_dense = count, dense
        if packing and ndim == 2 and load(_words(strides), 0) == 0:
            count = min(count, inner)  # a repeated row: its copies are made from the first one
        packed = count
        while count > 0:
            n = min(count, inner - column)
            run = strided + offset(row, ndim - 1, lengths, strides) + column * stride
            if stride == itemsize and n * itemsize >= _LONG_BYTES:
                target, source = (dense, run) if packing else (run, dense)
                copy_bytes(target, source, n * itemsize)
            elif packing and stride == 0:
                for w in range(words):
                    value = load(word_at(run), w)
                    for i in range(n):
                        store(word_at(dense), words * i + w, value)
            elif packing:
                done = 0
                if batch > 0 and stride == step:
                    # Bytes after the last element may belong to no array.
                    while done + batch < n:
                        pack_batch(dense + done * itemsize, run + done * stride)
                        done += batch
                for i in range(done, n):
                    for w in range(words):
                        store(word_at(dense), words * i + w, load(word_at(run + i * stride), w))
            else:
                done = 0
                if unpack_batch is not None and stride == step:
                    while done + batch < n:
                        unpack_batch(dense + done * itemsize, run + done * stride)
                        done += batch
                for i in range(done, n):
                    for w in range(words):
                        store(word_at(run + i * stride), w, load(word_at(dense), words * i + w))
            dense += n * itemsize
            count -= n
            row += 1
            column = 0
        while packed < total:
            n = min(packed, total - packed)
            copy_bytes(first_dense + packed * itemsize, first_dense, n * itemsize)
            packed += n

    return pack


# --- Elements at a fixed distance, as the fields of structured arrays are.
#
# All bytes of many elements are loaded as one vector, from which a shuffle picks the array's own.
# LLVM compiles it to permutations; it does not vectorise the equivalent loop.

_VECTOR_BYTES = 64  # of the elements that are moved at once
_I32, _I64 = ir.IntType(32), ir.IntType(64)


class _Movers(NamedTuple):
    """Intrinsics f(dense, strided) that move the next `batch` elements."""

    batch: int  # 0: there are none
    pack: Any = None
    unpack: Any = None


def _vector_movers(itemsize: int, step: int) -> _Movers:
    """Return the moves of elements of a size, `step` bytes apart (0: unknown)."""
    unit = math.gcd(step, itemsize)
    features = binding.get_host_cpu_features()
    if step == 0 or (unit < 4 and not features.get("avx512vbmi")):  # no permutations of such words
        return _Movers(0)
    batch, words, per_item = _VECTOR_BYTES // itemsize, step // unit, itemsize // unit
    word = ir.IntType(8 * unit)
    dense_type, wide_type = (ir.VectorType(word, batch * n) for n in (per_item, words))
    places = [words * i + k for i in range(batch) for k in range(per_item)]

    @instruction(types.void, types.intp, types.intp)
    def pack(_context: Any, builder: Any, dense: Any, strided: Any) -> None:
        block = builder.load(builder.inttoptr(strided, wide_type.as_pointer()), align=1)
        items = builder.shuffle_vector(block, ir.Constant(wide_type, ir.Undefined), _mask(places))
        builder.store(items, builder.inttoptr(dense, dense_type.as_pointer()), align=1)

    @instruction(types.void, types.intp, types.intp)
    def unpack(_context: Any, builder: Any, dense: Any, strided: Any) -> None:
        items = builder.load(builder.inttoptr(dense, dense_type.as_pointer()), align=1)
        sources = {place: k for k, place in enumerate(places)}
        order = _mask([sources.get(place, 0) for place in range(wide_type.count)])
        block = builder.shuffle_vector(items, ir.Constant(dense_type, ir.Undefined), order)
        target, bit = builder.inttoptr(strided, wide_type.as_pointer()), ir.IntType(1)
        is_own = ir.VectorType(bit, wide_type.count)
        kind = ir.FunctionType(ir.VoidType(), [wide_type, target.type, _I32, is_own])
        name = f"v{wide_type.count}i{8 * unit}"
        name = f"llvm.masked.store.{name}.p0{name}"
        store = cgutils.get_or_insert_function(builder.module, kind, name)
        own = ir.Constant(is_own, [place in sources for place in range(wide_type.count)])
        builder.call(store, [block, target, _I32(1), own])

    # Masked stores of wider elements are slower than a loop: memory limits it.
    return _Movers(batch, pack, unpack if itemsize < 4 and features.get("avx512bw") else None)


def _mask(indices: list[int]) -> Any:
    return ir.Constant(ir.VectorType(_I32, len(indices)), indices)
