"""init as arrays, one start for each row: read as inputs are, so that nothing waits for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import View, view_of
from gpualgo._base import dtypes, records
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import checks, elements, inputs
from gpualgo._pipeline.inputs import Views
from gpualgo._pipeline.problem import Array, Problem

Dtype = np.dtype[Any]
Forms = tuple[Form | None, ...]


def are_arrays(init: Any, where: str, *, one_is_value: bool) -> bool:
    """Return whether init holds arrays that are more than one value.

    `one_is_value`: so is an array of one element that is not NumPy's.
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


def taken(init: Any, where: str) -> tuple[Views, Any]:
    """Return the views of init's arrays, and init with their dtypes in their places."""
    found: list[View] = []

    def pattern(init: Any, path: str) -> Any:
        if isinstance(init, tuple):
            items = [pattern(item, f"{path}[{i}]") for i, item in enumerate(init)]
            make = getattr(type(init), "_make", tuple)
            return make(items)
        if isinstance(init, np.ndarray) and init.dtype.names is not None:
            found.extend(view_of(init[name], f"{path}[{name!r}]") for name in init.dtype.names)
            return init.dtype
        if isinstance(init, np.generic) or not (isinstance(init, np.ndarray) or _is_foreign(init)):
            raise TypeError(
                f"{path} is a {type(init).__name__} beside arrays; pass an array of one number "
                "for each row"
            )
        found.append(view_of(init, path))
        return found[-1].dtype

    known = pattern(init, f"{where}: init")
    return tuple(found), known


def size_of(pattern: Any) -> int:
    """Return how many arrays init holds."""
    if isinstance(pattern, tuple):
        return sum(map(size_of, pattern))
    return 1 if pattern.names is None else len(pattern.names)


def values(pattern: Any) -> Any:
    """Return a single start that is built as init is, of the same dtypes."""
    if isinstance(pattern, tuple):
        make = getattr(type(pattern), "_make", tuple)
        return make([values(item) for item in pattern])
    return np.zeros((), pattern)


def check(
    views: Views, like: View, shape: tuple[int, ...], acc: Dtype, form: Form | None, where: str,
) -> tuple[str, ...]:  # fmt: skip
    """Raise unless the arrays fit rows of this shape; return what they are called."""
    names = inputs.names(views, form, "init")
    for view, leaf, name in zip(views, records.leaves(acc), names, strict=True):
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


def again(arguments: Any, pattern: Any, where: str) -> Views | None:
    """Return the views of an init that is built as one before; None: it is built otherwise."""
    views, found = taken(arguments, where)
    is_alike = found == pattern and elements.classes_of(found) == elements.classes_of(pattern)
    return views if is_alike else None


class Started(Problem):
    """Of problems whose init is arrays, in front of their class: these stand behind the others."""

    has_starts = True
    spreads_tuples = False  # init's shape is another one

    def __init__(
        self, device: int, views: Views, op: Operator, init: Any, rest: tuple[Any, ...], where: str
    ) -> None:
        *own, self.pattern, _ = rest
        self.num_own = len(views) - size_of(self.pattern)
        of_x, first = views[: self.num_own], views[self.num_own :]
        super().__init__(device, of_x, op, values(self.pattern), tuple(own), where)
        self.rest = rest
        assert self.acc is not None
        names = check(first, views[0], self.starts_shape, self.acc, self.form, where)
        self.inputs = (*self.inputs, *names)
        if self.forms:
            self.forms = (*self.forms, None)

    @property
    def starts_shape(self) -> tuple[int, ...]:
        """Return the shape of init's arrays."""
        raise NotImplementedError

    def taken(self, arguments: Sequence[Any], where: str) -> tuple[Views, Forms] | None:
        found = self.taken_before(arguments[:-1], where)
        if found is None:
            return None
        first = again(arguments[-1], self.pattern, where)
        return None if first is None else ((*found[0], *first), (*found[1], None))

    def taken_before(self, arguments: Sequence[Any], where: str) -> tuple[Views, Forms] | None:
        """Return what `taken` does, of the arguments in front of init."""
        if len(arguments) != 1:
            return None
        try:
            views, form = inputs.spread(arguments[0], f"{self.where}: x")
        except ValueError:  # no shape is as prepared, which is told next
            return None
        return views, (form,)


def of_host(acc: Dtype, count: int, arrays: Sequence[Array]) -> Array:
    """Return so many starts without gaps, as the accumulator has them; room for one at least."""
    found = np.zeros(max(1, count), acc)
    fields = [found] if acc.names is None else [found[name] for name in acc.names]
    for field, array in zip(fields, arrays, strict=True):
        field[:count] = array
    return found


def of_records(acc: Dtype) -> Any:
    """Return an element as what joins two of them takes it: its numbers lie apart."""
    return records.Apart(acc) if records.is_record(acc) else acc
