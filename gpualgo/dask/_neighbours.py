"""Runs of equal neighbours that go on from chunk to chunk: each is given where it begins.

Two chains: from the left the last key before each chunk, which tells whether its first run has
begun before; from the right what its first run comes to, with all that goes on behind it.
"""

from __future__ import annotations

from typing import Any

from dask.task_spec import TaskRef

import gpualgo as ga
from gpualgo.dask._graph import Graph
from gpualgo.dask._operators import Frozen, thaw
from gpualgo.dask._starts import Rest, value_of
from gpualgo.dask._values import (
    Parts,
    Pattern,
    joined,
    namespace_of,
    packed,
    parts_of,
    result,
    taken,
)

Runs = tuple[Parts, Parts, Parts]
"""Of a chunk: the first keys of its runs, what these come to, and its last key."""
How = tuple[Pattern, "Frozen | None", tuple[Any, ...]]
"""How two aggregates of a run make one: how they are built, by which operator, in which dtypes.

Without an operator dtypes are words: "first" or "sum".
"""


def settled(
    graph: Graph, runs: list[TaskRef], keys: Pattern, eq: Frozen | None, rest: Rest, how: Any
) -> None:
    """Add the result chunks of runs: those that begin in each chunk, whole."""
    before: list[TaskRef | None] = [None]
    for i, own in enumerate(runs[:-1]):
        before.append(graph.add("last", (i,), last, before[-1], own))
    behind: TaskRef | None = None
    for i, own in reversed(list(enumerate(runs))):
        args = behind, before[i], keys, eq, *how
        graph.add("", (i,), begun, own, *args, rest)
        if i:
            behind = graph.add("first", (i,), first, own, behind, keys, eq, *how)


# --- within tasks -------------------------------------------------------------------------------


def last(before: Parts | None, own: Runs) -> Parts | None:
    """Return the last key of a chunk, or of those before it if it is empty."""
    return own[2] if len(own[2][0]) else before


def first(
    own: Runs, behind: tuple[Parts, Parts] | None, keys: Pattern, eq: Frozen | None,
    pattern: Pattern, op: Frozen | None, kinds: tuple[Any, ...],
) -> tuple[Parts, Parts] | None:  # fmt: skip
    """Return the first key of a chunk and what its run comes to, to its end behind the chunk."""
    names, aggregates, end = own
    count = len(names[0])
    if not count:
        return behind
    aggregate = taken(aggregates, slice(0, 1))
    if count == 1 and behind is not None and _is_one(end, behind[0], keys, eq):
        aggregate = _both(aggregate, behind[1], (pattern, op, kinds))
    return taken(names, slice(0, 1)), aggregate


def begun(
    own: Runs, behind: tuple[Parts, Parts] | None, before: Parts | None, keys: Pattern,
    eq: Frozen | None, pattern: Pattern, op: Frozen | None, kinds: tuple[Any, ...], rest: Rest,
) -> Any:  # fmt: skip
    """Return the runs that begin in a chunk, the last with what goes on behind it."""
    names, aggregates, end = own
    count = len(names[0])
    start = int(
        count > 0 and before is not None
        and _is_one(before, taken(names, slice(0, 1)), keys, eq)
    )  # fmt: skip
    how = pattern, op, kinds
    if start < count and behind is not None and _is_one(end, behind[0], keys, eq):
        whole = _both(taken(aggregates, slice(count - 1, None)), behind[1], how)
        aggregates = joined([taken(aggregates, slice(0, count - 1)), whole])
    names, aggregates = taken(names, slice(start, None)), taken(aggregates, slice(start, None))
    return result((*names, *_from_start(aggregates, rest, how)))


def _from_start(aggregates: Parts, rest: Rest, how: How) -> Parts:
    """Return aggregates that begin with init."""
    init, (pattern, op, dtypes) = value_of([], rest, ()), how
    if init is None:
        return aggregates
    numbers = namespace_of(aggregates[0]).arange(len(aggregates[0]))
    _, found = ga.reduce_by_key(
        numbers, packed(pattern, aggregates), init, thaw(op), consecutive=True,
        dtype=packed(pattern, dtypes),
    )  # fmt: skip
    return parts_of(found)


def _is_one(a: Parts, b: Parts, keys: Pattern, eq: Frozen | None) -> bool:
    """Return whether a key belongs to the run of the one before it."""
    values, _ = ga.run_length_encode(packed(keys, joined([a, b])), eq=thaw(eq))
    return len(parts_of(values)[0]) == 1


def _both(a: Parts, b: Parts, how: How) -> Parts:
    """Return what two aggregates of one run come to."""
    pattern, op, kinds = how
    if op is None:
        return tuple(
            p if kind == "first" else p + q for p, q, kind in zip(a, b, kinds, strict=True)
        )
    x, dtype = packed(pattern, joined([a, b])), packed(pattern, kinds)
    return parts_of(ga.reduce(x, None, thaw(op), axis=(0,), keepdims=True, dtype=dtype))
