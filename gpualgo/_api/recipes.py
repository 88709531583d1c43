"""The calls that `gpualgo warmup` makes: common operators, and a caller's operators."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import gpualgo as ga

DTYPES = ("float32", "float64", "int32", "int64")
SIZES = (1000, 1 << 20)  # short arrays use different kernels


class Recipe(NamedTuple):
    """A named set of calls.

    `is_tried`: the operator may refuse numbers of this dtype, which is no failure.
    """

    name: str
    calls: Callable[[], Any]
    is_tried: bool = False


def known() -> Iterator[Recipe]:
    """Yield the calls of common operators on common dtypes."""
    for dtype in DTYPES:
        for size in SIZES:
            x = numbers(dtype, size)
            for name, call in _known(x):
                yield Recipe(f"{name} of {size} {dtype}", call)


def of_operator(name: str, op: Any) -> Iterator[Recipe]:
    """Yield the calls with an operator; a callable without parameters makes its own calls."""
    count = _num_arguments(op)
    if count == 0:
        yield Recipe(name, op)
        return
    for dtype in DTYPES:
        for size in SIZES:
            x = numbers(dtype, size)
            yield Recipe(f"{name} of {dtype}", partial(_call_with, op, count, x), is_tried=True)


def numbers(dtype: str, size: int) -> np.ndarray[Any, Any]:
    """Return numbers from 0 to 99 in irregular order."""
    return (np.arange(size) * 37 % 100).astype(dtype)


def _num_arguments(op: Any) -> int:
    """Return how many arguments an operator requires."""
    fn = op.fn if isinstance(op, ga.Operator) else op
    if isinstance(fn, np.ufunc):
        return fn.nin
    empty = inspect.Parameter.empty
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = inspect.signature(fn).parameters.values()
    except ValueError:  # `min` and similar have no signature; they are known as binary operators
        return 2
    return sum(p.kind in kinds and p.default is empty for p in parameters)


def _call_with(op: Any, count: int, x: np.ndarray[Any, Any]) -> None:
    """Make the calls that use an operator with so many arguments."""
    result = ga.transform(op, *[x] * count)
    is_test = not isinstance(result, tuple) and result.dtype == bool
    if count == 1 and is_test:
        ga.select(x, op)
        ga.count(x, op)
        ga.find(x, op)
    elif count == 2 and is_test:
        ga.merge_sort(x, less=op)
    elif count == 2:
        ga.reduce(x, None, op)
        ga.reduce(x, x[0], op)
        ga.inclusive_scan(x, None, op)
        ga.exclusive_scan(x, x[0], op)
        ga.segmented_reduce(x, _offsets(x), x[0], op)
        ga.reduce_by_key(_runs(x), x, None, op)


def _offsets(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.arange(0, len(x) + 1, len(x) // 4)


def _runs(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.repeat(np.arange(len(x) // 8, dtype=np.int64), 8)


def _known(x: np.ndarray[Any, Any]) -> Iterator[tuple[str, Callable[[], Any]]]:
    for name, op in (("sum", operator.add), ("minimum", min), ("maximum", max)):
        yield f"reduce ({name})", partial(ga.reduce, x, None, op)
        yield f"inclusive_scan ({name})", partial(ga.inclusive_scan, x, None, op)
    yield "exclusive_scan (sum)", partial(ga.exclusive_scan, x, x.dtype.type(0))
    for function in (ga.argmin, ga.argmax, ga.minmax, ga.radix_sort, ga.argsort):
        yield function.__name__, partial(function, x)
    yield "histogram", partial(ga.histogram, x, 256, (0, 100))
    yield "top_k", partial(ga.top_k, x, 10)
    yield "searchsorted", partial(ga.searchsorted, np.sort(x), x)
    yield "adjacent_difference", partial(ga.adjacent_difference, x)
    yield "run_length_encode", partial(ga.run_length_encode, x)
    yield "segmented_reduce (sum)", partial(ga.segmented_reduce, x, _offsets(x), x.dtype.type(0))
    yield "reduce_by_key (sum)", partial(ga.reduce_by_key, _runs(x), x)
    yield "reduce_by_index (sum)", partial(_by_index, x)


def _by_index(x: np.ndarray[Any, Any]) -> Any:
    return ga.reduce_by_index(np.arange(len(x)) % 64, x, 64, x.dtype.type(0))
