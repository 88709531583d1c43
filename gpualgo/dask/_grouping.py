"""Equal keys of all chunks brought together: runs of distinct keys, cut between keys.

What a chunk's keys come to is sorted and distinct, so that few distinct keys are few elements. A
result chunk takes a range of keys from each, as samples divide them; how many it will have is known
once it is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from dask.task_spec import TaskRef

from gpualgo.dask import _order
from gpualgo.dask._exchange import Run, exchanged
from gpualgo.dask._graph import Graph
from gpualgo.dask._order import Plain
from gpualgo.dask._values import Parts, copied, joined, namespace_of, on_host, taken

CHUNKS_TOGETHER = 4  # of what is read, to a chunk of the result, if all keys are distinct
_SAMPLES_PER_CUT = 4


def together(
    graph: Graph, runs: list[TaskRef], order: Plain, finish: Callable[..., Any], *args: Any
) -> int:
    """Add the result chunks of runs of distinct keys, and return how many there are.

    `finish` makes one of what comes of all runs, the first runs' first.
    """
    outputs = -(-len(runs) // CHUNKS_TOGETHER)
    if outputs == 1:
        graph.add("", (0,), finish, runs, order, *args)
        return 1
    count = _SAMPLES_PER_CUT * outputs
    samples = [graph.add("sample", (i,), sample, own, count) for i, own in enumerate(runs)]
    splitters = graph.add("splitters", (), divided, samples, outputs, order)
    places = [graph.add("places", (i,), cut, own, splitters, order) for i, own in enumerate(runs)]
    cuts = graph.add("cuts", (), table, places, outputs)
    for j, pieces in enumerate(exchanged(graph, runs, cuts, outputs)):
        graph.add("", (j,), finish, pieces, order, *args)
    return outputs


# --- within tasks -------------------------------------------------------------------------------


def sample(own: Run, count: int) -> tuple[Parts, int]:
    """Return some keys of a run, as far apart as can be, and how many each stands for."""
    width = max(1, len(own[0][0]) // count)
    return copied(taken(own[0], slice(width - 1, None, width))), width


def divided(samples: list[tuple[Parts, int]], outputs: int, order: Plain) -> Parts | None:
    """Return keys that divide all into about equal ranges; None: there are none."""
    lengths = [len(parts[0]) for parts, _ in samples]
    if not sum(lengths):
        return None
    keys = joined([parts for parts, _ in samples])
    places = _order.sorted_places(keys, order)
    weights = np.repeat([width for _, width in samples], lengths)[on_host(places)]
    until = np.cumsum(weights)
    wanted = until[-1] * np.arange(1, outputs) // outputs
    chosen = np.clip(np.searchsorted(until, wanted), 0, len(until) - 1)
    return taken(keys, places[namespace_of(places).asarray(chosen)])


def cut(own: Run, splitters: Parts | None, order: Plain) -> Any:
    """Return where a run is cut: behind the keys up to each splitter."""
    return None if splitters is None else _order.up_to(own[0], splitters, order)


def table(places: list[Any], outputs: int) -> np.ndarray[Any, Any]:
    """Return where all runs are cut: a row for each splitter."""
    if places[0] is None:
        return np.zeros((outputs - 1, len(places)), np.int64)
    return np.stack(places, 1).astype(np.int64)
