"""Built-in operators: callables with functors in the CUDA sources, which need no compilation."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._base import dtypes

if TYPE_CHECKING:
    from gpualgo._operators.operator import Operator

# Recognised callables -> the name of the functor in cuda_src/parts/operator.cuh.
NAMES: dict[Any, str] = {
    operator.add: "add",
    operator.mul: "multiply",
    operator.and_: "bitwise_and",
    operator.or_: "bitwise_or",
    operator.xor: "bitwise_xor",
    builtins.min: "minimum",
    builtins.max: "maximum",
    np.add: "add",
    np.multiply: "multiply",
    np.bitwise_and: "bitwise_and",
    np.bitwise_or: "bitwise_or",
    np.bitwise_xor: "bitwise_xor",
    np.minimum: "minimum",
    np.maximum: "maximum",
    np.logical_and: "logical_and",
    np.logical_or: "logical_or",
    np.logical_xor: "logical_xor",
}

IDENTITIES: dict[str, int | bool] = {
    "add": 0,
    "multiply": 1,
    "bitwise_and": -1,
    "bitwise_or": 0,
    "bitwise_xor": 0,
    "logical_and": True,
    "logical_or": False,
    "logical_xor": False,
}

BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")


def name_of(fn: Any) -> str | None:
    try:
        return NAMES.get(fn)
    except TypeError:  # an unhashable callable
        return None


def _arg_minimum(a: Any, b: Any) -> Any:
    if a[0] < b[0]:
        return a
    if a[0] > b[0]:
        return b
    return _first(a, b)


def _arg_maximum(a: Any, b: Any) -> Any:
    if a[0] > b[0]:
        return a
    if a[0] < b[0]:
        return b
    return _first(a, b)


def _first(a: Any, b: Any) -> Any:
    """Return the element with the lower index; a NaN comes before other values."""
    if a[0] == b[0]:
        return a if a[1] < b[1] else b
    return a if a[0] != a[0] and (b[0] == b[0] or a[1] < b[1]) else b


# The built-in functors in Python, for code that numba compiles.
PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "multiply": lambda a, b: a * b,
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
    # `a != a` propagates a NaN from either side, as in NumPy.
    "minimum": lambda a, b: a if a <= b or a != a else b,
    "maximum": lambda a, b: a if a >= b or a != a else b,
    "logical_and": lambda a, b: (a != 0) & (b != 0),
    "logical_or": lambda a, b: (a != 0) | (b != 0),
    "logical_xor": lambda a, b: (a != 0) ^ (b != 0),
    "arg_minimum": _arg_minimum,
    "arg_maximum": _arg_maximum,
    "minimum_maximum": lambda a, b: (
        a[0] if a[0] <= b[0] or a[0] != a[0] else b[0],
        a[1] if a[1] >= b[1] or a[1] != a[1] else b[1],
    ),
}


def check_dtype(op: Operator, dtype: np.dtype[Any], where: str) -> None:
    kind = dtypes.kind(dtype)
    if op.name in BITWISE and kind in "fc":
        raise TypeError(f"{where}: op {op.name} needs integers or bool, got dtype {dtype}")
    if op.name in ("minimum", "maximum") and kind == "c":
        raise TypeError(f"{where}: op {op.name} needs an order, which dtype {dtype} has not")
