"""Serialised snapshots of operators, taken when a graph is built, with a hash of their content."""

from __future__ import annotations

import functools
import hashlib
import io
import pickle
import sys
import types
from typing import Any

import cloudpickle
import numpy as np

from gpualgo._operators.frozen import frozen
from gpualgo._operators.operator import Operator, as_operator

Frozen = tuple[str, bytes]
"""A hash of the operator's content, and the pickled operator."""


def freeze(op: Any, where: str, num_arguments: int = 2) -> tuple[Operator, Frozen]:
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


def load_operator(op: Frozen | None) -> Any:
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
