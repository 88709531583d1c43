"""Result types of functions of Python numbers, some of which are passed as data.

Results must equal Python's, whose integers are unbounded and whose floats raise. If they might
differ, `ValueNeeded` is raised and the numbers are compiled in as constants.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import product
from typing import Any

from numba import types

from gpualgo._operators.numpy_rules import codegen
from gpualgo._operators.numpy_rules.promotion import WEAK
from gpualgo._operators.numpy_rules.refusal import ValueNeeded
from gpualgo._operators.numpy_rules.table import Entry
from gpualgo._operators.numpy_rules.types import Weak, bounds_of
from gpualgo._operators.numpy_rules.weak import is_within

_EXACT = 1 << 53  # integers up to it are exact as floats

# Functions that are monotonic in each argument: bounds of arguments give bounds of the result.
_MONOTONIC: dict[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul,
    "negative": operator.neg, "positive": operator.pos,
}  # fmt: skip


def result_of(entry: Entry, args: tuple[types.Type, ...]) -> types.Type | None:
    """Return the result type for Python numbers with data among them, None for other arguments."""
    weak = [ty for ty in args if isinstance(ty, Weak)]
    words = frozenset().union(*(ty.data for ty in weak))
    if not words or len(weak) < len(args):
        return None
    if not all(ty.data or ty.values is not None for ty in weak):
        return None  # neither data nor constant, such as a loop's counter
    kind = max((ty.kind for ty in weak), key=WEAK.index)
    result = _result(entry, weak, kind, words)
    if result is None:
        raise ValueNeeded(words)
    return result


def _result(entry: Entry, args: list[Weak], kind: str, words: frozenset[int]) -> types.Type | None:
    """Return the result's type, None if code needs the values."""
    if entry.style == "bool" or entry.does == "logical_not":
        return types.boolean
    if kind != "int" and any(not _is_float(ty) for ty in args):
        return None
    if entry.does in codegen.RELATIONS:
        return types.boolean if kind != "complex" else None
    if entry.style == "extreme":  # returns one of the two, unconverted
        return args[0].joined(args[1]) if args[0].kind == args[1].kind else None
    compute = _MONOTONIC.get(entry.does)
    if entry.style != "operator" or compute is None or kind == "complex":
        return None
    if kind == "float":
        return Weak("float", None, words)
    ends = [compute(*corner) for corner in product(*map(bounds_of, args))]
    result = Weak("int", None, words, (min(ends), max(ends)))
    return result if is_within(result, -(1 << 63), (1 << 63) - 1) else None


def _is_float(ty: Weak) -> bool:
    """Return whether a Python number is exactly representable as a float."""
    return ty.kind != "int" or is_within(ty, -_EXACT, _EXACT)
