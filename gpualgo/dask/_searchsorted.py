"""`searchsorted`: counts the elements of each chunk of a that come before, and adds the counts."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._algorithms.transform.problem import is_scalar
from gpualgo.dask import _inputs, _results
from gpualgo.dask._graph import Graph, Index
from gpualgo.dask._inputs import Input, blocks
from gpualgo.dask._operators import PickledOperator, load_operator, pickle_operator
from gpualgo.dask._values import (
    ChunkSpec,
    checked_chunks,
    pack,
    pattern_of_value,
    sum_arrays,
    unpack,
)

_NAME = "searchsorted"


def searchsorted(
    a: Any, v: Any, *, side: str = "left", less: Any = None, descending: Any = False,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Return the indices r at which elements belong in a sorted array: ``a[r-1] < v ≤ a[r]``.

    Parameters and result are those of `gpualgo.searchsorted`; a or v, or both, are dask arrays, and
    the result has the chunks of v. Chunks of unknown size are accepted.

    Notes
    -----
    There is a task for each pair of a chunk of a and a chunk of v; further tasks add their results.
    If a fits in memory, make it one chunk or a NumPy array. A worker holds a chunk of each, and 16
    results.
    """
    a_arg = _inputs.parse_argument(a, _NAME, "a")
    v_arg = None if is_scalar(v) else _inputs.parse_argument(v, _NAME, "v")
    local_less, frozen = (None, None) if less is None else pickle_operator(less, _NAME)
    small = v if v_arg is None else v_arg.small()
    options = {"side": side, "less": local_less, "descending": descending, "dtype": dtype}
    (probe,), _ = _inputs.probe_call(ga.searchsorted, a_arg.small(), small, **options)
    length = a_arg.first.shape[0]
    if length > np.iinfo(probe.dtype).max:
        raise ValueError(
            f"searchsorted: dtype {probe.dtype} cannot hold indices up to {length}; pass a wider "
            "dtype="
        )
    content = (type(v).__name__, v) if v_arg is None else v_arg.content
    flags = pattern_of_value(descending), unpack(descending)
    name = None if frozen is None else frozen[0]
    graph = Graph(_NAME, a_arg.content, content, side, name, flags, probe.dtype)
    less_arg = None if frozen is None else graph.shared("less", frozen, len(frozen[1]))
    params = side, less_arg, flags, probe.dtype
    for index in [()] if v_arg is None else blocks(v_arg.first):
        refs = []
        for i in range(a_arg.first.numblocks[0]):
            args = a_arg.chunk((i,)), a_arg.source, *_v_args(v_arg, v, index), (i,), index
            refs.append(graph.add("chunk", (i, *index), chunk, *args, *params))
        graph.alias("", index, graph.tree("tree", index, refs, sum_arrays))
    chunks = () if v_arg is None else v_arg.first.chunks
    sources = *a_arg.arrays, *(() if v_arg is None else v_arg.arrays)
    return _results.arrays(graph, "", a_arg.first, chunks, (probe.dtype,), sources)[0]


def _v_args(v_arg: Input | None, v: Any, index: Index) -> tuple[Any, Any]:
    return ([], v) if v_arg is None else (v_arg.chunk(index), v_arg.source)


# --- within tasks -------------------------------------------------------------------------------


def chunk(
    chunks: list[Any], source: ChunkSpec, asked: list[Any], wanted: Any, own: Index, index: Index,
    side: str, less: PickledOperator | None, ways: Any, dtype: Any,
) -> Any:  # fmt: skip
    """For each element of v, count the elements of a chunk of a that come before it."""
    table = pack(source[2], checked_chunks(chunks, source, own))
    v = pack(wanted[2], checked_chunks(asked, wanted, index)) if asked else wanted
    options = {
        "side": side,
        "less": load_operator(less),
        "descending": pack(*ways),
        "dtype": dtype,
    }
    counts = ga.searchsorted(table, v, **options)
    return np.asarray(counts) if isinstance(counts, np.generic) else counts
