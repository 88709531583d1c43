"""What lazy arrays do by way of modules that know them: each is put here by who does it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


class Hooks:
    """Functions that methods of lazy arrays call."""

    applied: Callable[..., Any]
    """applied(op, arguments, where, dtype=None): a lazy array."""
    reshaped: Callable[..., Any]
    """reshaped(x, shape, text): a lazy array."""
    copy: Callable[..., Any]
    """copy(x, out=None): an array that is real."""
    reduced: Callable[..., Any]
    """reduced(ufunc, x, …): what ``ufunc.reduce(x, …)`` gives."""
    accumulated: Callable[..., Any]
    """accumulated(ufunc, x, …): what ``ufunc.accumulate(x, …)`` gives."""
    functions: dict[Any, Callable[..., Any]]
    """NumPy's functions, and what does for lazy arrays what they do."""

    @staticmethod
    def others(function: Callable[..., Any]) -> Callable[..., Any] | None:
        """Return the same for one that is not among these: `gpualgo.numpy`, above all this."""
        found: Callable[..., Any] | None = import_module("gpualgo.numpy._call.function").of_native(
            function
        )
        return found


hooks = Hooks()
