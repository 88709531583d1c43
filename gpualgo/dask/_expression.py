"""Arrays of tasks as expressions, for dask's `array.query-planning`."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import product
from typing import Any

from dask._collections import new_collection
from dask.array._array_expr._expr import ArrayExpr
from dask.task_spec import Alias


class Tasks:
    """Tasks that their name tells all about."""

    def __init__(self, tasks: dict[Any, Any], name: str) -> None:
        self.tasks, self.name = tasks, name

    def __dask_tokenize__(self) -> Any:
        return "gpualgo-tasks", self.name


def array_of_tasks(
    tasks: dict[Any, Any], name: str, chunks: Any, meta: Any, sources: Sequence[Any]
) -> Any:
    """Return the dask array of an expression."""
    names = tuple(source.name for source in sources)
    return new_collection(
        FromTasks(Tasks(tasks, name), chunks, meta, names, *[source.expr for source in sources])
    )


class FromTasks(ArrayExpr):
    """An array of given tasks, which read chunks of others by the names that those had then.

    Optimisation may give what it reads other names, and so itself: aliases lead from one to the
    other.
    """

    _parameters = ["tasks", "chunks", "_meta", "source_names"]  # noqa: RUF012  # as dask has it

    @functools.cached_property
    def _meta(self) -> Any:
        return self.operand("_meta")

    @functools.cached_property
    def chunks(self) -> Any:
        return self.operand("chunks")

    @functools.cached_property
    def _name(self) -> str:
        prefix = self.operand("tasks").name.rpartition("-")[0]
        return f"{prefix}-{self.deterministic_token}"

    def _layer(self) -> dict[Any, Any]:
        given = self.operand("tasks")
        layer = dict(given.tasks)
        for index in product(*map(range, self.numblocks)):
            key = (self._name, *index)
            layer[key] = Alias(key, (given.name, *index))
        for name, source in zip(self.operand("source_names"), self.dependencies(), strict=True):
            if source._name != name:
                for index in product(*map(range, source.numblocks)):
                    layer[(name, *index)] = Alias((name, *index), (source._name, *index))
        return layer
