"""Methods of ufuncs: reductions, also by index and of segments, and accumulation; axes, masks."""

from __future__ import annotations

import contextlib
import math
import operator
from typing import Any

import numpy as np

from gpualgo import copy, inclusive_scan, reduce, reduce_by_index, segmented_reduce, transform
from gpualgo._base import dtypes
from gpualgo._base.errors import shown
from gpualgo._lazy import is_lazy, operators
from gpualgo._lazy.combining import applied, led_by
from gpualgo._lazy.expression_cache import ExpressionCache
from gpualgo._operators.tokens import same
from gpualgo._pipeline import checks
from gpualgo.lazy import LazyArray, full, reductions, take
from gpualgo.lazy import asarray as lazy_of
from gpualgo.lazy.reductions import OWN, RULES, SUM, TRUTH, lazy_as, operator_of, wide, wide_of
from gpualgo.numpy import _call
from gpualgo.numpy._call import ARRAY_TYPES, BOOL, UNSET, NotTaken, array_of, host_of, is_host

Dtype = np.dtype[Any]
INDEX = np.dtype(np.intp)


def kind_of(ufunc: np.ufunc, own: Dtype, dtype: Any, name: str) -> Dtype:
    """Return the dtype of the results for elements of a dtype, without ``out=``."""
    rule = RULES[ufunc]
    if rule is TRUTH:
        if dtype is not None and np.dtype(dtype) != bool:
            raise TypeError(f"{name}: dtype={dtype!r} is not bool, which {ufunc.__name__} returns")
        return BOOL
    if dtype is not None:
        return dtypes.as_dtype(dtype, name)
    if rule is OWN:
        return ufunc.resolve_dtypes((own, own, None))[2]
    return reductions.sum_dtype(own) if rule is SUM else own


# --- Shared parts of cumulative functions and ``ufunc.accumulate``: one scan, in NumPy's dtype.

# Earlier scans without options, by the input's dtype: the operator and the result's dtype.
_plain_scans: dict[tuple[np.ufunc, Any], tuple[Any, Any]] = {}


def accumulated(ufunc: np.ufunc, x: Any, axis: Any, dtype: Any, out: Any, name: str) -> Any:
    """Return ``ufunc.accumulate``: one scan, and a conversion if it computes in a wider dtype."""
    if dtype is out is None and (axis is None or type(axis) is int) and type(x) in ARRAY_TYPES:
        plan = _plain_scans.get((ufunc, x.dtype))
        if plan is not None and (axis is None or x.ndim):
            return inclusive_scan(x, None, plan[0], axis=axis, dtype=plan[1])
    out = _call.out_of(out, name)
    if axis is not None and type(axis) is not int:
        axis = checks.plain_axis(axis, name)
    if not x.ndim and axis is not None:
        raise TypeError(f"{name}: a 0-d array has no axis; pass axis=None")
    x, op, kind, wide = converted_for_scan(ufunc, x, dtype, out, name)
    wanted = kind if out is None else _call.dtype_of(out, name)
    if out is None and wanted == wide:
        if dtype is None and type(x) in ARRAY_TYPES:
            _plain_scans[ufunc, x.dtype] = op, wide
        return inclusive_scan(x, None, op, axis=axis, dtype=wide)
    if wanted == wide:
        with contextlib.suppress(ValueError):  # out overlaps x, or has another shape
            return inclusive_scan(x, None, op, axis=axis, dtype=wide, out=out)
    result = inclusive_scan(x, None, op, axis=axis, dtype=wide)
    if out is None:  # the result is a narrower float
        return transform(same, result, dtype=wanted)
    return _call.evaluate_into(lazy_of(result), out, name)


def converted_for_scan(
    ufunc: np.ufunc, x: Any, dtype: Any, out: Any, name: str
) -> tuple[Any, Any, Dtype, Dtype]:
    """Return x, the operator, the result's dtype, and that in which results are computed."""
    own = _call.dtype_of(x, name)
    if dtype is None and out is not None and RULES[ufunc] is not TRUTH:  # as in NumPy
        wanted = _call.dtype_of(out, name)
        kind = ufunc.resolve_dtypes((wanted, own, None))[2]
        if kind.kind == "f" and {wanted.kind, own.kind} == {"i", "u"}:
            kind = kind_of(ufunc, own, None, name)  # not by float64, which has no wrapped numbers
    else:
        kind = kind_of(ufunc, own, dtype, name)
    wide = wide_of(ufunc, kind)
    if own != wide and not (dtypes.can_cast(own, wide) and own.kind != "b"):
        x = lazy_as(real_of(x, own, wide)[0], wide)
    return x, operator_of(ufunc, wide), kind, wide


