"""Flatten, broadcast and reshape dask arrays."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

from dask.task_spec import TaskRef

from gpualgo.dask._graph import Chunks, Graph
from gpualgo.dask._values import meta_like, namespace_of, plain


def flat(x: Any) -> Any:
    """Flatten a dask array in C order, into chunks no larger than its largest."""
    contiguous = x if _is_in_order(x) else x.rechunk(_contiguous_chunks(x))
    graph = Graph("flatten", contiguous.name)
    sizes = []
    for number, index in enumerate(product(*map(range, contiguous.numblocks))):
        graph.add("", (number,), flattened, TaskRef((contiguous.name, *index)))
        sizes.append(math.prod(c[i] for c, i in zip(contiguous.chunks, index, strict=True)))
    return graph.array("", (tuple(sizes),), meta_like(x, 1, x.dtype), [contiguous])


def _is_in_order(x: Any) -> bool:
    """Return whether flattening keeps the order of chunks."""
    chunked_axes = [axis for axis, n in enumerate(x.numblocks) if n > 1]
    if not chunked_axes:
        return True
    last = max(chunked_axes)
    return all(set(x.chunks[axis]) == {1} for axis in range(last))


def _contiguous_chunks(x: Any) -> tuple[Any, ...]:
    """Return contiguous chunks of about as many elements as the largest has."""
    limit = max(1, math.prod(map(max, x.chunks)))
    axis = next(a for a in range(x.ndim) if math.prod(x.shape[a + 1 :]) <= limit)
    inner_size = math.prod(x.shape[axis + 1 :])
    extents = (1,) * axis, (max(1, limit // max(1, inner_size)),), (-1,) * (x.ndim - axis - 1)
    return tuple(extent for part in extents for extent in part)


def flattened(chunk: Any) -> Any:
    return plain(chunk).reshape(-1)


def broadcast(x: Any, shape: tuple[Any, ...], chunks: Chunks) -> Any:
    """Broadcast a dask array to a shape and chunks; it has these chunks along its own axes."""
    if x.ndim == len(shape) and all(
        sum(c) != 1 or n == 1 for c, n in zip(x.chunks, shape, strict=True)
    ):
        return x
    graph = Graph("broadcast", x.name, chunks)
    for index in product(*map(range, map(len, chunks))):
        own_index = zip(index[len(index) - x.ndim :], x.numblocks, strict=True)
        ref = TaskRef((x.name, *(0 if n == 1 else i for i, n in own_index)))
        extents = tuple(sizes[i] for sizes, i in zip(chunks, index, strict=True))
        graph.add("", index, spread, ref, extents)
    return graph.array("", chunks, meta_like(x, len(chunks), x.dtype), [x])


def reshaped(x: Any, chunks: Chunks) -> Any:
    """Reshape a 1-D dask array to a grid of chunks, which take its elements in order."""
    wanted = tuple(map(math.prod, product(*chunks)))
    if x.size and x.chunks[0] != wanted:  # e.g. empty blocks between others
        x = x.rechunk((wanted,))
    graph = Graph("reshape", x.name, chunks)
    for number, index in enumerate(product(*map(range, map(len, chunks)))):
        shape = tuple(sizes[i] for sizes, i in zip(chunks, index, strict=True))
        graph.add("", index, shaped, TaskRef((x.name, number if x.size else 0)), shape)
    return graph.array("", chunks, meta_like(x, len(chunks), x.dtype), [x])


def shaped(chunk: Any, shape: tuple[int, ...]) -> Any:
    return chunk.reshape(shape)


def spread(chunk: Any, shape: tuple[int, ...]) -> Any:
    return namespace_of(chunk).broadcast_to(chunk, shape)
