"""Lazy arrays: expressions that are computed inside the kernel that reads them.

This file holds the check that runs for every input of a call, without loading the other modules.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

LAZY: set[type] = set()
"""The classes of lazy arrays; empty until their modules are loaded."""


def is_lazy(x: Any) -> bool:
    """Return whether an argument is a lazy array, or a tuple that contains one."""
    return type(x) in LAZY or (isinstance(x, tuple) and any(map(is_lazy, x)))


# --- Functions that methods of lazy arrays call; `gpualgo.lazy` registers them when it is imported.


class Hooks:
    applied: Callable[..., Any]
    """applied(op, arguments, where, dtype=None) returns a lazy array."""
    reshaped: Callable[..., Any]
    """reshaped(x, shape, text) returns a lazy array."""
    copy: Callable[..., Any]
    """copy(x, out=None) returns a materialized array."""
    functions: dict[Any, Callable[..., Any]]
    """Implementations of NumPy functions for lazy arrays."""

    def __getattr__(self, name: str) -> Any:
        if name not in Hooks.__annotations__:
            raise AttributeError(name)
        import_module("gpualgo.lazy")
        return self.__dict__[name]

    def implementation_of(self, function: Callable[..., Any]) -> Any:
        """Return what a NumPy function does: gpualgo.numpy's if `functions` has none."""
        if function not in self.functions:
            table = import_module("gpualgo.numpy._wrap")
            self.functions[function] = table.of_native(function)
        return self.functions[function]


hooks = Hooks()
