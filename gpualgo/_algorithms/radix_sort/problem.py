"""A sort with everything but the memory decided, and the checks that decide it."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from gpualgo._arrays.view import View, address_of, as_bytes_view, is_contiguous, overlap
from gpualgo._base import dtypes
from gpualgo._base.extents import dense_strides
from gpualgo._pipeline import checks

_INDEX_DTYPES = ("int64", "int32", "uint64", "uint32")


class Call:
    """A sort with everything but the memory decided: what equal calls share."""

    __slots__ = (
        "axis", "begin_bit", "descending", "dtypes", "end_bit", "index_dtype", "key_dtype",
        "plans", "result_shape", "shape", "strides", "value_dtype", "where",
    )  # fmt: skip

    def __init__(
        self, where: str, keys: View, values: View | None, descending: Any, begin_bit: Any,
        end_bit: Any, axis: Any, index_dtype: Any,
    ) -> None:  # fmt: skip
        self.where, self.shape = where, keys.shape
        self.key_dtype = _key_dtype(keys.dtype, where)
        self.descending = checks.flag(descending, "descending", where)
        self.begin_bit, self.end_bit = _bits(begin_bit, end_bit, self.key_dtype, where)
        self.axis: int | None = checks.axis_of(axis, len(keys.shape), where)  # None: flattened
        size = math.prod(keys.shape)
        self.result_shape = (size,) if self.axis is None else keys.shape
        self.value_dtype = None if values is None else values.dtype
        if values is not None and values.shape != keys.shape:
            raise ValueError(
                f"{where}: values has shape {values.shape} but keys has {keys.shape}; "
                "pass one value for each key"
            )
        extent = size if self.axis is None else keys.shape[self.axis]
        self.index_dtype = None if index_dtype is None else _index_dtype(index_dtype, extent, where)
        outputs = (self.key_dtype, self.value_dtype) if index_dtype is None else (self.index_dtype,)
        self.dtypes = tuple(dtype for dtype in outputs if dtype is not None)
        self.strides = tuple(dense_strides(self.result_shape, d.itemsize) for d in self.dtypes)
        self.plans: dict[Any, Any] = {}  # of the CUDA backend


def _key_dtype(dtype: np.dtype[Any], where: str) -> np.dtype[Any]:
    """Return the dtype of keys once it is one that has an order here."""
    if dtype.names:
        raise TypeError(
            f"{where}: keys has structured dtype {dtype}; "
            f"sort by one field: ga.argsort(keys[{dtype.names[0]!r}]) gives the order"
        )
    dtypes.check(dtype, f"{where}: keys")
    if dtype.kind == "c":
        raise TypeError(
            f"{where}: keys has dtype {dtype}; argsort the imaginary part, "
            "take the real part in that order, and sort by it stably"
        )
    return dtype


def _bits(begin: Any, end: Any, dtype: np.dtype[Any], where: str) -> tuple[int, int]:
    """Return the range of bits that decides the order."""
    width = 8 * dtype.itemsize
    numbers = []
    for name, value in (("begin_bit", begin), ("end_bit", width if end is None else end)):
        try:
            number: Any = None if isinstance(value, (bool, np.bool_)) else value
            numbers.append(operator.index(number))
        except TypeError:
            raise TypeError(f"{where}: {name} must be an int, got {value!r}") from None
    first, last = numbers
    if dtypes.kind(dtype) in "bf" and (first, last) != (0, width):
        raise TypeError(
            f"{where}: begin_bit and end_bit have no meaning for dtype {dtype}; "
            "leave them out, or sort an integer view of the keys"
        )
    if not 0 <= first < last <= width:
        raise ValueError(
            f"{where}: begin_bit={first} and end_bit={last} are no range of bits of {dtype}; "
            f"pass 0 <= begin_bit < end_bit <= {width}"
        )
    return first, last


def _index_dtype(value: Any, extent: int, where: str) -> np.dtype[Any]:
    """Return the dtype of indices once it holds every position of a row."""
    dtype = dtypes.as_dtype(value, where)
    if dtypes.name_of(dtype) not in _INDEX_DTYPES:
        raise TypeError(
            f"{where}: dtype {dtype} is no index dtype; use one of {', '.join(_INDEX_DTYPES)}"
        )
    if extent - 1 > np.iinfo(dtype).max:
        raise ValueError(
            f"{where}: index dtype too narrow: {dtype} cannot count {extent} keys; "
            "pass dtype=np.int64"
        )
    return dtype


def check_outputs(call: Call, inputs: tuple[View, ...], out: Any) -> tuple[View, ...]:
    """Return the views of out= once they fit; each may be its input, and else must lie apart."""
    where = call.where
    names = ("out",) if len(call.dtypes) == 1 else ("out[0]", "out[1]")
    given: tuple[Any, ...] = (out,)
    if len(names) == 2:
        if not isinstance(out, tuple) or len(out) != 2:
            raise TypeError(f"{where}: out must be a tuple of two arrays, for keys and values")
        given = out
    targets = tuple(
        checks.output(array, inputs[0], call.result_shape, dtype, where, name, as_bytes_view)
        for array, dtype, name in zip(given, call.dtypes, names, strict=True)
    )
    for i, target in enumerate(targets):
        for j, source in enumerate(inputs):
            in_place = i == j and call.index_dtype is None and _is_same(target, source)
            if not in_place and overlap(target, source):
                way = "" if call.index_dtype else ", or to sort in place the input itself"
                raise ValueError(
                    f"{where}: {names[i]} overlaps {'values' if j else 'keys'}; "
                    f"pass a separate array{way}"
                )
    if len(targets) == 2 and overlap(*targets):
        raise ValueError(f"{where}: out[0] and out[1] share memory; pass two separate arrays")
    return targets


def _is_same(out: View, x: View) -> bool:
    """Return whether each element of out lies where that of x does."""
    if address_of(out) != address_of(x) or out.dtype != x.dtype:
        return False
    if out.shape != x.shape or out.strides != x.strides:
        return is_contiguous(out) and is_contiguous(x)
    return True