# --- ``where=`` of reductions: excluded elements are replaced by the identity.

# Identities; extremes use the initial value instead.
_IDENTITIES: dict[np.ufunc, Any] = {
    np.add: 0, np.multiply: 1, np.logical_or: False, np.logical_and: True, np.logical_xor: False,
    np.bitwise_or: 0, np.bitwise_xor: 0, np.bitwise_and: -1, np.gcd: 0, np.lcm: 1, np.hypot: 0,
    np.logaddexp: -np.inf, np.logaddexp2: -np.inf,
}  # fmt: skip


def mask_of(where: Any, shape: tuple[int, ...], name: str) -> Any:
    """Return ``where=`` as an array of bool that broadcasts to a shape; None for all."""
    if where is UNSET or where is True:
        return None
    mask = where
    if isinstance(mask, np.ndarray) or not hasattr(mask, "dtype"):
        mask = np.asarray(mask)
        if not isinstance(where, np.ndarray):
            mask = mask.astype(bool)  # as NumPy does with lists and numbers
    mask = _call.bools_of(mask, name)
    if not mask.ndim and isinstance(mask, (np.ndarray, np.generic)):
        return full(shape, bool(mask))
    if len(mask.shape) > len(shape):
        raise ValueError(f"{name}: where has shape {mask.shape}, more axes than {shape}")
    return mask


def lazy_mask_of(where: Any, a: Any, name: str) -> Any:
    """Return the mask as a lazy array of the shape and in the library of an array."""
    shape = tuple(a.shape)
    mask = mask_of(where, shape, name)
    return None if mask is None else led_by(lazy_of(mask).broadcast_to(shape), lazy_of(a))


def identity_of(ufunc: np.ufunc, start: Any, kind: Any, name: str, initial: Any) -> Any:
    """Return the replacement of excluded elements: the identity, else the initial value."""
    if ufunc in _IDENTITIES and initial is not None:
        return np.array(_IDENTITIES[ufunc]).astype(kind)[()]  # -1 has all bits
    if start is None:
        raise ValueError(
            f"{name}: where= needs initial=, because there may be no elements to choose from"
        )
    return kind.type(start)


def _masked(x: Any, mask: Any, kind: Any, filler: Any, _bits: bytes) -> Any:
    return np.where(mask.broadcast_to(x.shape), x if x.dtype == kind else x.astype(kind), filler)


MASKED = ExpressionCache(_masked)


def weights_of(weights: Any, a: Any, axis: Any, name: str) -> Any:
    """Return weights broadcast to the shape of a; they may have only the reduced axes."""
    weights = array_of(weights, f"{name}: weights")
    if is_host(weights) and not is_host(a) and not is_lazy(a):
        weights = _call.copy_to_device_of(a, weights, name)
    shape = tuple(a.shape)
    if tuple(weights.shape) == shape:
        return weights
    if axis is None:
        raise TypeError(f"{name}: weights have shape {weights.shape}, a has {shape}; name an axis")
    axes = axis if isinstance(axis, tuple) else (axis,)
    checks.axes_of(axis, len(shape), name)
    axes = tuple(i % len(shape) for i in axes)
    if tuple(weights.shape) != tuple(shape[i] for i in axes):
        raise ValueError(f"{name}: weights have shape {weights.shape}, not that of a along axis=")
    in_order: Any = np.transpose(lazy_of(weights), np.argsort(axes))
    new_shape = tuple(n if i in axes else 1 for i, n in enumerate(shape))
    return in_order.reshape(new_shape).broadcast_to(shape)


# --- Shared parts of NumPy's reductions: axes, masks, initial values, outputs.

