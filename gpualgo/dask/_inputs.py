"""Arguments: dask arrays, or tuples of them, with equal chunks; probe calls on tiny arrays."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import dask.array as da
import numpy as np
from dask.base import is_dask_collection
from dask.task_spec import TaskRef

from gpualgo import _distributed
from gpualgo._arrays.forms import Form, flatten_tuple, is_tuple
from gpualgo._arrays.view import as_view
from gpualgo._distributed import Argument, library_of
from gpualgo._driver.default_device import default_device
from gpualgo.dask import _tasks
from gpualgo.dask._tasks import Chunk, Chunks, Graph, Index

# --- Flatten, broadcast and reshape dask arrays.


def flat(x: Any) -> Any:
    """Flatten a dask array in C order, into chunks no larger than its largest."""
    last = max((axis for axis, n in enumerate(x.numblocks) if n > 1), default=0)
    keeps_order = all(set(x.chunks[axis]) == {1} for axis in range(last))  # of chunks
    contiguous = x if keeps_order else x.rechunk(_contiguous_chunks(x))
    graph = Graph("flatten", contiguous.name)
    for number, index in enumerate(blocks(contiguous)):
        graph.add("", (number,), np.ravel, TaskRef((contiguous.name, *index)))  # any library's
    sizes = tuple(map(math.prod, product(*contiguous.chunks)))
    return graph.array("", (sizes,), _tasks.meta_like(x, 1, x.dtype), [contiguous])


def _contiguous_chunks(x: Any) -> tuple[Any, ...]:
    """Return contiguous chunks of about as many elements as the largest has."""
    limit = max(1, math.prod(map(max, x.chunks)))
    axis = next(a for a in range(x.ndim) if math.prod(x.shape[a + 1 :]) <= limit)
    inner_size = math.prod(x.shape[axis + 1 :])
    extents = (1,) * axis, (max(1, limit // max(1, inner_size)),), (-1,) * (x.ndim - axis - 1)
    return tuple(extent for part in extents for extent in part)


def reshaped(x: Any, chunks: Chunks) -> Any:
    """Reshape a 1-D dask array to a grid of chunks, which take its elements in order."""
    shapes = list(product(*chunks))
    wanted = tuple(map(math.prod, shapes))
    if x.size and x.chunks[0] != wanted:  # e.g. empty blocks between others
        x = x.rechunk((wanted,))
    graph = Graph("reshape", x.name, chunks)
    for number, index in enumerate(product(*map(range, map(len, chunks)))):
        ref = TaskRef((x.name, number if x.size else 0))
        graph.add("", index, operator.methodcaller("reshape", shapes[number]), ref)
    return graph.array("", chunks, _tasks.meta_like(x, len(chunks), x.dtype), [x])


@dataclass(frozen=True)
class Input(Argument):
    """An argument: a dask array for each field of an element, all with equal chunks."""

    fields: tuple[tuple[str, Any, str], ...]  # name, dtype and library of each array

    @property
    def source(self) -> _tasks.Source:
        return self.where, self.fields, self.form

    @property
    def content(self) -> Any:
        """All that results depend on, for the graph's hash."""
        names = self.form and self.form.names
        chunks = self.first.chunks
        return tuple(x.name for x in self.arrays), self.where, self.fields, names, chunks

    @property
    def is_known(self) -> bool:
        """Whether the sizes of all chunks are known."""
        return not any(math.isnan(size) for sizes in self.first.chunks for size in sizes)

    def chunk(self, index: Index) -> Chunk:
        """Return one chunk as an argument of a task."""
        return Chunk(self.source, index, tuple(TaskRef((x.name, *index)) for x in self.arrays))

    def broadcast_chunk(self, index: Index) -> Chunk:
        """Return the chunk that is broadcast to a chunk of the result, as `chunk` does."""
        return self.chunk(own_index(self.first, index))._replace(place=index)

    def each(
        self, graph: Graph, step: str, function: Callable[..., Any], *args: Any, **options: Any
    ) -> dict[Index, TaskRef]:
        """Add a task for each chunk; of inputs among its arguments it gets this chunk."""

        def at(index: Index, x: Any) -> Any:
            return x.chunk(index) if isinstance(x, Input) else x

        return {
            index: graph.add(step, index, function, *[at(index, x) for x in args],
                             **{name: at(index, x) for name, x in options.items()})
            for index in blocks(self.first)
        }  # fmt: skip

    def small(self, extent: int = 1) -> Any:
        """Return an argument of the same structure and dtypes with small arrays."""
        shape = (extent,) * self.first.ndim
        parts = [_tasks.empty_like(x._meta, shape, x.dtype) for x in self.arrays]
        return _distributed.packed(self.form, parts)

    def require_sizes(self, reason: str) -> None:
        if not self.is_known:
            raise ValueError(
                f"{self.where}: {self.name} has chunks of unknown size, and {reason}; call "
                f"{self.name}.compute_chunk_sizes() first"
            )

    def flat(self) -> Input:
        """Return the argument flattened in C order."""
        if self.first.ndim == 1:
            return self
        self.require_sizes("an array of several dimensions is to be flattened")
        return self.of(map(flat, self.arrays))

    def broadcast(self, like: Any) -> Input:
        """Return the argument with the shape and chunks of an array."""
        return self.fitted([(like, axis) for axis in range(like.ndim)])

    def fitted(self, axes: Axes) -> Input:
        return self.of(fitted(x, axes, self.where) for x in self.arrays)

    def rechunked(self, chunks: Any) -> Input:
        return self.of(rechunked(x, chunks) for x in self.arrays)


