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


_x, _m, _rows = ("x:n", _args()), ("x:m", _args(axis=0)), ("x:m", _args(axis=1, keepdims=True))
_two, _all_of_m = ("x:n y:n", _args()), ("x:m", _args())
_where = ("x:m b:m", lambda f, x, b, o, **m: f(x, axis=0, where=b, **m))

# How names are called, and of which dtypes.
_CALLS: list[tuple[str, str, list[tuple[str, Any]]]] = [
    (_ALL, "all any sum prod nansum nanprod", [_x, _m, _rows, _where]),
    (_ALL, "max min amax amin nanmax nanmin ptp median nanmedian", [_x, _m, _rows]),
    (_ALL, "mean std var nanmean nanstd nanvar", [_x, _m, _rows]),
    (_ALL, "argmax argmin nanargmax nanargmin cumsum cumprod nancumsum nancumprod", [_x, _m]),
    (_FLOATS, "percentile nanpercentile", [("x:n", _args(30)), ("x:m", _args([25, 50], axis=0))]),
    (_FLOATS, "quantile nanquantile", [("x:n", _args(0.3)), ("x:m", _args(0.5, axis=0))]),
    (_ALL, "cumulative_sum cumulative_prod", [_x, ("x:m", _args(axis=0, include_initial=True))]),
    (_ALL, "around round", [("x:n", _args(1)), _all_of_m, ("x:n", _args(-1))]),
    (_ALL, "argsort sort", [("x:n", _args(kind="stable")), ("x:m", _args(axis=0, kind="stable"))]),
    (_ALL, "argwhere flatnonzero nonzero ediff1d", [_x]),
    (_ALL, "unique_all unique_counts unique_inverse unique_values", [_x]),
    ("f8 f4 c16", "real imag angle", [_x]),
    (_FLOATS, "fix isneginf isposinf sinc nan_to_num", [_x, _all_of_m]),
    (_FLOATS, "inner dot vdot isclose", [_two]),
    (_ALL, "intersect1d setdiff1d setxor1d union1d isin", [_two]),
    (_ALL, "partition", [("x:n", lambda f, x, o, **m: f(x, x.size // 2, **m)[x.size // 2])]),
    (_ALL, "argpartition",
     [("x:n", lambda f, x, o, **m: x[f(x, x.size // 2, **m)][x.size // 2])]),
    (_FLOATS, "average", [_x, ("x:m b:m", lambda f, x, b, o, **m: f(x, 1, b + 1.0, **m))]),
    (_INTEGERS, "bincount", [("i:n", _args()), ("i:n w:n", _args(minlength=9))]),
    (_ALL, "clip", [("x:n", _args(1, 5)), ("x:m y:w", lambda f, x, y, o, **m: f(x, y, 7, **m))]),
    (_ALL, "compress", [("b:n x:n", _args()), ("b:w x:m", _args(axis=1))]),
    (_ALL, "extract", [("b:n x:n", _args())]),
    (_ALL, "count_nonzero", [_x, _m]),
    (_ALL, "diff", [_x, ("x:m", _args(2, axis=0))]),
    (_ALL, "digitize", [("x:n", _args([-3, 0, 4])), ("x:m s:n", _args())]),
    (_ALL, "histogram",
     [_x, ("x:n w:n", lambda f, x, w, o, **m: f(x, 7, (-9, 9), weights=w, **m))]),
    (_FLOATS, "histogram2d", [("x:n y:n", _args(4, [(-9, 9), (-9, 9)]))]),
    (_FLOATS, "histogramdd", [("x:n y:n", lambda f, x, y, o, **m: f((x, y), 3, **m)[0])]),
    (_FLOATS, "histogram_bin_edges", [_x]),
    # Only NumPy refuses negative powers of integers that an array holds.
    (_ALL, "pow power", [("x:n i:n", _args()), ("x:m", _args(-2.0)), ("x:n", _args(2))]),
    (_ALL, "lexsort", [("x:n y:n", lambda f, x, y, o, **m: f((x, y), **m))]),
    (_ALL, "searchsorted", [("s:n x:n", _args()), ("s:n x:m", _args("right"))]),
    (_FLOATS, "trapezoid", [_x, ("x:m", _args(dx=0.5, axis=0))]),
    (_ALL, "unique", [_x, ("x:n", _args(True, True, True)), ("x:m", _args(axis=0))]),
    (_ALL, "where",
     [("b:n x:n y:n", _args()), ("b:m x:w", lambda f, b, x, o, **m: f(b, x, 3, **m))]),
]  # fmt: skip
_BY_NAME = {name: (dtypes, calls) for dtypes, names, calls in _CALLS for name in names.split()}


def _ufunc(name: str, theirs: np.ufunc) -> tuple[str, list[tuple[str, Any]]]:
    dtypes = _INTEGERS if name in _OF_INTEGERS else _FLOATS if theirs.types[0][0] in "eg" else _ALL
    dtypes = dtypes if name not in ("arctanh", "atanh", "reciprocal") else _FLOATS
    if theirs.nin == 1:
        return dtypes, [_x, _all_of_m]
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
    theirs = np.unique if name == "unique_values" else getattr(np, name, None)  # in order
    found = _BY_NAME.get(name)
    if found is None and isinstance(theirs, np.ufunc):
        found = _ufunc(name, theirs)
    dtypes, calls = found or ("", [])
    return [
        Template(
            f"numpy.{name}", arrays, call, theirs or (lambda *_: None), dtypes=dtypes,
            tolerance=_TOLERANCE, is_numpys=True,
            can_be_recorded=name not in ("argpartition", "average"),
        )
        for arrays, call in calls
    ]  # fmt: skip


NAMES = [name for name in gnp.__all__ if name not in NOT_CALLED]
