"""Numba types of elements: a record's fields in registers, and in memory with NumPy's layout."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.core.datamodel import models
from numba.extending import register_model

from gpualgo._base import records


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
    """Write an element to memory of any alignment."""
    if isinstance(ty, Record):
        context.data_model_manager[ty].store(builder, value, pointer)
    else:
        context.pack_value(builder, ty, value, pointer, 1)
