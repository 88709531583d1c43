"""Reductions, scans and linear recurrences, also of segments, indices and keys."""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gpualgo._api.derivatives import element, extent, numbers
from gpualgo._pipeline import checks
from gpualgo.jax import _arguments as arguments
from gpualgo.jax import _gradients as gradients
from gpualgo.jax._ffi import call
from gpualgo.jax._gradients import Scan, differentiable
from gpualgo.jax._orders import argsort


def reduce(
    x: Any, init: Any = None, op: Any = operator.add, *, axis: Any = None, keepdims: bool = False,
    dtype: Any = None, vjp: Any = None,
) -> jax.Array:  # fmt: skip
    """Return the elements of an array combined: ``init op x[0] op x[1] op … op x[n-1]``.

    Parameters
    ----------
    x : array or tuple of arrays
        A jax or NumPy array of a dtype that gpualgo supports. Elements of a tuple of arrays are
        tuples; `init` is a tuple of numbers and arrays then, and `dtype` is None.
    init : number or array, optional
        The initial value, as for `gpualgo.reduce`. An array is broadcast to the shape of the result
        (without `keepdims`), may be traced and has a gradient; it costs a copy of `x`.
    op : callable
        ``op(a, b)``, associative and pure, as for `gpualgo.reduce`. Numbers that it captures are
        constants of the trace. It cannot capture arrays.
    axis : None, int or tuple of ints
        The axes to reduce; None means all. With `keepdims` they are kept with length one.
    dtype : dtype, optional
        The dtype of the accumulator and the result. By default that of `init` if it is a NumPy
        number or an array, else ``x.dtype``. Without jax's 64-bit mode 64-bit dtypes become 32-bit
        ones.
    vjp : (callable, callable), optional
        The derivatives of `op` by its left and its right argument: functions of ``(left, right)``
        in jax.numpy, element by element; of pairs they return two rows of two. By default jax
        differentiates `op`, which then must have no branches.

    Raises
    ------
    TypeError
        An argument has a wrong type, `op` captures an array, or the gradient of `op` is taken and
        jax cannot differentiate it.
    ValueError, numpy.exceptions.AxisError
        A shape or an axis is wrong.
    jax.errors.JaxRuntimeError
        Any error of `gpualgo.reduce` while the program runs; it has the class and the message.

    Notes
    -----
    The gradient of maxima and minima is shared equally by equal extremes. That of operators other
    than sums, maxima and minima scans `x` and solves a reverse linear recurrence.

    >>> x = jnp.array([2.0, 3.0, 4.0])
    >>> gj.reduce(x, None, lambda a, b: a * b)
    Array(24., dtype=float32)
    >>> jax.jit(jax.grad(lambda x: gj.reduce(x, None, lambda a, b: a * b)))(x)
    Array([12.,  8.,  6.], dtype=float32)
    """
    where = "reduce"
    xs, keepdims = arguments.arrays(x, where), checks.flag_argument(keepdims, "keepdims", where)
    scan = arguments.scan(where, xs, init, op, dtype, vjp)._replace(name="inclusive_scan")
    ndim = xs[0].ndim
    axis = range(ndim) if axis is None else axis
    axis = [checks.integer(a, "axis", where) for a in (axis if np.iterable(axis) else (axis,))]
    kept = sorted(a - ndim for a in np.lib.array_utils.normalize_axis_tuple(axis, ndim))
    axes, has_array = tuple(kept), any(map(arguments.is_array, numbers(scan.init)))
    if has_array or not axes:
        xs, axes = [_rows(x, axes) for x in xs], (-1,)
    if has_array:
        xs, scan = _with_first(xs, scan, where), scan._replace(init=None)
    shape = tuple(n for i, n in enumerate(xs[0].shape, -xs[0].ndim) if i not in axes)

    def forward(*xs: Any) -> Any:
        results = [(shape, acc) for acc in scan.dtypes]
        return call(where, xs, results, scan.init, scan.op, axis=axes, **scan.options)

    def pull(xs: Any, ys: Any, g: Any) -> Any:
        if not xs[0].size:
            return [None] * len(xs)
        if scan.is_sum_or_extreme:
            y, gy = (jnp.expand_dims(each[0], axes) for each in (ys, g))
            return [scan.shared(xs[0], y, gy, lambda marks: marks.sum(axes, keepdims=True))]
        last = lambda *xs: tuple(y[..., -1] for y in scan([_rows(x, axes) for x in xs]))  # noqa: E731
        return jax.vjp(last, *xs)[1](g)

    ys = differentiable(forward, pull, *xs)
    return element([jnp.expand_dims(y, kept) for y in ys] if keepdims else ys)


