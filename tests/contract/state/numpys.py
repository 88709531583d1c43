"""Calls of every name of `gpualgo.numpy`; NumPy's function of that name says what they return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from contract.state.templates import Template

import gpualgo.numpy as gnp

NOT_CALLED = {"Namespace", "NotTaken", "vectorize", "wrap"}  # they make functions
_FLOATS, _ALL, _INTEGERS = "f8 f4", "f8 i4 f4 i8 u1", "i4 i8 u1"
# What a ufunc takes where floats are not it.
_OF_INTEGERS = {
    "bitwise_and", "bitwise_count", "bitwise_invert", "bitwise_left_shift", "bitwise_not",
    "bitwise_or", "bitwise_right_shift", "bitwise_xor", "gcd", "invert", "lcm", "left_shift",
    "right_shift",
}  # fmt: skip
_TOLERANCE = 1e-5


def _args(*more: Any, **how: Any) -> Callable[..., Any]:
    """Return a call with these arguments behind the arrays."""
    return lambda f, *arrays, **m: f(*arrays[:-1], *more, **how, **m)


_x, _m, _two = ("x:n", _args()), ("x:m", _args(axis=0)), ("x:n y:n", _args())
_FOLDS = [_x, _m, ("x:m", _args(axis=1, keepdims=True)), ("x:m b:m", lambda f, x, b, o, **m: f(x, axis=0, where=b, **m))]
_MOMENTS = [_x, _m, ("x:m", _args(axis=1, keepdims=True))]
_RANKED = [("x:n", _args(30)), ("x:m", _args([25, 50], axis=0))]

# How each is called, and of which dtypes.
_CALLS: dict[str, tuple[str, list[tuple[str, Any]]]] = {
    **dict.fromkeys(("all", "any", "sum", "prod", "nansum", "nanprod"), (_ALL, _FOLDS)),
    **dict.fromkeys(("max", "min", "amax", "amin", "nanmax", "nanmin", "ptp"), (_ALL, _MOMENTS)),
    **dict.fromkeys(("argmax", "argmin", "nanargmax", "nanargmin"), (_ALL, [_x, _m])),
    **dict.fromkeys(("mean", "std", "var", "nanmean", "nanstd", "nanvar"), (_ALL, _MOMENTS)),
    **dict.fromkeys(("median", "nanmedian"), (_ALL, _MOMENTS)),
    **dict.fromkeys(("percentile", "nanpercentile"), (_FLOATS, _RANKED)),
    **dict.fromkeys(("quantile", "nanquantile"), (_FLOATS, [("x:n", _args(0.3)), ("x:m", _args(0.5, axis=0))])),
    **dict.fromkeys(("cumsum", "cumprod", "nancumsum", "nancumprod"), (_ALL, [_x, _m])),
    **dict.fromkeys(("cumulative_sum", "cumulative_prod"), (_ALL, [_x, ("x:m", _args(axis=0, include_initial=True))])),
    **dict.fromkeys(("around", "round"), (_ALL, [("x:n", _args(1)), ("x:m", _args()), ("x:n", _args(-1))])),
    **dict.fromkeys(("argsort", "sort"), (_ALL, [("x:n", _args(kind="stable")), ("x:m", _args(axis=0, kind="stable"))])),
    **dict.fromkeys(("argwhere", "flatnonzero", "nonzero"), (_ALL, [_x])),
    **dict.fromkeys(("real", "imag", "angle"), ("f8 f4 c16", [_x])),
    **dict.fromkeys(("fix", "isneginf", "isposinf", "sinc", "nan_to_num"), (_FLOATS, [_x, ("x:m", _args())])),
    **dict.fromkeys(("inner", "dot", "vdot"), (_FLOATS, [_two])),
    **dict.fromkeys(("intersect1d", "setdiff1d", "setxor1d", "union1d", "isin"), (_ALL, [_two])),
    **dict.fromkeys(("unique_all", "unique_counts", "unique_inverse", "unique_values"), (_ALL, [_x])),
    "partition": (_ALL, [("x:n", lambda f, x, o, **m: f(x, x.size // 2, **m)[x.size // 2])]),
    "argpartition": (_ALL, [("x:n", lambda f, x, o, **m: x[f(x, x.size // 2, **m)][x.size // 2])]),
    "average": (_FLOATS, [_x, ("x:m y:m", lambda f, x, y, o, **m: f(x, 0, abs(y) + 1, **m))]),
    "bincount": (_INTEGERS, [("i:n", _args()), ("i:n w:n", _args(minlength=9))]),
    "clip": (_ALL, [("x:n", _args(1, 5)), ("x:m y:w", lambda f, x, y, o, **m: f(x, y, 7, **m))]),
    "compress": (_ALL, [("b:n x:n", _args()), ("b:w x:m", _args(axis=1))]),
    "extract": (_ALL, [("b:n x:n", _args())]),
    "count_nonzero": (_ALL, [_x, _m]),
    "diff": (_ALL, [_x, ("x:m", _args(2, axis=0))]),
    "digitize": (_ALL, [("x:n", _args([-3, 0, 4])), ("x:m s:n", _args())]),
    "ediff1d": (_ALL, [_x]),
    "histogram": (_ALL, [_x, ("x:n w:n", lambda f, x, w, o, **m: f(x, 7, (-9, 9), weights=w, **m))]),
    "histogram2d": (_FLOATS, [("x:n y:n", _args(4, [(-9, 9), (-9, 9)]))]),
    "histogramdd": (_FLOATS, [("x:n y:n", lambda f, x, y, o, **m: f((x, y), 3, **m)[0])]),
    "histogram_bin_edges": (_FLOATS, [_x]),
    "isclose": (_FLOATS, [_two]),
    "lexsort": (_ALL, [("x:n y:n", lambda f, x, y, o, **m: f((x, y), **m))]),
    "searchsorted": (_ALL, [("s:n x:n", _args()), ("s:n x:m", _args("right"))]),
    "top_k": (_ALL, []),
    "trapezoid": (_FLOATS, [_x, ("x:m", _args(dx=0.5, axis=0))]),
    "unique": (_ALL, [_x, ("x:n", _args(True, True, True)), ("x:m", _args(axis=0))]),
    "where": (_ALL, [("b:n x:n y:n", _args()), ("b:m x:w", lambda f, b, x, o, **m: f(b, x, 3, **m))]),
}  # fmt: skip


def _ufunc(name: str, theirs: np.ufunc) -> tuple[str, list[tuple[str, Any]]]:
    dtypes = _INTEGERS if name in _OF_INTEGERS else _FLOATS if theirs.types[0][0] in "eg" else _ALL
    dtypes = dtypes if name not in ("arctanh", "atanh") else _FLOATS
    if theirs.nin == 1:
        return dtypes, [("x:n", _args()), ("x:m", _args())]
    return dtypes, [_two, ("x:m y:w", _args()), ("x:n", _args(2))]


def _top_k(name: str) -> list[Template]:
    def want(x: Any, o: Any) -> Any:
        order = np.argsort(-x, kind="stable")[:3]
        return x[order], order

    call = lambda f, x, o, **m: tuple(f(x, min(3, x.size), **m))  # noqa: E731
    return [Template(f"numpy.{name}", "x:n", call, want, dtypes="f8 f4 i8")]


def templates_of(name: str) -> list[Template]:
    """Return the calls of a name; none where it has no entry."""
    if name == "top_k":
        return _top_k(name)
    theirs = getattr(np, name, None)
    found = _CALLS.get(name)
    if found is None and isinstance(theirs, np.ufunc):
        found = _ufunc(name, theirs)
    dtypes, calls = found or ("", [])
    return [
        Template(
            f"numpy.{name}", arrays, call, theirs or (lambda *_: None), dtypes=dtypes,
            tolerance=_TOLERANCE, is_numpys=True,
        )
        for arrays, call in calls
    ]  # fmt: skip


NAMES = [name for name in gnp.__all__ if name not in NOT_CALLED]
