"""Functions of chunks alone: `transform` and `select`; `searchsorted` and `top_k` with a tree."""

from __future__ import annotations

import math
from itertools import accumulate, islice, product
from typing import Any

import numpy as np

import gpualgo as ga
from gpualgo._algorithms.transform.problem import is_scalar
from gpualgo._distributed import Parts, concatenate, namespace_of, packed
from gpualgo._operators.operator import MAX_ARITY, is_function
from gpualgo._pipeline import checks
from gpualgo.dask import _inputs
from gpualgo.dask._graph import Graph, results_of
from gpualgo.dask._inputs import Input, blocks, is_dask
from gpualgo.dask._tasks import pickle_operator, sum_arrays


def transform(op: Any, *arguments: Any, dtype: Any = None) -> Any:
    """Return a function applied to each element: ``result[i] = op(a[i], b[i], …)``.

    Parameters and result are those of `gpualgo.transform`, with dask arrays for arrays; arguments
    may also be numbers and NumPy or CuPy arrays. Along each axis the result has the chunks of the
    first array that is not broadcast there. Chunks of unknown size are accepted.

    Notes
    -----
    A task for each chunk. A worker holds the chunks that it works on and their results.
    """
    count = len(arguments)
    if not 0 < count <= MAX_ARITY:
        raise TypeError(f"transform: pass 1 to {MAX_ARITY} arguments after op, got {count}")
    local_op, frozen = pickle_operator(op, "transform", count)
    names = "transform", "an argument"
    inputs = [x if is_scalar(x) else _inputs.parse_argument(x, *names) for x in arguments]
    small = [x.small(0) if isinstance(x, Input) else x for x in inputs]
    dtypes, form = _inputs.probe_dtypes(ga.transform, local_op, *small, dtype=dtype)
    graph = Graph("transform", *inputs, frozen, dtypes)
    op_arg = graph.shared("op", frozen)
    arrays = [part for x in inputs if isinstance(x, Input) for part in x.arrays]
    arrays = _inputs.align_chunks(arrays, "transform")
    aligned = iter(arrays)
    inputs = [x._replace(arrays=tuple(islice(aligned, len(x.arrays))))
              if isinstance(x, Input) else x for x in inputs]  # fmt: skip
    chunks = _inputs.broadcast_chunks(arrays)
    acc_dtype = packed(form, dtypes)
    for index in product(*map(range, map(len, chunks))):
        args = [x.broadcast_chunk(index) if isinstance(x, Input) else x for x in inputs]
        graph.call("", index, ga.transform, op_arg, *args, dtype=acc_dtype)
    return results_of(graph, form, arrays[0], chunks, dtypes, *inputs)


def select(x: Any, predicate: Any) -> Any:
    """Return the elements for which a predicate is true, in their order: ``x[predicate(x)]``.

    Parameters and result are those of `gpualgo.select`, with dask arrays for arrays. The result has
    a chunk for each of x, of unknown size; ``compute_chunk_sizes()`` computes the sizes.

    Notes
    -----
    A task for each chunk reads it once. A worker holds the chunks that it works on and their
    selected elements.
    """
    if not is_dask(predicate) and is_function(predicate, "select"):
        x_arg = _inputs.parse_argument(x, "select").flat()
        local_op, frozen = pickle_operator(predicate, "select", 1)
        dtypes, form = _inputs.probe_dtypes(ga.select, x_arg.small(), local_op)
        graph, mask = Graph("select", x_arg, frozen), None
        op_arg = graph.shared("op", frozen)
    else:
        x_arg, mask = _masked(x, predicate)
        dtypes, form = _inputs.probe_dtypes(ga.select, x_arg.small(), mask.small())
        graph, op_arg = Graph("select", x_arg, mask), None
    for index in blocks(x_arg.first):
        predicate = op_arg if mask is None else mask.chunk(index)
        graph.call("", index, ga.select, x_arg.chunk(index), predicate)
    chunks = ((math.nan,) * x_arg.first.numblocks[0],)
    return results_of(graph, form, x_arg.first, chunks, dtypes, x_arg, mask)


