"""Sorting arrays of the host that are larger than a GPU's memory: runs, exact cuts, merged blocks.

Rows that fit travel several at a time. A row that does not is sorted in runs, which come back to
the host; then each block of the result is put together of one piece of each run. The pieces begin
and end where exact cuts say (`gpualgo/_base/splitting.py`), equal keys by run and place: sorting
them stably, in the order of the runs, is their stable merge. So the result is the one that there
is, whatever the runs are: keys and values cross the bus twice each way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gpualgo._algorithms.radix_sort import policy
from gpualgo._algorithms.radix_sort.ranks import ranks_of
from gpualgo._algorithms.transform import cuda as elementwise
from gpualgo._algorithms.transform.policy import Applied
from gpualgo._arrays.view import View, dense_view
from gpualgo._base import records
from gpualgo._base.splitting import cuts
from gpualgo._cuda.plan import Plan
from gpualgo._driver import driver, staging
from gpualgo._operators.operator import as_operator
from gpualgo._pipeline import host_blocks
from gpualgo._pipeline.problem import Array, problem_of

if TYPE_CHECKING:
    from gpualgo._algorithms.radix_sort.problem import Sort
    from gpualgo._algorithms.radix_sort.tuple_problem import TupleSort

# Longer runs would be counted in 8 bytes; but for many of them, as each is looked at for each cut.
_RUN_ITEMS, _MOST_RUNS = 1 << 31, 32
_COPIES = 4  # of keys and values: as they come and go, and those of a sort of rows with gaps
_WORDS_BYTES = 48  # of what moves in place of an element of several numbers, twice, and its index


def sort(problem: Sort | TupleSort, arrays: list[Array], results: list[Array], stream: Any) -> bool:
    """Sort arrays of which at least one key is there; False: they fit the GPU as a whole."""
    allowed = host_blocks.allowed_bytes(problem.device)
    work = _Work(problem, arrays)
    if arrays[0].size * work.item_bytes <= allowed:
        return False
    reason = f"{problem.where}: the arrays do not fit the GPU together, so the host takes part"
    handle = host_blocks.begin(problem, arrays[0], stream, reason)
    with host_blocks.told(problem.where, arrays, results) as work.written:
        for room in (allowed, allowed // 2, allowed // 4, allowed // 8):
            try:
                work.sort(arrays, results, handle, room)
                break
            except MemoryError:  # others have the rest: the result does not depend on the runs
                if work.written.has_begun or room == allowed // 8:
                    raise
    return True


Row: TypeAlias = tuple[list[Array], list[Array]]
"""What a row is sorted from, and where to."""


class _Work:
    """What is sorted: dtypes of keys and values, and how many bytes an element takes."""

    def __init__(self, problem: Sort | TupleSort, arrays: Sequence[Array]) -> None:
        self.problem, self.device, self.index = problem, problem.device, problem.index_dtype
        self.dtypes = [array.dtype for array in arrays]
        if self.index is not None:
            self.dtypes.append(self.index)  # positions travel along as values
        has_words = all(dtype.itemsize in policy.WORDS for dtype in self.dtypes)
        is_plain = has_words and not problem.is_of_tuples
        moved = sum(dtype.itemsize for dtype in self.dtypes)
        self.item_bytes = _COPIES * moved + (0 if is_plain else _WORDS_BYTES)
        self.written = host_blocks.Written()

    def sort(self, arrays: list[Array], results: list[Array], stream: int, allowed: int) -> None:
        """Sort arrays of the host, by so many bytes of the device."""
        axis, row_items = self.problem.axis, self.problem.row_items
        if axis is None:
            row = arrays, [result.reshape(-1) for result in results]
            self.sort_long_rows([row], stream, allowed)
            return
        sources, targets = ([np.moveaxis(x, axis, -1) for x in side] for side in (arrays, results))
        if row_items * self.item_bytes <= allowed:
            self.sort_rows(sources, targets, stream, allowed)
            return
        indices = np.ndindex(sources[0].shape[:-1])
        rows = [([x[i] for x in sources], [x[i] for x in targets]) for i in indices]
        self.sort_long_rows(rows, stream, allowed)

    # --- rows that fit ------------------------------------------------------------------------

    def sort_rows(
        self, sources: list[Array], targets: list[Array], stream: int, allowed: int
    ) -> None:
        """Sort along the last axis, as many rows at once as there is room for."""
        *outer, row_items = sources[0].shape
        row_bytes = row_items * self.item_bytes
        indices = [(*index, ...) for index in staging.pieces(tuple(outer), row_bytes, allowed)]
        shapes = {sources[0][index].shape for index in indices}
        plans = {shape: self._plan(shape, targets, len(shape) - 1, self.index) for shape in shapes}
        most = max(map(math.prod, shapes))
        sizes = [most * x.dtype.itemsize for x in (*sources, *targets)]
        with host_blocks.memory(self.device, stream, sizes, [*plans.values()]) as (memory, queue):
            for index in indices:
                for x, address in zip(sources, memory, strict=False):
                    staging.upload(x[index], address, self.device, stream)
                queue(plans[sources[0][index].shape], *memory)
                self.written.has_begun = True
                for x, address in zip(targets, memory[len(sources) :], strict=True):
                    staging.download(address, x[index], self.device, stream)
            driver.synchronize(stream)

    # --- rows that do not ---------------------------------------------------------------------

    def sort_long_rows(self, rows: Sequence[Row], stream: int, allowed: int) -> None:
        """Sort all elements of each row's sources in C order; its targets have one dimension."""
        size = rows[0][0][0].size
        run = min(allowed // self.item_bytes, max(_RUN_ITEMS, -(-size // _MOST_RUNS))) or 1
        runs = [np.empty(size, dtype) for dtype in self.dtypes]
        ends = [(start, min(start + run, size)) for start in range(0, size, run)]
        plans = {n: self._plan((n,), runs, 0, None) for n in {end - start for start, end in ends}}
        counting = {} if self.index is None else {n: self._positions(n, self.index) for n in plans}
        sizes = 2 * [run * dtype.itemsize for dtype in self.dtypes]
        all_plans = [*plans.values(), *counting.values()]
        with host_blocks.memory(self.device, stream, sizes, all_plans) as (memory, queue):
            inputs, outputs = memory[: len(runs)], memory[len(runs) :]

            def sort(count: int, targets: Sequence[tuple[Array, int]], start: int) -> None:
                queue(plans[count], *inputs, *outputs)
                for x, address in targets:
                    staging.download(address, x[start : start + count], self.device, stream)

            for sources, targets in rows:
                for start, end in ends:
                    for x, address in zip(sources, inputs, strict=False):
                        parts = staging.stretch(x, start, end)
                        staging.upload_all(parts, address, self.device, stream)
                    if counting:
                        queue(counting[end - start], start, inputs[-1])
                    sort(end - start, list(zip(runs, outputs, strict=True)), start)
                driver.synchronize(stream)
                pieces = pairwise(self._cuts(runs, ends))
                self.written.has_begun = True
                for (start, end), (first, last) in zip(ends, pieces, strict=True):
                    for x, address in zip(runs, inputs, strict=True):
                        parts = [x[a:b] for a, b in zip(first, last, strict=True)]
                        staging.upload_all(parts, address, self.device, stream)
                    arrivals = zip(targets, outputs[-len(targets) :], strict=True)
                    sort(end - start, list(arrivals), start)
                driver.synchronize(stream)

    def _cuts(self, runs: Sequence[Array], ends: Sequence[tuple[int, int]]) -> list[list[int]]:
        """Return where the pieces of each block begin in the runs, and where the last ones end."""
        problem = self.problem
        bits = None if problem.end_bit is None else (problem.begin_bit, problem.end_bit)
        rank = ranks_of(self.dtypes[: problem.num_keys], problem.ways, bits)
        keys = [x.view(f"u{x.dtype.itemsize}") for x in runs[: problem.num_keys]]

        def read(run: int, place: int) -> tuple[int, ...]:
            at = ends[run][0] + place
            return rank([int(x[at]) for x in keys])

        ranks = [0, *(end for _, end in ends)]
        found = cuts([end - start for start, end in ends], ranks, read)
        return [[start + cut for (start, _), cut in zip(ends, each, strict=True)] for each in found]

    # --- plans --------------------------------------------------------------------------------

    def _plan(
        self, shape: tuple[int, ...], targets: Sequence[Array], axis: int, index: Any
    ) -> Plan:
        """Return the plan that sorts arrays of a shape without gaps; with `index` their order."""
        problem, dtypes = self.problem, self.dtypes
        if index is not None:
            dtypes = dtypes[:-1]
        views = host_blocks.host(dtypes, shape)
        rest = problem.rest_along(axis, index)
        same = problem_of(type(problem), views, None, None, rest, problem.where, 0, self.device)
        outs = [target.dtype for target in targets]
        return same.cuda(
            host_blocks.dense(dtypes, shape, self.device), None,
            host_blocks.dense(outs, shape, self.device, len(dtypes)),
        )  # fmt: skip

    def _positions(self, count: int, dtype: np.dtype[Any]) -> Plan:
        """Return the plan that writes so many positions, of which the first is its source."""
        dtype = np.dtype(f"i{dtype.itemsize}")  # whose bits those of unsigned positions are
        op = as_operator(_same, self.problem.where, 1)
        number = records.number_of(records.POSITION)
        applied = Applied(op, (number,), dtype, (records.POSITION,))
        places: View = dense_view(0, (count,), records.POSITION, self.device)
        places = places._replace(strides=(records.step_of(records.POSITION),))
        return elementwise.plan_of(
            applied, [places], (count,), host_blocks.dense([dtype], (count,), self.device)
        )


def _same(a: Any) -> Any:
    return a
