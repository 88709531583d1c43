"""Runs of equal neighbours that continue across chunks; each is output by the chunk it begins in.

Two chains of tasks: from the left the last key before each chunk, to tell whether its first run
began earlier; from the right the aggregate of its first run, including its continuation in later
chunks.
"""

from __future__ import annotations

from typing import Any

from dask.task_spec import TaskRef

import gpualgo as ga
from gpualgo.dask._graph import Graph
from gpualgo.dask._operators import Frozen, load_operator
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
"""Of a chunk: the first keys of its runs, the runs' aggregates, and the chunk's last key."""
How = tuple[Pattern, "Frozen | None", tuple[Any, ...]]
"""How two aggregates of a run are combined: pattern, operator, dtypes.

Without an operator the dtypes are "first" or "sum".
"""


def settled(
    graph: Graph, runs: list[TaskRef], keys: Pattern, eq: Frozen | None, rest: Rest, how: Any
) -> None:
    """Add the result chunks: the runs that begin in each chunk, with their continuations."""
    before: list[TaskRef | None] = [None]
    for i, run in enumerate(runs[:-1]):
        before.append(graph.add("last", (i,), last, before[-1], run))
    behind: TaskRef | None = None
    for i, run in reversed(list(enumerate(runs))):
        args = behind, before[i], keys, eq, *how
        graph.add("", (i,), begun, run, *args, rest)
        if i:
            behind = graph.add("first", (i,), first, run, behind, keys, eq, *how)


# --- within tasks -------------------------------------------------------------------------------


def last(before: Parts | None, own: Runs) -> Parts | None:
    """Return the last key of a chunk; if it is empty, of the chunks before it."""
    return own[2] if len(own[2][0]) else before


def first(
    own: Runs, behind: tuple[Parts, Parts] | None, keys: Pattern, eq: Frozen | None,
    pattern: Pattern, op: Frozen | None, kinds: tuple[Any, ...],
) -> tuple[Parts, Parts] | None:  # fmt: skip
    """Return the first key of a chunk and the aggregate of its run, with its continuation."""
    heads, aggregates, last_key = own
    count = len(heads[0])
    if not count:
        return behind
    aggregate = taken(aggregates, slice(0, 1))
    if count == 1 and behind is not None and _is_same_run(last_key, behind[0], keys, eq):
        aggregate = _combined(aggregate, behind[1], (pattern, op, kinds))
    return taken(heads, slice(0, 1)), aggregate


def begun(
    own: Runs, behind: tuple[Parts, Parts] | None, before: Parts | None, keys: Pattern,
    eq: Frozen | None, pattern: Pattern, op: Frozen | None, kinds: tuple[Any, ...], rest: Rest,
) -> Any:  # fmt: skip
    """Return the runs that begin in a chunk; the last includes its continuation."""
    heads, aggregates, last_key = own
    count = len(heads[0])
    start = int(
        count > 0 and before is not None
        and _is_same_run(before, taken(heads, slice(0, 1)), keys, eq)
    )  # fmt: skip
    combine = pattern, op, kinds
    if start < count and behind is not None and _is_same_run(last_key, behind[0], keys, eq):
        total = _combined(taken(aggregates, slice(count - 1, None)), behind[1], combine)
        aggregates = joined([taken(aggregates, slice(0, count - 1)), total])
    heads, aggregates = taken(heads, slice(start, None)), taken(aggregates, slice(start, None))
    return result((*heads, *_apply_init(aggregates, rest, combine)))


def _apply_init(aggregates: Parts, rest: Rest, combine: How) -> Parts:
    """Combine init with each aggregate."""
    init, (pattern, op, dtypes) = value_of([], rest, ()), combine
    if init is None:
        return aggregates
    distinct_keys = namespace_of(aggregates[0]).arange(len(aggregates[0]))
    _, results = ga.reduce_by_key(
        distinct_keys, packed(pattern, aggregates), init, load_operator(op), consecutive=True,
        dtype=packed(pattern, dtypes),
    )  # fmt: skip
    return parts_of(results)


def _is_same_run(a: Parts, b: Parts, keys: Pattern, eq: Frozen | None) -> bool:
    """Return whether key b continues the run of key a."""
    values, _ = ga.run_length_encode(packed(keys, joined([a, b])), eq=load_operator(eq))
    return len(parts_of(values)[0]) == 1


def _combined(a: Parts, b: Parts, combine: How) -> Parts:
    """Combine two aggregates of one run."""
    pattern, op, kinds = combine
    if op is None:
        return tuple(
            p if kind == "first" else p + q for p, q, kind in zip(a, b, kinds, strict=True)
        )
    x, dtype = packed(pattern, joined([a, b])), packed(pattern, kinds)
    return parts_of(ga.reduce(x, None, load_operator(op), axis=(0,), keepdims=True, dtype=dtype))
