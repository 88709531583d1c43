"""Sorts, selections, histograms and searches."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gpualgo._algorithms.top_k import TopK
from gpualgo._api.derivatives import extent
from gpualgo._operators.operator import Operator
from gpualgo._pipeline.checks import flag_argument
from gpualgo.jax import _arguments as arguments
from gpualgo.jax._ffi import call
from gpualgo.jax._gradients import differentiable, pulled_weights


def sort(
    keys: Any, values: Any = None, *, less: Any = None, descending: bool = False, axis: Any = -1
) -> Any:
    """Return keys sorted stably, and values in the order of their keys.

    Arguments are those of `gpualgo.sort`, without tuples; errors are those of `reduce`. The result
    is an array, or with `values` a tuple of two.

    Notes
    -----
    The gradient goes to the elements that the results come from; it sorts once more.

    >>> x = jnp.array([3.0, 1.0, 2.0])
    >>> gj.sort(x)
    Array([1., 2., 3.], dtype=float32)
    >>> jax.grad(lambda x: gj.sort(x) @ jnp.array([1.0, 10.0, 100.0]))(x)
    Array([100.,   1.,  10.], dtype=float32)
    """
    keys = arguments.array(keys, "sort: keys")
    shape = keys.shape
    keys, axis = arguments.along(axis, keys, "sort")
    arrays = [keys]
    if values is not None:
        values = arguments.array(values, "sort: values")
        if values.shape != shape:
            raise ValueError(f"sort: keys has shape {shape} and values {values.shape}")
        arrays.append(values.reshape(keys.shape))
    less = arguments.function(less, "sort")
    descending = flag_argument(descending, "descending", "sort")

    def forward(*arrays: Any) -> Any:
        results = [(x.shape, x.dtype) for x in arrays]
        return call("sort", arrays, results, less=less, descending=descending, axis=axis)

    def pull(arrays: Any, result: Any, g: Any) -> Any:
        index = jax.dtypes.canonicalize_dtype(np.int64)
        places = jax.lax.broadcasted_iota(index, arrays[0].shape, arrays[0].ndim + axis)
        order = forward(arrays[0], places)[1]
        return [_pull_taken(x, order, gx, axis) for x, gx in zip(arrays, g, strict=True)]

    found = differentiable(forward, pull, *arrays)
    return found if values is not None else found[0]


def _pull_taken(x: Any, places: Any, g: Any, axis: int) -> Any:
    """Return the cotangent of x, of its elements at places along an axis."""
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return None
    return jax.vjp(lambda x: jnp.take_along_axis(x, places, axis), x)[1](g)[0]


def argsort(keys: Any, *, descending: bool = False, axis: Any = -1, dtype: Any = None) -> jax.Array:
    """Return the indices that sort keys stably along an axis, as `sort` does.

    `dtype` is that of the indices: by default int32, or int64 in jax's 64-bit mode. Errors are
    those of `sort`.

    >>> gj.argsort(jnp.array([0.0, 2.0, -0.0, 1.0]))
    Array([0, 2, 3, 1], dtype=int32)
    """
    keys, axis = arguments.along(axis, arguments.array(keys, "argsort: keys"), "argsort")
    dtype = arguments.canonical(dtype, "argsort")
    descending = flag_argument(descending, "descending", "argsort")
    options = {"descending": descending, "axis": axis, "dtype": dtype}
    return call("argsort", [keys], [(keys.shape, dtype)], **options)[0]


def top_k(x: Any, k: int, *, axis: Any = -1, mode: str = "largest") -> TopK:
    """Return the k largest (or smallest) elements in order, and their indices.

    Arguments are those of `gpualgo.top_k`, errors those of `reduce`; `k` is static. The result is a
    namedtuple of ``values``, which have a gradient, and ``indices``: int32, or int64 in jax's
    64-bit mode.

    >>> gj.top_k(jnp.array([3, 9, 4, 9, 5]), 3).indices
    Array([1, 3, 4], dtype=int32)
    """
    x, axis = arguments.along(axis, arguments.array(x, "top_k: x"), "top_k")
    k = extent(k, "k", "top_k")
    extents = list(x.shape)
    extents[axis] = k
    shape = tuple(extents)

    def forward(x: Any) -> Any:
        results = [(shape, x.dtype), (shape, np.int64)]
        return TopK(*call("top_k", [x], results, k, axis=axis, mode=mode))

    def pull(arrays: Any, result: Any, g: Any) -> Any:
        return (_pull_taken(arrays[0], result.indices, g.values, axis),)

    return differentiable(forward, pull, x)  # type: ignore[no-any-return]


class Selected(NamedTuple):
    """Result of `select`: `count` elements, then zeros."""

    values: jax.Array
    count: jax.Array


def select(x: Any, predicate: Any, *, size: int) -> Selected:
    """Return the elements for which a predicate is true, in their order.

    `x` is flattened in C order. ``predicate(a)`` returns a bool and is pure; or it is an array of
    bool with the shape of `x`. Errors are those of `reduce`.

    The result is a namedtuple of ``values``, of the static length `size` and with zeros after the
    last element, and of ``count``, the number of selected elements. If it is larger than `size`,
    the elements after the first `size` are left out.

    >>> gj.select(jnp.array([3, -1, 4, -1, 5]), lambda a: a > 0, size=4)
    Selected(values=Array([3, 4, 5, 0], dtype=int32), count=Array(3, dtype=int32))
    """
    size = extent(size, "size", "select")
    if callable(predicate) or isinstance(predicate, Operator):
        function = arguments.function(predicate, "select")
        arrays = [arguments.array(x, "select: x").reshape(-1)]
    else:
        arrays = list(arguments.alike(x, predicate, "select", "predicate"))

    def forward(*arrays: Any) -> Any:
        predicates = () if len(arrays) == 2 else (function,)
        results = [((size,), arrays[0].dtype), ((1,), np.int64)]
        values, count = call("select", arrays, results, *predicates)
        is_result = jnp.arange(size) < count
        return Selected(jnp.where(is_result, values, 0).astype(values.dtype), count[0])

    def pull(arrays: Any, result: Any, g: Any) -> Any:
        x, *masks = arrays
        mask = masks[0] if masks else call("transform", [x], [(x.shape, bool)], function)[0]
        places, count = forward(jnp.arange(x.size), mask)
        places = jnp.where(jnp.arange(size) < count, places, x.size)  # those are dropped
        gx = jnp.zeros_like(x).at[places].set(g.values, mode="drop")
        return gx, *[None] * len(masks)

    return differentiable(forward, pull, *arrays)  # type: ignore[no-any-return]


def histogram(
    x: Any, bins: Any, range: Any = None, *, weights: Any = None, dtype: Any = None
) -> jax.Array:
    """Return how many samples are in each bin, or the sums of their weights.

    `x` is flattened. `bins` is a static number of bins of equal width or a sequence of edges; or a
    jax array of edges, which may be traced. `range` is static, by default the samples' minimum and
    maximum; then weights have no gradient. Otherwise arrays of `weights`, which are broadcast to
    the shape of `x`, have one. Counts are int32, or int64 in jax's 64-bit mode, unless `dtype` is
    given; sums of weights are as for `gpualgo.histogram`. Errors are those of `reduce`.

    >>> x, w = jnp.array([0.1, 0.2, 0.7, 1.0]), jnp.array([1.0, 2.0, 3.0, 4.0])
    >>> gj.histogram(x, 2, (0.0, 1.0), weights=w)
    Array([3., 7.], dtype=float32)
    """
    x = arguments.array(x, "histogram: x")
    arrays, default = [x.reshape(-1)], np.int64
    has_edges, has_weights = isinstance(bins, jax.Array), weights is not None
    if has_edges and not bins.ndim:
        raise TypeError("histogram: the number of bins is static; pass an int, or edges")
    if any(isinstance(end, jax.core.Tracer) for end in jax.tree.leaves(range)):
        raise TypeError("histogram: range is traced, but must be static; pass numbers")
    if has_edges:
        arrays.append(arguments.array(bins, "histogram: bins", 1))
    elif np.ndim(bins) == 1:
        bins = tuple(np.asarray(bins).tolist())
    else:
        bins = extent(bins, "bins", "histogram")
    size = bins if isinstance(bins, int) else np.shape(bins)[0] - 1
    if size < 0:
        raise ValueError("histogram: bins has no edges; pass at least two")
    ends = None if range is None else tuple(np.asarray(range).tolist())
    if has_weights:
        weights = arguments.array(weights, "histogram: weights")
        arrays.append(jnp.broadcast_to(weights, x.shape).reshape(-1))
        defaults = {"b": np.int64, "i": np.int64, "u": np.uint64}
        default = defaults.get(weights.dtype.kind, weights.dtype)
    dtype = arguments.canonical(default if dtype is None else dtype, "histogram")

    def forward(*arrays: Any) -> Any:
        edges = None if has_edges else bins
        options = {"bins": edges, "range": ends, "has_weights": has_weights, "dtype": dtype}
        return call("histogram", arrays, [((size,), dtype)], **options)[0]

    def pull(arrays: Any, y: Any, g: Any) -> Any:
        if not has_weights:
            return [None] * len(arrays)
        gw = pulled_weights(g, arrays[0], arrays[1] if has_edges else bins, ends)
        return *[None] * (len(arrays) - 1), gw

    return differentiable(forward, pull, *arrays)


def searchsorted(
    a: Any, v: Any, *, side: str = "left", less: Any = None, descending: bool = False,
    dtype: Any = None,
) -> jax.Array:  # fmt: skip
    """Return the indices at which elements belong in a sorted array: ``a[r-1] < v ≤ a[r]``.

    Arguments are those of `gpualgo.searchsorted`, without tuples; errors are those of `reduce`.
    Indices are int32, or int64 in jax's 64-bit mode, unless `dtype` is given. The result has the
    shape of `v`.

    >>> gj.searchsorted(jnp.array([1, 3, 3, 7]), jnp.array([3, 8]), side="right")
    Array([3, 4], dtype=int32)
    """
    where = "searchsorted"
    a, v = arguments.array(a, f"{where}: a", 1), arguments.array(v, f"{where}: v")
    less, dtype = arguments.function(less, where), arguments.canonical(dtype, where)
    descending = flag_argument(descending, "descending", where)
    options = {"side": side, "less": less, "descending": descending, "dtype": dtype}
    return call(where, [a, v], [(v.shape, dtype)], **options)[0]
