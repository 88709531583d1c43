"""Operators as they stand when a graph is built: as bytes, with a name that tells their content."""

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
"""A hash of all that an operator computes, and the operator."""


def freeze(op: Any, where: str, num_arguments: int = 2) -> tuple[Operator, Frozen]:
    """Return an operator that nothing changes any more, for here and for workers."""
    given = as_operator(op, where, num_arguments)
    fn = given.fn if given.is_known else frozen(given.fn)
    is_plain = type(op) is not Operator
    try:
        blob = _pickled((fn, is_plain, given.identity, given.commutative))
    except Exception as error:
        raise TypeError(
            f"{where}: op cannot be sent to workers ({error}); let it capture numbers, NumPy "
            "arrays, functions and classes alone"
        ) from error
    made = _thawed(blob)
    settled = as_operator(made, where, num_arguments)
    content = hashlib.sha256(repr(_content(settled)).encode()).hexdigest()
    return settled, (content, blob)


def _content(op: Operator) -> Any:
    arrays = [_bytes_of(view.library.to_numpy(view.owner)) for view in op.arrays]
    return op.digest, op.words, arrays, _identity(op.identity), op.commutative


def _bytes_of(array: np.ndarray[Any, Any]) -> Any:
    whole = np.ascontiguousarray(array)
    return whole.dtype.str, array.shape, hashlib.sha256(whole.tobytes()).hexdigest()


def _identity(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_identity, value))
    if isinstance(value, (np.generic, np.ndarray)):
        return _bytes_of(np.asarray(value))
    return repr(value)


@functools.lru_cache(1024)
def _thaw(content: str, blob: _Blob) -> Any:
    return _thawed(blob.data)


class _Blob:
    """Bytes that their content's hash beside them tells apart: they are not hashed again."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Blob)


def thaw(op: Frozen | None) -> Any:
    """Return the operator of a task: one object for each content in a process."""
    return None if op is None else _thaw(op[0], _Blob(op[1]))


def _thawed(blob: bytes) -> Any:
    fn, is_plain, identity, commutative = pickle.loads(blob)
    return fn if is_plain else Operator(fn, identity=identity, commutative=commutative)


class _Pickler(cloudpickle.Pickler):
    """cloudpickle, but for modules of which a frozen operator holds what it reads."""

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is types.ModuleType and sys.modules.get(obj.__name__) is not obj:
            names = {name: obj.__dict__[name] for name in sorted(obj.__dict__) if name[:2] != "__"}
            return _module, (obj.__name__, names)
        return super().reducer_override(obj)


def _module(name: str, names: dict[str, Any]) -> types.ModuleType:
    made = types.ModuleType(name)
    made.__dict__.update(names)
    return made


def _pickled(value: Any) -> bytes:
    into = io.BytesIO()
    _Pickler(into).dump(value)
    return into.getvalue()
