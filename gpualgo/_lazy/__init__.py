"""Lazy arrays: expressions that are computed inside the kernel that reads them.

This file holds the check that runs for every input of a call, without loading the other modules.
"""

from __future__ import annotations

from typing import Any

LAZY: set[type] = set()
"""The classes of lazy arrays; empty until their modules are loaded."""


def is_lazy(x: Any) -> bool:
    """Return whether an argument is a lazy array, or a tuple that contains one."""
    return type(x) in LAZY or (isinstance(x, tuple) and any(map(is_lazy, x)))