def blocks(x: Any, axes: Sequence[int] | None = None) -> list[Index]:
    """Return the indices of all chunks; if `axes` is given, 0 along all other axes."""
    count = [n if axes is None or axis in axes else 1 for axis, n in enumerate(x.numblocks)]
    return list(product(*map(range, count)))


def rechunked(x: Any, chunks: Any) -> Any:
    """Rechunk a dask array; dask leaves one of no elements as it is."""
    if isinstance(chunks, tuple) and equal_chunks(x.chunks, chunks):
        return x
    return da.zeros_like(x, chunks=chunks) if x.ndim and not any(x.shape) else x.rechunk(chunks)


def is_dask(x: Any) -> bool:
    return is_dask_collection(x) and hasattr(x, "numblocks") and hasattr(x, "dtype")


def parse_argument(x: Any, where: str, name: str = "x", like: Any = None) -> Input:
    """Parse an argument. NumPy and CuPy arrays with the shape of `like` get its chunks."""
    _distributed.refuse_recording(where, name, "dask array", "in memory")
    form: Form | None = None
    fields: list[tuple[Any, str]] = [(x, name)]
    if isinstance(x, tuple):  # as a dask array a structured array stays whole
        x = _distributed.map_fields(lambda a: _as_dask(a, name, like) if is_tuple(a) else a, x)
        fields, form = flatten_tuple(x, name)
    arrays = [_as_dask(field, f"{where}: {n}", like) for field, n in fields]
    axes = common_axes(arrays)
    arrays = [fitted(array, axes, where) for array in arrays]
    named = zip(fields, arrays, strict=True)
    specs = tuple((label, array.dtype, library_of(array._meta)) for (_, label), array in named)
    return Input(tuple(arrays), form, where, name, specs)


def _as_dask(x: Any, label: str, like: Any) -> Any:
    meta = x._meta if is_dask(x) else x
    if isinstance(meta, np.ma.MaskedArray):
        as_view(meta, label)  # raises the error of a single machine
    if is_dask(x):
        library = library_of(meta)
        if library not in ("numpy", "cupy"):
            raise TypeError(
                f"{label} is a dask array of chunks of {library}; "
                "bring them to NumPy or CuPy by map_blocks"
            )
        return x
    if isinstance(x, (bool, int, float, complex, np.generic)):
        x = np.asarray(x)
    if not (isinstance(x, np.ndarray) or library_of(x) == "cupy"):
        name = type(x).__name__
        advice = "wrap it with dask.array.from_array(x)"
        raise TypeError(
            f"{label} must be a dask array, or a NumPy or CuPy array next to one, got {name}; "
            f"{'pass x.gather()' if name == 'ShardedArray' else advice}"
        )
    chunks = like.chunks if like is not None and like.shape == x.shape else -1
    return da.from_array(x, chunks=chunks, asarray=False)


UNKNOWN = "call x.compute_chunk_sizes() first on each dask array with chunks of unknown size"

# --- Equal chunks for several arrays. Sizes that are unknown are compared within tasks.

Axes: TypeAlias = Sequence[tuple[Any, int]]
"""Of each axis of a result: an array that has its chunks, and that array's axis."""


def common_axes(arrays: Sequence[Any]) -> Axes:
    """Return the axes of elementwise results: each of the first array that is not broadcast."""
    axes: list[Any] = [None] * max(x.ndim for x in arrays)
    for x in arrays:
        for axis, extent in enumerate(x.shape, -x.ndim):
            if axes[axis] is None or (axes[axis][0].shape[axis] == 1 and extent != 1):
                axes[axis] = x, axis
    return [(x, x.ndim + axis) for x, axis in axes]


