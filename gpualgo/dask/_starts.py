"""`init`: a value that is part of each task, or dask arrays with a value for each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from dask.task_spec import TaskRef

from gpualgo.dask import _inputs
from gpualgo.dask._graph import Index
from gpualgo.dask._inputs import Input
from gpualgo.dask._values import Source, given, library_of, packed, parts_of, pattern_of_value

Rest = tuple[Any, tuple[Any, ...] | None, Source | None]
"""Of init: its pattern; its values, or None; the source of its arrays, or None."""


class Start(NamedTuple):
    """The initial value of a reduction or scan."""

    source: Input | None
    rest: Rest
    small: Any
    is_one: bool

    @property
    def arrays(self) -> tuple[Any, ...]:
        return () if self.source is None else self.source.arrays

    @property
    def content(self) -> Any:
        """All that results depend on, for the graph's hash."""
        if self.source is not None:
            return self.source.content
        values = self.rest[1]
        assert values is not None
        return self.rest[0], [(type(v).__name__, getattr(v, "dtype", None), v) for v in values]

    def chunk(self, index: Index) -> list[TaskRef]:
        """Return the tasks of the chunks of init for a block of rows."""
        if self.source is None:
            return []
        return self.source.chunk(() if self.is_one else index)


def start_of(init: Any, x: Input, kept: Sequence[int], where: str) -> Start:
    """Parse init; `kept` are the axes of the result's rows."""
    fields = parts_of(init)
    if not any(map(_is_array, fields)):
        pattern = pattern_of_value(init)
        return Start(None, (pattern, fields, None), init, True)
    chunks = tuple(x.first.chunks[axis] for axis in kept)
    shape = tuple(x.first.shape[axis] for axis in kept)
    source = _inputs.taken(init, where, "init")
    is_one = source.first.ndim == 0
    if not is_one and (source.is_known and x.is_known) and source.first.shape != shape:
        raise ValueError(
            f"{where}: init has shape {source.first.shape}, but rows have shape {shape}; pass one "
            "value, or an array with one for each row"
        )
    if not is_one and x.is_known and source.first.chunks != chunks:
        source = source.rechunked(chunks)
    small = source.small()
    if is_one:
        small = small[()] if library_of(source.first._meta) == "numpy" else small
    return Start(source, (None, None, source.source), small, is_one)


def _is_array(x: Any) -> bool:
    """Return whether init is a dask array or an array of several values."""
    if _inputs.is_dask(x):
        return True
    if isinstance(x, np.ndarray):
        return x.size != 1
    return hasattr(x, "__cuda_array_interface__")


def value_of(chunks: Sequence[Any], rest: Rest, index: Index) -> Any:
    """Return init within a task."""
    pattern, values, source = rest
    if source is None:
        assert values is not None
        return packed(pattern, values)
    parts = given(chunks, source, index)
    if parts[0].ndim == 0 and isinstance(parts[0], np.ndarray):
        parts = tuple(part[()] for part in parts)
    return packed(source[2], parts)
