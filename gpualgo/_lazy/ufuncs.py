"""NumPy ufuncs on lazy arrays: those that operators support, and some reductions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._base import dtypes
from gpualgo._lazy.hooks import hooks
from gpualgo._operators.numpy_rules import table

MAKE_REAL = (
    "lazy arrays do not support this function; materialize it with gpualgo.copy(x) or "
    "np.asarray(x) first"
)


def called(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a ufunc, or of one of its methods, for arguments with a lazy array."""
    name = f"np.{ufunc.__name__}"
    out = _out(kwargs.pop("out", None), name)
    if kwargs.get("where", True) is True:
        kwargs.pop("where", None)
    # NumPy converts its scalars to 0-d arrays before it calls `__array_ufunc__`.
    inputs = tuple([x[()] if type(x) is np.ndarray and not x.ndim else x for x in inputs])
    if method == "__call__":
        return _computed(ufunc, name, inputs, kwargs, out)
    hook_name = {"reduce": "reduced", "accumulate": "accumulated"}.get(method)
    name = f"{name}.{method}"
    if hook_name is None or ufunc.nin != 2:
        raise TypeError(f"{name}: {MAKE_REAL}")
    for option in kwargs:
        if option not in ("axis", "dtype", "keepdims", "initial"):
            raise no_option(name, option)
    return getattr(hooks, hook_name)(ufunc, *inputs, out=out[0], **kwargs)


def _computed(
    ufunc: np.ufunc, name: str, inputs: tuple[Any, ...], kwargs: dict[str, Any],
    out: tuple[Any, ...],
) -> Any:  # fmt: skip
    if ufunc is not np.divmod and table.entry_of(ufunc) is None:
        raise TypeError(f"{name}: {MAKE_REAL}")
    dtype = kwargs.pop("dtype", None)
    for option in kwargs:
        raise no_option(name, option)
    if dtype is not None:
        inputs, (dtype, *_) = of_loop(ufunc, name, inputs, dtype)
    parts = (np.floor_divide, np.remainder) if ufunc is np.divmod else (ufunc,)
    made = tuple([hooks.applied(part, inputs, name) for part in parts])
    if dtype is not None:
        made = tuple([one if one.dtype == dtype else one.astype(dtype) for one in made])
    if all(one is None for one in out):
        return made if len(made) > 1 else made[0]
    if len(made) == 1:
        return written(made[0], out[0], name)
    if any(one is None for one in out):  # a lazy result would read what the other one overwrites
        made = tuple([hooks.copy(x) if to is None else x for x, to in zip(made, out, strict=True)])
        pairs = zip(made, out, strict=True)
        return tuple([x if to is None else written(x, to, name) for x, to in pairs])
    broadcasts = [_broadcast(x, to, name) for x, to in zip(made, out, strict=True)]
    hooks.copy(tuple(broadcasts), out=out)  # in one call, as an output may be an input
    return out


def written(x: Any, out: Any, name: str) -> Any:
    """Compute a lazy array into an output, broadcast to its shape, and return the output."""
    hooks.copy(_broadcast(x, out, name), out=out)
    return out


def _broadcast(x: Any, out: Any, name: str) -> Any:
    """Return a lazy array broadcast to the shape of an output."""
    shape = tuple(getattr(out, "shape", x.shape))
    if x.shape == shape:
        return x
    if np.broadcast_shapes(x.shape, shape) != shape:
        raise ValueError(f"{name}: out has shape {shape}, the result has {x.shape}")
    return x.broadcast_to(shape)


def _out(out: Any, name: str) -> tuple[Any, ...]:
    given = out if isinstance(out, tuple) else (out,)
    for one in given:
        no_lazy_out(one, name)
    return given


def no_lazy_out(out: Any, name: str) -> None:
    if hasattr(out, "leaves"):
        raise TypeError(f"{name}: out is a lazy array, which has no memory; pass an array")


def no_option(name: str, option: str) -> TypeError:
    return TypeError(
        f"{name}: {option}= is not possible with lazy arrays; materialize them with "
        "gpualgo.copy(x) or np.asarray(x) first"
    )


def of_loop(
    ufunc: np.ufunc, name: str, inputs: tuple[Any, ...], dtype: Any, casting: str = "same_kind",
    outs: tuple[np.dtype[Any] | None, ...] = (),
) -> tuple[tuple[Any, ...], tuple[np.dtype[Any], ...]]:  # fmt: skip
    """Return arguments converted to the dtypes of NumPy's loop, and the dtypes of its results.

    Without ``dtype=`` the arguments are returned unchanged. ``outs`` are the dtypes of the outputs;
    a cast that NumPy does not allow is a TypeError.
    """
    nin, nout = ufunc.nin, ufunc.nout
    wanted = None if dtype is None else dtypes.as_dtype(dtype, name)
    kinds = kinds_of(inputs, name)
    if casting == "equiv" and any(isinstance(kind, type) for kind in kinds):
        casting = "no"  # same for native byte order; NumPy 2.4 crashes on Python numbers and equiv
    options: dict[str, Any] = {"casting": casting}
    if wanted is not None:
        options["signature"] = (*(None,) * nin, *(wanted,) * nout)
    try:
        loop_dtypes = ufunc.resolve_dtypes((*kinds, *(outs or (None,) * nout)), **options)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None
    if wanted is None:
        return inputs, tuple(loop_dtypes[nin:])
    converted = [
        to.type(x) if isinstance(kind, type) else cast(x, kind, to, name)
        for x, kind, to in zip(inputs, kinds, loop_dtypes[:nin], strict=True)
    ]
    return tuple(converted), tuple(loop_dtypes[nin:])


def kinds_of(inputs: Sequence[Any], name: str) -> list[Any]:
    """Return arguments' dtypes for ``resolve_dtypes``: types for Python numbers."""
    return [type(x) if type(x) in (int, float, complex) else _dtype_of(x, name) for x in inputs]


def cast(x: Any, kind: np.dtype[Any], to: np.dtype[Any], name: str) -> Any:
    """Return an argument converted to a dtype; complex to real takes the real part."""
    if isinstance(x, (bool, np.generic)):
        return np.asarray(x).astype(to)[()]
    if kind.kind == "c" and to.kind != "c":
        x = hooks.applied(np.real, (x,), name)
    return hooks.applied(to.type, (x,), name)


def _dtype_of(x: Any, name: str) -> np.dtype[Any]:
    return dtypes.as_dtype(x.dtype, name) if hasattr(x, "dtype") else np.asarray(x).dtype
