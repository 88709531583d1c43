"""Results: the dask arrays of a step's tasks, packed as on a single machine."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from dask.task_spec import TaskRef

from gpualgo._arrays.forms import Form
from gpualgo.dask._graph import Chunks, Graph
from gpualgo.dask._values import meta_like


def item(parts: Any, number: int) -> Any:
    return parts[number]


def arrays(
    graph: Graph, step: str, like: Any, chunks: Chunks, dtypes: Sequence[Any], sources: Any
) -> list[Any]:
    """Return a dask array for each dtype; tasks return tuples if there are several."""
    metas = [meta_like(like, len(chunks), dtype) for dtype in dtypes]
    whole = graph.array(step, chunks, metas[0], sources)
    if len(dtypes) == 1:
        return [whole]
    results = []
    for number, meta in enumerate(metas):
        part = Graph(f"{graph.name}-item", graph.token, step, number)
        for index in product(*map(range, map(len, chunks))):
            part.add("", index, item, TaskRef((whole.name, *index)), number)
        results.append(part.array("", chunks, meta, [whole]))
    return results


def pack_results(form: Form | None, found: Sequence[Any]) -> Any:
    """Return the only array, or several packed in their form."""
    return found[0] if form is None else form.packed(found)
