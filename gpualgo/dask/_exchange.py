"""From sorted runs to the chunks of a result: pieces of each, directly or by way of groups."""

from __future__ import annotations

import math
from typing import Any

from dask.task_spec import TaskRef

from gpualgo.dask._graph import Graph
from gpualgo.dask._values import Parts, copied, joined, taken

Run = tuple[Parts, Parts]
"""Sorted keys, and what has moved along."""

MOST_DIRECT = 64 * 64  # pieces that go straight; of more by way of groups


def exchanged(
    graph: Graph, runs: list[TaskRef], cuts: TaskRef, num_chunks: int
) -> list[list[TaskRef]]:
    """Return, for each result chunk, what comes to it of all runs, for `arrived`.

    `cuts` gives where each run is cut: a row for each boundary of result chunks.
    """
    if len(runs) * num_chunks > MOST_DIRECT:
        return _by_groups(graph, runs, cuts, num_chunks)
    return [
        [graph.add("piece", (i, j), piece, own, cuts, i, j, j + 1) for i, own in enumerate(runs)]
        for j in range(num_chunks)
    ]


def _by_groups(
    graph: Graph, runs: list[TaskRef], cuts: TaskRef, num_chunks: int
) -> list[list[TaskRef]]:
    """Return the same by two steps: what goes from some runs to some chunks goes together first.

    Runs of a group are not neighbours: of keys that are in order already, each group's would go to
    one place.
    """
    count, size = len(runs), math.isqrt(num_chunks - 1) + 1
    groups = math.isqrt(count - 1) + 1
    gathered: list[list[TaskRef]] = []
    for target, first in enumerate(range(0, num_chunks, size)):
        last = min(first + size, num_chunks)
        bundles = []
        for group in range(groups):
            parts = [
                graph.add("part", (i, target), piece, runs[i], cuts, i, first, last)
                for i in range(group, count, groups)
            ]
            bundles.append(graph.add("bundle", (group, target), bundle, parts))
        for j in range(first, last):
            args = cuts, groups, first, j
            gathered.append(
                [
                    graph.add("piece", (group, j), pieces, bundles[group], group, *args)
                    for group in range(groups)
                ]
            )
    return gathered


# --- within tasks -------------------------------------------------------------------------------


def _span(own: int, number: int, table: Any, first: int, last: int) -> slice:
    """Return the places of a run of `own` elements that go to result chunks [first, last)."""
    start = int(table[first - 1, number]) if first else 0
    end = int(table[last - 1, number]) if last <= len(table) else own
    return slice(start, end)


def piece(own: Run, table: Any, number: int, first: int, last: int) -> Run:
    """Return what of a run goes to some result chunks, in memory of its own."""
    keys, values = own
    where = _span(len(keys[0]), number, table, first, last)
    return copied(taken(keys, where)), copied(taken(values, where))


def bundle(parts: list[Run]) -> list[Run]:
    """Return pieces of several runs together."""
    return parts


def pieces(parts: list[Run], group: int, table: Any, step: int, first: int, chunk: int) -> Any:
    """Return what of a group's pieces, which go to chunks from `first` on, goes to one chunk."""
    found = []
    for place, (keys, values) in enumerate(parts):
        number = group + place * step
        origin = int(table[first - 1, number]) if first else 0
        where = _span(origin + len(keys[0]), number, table, chunk, chunk + 1)
        own = slice(where.start - origin, where.stop - origin)
        found.append((number, (copied(taken(keys, own)), copied(taken(values, own)))))
    return found


def arrived(parts: list[Any]) -> Run:
    """Return what has come to a result chunk, in the order of the runs."""
    if isinstance(parts[0], list):  # of groups: with the numbers of their runs
        numbered = [pair for group in parts for pair in group]
        parts = [own for _, own in sorted(numbered, key=lambda pair: int(pair[0]))]
    return joined([own[0] for own in parts]), joined([own[1] for own in parts])
