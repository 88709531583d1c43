"""Records: elements with several fields, as structured dtypes whose field names encode the tuple.

A record's fields are scalars in order, each aligned to its size. A field's name is its path in the
tuple: ("0", "1") for a pair, ("x", "y") for a namedtuple, ("0", "1.x", "1.y") for a tuple whose
second item is a namedtuple.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpualgo._base import dtypes

Dtype: TypeAlias = np.dtype[Any]

MAX_FIELDS = 8


class ReturnsTuple(TypeError):
    """An operator returns a tuple instead of a number."""


class Separate(NamedTuple):
    """An operator argument whose fields are passed separately, each with its own address."""

    dtype: Dtype


Argument: TypeAlias = Dtype | Separate
"""An operator's argument: a number, a record in contiguous memory, or separate fields."""


# Marker dtypes of index inputs: element i has the int64 value i, and nothing is read from memory.
# The "address" is the value, with a stride of 1 byte (POSITION), or 0 if all elements have the same
# value (SHARED_POSITION). With BLOCK_POSITION a thread loads n indices that start at a multiple of
# n, so that random numbers share a block. The dtypes have 8 bytes; no caller's array has them.
POSITION, SHARED_POSITION, BLOCK_POSITION = map(
    np.dtype, ("M8[7919as]", "M8[7907as]", "M8[7901as]")
)
_POSITIONS = {
    POSITION: "gpualgo::Ordinal<1>",
    SHARED_POSITION: "gpualgo::Ordinal<0>",
    BLOCK_POSITION: "gpualgo::Ordinal<1, true>",
}
ORIGIN = 1 << 60
"""The "address" of position 0 for host arrays: not 0, and no array has it."""
_INT64 = np.dtype(np.int64)


class Computed(NamedTuple):
    """An element that a function computes from the scalars that are read."""

    numbers: tuple[Dtype, ...]
    result: Dtype

    @property
    def itemsize(self) -> int:
        return self.result.itemsize


@dataclass(frozen=True)
class Interleaved:
    """A record that is read as one item of `size` bytes, with its fields at these offsets.

    Its last byte belongs to a field, so that no byte past the last element is read.
    """

    record: Dtype
    size: int
    offsets: tuple[int, ...]

    @property
    def itemsize(self) -> int:
        return self.record.itemsize

    @property
    def is_tight(self) -> bool:
        """Whether the fields fill the record without gaps or overlap."""
        sizes = [leaf.itemsize for leaf in field_dtypes(self.record)]
        end = 0
        for offset, size in sorted(zip(self.offsets, sizes, strict=True)):
            if offset != end:
                return False
            end += size
        return end == self.size


PIECE_BYTES = 64  # maximum size of an interleaved record


def in_one_piece(
    pointers: Sequence[int], sizes: Sequence[int]
) -> tuple[tuple[int, ...], int] | None:
    """Return the offsets and the size of a record whose fields are at these pointers.

    None if it would be too large, or if less than half of it would be fields.
    """
    start = min(pointers)
    offsets = tuple([pointer - start for pointer in pointers])
    size = max(offset + field_size for offset, field_size in zip(offsets, sizes, strict=True))
    return (offsets, size) if size <= min(PIECE_BYTES, 2 * sum(sizes)) else None


def argument_of(element: Dtype) -> Argument:
    """Return an element, whose fields are in arrays of their own, as an operator's argument."""
    return Separate(element) if is_record(element) else element


Source: TypeAlias = Dtype | Computed
"""An input's elements: numbers, records, or values computed from several numbers."""
Element: TypeAlias = Source | Interleaved
"""An input's elements as kernels read them."""


def record(names: Iterable[str], fields: Iterable[Dtype]) -> Dtype:
    return _record(tuple(names), tuple(fields))


