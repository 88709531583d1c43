"""Shared parts of NumPy's reductions: axes, masks, initial values, outputs."""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np

from gpualgo._algorithms.reduce import reduce
from gpualgo._algorithms.transform import transform
from gpualgo._algorithms.transform.copying import copy
from gpualgo._base import dtypes
from gpualgo._base.errors import shown
from gpualgo._lazy.kept import Again
from gpualgo._pipeline import checks
from gpualgo.lazy import LazyArray, reductions
from gpualgo.lazy import asarray as lazy_of
from gpualgo.numpy._call import results
from gpualgo.numpy._call.arguments import ARRAY_TYPES, NotTaken, is_host
from gpualgo.numpy._folds.masks import MASKED, identity_of, mask_of

UNSET: Any = np._NoValue
Dtype = np.dtype[Any]

_NUMBERS = frozenset((bool, int, float, complex))
# Earlier reductions without options, by the input's dtype: initial value, operator, result's dtype.
_plain_reductions: dict[tuple[np.ufunc, Any], tuple[Any, Any, Dtype]] = {}
BOOL = np.dtype(bool)
INDEX = np.dtype(np.intp)


def reduced(
    ufunc: np.ufunc, a: Any, axis: Any, dtype: Any, out: Any, keepdims: Any, initial: Any,
    where: Any, name: str,
) -> Any:  # fmt: skip
    """Return ``ufunc.reduce`` in one pass."""
    if dtype is out is None and where is initial is UNSET:
        plan = _earlier_plan(ufunc, a)
        if plan is not None and (axis is None or (type(axis) is int and len(a.shape))):
            keepdims = False if keepdims is UNSET else flag_of(keepdims, name)
            return reduce(a, plan[0], plan[1], axis=axis, keepdims=keepdims, dtype=plan[2])
    return _reduced(ufunc, a, axis, dtype, out, keepdims, initial, where, name)


def _earlier_plan(ufunc: np.ufunc, a: Any) -> tuple[Any, Any, Dtype] | None:
    """Return how an array of a GPU or a kept expression was reduced before without options."""
    is_kept = type(a) is Again
    if not is_kept and type(a) not in ARRAY_TYPES:
        return None
    plan = _plain_reductions.get((ufunc, a.dtype))
    if plan is None or 0 in a.shape or (is_kept and plan[2] != a.dtype):
        return None
    return plan


def _reduced(
    ufunc: np.ufunc, a: Any, axis: Any, dtype: Any, out: Any, keepdims: Any, initial: Any,
    where: Any, name: str,
) -> Any:  # fmt: skip
    a, keepdims, out = arrayed(a, name), flag_of(keepdims, name), results.out_of(out, name)
    axis = axis_of(axis, a.ndim, name)
    if 0 in a.shape:
        check_some(ufunc, a.shape, axis, initial, name)
    own = results.dtype_of(a, name)
    kind = _kind_of(ufunc, own, dtype, out, name)
    if dtype is None and out is not None and initial is not UNSET:
        # NumPy casts `initial` to out's dtype.
        wanted = results.dtype_of(out, name)
        kind = wanted if dtypes.can_cast(kind, wanted) and kind != BOOL else kind
    start = start_of(initial, kind)
    a, own = real_of(a, own, kind)
    if initial is UNSET:
        start = reductions.started(ufunc, kind)
    if (mask := mask_of(where, a.shape, name)) is not None:
        replacement = identity_of(ufunc, start, kind, name)
        a = MASKED((a, mask), name, kind, replacement, replacement.tobytes())
    elif not isinstance(a, LazyArray):
        if kind == BOOL != own and start is None and is_host(a) and ufunc in _DECIDING:
            return settled(_any_or_all(ufunc, a, axis, keepdims), kind, out, name)
        wide = reductions.wide(kind)
        if own == kind or (reductions.RULES[ufunc] == "sum" and dtypes.can_cast(own, wide)):
            op = reductions.operator_of(ufunc, kind)
            direct_out = out if is_direct(a, out, wide, name) else None
            if initial is UNSET and dtype is out is None and wide == kind:
                _plain_reductions[ufunc, a.dtype] = start, op, wide
            result = reduce(a, start, op, axis=axis, keepdims=keepdims, dtype=wide, out=direct_out)
            if direct_out is not None or (out is None and wide == kind):
                return result
            return settled(result, kind, out, name)
    elif dtype is out is None and initial is UNSET and own == kind == reductions.wide(kind):
        _plain_reductions[ufunc, kind] = start, reductions.operator_of(ufunc, kind), kind
    result = reductions.reduced(ufunc, lazy_of(a), axis, kind, None, keepdims, start, name)
    return settled(result, kind, out, name)


def check_some(
    ufunc: np.ufunc,
    shape: tuple[int, ...],
    axis: Any,
    initial: Any,
    name: str,
    cure: str = "; pass initial=",
) -> None:
    """Raise ValueError for a reduction over no elements without an identity or initial value."""
    if initial is not None and (initial is not UNSET or ufunc.identity is not None):
        return
    if not all(shape[i] for i in checks.axes_of(axis, len(shape), name)):
        raise ValueError(
            f"{name}: there are no elements along the axes: zero-size array to reduction operation "
            f"{ufunc.__name__} which has no identity{cure}"
        )