# Earlier reductions without options, by the input's dtype: initial value, operator, other dtype.
_plain_reductions: dict[tuple[np.ufunc, Any], tuple[Any, Any, Dtype | None]] = {}


def reduced(
    ufunc: np.ufunc, a: Any, name: str, axis: Any, dtype: Any = None, out: Any = None,
    keepdims: Any = UNSET, initial: Any = UNSET, where: Any = UNSET,
) -> Any:  # fmt: skip
    """Return ``ufunc.reduce`` in one pass."""
    is_computed = isinstance(a, LazyArray)
    has_options = dtype is not None or out is not None or not (where is initial is UNSET)
    if not has_options and (is_computed or is_host(a) or type(a) in ARRAY_TYPES):
        plan = _plain_reductions.get((ufunc, a.dtype))
        fits = 0 not in a.shape and (axis is None or (type(axis) is int and len(a.shape)))
        if plan is not None and fits and not (is_computed and plan[2] is not None):
            keepdims = False if keepdims is UNSET else flag_of(keepdims, name)
            return reduce(a, plan[0], plan[1], axis=axis, keepdims=keepdims, dtype=plan[2])
    keepdims, out = flag_of(keepdims, name), _call.out_of(out, name)
    axis = axis_of(axis, a.ndim, name)
    if 0 in a.shape:
        check_some(ufunc, a.shape, axis, initial, name)
    own = _call.dtype_of(a, name)
    if dtype is None and out is not None and RULES[ufunc] is not TRUTH:
        kind, initial = _kind_for_out(ufunc, own, out, initial, name)
    else:
        kind = kind_of(ufunc, own, dtype, name)
    start = reductions.started(ufunc, kind) if initial is UNSET else start_of(initial, kind)
    a, own = real_of(a, own, kind)
    if (mask := mask_of(where, a.shape, name)) is not None:
        replacement = identity_of(ufunc, start, kind, name, initial)
        a = MASKED((a, mask), name, kind, replacement, replacement.tobytes())
    elif kind == BOOL != own and start is None and is_host(a) and ufunc in _DECIDING:
        op, start = _DECIDING[ufunc]
        result = reduce(a, start, op, axis=axis, keepdims=keepdims) != 0
        return cast_result(result, kind, out, name)
    is_read = own == kind or (RULES[ufunc] is SUM and dtypes.can_cast(own, wide(kind)))
    is_read = is_read and not isinstance(a, LazyArray)
    acc, op = wide(kind) if is_read else wide_of(ufunc, kind), operator_of(ufunc, kind)
    x = a if is_read else lazy_as(a, acc)
    if not has_options and x is a and acc == kind == wide(kind):
        _plain_reductions[ufunc, a.dtype] = start, op, None if acc == own else acc
    direct_out = out if is_read and is_direct(a, out, acc, name) else None
    result = reduce(x, start, op, axis=axis, keepdims=keepdims, dtype=acc, out=direct_out)
    if direct_out is not None or (out is None and acc == kind):
        return result
    return cast_result(result, kind, out, name)


def _kind_for_out(
    ufunc: np.ufunc, own: Dtype, out: Any, initial: Any, name: str
) -> tuple[Dtype, Any]:
    """Return the dtype to compute in for ``out=``, and `initial`, which NumPy casts to out's."""
    wanted = _call.dtype_of(out, name)
    kind = ufunc.resolve_dtypes((wanted, own, None))[2]  # raises as NumPy
    has_initial = initial is not UNSET and initial is not None
    initial = start_of(initial, wanted) if has_initial else initial
    if RULES[ufunc] is SUM and not (has_initial and wanted.kind == "c"):
        kind = wider(reductions.sum_dtype(own), wanted)
    elif kind.kind == "f" and {own.kind, wanted.kind} == {"i", "u"}:  # float64 is for neither
        kind = kind_of(ufunc, own, None, name)
        if kind.kind == "u" and has_initial and initial < 0:
            raise NotTaken(f"{name}: initial={initial} is no {kind}; pass out= of that dtype")
    return kind, initial


