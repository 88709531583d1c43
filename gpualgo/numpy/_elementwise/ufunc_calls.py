"""Calls of ufuncs: conversion of arguments, and calls with ``out=``, ``where=`` or ``dtype=``."""

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

NUMBERS_ALONE, HOST, OWN, DEVICE, LAZY = range(5)  # locations; OWN: host arrays, no NumPy loop


def arguments_of(args: tuple[Any, ...], name: str) -> tuple[list[Any], int, int]:
    """Return arguments as arrays and numbers, the host arrays' total size, and a location code."""
    if recording.active:
        recording.refuse_in_graph_of_cpu(name)
    operands, size, location = list(args), 0, NUMBERS_ALONE
    for i, x in enumerate(operands):
        if type(x) in NUMBERS:
            continue
        if type(x) is not np.ndarray or dtypes.name_of(x.dtype) is None:
            is_scalar = isinstance(x, np.generic)
            x = operands[i] = array_of(x, f"{name}: argument {i + 1}")
            if type(x) is not np.ndarray:
                location = max(location, LAZY if is_lazy(x) else DEVICE)
                continue
            if is_scalar:
                operands[i] = x[()]
        size += x.size
        location = max(location, HOST if x.dtype.kind != "V" else OWN)
    if location >= DEVICE:  # kernels take numbers from the host, but no arrays
        operands = [x[()] if type(x) is np.ndarray and not x.ndim else x for x in operands]
    return operands, size, location


def plain(ufunc: np.ufunc, op: Any, given: list[Any], place: int, name: str) -> Any:
    """Return a ufunc's result, computed by op, without options: by one transform, or lazily."""
    if op is not ufunc and (kind := _common_dtype(ufunc, given, name)) is not None:
        return computed(ufunc, op, given, place, (None,), True, kind, "same_kind", name)
    if place == LAZY:
        if op is not ufunc:
            return applied(op, given, name)
        return ufuncs.called(ufunc, "__call__", tuple(given), {})
    return results.number_of(transformed(ufunc, given, name, op))


def transformed(ufunc: np.ufunc, given: Sequence[Any], name: str, op: Any = None) -> Any:
    """Return a ufunc's result, computed by op if given, on arrays that are not lazy and numbers."""
    try:
        return transform(ufunc if op is None else op, *given)
    except (TypeError, ValueError, OverflowError, CompileError) as error:
        raise as_numpys(ufunc, given, error, name) from None


def _common_dtype(ufunc: np.ufunc, given: Sequence[Any], name: str) -> np.dtype[Any] | None:
    """Return the dtype to convert all arguments to; None if they have it or NumPy rejects them."""
    return _common_dtype_of(ufunc, *ufuncs.kinds_of(given, name))


@functools.lru_cache(256, typed=True)  # as np.dtype(float) == float
def _common_dtype_of(ufunc: np.ufunc, *kinds: Any) -> np.dtype[Any] | None:
    try:
        common: np.dtype[Any] = ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout))[-1]
    except TypeError:
        return None
    is_common = all(kind == common for kind in kinds if isinstance(kind, np.dtype))
    return None if is_common else common


def mapped(op: Any, args: tuple[Any, ...], out: Any, name: str) -> Any:
    """Apply a function element by element; the result is lazy if an array is.

    Raises
    ------
    TypeError, ValueError
        As NumPy for ``out=`` that does not fit.
    """
    operands, _, location = arguments_of(args, name)
    if location == NUMBERS_ALONE:
        operands[0] = np.asarray(operands[0])
    try:
        if location == LAZY or out is not None:
            result = applied(op, operands, name)
            if out is None:
                return result
            results.check_cast(result.dtype, out, name)
            shape = tuple(out.shape)
            if result.shape != shape and np.broadcast_shapes(result.shape, shape) == shape:
                result = result.broadcast_to(shape)
            return results.stored(result, out, name)
        return results.number_of(transform(op, *operands))
    except CompileError as error:
        raise _unsupported(operands, error, name) from None


def _unsupported(given: Sequence[Any], error: BaseException, name: str) -> NotTaken:
    """Return the error for unsupported arguments, without the name of an internal operator."""
    text = str(error).partition(": ")[2]
    if text.startswith("op "):
        kinds = [type(x).__name__ if type(x) in NUMBERS else str(results.dtype_of(x, name))
                 for x in given]  # fmt: skip
        text = f"there is no kernel for {', '.join(kinds)}; convert them, or use numpy.{name}"
    return NotTaken(f"{name}: {text}")


