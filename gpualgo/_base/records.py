"""Records: elements of several numbers, as structured dtypes that tell how a tuple is built.

The fields of a record are its numbers, one after another, each at a multiple of its size. A field's
name is the path to it: ("0", "1") of a pair, ("x", "y") of a namedtuple, ("0", "1.x", "1.y") of a
tuple that holds one. A file of more than 300 lines: whoever asks for one of these needs the others.
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
    """An operator returns a tuple where a number is wanted."""


class Apart(NamedTuple):
    """An argument of an operator whose numbers lie apart, each at an address of its own."""

    dtype: Dtype


Argument: TypeAlias = Dtype | Apart
"""What an operator takes: a number, a record that lies in one piece, or one that does not."""


# Of inputs that are not read but counted: an element's place, as an int64. It lies nowhere: its
# "address" is what it is, a byte from one to the next. Neighbours follow one another, or have one
# place; places that are computed with in blocks are loaded from multiples of what is loaded. The
# dtypes are 8 bytes wide, and such as no array of a caller's has.
POSITION, SHARED_POSITION, BLOCK_POSITION = map(
    np.dtype, ("M8[7919as]", "M8[7907as]", "M8[7901as]")
)
_POSITIONS = {
    POSITION: "gpualgo::Ordinal<1>",
    SHARED_POSITION: "gpualgo::Ordinal<0>",
    BLOCK_POSITION: "gpualgo::Ordinal<1, true>",
}
ORIGIN = 1 << 60
"""The address of position 0 in arrays of the host: no array lies there, and it is not 0."""
_INT64 = np.dtype(np.int64)


class Computed(NamedTuple):
    """An element that a function makes of the numbers that are read."""

    numbers: tuple[Dtype, ...]
    result: Dtype

    @property
    def itemsize(self) -> int:
        """The bytes of an element in registers."""
        return self.result.itemsize


@dataclass(frozen=True)
class Interleaved:
    """A record that lies in one piece of `size` bytes, its numbers at these offsets in it.

    To whoever reads it, it is one leaf. Its last byte belongs to a number: behind it no other is
    read.
    """

    record: Dtype
    size: int
    offsets: tuple[int, ...]

    @property
    def itemsize(self) -> int:
        """The bytes of an element in registers."""
        return self.record.itemsize

    @property
    def is_tight(self) -> bool:
        """Whether each of its bytes is one number's."""
        sizes = [leaf.itemsize for leaf in leaves(self.record)]
        end = 0
        for offset, size in sorted(zip(self.offsets, sizes, strict=True)):
            if offset != end:
                return False
            end += size
        return end == self.size


PIECE_BYTES = 64  # of a record that travels whole: what a plan's key tells of distances


def in_one_piece(
    pointers: Sequence[int], sizes: Sequence[int]
) -> tuple[tuple[int, ...], int] | None:
    """Return the offsets of numbers at these pointers in a record that ends with one, and its size.

    None: it would be too large, or less than half of it numbers.
    """
    start = min(pointers)
    offsets = tuple([pointer - start for pointer in pointers])
    size = max(offset + own for offset, own in zip(offsets, sizes, strict=True))
    return (offsets, size) if size <= min(PIECE_BYTES, 2 * sum(sizes)) else None


Source: TypeAlias = Dtype | Computed
"""What is read: numbers, records, or what is computed of several numbers."""
Element: TypeAlias = Source | Interleaved
"""The same as kernels read it."""


def record(names: Iterable[str], fields: Iterable[Dtype]) -> Dtype:
    """Return the record of numbers of these paths and dtypes."""
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
    given: Any = {"names": names, "formats": fields, "offsets": offsets, "itemsize": size}
    made: Dtype = np.dtype(given)
    return made


def is_record(dtype: Element) -> bool:
    """Return whether elements are made of numbers that lie apart."""
    return isinstance(dtype, (Computed, Interleaved)) or dtype.names is not None


def leaves(dtype: Element) -> tuple[Dtype, ...]:
    """Return the dtypes of an element's numbers, as they are read."""
    if isinstance(dtype, Computed):
        return dtype.numbers
    if isinstance(dtype, Interleaved):
        whole: Any = dtype
        return (whole,)
    return (dtype,) if dtype.names is None else tuple(dtype[name] for name in dtype.names)


def held(dtype: Element) -> Dtype:
    """Return what is held of an element that has been read."""
    if isinstance(dtype, Interleaved):
        return dtype.record
    return dtype.result if isinstance(dtype, Computed) else dtype


def is_position(dtype: Element) -> bool:
    """Return whether numbers are counted, and not read."""
    return dtype in _POSITIONS


def number_of(dtype: Dtype) -> Dtype:
    """Return what operators see of a number that is read or counted."""
    return _INT64 if dtype in _POSITIONS else dtype


def offsets(dtype: Dtype) -> tuple[int, ...]:
    """Return where an element's numbers lie."""
    if dtype.names is None:
        return (0,)
    assert dtype.fields is not None
    return tuple(dtype.fields[name][1] for name in dtype.names)


def with_leaves(dtype: Element, fields: Sequence[Dtype]) -> Any:
    """Return what holds numbers of other dtypes in the same places of a tuple."""
    if isinstance(dtype, Computed):
        return Computed(tuple(fields), dtype.result)
    assert not isinstance(dtype, Interleaved)  # which has no other numbers than it lies with
    return fields[0] if dtype.names is None else record(dtype.names, fields)


