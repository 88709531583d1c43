"""Descriptions of kernel parameter structs: packed by field name and checked by the compiler.

A description has the fields of a C++ struct, with the same names in the same order; offsets follow
from that. The leading pointers and the initial value (the head) are filled from each call's
addresses (see `Plan`); all other fields are fixed when a launch is created. Values of structs are
mappings, those of arrays are sequences:

    COPY = Parameters("CopyParams", input=POINTER, output=POINTER, num_words=I64, layout=layout(2))
    Launch(kernel, grid, threads, COPY.pack(num_words=n, layout=dims), device,
           takes={"input": index, "output": (index, offset)})

The compiled source asserts size and offset of every field (`Parameters.checks`), so a kernel with a
different struct does not compile.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpualgo._operators.captured import NUMBER_WORDS


@dataclass(frozen=True)
class Scalar:
    """A C++ number, given by its `struct` code."""

    code: str
    alignment: int = 0
    is_taken: bool = False  # filled from a call's addresses, if all fields before it are

    @property
    def size(self) -> int:
        return struct.calcsize("<" + self.code)

    def __getitem__(self, count: int) -> Array:
        return Array(self, count)


@dataclass(frozen=True)
class Array:
    item: Kind
    count: int

    @property
    def size(self) -> int:
        return self.count * self.item.size

    @property
    def alignment(self) -> int:
        return self.item.alignment

    def __getitem__(self, count: int) -> Array:
        return Array(self, count)


class Packed(NamedTuple):
    """The fixed fields of a parameter struct, as bytes."""

    parameters: Parameters
    tail: bytes


class Parameters:
    """A C++ struct that a kernel takes as its parameter, or a struct within one."""

    __slots__ = ("_fixed", "_leaves", "_make", "_tail", "_tail_leaves", "_taken", "alignment",
                 "fields", "head", "name", "size")  # fmt: skip
    alignment: int
    size: int

    def __init__(
        self, name: str, make: Callable[[Any], Sequence[Any]] | None = None, /, **fields: Kind
    ) -> None:
        """`make`: converts a value of this struct to its numbers, in order."""
        self.name, self._make = name, make
        self.alignment = max((kind.alignment for kind in fields.values()), default=1)
        self.fields: dict[str, tuple[int, Kind]] = {}
        end = 0
        for field, kind in fields.items():
            begin = _up(end, kind.alignment)
            self.fields[field] = begin, kind
            end = begin + kind.size
        self.size = _up(max(1, end), self.alignment)
        self._leaves = list(_leaves_of(self, "", 0))
        num_leaves = len(self._leaves)
        num_taken = sum(1 for _ in takewhile(lambda leaf: leaf.is_taken, self._leaves))
        self._taken = _part_of(self, itertools.count(), range(num_taken))
        self._fixed = _part_of(self, itertools.count(), range(num_taken, num_leaves))
        self._tail_leaves = self._leaves[num_taken:]
        begin = self._tail_leaves[0].offset if self._tail_leaves else self.size
        self.head = _struct_of(self._leaves[:num_taken], 0, begin)
        self._tail = _struct_of(self._tail_leaves, begin, self.size)

    def __getitem__(self, count: int) -> Array:
        return Array(self, count)

    def with_numbers(self) -> Parameters:
        """Return a description that starts with captured numbers (parts/operator.cuh)."""
        fields = {name: kind for name, (_, kind) in self.fields.items()}
        return Parameters(self.name, self._make, **{NUMBERS: _WORDS}, **fields)

    def pack(self, **fixed: Any) -> Packed:
        """Return the packed fields that do not change from call to call."""
        values: list[Any] = []
        self._gather(self._fixed, fixed, "", "values", values)
        numbers: list[Any] = []
        for leaf, value in zip(self._tail_leaves, values, strict=True):
            if leaf.make is None:
                numbers.append(value)
                continue
            items = leaf.make(value)
            if len(items) != leaf.numbers:
                raise TypeError(
                    f"{self.name}: {leaf.path} got {len(items)} numbers; give {leaf.numbers}"
                )
            numbers += items
        return Packed(self, self._tail.pack(*numbers))

    def address_indices(self, takes: Mapping[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the address indices of the head's fields, and the bytes added to each address.

        `takes` maps each field of the head to an index, or to (index, offset).
        """
        entries: list[Any] = []
        self._gather(self._taken, takes, "", "places", entries)
        pairs = [(index, 0) if isinstance(index, int) else index for index in entries]
        indices, offsets = zip(*pairs, strict=True)
        return indices, offsets

    def checks(self, kernel: str) -> str:
        """Return C++ assertions that the kernel's parameter struct matches this description.

        NVRTC up to 13.0 has no offsetof in constant expressions: there only sizes are compared.
        """
        size_checks = [
            '#include "parts/parameters.cuh"',
            f"using Parameters = gpualgo::ParametersOf<decltype(&{kernel})>::type;",
            f'static_assert(sizeof(Parameters) == {self.size}, "size of {self.name}");',
        ]
        offset_checks = ["#ifdef __has_builtin", "#if __has_builtin(__builtin_offsetof)"]
        for path, offset, size in self.offsets():
            size_checks.append(
                f'static_assert(sizeof(Parameters::{path}) == {size}, "size of '
                f'{self.name}.{path}");'
            )
            offset_checks.append(
                f"static_assert(__builtin_offsetof(Parameters, {path}) == {offset}, "
                f'"place of {self.name}.{path}");'
            )
        return "\n".join([*size_checks, *offset_checks, "#endif", "#endif"]) + "\n"

    def offsets(self, path: str = "", offset: int = 0) -> Iterator[tuple[str, int, int]]:
        """Yield path, offset and size of every field, including fields of nested structs."""
        for field, (begin, kind) in self.fields.items():
            name = path + field
            yield name, offset + begin, kind.size
            if isinstance(kind, Array):
                name, kind = f"{name}[0]", kind.item
            if isinstance(kind, Parameters):
                yield from kind.offsets(f"{name}.", offset + begin)

    def _gather(self, part: _Part, value: Any, path: str, what: str, into: list[Any]) -> None:
        """Append the value of each leaf of a part, in order."""
        kind, parts = part
        if isinstance(kind, Array):
            if len(value) != kind.count:
                raise TypeError(f"{self.name}: {path} got {len(value)} values; give {kind.count}")
            for i, inner in parts.items():
                if inner is None:
                    into.append(value[i])
                else:
                    self._gather(inner, value[i], f"{path}[{i}]", what, into)
            return
        if value.keys() != parts.keys():
            self._check_names(part, value, path, what)
        for field, inner in parts.items():
            if inner is None:
                into.append(value[field])
            else:
                self._gather(inner, value[field], f"{path}.{field}" if path else field, what, into)

    def _check_names(self, part: _Part, value: Mapping[str, Any], path: str, what: str) -> None:
        fields = part.kind.fields if isinstance(part.kind, Parameters) else {}
        path = f"{path}." if path else ""
        for field in value:
            if field not in fields:
                given = ", ".join(fields)
                raise TypeError(f"{self.name} has no field {path}{field}; it has {given}")
        missing = [path + field for field in part.parts if field not in value]
        if missing:
            raise TypeError(f"{self.name}: {what} are missing; give {', '.join(missing)}")
        unknown = [
            path + field for field in value if field not in part.parts and value[field] != {}
        ]
        if unknown:
            raise TypeError(f"{self.name} takes no {what} for {', '.join(sorted(unknown))}")


