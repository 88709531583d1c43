"""Dask arrays in other shapes: in one dimension, in C order; broadcast."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

from dask.task_spec import TaskRef

from gpualgo.dask._graph import Chunks, Graph
from gpualgo.dask._values import meta_like, namespace_of, plain


def flat(x: Any) -> Any:
    """Return a dask array in one dimension, in chunks as large as it has at most."""
    cut = x if _is_in_order(x) else x.rechunk(_pieces(x))
    graph = Graph("flatten", cut.name)
    sizes = []
    for number, index in enumerate(product(*map(range, cut.numblocks))):
        graph.add("", (number,), flattened, TaskRef((cut.name, *index)))
        sizes.append(math.prod(c[i] for c, i in zip(cut.chunks, index, strict=True)))
    return graph.array("", (tuple(sizes),), meta_like(x, 1, x.dtype), [cut])


def _is_in_order(x: Any) -> bool:
    """Return whether chunks follow one another in C order."""
    cut = [axis for axis, n in enumerate(x.numblocks) if n > 1]
    if not cut:
        return True
    last = max(cut)
    return all(set(x.chunks[axis]) == {1} for axis in range(last))


def _pieces(x: Any) -> tuple[Any, ...]:
    """Return chunks in C order of about as many elements as the largest has."""
    most = max(1, math.prod(map(max, x.chunks)))
    axis = next(a for a in range(x.ndim) if math.prod(x.shape[a + 1 :]) <= most)
    rest = math.prod(x.shape[axis + 1 :])
    extents = (1,) * axis, (max(1, most // max(1, rest)),), (-1,) * (x.ndim - axis - 1)
    return tuple(extent for part in extents for extent in part)


def flattened(chunk: Any) -> Any:
    """Return a chunk in one dimension."""
    return plain(chunk).reshape(-1)


def broadcast(x: Any, shape: tuple[Any, ...], chunks: Chunks) -> Any:
    """Return a dask array broadcast to a shape, in chunks as it has along axes that it has."""
    if x.ndim == len(shape) and all(
        sum(c) != 1 or n == 1 for c, n in zip(x.chunks, shape, strict=True)
    ):
        return x
    graph = Graph("broadcast", x.name, chunks)
    for index in product(*map(range, map(len, chunks))):
        own = zip(index[len(index) - x.ndim :], x.numblocks, strict=True)
        ref = TaskRef((x.name, *(0 if n == 1 else i for i, n in own)))
        extents = tuple(sizes[i] for sizes, i in zip(chunks, index, strict=True))
        graph.add("", index, spread, ref, extents)
    return graph.array("", chunks, meta_like(x, len(chunks), x.dtype), [x])


def reshaped(x: Any, chunks: Chunks) -> Any:
    """Return a dask array of one dimension in blocks of these extents, which take it in order."""
    wanted = tuple(map(math.prod, product(*chunks)))
    if x.size and x.chunks[0] != wanted:  # as where blocks without elements are between others
        x = x.rechunk((wanted,))
    graph = Graph("reshape", x.name, chunks)
    for number, index in enumerate(product(*map(range, map(len, chunks)))):
        shape = tuple(sizes[i] for sizes, i in zip(chunks, index, strict=True))
        graph.add("", index, shaped, TaskRef((x.name, number if x.size else 0)), shape)
    return graph.array("", chunks, meta_like(x, len(chunks), x.dtype), [x])


def shaped(chunk: Any, shape: tuple[int, ...]) -> Any:
    """Return a chunk in a shape."""
    return chunk.reshape(shape)


def spread(chunk: Any, shape: tuple[int, ...]) -> Any:
    """Return a chunk broadcast to a shape."""
    return namespace_of(chunk).broadcast_to(chunk, shape)
