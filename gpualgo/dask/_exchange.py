"""Move slices of sorted runs to result chunks: directly, or through groups of runs."""

from __future__ import annotations

import math
from typing import Any

from dask.task_spec import TaskRef

from gpualgo.dask._graph import Graph
from gpualgo.dask._values import Parts, concatenate, copied, index_parts

Run = tuple[Parts, Parts]
"""Sorted keys and the values moved with them."""

MOST_DIRECT = 64 * 64  # slices sent directly; above that, through groups


def add_exchange(
    graph: Graph, runs: list[TaskRef], cuts: TaskRef, num_chunks: int
) -> list[list[TaskRef]]:
    """For each result chunk, return the slices it gets from all runs, as `arrived` reads them.

    `cuts` has a row for each boundary between result chunks: the index at which each run is cut.
    """
    if len(runs) * num_chunks > MOST_DIRECT:
        return _by_groups(graph, runs, cuts, num_chunks)
    return [
        [
            graph.add("piece", (i, j), slice_run, run, cuts, i, j, j + 1)
            for i, run in enumerate(runs)
        ]
        for j in range(num_chunks)
    ]


def _by_groups(
    graph: Graph, runs: list[TaskRef], cuts: TaskRef, num_chunks: int
) -> list[list[TaskRef]]:
    """As `exchanged`, in two steps: groups of runs first bundle their slices for groups of chunks.

    A group takes every n-th run: of sorted input, neighbouring runs would all go to one chunk.
    """
    count, size = len(runs), math.isqrt(num_chunks - 1) + 1
    groups = math.isqrt(count - 1) + 1
    gathered: list[list[TaskRef]] = []
    for target, first in enumerate(range(0, num_chunks, size)):
        last = min(first + size, num_chunks)
        bundles = []
        for group in range(groups):
            parts = [
                graph.add("part", (i, target), slice_run, runs[i], cuts, i, first, last)
                for i in range(group, count, groups)
            ]
            bundles.append(graph.add("bundle", (group, target), bundle, parts))
        for j in range(first, last):
            args = cuts, groups, first, j
            gathered.append(
                [
                    graph.add("piece", (group, j), slice_bundle, bundles[group], group, *args)
                    for group in range(groups)
                ]
            )
    return gathered


# --- within tasks -------------------------------------------------------------------------------


def _span(length: int, number: int, table: Any, first: int, last: int) -> slice:
    """Return the slice of a run of `length` elements that result chunks [first, last) get."""
    start = int(table[first - 1, number]) if first else 0
    end = int(table[last - 1, number]) if last <= len(table) else length
    return slice(start, end)


def slice_run(own: Run, table: Any, number: int, first: int, last: int) -> Run:
    """Return a copy of the slice of a run that result chunks [first, last) get."""
    keys, values = own
    span = _span(len(keys[0]), number, table, first, last)
    return copied(index_parts(keys, span)), copied(index_parts(values, span))


def bundle(parts: list[Run]) -> list[Run]:
    return parts


def slice_bundle(
    parts: list[Run], group: int, table: Any, step: int, first: int, chunk: int
) -> Any:
    """Return the slices for one chunk, from a group's slices for chunks from `first` on."""
    numbered = []
    for position, (keys, values) in enumerate(parts):
        number = group + position * step
        origin = int(table[first - 1, number]) if first else 0
        span = _span(origin + len(keys[0]), number, table, chunk, chunk + 1)
        local = slice(span.start - origin, span.stop - origin)
        numbered.append(
            (number, (copied(index_parts(keys, local)), copied(index_parts(values, local))))
        )
    return numbered


def join_slices(parts: list[Any]) -> Run:
    """Join the slices for a result chunk, in the order of the runs."""
    if isinstance(parts[0], list):  # from groups: (run number, slice) pairs
        numbered = [pair for group in parts for pair in group]
        parts = [run for _, run in sorted(numbered, key=lambda pair: int(pair[0]))]
    return concatenate([run[0] for run in parts]), concatenate([run[1] for run in parts])
