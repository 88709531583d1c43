"""Chunks within a task: the arrays of an element's numbers, taken apart and put together."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from gpualgo._base import records

Parts: TypeAlias = tuple[Any, ...]
"""An array for each number of an element; of one that is no tuple one alone."""
Pattern: TypeAlias = Any
"""How parts make an argument: None for one array, else the fields and the items' patterns."""
Source: TypeAlias = tuple[str, tuple[tuple[str, Any, str], ...], Pattern]
"""Of an argument: the function's name; of each array its name, dtype and library; the pattern."""


def pattern_of(form: Any) -> Pattern:
    """Return the pattern of a tuple's form."""
    return None if form is None else (form.keys, tuple(map(pattern_of, form.items)))


def pattern_of_value(value: Any) -> Pattern:
    """Return how a tuple of plain values is built."""
    if not isinstance(value, tuple):
        return None
    keys = tuple(getattr(value, "_fields", None) or map(str, range(len(value))))
    return keys, tuple(map(pattern_of_value, value))


def packed(pattern: Pattern, parts: Sequence[Any]) -> Any:
    """Return the argument that parts make: a namedtuple's fields are those of its class."""
    return parts[0] if pattern is None else _packed(pattern, iter(parts))


def _packed(pattern: Pattern, rest: Any) -> Any:
    if pattern is None:
        return next(rest)
    keys, items = pattern
    cls, made = records.class_of(keys), [_packed(item, rest) for item in items]
    return tuple(made) if cls is tuple else cls(*made)


def parts_of(x: Any) -> Parts:
    """Return the arrays of a result."""
    if not isinstance(x, tuple):
        return (x,)
    return tuple(part for item in x for part in parts_of(item))


def given(chunks: Sequence[Any], source: Source, index: tuple[int, ...] | None) -> Parts:
    """Return the chunks of an argument, which are of the kinds that the arrays tell, in C order.

    Memory order is part of how elements are grouped, and to travel may change it.
    """
    where, expected, _ = source
    which = f"{where}: a chunk" if index is None else f"{where}: chunk {index}"
    return tuple(
        _given(chunk, f"{which} of {name}", dtype, library)
        for chunk, (name, dtype, library) in zip(chunks, expected, strict=True)
    )


def _given(chunk: Any, name: str, dtype: Any, library: str) -> Any:
    if isinstance(chunk, np.generic):
        chunk = np.asarray(chunk)
    own = library_of(chunk)
    if own != library:
        raise TypeError(
            f"{name} is an array of {own}, and the dask array says {library}: where chunks are "
            "worked on is fixed when the graph is built; bring them all to one library by "
            "map_blocks"
        )
    if chunk.dtype != dtype:
        raise TypeError(
            f"{name} has dtype {chunk.dtype}, and the dask array says {dtype}; "
            f"pass x.map_blocks(lambda c: c.astype({str(dtype)!r}), dtype={str(dtype)!r})"
        )
    return plain(chunk)


def library_of(array: Any) -> str:
    """Return the name of the library of an array."""
    return "numpy" if isinstance(array, np.ndarray) else type(array).__module__.partition(".")[0]


def namespace_of(array: Any) -> Any:
    """Return NumPy, or whose array it is."""
    return np if isinstance(array, (np.ndarray, np.generic)) else sys.modules[library_of(array)]


def plain(array: Any) -> Any:
    """Return an array in C order without gaps."""
    return array if array.flags.c_contiguous else namespace_of(array).ascontiguousarray(array)


def joined(several: Sequence[Parts], axis: int = 0) -> Parts:
    """Return parts one after another along an axis."""
    if len(several) == 1:
        return several[0]
    return tuple(
        namespace_of(arrays[0]).concatenate(arrays, axis=axis)
        for arrays in zip(*several, strict=True)
    )


def taken(parts: Parts, where: Any) -> Parts:
    """Return what parts have at some places: an index of all."""
    return tuple(part[where] for part in parts)


def copied(parts: Parts) -> Parts:
    """Return parts that hold no other memory than their own."""
    return tuple(part.copy() for part in parts)


def on_host(array: Any) -> Any:
    """Return an array as NumPy's."""
    return array if isinstance(array, (np.ndarray, np.generic)) else array.get()


def result(parts: Parts) -> Any:
    """Return what a task gives that is a chunk of an array, or of several at once."""
    return parts[0] if len(parts) == 1 else parts


def empty_like(meta: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return an array of zeros in the library of another."""
    if library_of(meta) == "numpy":
        return np.zeros(shape, dtype)
    return type(meta)(shape, dtype)  # CuPy's: what is in it does not matter


def meta_like(x: Any, ndim: int, dtype: Any) -> Any:
    """Return the empty array that stands for chunks of so many dimensions."""
    return empty_like(x._meta, (0,) * ndim, dtype)


def added(several: list[Any]) -> Any:
    """Return the sum of arrays, from the first to the last."""
    total = several[0].copy()
    for one in several[1:]:
        namespace_of(total).add(total, one, out=total)
    return total
