"""Dtypes of operators' results, and checks of results against a requested dtype."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import types

from gpualgo._base import dtypes, records
from gpualgo._operators.numbers import ConstantNeeded
from gpualgo._operators.numpy_rules import refusal
from gpualgo._operators.numpy_rules.errors import source_of
from gpualgo._operators.numpy_rules.types import Weak, described, native, scalar_name
from gpualgo._operators.numpy_rules.weak import is_within


def result_of(fn: Any, returned: types.Type, wanted: np.dtype[Any] | None) -> np.dtype[Any]:
    """Return the dtype of op's result; raise TypeError if it is invalid or does not fit."""
    if isinstance(returned, types.BaseTuple):
        return _record_of(fn, returned, wanted)
    if wanted is not None and wanted.names is not None:
        raise TypeError(
            f"op returns {described(returned)}, but must return a tuple like "
            f"{records.shown(wanted)}: {source_of(fn)}"
        )
    return _number_of(fn, returned, wanted, "")


def _record_of(fn: Any, returned: types.BaseTuple, wanted: np.dtype[Any] | None) -> np.dtype[Any]:
    names, item_types = zip(*_paths_of(fn, returned, ""), strict=True)
    if wanted is not None and wanted.names is None:
        raise records.ReturnsTuple(
            f"op returns a tuple of {len(returned)}, but must return a number like {wanted}: "
            f"{source_of(fn)}"
        )
    if wanted is not None and not _is_alike(names, wanted.names or ()):
        raise TypeError(
            f"op returns a tuple with items {', '.join(names)}, but must return a tuple like "
            f"{records.shown(wanted)}: {source_of(fn)}"
        )
    if len(names) > records.MAX_FIELDS:
        raise TypeError(
            f"op returns a tuple of {len(names)} numbers, at most {records.MAX_FIELDS} are "
            f"possible: {source_of(fn)}"
        )
    fields = [None] * len(names) if wanted is None else records.leaves(wanted)
    item_dtypes = [
        _number_of(fn, ty, field, f" in item {name}")
        for name, ty, field in zip(names, item_types, fields, strict=True)
    ]
    return records.record(names, item_dtypes) if wanted is None else wanted


def _is_alike(names: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """Return whether tuples have the same structure; plain tuples match namedtuples by position."""

    def agree(a: Any, b: Any) -> bool:
        if a is None or b is None:
            return a is b
        (fields, items), (others, expected) = a, b
        is_named = fields is not None and others is not None
        if len(items) != len(expected) or (is_named and fields != others):
            return False
        return all(map(agree, items, expected))

    return agree(*(records.built(n, [None] * len(n), records.fields_of) for n in (names, wanted)))


def _paths_of(fn: Any, ty: types.BaseTuple, path: str) -> Iterator[tuple[str, types.Type]]:
    """Yield the paths and types of a tuple's numbers."""
    fields = getattr(ty, "fields", None) or tuple(map(str, range(len(ty))))
    if not fields:
        raise TypeError(f"op returns an empty tuple; return a number or several: {source_of(fn)}")
    for name, item in zip(fields, ty, strict=True):
        if not isinstance(item, types.BaseTuple):
            yield path + name, item
        elif path:
            raise TypeError(
                f"op returns tuples that are nested too deeply; one level of nesting is possible: "
                f"{source_of(fn)}"
            )
        else:
            yield from _paths_of(fn, item, f"{name}.")


def _number_of(
    fn: Any, returned: types.Type, wanted: np.dtype[Any] | None, item: str
) -> np.dtype[Any]:
    name = scalar_name(returned)
    if isinstance(returned, types.Optional):
        raise TypeError(
            f"op returns None{item} on some path, and {described(returned.type)} on another; "
            f"return a scalar on each: {source_of(fn)}"
        )
    if name is None:
        raise TypeError(
            f"op returns {described(returned)}{item}, which is not a number; return a scalar: "
            f"{source_of(fn)}"
        )
    inferred = (
        np.dtype(scalar_name(native(returned)))
        if isinstance(returned, Weak)
        else dtypes.from_name(name)
    )
    if wanted is None:
        if isinstance(returned, Weak) and returned.kind == "int":
            _check_values(returned, inferred, fn)
        return inferred
    weak_fits = isinstance(returned, Weak) and _weak_fits(returned, wanted, fn)
    if not weak_fits and not dtypes.can_cast(inferred, wanted):
        raise TypeError(
            f"op returns {inferred}{item}, which does not fit {wanted}; pass dtype=np.{inferred} "
            f"or convert inside op: {source_of(fn)}"
        )
    return wanted


def _weak_fits(returned: Weak, wanted: np.dtype[Any], fn: Any) -> bool:
    ranks = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
    kind = dtypes.kind(wanted)
    if kind in "ui":
        _check_values(returned, wanted, fn)
    return {"int": 1, "float": 2, "complex": 3}[returned.kind] <= ranks[kind]


def _check_values(returned: Weak, wanted: np.dtype[Any], fn: Any) -> None:
    limits = np.iinfo(wanted)
    if returned.kind == "int" and returned.data and not is_within(returned, limits.min, limits.max):
        raise ConstantNeeded("op returns a number that may not fit", returned.data)
    for value in returned.values or ():
        if returned.kind == "int" and not limits.min <= value <= limits.max:
            raise TypeError(
                f"op returns the Python integer {refusal.shown(value)}, which does not fit "
                f"{wanted}; pass another dtype= or return a float: {source_of(fn)}"
            )
