"""Graphs of tasks, and the one place that knows how dask makes an array of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import dask.array as da
from dask.base import tokenize
from dask.task_spec import Alias, List, Task, TaskRef

import gpualgo
from gpualgo._driver import default_device
from gpualgo.dask import _tasks
from gpualgo.dask._runner import runner

Index: TypeAlias = tuple[int, ...]
Chunks: TypeAlias = tuple[tuple[Any, ...], ...]

FAN_IN = 16  # of trees: part of how elements are grouped, so neither an option nor dask's config
LARGE_BYTES = 10_000  # of a value that many tasks need: it is a task of its own then


class Graph:
    """Tasks under names that say what they do and, by a hash, of what.

    Equal calls have equal names, in every process: what dask has computed it finds again.
    """

    def __init__(self, name: str, *content: Any) -> None:
        self.device = device()
        self.token = tokenize(gpualgo.__version__, self.device, name, *content)
        self.name = name
        self.tasks: dict[Any, Any] = {}

    def key(self, step: str, *index: int) -> tuple[Any, ...]:
        """Return the key of a step's task."""
        return (f"ga-{self.name}{step and '-'}{step}-{self.token}", *index)

    def add(self, step: str, index: Index, function: Callable[..., Any], *args: Any) -> TaskRef:
        """Add a task that calls a function with results of others, in lists too, and plain data."""
        key = self.key(step, *index)
        given = [List(*arg) if _holds_tasks(arg) else arg for arg in args]
        head = gpualgo.__version__, self.device, _tasks.name_of(function)
        self.tasks[key] = Task(key, runner(), *head, *given)
        return TaskRef(key)

    def tree(
        self, step: str, place: Index, refs: list[TaskRef], function: Callable[..., Any], *args: Any
    ) -> TaskRef:
        """Add tasks that combine sixteen results at a time, in order, till one is left."""
        level = 0
        while len(refs) > 1:
            groups = [refs[i : i + FAN_IN] for i in range(0, len(refs), FAN_IN)]
            refs = [
                self.add(step, (*place, level, i), function, group, *args)
                for i, group in enumerate(groups)
            ]
            level += 1
        return refs[0]

    def alias(self, step: str, index: Index, ref: TaskRef) -> None:
        """Give the result of a task another name."""
        key = self.key(step, *index)
        self.tasks[key] = Alias(key, ref.key)

    def shared(self, step: str, value: Any, num_bytes: int) -> Any:
        """Return plain data that many tasks take: by a task of its own if that is large."""
        return value if num_bytes <= LARGE_BYTES else self.add(step, (), same, value)

    def array(self, step: str, chunks: Chunks, meta: Any, sources: Sequence[Any]) -> Any:
        """Return the dask array whose chunks are a step's results."""
        return array_of(self.tasks, self.key(step)[0], chunks, meta, sources)


def same(value: Any) -> Any:
    """Return what is given: a task that holds a value."""
    return value


def _holds_tasks(arg: Any) -> bool:
    return isinstance(arg, list) and any(isinstance(item, (TaskRef, List)) for item in arg)


def device() -> str:
    """Return where chunks of the host are worked on: where a device is named around the call.

    Whether a worker has a GPU must not decide on bits, so "auto" is the CPU here.
    """
    number = default_device.current()
    return "cpu" if number == default_device.AUTO else default_device.name_of(number)


def array_of(
    tasks: dict[Any, Any], name: str, chunks: Chunks, meta: Any, sources: Sequence[Any]
) -> Any:
    """Return a dask array of tasks, which take chunks of other arrays by their names."""
    if da.array_expr_enabled():
        from gpualgo.dask._expression import array_of_tasks

        return array_of_tasks(tasks, name, chunks, meta, sources)
    from dask.highlevelgraph import HighLevelGraph

    graph = HighLevelGraph.from_collections(name, tasks, dependencies=list(sources))
    return da.Array(graph, name, chunks, meta=meta)