def _rows(x: Any, axes: tuple[int, ...]) -> Any:
    """Return x with axes, counted from the end, moved there and joined."""
    x = jnp.moveaxis(x, axes, range(-len(axes), 0))
    rows = x.shape[: x.ndim - len(axes)]
    return x.reshape(*rows, math.prod(x.shape[len(rows) :]))


def _with_first(xs: list[Any], scan: Scan, where: str) -> list[Any]:
    """Return arrays of the accumulators' dtypes with initial values before each row's elements."""
    shape, found = list(xs[0].shape), []
    del shape[scan.axis]
    for x, acc, value in zip(xs, scan.dtypes, numbers(scan.init), strict=True):
        first = jnp.expand_dims(arguments.first_value(value, acc, shape, where), scan.axis)
        pair = [first, x.astype(acc)]
        found.append(jnp.concatenate(pair[::-1] if scan.reverse else pair, scan.axis))
    return found


def inclusive_scan(
    x: Any, init: Any = None, op: Any = operator.add, *, axis: Any = None, reverse: bool = False,
    dtype: Any = None, vjp: Any = None,
) -> jax.Array:  # fmt: skip
    """Return each element combined with all before it: ``y[i] = init op x[0] op … op x[i]``.

    `x`, `init`, `op`, `dtype`, `vjp` and errors are those of `reduce`; an array `init` is broadcast
    to the shape of `x` without the axis. Each row along `axis` is scanned separately; None flattens
    `x` in C order. With `reverse` it is ``y[i] = init op x[n-1] op … op x[i]``.

    Notes
    -----
    The gradient is one scan in the other direction: of sums a sum, of other operators a linear
    recurrence, see `linear_recurrence`.

    >>> x = jnp.array([3.0, 1.0, 4.0])
    >>> gj.inclusive_scan(x, None, max)
    Array([3., 3., 4.], dtype=float32)
    >>> jax.grad(lambda x: gj.inclusive_scan(x, None, lambda a, b: a * b)[1])(x)
    Array([1., 3., 0.], dtype=float32)
    """
    return _scan("inclusive_scan", x, init, op, axis, reverse, dtype, vjp)


def exclusive_scan(
    x: Any, init: Any = None, op: Any = operator.add, *, axis: Any = None, reverse: bool = False,
    dtype: Any = None, vjp: Any = None,
) -> jax.Array:  # fmt: skip
    """Return all elements before each, combined: ``y[0] = init``, ``y[i] = init op … op x[i-1]``.

    Parameters, results and errors are those of `inclusive_scan`. Without `init` the operator needs
    an identity.

    >>> gj.exclusive_scan(jnp.array([3, 1, 4, 1]), 0, max, reverse=True)
    Array([4, 4, 1, 0], dtype=int32)
    """
    return _scan("exclusive_scan", x, init, op, axis, reverse, dtype, vjp)


def _scan(
    where: str, x: Any, init: Any, op: Any, axis: Any, reverse: bool, dtype: Any, vjp: Any
) -> Any:
    found = [arguments.along(axis, each, where) for each in arguments.arrays(x, where)]
    xs, axis = [x for x, _ in found], found[0][1]
    scan = arguments.scan(where, xs, init, op, dtype, vjp)
    reverse = checks.flag_argument(reverse, "reverse", where)
    scan = scan._replace(axis=axis, reverse=reverse)
    if not any(map(arguments.is_array, numbers(scan.init))):
        return element(scan(xs))
    start = int((where == "exclusive_scan") == scan.reverse)
    stop = start + xs[0].shape[axis]
    ys = scan._replace(name="inclusive_scan", init=None)(_with_first(xs, scan, where))
    return element([jax.lax.slice_in_dim(y, start, stop, axis=axis) for y in ys])


