"""Dask arrays as expressions, for dask's `array.query-planning`."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from itertools import product
from typing import Any

from dask._collections import new_collection
from dask.array._array_expr._expr import ArrayExpr
from dask.task_spec import Alias, List, Task, TaskRef

from gpualgo.dask._values import namespace_of


class Tasks:
    """A task graph whose name identifies its content."""

    def __init__(self, tasks: dict[Any, Any], name: str) -> None:
        self.tasks, self.name = tasks, name

    def __dask_tokenize__(self) -> Any:
        return "gpualgo-tasks", self.name


def array_of_tasks(
    tasks: dict[Any, Any], name: str, chunks: Any, meta: Any, sources: Sequence[Any]
) -> Any:
    names = tuple(source.name for source in sources)
    return new_collection(
        FromTasks(Tasks(tasks, name), chunks, meta, names, *[source.expr for source in sources])
    )


class FromTasks(ArrayExpr):
    """An array computed by given tasks, which read chunks of source arrays by their original names.

    Optimisation may rename the sources and this array; aliases map the old names to the new ones.
    """

    _parameters = ["tasks", "chunks", "_meta", "source_names"]  # noqa: RUF012  # dask's convention

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

    def finalize_compute(self) -> Any:
        """Return an expression of one chunk; dask's own needs known chunk sizes."""
        if self.ndim != 1 or not any(size != size for size in self.chunks[0]):
            return super().finalize_compute()
        name = f"ga-whole-{self.deterministic_token}"
        keys = [TaskRef((self._name, i)) for i in range(self.numblocks[0])]
        tasks = {(name, 0): Task((name, 0), whole, List(*keys))}
        return FromTasks(Tasks(tasks, name), ((math.nan,),), self._meta, (self._name,), self)

    def _layer(self) -> dict[Any, Any]:
        graph = self.operand("tasks")
        layer = dict(graph.tasks)
        for index in product(*map(range, self.numblocks)):
            key = (self._name, *index)
            layer[key] = Alias(key, (graph.name, *index))
        for name, source in zip(self.operand("source_names"), self.dependencies(), strict=True):
            if source._name != name:
                for index in product(*map(range, source.numblocks)):
                    layer[(name, *index)] = Alias((name, *index), (source._name, *index))
        return layer


def whole(chunks: list[Any]) -> Any:
    """Concatenate the chunks of a 1-D array."""
    return namespace_of(chunks[0]).concatenate(chunks)
