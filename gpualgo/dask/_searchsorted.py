"""`searchsorted`: how many elements of each chunk of a come before, added up."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._algorithms.transform.scalars import is_scalar
from gpualgo.dask import _inputs, _results
from gpualgo.dask._graph import Graph, Index
from gpualgo.dask._inputs import Input, blocks
from gpualgo.dask._operators import Frozen, freeze, thaw
from gpualgo.dask._values import Source, added, given, packed, parts_of, pattern_of_value

_WHERE = "searchsorted"


def searchsorted(
    a: Any, v: Any, *, side: str = "left", less: Any = None, descending: Any = False,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Find where elements belong in a sorted array: ``a[r-1] < v ≤ a[r]``, r the result.

    Parameters and result are those of `gpualgo.searchsorted`; a or v, or both, are dask arrays, and
    the result has the chunks of v. Chunks of unknown size are taken.

    Notes
    -----
    A task for each chunk of a with each of v, and their sums: where a fits into memory, it
    should be one chunk, or an array of NumPy. A worker holds a chunk of each, and sixteen results.
    """
    table = _inputs.taken(a, _WHERE, "a")
    wanted = None if is_scalar(v) else _inputs.taken(v, _WHERE, "v")
    settled, frozen = (None, None) if less is None else freeze(less, _WHERE)
    small = v if wanted is None else wanted.small()
    options = {"side": side, "less": settled, "descending": descending, "dtype": dtype}
    (found,), _ = _inputs.told(ga.searchsorted, table.small(), small, **options)
    length = table.first.shape[0]
    if length > np.iinfo(found.dtype).max:
        raise ValueError(
            f"searchsorted: dtype {found.dtype} cannot hold places up to {length}; pass a wider "
            "dtype="
        )
    content = (type(v).__name__, v) if wanted is None else wanted.content
    ways = pattern_of_value(descending), parts_of(descending)
    name = None if frozen is None else frozen[0]
    graph = Graph(_WHERE, table.content, content, side, name, ways, found.dtype)
    held = None if frozen is None else graph.shared("less", frozen, len(frozen[1]))
    rest = side, held, ways, found.dtype
    for index in [()] if wanted is None else blocks(wanted.first):
        refs = []
        for i in range(table.first.numblocks[0]):
            args = table.chunk((i,)), table.source, *_asked(wanted, v, index), (i,), index
            refs.append(graph.add("chunk", (i, *index), chunk, *args, *rest))
        graph.alias("", index, graph.tree("tree", index, refs, added))
    chunks = () if wanted is None else wanted.first.chunks
    sources = *table.arrays, *(() if wanted is None else wanted.arrays)
    return _results.arrays(graph, "", table.first, chunks, (found.dtype,), sources)[0]


def _asked(wanted: Input | None, v: Any, index: Index) -> tuple[Any, Any]:
    return ([], v) if wanted is None else (wanted.chunk(index), wanted.source)


# --- within tasks -------------------------------------------------------------------------------


def chunk(
    chunks: list[Any], source: Source, asked: list[Any], wanted: Any, own: Index, index: Index,
    side: str, less: Frozen | None, ways: Any, dtype: Any,
) -> Any:  # fmt: skip
    """Return how many elements of a chunk of a come before each of v."""
    table = packed(source[2], given(chunks, source, own))
    v = packed(wanted[2], given(asked, wanted, index)) if asked else wanted
    options = {"side": side, "less": thaw(less), "descending": packed(*ways), "dtype": dtype}
    found = ga.searchsorted(table, v, **options)
    return np.asarray(found) if isinstance(found, np.generic) else found
