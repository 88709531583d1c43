"""Functions that methods of lazy arrays call, registered by modules that import lazy arrays."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


class Hooks:
    applied: Callable[..., Any]
    """applied(op, arguments, where, dtype=None) returns a lazy array."""
    reshaped: Callable[..., Any]
    """reshaped(x, shape, text) returns a lazy array."""
    copy: Callable[..., Any]
    """copy(x, out=None) returns a materialized array."""
    reduced: Callable[..., Any]
    """reduced(ufunc, x, …) returns ``ufunc.reduce(x, …)``."""
    accumulated: Callable[..., Any]
    """accumulated(ufunc, x, …) returns ``ufunc.accumulate(x, …)``."""
    functions: dict[Any, Callable[..., Any]]
    """Implementations of NumPy functions for lazy arrays."""

    @staticmethod
    def others(function: Callable[..., Any]) -> Callable[..., Any] | None:
        """Return gpualgo.numpy's implementation of a NumPy function that is not in `functions`."""
        implementation: Callable[..., Any] | None = import_module(
            "gpualgo.numpy._call.function"
        ).of_native(function)
        return implementation


hooks = Hooks()
