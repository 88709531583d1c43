"""Serialised snapshots of operators, taken when a graph is built, with a hash of their content."""

from __future__ import annotations

import functools
import hashlib
import io
import math
import pickle
import sys
import types
from collections.abc import Sequence
from itertools import product
from typing import Any

import cloudpickle
import numpy as np
from dask._collections import new_collection
from dask.array._array_expr._expr import ArrayExpr
from dask.task_spec import Alias, List, Task, TaskRef

from gpualgo._operators.key import frozen
from gpualgo._operators.operator import Operator, as_operator
from gpualgo.dask._values import namespace_of

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


@functools.lru_cache(1024)
def _thaw(content: str, blob: _Blob) -> Any:
    return _unpickled(blob.data)


class _Blob:
    """Bytes that are not hashed or compared; the content's hash, also an argument, is the key."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Blob)


def load_operator(op: PickledOperator | None) -> Any:
    """Unpickle an operator; cached, so equal content gives one object per process."""
    return None if op is None else _thaw(op[0], _Blob(op[1]))


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
