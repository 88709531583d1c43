"""Elements with one array for each of their numbers: kernels load and store them by several
pointers.

LLVM vectorises loops over contiguous numbers of one type best, so chunks of records in scratch
memory have this layout, too.
"""

from __future__ import annotations

from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gpualgo._base import records
from gpualgo._cpu.packing import Record, pointers_to, put, storage


class Leaves(NamedTuple):
    """Access to elements by index, with one contiguous array for each of their numbers."""

    number: int
    sizes: tuple[int, ...]
    pointers: Any
    """pointers(table): one pointer for each number, from a table of addresses."""
    apart: Any
    """apart(address, capacity): the same in one block of memory for `capacity` elements."""
    load: Any
    """load(pointers, index): an element."""
    store: Any
    """store(pointers, index, element)."""


@cache
def access_by_index(dtype: np.dtype[Any]) -> Leaves:
    numbers, element = records.field_dtypes(dtype), storage(dtype)
    stored, sizes = tuple(map(storage, numbers)), tuple(number.itemsize for number in numbers)
    pointers = pointers_to(stored, tuple(range(len(numbers))))
    apart = _pointers_apart(stored, field_offsets(dtype))
    return Leaves(len(numbers), sizes, pointers, apart, _loader(element), _storer(element))


class Placed(NamedTuple):
    """Access to one element of a dtype whose numbers have separate addresses."""

    words: Any
    """words(table): the addresses in a table."""
    moved: Any
    """moved(addresses, steps, n): the addresses n steps further."""
    read: Any
    """read(addresses): the element."""
    write: Any
    """write(addresses, element)."""


@cache
def access_by_address(dtype: np.dtype[Any]) -> Placed:
    addresses = types.UniTuple(types.intp, len(records.field_dtypes(dtype)))
    element = storage(dtype)
    read, write = _reader(addresses, element), _writer(addresses, element)
    return Placed(_addresses_in_table(addresses), _address_mover(addresses), read, write)


def field_offsets(dtype: np.dtype[Any]) -> tuple[int, ...]:
    """Return the total size of the numbers before each of an element's numbers."""
    sizes = (number.itemsize for number in records.field_dtypes(dtype))
    return tuple(accumulate(sizes, initial=0))[:-1]


def _pointers_apart(numbers: tuple[Any, ...], offsets: tuple[int, ...]) -> Any:
    pointers = types.Tuple([types.CPointer(number) for number in numbers])

    def as_pointers(_typing: Any, address: Any, capacity: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            # All pointers share one base, so LLVM sees that they do not overlap.
            base = builder.inttoptr(args[0], ir.IntType(8).as_pointer())
            values = []
            for pointer, size in zip(pointers, offsets, strict=True):
                distance = builder.mul(args[1], ir.Constant(ir.IntType(64), size))
                pointer_value = builder.gep(base, [distance], inbounds=True)
                values.append(builder.bitcast(pointer_value, context.get_value_type(pointer)))
            return context.make_tuple(builder, pointers, values)

        return pointers(types.intp, types.intp), generate

    return intrinsic(as_pointers)


def _loader(element: Any) -> Any:
    def load(_typing: Any, pointers: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            values = []
            for i, pointer in enumerate(signature.args[0]):
                address = builder.gep(builder.extract_value(args[0], i), [args[1]], inbounds=True)
                model = context.data_model_manager[pointer.dtype]
                values.append(model.load_from_data_pointer(builder, address, 1))
            return _build_element(context, builder, element, values)

        return element(pointers, types.intp), generate

    return intrinsic(load)


def _storer(element: Any) -> Any:
    def store(_typing: Any, pointers: Any, index: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            numbers = _numbers(builder, element, args[2])
            for i, (pointer, number) in enumerate(zip(signature.args[0], numbers, strict=True)):
                address = builder.gep(builder.extract_value(args[0], i), [args[1]], inbounds=True)
                put(context, builder, pointer.dtype, number, address)
            return context.get_dummy_value()

        return types.void(pointers, types.intp, element), generate

    return intrinsic(store)


def _addresses_in_table(addresses: Any) -> Any:
    def words(_typing: Any, table: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            first = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
            indices = (ir.Constant(ir.IntType(64), i) for i in range(addresses.count))
            values = [builder.load(builder.gep(first, [index])) for index in indices]
            return context.make_tuple(builder, addresses, values)

        return addresses(types.intp), generate

    return intrinsic(words)


def _address_mover(addresses: Any) -> Any:
    def moved(_typing: Any, _addresses: Any, steps: Any, n: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            values = []
            for i in range(addresses.count):
                distance = builder.mul(builder.extract_value(args[1], i), args[2])
                values.append(builder.add(builder.extract_value(args[0], i), distance))
            return context.make_tuple(builder, addresses, values)

        return addresses(addresses, addresses, types.intp), generate

    return intrinsic(moved)


def _reader(addresses: Any, element: Any) -> Any:
    def read(_typing: Any, _addresses: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            values = []
            for i, number in enumerate(_types(element)):
                pointer_type = context.get_value_type(types.CPointer(number))
                address = builder.inttoptr(builder.extract_value(args[0], i), pointer_type)
                model = context.data_model_manager[number]
                values.append(model.load_from_data_pointer(builder, address, 1))
            return _build_element(context, builder, element, values)

        return element(addresses), generate

    return intrinsic(read)


def _writer(addresses: Any, element: Any) -> Any:
    def write(_typing: Any, _addresses: Any, _value: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            numbers = _numbers(builder, element, args[1])
            for i, (ty, number) in enumerate(zip(_types(element), numbers, strict=True)):
                pointer_type = context.get_value_type(types.CPointer(ty))
                address = builder.inttoptr(builder.extract_value(args[0], i), pointer_type)
                put(context, builder, ty, number, address)
            return context.get_dummy_value()

        return types.void(addresses, element), generate

    return intrinsic(write)


def _types(element: Any) -> tuple[Any, ...]:
    return element.leaves if isinstance(element, Record) else (element,)


def _build_element(context: Any, builder: Any, element: Any, numbers: list[Any]) -> Any:
    if not isinstance(element, Record):
        return numbers[0]
    record = ir.Constant(context.get_value_type(element), ir.Undefined)
    for i, number in enumerate(numbers):
        record = builder.insert_value(record, number, i)
    return record


def _numbers(builder: Any, element: Any, value: Any) -> list[Any]:
    if not isinstance(element, Record):
        return [value]
    return [builder.extract_value(value, i) for i in range(len(element.leaves))]
