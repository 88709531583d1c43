"""Elements that conditions choose."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo import lazy
from gpualgo._algorithms.find import find
from gpualgo._algorithms.select import select
from gpualgo._algorithms.transform import transform
from gpualgo._algorithms.transform.copying import copy
from gpualgo._lazy import is_lazy
from gpualgo._lazy.combining import applied
from gpualgo.numpy._call import results
from gpualgo.numpy._call.arguments import AS_THEY_ARE, array_of, axis_of, is_host
from gpualgo.numpy._call.function import numpys
from gpualgo.numpy._orders.gathers import aligned
from gpualgo.numpy._selection.nonzero import is_true, marks, nonzero

_UNSET: Any = np._NoValue


@numpys("One selection, after one pass that compares with zero unless the condition is of bool",
        arrays=2)  # fmt: skip
def extract(condition: Any, arr: Any) -> Any:
    """Return the elements of an array where a condition is true, both flattened.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.extract([True, False, True], [5, 6, 7])
    array([5, 7])
    """
    return _chosen(condition, array_of(arr, "extract: arr"), "extract")


def _chosen(condition: Any, x: Any, where: str) -> Any:
    """Return the elements of an array, in C order, where a condition is true."""
    marked = marks(condition, where)
    if tuple(marked.shape) == tuple(x.shape):
        return select(x, marked)
    marked, flat = lazy.asarray(marked).reshape(-1), lazy.asarray(x).reshape(-1)
    marked = _within(marked, flat.size, where)
    return select(flat[: marked.size], marked)


def _within(marked: Any, length: int, where: str) -> Any:
    """Return as many marks as there are elements; IndexError where a further one is set."""
    if marked.size > length:
        last = int(find(marked[length:], is_true))
        if last >= 0:
            raise IndexError(
                f"{where}: index {length + last} is out of bounds for axis 0 with size {length}"
            )
        marked = marked[:length]
    return marked


@numpys(
    "As `extract`; along an axis one selection of positions and one pass that gathers. In host "
    "memory it is NumPy's own",
    arrays=2,
    few=sys.maxsize,
)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    """Return the slices along an axis where a condition is true; without one of the flat array.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.compress([False, True], [[1, 2], [3, 4]], axis=0)
    array([[3, 4]])
    """
    condition, a = array_of(condition, "compress: condition"), array_of(a, "compress: a")
    if len(condition.shape) != 1:
        raise ValueError("compress: condition must have one axis")
    out = results.out_of(out, "compress")
    if axis is None or (len(a.shape) <= 1 and axis_of(axis, max(1, len(a.shape))) == 0):
        found = _chosen(condition, lazy.asarray(a).reshape(-1) if len(a.shape) != 1 else a,
                        "compress")  # fmt: skip
        return found if out is None else _written(found, out, "compress")
    axis = axis_of(axis, len(a.shape))
    marked = _within(lazy.asarray(marks(condition, "compress")), a.shape[axis], "compress")
    indices = select(lazy.arange(marked.size), marked)
    found = lazy.take(aligned(a), indices, axis=axis)
    return copy(found) if out is None else _written(found, out, "compress")


def _written(found: Any, out: Any, where: str) -> Any:
    """Write a result to `out`, and return it."""
    results.check_cast(results.dtype_of(found, where), out, where)
    if tuple(out.shape) != tuple(found.shape):
        raise ValueError(
            f"{where}: out has shape {tuple(out.shape)}, the result has {tuple(found.shape)}"
        )
    kind = results.dtype_of(out, where)
    copy(lazy.asarray(found).astype(kind), out=out)
    return out


@numpys("One pass; with the condition alone as `nonzero`", arrays=3)
def where(condition: Any, x: Any = _UNSET, y: Any = _UNSET, /) -> Any:
    """Return elements of x where a condition is true, else of y; without both `nonzero`'s.

    Of lazy arrays it is one again.

    Examples
    --------
    >>> import gpualgo.numpy as gnp
    >>> gnp.where([True, False, True], [1, 2, 3], 0)
    array([1, 0, 3])
    """
    if x is _UNSET and y is _UNSET:
        return nonzero(condition)
    if x is _UNSET or y is _UNSET:
        raise ValueError("where: either both or neither of x and y should be given")
    given: Sequence[Any] = (condition, x, y)
    if not AS_THEY_ARE.issuperset(map(type, given)):
        given = _operands(*given)
    if any(map(is_lazy, given)):
        return applied(np.where, given, "where")
    return transform(np.where, *given)


def _operands(*given: Any) -> Sequence[Any]:
    """Return a condition and two choices: these, where they are Python's numbers, as NumPy's."""
    names = ("where: condition", "where: x", "where: y")
    found: list[Any] = [
        one if isinstance(one, (bool, int, float, complex)) else array_of(one, name)
        for one, name in zip(given, names, strict=True)
    ]
    if all(map(is_host, found)):
        return found
    like = [np.empty(0, results.dtype_of(one, name)) if hasattr(one, "dtype") else one
            for one, name in zip(found[1:], names[1:], strict=True)]  # fmt: skip
    kind = np.where(np.empty(0, bool), *like).dtype  # which knows what numbers are too large
    found[1:] = [
        one if hasattr(one, "dtype") else np.asarray(one).astype(kind)[()] for one in found[1:]
    ]
    if any(hasattr(one, "dtype") and one.shape for one in found):  # numbers go with any library's
        return [one[()] if is_host(one) and not one.shape else one for one in found]
    found[0] = found[0] if hasattr(found[0], "dtype") else np.asarray(found[0])
    return found
