"""Cases of the table's entries that have rules of their own: constructors, roundings, choices."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from support import BFLOAT16
from walk_cases import Array, Case

from gpualgo._base import dtypes
from gpualgo._operators.numpy_rules import table


def _name(a: Any) -> str:
    return str(dtypes.name_of(np.asarray(a).dtype))


def _joint(*args: Any) -> np.dtype[Any]:
    return dtypes.from_name(dtypes.result_name([_name(a) for a in args], []))


def _is_complex(a: Any) -> bool:
    return np.asarray(a).dtype.kind == "c"


def _constructed(dtype: np.dtype[Any]) -> Callable[..., Any]:
    def reference(a: Array) -> Any:
        if _is_complex(a) and dtype.kind not in "cb":
            raise TypeError("drops a part")
        return a.astype(dtype)

    return reference


def _exactly(a: Array, dtype: np.dtype[Any]) -> Any:
    """Return where an integer dtype holds the integer part: elsewhere C has no answer."""
    if dtype.kind not in "iu" or dtypes.kind(a.dtype) != "f":
        return np.ones(a.shape, bool)
    info = np.iinfo(dtype)
    wide = a.astype(np.float64)
    return (wide >= float(info.min)) & (wide < float(info.max) + (dtype.itemsize < 8))


def constructors() -> list[tuple[Case, np.dtype[Any]]]:
    """Return each constructor, and the dtype that it gives."""
    found = []
    for entry in table.ENTRIES:
        if entry.style == "construct":
            dtype = np.dtype(entry.does)
            name = {"f": table.function_of(entry)}
            found.append((Case("f(a)", entry.does, _constructed(dtype), 0, name), dtype))
    name = {"f": BFLOAT16.type}
    found.append((Case("f(a)", "bfloat16", _constructed(BFLOAT16), 0, name), BFLOAT16))
    return found


def holding(a: Array, dtype: np.dtype[Any]) -> Array:
    """Return the values of an array that a constructor of dtype has an answer for."""
    return np.ascontiguousarray(a[_exactly(a, dtype)])


def _whole(name: str) -> Callable[..., Any]:
    def reference(a: Array) -> Any:
        if _is_complex(a):
            raise TypeError("no order")
        if dtypes.kind(a.dtype) != "f":
            return a.astype(np.uint64 if a.dtype == np.uint64 else np.int64)
        return getattr(np, name)(a.astype(np.float64)).astype(np.int64)

    return reference


def _real_only(reference: Callable[..., Any]) -> Callable[..., Any]:
    def real_only(*args: Any) -> Any:
        if any(map(_is_complex, args)):
            raise TypeError("no order")
        return reference(*args)

    return real_only


def _extreme(beyond: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def reference(a: Array, b: Array) -> Any:
        joint = _joint(a, b)
        return np.where(beyond(b, a), b.astype(joint), a.astype(joint))

    return _real_only(reference)


def _rounded(a: Array, decimals: int) -> Any:
    if a.dtype.kind in "bc":
        raise TypeError("refused")
    if a.dtype != BFLOAT16:
        return np.round(a, decimals)
    scale = np.float32(10.0**decimals).astype(BFLOAT16)
    steps = (np.asarray(a * scale).astype(np.float32), np.float32(scale))
    return (np.rint(steps[0]).astype(BFLOAT16).astype(np.float32) / steps[1]).astype(BFLOAT16)


def whole_numbers() -> list[Case]:
    """Return what makes a Python int or an int64 of a number that such holds."""
    import math

    names = ("floor", "ceil", "trunc")
    found = [Case(f"{n}(a)", n, _whole(n), 0, {n: getattr(math, n)}) for n in names]
    return [*found, Case("round(a)", "round", _whole("rint"), 0, {})]


def of_one() -> list[Case]:
    """Return expressions of one number."""
    return [
        Case("round(a, 2)", "round", lambda a: _rounded(a, 2), 0, {}),
        Case("np.round(a, 1)", "round", lambda a: _rounded(a, 1), 0, {"np": np}),
        Case("np.round(a)", "round", lambda a: _rounded(a, 0), 0, {"np": np}),
        Case("bool(a)", "bool", lambda a: a.astype(bool), 0, {}),
        Case("truth(a)", "bool", lambda a: a.astype(bool), 0, {"truth": operator.truth}),
        Case("np.real(a)", "real", lambda a: a.real if _is_complex(a) else a, 0, {"np": np}),
        Case("a.imag", "imag", lambda a: a.imag if _is_complex(a) else np.zeros_like(a), 0, {}),
        Case("a in (0, 1, 2.5)", "contains", lambda a: (a == 0) | (a == 1) | (a == 2.5), 0, {}),
        Case("a if a else a", "bool", lambda a: a, 0, {}),
        Case("1 if a and a != 2 else 0", "bool", _and_not_two, 0, {}),
    ]


def _and_not_two(a: Array) -> Any:
    return np.where(a.astype(bool) & (a != 2), 1, 0)


def of_two() -> list[Case]:
    """Return expressions of two numbers."""
    floor, rest = np.floor_divide, np.remainder
    return [
        Case("max(a, b)", "max", _extreme(np.greater), 0, {}),
        Case("min(a, b)", "min", _extreme(np.less), 0, {}),
        Case("np.where(a, a, b)", "where", _where, 0, {"np": np}),
        Case("complex(a, b)", "complex128", _of_parts(np.complex128), 0, {}),
        Case("np.complex64(a, b)", "complex64", _of_parts(np.complex64), 0, {"np": np}),
        Case("divmod(a, b)[0]", "divmod", lambda a, b: _divided(floor, a, b), 0, {}),
        Case("np.divmod(a, b)[1]", "divmod", lambda a, b: _divided(rest, a, b), 0, {"np": np}),
    ]


def _divided(ufunc: np.ufunc, a: Array, b: Array) -> Any:
    if BFLOAT16 in (a.dtype, b.dtype):
        joint = _joint(a, b)
        held = (x.astype(joint) for x in (a, b))
        return ufunc(*(x.astype(np.float32) if joint == BFLOAT16 else x for x in held)).astype(
            joint
        )
    return ufunc(a, b)


def _where(a: Array, b: Array) -> Any:
    joint = _joint(a, b)
    return np.where(a.astype(bool), a.astype(joint), b.astype(joint))


def _of_parts(kind: type[np.complexfloating[Any, Any]]) -> Callable[..., Any]:
    def reference(a: Array, b: Array) -> Any:
        found = np.empty(a.shape, kind)
        found.real, found.imag = a, b
        return found

    return _real_only(reference)