def linear_recurrence(
    a: Any, b: Any, init: Any = None, *, axis: Any = -1, reverse: bool = False
) -> jax.Array:
    """Return ``h[i] = a[i] * h[i-1] + b[i]`` along an axis, from ``h[-1] = init``.

    `a` and `b`, arrays of floats or complex numbers, are broadcast together. `init`, a number or an
    array that may be traced, is broadcast to their shape without the axis, and is zero by default.
    With `reverse` it is ``h[i] = a[i] * h[i+1] + b[i]``. Errors are those of `reduce`.

    Notes
    -----
    This is one scan of the pairs (a, b), whose operator composes the functions ``h → a * h + b``.
    It multiplies neighbouring coefficients: where such a product overflows, results may be infinite
    or NaN. A coefficient of zero begins anew, also after such results. The gradient is one
    recurrence in the other direction.

    >>> a, b = jnp.array([0.5, 0.5, 0.5]), jnp.array([8.0, 0.0, 2.0])
    >>> gj.linear_recurrence(a, b)
    Array([8., 4., 4.], dtype=float32)
    >>> jax.grad(lambda a: gj.linear_recurrence(a, b)[2])(a)
    Array([0., 4., 4.], dtype=float32)
    """
    where = "linear_recurrence"
    reverse = checks.flag_argument(reverse, "reverse", where)
    a, b = (arguments.array(x, f"{where}: {name}") for x, name in ((a, "a"), (b, "b")))
    dtype = jnp.result_type(a, b)
    if not jnp.issubdtype(dtype, jnp.inexact):
        raise TypeError(f"{where}: a has dtype {a.dtype} and b {b.dtype}; pass floats")
    try:
        a, b = jnp.broadcast_arrays(a.astype(dtype), b.astype(dtype))
    except ValueError as error:
        shapes = f"a has shape {a.shape} and b {b.shape}"
        raise ValueError(f"{where}: {shapes}, which do not broadcast together") from error
    (a, _), (b, axis) = arguments.along(axis, a, where), arguments.along(axis, b, where)
    if init is not None and b.size:
        first = (..., -1 if reverse else 0, *[slice(None)] * (-axis - 1))
        b = b.at[first].add(a[first] * arguments.first_value(init, dtype, b[first].shape, where))
    return gradients.recurrence([a], [b], axis, reverse)[0]


# --- Segments, indices and keys.


def segmented_reduce(
    x: Any, offsets: Any, init: Any = None, op: Any = operator.add, *, dtype: Any = None,
    vjp: Any = None,
) -> jax.Array:  # fmt: skip
    """Return the elements of each segment combined; segment s is ``x[offsets[s]:offsets[s+1]]``.

    `x` has one axis, and `offsets` are m + 1 integers in ascending order, the bounds of m segments;
    they may be traced. They are checked on the CPU and clipped on a GPU, as by
    `gpualgo.segmented_reduce`. `init` is a number, by default the operator's identity. `op`,
    `dtype`, `vjp` and errors are those of `reduce`.

    >>> gj.segmented_reduce(jnp.array([3, 1, 4, 1, 5, 9]), jnp.array([0, 2, 2, 5]), -1, max)
    Array([ 3, -1,  5], dtype=int32)
    """
    where = "segmented_reduce"
    xs, offsets, scan = _segments(where, x, offsets, init, op, dtype, vjp)
    shape, n = (max(offsets.shape[0] - 1, 0),), xs[0].shape[0]

    def groups(offsets: Any) -> tuple[Any, Any]:
        return gradients.starts(offsets, n)[0] - 1, offsets

    results = [(shape, acc) for acc in scan.dtypes]
    return element(_reduce_groups(where, xs, offsets, results, slice(None), groups, scan))


