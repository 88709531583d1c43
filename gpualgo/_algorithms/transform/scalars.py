"""Scalar arguments of a transformation: binds them to its operator."""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gpualgo._base import dtypes
from gpualgo._base.errors import shown
from gpualgo._base.memo import Memo
from gpualgo._operators.key import python_function
from gpualgo._operators.operator import as_operator

NUMBERS = frozenset(
    (bool, int, float, complex, *(np.dtype(n).type for n in dtypes.NAMES if n != "bfloat16"))
)
"""Types of all numbers but bfloat16's, which NumPy lacks."""


def is_scalar(x: Any) -> bool:
    """Return whether an argument is a number, not an array."""
    return type(x) in NUMBERS or isinstance(x, np.generic)


class _Template(NamedTuple):
    """Binds numbers to the operators of one code object.

    Each code object needs its own template, as facts learnt about its numbers hold for it only.
    """

    # the operator's code, kept alive because the memo's key is its id; or the operator itself
    source: Any
    bind: Callable[..., types.FunctionType]
    code: types.CodeType


_templates: Memo[_Template] = Memo(1 << 10)


def bind(op: Any, arguments: tuple[Any, ...], where: str) -> tuple[Any, tuple[Any, ...]]:
    """Return an operator of the arrays alone, which captures the numbers, and the arrays."""
    pattern = tuple(map(is_scalar, arguments))
    template = None
    if type(op) is types.FunctionType and op.__defaults__ is None:
        template = _templates.look((id(op.__code__), pattern))
    if template is None:
        op = as_operator(op, where, len(arguments)).fn
        for number in arguments:
            if isinstance(number, np.generic):
                dtypes.check(number.dtype, f"{where}: an argument")
        if all(pattern):
            shown = ", ".join(map(repr, arguments))
            raise TypeError(
                f"{where}: all arguments are numbers ({shown}); pass at least one array"
            )
        template = _template_of(op, pattern)
    numbers: list[Any] = [op]
    arrays: list[Any] = []
    for argument, is_number in zip(arguments, pattern, strict=True):
        (numbers if is_number else arrays).append(argument)
    bound = template.bind(*numbers)
    bound.__code__ = template.code
    return bound, tuple(arrays)


def _template_of(fn: Any, pattern: tuple[bool, ...]) -> _Template:
    function = python_function(fn)
    source: Any = fn if function is None else function.__code__

    def make() -> _Template:
        location: dict[str, Any] = {"co_filename": shown(fn)}
        if function is not None:  # errors then name this function's line
            location = {"co_filename": source.co_filename, "co_firstlineno": source.co_firstlineno}
        bind = _binder(pattern)
        code = bind(fn, *pattern[: sum(pattern)]).__code__
        return _Template(source, bind, code.replace(**location))

    return _templates.made((id(source), pattern), make)


@cache
def _binder(pattern: tuple[bool, ...]) -> Callable[..., types.FunctionType]:
    """Return f(fn, *numbers), which returns a function of the array elements that calls fn."""
    names = [f"{'s' if is_number else 'a'}{i}" for i, is_number in enumerate(pattern)]
    numbers = [name for name in names if name[0] == "s"]
    arrays = [name for name in names if name[0] == "a"]
    outer, inner, call = (", ".join(parts) for parts in (["fn", *numbers], arrays, names))
    binder: Callable[..., types.FunctionType] = eval(f"lambda {outer}: lambda {inner}: fn({call})")
    return binder
