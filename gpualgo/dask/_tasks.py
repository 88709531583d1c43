"""Within a task: the call of a function by its name, operators, chunks packed into elements."""

from __future__ import annotations

import functools
import hashlib
import io
import math
import pickle
import sys
import types
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import product
from typing import Any, TypeAlias

import cloudpickle
import numpy as np
from dask._collections import new_collection
from dask.array._array_expr._expr import ArrayExpr
from dask.task_spec import Alias, List, Task, TaskRef

import gpualgo as ga
from gpualgo._base import records, threads
from gpualgo._base.memo import Memo
from gpualgo._driver.default_device import default_device
from gpualgo._operators.key import frozen
from gpualgo._operators.operator import Operator, as_operator


def call(name: str, device: Any, args: tuple[Any, ...]) -> Any:
    with threads.at_most(_worker_threads()), default_device(device):
        return _function(name)(*args)


@functools.lru_cache(256)
def _function(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    resolved: Callable[..., Any] = getattr(import_module(f"gpualgo.dask.{module}"), function)
    return resolved


def name_of(function: Callable[..., Any]) -> str:
    """Return the name that `call` resolves to a function."""
    return f"{function.__module__.rpartition('.')[2]}:{function.__name__}"


def _worker_threads() -> int | None:
    """Return the worker's number of concurrent tasks; None outside a dask worker."""
    distributed = sys.modules.get("distributed.worker")
    if distributed is None:
        return None
    try:
        return max(1, int(distributed.get_worker().state.nthreads))
    except (AttributeError, ValueError):  # a thread of another scheduler
        return None


# --- Elements are unpacked into arrays of their fields, and packed again.

Parts: TypeAlias = tuple[Any, ...]
"""An array for each field of an element; one array if the element is no tuple."""
Structure: TypeAlias = Any
"""How parts form an argument: None for one array, else field names and the items' patterns."""
Source: TypeAlias = tuple[str, tuple[tuple[str, Any, str], ...], Structure]
"""Of an argument: function name; name, dtype and library of each array; pattern."""
ChunkArg: TypeAlias = list[Any]
"""An argument of a task: its source, the index of its chunk, and a chunk of each array."""


def pattern_of(form: Any) -> Structure:
    return None if form is None else (form.keys, tuple(map(pattern_of, form.items)))


def pattern_of_value(value: Any) -> Structure:
    """Return the pattern of a value or of nested tuples of values."""
    if not isinstance(value, tuple):
        return None
    keys = tuple(getattr(value, "_fields", None) or map(str, range(len(value))))
    return keys, tuple(map(pattern_of_value, value))


def pack(pattern: Structure, parts: Sequence[Any]) -> Any:
    """Return the argument that parts form; a namedtuple has the class of its fields."""
    return parts[0] if pattern is None else _packed(pattern, iter(parts))


def _packed(pattern: Structure, remaining: Any) -> Any:
    if pattern is None:
        return next(remaining)
    keys, items = pattern
    cls, fields = records.class_of(keys), [_packed(item, remaining) for item in items]
    return tuple(fields) if cls is tuple else cls(*fields)


def plain(value: Any) -> Any:
    """Return a value, or nested tuples of values, as the keywords of `pack`."""
    return {"pattern": pattern_of_value(value), "parts": unpack(value)}


def literal(value: Any) -> Any:
    """Return any value as the keywords of `pack`, which lists must be in `call_on`."""
    return {"pattern": None, "parts": (value,)}


def unpack(x: Any) -> Parts:
    """Flatten nested tuples into a tuple of arrays."""
    if not isinstance(x, tuple):
        return (x,)
    return tuple(part for item in x for part in unpack(item))


def parts_of(argument: ChunkArg) -> Parts:
    """Return the chunks of an argument, in C order; raise TypeError for another library or dtype.

    Memory order decides how elements are grouped, and sending a chunk may change it.
    """
    (func_name, fields, _), index, *chunks = argument
    label = f"{func_name}: a chunk" if index is None else f"{func_name}: chunk {index}"
    named = zip(chunks, fields, strict=True)
    return tuple(_checked(chunk, f"{label} of {name}", *rest) for chunk, (name, *rest) in named)


def element_of(argument: ChunkArg) -> Any:
    """Return the chunks of an argument, packed into elements."""
    return pack(argument[0][2], parts_of(argument))


def call_on(name: str, keywords: tuple[str, ...], *arguments: Any) -> Any:
    """Call a public function with chunks, operators and values, the last ones by keyword."""
    values = [_value_of(x) for x in arguments]
    count = len(values) - len(keywords)
    options = dict(zip(keywords, values[count:], strict=True))
    outputs = unpack(getattr(ga, name)(*values[:count], **options))
    return result(tuple(map(as_array, outputs)))


def _value_of(x: Any) -> Any:
    if isinstance(x, list):
        return element_of(x)
    if isinstance(x, dict):
        return pack(**x)
    is_operator = isinstance(x, tuple) and len(x) == 2 and isinstance(x[1], bytes)
    return load_operator(x) if is_operator else x


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
    return contiguous(chunk)


def library_of(array: Any) -> str:
    return "numpy" if isinstance(array, np.ndarray) else type(array).__module__.partition(".")[0]


def namespace_of(array: Any) -> Any:
    """Return the array's module: NumPy or CuPy."""
    return np if isinstance(array, (np.ndarray, np.generic)) else sys.modules[library_of(array)]


def contiguous(array: Any) -> Any:
    return array if array.flags.c_contiguous else namespace_of(array).ascontiguousarray(array)


def concatenate(several: Sequence[Parts], axis: int = 0) -> Parts:
    """Concatenate parts along an axis."""
    if len(several) == 1:
        return several[0]
    fields = zip(*several, strict=True)
    return tuple(namespace_of(each[0]).concatenate(each, axis=axis) for each in fields)


def index_parts(parts: Parts, index: Any) -> Parts:
    return tuple(part[index] for part in parts)


def copy_slice(parts: Parts, index: slice) -> Parts:
    return tuple(part[index].copy() for part in parts)


def on_host(array: Any) -> Any:
    return array if isinstance(array, (np.ndarray, np.generic)) else array.get()


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

PickledOperator = tuple[str, bytes]
"""A hash of the operator's content, and the pickled operator."""


def pickle_operator(
    op: Any, where: str, num_arguments: int = 2
) -> tuple[Operator, PickledOperator]:
    """Return a snapshot of an operator: for local calls, and pickled for workers."""
    operator_ = as_operator(op, where, num_arguments)
    fn = operator_.fn if operator_.is_known else frozen(operator_.fn)
    is_plain = type(op) is not Operator
    try:
        blob = _pickled((fn, is_plain, operator_.identity, operator_.commutative))
    except Exception as error:
        raise TypeError(
            f"{where}: op cannot be sent to workers ({error}); let it capture numbers, NumPy "
            "arrays, functions and classes alone"
        ) from error
    unpickled = _unpickled(blob)
    local_op = as_operator(unpickled, where, num_arguments)
    content = hashlib.sha256(repr(_content(local_op)).encode()).hexdigest()
    return local_op, (content, blob)


def _content(op: Operator) -> Any:
    arrays = [_bytes_of(view.library.to_numpy(view.owner)) for view in op.arrays]
    return op.digest, op.words, arrays, _identity(op.identity), op.commutative


def _bytes_of(array: np.ndarray[Any, Any]) -> Any:
    contiguous = np.ascontiguousarray(array)
    return contiguous.dtype.str, array.shape, hashlib.sha256(contiguous.tobytes()).hexdigest()


def _identity(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_identity, value))
    if isinstance(value, (np.generic, np.ndarray)):
        return _bytes_of(np.asarray(value))
    return repr(value)


_loaded: Memo[Any] = Memo(1 << 10)


def load_operator(op: PickledOperator | None) -> Any:
    """Unpickle an operator; cached, so equal content gives one object per process."""
    if op is None:
        return None
    content, blob = op
    loaded = _loaded.get(content)
    if loaded is None:
        loaded = _unpickled(blob)
        _loaded.add(content, loaded)
    return loaded


def _unpickled(blob: bytes) -> Any:
    fn, is_plain, identity, commutative = pickle.loads(blob)
    return fn if is_plain else Operator(fn, identity=identity, commutative=commutative)


class _Pickler(cloudpickle.Pickler):
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


def _pickled(value: Any) -> bytes:
    buffer = io.BytesIO()
    _Pickler(buffer).dump(value)
    return buffer.getvalue()


# --- Dask arrays as expressions, for dask's `array.query-planning`.


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