def check_some(
    ufunc: np.ufunc, shape: tuple[int, ...], axis: Any, initial: Any, name: str,
    cure: str = "; pass initial=",
) -> None:  # fmt: skip
    """Raise ValueError for a reduction over no elements without an identity or initial value."""
    if initial is not None and (initial is not UNSET or ufunc.identity is not None):
        return
    if not all(shape[i] for i in checks.axes_of(axis, len(shape), name)):
        raise ValueError(
            f"{name}: there are no elements along the axes: zero-size array to reduction operation "
            f"{ufunc.__name__} which has no identity{cure}"
        )


def has_nan(a: Any, name: str) -> bool:
    return dtypes.kind(_call.dtype_of(a, name)) in "fc"


def _replace_nan(x: Any, number: Any) -> Any:
    return np.where(x == x, x, number)


_NAN_REPLACED = ExpressionCache(lambda x, number: applied(_replace_nan, (x, number), ""))


def nan_replaced(a: Any, number: Any, name: str) -> Any:
    """Return an array in which NaN counts as a number, lazily; unchanged for None."""
    if number is None or not has_nan(a, name):
        return a
    return _NAN_REPLACED((a,), name, _call.dtype_of(a, name).type(number))


def real_of(a: Any, own: Dtype, kind: Dtype) -> tuple[Any, Dtype]:
    """Return complex numbers without imaginary parts if the result is real."""
    if own.kind != "c" or kind.kind in "cb":
        return a, own
    _call.warn_of_parts(own, kind)
    real = lazy_of(a).real
    return real, real.dtype


def flag_of(keepdims: Any, name: str) -> bool:
    """Return ``keepdims=`` as True or False."""
    if keepdims is UNSET or isinstance(keepdims, (bool, np.bool_)):
        return keepdims is not UNSET and bool(keepdims)
    try:
        return bool(operator.index(keepdims))
    except TypeError:
        message = f"{name}: keepdims must be True or False, got {shown(keepdims)}"
        raise TypeError(message) from None


def axis_of(axis: Any, ndim: int, name: str) -> Any:
    """Return axes as `gpualgo.reduce` takes them; NumPy also accepts an axis of a 0-d array."""
    if axis is None or (type(axis) is int and ndim):
        return axis
    axis = checks.plain_axes(axis, name)
    return None if not ndim and axis in (0, -1) else axis


def axis_of_means(axis: Any, ndim: int, name: str) -> Any:
    """Return axes as `axis_of`, but reject an axis of a 0-d array: NumPy's means do."""
    if axis is not None and not ndim:
        checks.axes_of(checks.plain_axes(axis, name), 0, name)
    return axis_of(axis, ndim, name)


def start_of(initial: Any, kind: Dtype) -> Any:
    """Return ``initial=`` as a number of the result's dtype, cast as NumPy does."""
    if initial is UNSET or initial is None:
        return None
    value = np.empty((), kind)
    value[()] = initial
    return value[()]


def wider(kind: Dtype, wanted: Dtype) -> Dtype:
    """Return the dtype for sums of numbers of kind: a float ``out=`` avoids integer overflow."""
    is_wider = kind.kind in "biu" or (wanted.itemsize > kind.itemsize)
    if wanted.kind not in "fc" or kind.kind == "c" != wanted.kind or not is_wider:
        return kind
    return np.promote_types(kind, wanted)


# In host memory, operators that return an element which decides, and where they begin.
_DECIDING: Any = {
    np.logical_or: (lambda a, b: a if a != 0 else b, 0),
    np.logical_and: (lambda a, b: b if a != 0 else a, 1),
}


def is_direct(a: Any, out: Any, kind: Dtype, name: str) -> bool:
    """Return whether `gpualgo.reduce` can write to ``out=``: same dtype, no overlap with a."""
    if out is None or _call.dtype_of(out, name) != kind:
        return False
    return not (is_host(a) and isinstance(out, np.ndarray) and np.may_share_memory(a, out))