def slots(arguments: Iterable[Argument]) -> tuple[Dtype, ...]:
    """Return what lies at each of the addresses that an operator's code is given."""
    found: list[Dtype] = []
    for argument in arguments:
        found += leaves(argument.dtype) if isinstance(argument, Apart) else (argument,)
    return tuple(found)


def alignment_of(dtype: Element) -> int:
    """Return what an element's address has to be a multiple of."""
    return max(field.itemsize for field in leaves(held(dtype)))


# --- how a tuple is built of them -------------------------------------------------------------


def built(names: Sequence[str], items: Sequence[Any], make: Callable[[Any, list[Any]], Any]) -> Any:
    """Return a tuple built of its numbers' items; make(class, items) makes each of the tuples."""
    groups: dict[str, list[tuple[str, Any]]] = {}
    for name, item in zip(names, items, strict=True):
        key, _, rest = name.partition(".")
        groups.setdefault(key, []).append((rest, item))
    parts = []
    for group in groups.values():
        rests, inner = map(list, zip(*group, strict=True))
        parts.append(inner[0] if not rests[0] else built(rests, inner, make))
    return make(class_of(groups), parts)


def fields_of(cls: type, items: list[Any]) -> tuple[Any, list[Any]]:
    """Return the names of a tuple's fields, None if it has none, and its items."""
    return getattr(cls, "_fields", None), items


def class_of(keys: Iterable[str]) -> type:
    """Return tuple for numbered items, else a namedtuple class of these fields."""
    fields = tuple(keys)
    return tuple if fields[0].isdigit() else _named(fields)


@lru_cache(4096)
def _named(fields: tuple[str, ...]) -> type:
    return namedtuple("Fields", fields, rename=True)  # as `_1` in the place 1 is, and only there


def is_tuple_class(cls: Any) -> bool:
    """Return whether a class is that of a namedtuple with fields."""
    return isinstance(cls, type) and issubclass(cls, tuple) and bool(getattr(cls, "_fields", ()))


def is_made_of_fields(cls: Any) -> bool:
    """Return whether a namedtuple's class makes of its fields what every namedtuple does."""
    own = getattr(cls.__new__, "__code__", None)
    usual = _named(tuple(cls._fields)).__new__.__code__
    parts = ("co_code", "co_names", "co_varnames")
    return own is not None and all(getattr(own, p) == getattr(usual, p) for p in parts)


# --- names -------------------------------------------------------------------------------------


def label(dtype: Argument | None) -> str:
    """Return a name that dtypes alone share which are equal; of None an empty one."""
    if dtype is None:
        return ""
    if isinstance(dtype, Apart):
        return f"*{label(dtype.dtype)}"
    if dtype.names is None:
        return str(dtypes.name_of(dtype))
    return "{" + ";".join(f"{n}:{dtypes.name_of(dtype[n])}" for n in dtype.names) + "}"


def step_of(leaf: Element) -> int:
    """Return how far neighbours lie apart in an array without gaps."""
    if isinstance(leaf, Interleaved):
        return leaf.size
    if leaf in _POSITIONS:
        return 0 if leaf == SHARED_POSITION else 1
    return leaf.itemsize


def read_bytes(dtype: Element) -> tuple[int, ...]:
    """Return how far neighbours of each number lie apart in an array without gaps."""
    return tuple(map(step_of, leaves(dtype)))


def memory_leaves(dtype: Element) -> tuple[Dtype, ...]:
    """Return the dtypes of an element's numbers that are read from memory."""
    if isinstance(dtype, Interleaved):
        return leaves(dtype.record)
    return tuple(leaf for leaf in leaves(dtype) if leaf not in _POSITIONS)


def from_label(text: str) -> Dtype | None:
    """Return the dtype of a label; None if it is none."""
    if not text.startswith("{"):
        return dtypes.from_name(text) if text in dtypes.NAMES else None
    pairs = [part.split(":") for part in text[1:-1].split(";")]
    if not text.endswith("}") or any(len(p) != 2 or p[1] not in dtypes.NAMES for p in pairs):
        return None
    return record([name for name, _ in pairs], [dtypes.from_name(kind) for _, kind in pairs])


def cpp_name(dtype: Element) -> str:
    """Return the C++ spelling of an element's type."""
    if isinstance(dtype, Computed):
        return f"gpualgo::Computed<{', '.join(map(cpp_name, (dtype.result, *dtype.numbers)))}>"
    if isinstance(dtype, Interleaved):
        values = ", ".join(map(str, (dtype.size, *dtype.offsets)))
        return f"gpualgo::Interleaved<{cpp_name(dtype.record)}, {values}>"
    if dtype.names is None:
        return _POSITIONS.get(dtype) or dtypes.cpp_name(dtype)
    return f"gpualgo::Tuple<{', '.join(map(cpp_name, leaves(dtype)))}>"


def shown(dtype: Dtype) -> str:
    """Return a dtype as an operator's author knows it."""
    if dtype.names is None:
        return str(dtype)

    def text(cls: type, items: list[str]) -> str:
        if cls is tuple:
            return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        pairs = zip(cls._fields, items, strict=True)  # type: ignore[attr-defined]
        return f"({', '.join(f'{name}={item}' for name, item in pairs)})"

    return str(built(dtype.names, [str(leaf) for leaf in leaves(dtype)], text))
