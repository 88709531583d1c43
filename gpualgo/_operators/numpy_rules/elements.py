"""Elements as numba types: numbers and nested tuples, with their layouts in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from llvmlite import ir as llvm
from numba import types

from gpualgo._base import dtypes, records
from gpualgo._base.records import Apart, Argument
from gpualgo._operators.numpy_rules.types import scalar_type


def element_type(dtype: np.dtype[Any]) -> types.Type:
    if dtype.names is None:
        return scalar_type(str(dtypes.name_of(dtype)))
    items = [element_type(leaf) for leaf in records.leaves(dtype)]
    return records.built(dtype.names, items, _tuple_type)


def argument_type(argument: Argument) -> types.Type:
    return element_type(argument.dtype if isinstance(argument, Apart) else argument)


def _tuple_type(cls: type, items: Sequence[Any]) -> types.Type:
    return types.BaseTuple.from_types(tuple(items), None if cls is tuple else cls)


def flat(ty: types.Type) -> tuple[types.Type, ...]:
    """Return the types of all numbers in a nested tuple, or of a number itself."""
    if not isinstance(ty, types.BaseTuple):
        return (ty,)
    return tuple(leaf for item in ty for leaf in flat(item))


def taken_apart(builder: Any, ty: types.Type, value: Any) -> Iterator[Any]:
    """Yield the numbers of a value in order."""
    if not isinstance(ty, types.BaseTuple):
        yield value
        return
    for i, item in enumerate(ty):
        yield from taken_apart(builder, item, builder.extract_value(value, i))


def put_together(context: Any, builder: Any, ty: types.Type, values: Iterator[Any]) -> Any:
    """Return a value of a type, composed of its numbers."""
    if not isinstance(ty, types.BaseTuple):
        return next(values)
    items = [put_together(context, builder, item, values) for item in ty]
    return context.make_tuple(builder, ty, items)


def cast(context: Any, builder: Any, value: Any, source: types.Type, target: types.Type) -> Any:
    numbers = (
        context.cast(builder, number, from_type, to_type)
        for number, from_type, to_type in zip(
            taken_apart(builder, source, value), flat(source), flat(target), strict=True
        )
    )
    return put_together(context, builder, target, numbers)


def unpacked(context: Any, builder: Any, dtype: np.dtype[Any], pointer: Any) -> Any:
    """Load an element from a pointer."""
    ty = element_type(dtype)
    numbers = (
        context.unpack_value(builder, leaf, _at(context, builder, pointer, offset, leaf))
        for leaf, offset in zip(flat(ty), records.offsets(dtype), strict=True)
    )
    return put_together(context, builder, ty, numbers)


def pack(context: Any, builder: Any, dtype: np.dtype[Any], value: Any, pointer: Any) -> None:
    """Store an element at a pointer."""
    ty = element_type(dtype)
    numbers = taken_apart(builder, ty, value)
    for number, leaf, offset in zip(numbers, flat(ty), records.offsets(dtype), strict=True):
        context.pack_value(builder, leaf, number, _at(context, builder, pointer, offset, leaf))


def _at(context: Any, builder: Any, pointer: Any, offset: int, ty: types.Type) -> Any:
    byte = builder.bitcast(pointer, llvm.IntType(8).as_pointer())
    address = builder.gep(byte, [llvm.IntType(64)(offset)])
    return builder.bitcast(address, context.get_data_type(ty).as_pointer())
