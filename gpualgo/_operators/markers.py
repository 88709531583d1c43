"""Functions for the package's own operators that only compiled code can run."""

from __future__ import annotations

from typing import Any


class Known:
    """A function that the compiler implements by its name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *arguments: Any) -> Any:
        raise NotImplementedError(f"{self.name} runs in compiled code only")


strong = Known("strong")
"""strong(value): converts Python numbers to the dtypes that they have in an array."""

philox = Known("philox")
"""philox(position, key0, key1): a 64-bit word of the Philox4x64-10 stream of a key.

The block counter starts at 1, as in NumPy.

J. Salmon, M. Moraes, R. Dror and D. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011,
doi:10.1145/2063384.2063405.
"""


def same(a: Any) -> Any:
    """Return an element unchanged: the operator of copies."""
    return a


def second(a: Any, b: Any) -> Any:
    return b
