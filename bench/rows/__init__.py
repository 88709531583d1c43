"""What is timed: a table of rows for each algorithm, and the choice among them."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from bench.row import Row

FILES = {  # the common algorithms first; the table of one has its name, in capitals
    "folds": ("copy", "transform", "adjacent_difference", "layouts", "reduce", "extremes", "tuples",
              "lazy", "scan", "by_key", "segments", "runs"),
    "sorts": ("radix_sort", "merge_sort", "top_k", "searchsorted", "select", "histogram"),
    "hosts": ("host_arrays", "small", "out_of_core"),
    "numpy": ("numpy",),
    "dask": ("dask",),
    "scaling": ("scaling",),
    "startup": ("startup",),
}  # fmt: skip
ON_REQUEST = ("dask", "out_of_core", "scaling", "startup")  # run only if they are named
ALGORITHMS = {name: file for file, names in FILES.items() for name in names}  # file by name


def _flat(table: Any) -> list[Row]:
    return [table] if isinstance(table, Row) else [row for each in table for row in _flat(each)]


def all_rows(among: Iterable[str] = ()) -> list[Row]:
    found = []
    for name in list(among) or [name for name in ALGORITHMS if name not in ON_REQUEST]:
        module = importlib.import_module(f"{__name__}.{ALGORITHMS[name]}")
        found += [replace(row, algorithm=name) for row in _flat(getattr(module, name.upper()))]
    return found


def chosen(
    among: Iterable[str] = (), text: str = "", sizes: Collection[int] = (),
    device: str | None = None, quick: bool = False,
) -> list[Row]:  # fmt: skip
    """Return the rows asked for; what is empty chooses all. Of sizes each row is made once."""
    found = [row for row in all_rows(among) if text in str(row) and device in (None, row.device)
             and (not quick or row.quick or sizes)]  # fmt: skip
    if not sizes:
        return found
    sized = [row.at(n) for row in found for n in ({row.n} if row.of_its_size else sizes)
             if n in sizes]  # fmt: skip
    return list({row.key: row for row in reversed(sized)}.values())[::-1]
