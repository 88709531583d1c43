"""Interpolation between elements of two ranks: the operators, and the choice of backend."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo import lazy
from gpualgo._algorithms.transform import transform
from gpualgo._lazy.kept import Kept
from gpualgo._operators.markers import same
from gpualgo.numpy._call.arguments import is_host
from gpualgo.numpy._ranks.order_statistics import Rows

_SMALL = 1 << 16  # results in host memory that NumPy computes


def _up(a: Any, b: Any, t: Any) -> Any:
    return a + (b - a) * t


def _down(a: Any, b: Any, complement: Any) -> Any:
    return b - (b - a) * complement


def _up_long(a: Any, b: Any, t: Any) -> Any:
    return a + np.float64(np.uint64(b) - np.uint64(a)) * t  # int64 may overflow


def _down_long(a: Any, b: Any, complement: Any) -> Any:
    return b - np.float64(np.uint64(b) - np.uint64(a)) * complement


def middle(a: Any, b: Any) -> Any:
    return (a + b) / 2


def nan_or(value: Any, last: Any) -> Any:
    return np.where(last != last, last, value)


# The same operators, with NaN for rows that have one.


def _up_or_nan(a: Any, b: Any, t: Any, last: Any) -> Any:
    return nan_or(_up(a, b, t), last)


def _down_or_nan(a: Any, b: Any, complement: Any, last: Any) -> Any:
    return nan_or(_down(a, b, complement), last)


def _middle_or_nan(a: Any, b: Any, last: Any) -> Any:
    return nan_or(middle(a, b), last)


_OR_NAN = {_up: _up_or_nan, _down: _down_or_nan, middle: _middle_or_nan, same: nan_or}


def _is_small(rows: Rows) -> bool:
    return is_host(rows.x) and rows.x.size <= _SMALL * rows.length


def made(
    op: Any, elements: tuple[Any, ...], numbers: tuple[Any, ...], last: Any, kind: Any, out: Any,
    rows: Rows, wide: Any,
) -> Any:  # fmt: skip
    """Return op of elements (cast to `wide`) and numbers, with NaN for rows that have one."""
    is_wide = wide == rows.dtype
    if _is_small(rows):
        with np.errstate(all="ignore"):
            value = op(*elements if is_wide else [one.astype(wide) for one in elements], *numbers)
            value = np.asarray(value if last is None else nan_or(value, last), kind)
        if out is not None:
            out[...] = value
        return value
    if is_wide:
        args = (*elements, *numbers)
        if last is not None:
            op, args = _OR_NAN[op], (*args, last)
        return transform(op, *args, dtype=kind, out=out)
    inputs = elements if last is None else (*elements, last)
    number_types = tuple(map(type, numbers))
    value = _WIDE(inputs, "quantiles", op, numbers, number_types, wide, last is not None)
    return transform(same, value, dtype=kind, out=out)


def _convert_and_apply(*args: Any) -> Any:
    *elements, op, numbers, _, wide, has_last = args
    last = elements.pop() if has_last else None
    value = lazy.transform(op, *[one.astype(wide) for one in elements], *numbers)
    return value if last is None else lazy.transform(nan_or, value, last)


_WIDE = Kept(_convert_and_apply)


def between(part: Any, rest: Any, own: Any, kind: Any) -> tuple[Any, Any, Any]:
    """Return NumPy's `_lerp` between two elements as three values.

    An operator, the weight that it takes, and the dtype to which elements are converted.
    """
    is_long = own.kind in "iu" and own.itemsize == 8
    wide = kind if own.kind in "iu" and not is_long else own
    if part >= 0.5:
        return _down_long if is_long else _down, rest, wide
    return _up_long if is_long else _up, part, wide
