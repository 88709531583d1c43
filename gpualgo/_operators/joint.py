"""Operators fused with the function that computes their elements (of a lazy array).

Both share one key, and the words of their captured numbers and arrays.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, NamedTuple

from gpualgo._base.memo import Memo
from gpualgo._operators.key import python_function
from gpualgo._operators.operator import OPERATOR, Operator


class _Template(NamedTuple):
    """A code object for each pair of functions: facts about captured numbers are stored by code."""

    held: tuple[Any, Any]  # kept alive, as the memo's keys are their ids
    code: types.CodeType


_templates: Memo[_Template] = Memo(1 << 10)


def joint(op: Operator, source: types.FunctionType) -> Operator:
    """Return op fused with the function that computes its elements from the numbers that are read.

    It has op's name and identity.
    """
    result = Operator.__new__(Operator)
    result.fn = _pair_with_own_code(op.fn if op.name is None else op.name, source)
    result.name, result.identity, result.commutative = op.name, op.identity, op.commutative
    result._captured, result.part = None, OPERATOR
    return result


def without_source(op: Operator) -> Operator:
    """Return a fused operator for kernels that do not compute elements.

    A built-in operator is returned without the function. Others are returned unchanged, as they
    share their captured numbers with the function.
    """
    if op.name is None or op.part is None:
        return op
    result = Operator.__new__(Operator)
    result.fn, result.name, result.identity = op.fn, op.name, op.identity
    result.commutative, result._captured, result.part = op.commutative, None, None
    return result


def _pair_with_own_code(op: Any, source: types.FunctionType) -> types.FunctionType:
    function = python_function(op)
    codes = op if function is None else function.__code__, source.__code__

    def make() -> _Template:
        return _Template(codes, _pair(op, source).__code__.replace())

    pair: types.FunctionType = _pair(op, source)
    pair.__code__ = _templates.made((id(codes[0]), id(codes[1])), make).code
    return pair


def _pair(op: Any, source: Any) -> Any:
    both: Callable[[], Any] = lambda: (op, source)  # noqa: E731
    return both