def cast_result(result: Any, kind: Dtype, out: Any, name: str) -> Any:
    """Return a result cast to kind, or written to ``out=`` with unsafe casting, as NumPy does.

    Dropping an imaginary part gives NumPy's warning.
    """
    wanted = kind if out is None else _call.dtype_of(out, name)
    own = _call.dtype_of(result, name)
    if isinstance(result, (np.generic, np.ndarray)):
        if out is None:
            return np.asarray(result).astype(wanted, copy=False)[()]
        _call.check_shape(out, np.shape(result), name)
        np.copyto(out, result, casting="unsafe")
        return out
    if own == wanted and isinstance(result, LazyArray):
        return copy(result, out=out)
    if own == wanted and out is None:
        return result
    if own.kind == "c" != wanted.kind:
        _call.warn_of_parts(own, wanted)
        return copy(lazy_of(result).real.astype(wanted), out=out)
    if dtypes.can_cast(own, wanted) and not isinstance(result, LazyArray):
        return transform(same, result, dtype=wanted, out=out)
    return copy(lazy_of(result).astype(wanted), out=out)


def is_on_host(x: Any) -> bool:
    """Return whether a result is in host memory, so that reading it does not wait."""
    return isinstance(x, (bool, np.generic, np.ndarray))


def warn(text: str, is_so: Any) -> None:
    """Warn as NumPy does if a condition in host memory is true; device conditions are ignored."""
    if is_on_host(is_so) and np.any(is_so):
        _call.warn(text)


# --- ``ufunc.at``: on the host NumPy's; on a GPU one reduction by index, which starts from the old
# elements.


def at(ufunc: np.ufunc, a: Any, indices: Any, b: Any, name: str) -> None:
    operators.no_lazy_out(a, name)
    x = a if isinstance(a, np.ndarray) else array_of(a, f"{name}: a")
    items = indices if isinstance(indices, tuple) else (indices,)
    if isinstance(x, np.ndarray):
        items = tuple(host_of(one, name) if hasattr(one, "dtype") else one for one in items)
        operands = () if b is None else (host_of(array_of(b, f"{name}: b"), name),)
        ufunc.at(a, items if isinstance(indices, tuple) else items[0], *operands)
        return
    kind, wide, is_weak = _call.dtype_of(x, name), None, type(b) in (int, float, complex)
    combine = np.add if ufunc is np.subtract else ufunc
    if combine in reductions.RULES:
        b = b if is_weak else array_of(b, f"{name}: b")
        given = type(b) if is_weak else _call.dtype_of(b, name)
        wide = ufunc.resolve_dtypes((kind, given, None))[2]
    if wide is None or wide.kind != kind.kind:
        raise NotTaken(
            f"{name}: on a GPU the ufunc must be associative, or subtract, and its result of the "
            f"kind of a, {kind}; convert b, or use numpy.{name} on the host"
        )
    positions = _positions(x, items, name)
    if is_weak:
        b = np.asarray(b, wide)
    if type(b) is np.ndarray:
        b = _call.copy_to_device_of(x, b, name)
    values = _call.cast(lazy_of(b), wide, name).broadcast_to(positions.shape)
    if combine is not ufunc:
        values = applied(np.negative, (values,), name)
    flat, op = _call.cast(lazy_of(x).reshape(-1), wide, name), reductions.operator_of(combine, wide)
    with checks.renamed_errors(name, "reduce_by_index", {}):
        result = reduce_by_index(positions, values, flat.shape[0], copy(flat), op, dtype=wide)
    _call.evaluate_into(lazy_of(result).reshape(tuple(x.shape)), x, name)


def _next_position(position: Any, index: Any, length: Any) -> Any:
    """Return the position one axis further in; -1 for an index that is out of range."""
    index = index + length if index < 0 else index
    return position * length + index if position >= 0 and 0 <= index < length else np.int64(-1)


