"""Reductions of whole arrays on the CPU by NumPy's vectorised loops, with the bits of our kernels.

The results of extremes, bitwise and logical operators, and counts of bools do not depend on the
order, except for the sign of a zero and the choice of a NaN. Kernels return the first in memory, so
if NumPy's result is a zero or NaN, its first occurrence is searched. See docs/adr/0028.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from gpualgo._base import records, threads
from gpualgo._base.records import Element
from gpualgo._cpu.plan import Plan, of_numpy
from gpualgo._operators.operator import Operator

Array: TypeAlias = np.ndarray[Any, Any]
Fold: TypeAlias = Callable[[Array], Any]  # folds at least one contiguous element

_LEAST_BYTES = 1 << 15  # below this a kernel finishes before NumPy has started
_PIECE_BYTES = 1 << 21  # work of one task


def fold_of(op: Operator, x: Array, axes: tuple[int, ...], source: Element, acc: Any) -> Any:
    """Return the fold of an array of this layout to one element, or None if a kernel is needed."""
    name = op.name or _name_of(op.fn)
    if name is None or len(axes) != x.ndim or x.nbytes < _LEAST_BYTES:
        return None
    if records.is_record(source) or records.is_position(source) or records.is_record(acc):
        return None
    is_in_order = x.flags.c_contiguous or (x.flags.f_contiguous and op.commutative)
    return _fold_for(name, x.dtype, acc) if is_in_order and x.flags.aligned else None


def _name_of(fn: Any) -> str | None:
    """Return the name of functions that are recognised here only."""
    return "fmin" if fn is np.fmin else "fmax" if fn is np.fmax else None


def _fold_for(name: str, dtype: np.dtype[Any], acc: np.dtype[Any]) -> Fold | None:
    kind = dtype.kind
    if kind == "b" and name == "add" and acc.kind in "iu":
        return _count
    if dtype != acc:
        return None
    if kind == "b":
        return _BOOL_FOLDS.get(name)
    if kind in "iu" or (kind == "f" and dtype.itemsize > 2):
        fold = _EXTREMES.get(name)
        if fold is not None:
            return fold if kind == "f" else _reduce_method(getattr(np, name))
    if kind in "iu" and name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        return _reduce_method(getattr(np, name))
    return None


def _fold_into(fold: Fold, x: Array, out: Array) -> None:
    flat = x.ravel(order="K")
    tasks = max(1, flat.nbytes // _PIECE_BYTES) if flat.nbytes >= threads.LARGE_BYTES else 1
    with np.errstate(invalid="ignore"):
        if tasks == 1 or threads.num_threads() == 1:
            out[...] = fold(flat)
            return
    deciding = _DECIDING.get(fold)  # a partial result that decides the result
    parts: list[Any] = [not deciding] * tasks
    if deciding is not None:  # often the first piece decides
        parts[0] = fold(flat[: flat.size // tasks])

    def body(first: int, last: int) -> None:
        with np.errstate(invalid="ignore"):  # the error state is per thread
            for task in range(first, last):
                if deciding is not None and deciding in parts:
                    return
                start, stop = (flat.size * i // tasks for i in (task, task + 1))
                parts[task] = fold(flat[start:stop])

    threads.run(body, tasks, flat.nbytes)
    results = np.array(parts)
    out[...] = np.array(results.sum()) if fold is _count else fold(results)


def plan_of(op: Operator, fold: Fold, x: Array) -> Plan:
    name = "count_nonzero" if fold is _count else str(op.name or _name_of(op.fn))
    is_shared = x.nbytes >= threads.LARGE_BYTES and threads.num_threads() > 1
    tasks = x.nbytes // _PIECE_BYTES if is_shared else 1
    return Plan(
        lambda arrays, outs, _: _fold_into(fold, arrays[0], outs[0]),
        [of_numpy(name, x.size, tasks, x.nbytes)],
    )


def _reduce_method(ufunc: np.ufunc) -> Fold:
    return ufunc.reduce


def _least(x: Array) -> Any:
    result = np.minimum.reduce(x)
    return result if result < 0 or result > 0 else x[x.argmin()]


def _greatest(x: Array) -> Any:
    result = np.maximum.reduce(x)
    return result if result < 0 or result > 0 else x[x.argmax()]


def _least_number(x: Array) -> Any:
    return _first_equal(x, np.fmin.reduce(x))


def _greatest_number(x: Array) -> Any:
    return _first_equal(x, np.fmax.reduce(x))


def _first_equal(x: Array, result: Any) -> Any:
    """Return the first zero if the result is zero, the first element if all are NaN."""
    if result < 0 or result > 0:
        return result
    return x[(x == 0).argmax()] if result == 0 else x[0]


def _any(x: Array) -> Any:
    return np.logical_or.reduce(x)


def _all(x: Array) -> Any:
    return np.logical_and.reduce(x)


def _count(x: Array) -> Any:
    return np.array(np.count_nonzero(x))  # an array wraps on assignment


_EXTREMES: dict[str, Fold] = {
    "minimum": _least,
    "maximum": _greatest,
    "fmin": _least_number,
    "fmax": _greatest_number,
}
_BOOL_FOLDS: dict[str, Fold] = {
    "logical_or": _any, "bitwise_or": _any, "maximum": _any, "logical_and": _all,
    "bitwise_and": _all, "minimum": _all,
}  # fmt: skip
_DECIDING: dict[Fold, bool] = {_any: True, _all: False}
