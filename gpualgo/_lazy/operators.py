"""Python's operators and NumPy's protocols on lazy arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from gpualgo._lazy.hooks import hooks


class Operators:
    """What a lazy array does where an array does something."""

    __slots__ = ()
    __array_priority__ = 1000.0  # CuPy asks for it before it takes an operand for a number
    __hash__ = None  # type: ignore[assignment]


def _forward(fn: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *others: Any) -> Any:
        return _apply(fn, self, *others)

    return method


def _backward(fn: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, other: Any) -> Any:
        return _apply(fn, other, self)

    return method


def _apply(fn: Callable[..., Any], *arguments: Any) -> Any:
    for x in arguments:
        if isinstance(x, (list, dict, set, str)) or x is None:
            return NotImplemented
    return hooks.applied(fn, arguments, getattr(fn, "__name__", "lazy"))


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and_",
           "or_", "xor")  # fmt: skip
for _name in _BINARY:
    _plain = _name.rstrip("_")
    setattr(Operators, f"__{_plain}__", _forward(getattr(operator, _name)))
    setattr(Operators, f"__r{_plain}__", _backward(getattr(operator, _name)))
for _name in ("neg", "pos", "abs", "invert", "lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Operators, f"__{_name}__", _forward(getattr(operator, _name)))
Operators.__divmod__ = lambda self, other: (self // other, self % other)
Operators.__rdivmod__ = lambda self, other: (other // self, other % self)