@lru_cache(4096)
def _record(names: tuple[str, ...], fields: tuple[Dtype, ...]) -> Dtype:
    offsets, end = [], 0
    for field in fields:
        end = -(-end // field.itemsize) * field.itemsize
        offsets.append(end)
        end += field.itemsize
    widest = max(field.itemsize for field in fields)
    size = -(-end // widest) * widest
    spec: Any = {"names": names, "formats": fields, "offsets": offsets, "itemsize": size}
    dtype: Dtype = np.dtype(spec)
    return dtype


def is_record(dtype: Element) -> bool:
    return isinstance(dtype, (Computed, Interleaved)) or dtype.names is not None


def field_dtypes(dtype: Element) -> tuple[Dtype, ...]:
    """Return the dtypes of an element's fields, as they are read."""
    if isinstance(dtype, Computed):
        return dtype.numbers
    if isinstance(dtype, Interleaved):
        whole: Any = dtype
        return (whole,)
    return (dtype,) if dtype.names is None else tuple(dtype[name] for name in dtype.names)


def register_dtype(dtype: Element) -> Dtype:
    """Return the dtype of an element in registers, after it has been read."""
    if isinstance(dtype, Interleaved):
        return dtype.record
    return dtype.result if isinstance(dtype, Computed) else dtype


def is_position(dtype: Element) -> bool:
    """Return whether elements are indices, which are not read from memory."""
    return dtype in _POSITIONS


def operand_dtype(dtype: Dtype) -> Dtype:
    return _INT64 if dtype in _POSITIONS else dtype


def offsets(dtype: Dtype) -> tuple[int, ...]:
    if dtype.names is None:
        return (0,)
    assert dtype.fields is not None
    return tuple(dtype.fields[name][1] for name in dtype.names)


def with_fields(dtype: Element, fields: Sequence[Dtype]) -> Any:
    """Return the element with the same structure and other field dtypes."""
    if isinstance(dtype, Computed):
        return Computed(tuple(fields), dtype.result)
    assert not isinstance(dtype, Interleaved)  # its offsets fit its own fields only
    return fields[0] if dtype.names is None else record(dtype.names, fields)


def slots(arguments: Iterable[Argument]) -> tuple[Dtype, ...]:
    """Return the dtype at each address that an operator's code receives."""
    fields: list[Dtype] = []
    for argument in arguments:
        fields += field_dtypes(argument.dtype) if isinstance(argument, Separate) else (argument,)
    return tuple(fields)


def alignment_of(dtype: Element) -> int:
    return max(field.itemsize for field in field_dtypes(register_dtype(dtype)))


# --- tuples of fields -------------------------------------------------------------------------


def nest_fields(
    names: Sequence[str], items: Sequence[Any], make: Callable[[Any, list[Any]], Any]
) -> Any:
    """Return the nested tuple of one item for each field; make(class, items) makes each tuple."""
    groups: dict[str, list[tuple[str, Any]]] = {}
    for name, item in zip(names, items, strict=True):
        key, _, inner_path = name.partition(".")
        groups.setdefault(key, []).append((inner_path, item))
    parts = []
    for group in groups.values():
        inner_names, inner = map(list, zip(*group, strict=True))
        parts.append(inner[0] if not inner_names[0] else nest_fields(inner_names, inner, make))
    return make(class_of(groups), parts)


def fields_of(cls: type, items: list[Any]) -> tuple[Any, list[Any]]:
    """Return a namedtuple's field names (None for a plain tuple) and the items."""
    return getattr(cls, "_fields", None), items


def class_of(keys: Iterable[str]) -> type:
    """Return tuple for numbered items, else a namedtuple class of these fields."""
    fields = tuple(keys)
    return tuple if fields[0].isdigit() else _named(fields)


@lru_cache(4096)
def _named(fields: tuple[str, ...]) -> type:
    return namedtuple("Fields", fields, rename=True)  # accepts fields that rename made, such as _1


def is_tuple_class(cls: Any) -> bool:
    return isinstance(cls, type) and issubclass(cls, tuple) and bool(getattr(cls, "_fields", ()))


def is_made_of_fields(cls: Any) -> bool:
    code = getattr(cls.__new__, "__code__", None)
    usual = _named(tuple(cls._fields)).__new__.__code__
    names = ("co_code", "co_names", "co_varnames")
    return code is not None and all(getattr(code, name) == getattr(usual, name) for name in names)


# --- names -------------------------------------------------------------------------------------


def label(dtype: Argument | None) -> str:
    """Return a text that is equal for equal dtypes only; empty for None."""
    if dtype is None:
        return ""
    if isinstance(dtype, Separate):
        return f"*{label(dtype.dtype)}"
    if dtype.names is None:
        return str(dtypes.name_of(dtype))
    return "{" + ";".join(f"{n}:{dtypes.name_of(dtype[n])}" for n in dtype.names) + "}"


def step_of(leaf: Element) -> int:
    """Return the distance in bytes of adjacent elements in a contiguous array."""
    if isinstance(leaf, Interleaved):
        return leaf.size
    if leaf in _POSITIONS:
        return 0 if leaf == SHARED_POSITION else 1
    return leaf.itemsize


def read_bytes(dtype: Element) -> tuple[int, ...]:
    """Return the distance in bytes of adjacent elements for each field, in contiguous arrays."""
    return tuple(map(step_of, field_dtypes(dtype)))


def memory_fields(dtype: Element) -> tuple[Dtype, ...]:
    if isinstance(dtype, Interleaved):
        return field_dtypes(dtype.record)
    return tuple(leaf for leaf in field_dtypes(dtype) if leaf not in _POSITIONS)


def from_label(text: str) -> Dtype | None:
    if not text.startswith("{"):
        return dtypes.from_name(text) if text in dtypes.NAMES else None
    pairs = [part.split(":") for part in text[1:-1].split(";")]
    if not text.endswith("}") or any(len(p) != 2 or p[1] not in dtypes.NAMES for p in pairs):
        return None
    return record([name for name, _ in pairs], [dtypes.from_name(kind) for _, kind in pairs])


def cpp_name(dtype: Element) -> str:
    if isinstance(dtype, Computed):
        return f"gpualgo::Computed<{', '.join(map(cpp_name, (dtype.result, *dtype.numbers)))}>"
    if isinstance(dtype, Interleaved):
        values = ", ".join(map(str, (dtype.size, *dtype.offsets)))
        return f"gpualgo::Interleaved<{cpp_name(dtype.record)}, {values}>"
    if dtype.names is None:
        return _POSITIONS.get(dtype) or dtypes.cpp_name(dtype)
    return f"gpualgo::Tuple<{', '.join(map(cpp_name, field_dtypes(dtype)))}>"


def shown(dtype: Dtype) -> str:
    """Return a dtype's text in messages: a tuple of dtypes for a record."""
    if dtype.names is None:
        return str(dtype)

    def text(cls: type, items: list[str]) -> str:
        if cls is tuple:
            return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        pairs = zip(cls._fields, items, strict=True)  # type: ignore[attr-defined]
        return f"({', '.join(f'{name}={item}' for name, item in pairs)})"

    return str(nest_fields(dtype.names, [str(leaf) for leaf in field_dtypes(dtype)], text))
