"""Whole arrays on the CPU by NumPy's vectorised loops, where the bits are those of our kernels.

Extremes, bitwise and logical operators, and counts of bools do not depend on the order, but for two
things: of which sign a zero is, and which NaN is found. Kernels give the first one in memory; where
NumPy finds a zero or NaN the first of them is looked for. See docs/adr/0028.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from gpualgo._base import records, threads
from gpualgo._base.records import Element
from gpualgo._operators.operator import Operator
from gpualgo._pipeline.routines import Routine, of_numpy

Array: TypeAlias = np.ndarray[Any, Any]
Fold: TypeAlias = Callable[[Array], Any]  # of elements that lie side by side, at least one

_LEAST_BYTES = 1 << 15  # with fewer a kernel is done before NumPy has begun
_PIECE_BYTES = 1 << 21  # what a thread does at once


def fold_of(op: Operator, x: Array, axes: tuple[int, ...], source: Element, acc: Any) -> Any:
    """Return the fold of an array of this layout to one element, or None: by a kernel."""
    name = op.name or _name_of(op.fn)
    if name is None or len(axes) != x.ndim or x.nbytes < _LEAST_BYTES:
        return None
    if records.is_record(source) or records.is_position(source) or records.is_record(acc):
        return None
    is_in_order = x.flags.c_contiguous or (x.flags.f_contiguous and op.commutative)
    return _folds(name, x.dtype, acc) if is_in_order and x.flags.aligned else None


def _name_of(fn: Any) -> str | None:
    """Return the name of what compilers do not know by name."""
    return "fmin" if fn is np.fmin else "fmax" if fn is np.fmax else None


def _folds(name: str, own: np.dtype[Any], acc: np.dtype[Any]) -> Fold | None:
    kind = own.kind
    if kind == "b" and name == "add" and acc.kind in "iu":
        return _count
    if own != acc:
        return None
    if kind == "b":
        return _OF_BOOLS.get(name)
    if kind in "iu" or (kind == "f" and own.itemsize > 2):
        found = _EXTREMES.get(name)
        if found is not None:
            return found if kind == "f" else _plain(getattr(np, name))
    if kind in "iu" and name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        return _plain(getattr(np, name))
    return None


def folded(fold: Fold, x: Array, out: Array) -> None:
    """Write to out, of no dimension, what a fold makes of an array that `fold_of` was asked of."""
    flat = x.ravel(order="K")
    tasks = max(1, flat.nbytes // _PIECE_BYTES) if flat.nbytes >= threads.LARGE_BYTES else 1
    with np.errstate(invalid="ignore"):
        if tasks == 1 or threads.num_threads() == 1:
            out[...] = fold(flat)
            return
    end = _ENDS.get(fold)  # what no later piece changes
    parts: list[Any] = [not end] * tasks
    if end is not None:  # it is often found at once
        parts[0] = fold(flat[: flat.size // tasks])

    def body(first: int, last: int) -> None:
        with np.errstate(invalid="ignore"):  # each thread has a state of its own
            for task in range(first, last):
                if end is not None and end in parts:
                    return
                begin, stop = (flat.size * i // tasks for i in (task, task + 1))
                parts[task] = fold(flat[begin:stop])

    threads.run(body, tasks, flat.nbytes)
    whole = np.array(parts)
    out[...] = np.array(whole.sum()) if fold is _count else fold(whole)


def routine(op: Operator, fold: Fold, x: Array) -> Routine:
    """Return what `folded` would run."""
    name = "count_nonzero" if fold is _count else str(op.name or _name_of(op.fn))
    is_shared = x.nbytes >= threads.LARGE_BYTES and threads.num_threads() > 1
    return of_numpy(name, x.size, x.nbytes // _PIECE_BYTES if is_shared else 1, x.nbytes)


def _plain(ufunc: np.ufunc) -> Fold:
    return ufunc.reduce


def _least(x: Array) -> Any:
    found = np.minimum.reduce(x)
    return found if found < 0 or found > 0 else x[x.argmin()]


def _greatest(x: Array) -> Any:
    found = np.maximum.reduce(x)
    return found if found < 0 or found > 0 else x[x.argmax()]


def _least_number(x: Array) -> Any:
    return _first(x, np.fmin.reduce(x))


def _greatest_number(x: Array) -> Any:
    return _first(x, np.fmax.reduce(x))


def _first(x: Array, found: Any) -> Any:
    """Return the first zero where one is found, the first NaN where all are."""
    if found < 0 or found > 0:
        return found
    return x[(x == 0).argmax()] if found == 0 else x[0]


def _any(x: Array) -> Any:
    return np.logical_or.reduce(x)


def _all(x: Array) -> Any:
    return np.logical_and.reduce(x)


def _count(x: Array) -> Any:
    return np.array(np.count_nonzero(x))  # an array wraps where it is written


_EXTREMES: dict[str, Fold] = {
    "minimum": _least,
    "maximum": _greatest,
    "fmin": _least_number,
    "fmax": _greatest_number,
}
_OF_BOOLS: dict[str, Fold] = {
    "logical_or": _any, "bitwise_or": _any, "maximum": _any, "logical_and": _all,
    "bitwise_and": _all, "minimum": _all,
}  # fmt: skip
_ENDS: dict[Fold, bool] = {_any: True, _all: False}
