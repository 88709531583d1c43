"""Calls that are refused, and some that are not: `refused.txt` lists what each comes to."""

from __future__ import annotations

import math
import operator
import re
import warnings
from collections import namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tables
from pieces import leaves
from support import Backend, a_few, assert_same

import gpualgo as ga
from gpualgo.numpy import _call

TABLE = Path(__file__).with_name("refused.txt")


@dataclass(frozen=True)
class Row:
    """A call of a function, as Python, and what it is to come to."""

    function: str
    only: str  # "cpu" or "cuda"; of both if it is empty
    call: str
    wanted: str

    def __str__(self) -> str:
        return f"{self.function}: {self.call} => {self.wanted}"


def rows() -> Iterator[Row]:
    for words, text in tables.lines(TABLE, ".* => "):
        only = "".join(word[1:] for word in words if word[0] == "@")
        call, _, wanted = text.partition(" => ")
        for name in words:
            if name[0] != "@":
                yield Row(name, only, call.strip(), wanted.strip())


class Names:
    """What calls of the table may read, besides modules."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.outs: list[Any] = []

    def a(self, shape: Any = 6, dtype: Any = "i4") -> Any:
        """Return an array of the backend: 0, 1, … 6, 0, …"""
        values = np.arange(math.prod(shape if isinstance(shape, tuple) else (shape,)))
        return self._backend.to_device((values % 7).reshape(shape).astype(dtype))

    def out(self, shape: Any = 6, dtype: Any = "i4") -> Any:
        """Return an array that has to stay as it is."""
        self.outs.append(self.a(shape, dtype))
        return self.outs[-1]

    def dev(self, values: Any, dtype: Any = None) -> Any:
        return self._backend.to_device(np.array(values, dtype))

    def spread(self, dtype: str, *shape: int) -> Any:
        """Return an array of zeros, which lie in memory once."""
        return self._backend.xp.broadcast_to(self.a(1, dtype), shape)


HOST = Names(Backend("cpu", np))
MODULES: dict[str, Any] = {
    "np": np, "ga": ga, "lazy": ga.lazy, "operator": operator, "nan": math.nan, "inf": math.inf,
    "Fraction": Fraction, "bfloat16": ml_dtypes.bfloat16, "Point": namedtuple("Point", "x y"),
    "Other": namedtuple("Other", "a b"), "K": [2, 1, 2], "V": [1, 2, 4],
    "NESTED": lambda a, b: ((a[0][0] + b[0][0], b[0][1]), max(a[1], b[1])),
}  # fmt: skip


def is_same(backend: Backend, found: Any, wanted: Any) -> bool:
    """Return whether a call returned what it is to return; lists have no dtype."""
    if isinstance(wanted, tuple):
        both = leaves(found), leaves(wanted)
        return (
            type(wanted) in (tuple, type(found))
            and len(both[0]) == len(both[1])
            and all(is_same(backend, *pair) for pair in zip(*both, strict=True))
        )
    if isinstance(wanted, list):
        return bool(backend.to_host(found).tolist() == wanted)
    if backend.xp is np and type(found) is not type(wanted):
        return False
    try:
        assert_same(backend.to_host(found), wanted)
    except AssertionError:
        return False
    return True


def fault(backend: Backend, row: Row) -> str:
    """Return what is not as it should be, in a first call and in one behind it."""
    names = Names(backend)
    known = {**MODULES, "f": operator.attrgetter(row.function)(ga), "a": names.a, "out": names.out,
             "dev": names.dev, "spread": names.spread}  # fmt: skip
    kinds, _, message = row.wanted.partition(": ")  # no message: what is returned
    prefix = "" if message.startswith("~") else f"^{row.function.rpartition('.')[2]}: "
    for _ in range(2):
        names.outs.clear()
        try:
            found = eval(row.call, known)
        except Exception as error:
            told = str(error)
            if not re.search(prefix + message.removeprefix("~"), told, re.DOTALL):
                return repr(error)
            if not {kind.__name__ for kind in type(error).__mro__} & {*kinds.split("|")}:
                return repr(error)
            if "\n" in told and not isinstance(error, ga.CompileError):
                return f"several lines: {told}"
        else:
            if message or not is_same(backend, found, eval(row.wanted, known)):
                return f"returned {found!r}"
        for array in names.outs:
            if (
                backend.to_host(array) != Names(Backend("cpu", np)).a(array.shape, array.dtype)
            ).any():
                return "an output is written"
    return ""


@pytest.mark.filterwarnings("ignore")
def test_every_row(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_call, "is_few", lambda size, few: False)
    found = []
    every = list(rows())
    returning = [row for row in every if ": " not in row.wanted]  # these compile
    taken = {*every} - {*returning} | {*a_few(returning, len(returning) // 8)}
    for row in filter(taken.__contains__, every):
        if row.only in ("", "cpu" if backend.xp is np else "cuda"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                told = fault(backend, row)
            found += [f"{row}\n    {told}"] if told else []
    assert not found, "\n".join(found)
