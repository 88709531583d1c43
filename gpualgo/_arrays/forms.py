"""Tuples of arrays: their flattening into arrays, and packing results into the same structure."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpualgo._base import dtypes, records

Leaf: TypeAlias = tuple[Any, str]  # an array, and its name in messages


class Form(NamedTuple):
    """The structure of a tuple: its class and its items, None for items that are arrays.

    For a NumPy structured array, the class is its dtype.
    """

    cls: Any
    items: tuple[Form | None, ...]
    traits: Any = None  # what `==` of dtypes ignores: the scalars' type, and alignment

    @property
    def keys(self) -> tuple[str, ...]:
        """The names or indices of the items, for paths."""
        if isinstance(self.cls, np.dtype):
            return tuple(self.cls.names or ())
        return tuple(getattr(self.cls, "_fields", None) or map(str, range(len(self.items))))

    @property
    def names(self) -> tuple[str, ...]:
        """The paths of all scalars of an element."""
        paths: list[str] = []
        for key, item in zip(self.keys, self.items, strict=True):
            paths += [key] if item is None else [f"{key}.{name}" for name in item.names]
        return tuple(paths)

    @property
    def subscripts(self) -> tuple[str, ...]:
        """The Python index expressions of all arrays of a tuple, such as [0][1]."""
        expressions: list[str] = []
        for i, item in enumerate(self.items):
            part = f"[{self.keys[i]!r}]" if isinstance(self.cls, np.dtype) else f"[{i}]"
            expressions += [part] if item is None else [part + inner for inner in item.subscripts]
        return tuple(expressions)

    def packed(self, arrays: Iterable[Any]) -> Any:
        """Return a tuple of this form, filled with one array per scalar of an element."""
        source = iter(arrays)  # items that are tuples take theirs from it
        items = [next(source) if item is None else item.packed(source) for item in self.items]
        if isinstance(self.cls, np.dtype):
            return _structured(self.cls, items)
        return tuple(items) if self.cls is tuple else self.cls._make(items)


def form_of(names: Sequence[str], classes: Sequence[Form | None] = ()) -> Form:
    """Return the form of an element with scalars at these paths.

    Named tuple classes are taken from `classes` if their fields match.
    """
    classes_by_keys: dict[Any, Any] = {}
    for form in classes:
        for part in (form, *(() if form is None else form.items)):
            if part is not None:
                classes_by_keys.setdefault(part.keys, part.cls)

    def make(cls: Any, items: list[Any]) -> Form:
        fields = getattr(cls, "_fields", None)
        return Form(cls if fields is None else classes_by_keys.get(fields, cls), tuple(items))

    result: Form = records.nest_fields(names, [None] * len(names), make)
    return result


def structure_of(form: Form, kinds: Sequence[np.dtype[Any]]) -> np.dtype[Any] | None:
    """Return the structured dtype of a form with fields of these dtypes; None for a tuple's."""
    return _structure(form.cls, kinds) if isinstance(form.cls, np.dtype) else None


