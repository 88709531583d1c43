"""Arrays that are computed where they are read: their elements' function, and what it reads.

Here is what functions ask of every input, without loading more.
"""

from __future__ import annotations

from typing import Any

LAZY: set[type] = set()
"""The class of lazy arrays, once it is there."""


def is_lazy(x: Any) -> bool:
    """Return whether an argument is computed where it is read, or a tuple that holds such."""
    return type(x) in LAZY or (isinstance(x, tuple) and any(map(is_lazy, x)))