def real_of(a: Any, own: Dtype, kind: Dtype) -> tuple[Any, Dtype]:
    """Return complex numbers without imaginary parts if the result is real."""
    if own.kind != "c" or kind.kind in "cb":
        return a, own
    results.warn_of_parts(own, kind, stacklevel=6)
    real = lazy_of(a).real
    return real, real.dtype


def arrayed(a: Any, name: str) -> Any:
    """Return an argument as an array, also a number."""
    if type(a) in _NUMBERS:
        return np.asarray(a)
    if a is None:
        raise NotTaken(f"{name}: a is None; pass an array")
    return a


def flag_of(keepdims: Any, name: str) -> bool:
    """Return ``keepdims=`` as True or False."""
    if keepdims is UNSET:
        return False
    if type(keepdims) is not bool:
        try:
            return bool(operator.index(keepdims))
        except TypeError:
            if not isinstance(keepdims, np.bool_):
                raise TypeError(
                    f"{name}: keepdims must be True or False, got {shown(keepdims)}"
                ) from None
    return bool(keepdims)


def axis_of(axis: Any, ndim: int, name: str) -> Any:
    """Return axes as `gpualgo.reduce` takes them; NumPy also accepts an axis of a 0-d array."""
    if axis is None or (type(axis) is int and ndim):
        return axis
    return reductions.axis_of(axis, ndim, name)


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


def _kind_of(ufunc: np.ufunc, own: Any, dtype: Any, out: Any, name: str) -> Any:
    """Return the dtype to compute in; sums use that of a wider ``out=``, as in NumPy."""
    rule = reductions.RULES[ufunc]
    if rule is reductions.BOOL:
        reductions.check_bool(ufunc, dtype, name)
        return BOOL
    if dtype is not None:
        return dtypes.as_dtype(dtype, name)
    kind = reductions.sum_dtype(own) if rule is reductions.SUM else own
    if out is None or rule is not reductions.SUM:
        return kind
    return wider(kind, results.dtype_of(out, name))


def wider(kind: Dtype, wanted: Dtype) -> Dtype:
    """Return the dtype for sums of numbers of kind: a float ``out=`` avoids integer overflow."""
    is_wider = kind.kind in "biu" or (wanted.itemsize > kind.itemsize)
    if wanted.kind not in "fc" or kind.kind == "c" != wanted.kind or not is_wider:
        return kind
    return np.promote_types(kind, wanted)


# --- any and all of numbers -------------------------------------------------------------------


def _first_true(a: Any, b: Any) -> Any:
    return a if a != 0 else b


def _first_false(a: Any, b: Any) -> Any:
    return b if a != 0 else a


_DECIDING: dict[np.ufunc, tuple[Any, int]] = {
    np.logical_or: (_first_true, 0),
    np.logical_and: (_first_false, 1),
}


def _any_or_all(ufunc: np.ufunc, a: Any, axis: Any, keepdims: bool) -> Any:
    """Return any or all of numbers in host memory: the operator returns a deciding element."""
    op, identity = _DECIDING[ufunc]
    return reduce(a, identity, op, axis=axis, keepdims=keepdims) != 0


# --- results ----------------------------------------------------------------------------------


def is_direct(a: Any, out: Any, kind: Dtype, name: str) -> bool:
    """Return whether `gpualgo.reduce` can write to ``out=``: same dtype, no overlap with a."""
    if out is None or results.dtype_of(out, name) != kind:
        return False
    return not (is_host(a) and isinstance(out, np.ndarray) and np.may_share_memory(a, out))


def settled(found: Any, kind: Dtype, out: Any, name: str) -> Any:
    """Return a result cast to kind, or written to ``out=`` with unsafe casting, as NumPy does.

    Dropping an imaginary part gives NumPy's warning.
    """
    wanted = kind if out is None else results.dtype_of(out, name)
    own = results.dtype_of(found, name)
    if isinstance(found, (np.generic, np.ndarray)):
        if out is None:
            return np.asarray(found).astype(wanted, copy=False)[()]
        if out.shape != np.shape(found):
            raise ValueError(f"{name}: out has shape {out.shape}, the result has {np.shape(found)}")
        np.copyto(out, found, casting="unsafe")
        return out
    if own == wanted and isinstance(found, LazyArray):
        return copy(found, out=out)
    if own == wanted and out is None:
        return found
    if own.kind == "c" != wanted.kind:
        results.warn_of_parts(own, wanted, stacklevel=5)
        return copy(lazy_of(found).real.astype(wanted), out=out)
    if dtypes.can_cast(own, wanted) and not isinstance(found, LazyArray):
        return transform(_identity, found, dtype=wanted, out=out)
    return copy(lazy_of(found).astype(wanted), out=out)


def _identity(value: Any) -> Any:
    return value


def is_there(x: Any) -> bool:
    """Return whether a result is in host memory, so that reading it does not wait."""
    return isinstance(x, (bool, np.generic, np.ndarray))


def warn(text: str, is_so: Any, stacklevel: int = 5) -> None:
    """Warn as NumPy does if a condition in host memory is true; device conditions are ignored."""
    if is_there(is_so) and np.any(is_so):
        warnings.warn(text, RuntimeWarning, stacklevel=stacklevel)
