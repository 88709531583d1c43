"""Parameter structs of kernels, as the headers in cuda_src declare them.

`parameters_of` reads the type of a kernel's parameter from its declaration, and the fields of that
struct from the header that defines it, with the kernel's template arguments. The compiler compares
the result with its own layout (`Parameters.checks`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpualgo._base import records
from gpualgo._base.strides import MAX_DIMS, Dims
from gpualgo._cuda.build import source_folder
from gpualgo._cuda.parameters import (
    F32,
    F64,
    I32,
    I64,
    POINTER,
    U32,
    U64,
    Kind,
    Parameters,
    Scalar,
    init,
    scalar,
)


class Cpp(NamedTuple):
    """A class of the kernels, or an instance of a class template."""

    name: str
    args: tuple[Any, ...] = ()
    names: tuple[tuple[str, Any], ...] = ()  # types that the class itself derives from `args`

    @property
    def text(self) -> str:
        return f"gpualgo::{self.name}" + (f"<{text_of(self.args)}>" if self.args else "")


def cpp(name: str, *args: Any) -> Cpp:
    """Return a class of namespace gpualgo with these template arguments (see `text_of`)."""
    return Cpp(name, args)


def text_of(args: Sequence[Any]) -> str:
    """Return template arguments in C++: flags, numbers, texts, classes and elements."""
    return ", ".join([
        arg if isinstance(arg, str)
        else ("true" if arg else "false") if isinstance(arg, bool)
        else str(arg) if isinstance(arg, int)
        else _name_of(arg) if isinstance(arg, np.dtype)
        else getattr(arg, "text", None) or records.cpp_name(arg)
        for arg in args
    ])  # fmt: skip


_name_of = lru_cache(4096)(records.cpp_name)


# --- Shapes and strides in the form that kernels read (parts/layout.cuh).


def divisor(value: int) -> tuple[int, int, int]:
    """Return (value, magic, shift) of layout.cuh's Divisor, exact for dividends below 2^63."""
    if value == 1:
        return 1, 0, 0
    bits = (value - 1).bit_length()
    return value, (1 << (63 + bits)) // value + 1, bits - 1


def layout_type(is_even: bool) -> str:
    return f"gpualgo::{'EvenLayout' if is_even else 'Layout'}"


def _layout(operands: int, dims: Dims) -> list[int]:
    if len(dims) > MAX_DIMS:
        raise ValueError(
            f"an array has {len(dims)} separate dimensions after adjacent ones are merged, "
            f"kernels support at most {MAX_DIMS}; make it contiguous first"
        )
    padded = [*dims, *([(1, (0,) * operands)] * (MAX_DIMS - len(dims)))]
    values = [len(dims)]
    for extent, _ in padded:
        values += divisor(extent)
    for operand in range(operands):
        values += [strides[operand] for _, strides in padded]
    return values


def _even_layout(operands: int, dims: Dims) -> tuple[int, ...]:
    return dims[0][1] if dims else (0,) * operands


MAX_NESTED = (1 << 31) - 1  # greatest extent of the inner dimension


def is_nested(dims: Dims) -> bool:
    """Return whether a NestedLayout can hold these dimensions."""
    return len(dims) == 2 and dims[1][0] <= MAX_NESTED


def _nested_layout(operands: int, dims: Dims) -> list[int]:
    (_, outer), (extent, strides) = dims
    to_first = [step - (extent - 1) * s for step, s in zip(outer, strides, strict=True)]
    return [*divisor(extent), *outer, *strides, *to_first]


