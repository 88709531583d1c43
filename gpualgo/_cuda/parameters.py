"""What kernels take, described once: packed by name, and compared by the compiler.

A description has the fields of a C++ struct by the same names, in the same order; what follows
from that is where each lies. The leading pointers and start value are taken from each call's
addresses (see `Plan`); all other fields are fixed when a launch is made. Values of structs are
mappings, those of arrays sequences:

    COPY = Parameters("CopyParams", input=POINTER, output=POINTER, num_words=I64, layout=layout(2))
    Launch(kernel, grid, threads, COPY.pack(num_words=n, layout=dims), device,
           takes={"input": place, "output": (place, offset)})

What is compiled asserts the size and the place of every field (`Parameters.checks`), so that a
kernel that reads others does not compile.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpualgo._operators.numbers import NUMBER_WORDS


@dataclass(frozen=True)
class Scalar:
    """A number of C++, by its code in `struct`."""

    code: str
    alignment: int = 0
    is_taken: bool = False  # from a call's addresses, if nothing before it is fixed

    @property
    def size(self) -> int:
        return struct.calcsize("<" + self.code)

    def __getitem__(self, count: int) -> Array:
        return Array(self, count)


@dataclass(frozen=True)
class Array:
    """An array of C++."""

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
    """The fixed fields of parameters, as bytes."""

    parameters: Parameters
    tail: bytes


class Parameters:
    """A struct of C++ that a kernel takes, or a part of one."""

    __slots__ = ("_leaves", "_make", "_num_taken", "_tail", "alignment", "fields", "head", "name",
                 "size")  # fmt: skip
    alignment: int
    size: int

    def __init__(
        self, name: str, make: Callable[[Any], Sequence[Any]] | None = None, /, **fields: Kind
    ) -> None:
        """`make`: returns all numbers of the struct, in order, for one value that it stands for."""
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
        self._num_taken = sum(1 for _ in takewhile(lambda leaf: leaf.is_taken, self._leaves))
        fixed = self._leaves[self._num_taken :]
        begin = fixed[0].offset if fixed else self.size
        self.head = _struct_of(self._leaves[: self._num_taken], 0, begin)
        self._tail = _struct_of(fixed, begin, self.size)

    def __getitem__(self, count: int) -> Array:
        return Array(self, count)

    def with_numbers(self) -> Parameters:
        """Return a description that begins with an operator's numbers (parts/operator.cuh)."""
        fields = {name: kind for name, (_, kind) in self.fields.items()}
        return Parameters(self.name, self._make, **{NUMBERS: _WORDS}, **fields)

    def pack(self, **fixed: Any) -> Packed:
        """Return the fields that do not change from call to call."""
        leaves = self._leaves[self._num_taken :]
        values = self._values(leaves, fixed, "values")
        numbers: list[Any] = []
        for leaf, value in zip(leaves, values, strict=True):
            made = (value,) if leaf.make is None else leaf.make(value)
            if len(made) != leaf.numbers:
                raise TypeError(
                    f"{self.name}: {leaf.path} got {len(made)} numbers; give {leaf.numbers}"
                )
            numbers += made
        return Packed(self, self._tail.pack(*numbers))

    def taken(self, takes: Mapping[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the places that the head takes, and what is added to the address at each.

        `takes` gives each field of the head a place, or (place, offset).
        """
        given = self._values(self._leaves[: self._num_taken], takes, "places")
        pairs = [(place, 0) if isinstance(place, int) else place for place in given]
        places, offsets = zip(*pairs, strict=True)
        return places, offsets

    def checks(self, kernel: str) -> str:
        """Return C++ that does not compile unless a kernel takes what is described here.

        NVRTC 13.0 and older know no offset in constant expressions: sizes alone are compared there.
        """
        sizes = [
            '#include "parts/parameters.cuh"',
            f"using Parameters = gpualgo::ParametersOf<decltype(&{kernel})>::type;",
            f'static_assert(sizeof(Parameters) == {self.size}, "size of {self.name}");',
        ]
        places = ["#ifdef __has_builtin", "#if __has_builtin(__builtin_offsetof)"]
        for path, offset, size in self.places():
            sizes.append(
                f'static_assert(sizeof(Parameters::{path}) == {size}, "size of '
                f'{self.name}.{path}");'
            )
            places.append(
                f"static_assert(__builtin_offsetof(Parameters, {path}) == {offset}, "
                f'"place of {self.name}.{path}");'
            )
        return "\n".join([*sizes, *places, "#endif", "#endif"]) + "\n"

    def places(self, path: str = "", offset: int = 0) -> Iterator[tuple[str, int, int]]:
        """Return path, offset and size of every field, and of those within structs."""
        for field, (begin, kind) in self.fields.items():
            name = path + field
            yield name, offset + begin, kind.size
            if isinstance(kind, Array):
                name, kind = f"{name}[0]", kind.item
            if isinstance(kind, Parameters):
                yield from kind.places(f"{name}.", offset + begin)

    def _values(self, leaves: list[_Leaf], given: Mapping[str, Any], what: str) -> list[Any]:
        found = dict(self._spread(self, given, ""))
        missing = [leaf.path for leaf in leaves if leaf.path not in found]
        if missing:
            raise TypeError(f"{self.name}: {what} are missing; give {', '.join(missing)}")
        unknown = found.keys() - {leaf.path for leaf in leaves}
        if unknown:
            raise TypeError(f"{self.name} takes no {what} for {', '.join(sorted(unknown))}")
        return [found[leaf.path] for leaf in leaves]

    def _spread(self, kind: Kind, value: Any, path: str) -> Iterator[tuple[str, Any]]:
        """Return the paths and values of the leaves that a value of some kind holds."""
        if _is_leaf(kind):
            yield path, value
        elif isinstance(kind, Array):
            if len(value) != kind.count:
                raise TypeError(f"{self.name}: {path} got {len(value)} values; give {kind.count}")
            for i, item in enumerate(value):
                yield from self._spread(kind.item, item, f"{path}[{i}]")
        elif isinstance(kind, Parameters):
            for field, item in value.items():
                name = f"{path}.{field}" if path else field
                if field not in kind.fields:
                    fields = ", ".join(kind.fields)
                    raise TypeError(f"{self.name} has no field {name}; it has {fields}")
                yield from self._spread(kind.fields[field][1], item, name)


Kind: TypeAlias = Scalar | Array | Parameters

NUMBERS = "captured_words"
"""The field of an operator's numbers, beside a kernel's own fields: none of them has this name."""
_WORDS = Scalar(f"{8 * NUMBER_WORDS}s", 8, is_taken=True)


class _Leaf(NamedTuple):
    """What is given as one value."""

    path: str
    offset: int
    size: int
    code: str  # of all its numbers
    numbers: int
    is_taken: bool = False
    make: Callable[[Any], Sequence[Any]] | None = None  # returns them; None: the value is the one


def _up(number: int, step: int) -> int:
    return -(-number // step) * step


def _is_leaf(kind: Kind) -> bool:
    if isinstance(kind, Array):
        return isinstance(kind.item, Scalar) and not kind.item.is_taken
    return isinstance(kind, Scalar) or kind._make is not None


def _leaves_of(kind: Kind, path: str, offset: int, is_part: bool = False) -> Iterator[_Leaf]:
    """Return the leaves of a description, or (`is_part`) the one that stands for all of them."""
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
    """Return what packs leaves into the bytes [begin, end)."""
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
    """Return Init<A> (parts/fold.cuh), for an A of so many bytes."""
    value = Scalar(f"{_up(num_bytes, 16)}s", 16, is_taken=True)
    return Parameters("Init", value=value, is_given=Scalar("q", 8, is_taken=True))


_CODES = {"i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q", "f4": "f", "f8": "d"}


def scalar(dtype: np.dtype[Any], alignment: int = 0) -> Scalar:
    """Return the kind of a number of 2 to 8 bytes, at its own alignment or a wider one."""
    code = _CODES[f"{dtype.kind}{dtype.itemsize}"]
    return Scalar(code, alignment or dtype.itemsize)
