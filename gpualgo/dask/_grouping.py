"""Bring equal keys of all chunks together: cut runs of distinct keys at common splitters.

The keys of each run are sorted and distinct, so few distinct keys are few elements. Samples divide
the key range among result chunks; the sizes of these are known once they are computed.
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

CHUNKS_TOGETHER = 4  # input chunks per result chunk
_SAMPLES_PER_CUT = 4


def together(
    graph: Graph, runs: list[TaskRef], order: Plain, finish: Callable[..., Any], *args: Any
) -> int:
    """Add the result chunks of runs of distinct keys; return their number.

    `finish` combines the slices of all runs for one result chunk, in the order of the runs.
    """
    outputs = -(-len(runs) // CHUNKS_TOGETHER)
    if outputs == 1:
        graph.add("", (0,), finish, runs, order, *args)
        return 1
    count = _SAMPLES_PER_CUT * outputs
    samples = [graph.add("sample", (i,), sample, run, count) for i, run in enumerate(runs)]
    splitters = graph.add("splitters", (), divided, samples, outputs, order)
    run_cuts = [graph.add("places", (i,), cut, run, splitters, order) for i, run in enumerate(runs)]
    cuts = graph.add("cuts", (), table, run_cuts, outputs)
    for j, pieces in enumerate(exchanged(graph, runs, cuts, outputs)):
        graph.add("", (j,), finish, pieces, order, *args)
    return outputs


# --- within tasks -------------------------------------------------------------------------------


def sample(own: Run, count: int) -> tuple[Parts, int]:
    """Return evenly spaced keys of a run, and the number of keys each stands for."""
    width = max(1, len(own[0][0]) // count)
    return copied(taken(own[0], slice(width - 1, None, width))), width


def divided(samples: list[tuple[Parts, int]], outputs: int, order: Plain) -> Parts | None:
    """Return keys that split all keys into ranges of similar size; None if there are no keys."""
    lengths = [len(parts[0]) for parts, _ in samples]
    if not sum(lengths):
        return None
    keys = joined([parts for parts, _ in samples])
    order_of_samples = _order.sort_indices(keys, order)
    weights = np.repeat([width for _, width in samples], lengths)[on_host(order_of_samples)]
    cumulative = np.cumsum(weights)
    wanted = cumulative[-1] * np.arange(1, outputs) // outputs
    chosen = np.clip(np.searchsorted(cumulative, wanted), 0, len(cumulative) - 1)
    return taken(keys, order_of_samples[namespace_of(order_of_samples).asarray(chosen)])


def cut(own: Run, splitters: Parts | None, order: Plain) -> Any:
    """Return the indices that cut a run behind the keys up to each splitter."""
    return None if splitters is None else _order.up_to(own[0], splitters, order)


def table(places: list[Any], outputs: int) -> np.ndarray[Any, Any]:
    """Return the cuts of all runs: a row for each splitter."""
    if places[0] is None:
        return np.zeros((outputs - 1, len(places)), np.int64)
    return np.stack(places, 1).astype(np.int64)
