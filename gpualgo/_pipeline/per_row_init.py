"""Per-row initial values: init as arrays that are extra inputs, so that no call waits for them.

An algorithm's problem is made as for one initial value, and gets the arrays of init as its last
inputs. Its class gives the rows' shape (`row_shape`), its planners apply the arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import View, view_of
from gpualgo._base import dtypes, records
from gpualgo._pipeline import checks
from gpualgo._pipeline.checks import RowInit

Array = np.ndarray[Any, Any]
Dtype = np.dtype[Any]
Views = tuple[View, ...]


def are_arrays(init: Any, where: str, *, one_is_value: bool) -> bool:
    """Return whether init holds arrays of more than one value.

    `one_is_value`: arrays of one element that are not NumPy's count as one value.
    """
    if isinstance(init, tuple):
        return any(are_arrays(item, where, one_is_value=one_is_value) for item in init)
    if isinstance(init, np.ndarray):
        return init.size != 1
    if isinstance(init, np.generic) or not _is_foreign(init):
        return False
    view = view_of(init, f"{where}: init")
    return len(view.shape) > 0 and not (one_is_value and set(view.shape) == {1})


def _is_foreign(init: Any) -> bool:
    return hasattr(init, "__cuda_array_interface__") or hasattr(init, "__dlpack__")


def parse(
    init: Any, views: Views, params: tuple[Any, ...], where: str, *, one_is_value: bool = False
) -> tuple[Any, Views, tuple[Any, ...]]:
    """Return init, the inputs and params; arrays of init are moved to the others."""
    if not are_arrays(init, where, one_is_value=one_is_value):
        return init, views, params
    init_views, row_init = parse_arrays(init, where)
    return None, (*views, *init_views), (*params, row_init)


def parse_arrays(init: Any, where: str) -> tuple[Views, RowInit]:
    """Return the views of init's arrays, and their structure and dtypes."""
    views: list[View] = []

    def pattern(init: Any, path: str) -> Any:
        if isinstance(init, tuple):
            items = [pattern(item, f"{path}[{i}]") for i, item in enumerate(init)]
            make = getattr(type(init), "_make", tuple)
            return make(items)
        if isinstance(init, np.ndarray) and init.dtype.names is not None:
            views.extend(view_of(init[name], f"{path}[{name!r}]") for name in init.dtype.names)
            return init.dtype
        if isinstance(init, np.generic) or not (isinstance(init, np.ndarray) or _is_foreign(init)):
            raise TypeError(
                f"{path} is a {type(init).__name__} next to arrays; pass an array of one number "
                "for each row"
            )
        views.append(view_of(init, path))
        return views[-1].dtype

    found = pattern(init, f"{where}: init")
    return tuple(views), RowInit(found, checks.classes_of(found), len(views))


def zeros(pattern: Any) -> Any:
    """Return a zero initial value with init's structure and dtypes."""
    if isinstance(pattern, tuple):
        make = getattr(type(pattern), "_make", tuple)
        return make([zeros(item) for item in pattern])
    return np.zeros((), pattern)


def check(
    views: Views, like: View, shape: tuple[int, ...], acc: Dtype, form: Form | None, where: str
) -> tuple[str, ...]:
    """Raise unless init's arrays fit rows of this shape; return their names for messages."""
    names = ("init",) if form is None else tuple(f"init[{path}]" for path in form.names)
    for view, leaf, name in zip(views, records.field_dtypes(acc), names, strict=True):
        dtypes.check(view.dtype, f"{where}: {name}")
        checks.dimensions(view, name, where)
        if not shape and set(view.shape) == {1}:
            raise TypeError(
                f"{where}: {name} is an array of one element; pass a Python or NumPy scalar"
            )
        if view.shape != shape and not shape:
            raise ValueError(f"{where}: {name} must be one value, got shape {view.shape}; pass one")
        if view.shape != shape:
            raise ValueError(
                f"{where}: {name} must be one value, or one for each row in shape {shape}, got "
                f"shape {view.shape}; reshape it"
            )
        if view.dtype != leaf:
            raise TypeError(
                f"{where}: {name} has dtype {view.dtype}, the accumulator {leaf}; convert it first"
            )
    checks.same_place([like, *views], where)
    return names


def host_values(acc: Dtype, count: int, arrays: Sequence[Array]) -> Array:
    """Return initial values as a contiguous array of the accumulator's dtype, never empty."""
    starts = np.zeros(max(1, count), acc)
    fields = [starts] if acc.names is None else [starts[name] for name in acc.names]
    for field, array in zip(fields, arrays, strict=True):
        field[:count] = array
    return starts
