"""What decides between two elements: a function of the caller's, or their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpualgo._algorithms.radix_sort.problem import key_dtype_of
from gpualgo._algorithms.radix_sort.tuples import ways_of
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import checks, elements, results

Dtype: TypeAlias = np.dtype[Any]
BOOL = np.dtype(np.bool_)


class Comparison(NamedTuple):
    """Which of two elements comes before the other."""

    element: Dtype
    op: Operator | None  # `less`; None: by value, the first number first
    ways: tuple[bool, ...]  # of each number whether the largest come first; of op of its elements

    @property
    def is_turned(self) -> bool:
        """Whether a comes first where less(b, a)."""
        return self.ways[0]

    def with_op(self, op: Operator | None) -> Comparison:
        """Return the same with the operator as it is in a call."""
        return self._replace(op=op)


def plain_ways(descending: Any, form: Form | None, less: Any, where: str) -> tuple[bool, ...]:
    """Return what descending= says once it fits: with `less` of elements, else of each number."""
    if less is not None:
        return (checks.flag(descending, "descending", where),)
    return ways_of(descending, form, where)


def comparison_of(
    views: Sequence[View], names: Sequence[str], form: Form | None, op: Operator | None,
    ways: tuple[bool, ...], device: int, where: str,
) -> Comparison:  # fmt: skip
    """Return the comparison of elements once they have it, without its operator.

    `names`: their arrays in messages.
    """
    for view, name in zip(views, names, strict=True):
        if op is None:
            key_dtype_of(view.dtype, where, name)
        else:
            checks.element(view, name, where)
    element = elements.element_of(views, form)
    if op is not None:
        elements.check_operator(op, element, where)
        found = results.dtype_of(op, (element, element), None, device, where)
        if found != BOOL:
            raise TypeError(
                f"op returns {records.shown(found)}, and not a bool; return a comparison, as "
                "lambda a, b: a < b does"
            )
    return Comparison(element, None, ways)  # a problem is kept, and holds no captured array
