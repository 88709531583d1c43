"""Functions that operators of the package's own call, and that the compilers alone know."""

from __future__ import annotations

from typing import Any


class Known:
    """A function that compiled code has by its name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *arguments: Any) -> Any:
        raise NotImplementedError(f"{self.name} is known to the compilers alone")


strong = Known("strong")
"""strong(value): its Python numbers are of the dtypes that they have in an array."""

philox = Known("philox")
"""philox(position, key0, key1): a word of what Philox4x64-10 makes of a key, counted from 1 on.

J. Salmon, M. Moraes, R. Dror and D. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011,
doi:10.1145/2063384.2063405.
"""


def same(a: Any) -> Any:
    """Return an element as it is: what copies."""
    return a


def second(a: Any, b: Any) -> Any:
    """Return the second of two elements, where the first lies."""
    return b