def _structure(dtype: np.dtype[Any], kinds: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """Return a structured dtype with fields of these dtypes, which do not overlap.

    It is `dtype` itself if that is one.
    """
    assert dtype.names is not None
    extents = sorted((offset, kind.itemsize) for kind, offset, *_ in (dtype.fields or {}).values())
    is_apart = all(begin + size <= after for (begin, size), (after, _) in pairwise(extents))
    if is_apart and list(kinds) == [dtype[name] for name in dtype.names]:
        return dtype
    return np.dtype(list(zip(dtype.names, kinds, strict=True)), align=dtype.isalignedstruct)


def _structured(dtype: np.dtype[Any], items: Sequence[Any]) -> Any:
    """Return a structured array of arrays, or a structured scalar of scalars."""
    dtype = _structure(dtype, [np.asarray(item).dtype for item in items])
    result = np.empty(np.shape(items[0]), dtype)
    for name, item in zip(dtype.names or (), items, strict=True):
        result[name] = item
    return result if isinstance(items[0], np.ndarray) else result[()]


def is_tuple(x: Any) -> bool:
    return isinstance(x, tuple) or (isinstance(x, np.ndarray) and x.dtype.names is not None)


def flatten_tuple(x: Any, where: str, has_names: bool = True) -> tuple[list[Leaf], Form]:
    """Return the arrays of a tuple or structured array, and its form.

    `has_names`: field names must be identifiers, as an operator accesses fields by name.
    """
    leaves: list[Leaf] = []
    form = _flatten(x, where, leaves, 0, has_names)
    if len(leaves) > records.MAX_FIELDS:
        raise TypeError(
            f"{where} has elements of {len(leaves)} numbers, at most {records.MAX_FIELDS} are "
            "possible"
        )
    return leaves, form


def _flatten(x: Any, where: str, leaves: list[Leaf], depth: int, has_names: bool) -> Form:
    if depth > 1:
        raise TypeError(
            f"{where} is a tuple that is nested too deeply; one level of nesting is possible"
        )
    if isinstance(x, np.ndarray):
        leaves += [(x[name], f"{where}[{name!r}]") for name in x.dtype.names or ()]
        return _form_of(x.dtype, (x.dtype.isalignedstruct, x.dtype.type), where, has_names)
    if not x:
        raise TypeError(f"{where} is an empty tuple; pass at least one array in it")
    fields = getattr(x, "_fields", None)
    items: list[Form | None] = []
    for i, item in enumerate(x):
        name = f"{where}[{i}]" if fields is None else f"{where}.{fields[i]}"
        if is_tuple(item):
            items.append(_flatten(item, name, leaves, depth + 1, has_names))
        else:
            leaves.append((item, name))
            items.append(None)
    return Form(tuple if fields is None else type(x), tuple(items))


@lru_cache(1 << 10)
def _form_of(dtype: np.dtype[Any], traits: tuple[bool, type], where: str, has_names: bool) -> Form:
    for name in dtype.names or ():
        field = dtype[name]
        if field.subdtype is not None or field.names is not None:
            kind = "arrays" if field.subdtype is not None else "structures"
            raise TypeError(
                f"{where}: field {name!r} of dtype {dtype} holds {kind}, and elements are "
                f"numbers; pass a tuple of arrays such as (x['a'], x['b'])"
            )
        is_name = name.isidentifier() and not keyword.iskeyword(name) and name[0] != "_"
        if has_names and not is_name:
            raise TypeError(
                f"{where}: field {name!r} of dtype {dtype} is not a name that an operator can "
                "use; rename it, or pass a tuple of arrays"
            )
    if not dtype.names:
        raise TypeError(f"{where} has dtype {dtype}, which has no fields")
    is_aligned, scalar = traits
    kept = dtypes.as_named(dtype, align=is_aligned)
    kept = kept if scalar is np.void else np.dtype((scalar, kept))
    return Form(kept, (None,) * len(dtype.names), traits)


def parts_of(x: Any, form: Form) -> list[Any] | None:
    """Return the items of x for each scalar of a form; None if x has another structure."""
    keys: tuple[str, ...] | None = None
    dtype: Any = x if isinstance(x, np.dtype) else getattr(x, "dtype", None)
    if isinstance(x, (np.ndarray, np.void, np.dtype)) and dtype.names is not None:
        keys, items = dtype.names, [x[name] for name in dtype.names]
    elif isinstance(x, tuple):
        keys, items = getattr(x, "_fields", None), list(x)
    else:
        return None
    if len(items) != len(form.items) or (
        keys is not None and form.cls is not tuple and keys != form.keys
    ):
        return None
    parts: list[Any] = []
    for item, part in zip(items, form.items, strict=True):
        if part is not None:
            inner = parts_of(item, part)
            if inner is None:
                return None
            parts += inner
        else:
            parts.append(item)
    return parts
