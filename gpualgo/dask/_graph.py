"""Task graphs, and the only code that makes dask arrays of them."""

from __future__ import annotations

import operator
import pickle
import sys
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, TypeAlias

import cloudpickle
import dask.array as da
from dask.base import tokenize
from dask.task_spec import Alias, DataNode, Task, TaskRef

import gpualgo
from gpualgo._driver import default_device
from gpualgo.dask import _tasks

# --- The callable of every task: imports gpualgo on the worker and reports if it is missing
# there.
#
# The instance is pickled by value, so that a worker or scheduler without gpualgo can unpickle
# it; all else in a task is strings and bytes.


class Runner:
    """Calls a pickled function of this package."""

    def __init__(self) -> None:
        self.blob: bytes | None = None

    def __call__(self, version: str, device: str, blob: bytes, *values: Any) -> Any:
        try:
            import gpualgo
        except ImportError as error:
            raise RuntimeError(
                f"a graph of gpualgo {version} reached a worker without gpualgo ({error}); "
                f"install gpualgo {version} there"
            ) from error
        if gpualgo.__version__ != version:
            raise RuntimeError(
                f"a graph of gpualgo {version} reached a worker with gpualgo "
                f"{gpualgo.__version__}, whose results may differ; install one of them on both"
            )
        from gpualgo.dask import _tasks

        return _tasks.call(blob, device, values)

    def __reduce__(self) -> Any:
        return (type(self), ()) if self.blob is None else (pickle.loads, (self.blob,), self.blob)

    def __setstate__(self, blob: bytes) -> None:
        self.blob = blob

    def __dask_tokenize__(self) -> str:
        return "gpualgo-runner"


_runner = Runner()
cloudpickle.register_pickle_by_value(sys.modules[__name__])
try:
    _runner.blob = cloudpickle.dumps(_runner)
finally:
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])

Index: TypeAlias = tuple[int, ...]
Chunks: TypeAlias = tuple[tuple[Any, ...], ...]

FAN_IN = 16  # of trees; decides how elements are grouped, so it must not be configurable
LARGE_BYTES = 10_000  # larger values that many tasks need get a task of their own


class Graph:
    """Tasks whose names contain a hash of what they compute.

    Equal calls give equal names in every process, so dask can reuse results. Of arguments and
    operators the hash is that of their `content`.
    """

    def __init__(self, name: str, *content: Any) -> None:
        self.device = device()
        parts = [getattr(x, "content", (type(x).__name__, x)) for x in content]
        self.token = tokenize(gpualgo.__version__, self.device, name, *parts)
        self.name = name.replace("_", "-")
        self.tasks: dict[Any, Any] = {}

    def key(self, step: str, *index: int) -> tuple[Any, ...]:
        return (f"ga-{self.name}{step and '-'}{step}-{self.token}", *index)

    def add(
        self, step: str, index: Index, function: Callable[..., Any], *args: Any, **options: Any
    ) -> TaskRef:
        """Add a task that calls function; args may contain other tasks, for their results."""
        key = self.key(step, *index)
        blob, refs = _tasks.dumps((function, args, options))
        self.tasks[key] = Task(key, _runner, gpualgo.__version__, self.device, blob, *refs)
        return TaskRef(key)

    def call(
        self, step: str, index: Index, function: Callable[..., Any], *args: Any, **options: Any
    ) -> TaskRef:
        """Add a task that calls a public function."""
        return self.add(step, index, _tasks.call_on, function, *args, **options)

    def tree(
        self, step: str, index: Index, refs: list[TaskRef], function: Callable[..., Any], *args: Any
    ) -> TaskRef:
        """Add a tree of tasks that combine FAN_IN results each, in order; return its root."""
        level = 0
        while len(refs) > 1:
            groups = [refs[i : i + FAN_IN] for i in range(0, len(refs), FAN_IN)]
            refs = [self.add(step, (*index, level, i), function, group, *args)
                    for i, group in enumerate(groups)]  # fmt: skip
            level += 1
        return refs[0]

    def trees(
        self, step: str, refs: dict[Index, TaskRef], axes: Sequence[int],
        function: Callable[..., Any], *args: Any,
    ) -> dict[Index, TaskRef]:  # fmt: skip
        """Combine the results of chunks along axes, in order; the index of each is 0 there."""
        rows: dict[Index, list[TaskRef]] = {}
        for index, ref in refs.items():
            row = tuple(0 if axis in axes else i for axis, i in enumerate(index))
            rows.setdefault(row, []).append(ref)
        return {
            row: self.tree(step, row, several, function, *args) for row, several in rows.items()
        }

    def alias(self, step: str, index: Index, ref: TaskRef) -> None:
        key = self.key(step, *index)
        self.tasks[key] = Alias(key, ref.key)

    def shared(self, step: str, value: Any) -> Any:
        """Return a value that many tasks take, as a task if it is large."""
        blob, _ = _tasks.dumps(value)
        if len(blob) <= LARGE_BYTES:
            return value
        key = self.key(step)
        self.tasks[key] = DataNode(key, blob)
        return TaskRef(key)

    def array(self, step: str, chunks: Chunks, meta: Any, sources: Sequence[Any]) -> Any:
        """Return the dask array whose chunks are the results of a step.

        Tasks refer to chunks of `sources` by name.
        """
        name = self.key(step)[0]
        if da.array_expr_enabled():
            return _tasks.array_of_tasks(self.tasks, name, chunks, meta, sources)
        from dask.highlevelgraph import HighLevelGraph

        graph = HighLevelGraph.from_collections(name, self.tasks, dependencies=list(sources))
        return da.Array(graph, name, chunks, meta=meta)

    def results(self, chunks: Chunks, dtypes: Sequence[Any], *inputs: Any) -> list[Any]:
        """Return a dask array for each dtype, like the first input's; tasks return tuples of them.

        Tasks read the arrays of those of the inputs that are arguments.
        """
        sources = [array for x in inputs for array in getattr(x, "arrays", ())]
        metas = [_tasks.meta_like(sources[0], len(chunks), dtype) for dtype in dtypes]
        whole = self.array("", chunks, metas[0], sources)
        if len(dtypes) == 1:
            return [whole]
        results = []
        for number, meta in enumerate(metas):
            part = Graph(f"{self.name}-item", self.token, "", number)
            for index in product(*map(range, map(len, chunks))):
                part.add("", index, operator.getitem, TaskRef((whole.name, *index)), number)
            results.append(part.array("", chunks, meta, [whole]))
        return results


def device() -> Any:
    """Return the name of the device that processes host chunks: the default device of the caller.

    "auto" means the CPU here: the result's bits must not depend on whether a worker has a GPU.
    """
    number = default_device.current()
    return "cpu" if number == default_device.AUTO else default_device.name_of(number)
