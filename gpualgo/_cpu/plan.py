"""Plans on the CPU, decided from the layouts of arrays, and the tables that kernels read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpualgo._base import threads

# --- Layouts of the tables of words that kernels of several algorithms read.

# One array's numbers, which a kernel needs dense and in its own type: the address and the size of a
# number; whether they are dense already, else the packer's address and the offset of the copy in
# scratch memory; the converter's address (0: none) and the offset of its result. See
# `layout.field_arguments` and `packing.dense_address`.
START, SIZE, DIRECT, PACK, PACKED, CONVERT, CONVERTED, LEAF = range(8)

# Launches by a built-in function, on one table after the other in one block of words: the block's
# length and address, the numbers of slots that each call fills, of slots for addresses in scratch
# memory, and of launches. From LAUNCH_SLOTS on: the indices of the former slots; pairs of an index
# and an offset in scratch memory; for each launch the code's address, its table's index in the
# block, and its number of tasks.
(LAUNCH_WORDS, LAUNCH_TABLE, LAUNCH_NUM_SLOTS, LAUNCH_NUM_INNER, LAUNCH_NUM_STEPS,
 LAUNCH_SLOTS) = range(6)  # fmt: skip

# A job that threads share (direct_kernels.py). Each word that is written while the job runs has its
# own cache line; words that are only read share one.
JOB_SEQUENCE, JOB_NEXT, JOB_INSIDE, JOB_FAILED, JOB_STOPPED, JOB_ENTRY = range(0, 48, 8)
JOB_TABLE, JOB_TASKS, JOB_PIECE, JOB_MEMBERS = range(JOB_ENTRY + 1, JOB_ENTRY + 5)
JOB_WORDS = JOB_ENTRY + 8

# A copy of memory: target, source, number of bytes, and bytes in one task.
TARGET, SOURCE, SIZE_OF_ALL, PIECE, COPY_WORDS = range(5)


# --- Plans.

Array = np.ndarray[Any, Any]
Run: TypeAlias = Callable[[Sequence[Array], Sequence[Array], int], None]
"""run(inputs, results, address of the initial value or 0)"""
Make: TypeAlias = Callable[[Sequence[Array], int], Any]
"""make(inputs, address of the initial value or 0): returns a new result."""


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

    `run` reads the operator's captured values when it is called (see `memory.run_captured`).
    It holds none of the arrays that it was planned for. `routines` are what it runs, in order.
    `maker`, if there is one, returns a faster way to a new result than `make` has.
    """

    run: Run
    routines: Sequence[Routine]
    maker: Callable[[tuple[int, ...], np.dtype[Any], bool], Make] | None = None

    def make(self, shape: tuple[int, ...], dtype: np.dtype[Any], is_scalar: bool) -> Make:
        """Return the function for calls with one new result, of this shape and dtype."""
        if self.maker is not None:
            return self.maker(shape, dtype, is_scalar)
        run = self.run

        def make(arrays: Sequence[Array], init: int) -> Any:
            result = np.empty(shape, dtype)
            run(arrays, (result,), init)
            return result[()] if is_scalar else result

        return make

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

        return Plan(run, self.routines)


def compiled(name: str, items: int, tile: int, work: int) -> Routine:
    """Return a compiled kernel for so many elements, split into tiles."""
    return Routine(name, True, min(tile, max(1, items)), max(1, -(-items // max(1, tile))), work)


def of_numpy(name: str, items: int, tasks: int, work: int) -> Routine:
    """Return a NumPy function for so many elements, split into tasks."""
    return Routine(f"numpy.{name}", False, -(-items // max(1, tasks)), max(1, tasks), work)


def bytes_of(*groups: Sequence[Array]) -> int:
    return sum(array.nbytes for arrays in groups for array in arrays)
