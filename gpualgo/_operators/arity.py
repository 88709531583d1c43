"""How many arguments operators take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpualgo._operators.key import python_function

if TYPE_CHECKING:
    from gpualgo._operators.operator import Operator

_CO_VARARGS = 4  # inspect.CO_VARARGS, without the import


def accepts(op: Operator, arity: int) -> bool:
    """Return whether an operator can be called with so many arguments."""
    if op.part is not None:  # asked when they were put together
        return True
    if op.name is not None:
        return arity == 2
    fn = python_function(op.fn)
    if fn is None:
        return True  # a callable without a signature: numba decides
    code = fn.__code__
    required = code.co_argcount - len(fn.__defaults__ or ())
    variadic = bool(code.co_flags & _CO_VARARGS)
    fits = required <= arity and (arity <= code.co_argcount or variadic)
    return fits and code.co_kwonlyargcount == 0  # numba has no keyword-only parameters


def shown(fn: Any) -> str:
    """Return how many arguments a function takes, as a message tells it."""
    function = python_function(fn)
    if function is None:
        return "two arguments"
    return f"{function.__code__.co_argcount} argument(s)"
