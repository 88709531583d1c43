"""Per-row initial values: init as arrays that are extra inputs, so that no call waits for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import View, view_of
from gpualgo._base import dtypes, records
from gpualgo._pipeline import checks, inputs
from gpualgo._pipeline.inputs import Views
from gpualgo._pipeline.problem import Array, Call, Problem

Dtype = np.dtype[Any]
Forms = tuple[Form | None, ...]


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


def parse_init(init: Any, where: str) -> tuple[Views, Any]:
    """Return the views of init's arrays, and init with each array replaced by its dtype."""
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

    dtypes_of_init = pattern(init, f"{where}: init")
    return tuple(views), dtypes_of_init


def size_of(pattern: Any) -> int:
    """Return the number of arrays in init."""
    if isinstance(pattern, tuple):
        return sum(map(size_of, pattern))
    return 1 if pattern.names is None else len(pattern.names)


def values(pattern: Any) -> Any:
    """Return a zero initial value with init's structure and dtypes."""
    if isinstance(pattern, tuple):
        make = getattr(type(pattern), "_make", tuple)
        return make([values(item) for item in pattern])
    return np.zeros((), pattern)


def check(
    views: Views, like: View, shape: tuple[int, ...], acc: Dtype, form: Form | None, where: str,
) -> tuple[str, ...]:  # fmt: skip
    """Raise unless init's arrays fit rows of this shape; return their names for messages."""
    names = inputs.names(views, form, "init")
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


def parse_init_alike(arguments: Any, pattern: Any, where: str) -> Views | None:
    """Return the views of init if it has the structure `pattern`, else None."""
    views, new = parse_init(arguments, where)
    is_alike = new == pattern and checks.classes_of(new) == checks.classes_of(pattern)
    return views if is_alike else None


class PerRowInit(Problem):
    """Mixin for problems whose init is arrays; place it before the problem's class."""

    has_row_init = True
    spreads_tuples = False  # init has its own shape

    def __init__(self, call: Call) -> None:
        views, params, where = call.views, call.params, call.where
        *other_params, self.pattern, _ = params
        self.num_own = len(views) - size_of(self.pattern)
        x_views, init_views = views[: self.num_own], views[self.num_own :]
        super().__init__(
            call._replace(views=x_views, init=values(self.pattern), params=tuple(other_params))
        )
        self.params = params
        assert self.acc is not None
        names = check(init_views, views[0], self.init_shape, self.acc, self.form, where)
        self.inputs = (*self.inputs, *names)
        if self.forms:
            self.forms = (*self.forms, None)

    @property
    def init_shape(self) -> tuple[int, ...]:
        """Return the shape of init's arrays."""
        raise NotImplementedError

    def parse_arrays(self, arguments: Sequence[Any], where: str) -> tuple[Views, Forms] | None:
        parsed = self.parse_before_init(arguments[:-1], where)
        if parsed is None:
            return None
        init_views = parse_init_alike(arguments[-1], self.pattern, where)
        return None if init_views is None else ((*parsed[0], *init_views), (*parsed[1], None))

    def parse_before_init(self, arguments: Sequence[Any], where: str) -> tuple[Views, Forms] | None:
        """Return what `parse_arrays` does for the arguments before init."""
        if len(arguments) != 1:
            return None
        try:
            views, form = inputs.spread(arguments[0], f"{self.where}: x")
        except ValueError:  # the caller reports shapes that do not fit
            return None
        return views, (form,)


def host_values(acc: Dtype, count: int, arrays: Sequence[Array]) -> Array:
    """Return initial values as a contiguous array of the accumulator's dtype, never empty."""
    starts = np.zeros(max(1, count), acc)
    fields = [starts] if acc.names is None else [starts[name] for name in acc.names]
    for field, array in zip(fields, arrays, strict=True):
        field[:count] = array
    return starts


def join_dtype(acc: Dtype) -> Any:
    """Return acc as an operator's argument type; the fields of a record are stored apart."""
    return records.Separate(acc) if records.is_record(acc) else acc