def segmented_inclusive_scan(
    x: Any, offsets: Any, init: Any = None, op: Any = operator.add, *, dtype: Any = None,
    vjp: Any = None,
) -> jax.Array:  # fmt: skip
    """Return each element combined with all before it in its segment: ``y[i] = init op … op x[i]``.

    Arguments and errors are those of `segmented_reduce`; the operator needs no identity. The result
    has the shape of `x`. Elements in no segment are copied.

    >>> gj.segmented_inclusive_scan(jnp.array([3, 1, 4, 1, 5, 9]), jnp.array([0, 2, 5]))
    Array([ 3,  4,  4,  5, 10,  9], dtype=int32)
    """
    parsed = _segments("segmented_inclusive_scan", x, offsets, init, op, dtype, vjp)
    return element(parsed[2](*parsed[:2]))


def segmented_exclusive_scan(
    x: Any, offsets: Any, init: Any = None, op: Any = operator.add, *, dtype: Any = None,
    vjp: Any = None,
) -> jax.Array:  # fmt: skip
    """Return all elements of the segment before each, combined: ``y[i] = init op … op x[i-1]``.

    Arguments and errors are those of `segmented_reduce`. The result has the shape of `x`. Elements
    in no segment are copied.

    >>> gj.segmented_exclusive_scan(jnp.array([3, 1, 4, 1, 5, 9]), jnp.array([0, 2, 5]))
    Array([0, 3, 0, 4, 5, 9], dtype=int32)
    """
    parsed = _segments("segmented_exclusive_scan", x, offsets, init, op, dtype, vjp)
    return element(parsed[2](*parsed[:2]))


def _segments(
    where: str, x: Any, offsets: Any, init: Any, op: Any, dtype: Any, vjp: Any
) -> tuple[Any, Any, Scan]:
    xs = arguments.arrays(x, where, 1)
    offsets = arguments.array(offsets, f"{where}: offsets", 1)
    arguments.check_number(init, where)
    return xs, offsets, arguments.scan(where, xs, init, op, dtype, vjp)


def reduce_by_index(
    indices: Any, x: Any, size: int, init: Any = None, op: Any = operator.add, *,
    dtype: Any = None, vjp: Any = None,
) -> jax.Array:  # fmt: skip
    """Return the elements of each index combined: ``result[k] = init op x[i] op x[j] op …``.

    `indices`, with the shape of `x`, are integers from 0 to ``size - 1``; others are an error on
    the CPU and ignored on a GPU. The result has the static length `size`. `init` is a number, by
    default the operator's identity. `op`, `dtype`, `vjp` and errors are those of `reduce`; elements
    of an index are combined in their order.

    >>> gj.reduce_by_index(jnp.array([2, 0, 2, 2]), jnp.array([1, 2, 3, 4]), 4)
    Array([2, 0, 8, 0], dtype=int32)
    """
    where = "reduce_by_index"
    size = extent(size, "size", where)
    x, indices = arguments.alike(x, indices, where, "indices")
    _, _, scan = _segments(where, x, indices, init, op, dtype, vjp)

    def groups(indices: Any) -> tuple[Any, Any, Any]:
        order, indices = argsort(indices), indices.astype(int)
        return indices, jnp.searchsorted(indices[order], jnp.arange(size + 1)), order

    results = [((size,), scan.dtypes[0])]
    return _reduce_groups(where, [x], indices, results, slice(None), groups, scan, size)[0]


class ReducedByKey(NamedTuple):
    """Result of `reduce_by_key`: `count` groups, then zeros."""

    keys: jax.Array
    aggregates: jax.Array
    count: jax.Array


