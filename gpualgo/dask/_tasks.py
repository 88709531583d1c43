"""Task graphs; within a task: the call of a pickled function, chunks packed into elements."""

from __future__ import annotations

import functools
import io
import math
import operator
import pickle
import sys
import types
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import cloudpickle
import dask.array as da
import numpy as np
from dask._collections import new_collection
from dask.array._array_expr._io import FromGraph
from dask.base import tokenize
from dask.task_spec import Alias, DataNode, List, Task, TaskRef

import gpualgo
from gpualgo._arrays.forms import Form, form_of
from gpualgo._base import threads
from gpualgo._base.memo import Memo
from gpualgo._base.records import class_of
from gpualgo._distributed import Parts, library_of, namespace_of, packed
from gpualgo._driver import default_device
from gpualgo._operators.key import frozen
from gpualgo._operators.operator import Operator, as_operator


def call(blob: bytes, device: Any, values: Sequence[Any]) -> Any:
    """Call a pickled function with pickled arguments, and with the results of other tasks."""
    with threads.at_most(_worker_threads()), default_device.default_device(device):
        function, args, options = _Unpickler(blob, values).load()
        return function(*args, **options)


def _worker_threads() -> int | None:
    """Return the worker's number of concurrent tasks; None outside a dask worker."""
    distributed = sys.modules.get("distributed.worker")
    if distributed is None:
        return None
    try:
        return max(1, int(distributed.get_worker().state.nthreads))
    except (AttributeError, ValueError):  # a thread of another scheduler
        return None


# --- Functions and arguments are pickled when a graph is built.
#
# Workers may lack the module of a user's namedtuple class, so only its field names are sent.


class _Pickler(pickle.Pickler):
    """Replaces results of tasks by their numbers in `refs`."""

    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self.refs: list[TaskRef] = []

    def persistent_id(self, obj: Any) -> int | None:
        if type(obj) is not TaskRef:
            return None
        self.refs.append(obj)
        return len(self.refs) - 1

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Form):
            return form_of, (obj.names,)
        if isinstance(obj, tuple) and "__reduce__" not in vars(type(obj)):
            return _namedtuple, (getattr(obj, "_fields", None), tuple(obj))
        return NotImplemented


def _namedtuple(fields: tuple[str, ...] | None, items: tuple[Any, ...]) -> Any:
    return items if fields is None else class_of(fields)(*items)


def dumps(value: Any) -> tuple[bytes, list[TaskRef]]:
    """Return a value pickled, and the tasks whose results it contains."""
    buffer = io.BytesIO()
    pickler = _Pickler(buffer)
    pickler.dump(value)
    return buffer.getvalue(), pickler.refs


class _Unpickler(pickle.Unpickler):
    """Unpickles a value that contains results of tasks; bytes among them are pickled values."""

    def __init__(self, blob: bytes, results: Sequence[Any] = ()) -> None:
        super().__init__(io.BytesIO(blob))
        self.results = results

    def persistent_load(self, number: int) -> Any:
        value = self.results[number]
        return _Unpickler(value).load() if isinstance(value, bytes) else value


# --- Elements are unpacked into arrays of their fields, and packed again.

Source: TypeAlias = tuple[str, tuple[tuple[str, Any, str], ...], Form | None]
"""Of an argument: function name; name, dtype and library of each array; form."""


class Chunk(NamedTuple):
    """A chunk as an argument of a task; the task's function gets its elements."""

    source: Source
    place: tuple[int, ...]  # among the chunks, for messages
    arrays: tuple[TaskRef, ...]
    are_values: bool = False  # 0-d NumPy arrays are given as scalars

    def __reduce__(self) -> Any:
        return elements, tuple(self)


def elements(
    source: Source, place: tuple[int, ...], arrays: Sequence[Any], are_values: bool
) -> Any:
    """Return the arrays of a chunk, in C order; raise TypeError for another library or dtype.

    Memory order decides how elements are grouped, and sending a chunk may change it.
    """
    func_name, fields, form = source
    named = zip(arrays, fields, strict=True)
    label = f"{func_name}: chunk {place}"
    parts = [_checked(chunk, f"{label} of {name}", *rest) for chunk, (name, *rest) in named]
    return packed(form, [part[()] for part in parts] if are_values else parts)