def _positions(a: Any, items: tuple[Any, ...], name: str) -> Any:
    """Return the positions of indexed elements in C order, as an array of the index's shape."""
    shape = tuple(a.shape)
    items = tuple(
        np.asarray(one, None if np.size(one) else INDEX)
        if isinstance(one, (list, int, np.generic))
        else one
        for one in items
    )
    if not items or not all(hasattr(one, "dtype") and one.dtype.kind in "iu" for one in items):
        if any(hasattr(one, "dtype") and not isinstance(one, np.ndarray) for one in items):
            raise NotTaken(f"{name}: indices on a GPU must be arrays of integers")
        every = np.arange(math.prod(shape)).reshape(shape)
        picked = np.asarray(every[items if len(items) != 1 else items[0]])
        return lazy_of(_call.copy_to_device_of(a, picked, name))
    if len(items) > len(shape):
        raise IndexError(f"{name}: a has {len(shape)} axes, but {len(items)} were indexed")
    index_shape, rest = np.broadcast_shapes(*(one.shape for one in items)), shape[len(items) :]
    ones = (1,) * len(rest)
    along = [np.arange(n).reshape(n, *ones[axis:]) for axis, n in enumerate(rest, 1)]
    position: Any = np.int64(0)
    for axis, (index, length) in enumerate(zip((*items, *along), shape, strict=True)):
        if isinstance(index, np.ndarray):
            wrong = index[(index < -length) | (index >= length)]
            if wrong.size:
                place = f"axis {axis} with size {length}"
                raise IndexError(f"{name}: index {wrong.flat[0]} is out of bounds for {place}")
            index = _call.copy_to_device_of(a, index, name)
        index = lazy_of(index)
        if index.dtype == np.uint64:  # or an index beyond int64 would become negative
            index = applied(np.minimum, (index, np.uint64(2**63 - 1)), name)
        if axis < len(items) and ones:
            index = index.broadcast_to(index_shape).reshape(*index_shape, *ones)
        position = applied(_next_position, (position, index.astype(INDEX), np.int64(length)), name)
    return position.broadcast_to((*index_shape, *rest))


# --- ``ufunc.reduceat``: one segmented reduction. The first element of a segment is its initial
# value, so that no identity is needed.


def reduceat(
    ufunc: np.ufunc, x: Any, indices: Any, axis: int, dtype: Any, out: Any, name: str
) -> Any:
    starts = np.asarray(host_of(array_of(indices, f"{name}: indices"), name))
    is_empty_list = not starts.size and not hasattr(indices, "dtype")  # NumPy makes it float64
    if starts.ndim != 1:
        raise ValueError(f"{name}: indices must have one dimension, not {starts.ndim}")
    if not is_empty_list and not np.can_cast(starts.dtype, np.int64):
        raise TypeError(f"{name}: indices are {starts.dtype}; convert them to int64")
    starts, length = starts.astype(np.int64), x.shape[axis]
    wrong = starts[(starts < 0) | (starts >= length)]
    if wrong.size:
        raise IndexError(f"{name}: index {wrong[0]} is out of bounds for axis of size {length}")
    out = _call.out_of(out, name)
    x, op, kind, wide = converted_for_scan(ufunc, x, dtype, out, name)
    shape = (*x.shape[:axis], len(starts), *x.shape[axis + 1 :])
    if 0 in shape:
        return _call.evaluate_into(full(shape, 0, dtype=kind), out, name)
    x = copy(x) if is_lazy(x) else _call.aligned(x)
    ends = np.append(starts[1:], length)
    ends = np.where(ends > starts, ends, starts + 1)
    if (ends[:-1] > starts[1:] + 1).any():  # segments overlap: copy them one after the other
        lengths = ends - starts
        bounds = np.cumsum(lengths)
        begins = bounds - lengths
        picked = np.arange(bounds[-1]) + np.repeat(starts - begins, lengths)
        x = copy(take(x, _call.copy_to_device_of(x, picked, name), axis=axis))
        starts, ends, length = begins, bounds, bounds[-1]
    last, others = x.ndim - 1, [i for i in range(x.ndim) if i != axis]
    if last:
        x = copy(lazy_of(x).transpose(*others, axis).reshape(-1))
    rows = length * np.arange(x.shape[0] // length)[:, None]
    offsets = (rows[..., None] + np.stack([starts + 1, ends], -1)).reshape(-1)
    firsts = np.repeat(rows + starts, 2)[:-1]
    offsets, firsts = (_call.copy_to_device_of(x, each, name) for each in (offsets, firsts))
    init = copy(_call.cast(take(x, firsts), wide, name))
    result = lazy_of(segmented_reduce(x, offsets, init, op, dtype=wide))[::2]
    if last:
        result = result.reshape(*[shape[i] for i in others], len(starts))
        result = result.transpose(*range(axis), last, *range(axis, last))
    return _call.evaluate_into(_call.cast(result, kind, name), out, name)
