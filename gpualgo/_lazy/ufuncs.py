"""NumPy's ufuncs of lazy arrays: those of the table that operators have, and some reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpualgo._base import dtypes
from gpualgo._lazy.hooks import hooks
from gpualgo._operators.numpy_rules import table

MAKE_REAL = (
    "lazy arrays have no such function; make it real with gpualgo.copy(x) or np.asarray(x) first"
)
_COMPARISONS = (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)


def called(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what a ufunc, or a method of it, makes of arguments one of which is lazy."""
    name = f"np.{ufunc.__name__}"
    out = _out(kwargs.pop("out", None), name)
    if kwargs.get("where", True) is True:
        kwargs.pop("where", None)
    # NumPy makes arrays without axes of its numbers before it asks.
    inputs = tuple([x[()] if type(x) is np.ndarray and not x.ndim else x for x in inputs])
    if method == "__call__":
        return _computed(ufunc, name, inputs, kwargs, out)
    found = {"reduce": "reduced", "accumulate": "accumulated"}.get(method)
    name = f"{name}.{method}"
    if found is None or ufunc.nin != 2:
        raise TypeError(f"{name}: {MAKE_REAL}")
    for option in kwargs:
        if option not in ("axis", "dtype", "keepdims", "initial"):
            raise no_option(name, option)
    return getattr(hooks, found)(ufunc, *inputs, out=out[0], **kwargs)


def _computed(
    ufunc: np.ufunc, name: str, inputs: tuple[Any, ...], kwargs: dict[str, Any],
    out: tuple[Any, ...],
) -> Any:  # fmt: skip
    if ufunc is not np.divmod and table.entry_of(ufunc) is None:
        raise TypeError(f"{name}: {MAKE_REAL}")
    dtype = kwargs.pop("dtype", None)
    for option in kwargs:
        raise no_option(name, option)
    first = inputs[0]
    if ufunc in _COMPARISONS and type(first) is np.ndarray and not first.ndim:
        inputs = (first[()], *inputs[1:])  # NumPy makes arrays of its numbers that are compared
    if dtype is not None:
        inputs, dtype = _of_loop(ufunc, name, inputs, dtype)
    parts = (np.floor_divide, np.remainder) if ufunc is np.divmod else (ufunc,)
    made = tuple([hooks.applied(part, inputs, name) for part in parts])
    if dtype is not None:
        made = tuple([one if one.dtype == dtype else one.astype(dtype) for one in made])
    if any(one is not None for one in out):
        made = tuple(
            [x if to is None else written(x, to, name) for x, to in zip(made, out, strict=True)]
        )
    return made if len(made) > 1 else made[0]


def written(x: Any, out: Any, name: str) -> Any:
    """Compute a lazy array into a real one, to whose shape it is broadcast, and return that."""
    shape = tuple(getattr(out, "shape", x.shape))
    if x.shape != shape:
        if np.broadcast_shapes(x.shape, shape) != shape:
            raise ValueError(f"{name}: out has shape {shape}, the result has {x.shape}")
        x = x.broadcast_to(shape)
    hooks.copy(x, out=out)
    return out


def _out(out: Any, name: str) -> tuple[Any, ...]:
    given = out if isinstance(out, tuple) else (out,)
    for one in given:
        no_lazy_out(one, name)
    return given


def no_lazy_out(out: Any, name: str) -> None:
    """Raise TypeError for out= that is lazy."""
    if hasattr(out, "leaves"):
        raise TypeError(f"{name}: out is a lazy array, which has no memory; pass a real one")


def no_option(name: str, option: str) -> TypeError:
    return TypeError(
        f"{name}: {option}= is not possible with lazy arrays; make them real with gpualgo.copy(x) "
        "or np.asarray(x) first"
    )


def _of_loop(
    ufunc: np.ufunc, name: str, inputs: tuple[Any, ...], dtype: Any
) -> tuple[tuple[Any, ...], np.dtype[Any]]:
    """Return arguments converted as NumPy does it before it computes with ``dtype=``."""
    wanted = dtypes.as_dtype(dtype, name)
    kinds = [type(x) if type(x) in (int, float, complex) else _dtype_of(x, name) for x in inputs]
    nout = ufunc.nout
    try:
        found = ufunc.resolve_dtypes(
            (*kinds, *(None,) * nout), signature=(*(None,) * ufunc.nin, *(wanted,) * nout)
        )
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None
    converted = [
        to.type(x) if isinstance(kind, type) else hooks.applied(to.type, (x,), name)
        for x, kind, to in zip(inputs, kinds, found[: ufunc.nin], strict=True)
    ]  # fmt: skip
    return tuple(converted), found[ufunc.nin]


def _dtype_of(x: Any, name: str) -> np.dtype[Any]:
    return dtypes.as_dtype(x.dtype, name) if hasattr(x, "dtype") else np.asarray(x).dtype
