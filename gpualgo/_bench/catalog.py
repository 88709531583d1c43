"""All rows, and the choice among them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from gpualgo._bench import rows as package
from gpualgo._bench.support import Row, short_dtype

FIRST = ("copy", "reduce", "transform", "scan", "radix_sort", "merge_sort", "histogram")
GPU_CLOCKS = ("device", "host")


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


def algorithms() -> list[str]:
    """Return the names of all files of rows, the common ones first."""
    found = sorted(each.name for each in pkgutil.iter_modules(package.__path__))
    return [*FIRST, *(name for name in found if name not in FIRST)]


def _module(algorithm: str) -> Any:
    return importlib.import_module(f"gpualgo._bench.rows.{algorithm}")


def cub_sources(rows: Iterable[Row]) -> set[str]:
    """Return the sources that CUB's part in these rows is compiled from."""
    named = {row.algorithm for row in rows if row.clock in GPU_CLOCKS}
    return {source for name in named for source in getattr(_module(name), "CUB", ())}


def all_rows(among: Iterable[str] = ()) -> list[Row]:
    """Return the rows of some algorithms, of all without a name."""
    return [
        replace(row, algorithm=name)
        for name in (list(among) or algorithms())
        for row in _module(name).rows()
    ]


def chosen(choice: Choice) -> list[Row]:
    """Return the rows asked for; of sizes that are named each row is made once."""
    found = [row for row in all_rows(choice.algorithms) if _is_chosen(row, choice)]
    if not choice.sizes:
        return found
    sized: dict[tuple[str, int, str], Row] = {}
    for row in found:
        for n in (row.n,) if row.of_its_size else choice.sizes:
            if n in choice.sizes:
                sized.setdefault(row.at(n).key, row.at(n))
    return list(sized.values())


def _is_chosen(row: Row, choice: Choice) -> bool:
    dtypes = {short_dtype(name) for name in choice.dtypes}
    return (
        (not choice.text or choice.text in str(row))
        and (not dtypes or bool(dtypes & row.dtypes))
        and (not choice.entropies or row.entropy in choice.entropies)
        and (not choice.clocks or row.clock in choice.clocks)
        and (row.quick or not choice.quick or bool(choice.sizes) or bool(choice.entropies))
    )
