"""All rows, and the choice among them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from dataclasses import dataclass, replace

from bench import rows as package
from bench.peers import Prepared
from bench.row import Key, Row, dtypes_in

ON_REQUEST = ("dask", "out_of_core")  # run only if they are named
FIRST = ("copy", "reduce", "transform", "scan", "radix_sort", "merge_sort", "histogram")


@dataclass(frozen=True)
class Choice:
    """Which rows to run; what is empty chooses all."""

    algorithms: tuple[str, ...] = ()
    text: str = ""
    dtypes: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    entropies: tuple[float, ...] = ()
    clocks: tuple[str, ...] = ()
    quick: bool = False

    def has(self, row: Row) -> bool:
        return (
            self.text in str(row)
            and (not self.dtypes or bool(dtypes_in(" ".join(self.dtypes)) & row.dtypes))
            and (not self.entropies or row.entropy in self.entropies)
            and (not self.clocks or row.clock in self.clocks)
            and (row.quick or not self.quick or bool(self.sizes or self.entropies))
        )


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


def chosen(choice: Choice) -> list[Row]:
    """Return the rows asked for; of sizes that are named each row is made once."""
    found = [row for row in all_rows(choice.algorithms) if choice.has(row)]
    if not choice.sizes:
        return found
    sized: dict[Key, Row] = {}
    for row in found:
        for n in (row.n,) if row.of_its_size else choice.sizes:
            if n in choice.sizes:
                sized.setdefault((row.name, n, row.clock), row.at(n))
    return list(sized.values())


def cub_sources(rows: Iterable[Row]) -> set[str]:
    """Return the sources that CUB's part in these rows is compiled from."""
    calls = [row.calls.get("CUB") for row in rows]
    return {call.cub_source for call in calls if isinstance(call, Prepared)}
