"""Results as NumPy's callers expect them: written to ``out=``, cast as NumPy casts."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from gpualgo._algorithms.transform import transform
from gpualgo._algorithms.transform.copying import copy
from gpualgo._arrays.view import as_view, view_of
from gpualgo._base import dtypes, recording
from gpualgo._driver import staging
from gpualgo._driver.default_device import CPU
from gpualgo._lazy import is_lazy, ufuncs
from gpualgo._lazy.combining import led_by, zipped
from gpualgo._pipeline import checks
from gpualgo.lazy import full, reductions
from gpualgo.numpy._call.arguments import NotTaken

Dtype = np.dtype[Any]


def out_of(out: Any, where: str) -> Any:
    """Return ``out=`` as one array or None; ufuncs also accept a tuple of one."""
    if isinstance(out, tuple):
        if len(out) != 1:
            raise ValueError(f"{where}: out is a tuple of {len(out)} where one array is written")
        (out,) = out
    if out is not None and not hasattr(out, "dtype"):
        raise TypeError(f"{where}: out must be an array, got {type(out).__name__}")
    if isinstance(out, np.ndarray) and out.dtype.isnative and dtypes.name_of(out.dtype) is None:
        raise NotTaken(f"{where}: out has dtype {out.dtype}, which has no kernel")
    return out


def dtype_of(x: Any, where: str) -> Dtype:
    """Return the NumPy dtype of an array of any library."""
    return x.dtype if isinstance(x.dtype, np.dtype) else as_view(x, where).dtype


def check_cast(kind: Dtype, out: Any, where: str, casting: str = "same_kind") -> Dtype:
    """Return the dtype of ``out=``; raise TypeError if NumPy does not cast ``kind`` to it."""
    wanted = dtype_of(out, where)
    is_same = wanted == kind
    if is_same or casting == "unsafe":
        return wanted
    is_allowed = (
        dtypes.can_cast(kind, wanted)
        if casting == "same_kind"
        else np.can_cast(
            kind,
            wanted,
            casting,  # type: ignore[arg-type]
        )
    )
    if not is_allowed:
        raise TypeError(
            f"{where}: the result's dtype {kind} does not become out's dtype {wanted} by "
            f"{casting!r} casting; pass out of dtype {kind}"
        )
    return wanted


def warn_of_parts(own: Dtype, wanted: Dtype, stacklevel: int) -> None:
    """Warn as NumPy does if a cast from complex to real discards imaginary parts."""
    if own.kind == "c" and wanted.kind not in "cb":
        text = "Casting complex values to real discards the imaginary part"
        warnings.warn(text, np.exceptions.ComplexWarning, stacklevel)


def is_number(x: Any) -> bool:
    """Return whether a result is a NumPy scalar."""
    return isinstance(x, np.generic)


def finished(op: Callable[..., Any], found: tuple[Any, ...], kind: Dtype, out: Any = None) -> Any:
    """Return op of results, in a dtype; NumPy computes small results in host memory."""
    if not isinstance(found[0], (np.generic, np.ndarray)) or found[0].size > 1 << 16:
        return transform(op, *found, dtype=kind, out=out)
    with np.errstate(all="ignore"):
        value = np.asarray(op(*found)).astype(kind, copy=False)
    if out is None:
        return value[()]
    if out.shape != value.shape:
        raise ValueError(f"out has shape {out.shape}, the result has {value.shape}")
    out[...] = value
    return out


def new(x: Any, shape: tuple[int, ...], kind: Dtype, where: str = "an array") -> Any:
    """Return a new array in x's library and on its device."""
    if type(x) is np.ndarray:
        return np.empty(shape, kind)
    view = x.views[0] if is_lazy(x) else as_view(x, where)
    if view.device == CPU:
        return view.library.from_numpy(np.empty(shape, kind), view.owner)
    return view.library.empty(shape, kind, view.device, None)


def beside(x: Any, values: np.ndarray[Any, Any], where: str) -> Any:
    """Copy a host array to a new array in x's library and on its device; x is not lazy."""
    if recording.is_capturing():
        raise TypeError(
            f"{where}: a host array would be copied to the GPU, which a graph does not record; "
            "pass a GPU array"
        )
    copied = new(x, values.shape, values.dtype, where)
    target = as_view(copied, where)
    if target.device == CPU:
        target.library.to_numpy(copied)[...] = values
    else:
        stream = target.library.stream(target.device)
        staging.upload(np.array(values), target.library.pointer(copied), target.device, stream)
    return copied


def in_library_of(found: Any, x: Any, where: str) -> Any:
    """Return a result in the library of x, an argument of its shape."""
    if type(found) is type(x) or isinstance(found, np.generic):
        return found
    result, first = zipped(found, where), zipped(x, where)
    placed = led_by(result, first)
    return found if placed is result else copy(placed)


def axis_of(axis: Any, ndim: int, where: str) -> int:
    """Return a single axis as a non-negative number."""
    index = checks.axis_of(checks.plain_axis(axis, where, "an int"), ndim, where)
    if index is None:
        raise TypeError(f"{where}: axis must be an int, got None")
    return index


def summed(own: Dtype, dtype: Any, where: str) -> Dtype:
    """Return the dtype of sums, as NumPy defines it."""
    return reductions.sum_dtype(own) if dtype is None else dtypes.as_dtype(dtype, where)


def filled(out: Any, value: Any) -> None:
    """Write one number to all elements of an array."""
    if isinstance(out, np.ndarray):
        out[...] = value
        return
    view = view_of(out, "out")
    number = full(tuple(out.shape), value, dtype=view.dtype)
    copy(number, out=out)


def stored(x: Any, out: Any, where: str) -> Any:
    """Compute a lazy array: into a new array, or into one of its shape and any dtype."""
    if out is None:
        return copy(x)
    if tuple(out.shape) != x.shape:
        raise ValueError(f"{where}: out has shape {tuple(out.shape)}, the result has {x.shape}")
    kind = dtype_of(out, where)
    if x.dtype != kind:
        x = ufuncs.cast(x, x.dtype, kind, where)
    written_to(x, out)
    return out


def given_back(out: Any, made: Any) -> Any:
    """Copy a result to ``out=`` if it was computed in other memory, and return ``out=``."""
    if out is None or out is made:
        return made
    out[...] = made
    return out


def written_to(x: Any, out: Any) -> None:
    """Compute a lazy array into an array that it may read."""
    try:
        copy(x, out=out)
    except ValueError:  # it reads `out` at other indices, or `out` is read-only
        copy(copy(x), out=out)


def number_of(found: Any) -> Any:
    """Return 0-d arrays as numbers, as NumPy does."""
    if isinstance(found, tuple):
        return tuple(map(number_of, found))
    return found[()] if type(found) is np.ndarray and not found.ndim else found
