"""Predicates: functions of an element, or boolean arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._operators.captured import is_array
from gpualgo._operators.operator import Operator

_NEITHER = (bool, int, float, complex, str, bytes, list, tuple, dict, set, range, type(None))


def is_function(predicate: Any, where: str) -> bool:
    """Return whether a predicate is a function, False if an array; raise TypeError for others."""
    if isinstance(predicate, (*_NEITHER, np.generic)):
        raise TypeError(
            f"{where}: predicate must be a function of one element or an array of bool, got "
            f"{type(predicate).__name__}; pass lambda a: a > 0, say"
        )
    return type(predicate) is Operator or (callable(predicate) and not is_array(predicate))
