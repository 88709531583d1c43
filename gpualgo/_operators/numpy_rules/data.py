"""What Python computes of numbers of its own where some are data: the same, or not at all.

Python's integers have no end, and its floats raise where NumPy's and a processor's do not. What
may be otherwise than in Python needs the values (`ValueNeeded`): they are compiled in.
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

_EXACT = 1 << 53  # integers up to it are floats, too

# Functions that are monotonous in each argument: they are extreme where their arguments are.
_MONOTONOUS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul,
    "negative": operator.neg, "positive": operator.pos,
}  # fmt: skip


def result_of(entry: Entry, args: tuple[types.Type, ...]) -> types.Type | None:
    """Return the type of what is computed of Python numbers alone, None if some are others'."""
    weak = [ty for ty in args if isinstance(ty, Weak)]
    words = frozenset().union(*(ty.data for ty in weak))
    if not words or len(weak) < len(args):
        return None
    if not all(ty.data or ty.values is not None for ty in weak):
        return None  # of a loop's counter, say
    kind = max((ty.kind for ty in weak), key=WEAK.index)
    found = _result(entry, weak, kind, words)
    if found is None:
        raise ValueNeeded(words)
    return found


def _result(entry: Entry, args: list[Weak], kind: str, words: frozenset[int]) -> types.Type | None:
    """Return the result's type, None where code has to know the numbers."""
    if entry.style == "bool" or entry.does == "logical_not":
        return types.boolean
    if kind != "int" and any(not _is_float(ty) for ty in args):
        return None
    if entry.does in codegen.RELATIONS:
        return types.boolean if kind != "complex" else None
    if entry.style == "extreme":  # one of the two, with its own type
        return args[0].joined(args[1]) if args[0].kind == args[1].kind else None
    compute = _MONOTONOUS.get(entry.does)
    if entry.style != "operator" or compute is None or kind == "complex":
        return None
    if kind == "float":
        return Weak("float", None, words)
    ends = [compute(*corner) for corner in product(*map(bounds_of, args))]
    result = Weak("int", None, words, (min(ends), max(ends)))
    return result if is_within(result, -(1 << 63), (1 << 63) - 1) else None


def _is_float(ty: Weak) -> bool:
    """Return whether a Python number becomes a float as it is."""
    return ty.kind != "int" or is_within(ty, -_EXACT, _EXACT)