# What is packed as one value: lists of dimensions with a stride per operand, and divisors.
_NUMBERS: dict[str, Callable[..., Sequence[int]]] = {
    "Divisor": divisor, "SmallDivisor": lambda value: (value, -(-(1 << 31) // value)),
    "Layout": _layout, "EvenLayout": _even_layout, "NestedLayout": _nested_layout,
}  # fmt: skip


# --- Structs in the headers.

_SCALARS = {
    "int": I32, "int32": I32, "int64": I64, "uint32": U32, "uint64": U64, "float": F32,
    "double": F64,
}  # fmt: skip
_Template: TypeAlias = list[tuple[str, str]]  # names of parameters and their defaults


def num_leaves(element: Any) -> int:
    """Return num_leaves<element> of parts/element.cuh."""
    if isinstance(element, Cpp):
        return len(element.args) if element.name == "Tuple" else 1
    return 1 if isinstance(element, str) else len(records.field_dtypes(element))


def parameters_of(header: str, kernel: str, args: Sequence[Any]) -> Parameters:
    """Return what a kernel with these template arguments takes, without captured numbers."""
    names, struct, places = _kernel(header, kernel)
    values = [
        args[place] if isinstance(place, int) else _Scope.of(header, names, args).value(place)
        for place in places
    ]
    return struct_of(header, Cpp(struct, tuple(values)))


def struct_of(header: str, cls: Cpp) -> Parameters:
    """Return the fields of a class that a header, or one that it includes, defines."""
    found: Parameters = _struct(header, *cls)
    return found


@cache
def _kernel(header: str, kernel: str) -> tuple[_Template, str, list[str | int]]:
    """Return a kernel's template parameters, and the struct that it takes.

    The struct's template arguments are expressions, or indices of the kernel's own.
    """
    text, _ = _read(header)
    start = text.index(f" {kernel}(")
    _, _, taken = text[start:].partition(") {")[0].partition("__grid_constant__")
    name, types = _split(" ".join(taken.split()).rpartition(" ")[0])
    if name == "ParamsFor":
        name, types = _split(types[1])
    names = _template(text, start)
    indices = {parameter: i for i, (parameter, _) in enumerate(names)}
    return names, name, [indices.get(argument, argument) for argument in types]


@lru_cache(4096)  # users' records are among the arguments
def _struct(header: str, name: str, args: tuple[Any, ...], more: tuple[Any, ...] = ()) -> Any:
    if name in _SCALARS:
        return _SCALARS[name]
    if name == "Init":
        return init(args[0].itemsize)
    if name in ("Sources", "Targets"):
        return POINTER[num_leaves(args[0])]
    if name == "Tuple":
        return Parameters(name, **{f"v{i}": struct_of(header, x) for i, x in enumerate(args)})
    names, lines = _body(header, name)
    scope = _Scope.of(header, names, args, "\n".join(lines))
    scope.names.update(more)
    fields: dict[str, Kind] = {}
    for line in lines:
        for field, kind in scope.fields(line):
            fields[field] = kind
    numbers = _NUMBERS.get(name)
    return Parameters(name, numbers and partial(numbers, *args), **fields)


@cache
def _body(header: str, name: str) -> tuple[_Template, list[str]]:
    """Return the template parameters of a struct, and what is declared in it itself."""
    for text in _texts(header):
        start = text.find(f"\nstruct {name} {{\n")
        if start < 0:
            continue
        lines: list[str] = []
        for line in text[start : text.index("\n};", start)].splitlines()[2:]:
            code = line.partition("//")[0].strip()
            if code.startswith(("__device__", "template ", "struct ")):
                break  # fields come first
            if code and line.startswith("      "):  # the line before goes on
                lines[-1] += " " + code
            elif code:
                lines.append(code)
        return _template(text, start + 1), lines
    raise LookupError(f"{header} and what it includes define no struct {name}")


class _Scope(NamedTuple):
    """Where a declaration stands: its header, template arguments and constants of its struct."""

    header: str
    names: dict[str, Any]
    body: str

    @classmethod
    def of(cls, header: str, names: _Template, args: Sequence[Any], body: str = "") -> _Scope:
        """Return the scope in which template parameters have these arguments, or their defaults."""
        scope = cls(header, {}, body)
        for i, (name, default) in enumerate(names):
            if default == "...":
                scope.names[name] = tuple(args[i:])
            else:
                scope.names[name] = args[i] if i < len(args) else scope.value(default)
        return scope

    def fields(self, line: str) -> Iterator[tuple[str, Kind]]:
        """Yield the fields that a line of a struct declares."""
        alignment = 0
        if line.startswith("alignas("):
            number, _, line = line[8:].partition(") ")
            alignment = int(number)
        if line.startswith(("static", "using")):
            return
        pointed, star, declared = line[:-1].partition("* ")
        is_pointer = bool(star) and not pointed.endswith(" ")  # else a product
        if not is_pointer:
            line = line[:-1].removeprefix("const ")
            end = line.rfind("> ") + 1 or line.index(" ")
            pointed, declared = line[:end], line[end + 1 :]
        for declarator in declared.split(", "):
            field, _, extents = declarator.partition("[")
            kind = POINTER if is_pointer else self.kind(pointed, alignment)
            for extent in reversed(extents[:-1].split("][") if extents else ()):
                kind = kind[self.value(extent)]
            yield field, kind

    def kind(self, text: str, alignment: int) -> Kind:
        """Return a field's type."""
        name, types = _split(text)
        given = self.names.get(name, name)
        if isinstance(given, Cpp):
            return struct_of(self.header, given)
        if not isinstance(given, str):
            return scalar(given, alignment)
        args = tuple(map(self.value, types))
        kind: Kind = _struct(self.header, given.removeprefix("gpualgo::"), args)
        if isinstance(kind, Scalar) and alignment:
            return replace(kind, alignment=alignment)
        return kind

    def value(self, text: str) -> Any:
        """Return a template argument, or the value of a constant expression."""
        if text in self.names:
            return self.names[text]
        for sign, function in ((" + ", sum), (" * ", math.prod)):
            if sign in text:
                return function(map(self.value, text.split(sign)))
        if text.isdigit():
            return int(text)
        for start, call in (("num_leaves<", num_leaves), ("sizeof...(", len), ("int(", int)):
            if text.startswith(start):
                return call(self.value(text[len(start) : -1]))
        for place in (self.body, *_texts(self.header)) if text.islower() else ():
            _, found, rest = place.partition(f" {text} = ")
            if found:
                return self.value(rest.partition(";")[0].partition(",")[0])
        return text


def _split(text: str) -> tuple[str, list[str]]:
    """Return the name of an instance of a template, and its arguments."""
    name, _, inner = text.partition("<")
    args, depth = [""], 0
    for char in inner[:-1]:
        depth += (char in "<(") - (char in ">)")
        if char == "," and not depth:
            args.append("")
        else:
            args[-1] += char
    return name, [arg.strip() for arg in args] if inner else []


def _template(text: str, end: int) -> _Template:
    """Return names and defaults of the template parameters of what is declared at `end`.

    The default of a pack is "...".
    """
    before = text[max(text.rfind("\n\n", 0, end), text.rfind("\n}", 0, end)) : end]
    _, _, head = before.partition("\ntemplate ")
    _, parameters = _split(head.partition(">\n")[0] + ">")
    found = []
    for parameter in parameters:
        declared, _, default = parameter.partition(" = ")
        kind, _, name = declared.rpartition(" ")
        found.append((name, "..." if kind.endswith("...") else default))
    return found


def _texts(header: str) -> Iterator[str]:
    """Yield a header, and then all that it includes."""
    found = [header]
    for name in found:
        text, included = _read(name)
        yield text
        found += [other for other in included if other not in found]


@cache
def _read(header: str) -> tuple[str, list[str]]:
    """Return a header's text, and what it includes itself."""
    with open(os.path.join(_folder(), header), encoding="utf-8") as file:
        text = file.read()
    lines = text[: text.find("\nnamespace ")].splitlines()
    return text, [line.split('"')[1] for line in lines if line.startswith('#include "')]


@cache
def _folder() -> str:
    return str(source_folder())
