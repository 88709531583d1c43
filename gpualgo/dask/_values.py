"""Chunks within a task: unpack elements into arrays of their fields, and pack these again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from gpualgo._base import records

Parts: TypeAlias = tuple[Any, ...]
"""An array for each field of an element; one array if the element is no tuple."""
Structure: TypeAlias = Any
"""How parts form an argument: None for one array, else field names and the items' patterns."""
ChunkSpec: TypeAlias = tuple[str, tuple[tuple[str, Any, str], ...], Structure]
"""Of an argument: function name; name, dtype and library of each array; pattern."""


def pattern_of(form: Any) -> Structure:
    return None if form is None else (form.keys, tuple(map(pattern_of, form.items)))


def pattern_of_value(value: Any) -> Structure:
    """Return the pattern of a value or of nested tuples of values."""
    if not isinstance(value, tuple):
        return None
    keys = tuple(getattr(value, "_fields", None) or map(str, range(len(value))))
    return keys, tuple(map(pattern_of_value, value))


def pack(pattern: Structure, parts: Sequence[Any]) -> Any:
    """Return the argument that parts form; a namedtuple has the class of its fields."""
    return parts[0] if pattern is None else _packed(pattern, iter(parts))


def _packed(pattern: Structure, remaining: Any) -> Any:
    if pattern is None:
        return next(remaining)
    keys, items = pattern
    cls, fields = records.class_of(keys), [_packed(item, remaining) for item in items]
    return tuple(fields) if cls is tuple else cls(*fields)


def unpack(x: Any) -> Parts:
    """Flatten nested tuples into a tuple of arrays."""
    if not isinstance(x, tuple):
        return (x,)
    return tuple(part for item in x for part in unpack(item))


def checked_chunks(
    chunks: Sequence[Any], source: ChunkSpec, index: tuple[int, ...] | None
) -> Parts:
    """Return the chunks of an argument, in C order; raise TypeError for another library or dtype.

    Memory order decides how elements are grouped, and sending a chunk may change it.
    """
    func_name, expected, _ = source
    label = f"{func_name}: a chunk" if index is None else f"{func_name}: chunk {index}"
    return tuple(
        _given(chunk, f"{label} of {name}", dtype, library)
        for chunk, (name, dtype, library) in zip(chunks, expected, strict=True)
    )


def _given(chunk: Any, name: str, dtype: Any, library: str) -> Any:
    if isinstance(chunk, np.generic):
        chunk = np.asarray(chunk)
    chunk_library = library_of(chunk)
    if chunk_library != library:
        raise TypeError(
            f"{name} is an array of {chunk_library}, and the dask array says {library}: the device "
            "is fixed when the graph is built; convert all chunks to one library with map_blocks"
        )
    if chunk.dtype != dtype:
        raise TypeError(
            f"{name} has dtype {chunk.dtype}, and the dask array says {dtype}; "
            f"pass x.map_blocks(lambda c: c.astype({str(dtype)!r}), dtype={str(dtype)!r})"
        )
    return contiguous(chunk)


def library_of(array: Any) -> str:
    return "numpy" if isinstance(array, np.ndarray) else type(array).__module__.partition(".")[0]


def namespace_of(array: Any) -> Any:
    """Return the array's module: NumPy or CuPy."""
    return np if isinstance(array, (np.ndarray, np.generic)) else sys.modules[library_of(array)]


def contiguous(array: Any) -> Any:
    return array if array.flags.c_contiguous else namespace_of(array).ascontiguousarray(array)


def concatenate(several: Sequence[Parts], axis: int = 0) -> Parts:
    """Concatenate parts along an axis."""
    if len(several) == 1:
        return several[0]
    return tuple(
        namespace_of(arrays[0]).concatenate(arrays, axis=axis)
        for arrays in zip(*several, strict=True)
    )


def index_parts(parts: Parts, where: Any) -> Parts:
    """Index all parts."""
    return tuple(part[where] for part in parts)


def copied(parts: Parts) -> Parts:
    return tuple(part.copy() for part in parts)


def on_host(array: Any) -> Any:
    return array if isinstance(array, (np.ndarray, np.generic)) else array.get()


def result(parts: Parts) -> Any:
    """Return parts as a task's result: one array, or a tuple of several."""
    return parts[0] if len(parts) == 1 else parts


def empty_like(meta: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    if library_of(meta) == "numpy":
        return np.zeros(shape, dtype)
    return type(meta)(shape, dtype)  # CuPy's constructor; contents are not used


def meta_like(x: Any, ndim: int, dtype: Any) -> Any:
    """Return the empty array that dask uses to represent chunks."""
    return empty_like(x._meta, (0,) * ndim, dtype)


def sum_arrays(several: list[Any]) -> Any:
    """Add arrays, from the first to the last."""
    total = several[0].copy()
    for array in several[1:]:
        namespace_of(total).add(total, array, out=total)
    return total
