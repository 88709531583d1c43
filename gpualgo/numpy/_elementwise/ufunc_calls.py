"""Calls of ufuncs: what their arguments are, and calls with ``out=``, ``where=`` or ``dtype=``."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._algorithms.transform import transform
from gpualgo._algorithms.transform.copying import copy
from gpualgo._algorithms.transform.scalars import NUMBERS
from gpualgo._base import dtypes, recording
from gpualgo._base.errors import CompileError
from gpualgo._lazy import is_lazy, ufuncs
from gpualgo._lazy.combining import applied
from gpualgo.lazy import asarray as lazy_of
from gpualgo.numpy._call import function, results
from gpualgo.numpy._call.arguments import NotTaken, array_of

NUMBERS_ALONE, HOST, OWN, DEVICE, LAZY = range(5)  # where arguments are; OWN: NumPy has no loop


def arguments_of(args: tuple[Any, ...], name: str) -> tuple[list[Any], int, int]:
    """Return arguments as arrays and numbers, how many elements host arrays have, and the place."""
    if recording.active:
        recording.refuse_in_graph_of_cpu(name)
    given, size, place = list(args), 0, NUMBERS_ALONE
    for i, x in enumerate(given):
        if type(x) in NUMBERS:
            continue
        if type(x) is not np.ndarray or dtypes.name_of(x.dtype) is None:
            is_scalar = isinstance(x, np.generic)
            x = given[i] = array_of(x, f"{name}: argument {i + 1}")
            if type(x) is not np.ndarray:
                place = max(place, LAZY if is_lazy(x) else DEVICE)
                continue
            if is_scalar:
                given[i] = x[()]
        size += x.size
        place = max(place, HOST if x.dtype.kind != "V" else OWN)
    if place >= DEVICE:  # a GPU takes numbers of the host, and no arrays
        given = [x[()] if type(x) is np.ndarray and not x.ndim else x for x in given]
    return given, size, place


def plain(ufunc: np.ufunc, op: Any, given: list[Any], place: int, name: str) -> Any:
    """Return what a ufunc, which op computes, makes of arguments: in one transform, or lazily."""
    if op is not ufunc and (kind := _joint(ufunc, given, name)) is not None:
        return computed(ufunc, op, given, place, (None,), True, kind, "same_kind", name)
    if place == LAZY:
        if op is not ufunc:
            return applied(op, given, name)
        return ufuncs.called(ufunc, "__call__", tuple(given), {})
    return results.number_of(transformed(ufunc, given, name, op))


def transformed(ufunc: np.ufunc, given: Sequence[Any], name: str, op: Any = None) -> Any:
    """Return what a ufunc, or op that computes it, makes of real arrays and numbers."""
    try:
        return transform(ufunc if op is None else op, *given)
    except (TypeError, ValueError, OverflowError, CompileError) as error:
        raise as_numpys(ufunc, given, error, name) from None


def _joint(ufunc: np.ufunc, given: Sequence[Any], name: str) -> np.dtype[Any] | None:
    """Return the dtype to convert arguments to together, None where they have it or are refused."""
    return _joint_of(ufunc, *ufuncs.kinds_of(given, name))


@functools.lru_cache(256, typed=True)  # as np.dtype(float) == float
def _joint_of(ufunc: np.ufunc, *kinds: Any) -> np.dtype[Any] | None:
    try:
        found: np.dtype[Any] = ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout))[-1]
    except TypeError:
        return None
    same = all(kind == found for kind in kinds if isinstance(kind, np.dtype))
    return None if same else found


def mapped(op: Any, args: tuple[Any, ...], out: Any, name: str) -> Any:
    """Return what a function makes of arrays and numbers, element by element; of lazy ones lazily.

    Raises
    ------
    TypeError, ValueError
        As NumPy for ``out=`` that does not fit.
    """
    given, _, place = arguments_of(args, name)
    if place == NUMBERS_ALONE:
        given[0] = np.asarray(given[0])
    try:
        if place == LAZY or out is not None:
            made = applied(op, given, name)
            if out is None:
                return made
            results.check_cast(made.dtype, out, name)
            shape = tuple(out.shape)
            if made.shape != shape and np.broadcast_shapes(made.shape, shape) == shape:
                made = made.broadcast_to(shape)
            return results.stored(made, out, name)
        return results.number_of(transform(op, *given))
    except CompileError as error:
        raise _not_taken(given, error, name) from None


def _not_taken(given: Sequence[Any], error: BaseException, name: str) -> NotTaken:
    """Return why arguments are not taken: an operator of this package's own is not spoken of."""
    text = str(error).partition(": ")[2]
    if text.startswith("op "):
        kinds = [type(x).__name__ if type(x) in NUMBERS else str(results.dtype_of(x, name))
                 for x in given]  # fmt: skip
        text = f"there is no kernel for {', '.join(kinds)}; convert them, or use numpy.{name}"
    return NotTaken(f"{name}: {text}")


def as_numpys(ufunc: np.ufunc, given: Sequence[Any], error: BaseException, name: str) -> Any:
    """Return the error that NumPy raises for arguments of these dtypes, else one of ours."""
    like = [
        x if type(x) in NUMBERS else np.ones((), results.dtype_of(x, name)) for x in given
    ]  # fmt: skip
    try:
        with np.errstate(all="ignore"):
            ufunc(*like)
    except (TypeError, ValueError, OverflowError) as theirs:
        return theirs
    if isinstance(error, (TypeError, CompileError)):
        return _not_taken(given, error, name)
    return error


