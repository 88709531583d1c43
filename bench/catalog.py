"""All rows, and the choice among them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Collection, Iterable
from dataclasses import replace

from bench import rows as package
from bench.peers import Prepared
from bench.row import Key, Row, dtypes_in

ON_REQUEST = ("dask", "out_of_core")  # run only if they are named
FIRST = ("copy", "reduce", "transform", "scan", "radix_sort", "merge_sort", "histogram")


def algorithms() -> list[str]:
    """Return the names of all files of rows, the common ones first."""
    names = sorted(each.name for each in pkgutil.iter_modules(package.__path__))
    return list(dict.fromkeys([*FIRST, *names]))


def all_rows(among: Iterable[str] = ()) -> list[Row]:
    return [
        replace(row, algorithm=name)
        for name in list(among) or (name for name in algorithms() if name not in ON_REQUEST)
        for row in importlib.import_module(f"bench.rows.{name}").ROWS
    ]


def chosen(
    among: Iterable[str] = (), *, text: str = "", dtypes: Iterable[str] = (),
    sizes: Collection[int] = (), entropies: Collection[float] = (), clocks: Collection[str] = (),
    quick: bool = False,
) -> list[Row]:  # fmt: skip
    """Return the rows asked for; what is empty chooses all. Of sizes each row is made once."""
    asked = dtypes_in(" ".join(dtypes))
    found = [
        row for row in all_rows(among)
        if text in str(row)
        and (not dtypes or asked & row.dtypes)
        and (not entropies or row.entropy in entropies)
        and (not clocks or row.clock in clocks)
        and (not quick or row.quick or sizes or entropies)
    ]  # fmt: skip
    if not sizes:
        return found
    sized: dict[Key, Row] = {}
    for row in found:
        for n in (row.n,) if row.of_its_size else sizes:
            if n in sizes:
                sized.setdefault((row.name, n, row.clock), row.at(n))
    return list(sized.values())


def cub_sources(rows: Iterable[Row]) -> set[str]:
    """Return the sources that CUB's part in these rows is compiled from."""
    calls = [row.calls.get("CUB") for row in rows]
    return {call.cub_source for call in calls if isinstance(call, Prepared)}