def unpack(x: Any) -> Parts:
    """Flatten nested tuples into a tuple of arrays."""
    if not isinstance(x, tuple):
        return (x,)
    return tuple(part for item in x for part in unpack(item))


def call_on(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a public function."""
    return result(tuple(map(as_array, unpack(function(*args, **options)))))


def _checked(chunk: Any, name: str, dtype: Any, library: str) -> Any:
    chunk = as_array(chunk)
    chunk_library = library_of(chunk)
    if chunk_library != library:
        raise TypeError(
            f"{name} is an array of {chunk_library}, and the dask array says {library}: the device "
            "is fixed when the graph is built; convert all chunks to one library with map_blocks"
        )
    if chunk.dtype != dtype:
        raise TypeError(
            f"{name} has dtype {chunk.dtype}, and the dask array says {dtype}; "
            f"pass x.map_blocks(lambda c: c.astype({str(dtype)!r}), dtype={str(dtype)!r})"
        )
    return chunk if chunk.flags.c_contiguous else chunk.copy()  # which keeps a mask, to be refused


def index_parts(parts: Parts, index: Any) -> Parts:
    return tuple(part[index] for part in parts)


def copy_slice(parts: Parts, index: slice) -> Parts:
    return tuple(part[index].copy() for part in parts)


def result(parts: Parts) -> Any:
    """Return parts as a task's result: one array, or a tuple of several."""
    return parts[0] if len(parts) == 1 else parts


def as_array(part: Any) -> Any:
    """Return a NumPy scalar, which calls return for 0-d results, as an array."""
    return np.asarray(part) if isinstance(part, np.generic) else part


def empty_like(meta: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    if library_of(meta) == "numpy":
        return np.zeros(shape, dtype)
    return type(meta)(shape, dtype)  # CuPy's constructor; contents are not used


def meta_like(x: Any, ndim: int, dtype: Any) -> Any:
    """Return the empty array that dask uses to represent chunks."""
    return empty_like(x._meta, (0,) * ndim, dtype)


def sum_arrays(several: list[Any]) -> Any:
    """Add arrays, from the first to the last."""
    total = several[0].copy()
    for array in several[1:]:
        namespace_of(total).add(total, array, out=total)
    return total


# --- Serialised snapshots of operators, taken when a graph is built, with a hash of their
# content.


class PickledOperator(NamedTuple):
    """A hash of the operator's content, and the pickled operator, which a task's function gets."""

    content: str
    blob: bytes

    def __reduce__(self) -> Any:
        return load_operator, tuple(self)


def pickle_operator(
    op: Any, where: str, num_arguments: int = 2
) -> tuple[Operator, PickledOperator]:
    """Return a snapshot of an operator: for local calls, and pickled for workers."""
    operator_ = as_operator(op, where, num_arguments)
    fn = operator_.fn if operator_.is_known else frozen(operator_.fn)
    is_plain = type(op) is not Operator
    try:
        buffer = io.BytesIO()
        content = fn, is_plain, operator_.identity, operator_.commutative
        _OperatorPickler(buffer).dump(content)
    except Exception as error:
        raise TypeError(
            f"{where}: op cannot be sent to workers ({error}); let it capture numbers, NumPy "
            "arrays, functions and classes alone"
        ) from error
    blob = buffer.getvalue()
    local_op = as_operator(_unpickled(blob), where, num_arguments)
    arrays = [np.ascontiguousarray(view.library.to_numpy(view.owner)) for view in local_op.arrays]
    numbers = local_op.digest, local_op.words, local_op.identity, local_op.commutative
    return local_op, PickledOperator(tokenize(numbers, arrays), blob)


_loaded: Memo[Any] = Memo(1 << 10)


def load_operator(content: str, blob: bytes) -> Any:
    """Unpickle an operator; cached, so equal content gives one object per process."""
    loaded = _loaded.get(content)
    if loaded is None:
        loaded = _unpickled(blob)
        _loaded.add(content, loaded)
    return loaded


def _unpickled(blob: bytes) -> Any:
    fn, is_plain, identity, commutative = pickle.loads(blob)
    return fn if is_plain else Operator(fn, identity=identity, commutative=commutative)


class _OperatorPickler(cloudpickle.Pickler):
    """cloudpickle, except for copies of modules that hold only what a frozen operator reads."""

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is types.ModuleType and sys.modules.get(obj.__name__) is not obj:
            names = {name: obj.__dict__[name] for name in sorted(obj.__dict__) if name[:2] != "__"}
            return _make_module, (obj.__name__, names)
        return super().reducer_override(obj)


def _make_module(name: str, names: dict[str, Any]) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__dict__.update(names)
    return module


# --- Dask arrays as expressions, for dask's `array.query-planning`.


class Tasks:
    """A task graph whose name identifies its content."""

    def __init__(self, tasks: dict[Any, Any], name: str) -> None:
        self.tasks, self.name = tasks, name

    def __dask_tokenize__(self) -> Any:
        return "gpualgo-tasks", self.name


class FromTasks(FromGraph):
    """An array computed by given tasks, which read chunks of source arrays by their original names.

    Optimisation may rename the sources and this array; aliases map the old names to the new ones.
    """

    _parameters = ["tasks", "chunks", "_meta", "source_names"]  # noqa: RUF012  # dask's convention

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
        from importlib import import_module

        return import_module("gpualgo.dask._tasks").call(blob, device, values)

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
        blob, refs = dumps((function, args, options))
        self.tasks[key] = Task(key, _runner, gpualgo.__version__, self.device, blob, *refs)
        return TaskRef(key)

    def trees(
        self, step: str, refs: dict[Index, TaskRef], axes: Sequence[int],
        function: Callable[..., Any], *args: Any,
    ) -> dict[Index, TaskRef]:  # fmt: skip
        """Combine the results of chunks along axes, in order; the index of each is 0 there.

        A task combines FAN_IN results, in a tree of as many levels as it takes.
        """
        rows: dict[Index, list[TaskRef]] = {}
        for index, ref in refs.items():
            row = tuple(0 if axis in axes else i for axis, i in enumerate(index))
            rows.setdefault(row, []).append(ref)
        for row, several in rows.items():
            level = 0
            while len(several) > 1:
                groups = [several[i : i + FAN_IN] for i in range(0, len(several), FAN_IN)]
                several = [self.add(step, (*row, level, i), function, group, *args)
                           for i, group in enumerate(groups)]  # fmt: skip
                level += 1
            rows[row] = several
        return {row: root for row, (root,) in rows.items()}

    def alias(self, step: str, index: Index, ref: TaskRef) -> None:
        key = self.key(step, *index)
        self.tasks[key] = Alias(key, ref.key)

    def shared(self, step: str, value: Any) -> Any:
        """Return a value that many tasks take, as a task if it is large."""
        blob, _ = dumps(value)
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
            names, exprs = tuple(x.name for x in sources), [x.expr for x in sources]
            tasks = Tasks(self.tasks, name)
            return new_collection(FromTasks(tasks, chunks, meta, names, *exprs))
        from dask.highlevelgraph import HighLevelGraph

        graph = HighLevelGraph.from_collections(name, self.tasks, dependencies=list(sources))
        return da.Array(graph, name, chunks, meta=meta)

    def results(self, chunks: Chunks, dtypes: Sequence[Any], *inputs: Any) -> list[Any]:
        """Return a dask array for each dtype, like the first input's; tasks return tuples of them.

        Tasks read the arrays of those of the inputs that are arguments.
        """
        sources = [array for x in inputs for array in getattr(x, "arrays", ())]
        metas = [meta_like(sources[0], len(chunks), dtype) for dtype in dtypes]
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
