"""Selections by conditions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from gpualgo import count, find, lazy, select, transform
from gpualgo._lazy import is_lazy
from gpualgo._lazy.combining import applied, quotient
from gpualgo._lazy.expression_cache import ExpressionCache
from gpualgo.numpy import _call
from gpualgo.numpy._call import ARRAY_TYPES, UNSET, array_of, is_host, numpy_function

# --- Which elements are not zero: flags and indices.


def flags_of(x: Any, where: str) -> Any:
    """Return which elements are true, as an array of bool."""
    if _call.dtype_of(x, where) == _call.BOOL and not is_lazy(x):
        return x
    return transform(_call.is_true, x)


@lru_cache(256)
def _positions_of(shape: tuple[int, ...]) -> Any:
    return lazy.arange(math.prod(shape)).reshape(shape)


def flat_indices(x: Any, where: str) -> Any:
    """Return the indices, in C order, of the elements that are true."""
    return select(_positions_of(tuple(x.shape)), flags_of(x, where))


_INDEX = np.dtype(np.int64)
_FEW_INDICES = 1 << 15
_FEW_CHOICES = 1 << 16  # of three arrays: NumPy 19 µs, here 28


def _split(index: Any, length: Any, inverse: Any) -> Any:
    first = quotient(index, length, inverse)
    return first, np.int64(index) - first * length


def _split_twice(index: Any, length: Any, inverse: Any, other: Any, inverse_of_other: Any) -> Any:
    rest, last = _split(index, length, inverse)
    first, middle = _split(rest, other, inverse_of_other)
    return first, middle, last


def _split_thrice(
    index: Any, length: Any, inverse: Any, other: Any, inverse_of_other: Any, third: Any,
    inverse_of_third: Any,
) -> Any:  # fmt: skip
    rest, last = _split(index, length, inverse)
    first, second, middle = _split_twice(rest, other, inverse_of_other, third, inverse_of_third)
    return first, second, middle, last


_BY_SPLITS: list[Any] = [None, _split, _split_twice, _split_thrice]


def _unravel(flat: Any, shape: tuple[int, ...], along: Sequence[Any]) -> None:
    """Write the indices along several axes of flat indices, three axes in a pass."""
    axis = len(shape) - 1
    while axis > 0:
        rest = max(0, axis - 3)
        lengths = [max(1, length) for length in shape[axis:rest:-1]]
        numbers = [number for length in lengths for number in (length, 1 / length)]
        outs = along[0], *along[rest + 1 : axis + 1]
        transform(_BY_SPLITS[axis - rest], flat, *numbers, out=outs)
        flat, axis = along[0], rest


@numpy_function(
    "One selection of indices, and one pass for each three further axes; unless `a` is bool, one "
    "pass that compares with zero before it",
    few=_FEW_INDICES,
)
def nonzero(a: Any) -> Any:
    """Return the indices of the elements that are not zero: an array for each axis.

    >>> gnp.nonzero([3, 0, 4])
    (array([0, 2]),)
    """
    ndim = len(a.shape)
    if not ndim:
        raise ValueError(
            "nonzero: an array without axes has no indices; use flatnonzero, or numpy.atleast_1d"
        )
    if ndim == 1:
        return (flat_indices(a, "nonzero"),)
    flat = flat_indices(a, "nonzero")
    along = tuple([_call.new(flat, tuple(flat.shape), _INDEX) for _ in range(ndim)])
    _unravel(flat, tuple(a.shape), along)
    return along


@numpy_function("As `nonzero`", few=_FEW_INDICES)
def flatnonzero(a: Any) -> Any:
    """Return the indices of the elements that are not zero in the flattened array.

    >>> gnp.flatnonzero([[3, 0], [0, 4]])
    array([0, 3])
    """
    return flat_indices(a, "flatnonzero").reshape(-1)


@numpy_function("As `nonzero`", few=_FEW_INDICES)
def argwhere(a: Any) -> Any:
    """Return the indices of the elements that are not zero: a row for each element.

    >>> gnp.argwhere([[3, 0], [0, 4]])
    array([[0, 0],
           [1, 1]])
    """
    ndim = len(a.shape)
    if ndim < 2:
        return flat_indices(a, "argwhere").reshape(-1, 1)[:, :ndim]
    flat = flat_indices(a, "argwhere")
    rows = _call.new(flat, (flat.shape[0], ndim), _INDEX)
    _unravel(flat, tuple(a.shape), [rows[:, axis] for axis in range(ndim)])
    return rows


# --- Functions that select elements by a condition.


@numpy_function(
    "One selection; unless the condition is bool, one pass that compares with zero before it",
    arrays=2,
    few=_FEW_INDICES,
)
def extract(condition: Any, arr: Any) -> Any:
    """Return the elements for which a condition is true, flattened.

    >>> gnp.extract([True, False, True], [5, 6, 7])
    array([5, 7])
    """
    return _select(condition, array_of(arr, "extract: arr"), "extract")


def _select(condition: Any, x: Any, where: str) -> Any:
    flags = flags_of(condition, where)
    if tuple(flags.shape) == tuple(x.shape):
        return select(x, flags)
    flat = lazy.asarray(_call.flattened(x))
    flags = _fit_flags(lazy.asarray(flags).reshape(-1), flat.size, where)
    return select(flat[: flags.size], flags)


def _fit_flags(flags: Any, length: int, where: str) -> Any:
    """Return a flag for each element; raise IndexError if a further one is set."""
    if flags.size > length:
        last = int(find(flags[length:], _call.is_true))
        if last >= 0:
            raise IndexError(
                f"{where}: index {length + last} is out of bounds for axis 0 with size {length}"
            )
        flags = flags[:length]
    return flags


@numpy_function(
    "As `extract`. Host arrays: NumPy's function",
    arrays=2,
    few=_call.ALL,
)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    """Return slices along an axis, or elements of the flat array, for which a condition is true.

    >>> gnp.compress([False, True], [[1, 2], [3, 4]], axis=0)
    array([[3, 4]])
    """
    a = array_of(a, "compress: a")
    if len(condition.shape) != 1:
        raise ValueError("compress: condition must have one axis")
    out = _call.out_of(out, "compress")
    if axis is not None:
        axis = normalize_axis_index(axis, max(1, len(a.shape)))
    if axis is None or len(a.shape) <= 1:
        chosen = _select(condition, _call.flattened(a), "compress")
        return chosen if out is None else _write_out(chosen, out, "compress")
    length, flags = a.shape[axis], flags_of(condition, "compress")
    if flags.shape[0] > length:
        flags = _fit_flags(lazy.asarray(flags), length, "compress")
    elif flags.shape[0] < length:
        a = lazy.asarray(a)[(*[slice(None)] * axis, slice(flags.shape[0]))]
    chosen = select(a, _SPREAD((flags,), "compress", tuple(a.shape), axis))
    num_others = math.prod(a.shape[:axis]) * math.prod(a.shape[axis + 1 :])
    kept = chosen.shape[0] // num_others if num_others else int(count(flags, _call.is_true))
    chosen = chosen.reshape((*a.shape[:axis], kept, *a.shape[axis + 1 :]))
    return chosen if out is None else _write_out(chosen, out, "compress")


def _spread(flags: Any, shape: tuple[int, ...], axis: int) -> Any:
    return flags.reshape(-1, *(1,) * (len(shape) - axis - 1)).broadcast_to(shape)


_SPREAD = ExpressionCache(_spread)


def _write_out(result: Any, out: Any, where: str) -> Any:
    kind = _call.dtype_of(result, where)
    _call.check_cast(kind, out, where)
    if not np.can_cast(_call.dtype_of(out, where), kind):  # NumPy asks for both directions
        raise TypeError(f"{where}: out's dtype {_call.dtype_of(out, where)} does not become {kind}")
    return _call.evaluate_into(lazy.asarray(result), out, where)


@numpy_function("One pass; with the condition alone, as `nonzero`", arrays=3, few=_FEW_CHOICES)
def where(condition: Any, x: Any = UNSET, y: Any = UNSET, /) -> Any:
    """Return elements of x where a condition is true, else of y; without both as `nonzero`.

    The result is lazy if an argument is.

    >>> gnp.where([True, False, True], [1, 2, 3], 0)
    array([1, 0, 3])
    """
    if x is UNSET and y is UNSET:
        return nonzero(condition)
    if x is UNSET or y is UNSET:
        raise ValueError("where: either both or neither of x and y should be given")
    operands: Sequence[Any] = (condition, x, y)
    if not ARRAY_TYPES.issuperset(map(type, operands)):
        operands = _operands(*operands)
    if any(map(is_lazy, operands)):
        return applied(np.where, operands, "where")
    return transform(np.where, *operands)


def _operands(*given: Any) -> Sequence[Any]:
    """Return a condition and two choices; a choice that is a Python number gets NumPy's dtype."""
    names = ("where: condition", "where: x", "where: y")
    operands: list[Any] = [
        x if isinstance(x, (bool, int, float, complex)) else array_of(x, name)
        for x, name in zip(given, names, strict=True)
    ]
    if all(map(is_host, operands)):
        return operands
    samples = [np.empty(0, _call.dtype_of(x, name)) if hasattr(x, "dtype") else x
            for x, name in zip(operands[1:], names[1:], strict=True)]  # fmt: skip
    kind = np.where(np.empty(0, bool), *samples).dtype  # raises if a number is too large
    operands[1:] = [
        x if hasattr(x, "dtype") else np.asarray(x).astype(kind)[()] for x in operands[1:]
    ]
    if any(hasattr(x, "dtype") and x.shape for x in operands):  # scalars fit any
        return [x[()] if is_host(x) and not x.shape else x for x in operands]
    operands[0] = operands[0] if hasattr(operands[0], "dtype") else np.asarray(operands[0])
    return operands
