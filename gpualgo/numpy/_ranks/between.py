"""What is made of elements of one or two ranks: operators, and who computes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo import lazy
from gpualgo._algorithms.transform import transform
from gpualgo._lazy.kept import Kept
from gpualgo._operators.markers import same
from gpualgo.numpy._call.arguments import is_host
from gpualgo.numpy._ranks.order_statistics import Rows

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


def nan_or(value: Any, last: Any) -> Any:
    return np.where(last != last, last, value)


# The same, NaN of rows that have one: operators of whose parts each is as NumPy has it.


def _up_or_nan(a: Any, b: Any, part: Any, last: Any) -> Any:
    return nan_or(_up(a, b, part), last)


def _down_or_nan(a: Any, b: Any, rest: Any, last: Any) -> Any:
    return nan_or(_down(a, b, rest), last)


def _middle_or_nan(a: Any, b: Any, last: Any) -> Any:
    return nan_or(middle(a, b), last)


_OR_NAN = {_up: _up_or_nan, _down: _down_or_nan, middle: _middle_or_nan, same: nan_or}


def _is_made_here(rows: Rows) -> bool:
    return is_host(rows.x) and rows.x.size <= _SMALL * rows.length


def made(
    op: Any, elements: tuple[Any, ...], numbers: tuple[Any, ...], last: Any, kind: Any, out: Any,
    rows: Rows, wide: Any,
) -> Any:  # fmt: skip
    """Return what op makes of elements as `wide` and numbers, or NaN where a row has one.

    Into ``out`` if given.
    """
    is_wide = wide == rows.dtype
    if _is_made_here(rows):
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
    read = elements if last is None else (*elements, last)
    typed = tuple(map(type, numbers))
    value = _WIDE(read, "quantiles", op, numbers, typed, wide, last is not None)
    return transform(same, value, dtype=kind, out=out)


def _converted(*given: Any) -> Any:
    *elements, op, numbers, _, wide, looks = given
    last = elements.pop() if looks else None
    value = lazy.transform(op, *[one.astype(wide) for one in elements], *numbers)
    return value if last is None else lazy.transform(nan_or, value, last)


_WIDE = Kept(_converted)


def between(part: Any, rest: Any, own: Any, kind: Any) -> tuple[Any, Any, Any]:
    """Return what computes the number between two elements, as NumPy's `_lerp`.

    Besides what part of the way, and the dtype that elements are converted to.
    """
    is_long = own.kind in "iu" and own.itemsize == 8
    wide = kind if own.kind in "iu" and not is_long else own
    if part >= 0.5:
        return _down_of_long if is_long else _down, rest, wide
    return _up_of_long if is_long else _up, part, wide
