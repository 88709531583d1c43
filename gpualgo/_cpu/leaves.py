"""Elements whose numbers lie apart: kernels load and store them whole, from several pointers.

Loops over numbers of one type that follow one another are what LLVM vectorises best, so that chunks
of records lie so in scratch memory, too.
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
from gpualgo._cpu.elements import Record, put, storage
from gpualgo._cpu.pointers import pointers_to


class Leaves(NamedTuple):
    """How a kernel reaches elements of a dtype whose numbers lie apart."""

    number: int
    sizes: tuple[int, ...]
    pointers: Any
    """pointers(table): one for each number, from a table of addresses."""
    load: Any
    """load(pointers, index): an element."""
    store: Any
    """store(pointers, index, element)."""


@cache
def leaves_of(dtype: np.dtype[Any]) -> Leaves:
    """Return how a kernel reaches elements of a dtype."""
    numbers = records.leaves(dtype)
    pointers = pointers_to(tuple(map(storage, numbers)), tuple(range(len(numbers))))
    sizes = tuple(number.itemsize for number in numbers)
    element = storage(dtype)
    return Leaves(len(numbers), sizes, pointers, _loader(element), _storer(element))


def apart(dtype: np.dtype[Any], capacity: int) -> tuple[int, ...]:
    """Return where the numbers of up to `capacity` elements begin in a piece of memory."""
    sizes = (number.itemsize * capacity for number in records.leaves(dtype))
    return tuple(accumulate(sizes, initial=0))[:-1]


@cache
def pointers_apart(dtype: np.dtype[Any], capacity: int) -> Any:
    """Return an intrinsic: the pointers to elements in a piece of memory of so many."""
    numbers, places = tuple(map(storage, records.leaves(dtype))), apart(dtype, capacity)
    pointers = types.Tuple([types.CPointer(number) for number in numbers])

    def as_pointers(_typing: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            # Of one base, from which LLVM sees that they stay apart.
            base = builder.inttoptr(args[0], ir.IntType(8).as_pointer())
            values = []
            for pointer, place in zip(pointers, places, strict=True):
                at = builder.gep(base, [ir.Constant(ir.IntType(64), place)], inbounds=True)
                values.append(builder.bitcast(at, context.get_value_type(pointer)))
            return context.make_tuple(builder, pointers, values)

        return pointers(types.intp), generate

    return intrinsic(as_pointers)


def _loader(element: Any) -> Any:
    def load(_typing: Any, pointers: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            values = []
            for i, pointer in enumerate(signature.args[0]):
                place = builder.gep(builder.extract_value(args[0], i), [args[1]], inbounds=True)
                model = context.data_model_manager[pointer.dtype]
                values.append(model.load_from_data_pointer(builder, place, 1))
            return _whole(context, builder, element, values)

        return element(pointers, types.intp), generate

    return intrinsic(load)


def _storer(element: Any) -> Any:
    def store(_typing: Any, pointers: Any, index: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            numbers = _numbers(builder, element, args[2])
            for i, (pointer, number) in enumerate(zip(signature.args[0], numbers, strict=True)):
                place = builder.gep(builder.extract_value(args[0], i), [args[1]], inbounds=True)
                put(context, builder, pointer.dtype, number, place)
            return context.get_dummy_value()

        return types.void(pointers, types.intp, element), generate

    return intrinsic(store)


def _whole(context: Any, builder: Any, element: Any, numbers: list[Any]) -> Any:
    """Return an element of its numbers."""
    if not isinstance(element, Record):
        return numbers[0]
    made = ir.Constant(context.get_value_type(element), ir.Undefined)
    for i, number in enumerate(numbers):
        made = builder.insert_value(made, number, i)
    return made


def _numbers(builder: Any, element: Any, value: Any) -> list[Any]:
    """Return an element's numbers."""
    if not isinstance(element, Record):
        return [value]
    return [builder.extract_value(value, i) for i in range(len(element.leaves))]
