"""What a call on the CPU is done by, as data: its problem tells it, and nothing is run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpualgo._base import threads

Array = np.ndarray[Any, Any]


class Routine(NamedTuple):
    """A kernel that is compiled, by the name in its key, or a function of NumPy's.

    `tile`: elements of a task; `tasks`: how many there are, at most; `work`: as of `threads.run`.
    """

    name: str
    is_compiled: bool
    tile: int
    tasks: int
    work: int

    @property
    def threads(self) -> int:
        """The most threads that share it."""
        return min(self.tasks, threads.most_for(self.work))


def compiled(name: str, items: int, tile: int, work: int) -> Routine:
    """Return a compiled kernel that takes so many elements in tiles."""
    return Routine(name, True, min(tile, max(1, items)), max(1, -(-items // max(1, tile))), work)


def of_numpy(name: str, items: int, tasks: int, work: int) -> Routine:
    """Return a function of NumPy's that takes elements in so many tasks."""
    return Routine(f"numpy.{name}", False, -(-items // max(1, tasks)), max(1, tasks), work)


def bytes_of(*groups: Sequence[Array]) -> int:
    """Return how many bytes arrays hold."""
    return sum(array.nbytes for arrays in groups for array in arrays)
