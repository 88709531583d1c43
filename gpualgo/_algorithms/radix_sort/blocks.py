"""Out-of-core sort of host arrays larger than a GPU's memory.

Rows that fit are sorted several at a time. A longer row is sorted in runs, which are copied back to
the host. Each block of the result is then a stable sort of one piece of each run, in the order of
the runs. Exact cuts delimit the pieces (`gpualgo/_base/threads.py`; ties are broken by run and
index), so the result does not depend on the runs. Keys and values cross the bus twice each way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from gpualgo._algorithms.radix_sort import tuning
from gpualgo._algorithms.radix_sort.digits import ranks_of
from gpualgo._algorithms.radix_sort.problem import Sort
from gpualgo._algorithms.radix_sort.tuple_problem import TupleSort
from gpualgo._algorithms.transform import cuda as elementwise
from gpualgo._algorithms.transform.tuning import Applied
from gpualgo._arrays.view import View, dense_view
from gpualgo._base import records
from gpualgo._base.threads import cuts
from gpualgo._cuda.plan import Plan
from gpualgo._driver import driver, staging
from gpualgo._operators.operator import as_operator
from gpualgo._pipeline import host_blocks, planners
from gpualgo._pipeline.problem import Array, problem_of

# Runs have 32-bit counts if that makes at most 32 of them: each cut examines every run.
_RUN_ITEMS, _MOST_RUNS = 1 << 31, 32
_COPIES = 4  # of keys and values: input, output, and two for rows with gaps
_PACKED_BYTES = 48  # per element of several fields: its packed words, twice, and its index


@planners.for_blocks.register(Sort)
@planners.for_blocks.register(TupleSort)
def _(problem: Sort | TupleSort, call: planners.HostCall) -> bool:
    """Sort non-empty host arrays out of core; False if they fit the GPU as a whole."""
    if call.is_forced:
        return False
    arrays, results = call.arrays, call.results
    allowed = host_blocks.allowed_bytes(problem.device)
    sorter = _OutOfCoreSort(problem, arrays)
    if arrays[0].size * sorter.item_bytes <= allowed:
        return False
    reason = f"{problem.where}: the arrays do not fit the GPU together, so the host takes part"
    handle = host_blocks.begin(problem, arrays[0], call.stream, reason)
    with host_blocks.partial_write_guard(problem.where, arrays, results) as sorter.written:
        for budget in (allowed, allowed // 2, allowed // 4, allowed // 8):
            try:
                sorter.sort(arrays, results, handle, budget)
                break
            except MemoryError:  # other users hold memory: retry with shorter runs, same result
                if sorter.written.has_begun or budget == allowed // 8:
                    raise
    return True


Row: TypeAlias = tuple[list[Array], list[Array]]
"""Sources and targets of a row."""


class _OutOfCoreSort:
    """Out-of-core sort: dtypes of keys and values, and GPU bytes per element."""

    def __init__(self, problem: Sort | TupleSort, arrays: Sequence[Array]) -> None:
        self.problem, self.device, self.index = problem, problem.device, problem.index_dtype
        self.dtypes = [array.dtype for array in arrays]
        if self.index is not None:
            self.dtypes.append(self.index)  # positions are sorted as values
        has_words = all(dtype.itemsize in tuning.WORDS for dtype in self.dtypes)
        is_plain = has_words and not problem.is_of_tuples
        moved = sum(dtype.itemsize for dtype in self.dtypes)
        self.item_bytes = _COPIES * moved + (0 if is_plain else _PACKED_BYTES)
        self.written = host_blocks.WriteState()

    def sort(self, arrays: list[Array], results: list[Array], stream: int, allowed: int) -> None:
        """Sort host arrays with at most `allowed` bytes of device memory."""
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
        """Sort along the last axis, as many rows at once as fit."""
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

    # --- rows that do not fit ---------------------------------------------------------------------

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
                    destinations = zip(targets, outputs[-len(targets) :], strict=True)
                    sort(end - start, list(destinations), start)
                driver.synchronize(stream)

    def _cuts(self, runs: Sequence[Array], ends: Sequence[tuple[int, int]]) -> list[list[int]]:
        """Return where each block's pieces begin in the runs; the last entry holds their ends."""
        problem = self.problem
        bits = None if problem.end_bit is None else (problem.begin_bit, problem.end_bit)
        rank = ranks_of(self.dtypes[: problem.num_keys], problem.ways, bits)
        keys = [x.view(f"u{x.dtype.itemsize}") for x in runs[: problem.num_keys]]

        def read(run: int, offset: int) -> tuple[int, ...]:
            index = ends[run][0] + offset
            return rank([int(x[index]) for x in keys])

        ranks = [0, *(end for _, end in ends)]
        table = cuts([end - start for start, end in ends], ranks, read)
        return [[start + cut for (start, _), cut in zip(ends, row, strict=True)] for row in table]

    # --- plans --------------------------------------------------------------------------------

    def _plan(
        self, shape: tuple[int, ...], targets: Sequence[Array], axis: int, index: Any
    ) -> Plan:
        """Return the plan that sorts dense arrays of a shape; with `index`, their order."""
        problem, dtypes = self.problem, self.dtypes
        if index is not None:
            dtypes = dtypes[:-1]
        views = host_blocks.placeholder_host_views(dtypes, shape)
        params = problem.rest_along(axis, index)
        inner = problem_of(type(problem), views, None, None, params, problem.where, 0, self.device)
        outs = [target.dtype for target in targets]
        return planners.cuda_plan(
            inner,
            host_blocks.placeholder_views(dtypes, shape, self.device), None,
            host_blocks.placeholder_views(outs, shape, self.device, len(dtypes)),
        )  # fmt: skip

    def _positions(self, count: int, dtype: np.dtype[Any]) -> Plan:
        """Return the plan that writes consecutive positions; its source is the first one."""
        dtype = np.dtype(f"i{dtype.itemsize}")  # unsigned positions have the same bits
        op = as_operator(_identity, self.problem.where, 1)
        number = records.operand_dtype(records.POSITION)
        applied = Applied(op, (number,), dtype, (records.POSITION,))
        positions: View = dense_view(0, (count,), records.POSITION, self.device)
        positions = positions._replace(strides=(records.step_of(records.POSITION),))
        return elementwise.plan_of(
            applied,
            [positions],
            (count,),
            host_blocks.placeholder_views([dtype], (count,), self.device),
        )


def _identity(a: Any) -> Any:
    return a
