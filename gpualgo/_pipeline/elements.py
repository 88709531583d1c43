"""Checks of dtype=, init and identities for elements that are tuples, field by field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import View
from gpualgo._base import dtypes, records
from gpualgo._operators.operator import Operator, check_dtype
from gpualgo._pipeline import checks

Dtype = np.dtype[Any]


def element_of(views: Sequence[View], form: Form | None) -> Dtype:
    """Return the dtype of one element of arrays that form tuples."""
    if form is None:
        return views[0].dtype
    return records.record(form.names, [view.dtype for view in views])


def accumulator(
    views: Sequence[View], form: Form | None, init: Any, dtype: Any, where: str
) -> Dtype:
    """Return the accumulator's dtype; each field follows `checks.accumulator`."""
    if form is None:
        return checks.accumulator(views[0], init, dtype, where)
    dtypes_given = dtypes_of(dtype, form.names, where)
    inits = (None,) * len(views) if init is None else numbers_of(init, form.names, where, "init")
    field_dtypes = [
        checks.accumulator(view, field_init, field_dtype, where)
        for view, field_init, field_dtype in zip(views, inits, dtypes_given, strict=True)
    ]
    return records.record(form.names, field_dtypes)


def check_operator(op: Operator, dtype: Dtype, where: str) -> None:
    """Raise TypeError if a recognised operator is not defined on elements of a dtype."""
    if dtype.names is None:
        check_dtype(op, dtype, where)
    elif op.name is not None:
        raise TypeError(
            f"{where}: op {op.name} takes numbers, and x has elements {records.shown(dtype)}; "
            "pass a function of tuples such as lambda a, b: (a[0] + b[0], max(a[1], b[1]))"
        )


def dtypes_of(dtype: Any, names: Sequence[str], where: str) -> tuple[Any, ...]:
    """Return each field's dtype from dtype=: one for all, or a tuple structured like an element."""
    if isinstance(dtype, np.dtype) and dtype.names is not None:
        if len(dtype.names) != len(names):
            raise TypeError(
                f"{where}: out (or dtype) is for tuples of {', '.join(dtype.names)}, but elements "
                f"are tuples of {', '.join(names)}; pass as many"
            )
        return tuple(dtype[name] for name in dtype.names)
    if not isinstance(dtype, tuple):
        return (dtype,) * len(names)
    return numbers_of(dtype, names, where, "dtype")


def numbers_of(value: Any, names: Sequence[str], where: str, what: str) -> tuple[Any, ...]:
    """Return the scalars of a nested tuple that has the structure of an element, flattened."""

    def flatten(value: Any, shape: Any) -> list[Any]:
        if shape is None:
            return [value]
        fields, items = shape
        if isinstance(value, (np.void, np.ndarray)) and value.dtype.names is not None:
            value = _Fields(value.dtype.names, tuple(value[name] for name in value.dtype.names))
        own = getattr(value, "_fields", None)
        is_alike = isinstance(value, tuple) and len(value) == len(items)
        if not is_alike or (own is not None and fields is not None and own != fields):
            checks.no_function(value, where, what)
            shown = type(value).__name__ if not isinstance(value, tuple) else repr(value)
            raise TypeError(
                f"{where}: {what} must be a tuple like the elements, with "
                f"{', '.join(f'{what}[{name}]' for name in names)}; got {shown}"
            )
        scalars: list[Any] = []
        for item, inner in zip(value, items, strict=True):
            scalars += flatten(item, inner)
        return scalars

    shape = records.nest_fields(names, [None] * len(names), records.fields_of)
    return tuple(flatten(value, shape))


class _Fields(tuple[Any, ...]):
    """The values of a structured scalar as a named tuple."""

    _fields: tuple[str, ...]

    def __new__(cls, fields: tuple[str, ...], values: tuple[Any, ...]) -> _Fields:
        self = super().__new__(cls, values)
        self._fields = fields
        return self


def encoded(value: Any, acc: Dtype, where: str, what: str = "init") -> np.ndarray[Any, Any]:
    """Return an init or identity as a 0-d array of dtype acc."""
    if acc.names is None:
        return checks.init_value(value, acc, where, what)
    record = np.zeros((), acc)
    numbers = numbers_of(value, acc.names, where, what)
    for name, number in zip(acc.names, numbers, strict=True):
        record[name] = checks.init_value(number, acc[name], where, what)
    return record


def kinds_of(init: Any) -> Any:
    """Return what init contributes to the accumulator: dtypes of NumPy scalars, types of others."""
    if isinstance(init, tuple):
        return (type(init), *map(kinds_of, init))
    return checks.dtype_of(init)


def classes_of(dtype: Any) -> Any:
    """Return the tuple classes in dtype=: tuples that compare equal may have different fields."""
    return (type(dtype), *map(classes_of, dtype)) if isinstance(dtype, tuple) else None


def requested_dtype(found: Dtype, dtype: Any, where: str) -> Dtype:
    """Return the dtype that dtype= requests for results of op; `found` is the dtype op returns."""
    if found.names is None:
        raise TypeError(
            f"{where}: out (or dtype) is a tuple, but op returns a number; pass a single one"
        )
    pairs = zip(dtypes_of(dtype, found.names, where), records.field_dtypes(found), strict=True)
    result: Dtype = records.with_leaves(
        found,
        [actual if wanted is None else dtypes.as_dtype(wanted, where) for wanted, actual in pairs],
    )
    return result