def reduce_by_key(
    keys: Any, x: Any, init: Any = None, op: Any = operator.add, *, size: int, eq: Any = None,
    dtype: Any = None, vjp: Any = None,
) -> ReducedByKey:  # fmt: skip
    """Return the elements of each run of equal keys combined: sort first for a group for each key.

    `keys` has the shape of `x`. ``eq(a, b)`` returns whether a key b belongs to the run of the
    previous key a. `init` is a number; `op`, `dtype`, `vjp` and errors are those of `reduce`.

    The result is a namedtuple of ``keys`` and ``aggregates``, of the static length `size` and with
    zeros after the last group, and of ``count``, the number of groups. If it is larger than `size`,
    the groups after the first `size` are left out. Only the aggregates have a gradient.

    >>> keys, x = jnp.array([7, 7, 5, 7]), jnp.array([1, 2, 3, 4])
    >>> gj.reduce_by_key(keys, x, size=4)[:2]
    (Array([7, 5, 7, 0], dtype=int32), Array([3, 3, 4, 0], dtype=int32))
    """
    where = "reduce_by_key"
    size = extent(size, "size", where)
    x, keys = arguments.alike(x, keys, where, "keys")
    _, _, scan = _segments(where, x, keys, init, op, dtype, vjp)
    eq = arguments.function(eq, where)

    def groups(keys: Any) -> tuple[Any, Any]:
        a, b = keys[:-1], keys[1:]
        if eq is None:
            is_same = (a == b) | ((a != a) & (b != b))
        else:
            (is_same,) = call("transform", [a, b], [(a.shape, bool)], eq)
        ids = jnp.concatenate([jnp.zeros(min(1, keys.size), int), (~is_same).cumsum()])
        return ids, jnp.searchsorted(ids, jnp.arange(size + 1))

    results = [((size,), keys.dtype), ((size,), scan.dtypes[0]), ((1,), np.int64)]
    *found, count = _reduce_groups(
        where, [x], keys, results, slice(1, 2), groups, scan, consecutive=True, eq=eq
    )
    firsts, sums = (jnp.where(jnp.arange(size) < count, y, 0).astype(y.dtype) for y in found)
    return ReducedByKey(firsts, sums, count[0])


def _reduce_groups(
    where: str, xs: list[Any], by: Any, results: Any, at: slice, groups: Any, scan: Scan,
    *args: Any, **options: Any,
) -> Any:  # fmt: skip
    """Return the results of a call that reduces groups of arrays to ``results[at]``.

    ``groups(by)`` returns, from the array of offsets, indices or keys, the group of each element,
    out of range if it is in none; the groups' offsets; and if elements are not in the order of
    groups, their order.
    """

    def forward(by: Any, *xs: Any) -> Any:
        arrays = [*xs, by] if where == "segmented_reduce" else [by, *xs]
        return call(where, arrays, results, *args, scan.init, scan.op, **scan.options, **options)

    def pull(arrays: Any, found: Any, g: Any) -> Any:
        by, *xs = arrays
        if not any(map(gradients.framework.is_inexact, xs)):  # keys are floats
            return [None] * len(arrays)
        return None, *_pull_groups(scan, xs, found[at], g[at], *groups(by))

    return differentiable(forward, pull, by, *xs)


def _pull_groups(
    scan: Scan, xs: Any, ys: Any, g: Any, ids: Any, offsets: Any, order: Any = ...
) -> Any:
    """Return the cotangents of xs, where ys are results of groups and g their cotangents."""
    x, y = xs[0], ys[0]
    size = y.shape[0]
    if not size or not x.size:
        return [None] * len(xs)
    if scan.is_sum_or_extreme:
        inside = (ids >= 0) & (ids < size)
        at = jnp.where(inside, ids, 0)
        count = lambda marks: jax.ops.segment_sum(jnp.where(inside, marks, 0), at, size)[at]  # noqa: E731
        return [jnp.where(inside, scan.shared(x, y[at], g[0][at], count), 0)]
    offsets = jnp.clip(offsets.astype(int), 0, x.shape[0])

    def last(*xs: Any) -> Any:
        segmented = scan._replace(name="segmented_inclusive_scan")
        ys = segmented([x[order] for x in xs], offsets)
        has_elements = offsets[1:] > offsets[:-1]
        return tuple(jnp.where(has_elements, y[offsets[1:] - 1], 0) for y in ys)

    return jax.vjp(last, *xs)[1](tuple(g))