def fitted(x: Any, axes: Axes, where: str, is_full: bool = True) -> Any:
    """Return an array broadcast to given axes; without `is_full`, axes of one element stay."""
    lead = len(axes) - x.ndim
    chunks = tuple(like.chunks[axis] for like, axis in axes)
    own: Any = tuple(map(_fitted_sizes, x.chunks, chunks[max(lead, 0) :]))
    if lead < 0 or None in own:
        told = f"{where}: shapes {{}} and {{}} do not broadcast together"
        raise shapes_error(told, x.shape, tuple(map(sum, chunks)), "reshape one of them")
    if not is_full:
        axes, pairs, lead = axes[lead:], zip(own, chunks[lead:], strict=True), 0
        chunks = tuple(n if n == (1,) else wanted for n, wanted in pairs)
    cut = rechunked(x, own)
    is_known = not math.isnan(sum(map(sum, chunks[lead:] + own)))
    if equal_chunks(own, chunks) and (is_known or all(like.name == x.name for like, _ in axes)):
        return cut
    graph = Graph("fit", x.name, where, own, chunks, [(like.name, axis) for like, axis in axes])
    exact = [k - x.ndim for k, sizes in enumerate(own) if sizes != (1,)]
    for index in product(*map(range, map(len, chunks))):
        extents: list[Any] = [sizes[i] for sizes, i in zip(chunks, index, strict=True)]
        for k, (like, axis) in enumerate(axes):
            if math.isnan(extents[k]):
                at = list(own_index(like, index))
                at[axis] = index[k]
                extents[k] = TaskRef((like.name, *at)), axis
        ref = TaskRef((cut.name, *own_index(cut, index)))
        graph.add("", index, fit, ref, extents, exact, f"{where}: chunk {index}")
    sources = [cut, *(like for like, _ in axes)]
    return graph.array("", chunks, _tasks.meta_like(x, len(chunks), x.dtype), sources)


def _fitted_sizes(own: tuple[Any, ...], wanted: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return the chunks to cut an axis into before it is broadcast; None if it cannot be."""
    if sum(own) == 1 and sum(wanted) != 1:
        return (1,)
    is_whole = len(own) == len(wanted) == 1 and math.isnan(own[0] + wanted[0])
    if is_whole or equal_chunks((own,), (wanted,)):
        return own
    return wanted if sum(own) == sum(wanted) else None


def own_index(x: Any, index: Index) -> Index:
    """Return the index of the chunk of x that is broadcast to a chunk of a result."""
    tail = (*(0,) * x.ndim, *index)[len(index) :]
    return tuple(min(i, n - 1) for i, n in zip(tail, x.numblocks, strict=True))


def fit(chunk: Any, extents: list[Any], exact: list[int], told: str) -> Any:
    """Return a chunk broadcast to extents, some of which other chunks have along an axis."""
    shape = tuple(n[0].shape[n[1]] if isinstance(n, tuple) else n for n in extents)
    for n, other in ((chunk.shape[axis], shape[axis]) for axis in exact):
        if n != other:
            told += f" has {n} elements in one array and {other} in another"
            raise ValueError(f"{told}; {UNKNOWN}")
    is_done = chunk.shape == shape or isinstance(chunk, np.ma.MaskedArray)  # refused later
    return chunk if is_done else np.broadcast_to(chunk, shape)


def equal_chunks(a: Chunks, b: Chunks) -> bool:
    """Return whether chunks are equal; unknown sizes count as equal."""
    return len(a) == len(b) and all(
        len(p) == len(q)
        and all(m == n or (math.isnan(m) and math.isnan(n)) for m, n in zip(p, q, strict=True))
        for p, q in zip(a, b, strict=True)
    )


def check_shapes(told: str, a: Sequence[float], b: Sequence[float], advice: str) -> None:
    """Raise ValueError if shapes differ; an unknown extent differs from one alone."""
    pairs = zip(a, b, strict=False)
    if len(a) != len(b) or any(m != n and (1 in (m, n) or (m == m and n == n)) for m, n in pairs):
        raise shapes_error(told, a, b, advice)


def shapes_error(told: str, a: Sequence[float], b: Sequence[float], advice: str) -> ValueError:
    is_known = not math.isnan(sum((*a, *b)))
    return ValueError(f"{told.format(a, b)}; {advice if is_known else UNKNOWN}")


def probe_call(function: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, Form | None]:
    """Return the arrays that a call on tiny arrays returns, and the form of the result.

    So results have the dtypes of a single machine, and wrong arguments raise its errors.
    """
    with default_device(_tasks.device()):
        result = function(*args, **options)
    parts, form = _distributed.fields_of(result)
    return tuple(parts), form


def probe_dtypes(
    function: Callable[..., Any], *args: Any, **options: Any
) -> tuple[tuple[Any, ...], Form | None]:
    """Return the dtypes and the form of the result of a call on tiny arrays."""
    parts, form = probe_call(function, *args, **options)
    return tuple(part.dtype for part in parts), form
