"""Elements with one array for each of their numbers: kernels load and store them by several
pointers.

LLVM vectorises loops over contiguous numbers of one type best, so chunks of records in scratch
memory have this layout, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types

from gpualgo._base import dtypes, records
from gpualgo._cpu.compiler import cast
from gpualgo._cpu.packing import (
    Record,
    inline,
    instruction,
    load_from,
    pointers_to,
    put,
    storage,
    values_in,
)


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
    each = types.Tuple([types.CPointer(number) for number in stored])
    load, store = _access(element, _at_index, each, types.intp)
    return Leaves(len(numbers), sizes, pointers, apart, load, store)


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
    read, write = _access(element, _at_addresses, addresses)
    words = values_in(addresses, range(addresses.count))
    return Placed(words, _address_mover(addresses), read, write)


def field_offsets(dtype: np.dtype[Any]) -> tuple[int, ...]:
    """Return the total size of the numbers before each of an element's numbers."""
    sizes = (number.itemsize for number in records.field_dtypes(dtype))
    return tuple(accumulate(sizes, initial=0))[:-1]


def _pointers_apart(numbers: tuple[Any, ...], offsets: tuple[int, ...]) -> Any:
    pointers = types.Tuple([types.CPointer(number) for number in numbers])

    @instruction(pointers, types.intp, types.intp)
    def as_pointers(context: Any, builder: Any, address: Any, capacity: Any) -> Any:
        # All pointers share one base, so LLVM sees that they do not overlap.
        base = builder.inttoptr(address, ir.IntType(8).as_pointer())
        values = []
        for pointer, size in zip(pointers, offsets, strict=True):
            distance = builder.mul(capacity, ir.Constant(ir.IntType(64), size))
            pointer_value = builder.gep(base, [distance], inbounds=True)
            values.append(builder.bitcast(pointer_value, context.get_value_type(pointer)))
        return context.make_tuple(builder, pointers, values)

    return as_pointers


def _at_index(_context: Any, builder: Any, pointers: Any, index: Any, numbers: Any) -> list[Any]:
    return [
        builder.gep(builder.extract_value(pointers, i), [index], inbounds=True)
        for i in range(len(numbers))
    ]


def _at_addresses(context: Any, builder: Any, addresses: Any, numbers: Any) -> list[Any]:
    return [
        builder.inttoptr(
            builder.extract_value(addresses, i), context.get_value_type(types.CPointer(number))
        )
        for i, number in enumerate(numbers)
    ]


def _access(element: Any, find: Callable[..., list[Any]], *where: Any) -> tuple[Any, Any]:
    """Return intrinsics that load and store an element.

    `find` returns the pointers to its numbers, from arguments of the types `where`.
    """
    numbers = element.leaves if isinstance(element, Record) else (element,)

    @instruction(element, *where)
    def read(context: Any, builder: Any, *args: Any) -> Any:
        pairs = zip(numbers, find(context, builder, *args, numbers), strict=True)
        values = [load_from(context, builder, *pair) for pair in pairs]
        if not isinstance(element, Record):
            return values[0]
        record = ir.Constant(context.get_value_type(element), ir.Undefined)
        for i, number in enumerate(values):
            record = builder.insert_value(record, number, i)
        return record

    @instruction(types.void, *where, element)
    def write(context: Any, builder: Any, *args: Any) -> None:
        *place, value = args
        pointers = find(context, builder, *place, numbers)
        for i, (number, pointer) in enumerate(zip(numbers, pointers, strict=True)):
            part = builder.extract_value(value, i) if isinstance(element, Record) else value
            put(context, builder, number, part, pointer)

    return read, write


def _address_mover(addresses: Any) -> Any:
    @instruction(addresses, addresses, addresses, types.intp)
    def moved(context: Any, builder: Any, start: Any, steps: Any, n: Any) -> Any:
        values = []
        for i in range(addresses.count):
            distance = builder.mul(builder.extract_value(steps, i), n)
            values.append(builder.add(builder.extract_value(start, i), distance))
        return context.make_tuple(builder, addresses, values)

    return moved


# --- Comparison by value in CPU kernels, of elements in their storage representation.


def before(element: np.dtype[Any], directions: tuple[bool, ...]) -> Any:
    """Return before(a, b): NumPy's order; zeros are equal, NaN is last in both directions."""
    if element.names is None:
        return _before_number(element, directions[0])
    compare = _never
    for i in reversed(range(len(element.names))):
        dtype = records.field_dtypes(element)[i]
        first = _before_number(dtype, directions[i])
        compare = _before_by(_field(storage(element), i), first, compare)
    return compare


def same_value(element: np.dtype[Any]) -> Any:
    """Return same(a, b): whether all numbers of two elements are equal by value; all NaN are."""
    if element.names is None:
        return _same_number(element)
    same = _always
    for i, dtype in enumerate(records.field_dtypes(element)):
        same = _same_by(_field(storage(element), i), _same_number(dtype), same)
    return same


@inline
def _always(a: Any, b: Any) -> Any:
    return True


def _same_by(get_field: Any, number: Any, others: Any) -> Any:
    return inline(lambda a, b: others(a, b) & number(get_field(a), get_field(b)))


def _same_number(dtype: np.dtype[Any]) -> Any:
    if dtypes.kind(dtype) == "f" and dtype.itemsize == 2:
        wide = cast(dtype, np.dtype(np.float32))
        return inline(lambda a, b: _same(wide(a), wide(b)))
    return _same


_same = inline(lambda a, b: (a == b) | ((a != a) & (b != b)))


@inline
def _never(a: Any, b: Any) -> Any:
    return False


def _before_by(get_field: Any, first: Any, tie_break: Any) -> Any:
    """Return a comparison by one field, then by `tie_break` if the fields are equal."""

    def compare(a: Any, b: Any) -> Any:
        x, y = get_field(a), get_field(b)
        if first(x, y):
            return True
        if first(y, x):
            return False
        return tie_break(a, b)

    return inline(compare)


def _before_number(dtype: np.dtype[Any], descending: bool) -> Any:
    if dtypes.kind(dtype) != "f":
        return _greater if descending else _smaller
    compare = _greater_float if descending else _smaller_float
    if dtype.itemsize > 2:
        return compare
    wide = cast(dtype, np.dtype(np.float32))
    return inline(lambda a, b: compare(wide(a), wide(b)))


_smaller = inline(lambda a, b: a < b)
_greater = inline(lambda a, b: a > b)
_smaller_float = inline(lambda a, b: (a < b) | ((b != b) & (a == a)))
_greater_float = inline(lambda a, b: (a > b) | ((b != b) & (a == a)))


def _field(record: Any, i: int) -> Any:
    @instruction(record.leaves[i], record)
    def extract(_context: Any, builder: Any, value: Any) -> Any:
        return builder.extract_value(value, i)

    return extract
