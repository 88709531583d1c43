"""Two functions of one launch, looked at together: an operator, and what makes its elements.

They share one key, and with it the words of their numbers and of the arrays that they capture.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, NamedTuple

from gpualgo._base.memo import Memo
from gpualgo._operators.key import python_function
from gpualgo._operators.operator import OPERATOR, Operator


class _Template(NamedTuple):
    """The code of a pair: one for each, as what is learnt of its numbers holds for it alone."""

    held: tuple[Any, Any]  # as the memo is by their ids
    code: types.CodeType


_templates: Memo[_Template] = Memo(1 << 10)


def joint(op: Operator, source: types.FunctionType) -> Operator:
    """Return an operator with the function that makes its elements of the numbers that are read.

    It is known by op's name, if it has one, and has op's identity.
    """
    found = Operator.__new__(Operator)
    found.fn = _both(op.fn if op.name is None else op.name, source)
    found.name, found.identity, found.commutative = op.name, op.identity, op.commutative
    found._captured, found.part = None, OPERATOR
    return found


def without_source(op: Operator) -> Operator:
    """Return a call's operator for kernels that make no elements: by its name alone, if it has one.

    Another one shares its numbers with the function, and these kernels take them, too.
    """
    if op.name is None or op.part is None:
        return op
    found = Operator.__new__(Operator)
    found.fn, found.name, found.identity = op.fn, op.name, op.identity
    found.commutative, found._captured, found.part = op.commutative, None, None
    return found


def _both(op: Any, source: types.FunctionType) -> types.FunctionType:
    function = python_function(op)
    held = op if function is None else function.__code__, source.__code__

    def make() -> _Template:
        return _Template(held, _pair(op, source).__code__.replace())

    found: types.FunctionType = _pair(op, source)
    found.__code__ = _templates.made((id(held[0]), id(held[1])), make).code
    return found


def _pair(op: Any, source: Any) -> Any:
    both: Callable[[], Any] = lambda: (op, source)  # noqa: E731
    return both
