"""Comparison of two elements: by a user function, or by value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpualgo._algorithms.radix_sort.problem import key_dtype_of
from gpualgo._algorithms.radix_sort.tuple_problem import descending_by_field
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import checks, elements, outputs

Dtype: TypeAlias = np.dtype[Any]
BOOL = np.dtype(np.bool_)


class Comparison(NamedTuple):
    """Order of two elements."""

    element: Dtype
    op: Operator | None  # `less`; None: by value, the first field first
    ways: tuple[bool, ...]  # whether descending: per field, or one flag for op

    @property
    def is_turned(self) -> bool:
        """Whether a sorts before b if less(b, a)."""
        return self.ways[0]

    def with_op(self, op: Operator | None) -> Comparison:
        """Return the same comparison with a call's operator."""
        return self._replace(op=op)


def descending_of(descending: Any, form: Form | None, less: Any, where: str) -> tuple[bool, ...]:
    """Return the checked `descending`: one flag if `less` is given, else one per field."""
    if less is not None:
        return (checks.flag_argument(descending, "descending", where),)
    return descending_by_field(descending, form, where)


def comparison_of(
    views: Sequence[View], names: Sequence[str], form: Form | None, op: Operator | None,
    ways: tuple[bool, ...], device: int, where: str,
) -> Comparison:  # fmt: skip
    """Return the comparison of elements after checking them, without its operator.

    `names`: names of the views in messages.
    """
    for view, name in zip(views, names, strict=True):
        if op is None:
            key_dtype_of(view.dtype, where, name)
        else:
            checks.element(view, name, where)
    element = elements.element_of(views, form)
    if op is not None:
        elements.check_operator(op, element, where)
        dtype = outputs.dtype_of(op, (element, element), None, device, where)
        if dtype != BOOL:
            raise TypeError(
                f"op returns {records.shown(dtype)}, and not a bool; return a comparison, as "
                "lambda a, b: a < b does"
            )
    return Comparison(element, None, ways)  # cached problems must not hold captured arrays
