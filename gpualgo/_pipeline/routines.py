"""Descriptions of the routines that a call runs on the CPU, for `explain` and `routines`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpualgo._base import threads

Array = np.ndarray[Any, Any]


class Routine(NamedTuple):
    """A compiled kernel, named as in its key, or a NumPy function.

    `tile`: elements of a task; `tasks`: maximal number of tasks; `work`: as for `threads.run`.
    """

    name: str
    is_compiled: bool
    tile: int
    tasks: int
    work: int

    @property
    def threads(self) -> int:
        """The most threads that may run it."""
        return min(self.tasks, threads.most_for(self.work))


def compiled(name: str, items: int, tile: int, work: int) -> Routine:
    """Return a compiled kernel for so many elements, split into tiles."""
    return Routine(name, True, min(tile, max(1, items)), max(1, -(-items // max(1, tile))), work)


def of_numpy(name: str, items: int, tasks: int, work: int) -> Routine:
    """Return a NumPy function for so many elements, split into tasks."""
    return Routine(f"numpy.{name}", False, -(-items // max(1, tasks)), max(1, tasks), work)


def bytes_of(*groups: Sequence[Array]) -> int:
    return sum(array.nbytes for arrays in groups for array in arrays)
