"""Implementations of NumPy functions for lazy arrays, in one table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpualgo._algorithms.transform import copy
from gpualgo._base import dtypes
from gpualgo._lazy import combining, is_lazy, operators
from gpualgo._lazy.array import LazyArray
from gpualgo._lazy.combining import applied, zipped

# --- elementwise ------------------------------------------------------------------------------


def clipped(a: Any, low: Any, high: Any) -> Any:
    return np.clip(a, low, high)


def _clip(
    a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None,
    max: Any = None,
) -> Any:  # fmt: skip
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    if low is None and high is None:
        return _written_to(zipped(a, "np.clip: a"), out, "np.clip")
    op: Any = clipped if low is not None else lambda a, high: np.clip(a, None, high)
    op = op if high is not None else lambda a, low: np.clip(a, low, None)
    arguments = [one for one in (a, low, high) if one is not None]
    return _written_to(applied(op, arguments, "np.clip"), out, "np.clip")


def _round(a: Any, decimals: int = 0, out: Any = None) -> Any:
    arguments = (a, decimals) if decimals else (a,)
    return _written_to(applied(np.round, arguments, "np.round"), out, "np.round")


def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None or y is None:
        raise TypeError(
            "np.where: pass x and y, too; for the places of a condition call np.nonzero(condition)"
        )
    return applied(np.where, (condition, x, y), "np.where")


def _nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    if dtypes.kind(x.dtype) in "biu":
        return x
    op, numbers = finite_of(x.dtype, nan, posinf, neginf)
    return applied(op, (x, *numbers), "np.nan_to_num")


def finite_of(kind: np.dtype[Any], nan: Any, posinf: Any, neginf: Any) -> tuple[Any, list[Any]]:
    """Return an operator op(a, nan, posinf, neginf) that replaces NaN and infinities, and the three
    replacements.

    Numbers are converted to the dtype (complex: of its parts); arrays are unchanged.
    """
    part = np.empty(0, kind).real.dtype
    limits = operators.finfo(part)
    given = (
        nan,
        limits.max if posinf is None else posinf,
        limits.min if neginf is None else neginf,
    )
    if part.kind != "c" and any(np.iscomplexobj(n) for n in given):
        raise TypeError(
            f"np.nan_to_num: complex numbers cannot be converted to {part}, the dtype of parts"
        )
    with np.errstate(over="ignore"):
        numbers = [part.type(n) if np.ndim(n) == 0 and not is_lazy(n) else n for n in given]
    return _FINITE.get(kind, _finite), numbers


def _finite(a: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    if np.isnan(a):
        return nan
    if np.isinf(a):
        return posinf if a > 0 else neginf
    return a


def _finite64(a: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    parts = _finite(a.real, nan, posinf, neginf), _finite(a.imag, nan, posinf, neginf)
    return np.complex64(parts[0], parts[1])


def _finite128(a: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    parts = _finite(a.real, nan, posinf, neginf), _finite(a.imag, nan, posinf, neginf)
    return np.complex128(parts[0], parts[1])


_FINITE = {np.dtype(np.complex64): _finite64, np.dtype(np.complex128): _finite128}


def _written_to(x: Any, out: Any, name: str) -> Any:
    operators.no_lazy_out(out, name)
    return x if out is None else operators.written(x, out, name)


# --- views and gathers ------------------------------------------------------------------------


def _check_c_order(order: Any, name: str, allowed: str = "C") -> None:
    if order not in allowed:
        raise TypeError(f"{name}: lazy arrays have C order, got order={order!r}; leave it out")


def _reshape(a: Any, shape: Any, order: str = "C") -> Any:
    _check_c_order(order, "np.reshape")
    return a.reshape(shape)


def _ravel(a: Any, order: str = "C") -> Any:
    _check_c_order(order, "np.ravel", "CAK")
    return a.ravel()


def _take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    if mode == "raise":
        raise TypeError(
            "np.take: a lazy array cannot raise for an index that is out of range; pass "
            "mode='wrap', which accepts the same negative indices, or mode='clip'"
        )
    return _written_to(combining.gathered(a, indices, axis, mode, "np.take"), out, "np.take")


class _Unread(np.ndarray[Any, Any]):
    """An array of which NumPy's functions return views; np.flip would read an element by a[()]."""

    def __getitem__(self, index: Any) -> Any:
        return super().__getitem__(... if index == () else index)


def _view_function(fn: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: LazyArray, *args: Any, **kwargs: Any) -> LazyArray:
        def change(array: np.ndarray[Any, Any]) -> Any:
            return fn(array.view(_Unread), *args, **kwargs).view(np.ndarray)

        return x.rearranged(change, f"{fn.__name__}({x.text})")

    return call


VIEWS = (
    np.transpose, np.swapaxes, np.moveaxis, np.rollaxis, np.expand_dims, np.squeeze, np.flip,
    np.flipud, np.fliplr, np.rot90, np.broadcast_to, np.diagonal,
)  # fmt: skip

# --- the table --------------------------------------------------------------------------------


def _copyto(dst: Any, src: Any) -> None:
    _written_to(src, dst, "np.copyto")


def _size(a: Any, axis: Any = None) -> int:
    return int(a.size if axis is None else a.shape[axis])


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "where": _where,
    "clip": _clip,
    "round": _round,
    "around": _round,
    "nan_to_num": _nan_to_num,
    "real": lambda val: val.real,
    "imag": lambda val: val.imag,
    "astype": lambda x, dtype: x.astype(dtype),
    "reshape": _reshape,
    "ravel": _ravel,
    "take": _take,
    "shape": lambda a: a.shape,
    "ndim": lambda a: a.ndim,
    "size": _size,
    "copy": lambda a: copy(a),
    "copyto": _copyto,
}


def _with_option_checks(name: str, fn: Any) -> Callable[..., Any]:
    """Return a function that raises an error for NumPy's options that `fn` does not support."""
    code = fn.__code__
    supported = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    def call(*args: Any, **kwargs: Any) -> Any:
        for option, value in list(kwargs.items()):
            if value is np._NoValue or (option not in supported and _is_default(option, value)):
                del kwargs[option]
            elif option not in supported:
                raise operators.no_option(f"np.{name}", option)
        return fn(*args, **kwargs)

    return call


_DEFAULTS = {"where": (True,), "copy": (True,), "order": ("C", "K"), "subok": (False, True),
          "casting": ("same_kind",)}  # fmt: skip


def _is_default(option: str, value: Any) -> bool:
    return value is None or any(value is usual or (type(value) is str and value == usual)
               for usual in _DEFAULTS.get(option, ()))  # fmt: skip


TABLE: dict[Any, Callable[..., Any]] = {
    getattr(np, name): _with_option_checks(name, fn)
    for name, fn in FUNCTIONS.items()
    if hasattr(np, name)
}
TABLE.update({fn: _view_function(fn) for fn in VIEWS})
