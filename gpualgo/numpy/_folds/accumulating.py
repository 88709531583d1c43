"""Shared parts of cumulative functions and ``ufunc.accumulate``: one scan, in NumPy's dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._algorithms.scan import inclusive_scan
from gpualgo._algorithms.transform import transform
from gpualgo._base import dtypes
from gpualgo._lazy import is_lazy, ufuncs
from gpualgo._lazy.combining import applied
from gpualgo._pipeline import checks
from gpualgo.lazy import asarray as lazy_of
from gpualgo.lazy import reductions
from gpualgo.numpy._call import results
from gpualgo.numpy._call.arguments import ARRAY_TYPES

# Earlier scans without options, by the input's dtype: the operator and the result's dtype.
_plain_scans: dict[tuple[np.ufunc, Any], tuple[Any, Any]] = {}


def accumulated(ufunc: np.ufunc, x: Any, axis: Any, dtype: Any, out: Any, name: str) -> Any:
    """Return ``ufunc.accumulate``: one scan, and a conversion if it computes in a wider dtype.

    Raises
    ------
    TypeError, ValueError, numpy.exceptions.AxisError
        As NumPy.
    """
    if dtype is out is None and (axis is None or type(axis) is int) and type(x) in ARRAY_TYPES:
        plan = _plain_scans.get((ufunc, x.dtype))
        if plan is not None and (axis is None or x.ndim):
            return inclusive_scan(x, None, plan[0], axis=axis, dtype=plan[1])
    out = results.out_of(out, name)
    if out is not None:
        ufuncs.no_lazy_out(out, name)
    if axis is not None and type(axis) is not int:
        axis = checks.plain_axis(axis, name)
    if not x.ndim and axis is not None:
        raise TypeError(f"{name}: a 0-d array has no axis; pass axis=None")
    own = results.dtype_of(x, name)
    kind = _kind_of(ufunc, own, dtype, out, name)
    wide = reductions.wide_of(ufunc, kind)
    if own != wide and not (dtypes.can_cast(own, wide) and own.kind != "b"):
        results.warn_of_parts(own, wide, stacklevel=6)
        x = _converted(ufunc, x, own, wide, name)
    op = reductions.operator_of(ufunc, wide)
    wanted = kind if out is None else results.dtype_of(out, name)
    if out is None and wanted == wide:
        if dtype is None and type(x) in ARRAY_TYPES:
            _plain_scans[ufunc, x.dtype] = op, wide
        return inclusive_scan(x, None, op, axis=axis, dtype=wide)
    if wanted == wide:
        try:
            return inclusive_scan(x, None, op, axis=axis, dtype=wide, out=out)
        except ValueError:  # out overlaps x, or has another shape: `stored` raises
            pass
    result = inclusive_scan(x, None, op, axis=axis, dtype=wide)
    if out is None:  # the result is a narrower float
        return transform(_identity, result, dtype=wanted)
    return results.stored(lazy_of(result), out, name)


def _identity(a: Any) -> Any:
    return a


def _kind_of(ufunc: np.ufunc, own: Any, dtype: Any, out: Any, name: str) -> Any:
    """Return the dtype of the results before they are written to out."""
    rule = reductions.RULES[ufunc]
    if rule is reductions.BOOL:
        reductions.check_bool(ufunc, dtype, name)
        return np.dtype(bool)
    if dtype is not None:
        return dtypes.as_dtype(dtype, name)
    if out is not None:  # as in NumPy
        return results.dtype_of(out, name)
    if rule is reductions.OWN:
        return ufunc.resolve_dtypes((own, own, None))[2]
    return reductions.sum_dtype(own) if rule is reductions.SUM else own


def _converted(ufunc: np.ufunc, x: Any, own: Any, wide: Any, name: str) -> Any:
    if reductions.RULES[ufunc] is reductions.BOOL:
        return applied(np.bool_, (x,), name)
    return ufuncs.cast(x if is_lazy(x) else lazy_of(x), own, wide, name)
