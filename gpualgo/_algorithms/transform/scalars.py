"""Numbers beside the arrays of a transformation: its operator with them in their places."""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from gpualgo._base.memo import Memo
from gpualgo._operators.key import python_function
from gpualgo._operators.operator import as_operator

_PYTHON = frozenset((bool, int, float, complex))

# For each operator code of its own: what is learnt of its numbers holds for it alone.
_codes: Memo[tuple[Any, types.CodeType]] = Memo(1 << 10)


def is_scalar(x: Any) -> bool:
    """Return whether an argument is a number, and not an array."""
    return type(x) in _PYTHON or isinstance(x, np.generic)


def bind(op: Any, arguments: tuple[Any, ...], where: str) -> tuple[Any, tuple[Any, ...]]:
    """Return an operator of the arrays alone, which captures the numbers, and the arrays."""
    fn = as_operator(op, where, len(arguments)).fn
    pattern = tuple(map(is_scalar, arguments))
    arrays = tuple(x for x, is_number in zip(arguments, pattern, strict=True) if not is_number)
    if not arrays:
        shown = ", ".join(map(repr, arguments))
        raise TypeError(f"{where}: all arguments are numbers ({shown}); pass at least one array")
    template = _template(pattern)
    numbers = [x for x, is_number in zip(arguments, pattern, strict=True) if is_number]
    bound = template(fn, *numbers)
    return types.FunctionType(
        _code_of(fn, pattern, bound.__code__), bound.__globals__, bound.__name__, None,
        bound.__closure__,
    ), arrays  # fmt: skip


def _code_of(fn: Any, pattern: tuple[bool, ...], code: types.CodeType) -> types.CodeType:
    """Return a template's code, of which an error says that it stands where fn does."""
    function = python_function(fn)
    source: Any = fn if function is None else function.__code__

    def make() -> tuple[Any, types.CodeType]:
        if function is None:
            return source, code.replace(co_filename=repr(fn))
        place = {"co_filename": source.co_filename, "co_firstlineno": source.co_firstlineno}
        return source, code.replace(**place)

    return _codes.made((id(source), pattern), make)[1]


@cache
def _template(pattern: tuple[bool, ...]) -> Callable[..., types.FunctionType]:
    """Return f(fn, *numbers), which gives a function of arrays' elements that calls fn."""
    names = [f"{'s' if is_number else 'a'}{i}" for i, is_number in enumerate(pattern)]
    numbers = [name for name in names if name[0] == "s"]
    arrays = [name for name in names if name[0] == "a"]
    outer, inner, call = (", ".join(each) for each in (["fn", *numbers], arrays, names))
    made: Callable[..., types.FunctionType] = eval(f"lambda {outer}: lambda {inner}: fn({call})")
    return made