def _masked(x: Any, predicate: Any) -> tuple[Input, Input]:
    """Return elements and the bool array, flattened and with the same chunks."""
    like = predicate if is_dask(predicate) else None
    x_arg = _inputs.parse_argument(x, "select", like=like)
    mask = _inputs.parse_argument(predicate, "select", "predicate", like=x_arg.first)
    _inputs.check_shapes(mask, x_arg, "predicate has", "pass a bool for each element")
    return x_arg.flat(), mask.rechunked(x_arg.first.chunks).flat()


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
    a_arg = _inputs.parse_argument(a, "searchsorted", "a")
    v_arg = None if is_scalar(v) else _inputs.parse_argument(v, "searchsorted", "v")
    local_less, frozen = (None, None) if less is None else pickle_operator(less, "searchsorted")
    small = v if v_arg is None else v_arg.small()
    options = {"side": side, "less": local_less, "descending": descending, "dtype": dtype}
    (index_dtype,), _ = _inputs.probe_dtypes(ga.searchsorted, a_arg.small(), small, **options)
    length = a_arg.first.shape[0]
    if length > np.iinfo(index_dtype).max:
        told = f"searchsorted: dtype {index_dtype} cannot hold indices up to {length}"
        raise ValueError(f"{told}; pass a wider dtype=")
    content = v if v_arg is None else v_arg
    graph = Graph("searchsorted", a_arg, content, side, frozen, descending, index_dtype)
    less_arg = graph.shared("less", frozen)
    options["less"], options["dtype"], refs = less_arg, index_dtype, {}
    for (i,), index in product(blocks(a_arg.first), [()] if v_arg is None else blocks(v_arg.first)):
        args = a_arg.chunk((i,)), v if v_arg is None else v_arg.chunk(index)
        refs[i, *index] = graph.call("chunk", (i, *index), ga.searchsorted, *args, **options)
    for row, ref in graph.trees("tree", refs, (0,), sum_arrays).items():
        graph.alias("", row[1:], ref)
    chunks = () if v_arg is None else v_arg.first.chunks
    return results_of(graph, None, a_arg.first, chunks, (index_dtype,), a_arg, v_arg)


def top_k(x: Any, k: Any, *, axis: Any = -1, mode: Any = "largest") -> Any:
    """Return the k largest (or smallest) elements in order, and their indices.

    Parameters and result are those of `gpualgo.top_k`, with dask arrays for arrays. The result has
    the same bits, and one chunk along the axis, where chunk sizes must be known.

    Notes
    -----
    x is read once, by a task for each chunk; 1/15 as many tasks combine the results. A worker holds
    the chunks that it works on, and k elements and indices of each of 16 others.
    """
    x_arg = _inputs.parse_argument(x, "top_k")
    k = checks.integer(k, "k", "top_k")
    x_arg, k_axis = x_arg.line(axis)
    x_arg.require_sizes("indices depend on all sizes")
    extent = x_arg.first.shape[k_axis]
    if not 0 <= k <= extent:  # the call raises the error
        whole = np.broadcast_to(x_arg.small(), x_arg.first.shape)
        _inputs.probe_call(ga.top_k, whole, k, axis=k_axis)
    options = {"axis": k_axis, "mode": mode}
    dtypes, form = _inputs.probe_dtypes(ga.top_k, x_arg.small(), min(k, 1), **options)
    graph = Graph("top-k", x_arg, k, k_axis, mode)
    starts, refs = [0, *accumulate(x_arg.first.chunks[k_axis])], {}
    for index in blocks(x_arg.first):
        args = x_arg.chunk(index), starts[index[k_axis]], k, k_axis, mode
        refs[index] = graph.add("chunk", index, top_of_chunk, *args)
    for row, ref in graph.trees("tree", refs, (k_axis,), top_of_several, k, k_axis, mode).items():
        graph.alias("", row, ref)
    chunks = tuple((k,) if a == k_axis else c for a, c in enumerate(x_arg.first.chunks))
    return results_of(graph, form, x_arg.first, chunks, dtypes, x_arg)


def top_of_chunk(x: Any, start: int, k: int, axis: int, mode: Any) -> Parts:
    """Return the top elements of a chunk, and their global indices."""
    values, indices = ga.top_k(x, min(k, x.shape[axis]), axis=axis, mode=mode)
    return values, indices + start


def top_of_several(several: list[Parts], k: int, axis: int, mode: Any) -> Parts:
    """Return the top of several chunks' results; on ties, earlier chunks win."""
    values, indices = concatenate(several, axis)
    top, order = ga.top_k(values, min(k, values.shape[axis]), axis=axis, mode=mode)
    return top, namespace_of(indices).take_along_axis(indices, order, axis)
