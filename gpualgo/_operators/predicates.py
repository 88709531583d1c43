"""Predicates: functions of an element that say whether it is meant, or arrays that mark it."""

from __future__ import annotations

from typing import Any

from gpualgo._operators.captured import is_array
from gpualgo._operators.operator import Operator


def is_function(predicate: Any, where: str) -> bool:
    """Return whether a predicate is a function, and no array; refuse what is neither."""
    if type(predicate).__name__ == "LazyArray":
        return False
    if type(predicate) is Operator or (callable(predicate) and not is_array(predicate)):
        return True
    if isinstance(predicate, tuple) or not is_array(predicate):
        raise TypeError(
            f"{where}: predicate must be a function of one element or an array of bool, got "
            f"{type(predicate).__name__}; pass lambda a: a > 0, say"
        )
    return False
