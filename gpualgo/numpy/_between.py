"""What is made of elements of one or two ranks: operators, and who computes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo import lazy
from gpualgo._algorithms.transform import transform
from gpualgo.numpy._arguments import is_host
from gpualgo.numpy._order_statistics import Rows

_SMALL = 1 << 16  # results in host memory that NumPy makes


def _up(a: Any, b: Any, part: Any) -> Any:
    return a + (b - a) * part


def _down(a: Any, b: Any, rest: Any) -> Any:
    return b - (b - a) * rest


def _up_of_long(a: Any, b: Any, part: Any) -> Any:
    return a + np.float64(np.uint64(b) - np.uint64(a)) * part  # whatever overflows in between


def _down_of_long(a: Any, b: Any, rest: Any) -> Any:
    return b - np.float64(np.uint64(b) - np.uint64(a)) * rest


def middle(a: Any, b: Any) -> Any:
    return (a + b) / 2


def same(a: Any) -> Any:
    return a


def second(a: Any, b: Any) -> Any:
    return b


def nan_or(value: Any, last: Any) -> Any:
    return np.where(last != last, last, value)


def _is_made_here(rows: Rows) -> bool:
    return is_host(rows.x) and rows.x.size <= _SMALL * rows.length


def made(op: Any, args: tuple[Any, ...], last: Any, kind: Any, out: Any, rows: Rows) -> Any:
    """Return what op makes of elements, or NaN where a row has one; into ``out`` if given."""
    if not _is_made_here(rows):
        made = lazy.transform(op, *args)
        if last is None:
            return transform(same, made, dtype=kind, out=out)
        return transform(nan_or, made, last, dtype=kind, out=out)
    with np.errstate(all="ignore"):
        value = op(*args)
        value = np.asarray(value if last is None else nan_or(value, last), kind)
    if out is not None:
        out[...] = value
    return value


def as_dtype(x: Any, kind: Any) -> Any:
    return (
        x.astype(kind) if isinstance(x, (np.generic, np.ndarray)) else lazy.asarray(x).astype(kind)
    )


def between(low: Any, high: Any, part: Any, rest: Any, own: Any, kind: Any) -> tuple[Any, Any]:
    """Return what computes the number between two elements, as NumPy's `_lerp`, and of what."""
    is_long = own.kind in "iu" and own.itemsize == 8
    if own.kind in "iu" and not is_long:
        low, high = as_dtype(low, kind), as_dtype(high, kind)
    if part >= 0.5:
        return _down_of_long if is_long else _down, (low, high, rest)
    return _up_of_long if is_long else _up, (low, high, part)
