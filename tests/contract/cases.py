"""Sample calls of every registered algorithm.

A new algorithm is under all tests of this folder once `CASES` holds some of its calls. They are
few and share dtypes and operators, as each new combination is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from contract.case import Case
from contract.cases_of_choices import (
    LONG,
    PAIR,
    by_index,
    by_key,
    finds,
    firsts,
    ranks,
    runs,
    searches,
    segments,
    selections,
    sorts_of_segments,
)
from contract.operators import (
    combined,
    crossed,
    divided,
    doubled,
    looked_up,
    paired,
    ranked,
    shifted,
    stepped,
    stepped_pairs,
)
from support import is_emulated

import gpualgo as ga
from gpualgo._algorithms import ALGORITHMS

# Of several tiles, too; a digit takes long on the emulated GPU.
KEYS = ((17_003,), "int16") if is_emulated else ((100_003,), "float32")
PAIRS = (
    (KEYS, (KEYS[0], "float64")) if is_emulated else (((30_011,), "int32"), ((30_011,), "float64"))
)
EDGES = [-9.0, -1.0, 0.0, 0.5, 12.0]


def _reductions() -> list[Case]:
    f = ga.reduce
    return [
        Case(f, "several tiles", ((LONG, "float32"),), is_reordered=True),
        Case(f, "rows", (((37, 211), "float32"),), {"axis": 1}, is_reordered=True),
        Case(
            f, "columns", (((211, 37), "float32"),), {"axis": 0, "keepdims": True},
            is_reordered=True,
        ),
        Case(f, "two axes", (((5, 7, 6), "int16"),), {"axis": (0, 2), "dtype": "int64"}),
        Case(f, "no axes", (((), "float32"),), {"init": 0.5}, of_empty=0.5),
        Case(
            f, "an operator", (((3001,), "int32"),), {}, shifted, captures=True, of_empty=None
        ),
        Case(
            f, "an operator down columns", (((211, 37), "int32"),), {"axis": 0, "init": 7},
            shifted, captures=True, of_empty=7,
        ),
        Case(f, "empty rows", (((3, 0), "float32"),), {"axis": 1, "init": 0.5}, of_empty=0.5),
        Case(
            f, "tuples", ((LONG, "int32"), (LONG, "float64")), {}, paired, captures=True,
            of_empty=None, is_tuple=True,
        ),
        Case(
            f, "tuples in rows", (((37, 211), "int32"), ((37, 1), "float64")),
            {"axis": 1, "init": (5, 0.5)}, paired, captures=True, of_empty=(5, 0.5), is_tuple=True,
        ),
        Case(
            f, "lazy rows", (((37, 211), "float32"),), {"axis": 1}, is_reordered=True, is_lazy=True,
        ),
        Case(
            f, "a start for each row", (((37, 211), "int32"), ((37,), "int32")), {"axis": 1},
            last_are=("init",),
        ),
    ]  # fmt: skip


def _scans(f: Callable[..., Any]) -> list[Case]:
    backwards = {"axis": 1, "reverse": True, "init": 5}
    return [
        Case(f, "several tiles", ((LONG, "float32"),)),
        # Exact, as a turned output may be walked another way.
        Case(f, "rows backwards", (((37, 211), "int32"),), backwards),
        Case(f, "columns", (((211, 37), "int16"),), {"axis": 0, "dtype": "int64"}),
        Case(f, "flattened", (((6, 35), "float32"),)),
        Case(f, "no axes", (((), "float32"),)),
        Case(f, "an operator", (((3001,), "int32"),), {"init": 7}, shifted, captures=True),
        Case(f, "empty", (((0,), "float32"),)),
        Case(
            f, "tuples", ((LONG, "int32"), (LONG, "float64")), {"init": (1, -9.5)}, paired,
            captures=True, is_tuple=True,
        ),
        Case(
            f, "tuples in columns", (((211, 37), "int16"), ((1, 37), "float32")),
            {"axis": 0, "init": (1, 2.5), "dtype": ("int64", "float32")}, paired, captures=True,
            is_tuple=True,
        ),
        Case(f, "lazy columns", (((211, 37), "int32"),), {"axis": 0}, is_lazy=True),
        Case(
            f, "a start for each row", (((37, 211), "int32"), ((37,), "int32")), {"axis": 1},
            last_are=("init",),
        ),
    ]  # fmt: skip


def _transformations() -> list[Case]:
    f = ga.transform
    columns, rows = ((37, 1), "int32"), ((1, 11), "int32")
    return [
        Case(f, "several tiles", ((LONG, "float32"),), {}, doubled),
        Case(f, "two arrays", (((3001,), "int32"), ((3001,), "int32")), {}, combined),
        Case(f, "broadcast", (columns, rows), {}, combined),
        Case(f, "another dtype", (((5, 7, 6), "int16"),), {"dtype": "float64"}, doubled),
        Case(f, "no axes", (((), "float32"),), {}, doubled),
        Case(f, "an operator", (((3001,), "int32"),), {}, looked_up, captures=True),
        Case(f, "empty", (((4, 0), "float32"),), {}, doubled),
        Case(f, "a tuple", PAIR, {}, crossed, is_tuple=True),
        Case(f, "two results", (((3001,), "int32"),), {}, divided, captures=True),
        Case(f, "lazy ones", (((3001,), "int32"),), {}, doubled, is_lazy=True),
    ]


def _differences() -> list[Case]:
    f = ga.adjacent_difference
    return [
        Case(f, "several tiles", ((LONG, "float32"),)),
        Case(f, "rows", (((37, 211), "int32"),), {"axis": 1}),
        Case(f, "columns", (((211, 37), "int16"),), {"axis": 0}),
        Case(f, "of several axes", (((5, 7, 6), "float32"),), {"axis": 1}),
        Case(f, "an operator", (((3001,), "int32"),), {}, stepped, captures=True),
        Case(f, "empty", (((4, 0), "float32"),)),
        Case(
            f, "tuples in columns", (((211, 37), "int32"), ((1, 37), "float64")), {"axis": 0},
            stepped_pairs, captures=True, is_tuple=True,
        ),
        Case(f, "lazy columns", (((211, 37), "int32"),), {"axis": 0}, is_lazy=True),
    ]  # fmt: skip


def _sorts() -> list[Case]:
    f = ga.radix_sort
    return [
        Case(f, "several tiles", (KEYS,)),
        Case(f, "a short row", (((1003,), "int32"),)),
        Case(f, "pairs", PAIRS),
        Case(f, "columns", (((211, 37), "int16"),), {"axis": 0, "descending": True}),
        Case(f, "bits", (((3001,), "uint32"),), {"begin_bit": 4, "end_bit": 20}),
        Case(f, "flattened pairs", (((6, 35), "int32"), ((6, 35), "float64")), {"axis": None}),
        Case(f, "narrow keys", (((3001,), "int8"),)),
        Case(f, "no axes", (((), "float32"),), {"axis": None}),
        Case(f, "empty", (((0,), "float32"),)),
        Case(
            f, "tuples", (((3001,), "int8"), ((3001,), "float32")),
            {"descending": (False, True)}, is_tuple=True,
        ),
        Case(
            f, "tuples in columns", (((211, 37), "int8"), ((211, 1), "float64")), {"axis": 0},
            is_tuple=True,
        ),
    ]  # fmt: skip


def _sorts_by(f: Callable[..., Any]) -> list[Case]:
    by: dict[str, Any] = {"less": lambda a, b: a < b}  # as an option: it captures nothing
    return [
        Case(f, "several tiles", (KEYS,), by if f is ga.merge_sort else {}),
        Case(f, "pairs", PAIRS, {}, ranked, captures=True),
        Case(f, "columns", (((211, 37), "int16"),), {"axis": 0, "descending": True}),
        Case(f, "flattened pairs", (((6, 35), "int8"), ((6, 35), "float64")), {"axis": None}),
        Case(f, "an operator", (((3001,), "int8"),), {}, ranked, captures=True),
        Case(f, "no axes", (((), "float32"),), {"axis": None}),
        Case(f, "empty", (((0,), "float32"),)),
        Case(
            f, "tuples", (((3001,), "int8"), ((3001,), "float32")),
            {"descending": (False, True)}, is_tuple=True,
        ),
    ]  # fmt: skip


def _merges() -> list[Case]:
    f, sizes = ga.merge, (3001, 1700)
    keys: tuple[Any, ...] = tuple(((n,), "int8") for n in sizes)
    values: tuple[Any, ...] = tuple(((n,), "float64") for n in sizes)
    named = ("a_values", "b_values")
    found = [
        Case(f, "several tiles", ((LONG, "float32"), ((3001,), "float32"))),
        Case(f, "pairs", (*keys, *values), last_are=named),
        Case(f, "an operator", keys, {}, ranked, captures=True),
        Case(f, "falling", (((1,), "int8"), ((1,), "int8")), {"descending": True}),
        Case(f, "empty", (((0,), "float32"), ((5,), "float32"))),
    ]
    return [replace(case, is_merged=True) for case in found]


def _argsorts() -> list[Case]:
    f = ga.argsort
    return [
        Case(f, "several tiles", (KEYS,)),
        Case(f, "columns", (((211, 37), "int16"),), {"axis": 0, "descending": True}),
        Case(f, "flattened", (((6, 35), "float32"),), {"axis": None, "dtype": "int32"}),
        Case(f, "narrow keys", (((3001,), "int8"),)),
        Case(f, "no axes", (((), "float32"),), {"axis": None}),
        Case(f, "empty", (((0,), "float32"),)),
        Case(f, "tuples", (((3001,), "int8"), ((3001,), "float32")), is_tuple=True),
        Case(
            f, "tuples in rows", (((37, 211), "int8"), ((37, 1), "float64")),
            {"descending": True}, is_tuple=True,
        ),
    ]  # fmt: skip


def _extremes(f: Callable[..., Any]) -> list[Case]:
    none: dict[str, Any] = {"of_empty": None}
    return [
        Case(f, "several tiles", ((LONG, "float32"),), **none),
        Case(f, "rows", (((37, 211), "int32"),), {"axis": 1}, **none),
        Case(f, "columns", (((211, 37), "int16"),), {"axis": 0, "keepdims": True}, **none),
        Case(f, "no axes", (((), "float32"),), **none),
        Case(f, "empty", (((0, 5), "float32"),), {"axis": 1}, **none),
        Case(f, "lazy ones", (((37, 211), "int32"),), {"axis": 1}, is_lazy=True, **none),
        *([Case(f, "two axes", (((5, 7, 6), "int16"),), {"axis": (0, 2)}, **none)]
          if f is ga.minmax else []),
    ]  # fmt: skip


def _histograms() -> list[Case]:
    f = ga.histogram
    even: dict[str, Any] = {"bins": 300, "range": (-10, 10)}
    many = {"bins": 9000, "range": (-(2**31), 2**31 - 1), "dtype": "int32"}
    return [
        Case(f, "several tiles", ((LONG, "float32"),), even),
        Case(f, "edges in rows", (((37, 211), "float32"),), {"bins": EDGES, "axis": 1}),
        Case(f, "many bins", (((30_011,), "int32"),), many),
        Case(f, "its own range", (((3001,), "float32"),), {"bins": 12}, can_be_recorded=False),
        Case(
            f,
            "two axes",
            (((5, 7, 6), "int16"),),
            {"bins": 4, "axis": (0, 2)},
            can_be_recorded=False,
        ),
        Case(f, "no axes", (((), "float32"),), even),
        Case(f, "empty rows", (((3, 0), "float32"),), {**even, "axis": 1}),
        Case(
            f, "tuples", PAIR, {"bins": (5, EDGES), "range": ((-(2**31), 2**31 - 1), None)},
            is_tuple=True,
        ),
        Case(
            f, "tuples in columns", (((211, 37), "int16"), ((1, 37), "float32")),
            {"bins": (200, 70), "range": ((-(2**15), 2**15), (-20, 20)), "axis": 0}, is_tuple=True,
        ),
        Case(f, "lazy ones in rows", (((37, 211), "int16"),), {**even, "axis": 1}, is_lazy=True),
        Case(
            f, "weights", (((3001,), "float32"), ((3001,), "float64")), even,
            last_are=("weights",), is_reordered=True,
        ),
        Case(
            f, "tuples with weights in rows",
            (((37, 211), "float32"), ((37, 1), "float64"), ((211,), "complex64")),
            {"bins": (7, 3), "range": ((-10, 10), (-9, 9)), "axis": 1}, is_tuple=True,
            last_are=("weights",), is_reordered=True,
        ),
    ]  # fmt: skip


def _windows() -> list[Case]:
    f = ga.rolling
    return [
        Case(f, "several tiles", ((LONG, "float32"),), {"window": 100}),
        Case(f, "long windows", (((3001,), "int32"),), {"window": 600}),
        Case(f, "rows", (((37, 211), "float32"),), {"axis": 1, "window": 7}),
        Case(
            f, "columns", (((211, 37), "int16"),), {"axis": 0, "window": 20, "dtype": "int64"}
        ),
        Case(f, "single elements", (((5, 7, 6), "float32"),), {"axis": 1, "window": 1}),
        Case(f, "an operator", (((3001,), "int32"),), {"window": 5}, shifted, captures=True),
        Case(f, "empty", (((0, 4), "float32"),), {"window": 3}),
        Case(
            f, "tuples in columns", (((211, 37), "int32"), ((1, 37), "float64")),
            {"axis": 0, "window": 9}, paired, captures=True, is_tuple=True,
        ),
        Case(f, "lazy columns", (((211, 37), "int32"),), {"axis": 0, "window": 3}, is_lazy=True),
    ]  # fmt: skip


CASES = [
    *_reductions(), *_scans(ga.inclusive_scan), *_scans(ga.exclusive_scan), *_transformations(),
    *_differences(), *_windows(), *_sorts(), *_argsorts(), *_histograms(), *_extremes(ga.argmin),
    *_extremes(ga.argmax), *_extremes(ga.minmax), *selections(ga.select), *finds(ga.find),
    *selections(ga.stable_partition), *finds(ga.count), *runs(), *searches(), *firsts(), *ranks(),
    *_sorts_by(ga.merge_sort), *_sorts_by(ga.sort), *_merges(),
    *segments(ga.segmented_reduce), *segments(ga.segmented_inclusive_scan),
    *segments(ga.segmented_exclusive_scan), *sorts_of_segments(ga.segmented_sort),
    *by_key(ga.reduce_by_key), *by_key(ga.inclusive_scan_by_key), *by_key(ga.exclusive_scan_by_key),
    *by_index(ga.reduce_by_index),
]  # fmt: skip


def cases_of(function: Callable[..., Any]) -> list[Case]:
    return [case for case in CASES if case.function is function]


each_case = pytest.mark.parametrize("case", CASES, ids=str)
# What test_plans.py begins with: beside another process, that compiles the same cases for the first
# test of test_outputs.py, each compiles but half, and reads the other half from disk.
each_case_from_the_end = pytest.mark.parametrize("case", CASES[::-1], ids=str)
each_capturing = pytest.mark.parametrize("case", [c for c in CASES if c.captures], ids=str)
each_function = pytest.mark.parametrize("function", ALGORITHMS, ids=lambda f: f.__name__)