class _Part(NamedTuple):
    """A struct or an array, and those of its parts that are given together; a leaf is None."""

    kind: Kind
    parts: dict[Any, _Part | None]


Kind: TypeAlias = Scalar | Array | Parameters

NUMBERS = "captured_words"
"""The field of an operator's captured numbers; no kernel has a field of this name."""
_WORDS = Scalar(f"{8 * NUMBER_WORDS}s", 8, is_taken=True)


class _Leaf(NamedTuple):
    """A field, or part of one, that is given as one value."""

    path: str
    offset: int
    size: int
    code: str  # struct code of all its numbers
    numbers: int
    is_taken: bool = False
    # Converts the value to numbers; None: it is the number
    make: Callable[[Any], Sequence[Any]] | None = None


def _up(number: int, step: int) -> int:
    return -(-number // step) * step


def _is_leaf(kind: Kind) -> bool:
    if isinstance(kind, Array):
        return isinstance(kind.item, Scalar) and not kind.item.is_taken
    return isinstance(kind, Scalar) or kind._make is not None


def _part_of(kind: Any, numbers: Iterator[int], chosen: range) -> _Part:
    """Return the parts of a kind whose leaves are chosen by their `numbers`."""
    is_array = isinstance(kind, Array)
    places = enumerate([kind.item] * kind.count) if is_array else kind.fields.items()
    parts: dict[Any, _Part | None] = {}
    for place, inner in places:
        inner = inner if is_array else inner[1]
        if _is_leaf(inner):
            if next(numbers) in chosen:
                parts[place] = None
        elif (part := _part_of(inner, numbers, chosen)).parts:
            parts[place] = part
    return _Part(kind, parts)


def _leaves_of(kind: Kind, path: str, offset: int, is_part: bool = False) -> Iterator[_Leaf]:
    """Yield the leaves of a description; a nested struct with `make` is one leaf (`is_part`)."""
    if isinstance(kind, Scalar):
        yield _Leaf(path, offset, kind.size, kind.code, 1, kind.is_taken)
    elif isinstance(kind, Array):
        if _is_leaf(kind):
            assert isinstance(kind.item, Scalar)
            code = f"{kind.count}{kind.item.code}"
            yield _Leaf(path, offset, kind.size, code, kind.count, make=tuple)
            return
        for i in range(kind.count):
            yield from _leaves_of(kind.item, f"{path}[{i}]", offset + i * kind.item.size, True)
    elif is_part and kind._make is not None:
        code = kind._tail.format[1:]
        count = sum(leaf.numbers for leaf in kind._leaves)
        yield _Leaf(path, offset, kind.size, code, count, make=kind._make)
    else:
        for field, (begin, inner) in kind.fields.items():
            name = f"{path}.{field}" if path else field
            yield from _leaves_of(inner, name, offset + begin, True)


def _struct_of(leaves: list[_Leaf], begin: int, end: int) -> struct.Struct:
    code = "<"
    for leaf in leaves:
        code += _gap(leaf.offset - begin) + leaf.code
        begin = leaf.offset + leaf.size
    return struct.Struct(code + _gap(end - begin))


def _gap(size: int) -> str:
    return f"{size}x" if size else ""


I32, U32, F32 = Scalar("i", 4), Scalar("I", 4), Scalar("f", 4)
I64, U64, F64 = Scalar("q", 8), Scalar("Q", 8), Scalar("d", 8)
POINTER = Scalar("Q", 8, is_taken=True)


@cache
def init(num_bytes: int) -> Parameters:
    """Return Init<A> (parts/fold.cuh) for a type A of so many bytes."""
    value = Scalar(f"{_up(num_bytes, 16)}s", 16, is_taken=True)
    return Parameters("Init", value=value, is_given=Scalar("q", 8, is_taken=True))


_CODES = {"i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q", "f4": "f", "f8": "d"}


def scalar(dtype: np.dtype[Any], alignment: int = 0) -> Scalar:
    """Return the Scalar of a number of 2 to 8 bytes, at its own or a wider alignment."""
    code = _CODES[f"{dtype.kind}{dtype.itemsize}"]
    return Scalar(code, alignment or dtype.itemsize)
