"""Arguments: dask arrays, or tuples of them, with equal chunks; what small arrays tell of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask.base import is_dask_collection
from dask.task_spec import TaskRef

from gpualgo._arrays.forms import Form, is_tuple, taken_apart
from gpualgo._base import recording
from gpualgo._driver.default_device import default_device
from gpualgo.dask import _graph
from gpualgo.dask._graph import Chunks, Index
from gpualgo.dask._shapes import broadcast, flat
from gpualgo.dask._values import Source, empty_like, library_of, parts_of, pattern_of

LIBRARIES = ("numpy", "cupy")


class Input(NamedTuple):
    """An argument: an array for each number of an element, all of one shape and chunks."""

    arrays: tuple[Any, ...]
    form: Form | None
    source: Source
    name: str

    @property
    def first(self) -> Any:
        """An array with the shape and the chunks of all."""
        return self.arrays[0]

    @property
    def names(self) -> tuple[str, ...]:
        """What tells contents: names of dask arrays do."""
        return tuple(x.name for x in self.arrays)

    @property
    def content(self) -> Any:
        """All that results depend on."""
        return self.names, self.source, self.first.chunks

    @property
    def is_known(self) -> bool:
        """Whether the sizes of all chunks are known."""
        return not any(math.isnan(size) for sizes in self.first.chunks for size in sizes)

    def chunk(self, index: Index) -> list[TaskRef]:
        """Return a chunk of each array, for a task that gives them to `given`."""
        return [TaskRef((x.name, *index)) for x in self.arrays]

    def small(self, extent: int = 1) -> Any:
        """Return an argument of few elements that is built alike."""
        shape = (extent,) * self.first.ndim
        parts = [empty_like(x._meta, shape, x.dtype) for x in self.arrays]
        return parts[0] if self.form is None else self.form.packed(parts)

    def require_sizes(self, reason: str) -> None:
        """Raise ValueError unless the sizes of all chunks are known."""
        if not self.is_known:
            raise ValueError(
                f"{self.source[0]}: {self.name} has chunks of unknown size, and {reason}; call "
                f"{self.name}.compute_chunk_sizes() first"
            )

    def flat(self) -> Input:
        """Return the argument in one dimension, in C order."""
        if self.first.ndim == 1:
            return self
        self.require_sizes("an array of several dimensions is to be flattened")
        return self._replace(arrays=tuple(map(flat, self.arrays)))

    def broadcast(self, like: Any) -> Input:
        """Return the argument broadcast to the shape and chunks of a dask array."""
        cut = [cut_alike([like, x], self.source[0])[1] for x in self.arrays]
        return self._replace(arrays=tuple(broadcast(x, like.shape, like.chunks) for x in cut))

    def rechunked(self, chunks: Any) -> Input:
        """Return the argument in other chunks."""
        return self._replace(arrays=tuple(x.rechunk(chunks) for x in self.arrays))


def blocks(x: Any, axes: Sequence[int] | None = None) -> list[Index]:
    """Return the indices of all chunks; of those that are the first along other axes than these."""
    count = [n if axes is None or axis in axes else 1 for axis, n in enumerate(x.numblocks)]
    return list(product(*map(range, count)))


def is_dask(x: Any) -> bool:
    """Return whether x is a dask array."""
    return is_dask_collection(x) and hasattr(x, "numblocks") and hasattr(x, "dtype")


def taken(x: Any, where: str, name: str = "x", like: Any = None) -> Input:
    """Return an argument; `like` has the chunks that arrays of the host are cut to."""
    if recording.active and recording.current() is not None:
        raise TypeError(
            f"{where}: {name} is a dask array, which prepare, explain and graphs do not take; pass "
            "arrays in memory"
        )
    form: Form | None = None
    leaves: list[tuple[Any, str]] = [(x, name)]
    if is_tuple(x) and not isinstance(x, np.ndarray):
        leaves, form = taken_apart(x, name)
    arrays = _aligned([_as_dask(leaf, f"{where}: {n}", like) for leaf, n in leaves], where, name)
    kinds = tuple(
        (leaf_name, array.dtype, library_of(array._meta))
        for (_, leaf_name), array in zip(leaves, arrays, strict=True)
    )
    return Input(tuple(arrays), form, (where, kinds, pattern_of(form)), name)


def _as_dask(x: Any, where: str, like: Any) -> Any:
    if is_dask(x):
        library = library_of(x._meta)
        if library not in LIBRARIES:
            raise TypeError(
                f"{where} is a dask array of chunks of {library}; "
                "bring them to NumPy or CuPy by map_blocks"
            )
        return x
    if isinstance(x, (bool, int, float, complex, np.generic)):
        x = np.asarray(x)
    if not (isinstance(x, np.ndarray) or library_of(x) == "cupy"):
        name = type(x).__name__
        cure = "wrap it with dask.array.from_array(x)"
        raise TypeError(
            f"{where} must be a dask array, or one of NumPy or CuPy beside one, got {name}; "
            f"{'pass x.gather()' if name == 'ShardedArray' else cure}"
        )
    chunks = like.chunks if like is not None and like.shape == x.shape else -1
    return da.from_array(x, chunks=chunks, asarray=False)


def _aligned(arrays: list[Any], where: str, name: str) -> list[Any]:
    """Return arrays of one shape and of equal chunks: those of the first that has the shape."""
    first = arrays[0]
    if all(_same(x.chunks, first.chunks) for x in arrays):
        return arrays
    try:
        shape = np.broadcast_shapes(*(x.shape for x in arrays))
    except ValueError:
        shapes = ", ".join(str(x.shape) for x in arrays)
        raise ValueError(f"{where}: shapes {shapes} of {name} do not broadcast together") from None
    cut = cut_alike(arrays, where)
    return [broadcast(x, shape, broadcast_chunks(cut)) for x in cut]


def cut_alike(arrays: Sequence[Any], where: str) -> list[Any]:
    """Return arrays cut for elementwise work: along each axis as the first that has its extent.

    Those that are broadcast along it have one chunk there.
    """
    ndim = max(x.ndim for x in arrays)
    lead: list[Any] = [None] * ndim
    for x in arrays:
        for axis, sizes in enumerate(x.chunks, ndim - x.ndim):
            if lead[axis] is None or (sum(lead[axis]) == 1 and sum(sizes) != 1):
                lead[axis] = sizes
    found = []
    for x in arrays:
        own = {}
        for axis, sizes in enumerate(x.chunks):
            wanted = lead[axis + ndim - x.ndim]
            if sum(sizes) == 1 and sum(wanted) != 1:
                wanted = (1,)  # of chunks such as (0, 1), too: each is read by all
            if _same((sizes,), (wanted,)):
                continue
            if sum(sizes) != sum(wanted):
                shapes = ", ".join(str(each.shape) for each in arrays)
                raise ValueError(f"{where}: shapes {shapes} do not broadcast together")
            own[axis] = wanted
        found.append(x.rechunk(own) if own else x)
    return found


def broadcast_chunks(arrays: Sequence[Any]) -> Chunks:
    """Return the chunks of what arrays that are cut alike broadcast to."""
    ndim = max(x.ndim for x in arrays)
    found: list[Any] = [(1,)] * ndim
    for x in arrays:
        for axis, sizes in enumerate(x.chunks, ndim - x.ndim):
            if sizes != (1,) and sum(found[axis]) == 1:
                found[axis] = sizes
    return tuple(found)


def _same(a: Chunks, b: Chunks) -> bool:
    """Return whether chunks are equal; unknown sizes are taken to be so."""
    return len(a) == len(b) and all(
        len(p) == len(q)
        and all(m == n or (math.isnan(m) and math.isnan(n)) for m, n in zip(p, q, strict=True))
        for p, q in zip(a, b, strict=True)
    )


def same_chunks(a: Input, b: Input) -> bool:
    """Return whether two arguments are cut alike."""
    return _same(a.first.chunks, b.first.chunks)


def told(function: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, Form | None]:
    """Return the arrays that a call on few elements gives, and how they are built.

    So results have the dtypes, and wrong arguments the errors, of a single machine.
    """
    with default_device(_graph.device()):
        found = function(*args, **options)
    if not isinstance(found, tuple):
        return parts_of(found), None
    leaves, form = taken_apart(found, "a result", has_names=False)
    return tuple(leaf for leaf, _ in leaves), form