def as_numpys(ufunc: np.ufunc, given: Sequence[Any], error: BaseException, name: str) -> Any:
    """Return the error that NumPy raises for arguments of these dtypes, else one of ours."""
    samples = [
        x if type(x) in NUMBERS else np.ones((), results.dtype_of(x, name)) for x in given
    ]  # fmt: skip
    try:
        with np.errstate(all="ignore"):
            ufunc(*samples)
    except (TypeError, ValueError, OverflowError) as numpy_error:
        return numpy_error
    if isinstance(error, (TypeError, CompileError)):
        return _unsupported(given, error, name)
    return error


def outs_of(
    ufunc: np.ufunc, args: tuple[Any, ...], out: Any, name: str
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the inputs, and the outputs as a tuple of arrays or None."""
    nin, nout = ufunc.nin, ufunc.nout
    if not nin <= len(args) <= nin + nout:
        raise TypeError(
            f"{name}() takes from {nin} to {nin + nout} positional arguments but {len(args)} "
            "were given"
        )
    if len(args) > nin:
        if out is not None:
            raise TypeError(f"{name}: out is given by position and by keyword; pass it once")
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
    """Return ``where=`` as True, False or an array of bool."""
    if type(where) in (bool, int, np.bool_):
        return bool(where) or np.False_
    if not hasattr(where, "dtype"):
        where = np.asarray(where, bool)  # as NumPy does with lists of numbers
    mask = array_of(where, f"{name}: where")
    kind = results.dtype_of(mask, name)
    if kind != np.dtype(bool):
        raise TypeError(f"{name}: where has dtype {kind}; pass an array of bool")
    return mask


def _select(mask: Any, new: Any, old: Any) -> Any:
    return new if mask else old


def computed(
    ufunc: np.ufunc, op: Any, given: list[Any], place: int, outs: tuple[Any, ...], where: Any,
    dtype: Any, casting: str, name: str,
) -> Any:  # fmt: skip
    """Return a ufunc's result for arguments with any options: one transform for each output.

    Raises
    ------
    TypeError, ValueError
        As NumPy for these dtypes, shapes and casting rules.
    """
    if any(map(function.is_swapped, outs)):
        native = tuple(map(function.native_copy_of, outs))
        values = computed(ufunc, op, given, place, native, where, dtype, casting, name)
        written = values if isinstance(values, tuple) else (values,)
        back = tuple(map(results.given_back, outs, written))
        return back[0] if len(back) == 1 else back
    inputs, kinds = tuple(given), None
    out_dtypes = [None if out is None else results.dtype_of(out, name) for out in outs]
    inputs, kinds = ufuncs.of_loop(ufunc, name, inputs, dtype, casting, tuple(out_dtypes))
    if casting == "unsafe":
        for x, converted in zip(given, inputs, strict=True):
            if x is not converted and hasattr(x, "dtype"):
                results.warn_of_parts(results.dtype_of(x, name), converted.dtype, stacklevel=4)
        for kind, wanted in zip(kinds, out_dtypes, strict=True):
            results.warn_of_parts(kind, wanted or kind, stacklevel=4)
    parts: Sequence[Any] = (op,)
    if len(outs) > 1:
        parts = (np.floor_divide, np.remainder)
    try:
        values = [applied(part, inputs, name) for part in parts]
        values = [_cast(x, kind, name) for x, kind in zip(values, kinds, strict=True)]
    except (TypeError, ValueError, OverflowError, CompileError) as error:
        raise as_numpys(ufunc, given, error, name) from None
    if len(values) > 1 and any(out is not None for out in outs):
        # Compute all before any is written: an output may be an input, too.
        values = [lazy_of(copy(x)) for x in values]
    mask = None if where is True else lazy_of(where)
    shape = np.broadcast_shapes(*[x.shape for x in values], () if mask is None else mask.shape)
    full = np.broadcast_shapes(shape, *[tuple(out.shape) for out in outs if out is not None])
    for out in outs:
        if out is not None and tuple(out.shape) != full:
            raise ValueError(f"{name}: out has shape {tuple(out.shape)}, the result has {full}")
    final = []
    for x, out in zip(values, outs, strict=True):
        x = _fit(x, mask, full, out, name)
        if out is not None:
            results.written_to(x, out)
        final.append(out if out is not None else x if place == LAZY else results.number_of(copy(x)))
    return final[0] if len(final) == 1 else tuple(final)


def _cast(x: Any, kind: Any, name: str) -> Any:
    return x if x.dtype == kind else ufuncs.cast(x, x.dtype, kind, name)


def _fit(x: Any, mask: Any, shape: tuple[int, ...], out: Any, name: str) -> Any:
    """Return a result in a shape and out's dtype; elements outside the mask keep out's values."""
    if out is not None:
        x = _cast(x, results.dtype_of(out, name), name)
    if x.shape != shape:
        x = x.broadcast_to(shape)
    if mask is None:
        return x
    return applied(_select, (mask, x, x.dtype.type(0) if out is None else out), name)
