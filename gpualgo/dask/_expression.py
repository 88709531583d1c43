"""Arrays of tasks as expressions, for dask's `array.query-planning`."""

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

    def finalize_compute(self) -> Any:
        """Return an expression of one chunk; dask's own needs the sizes of all."""
        if self.ndim != 1 or not any(size != size for size in self.chunks[0]):
            return super().finalize_compute()
        name = f"ga-whole-{self.deterministic_token}"
        keys = [TaskRef((self._name, i)) for i in range(self.numblocks[0])]
        tasks = {(name, 0): Task((name, 0), whole, List(*keys))}
        return FromTasks(Tasks(tasks, name), ((math.nan,),), self._meta, (self._name,), self)

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


def whole(chunks: list[Any]) -> Any:
    """Return all chunks of an array of one dimension."""
    return namespace_of(chunks[0]).concatenate(chunks)
