"""Plans on the CPU: what a call runs, decided from the layouts of its arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpualgo._base import threads

Array = np.ndarray[Any, Any]
Run: TypeAlias = Callable[[Sequence[Array], Sequence[Array], int], None]
"""run(inputs, results, address of the initial value or 0)"""


class Routine(NamedTuple):
    """A compiled kernel, named as in its key, or a NumPy function; for `explain`.

    `tile`: elements of a task; `tasks`: maximal number of tasks; `work`: as for `threads.run`.
    """

    name: str
    is_compiled: bool
    tile: int
    tasks: int
    work: int

    @property
    def threads(self) -> int:
        return min(self.tasks, threads.most_for(self.work))


class Plan(NamedTuple):
    """How a call is computed from arrays of known layouts, at any addresses.

    `run` reads the operator's captured values when it is called (see `captured.captures_bound`).
    It holds none of the arrays that it was planned for. `routines` are what it runs, in order.
    `make` returns the result instead of writing it, where NumPy makes a new array of it anyway.
    """

    run: Run
    routines: Sequence[Routine]
    make: Callable[[Sequence[Array]], Array] | None = None

    def into(self, results: Sequence[Array]) -> Plan:
        """Return the plan for results of any strides; this one needs C-contiguous ones."""
        if all(result.flags.c_contiguous for result in results):
            return self
        fill = self.run

        def run(arrays: Sequence[Array], results: Sequence[Array], init: int) -> None:
            dense = [np.empty(result.shape, result.dtype) for result in results]
            fill(arrays, dense, init)
            for result, values in zip(results, dense, strict=True):
                result[...] = values

        return self._replace(run=run)


def compiled(name: str, items: int, tile: int, work: int) -> Routine:
    """Return a compiled kernel for so many elements, split into tiles."""
    return Routine(name, True, min(tile, max(1, items)), max(1, -(-items // max(1, tile))), work)


def of_numpy(name: str, items: int, tasks: int, work: int) -> Routine:
    """Return a NumPy function for so many elements, split into tasks."""
    return Routine(f"numpy.{name}", False, -(-items // max(1, tasks)), max(1, tasks), work)


def bytes_of(*groups: Sequence[Array]) -> int:
    return sum(array.nbytes for arrays in groups for array in arrays)