def outs_of(
    ufunc: np.ufunc, args: tuple[Any, ...], out: Any, name: str
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the inputs, and a tuple of what is written: arrays, or None."""
    nin, nout = ufunc.nin, ufunc.nout
    if not nin <= len(args) <= nin + nout:
        raise TypeError(
            f"{name}() takes from {nin} to {nin + nout} positional arguments but {len(args)} "
            "were given"
        )
    if len(args) > nin:
        if out is not None:
            raise TypeError(f"{name}: out is given by place and by name; pass one of them")
        out = (*args[nin:], *(None,) * (nin + nout - len(args)))
    outs = out if isinstance(out, tuple) else (out,)
    if out is None:
        outs = (None,) * nout
    if len(outs) != nout:
        kind = ValueError if isinstance(out, tuple) else TypeError
        raise kind(f"{name}: out must be a tuple of {nout} arrays or None")
    for one in outs:
        if one is not None and not hasattr(one, "dtype"):
            raise TypeError(f"{name}: out must be an array, got {type(one).__name__}")
        ufuncs.no_lazy_out(one, name)
    return args[:nin], outs


def mask_of(where: Any, name: str) -> Any:
    """Return ``where=`` as True, a number or an array of bool."""
    if type(where) in (bool, int, np.bool_):
        return bool(where) or np.False_
    if not hasattr(where, "dtype"):
        where = np.asarray(where, bool)  # of lists of numbers, as NumPy
    mask = array_of(where, f"{name}: where")
    kind = results.dtype_of(mask, name)
    if kind != np.dtype(bool):
        raise TypeError(f"{name}: where has dtype {kind}; pass an array of bool")
    return mask


def _chosen(mask: Any, new: Any, old: Any) -> Any:
    return new if mask else old


def computed(
    ufunc: np.ufunc, op: Any, given: list[Any], place: int, outs: tuple[Any, ...], where: Any,
    dtype: Any, casting: str, name: str,
) -> Any:  # fmt: skip
    """Return what a ufunc makes of arguments with any of its options: one transform for each out.

    Raises
    ------
    TypeError, ValueError
        As NumPy for these dtypes, shapes and ways to cast.
    """
    if any(map(function.is_swapped, outs)):
        native = tuple(map(function.native_of, outs))
        made = computed(ufunc, op, given, place, native, where, dtype, casting, name)
        written = made if isinstance(made, tuple) else (made,)
        back = tuple(map(results.given_back, outs, written))
        return back[0] if len(back) == 1 else back
    inputs, kinds = tuple(given), None
    written_as = [None if out is None else results.dtype_of(out, name) for out in outs]
    inputs, kinds = ufuncs.of_loop(ufunc, name, inputs, dtype, casting, tuple(written_as))
    if casting == "unsafe":
        for x, used in zip(given, inputs, strict=True):
            if x is not used and hasattr(x, "dtype"):
                results.warn_of_parts(results.dtype_of(x, name), used.dtype, stacklevel=4)
        for kind, wanted in zip(kinds, written_as, strict=True):
            results.warn_of_parts(kind, wanted or kind, stacklevel=4)
    parts: Sequence[Any] = (op,)
    if len(outs) > 1:
        parts = (np.floor_divide, np.remainder)
    try:
        made = [applied(part, inputs, name) for part in parts]
        made = [_cast(x, kind, name) for x, kind in zip(made, kinds, strict=True)]
    except (TypeError, ValueError, OverflowError, CompileError) as error:
        raise as_numpys(ufunc, given, error, name) from None
    if len(made) > 1 and any(out is not None for out in outs):
        # Before any is written, as one of them may be among the inputs.
        made = [lazy_of(copy(x)) for x in made]
    mask = None if where is True else lazy_of(where)
    shape = np.broadcast_shapes(*[x.shape for x in made], () if mask is None else mask.shape)
    whole = np.broadcast_shapes(shape, *[tuple(out.shape) for out in outs if out is not None])
    for out in outs:
        if out is not None and tuple(out.shape) != whole:
            raise ValueError(f"{name}: out has shape {tuple(out.shape)}, the result has {whole}")
    found = []
    for x, out in zip(made, outs, strict=True):
        x = _fitted(x, mask, whole, out, name)
        if out is not None:
            results.written_to(x, out)
        found.append(out if out is not None else x if place == LAZY else results.number_of(copy(x)))
    return found[0] if len(found) == 1 else tuple(found)


def _cast(x: Any, kind: Any, name: str) -> Any:
    return x if x.dtype == kind else ufuncs.cast(x, x.dtype, kind, name)


def _fitted(x: Any, mask: Any, shape: tuple[int, ...], out: Any, name: str) -> Any:
    """Return a result in a shape and out's dtype, with old elements where the mask says so."""
    if out is not None:
        x = _cast(x, results.dtype_of(out, name), name)
    if x.shape != shape:
        x = x.broadcast_to(shape)
    if mask is None:
        return x
    return applied(_chosen, (mask, x, x.dtype.type(0) if out is None else out), name)
