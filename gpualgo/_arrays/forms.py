"""Tuples of arrays: the arrays that they hold, and how others are put together like them."""

from __future__ import annotations

import keyword
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpualgo._base import records

Leaf: TypeAlias = tuple[Any, str]  # an array, and what it is called in a message


class Form(NamedTuple):
    """How a tuple is built: of which class, and of what items, None for one that is no tuple.

    A NumPy structured array is one whose class is its dtype.
    """

    cls: Any
    items: tuple[Form | None, ...]
    is_aligned: bool = False  # a dtype, which is equal to one that is not and has the same offsets

    @property
    def keys(self) -> tuple[str, ...]:
        """What the items are called in a path."""
        if isinstance(self.cls, np.dtype):
            return tuple(self.cls.names or ())
        return tuple(getattr(self.cls, "_fields", None) or map(str, range(len(self.items))))

    @property
    def names(self) -> tuple[str, ...]:
        """The paths of the numbers of an element."""
        found: list[str] = []
        for key, item in zip(self.keys, self.items, strict=True):
            found += [key] if item is None else [f"{key}.{name}" for name in item.names]
        return tuple(found)

    @property
    def places(self) -> tuple[str, ...]:
        """How the arrays of a tuple are got at, in Python."""
        found: list[str] = []
        for i, item in enumerate(self.items):
            place = f"[{self.keys[i]!r}]" if isinstance(self.cls, np.dtype) else f"[{i}]"
            found += [place] if item is None else [place + inner for inner in item.places]
        return tuple(found)

    def packed(self, arrays: Sequence[Any]) -> Any:
        """Return a tuple of this form of as many arrays as an element has numbers."""
        rest = iter(arrays)
        return self._packed(rest)

    def _packed(self, rest: Iterator[Any]) -> Any:
        items = [next(rest) if item is None else item._packed(rest) for item in self.items]
        if isinstance(self.cls, np.dtype):
            return _structured(self.cls, items)
        return tuple(items) if self.cls is tuple else self.cls._make(items)


def form_of(names: Sequence[str], classes: Sequence[Form | None] = ()) -> Form:
    """Return the form of an element of numbers of these paths.

    Of the forms at hand those are taken that have the same fields: an operator knows no others.
    """
    known: dict[Any, Any] = {}
    for form in classes:
        for part in (form, *(() if form is None else form.items)):
            if part is not None:
                known.setdefault(part.keys, part.cls)

    def made(cls: Any, items: list[Any]) -> Form:
        fields = getattr(cls, "_fields", None)
        return Form(cls if fields is None else known.get(fields, cls), tuple(items))

    found: Form = records.built(names, [None] * len(names), made)
    return found


def structure_of(form: Form, kinds: Sequence[np.dtype[Any]]) -> np.dtype[Any] | None:
    """Return the structured dtype of a form with fields of these kinds.

    None: the form is a tuple's, or fields share bytes, so that the order of writing decides.
    """
    if not isinstance(form.cls, np.dtype):
        return None
    made = _structure(form.cls, kinds)
    places = sorted((offset, kind.itemsize) for kind, offset, *_ in (made.fields or {}).values())
    is_apart = all(at + size <= after for (at, size), (after, _) in pairwise(places))
    return made if is_apart else None


def _structure(dtype: np.dtype[Any], kinds: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """Return a structured dtype with fields of these kinds: itself, if it has them."""
    assert dtype.names is not None
    if list(kinds) == [dtype[name] for name in dtype.names]:
        return dtype
    return np.dtype(list(zip(dtype.names, kinds, strict=True)), align=dtype.isalignedstruct)


def _structured(dtype: np.dtype[Any], items: Sequence[Any]) -> Any:
    """Return a structured array of arrays, or a structured scalar of scalars."""
    dtype = _structure(dtype, [np.asarray(item).dtype for item in items])
    whole = np.empty(np.shape(items[0]), dtype)
    for name, item in zip(dtype.names or (), items, strict=True):
        whole[name] = item
    return whole if isinstance(items[0], np.ndarray) else whole[()]


def is_tuple(x: Any) -> bool:
    """Return whether x stands for elements of several numbers."""
    return isinstance(x, tuple) or (isinstance(x, np.ndarray) and x.dtype.names is not None)


def taken_apart(x: Any, where: str, has_names: bool = True) -> tuple[list[Leaf], Form]:
    """Return the arrays of a tuple or structured array, and how it is built.

    `has_names`: an operator knows its fields by their names, which have to be such.
    """
    leaves: list[Leaf] = []
    form = _taken(x, where, leaves, 0, has_names)
    if len(leaves) > records.MAX_FIELDS:
        raise TypeError(
            f"{where} has elements of {len(leaves)} numbers, at most {records.MAX_FIELDS} are "
            "possible"
        )
    return leaves, form


def _taken(x: Any, where: str, leaves: list[Leaf], depth: int, has_names: bool) -> Form:
    if depth > 1:
        raise TypeError(f"{where} is a tuple within a tuple within one; one level is possible")
    if isinstance(x, np.ndarray):
        return _fields_of(x, where, leaves, has_names)
    if not x:
        raise TypeError(f"{where} is an empty tuple; pass at least one array in it")
    fields = getattr(x, "_fields", None)
    items: list[Form | None] = []
    for i, item in enumerate(x):
        name = f"{where}[{i}]" if fields is None else f"{where}.{fields[i]}"
        if is_tuple(item):
            items.append(_taken(item, name, leaves, depth + 1, has_names))
        else:
            leaves.append((item, name))
            items.append(None)
    return Form(tuple if fields is None else type(x), tuple(items))


def _fields_of(x: Any, where: str, leaves: list[Leaf], has_names: bool) -> Form:
    for name in x.dtype.names:
        field = x.dtype[name]
        if field.subdtype is not None or field.names is not None:
            kind = "arrays" if field.subdtype is not None else "structures"
            raise TypeError(
                f"{where}: field {name!r} of dtype {x.dtype} holds {kind}, and elements are "
                f"numbers; pass a tuple of arrays such as (x['a'], x['b'])"
            )
        is_name = name.isidentifier() and not keyword.iskeyword(name) and name[0] != "_"
        if has_names and not is_name:
            raise TypeError(
                f"{where}: field {name!r} of dtype {x.dtype} is no name that an operator could "
                "use; rename it, or pass a tuple of arrays"
            )
        leaves.append((x[name], f"{where}[{name!r}]"))
    if not leaves:
        raise TypeError(f"{where} has dtype {x.dtype}, which has no fields")
    return Form(x.dtype, (None,) * len(x.dtype.names), x.dtype.isalignedstruct)


def parts_of(x: Any, form: Form) -> list[Any] | None:
    """Return what x holds in the places of a form's numbers; None if it is built otherwise."""
    keys: tuple[str, ...] | None = None
    if isinstance(x, np.ndarray) and x.dtype.names is not None:
        keys, items = x.dtype.names, [x[name] for name in x.dtype.names]
    elif isinstance(x, tuple):
        keys, items = getattr(x, "_fields", None), list(x)
    else:
        return None
    if len(items) != len(form.items) or (
        keys is not None and form.cls is not tuple and keys != form.keys
    ):
        return None
    found: list[Any] = []
    for item, part in zip(items, form.items, strict=True):
        if part is not None:
            inner = parts_of(item, part)
            if inner is None:
                return None
            found += inner
        else:
            found.append(item)
    return found
