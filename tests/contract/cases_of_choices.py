"""Sample calls of what chooses among elements: selections, searches, runs; and of segments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from contract.case import Case
from contract.operators import chosen, near, paired, paired_off, ranked, rare, shifted
from support import scaled

import gpualgo as ga

LONG = (scaled(100_003, emulated=20_003),)
PAIR = (((37, 1), "int32"), ((1, 211), "float64"))


def selections(f: Callable[..., Any]) -> list[Case]:
    def case(about: str, inputs: Any, operator: Any = None, **more: Any) -> Case:
        return Case(
            f, about, inputs, {}, operator, can_be_recorded=False, has_dynamic_length=True,
            is_joined=f is ga.stable_partition, **more,
        )  # fmt: skip

    marked: Any = {"last_are": ("predicate",)}
    return [
        case("several tiles", ((LONG, "float32"),), chosen, captures=True),
        case("marked", ((LONG, "int32"), (LONG, "bool")), **marked),
        case("marked rows", (((37, 211), "float64"), ((37, 211), "bool")), **marked),
        case("no axes", (((), "float32"), ((), "bool")), **marked),
        case("empty", (((0, 5), "float32"),), chosen),
        case("tuples", PAIR, paired_off, is_tuple=True),
        case("lazy ones", (((3001,), "int32"),), chosen, is_lazy=True),
    ]


def finds(f: Callable[..., Any]) -> list[Case]:
    common: dict[str, Any] = {"of_empty": -1 if f is ga.find else 0, "puts_together": True}
    marked: Any = {**common, "last_are": ("predicate",), "reads_last_alone": True}
    keepdims = {"keepdims": True} if f is ga.count else {}
    axes = {"axis": (0, 2) if f is ga.count else 1}
    columns = (((211, 37), "int16"), ((211, 37), "bool"))
    return [
        Case(f, "several tiles", ((LONG, "float32"),), {}, rare, captures=True, **common),
        Case(f, "marked columns", columns, {"axis": 0, **keepdims}, **marked),
        Case(f, "no axes", (((), "float32"), ((), "bool")), **marked),
        Case(f, "empty", (((0, 5), "float32"),), {"axis": 1}, rare, **common),
        Case(f, "of several axes", (((5, 7, 6), "float32"),), axes, rare, **common),
    ]


def searches() -> list[Case]:
    f = ga.searchsorted

    def case(about: str, inputs: Any, *more: Any, **others: Any) -> Case:
        return Case(f, about, inputs, *more, is_searched=True, **others)

    return [
        case("several tiles", ((LONG, "float32"), ((3001,), "float32"))),
        case("rows", (((3001,), "int32"), ((37, 211), "int32")), {"side": "right"}),
        case("dtypes that differ", (((211,), "int16"), ((6, 35), "float32")), {"dtype": "int32"}),
        case("in place", (((3001,), "int64"), ((3001,), "int64"))),
        case("an operator", (((3001,), "int8"), ((503,), "int8")), {}, ranked, captures=True),
        case("falling", (((1,), "int8"), ((5,), "int8")), {"descending": True}),
        case("no axes", (((3001,), "float32"), ((), "float32"))),
        case("empty", (((0,), "float32"), ((5,), "float32"))),
    ]


def firsts() -> list[Case]:
    f, none = ga.top_k, {"of_empty": None}
    smallest = {"mode": "smallest"}
    return [
        Case(f, "several tiles", ((LONG, "float32"),), {"k": 17}, **none),
        Case(f, "rows", (((37, 211), "int32"),), {"k": 5, "axis": 1, **smallest}, **none),
        Case(f, "columns", (((211, 37), "int16"),), {"k": 40, "axis": 0}, **none),
        Case(f, "flattened", (((6, 35), "float32"),), {"k": 7, "axis": None}, **none),
        Case(f, "no axes", (((), "float32"),), {"k": 1, "axis": None}, **none),
        Case(f, "empty", (((0, 5), "float32"),), {"k": 0, "axis": 0}),
    ]


def ranks() -> list[Case]:
    f, none = ga.kth_value, {"of_empty": None}
    return [
        Case(f, "several tiles", ((LONG, "float32"),), {"k": 10_000}, **none),
        Case(f, "rows", (((37, 211), "int32"),), {"k": 5, "axis": 1}, **none),
        Case(f, "columns", (((211, 37), "int16"),), {"k": (3, 100), "axis": 0}, **none),
        Case(f, "flattened", (((6, 35), "float32"),), {"k": (7, 209, 0), "axis": None}, **none),
        Case(f, "no axes", (((), "float32"),), {"k": 0, "axis": None}, **none),
        Case(f, "empty", (((0, 5), "float32"),), {"k": (), "axis": 0}),
    ]


def runs() -> list[Case]:
    common: dict[str, Any] = {"can_be_recorded": False, "has_dynamic_length": True}
    f = ga.run_length_encode
    return [
        Case(f, "several tiles", ((LONG, "float32"),), {}, near, captures=True, **common),
        Case(f, "rows", (((37, 211), "int8"),), **common),
        Case(f, "no axes", (((), "float32"),), **common),
        Case(f, "empty", (((0, 5), "float32"),), **common),
        Case(f, "lazy ones", (((3001,), "int16"),), is_lazy=True, **common),
    ]


def segments(f: Callable[..., Any]) -> list[Case]:
    """Of a reduction and of scans; offsets begin and end within x."""

    def case(about: str, inputs: Any, options: Any = None, *more: Any, **others: Any) -> Case:
        options = options or {}
        others["of_empty"] = options.get("init", 0)
        return Case(f, about, inputs, options, *more, is_segmented=True, **others)

    return [
        case("several tiles", ((LONG, "float32"), ((301,), "int64"))),
        case(
            "an operator", (((3001,), "int32"), ((301,), "int32")), {"init": 7}, shifted,
            captures=True,
        ),
        case("wider", (((503,), "int16"), ((40,), "uint16")), {"dtype": "int64"}),
        case("empty", (((0,), "float32"), ((5,), "int32"))),
        case(
            "tuples", (((3001,), "int32"), ((3001,), "float64"), ((301,), "int32")),
            {"init": (1, -9.5)}, paired, captures=True, is_tuple=True,
        ),
        case("lazy ones", (((3001,), "int32"), ((301,), "int32")), is_lazy=True),
        case(
            "a start for each segment", (((3001,), "int32"), ((301,), "int32"), ((300,), "int32")),
            last_are=("init",),
        ),
    ]  # fmt: skip


def sorts_of_segments(f: Callable[..., Any]) -> list[Case]:
    def case(about: str, inputs: Any, options: Any = None, **others: Any) -> Case:
        return Case(f, about, inputs, options or {}, is_segmented=True, **others)

    moved: dict[str, Any] = {"last_are": ("values",)}
    return [
        case("several tiles", ((LONG, "float32"), ((301,), "int64"))),
        case("pairs", (((3001,), "int32"), ((301,), "int32"), ((3001,), "float64")), **moved),
        case("falling", (((503,), "int16"), ((40,), "uint16")), {"descending": True}),
        case("empty", (((0,), "float32"), ((5,), "int32"))),
        case(
            "tuples", (((3001,), "int8"), ((3001,), "float32"), ((301,), "int32")),
            {"descending": (False, True)}, is_tuple=True,
        ),
    ]  # fmt: skip


def by_key(f: Callable[..., Any]) -> list[Case]:
    """Return calls on neighbours, and one on keys in any order."""
    neighbours = {"consecutive": True}
    common: dict[str, Any] = {"last_are": ("x",)}
    if f is ga.reduce_by_key:
        common |= {"can_be_recorded": False, "has_dynamic_length": True}
    # As an option, as it captures nothing: so that there are runs.
    signs: dict[str, Any] = {"eq": lambda a, b: (a < 0) == (b < 0)}

    def case(about: str, inputs: Any, options: Any, *more: Any, **others: Any) -> Case:
        given = {**common, **others}
        return Case(f, about, inputs, {**neighbours, **options}, *more, **given)

    # To a graph two arrays without memory are one.
    empty: dict[str, Any] = {"can_be_recorded": False}
    return [
        case("several tiles", ((LONG, "int8"), (LONG, "float32")), {}),
        case("rows", (((37, 211), "int8"), ((37, 211), "int16")), {"dtype": "int64", "init": 5}),
        case("an operator", (((3001,), "int8"), ((3001,), "int32")), {"init": 7}, shifted,
             captures=True),
        case("an equality", (((3001,), "int8"), ((3001,), "int32")), signs, puts_together=True),
        case("no axes", (((), "float32"), ((), "float32")), {}),
        case("empty", (((0, 5), "float32"), ((0, 5), "float32")), {}, **empty),
        case("lazy ones", (((3001,), "int8"), ((3001,), "int32")), {}, is_lazy=True,
             puts_together=True),
        case("in any order", (((3001,), "int8"), ((3001,), "int32")), {"consecutive": False}),
    ]  # fmt: skip


def by_index(f: Callable[..., Any]) -> list[Case]:
    """Return calls whose indices are all in range, as bytes are."""

    def case(
        about: str, shape: Any, dtype: str, options: Any = None, *more: Any, **others: Any
    ) -> Case:  # fmt: skip
        given = {"size": 256, **(options or {})}
        others["of_empty"] = given.get("init", 0)
        inputs = (shape, "uint8"), (shape, dtype)
        return Case(f, about, inputs, given, *more, last_are=("x",), **others)

    starts = (((3001,), "uint8"), ((3001,), "int32"), ((256,), "int32"))

    return [
        case("several tiles", LONG, "float32"),
        case("rows", (37, 211), "int16", {"dtype": "int64", "init": 5}),
        case("an operator", (3001,), "int32", {"init": 7}, shifted, captures=True),
        case("no axes", (), "float32"),
        # To a graph two arrays without memory are one.
        case("empty", (0, 5), "float32", can_be_recorded=False),
        case("lazy ones", (3001,), "int32", is_lazy=True, puts_together=True),
        Case(f, "a start for each result", starts, {"size": 256}, last_are=("x", "init")),
    ]  # fmt: skip
