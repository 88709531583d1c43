"""What the key of an operator was made from, so that the next call need not make it anew."""

from __future__ import annotations

import types
from typing import Any

from gpualgo._arrays.view import View
from gpualgo._operators import captured
from gpualgo._operators.content import Key

MISSING = object()
_ARRAY = object()  # in place of an array, which nothing here keeps alive
UNREACHED = (
    "op reaches an array through a tuple or a default value; capture the array itself, as a "
    "variable outside of op"
)


def is_full(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


class Guard:
    """What a key was made from, by identity: while all of it stands, so does the key."""

    __slots__ = ("cells", "defaults", "found_at", "functions", "globals", "inner_cells",
                 "is_stable", "key", "kwdefaults", "may_capture", "values", "views")  # fmt: skip

    def __init__(self, fn: types.FunctionType) -> None:
        self.globals, self.defaults, self.kwdefaults = fn.__globals__, fn.__defaults__, None
        contents = [cell.cell_contents for cell in fn.__closure__ or () if is_full(cell)]
        self.cells = [_ARRAY if captured.is_array(value) else value for value in contents]
        self.views: list[View] = []  # of the arrays, in order; given away when all are found
        self.found_at: list[tuple[Any, Any, type, Any]] = []  # each array
        self.may_capture = True
        self.values: list[tuple[dict[str, Any], str, Any]] = []
        self.inner_cells: list[tuple[types.CellType, Any]] = []
        self.functions: list[tuple[types.FunctionType, types.CodeType, Any]] = []
        full = len(self.cells) == len(fn.__closure__ or ())
        self.is_stable = full and fn.__kwdefaults__ is None
        self.key: Key  # once all is read

    def read(self, namespace: dict[str, Any], name: str) -> Any:
        """Look a name up and remember what it gave, if that is no array."""
        value = namespace.get(name, MISSING)
        if not captured.is_array(value):
            self.values.append((namespace, name, value))
        return value

    def capture(self, array: Any, names: Any, name: Any, depth: int) -> Any:
        """Return the token of an array: names[name], or the closure's cell of that number."""
        if not self.may_capture:
            raise TypeError(UNREACHED)
        view = captured.view_of(array)
        token = captured.token_of(view)
        self.views.append(view)
        self.found_at.append((names, name, type(array), token))
        self.is_stable &= depth == 1
        return token

    def recapture(self, fn: types.FunctionType) -> tuple[View, ...] | None:
        """Return the arrays that fn captures now, None if one is of another layout."""
        found = []
        for names, name, kind, token in self.found_at:
            cells = fn.__closure__ or ()
            value = cells[name].cell_contents if names is None else names.get(name)
            if type(value) is not kind and not captured.is_array(value):
                return None
            view = captured.view_of(value)
            if captured.token_of(view) != token:
                return None
            found.append(view)
        return tuple(found)

    def holds(self, fn: types.FunctionType) -> bool:
        """Return whether fn, of the same code, still reads the very same objects."""
        if fn.__globals__ is not self.globals or fn.__defaults__ is not self.defaults:
            return False
        closure = fn.__closure__
        if closure is not None:
            for cell, value in zip(closure, self.cells, strict=True):
                if not is_full(cell) or (cell.cell_contents is not value and value is not _ARRAY):
                    return False
        for namespace, name, value in self.values:
            if namespace.get(name, MISSING) is not value:
                return False
        for inner, code, defaults in self.functions:
            if inner.__code__ is not code or inner.__defaults__ is not defaults:
                return False
        return all(is_full(c) and c.cell_contents is v for c, v in self.inner_cells)
