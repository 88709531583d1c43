"""docs/matrix.md lists what each function takes; run this file as a script to write it anew.

Each cell is made by a call: on the CPU, of few elements, or by `gpualgo.explain`, which checks the
arguments and compiles the operator alone.
"""

from __future__ import annotations

import inspect
import operator
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpualgo as ga
from gpualgo import shards
from gpualgo._algorithms import ALGORITHMS
from gpualgo._base import dtypes

PAGE = Path(__file__).resolve().parents[2] / "docs/matrix.md"
TABLE = re.compile(r"(?<=<!-- every function -->\n).*?(?=<!-- end -->)", re.DOTALL)
HEAD = ["function", "dtypes", "tuples", "lazy", "`axis`", "`prepare`", "graph"]
HEAD += ["dask", "sharded"]
YES, NO = "✓", ""
N = 6
INTEGERS = [name for name in dtypes.NAMES if "int" in name]
REAL = [name for name in dtypes.NAMES if "complex" not in name]
OFFSETS = np.array([0, 2, N])
FUNCTIONS = (*ALGORITHMS, ga.unique, ga.copy)
SORTED = sorted(FUNCTIONS, key=lambda f: f.__name__)
BY_KEY = ("reduce_by_key", "inclusive_scan_by_key", "exclusive_scan_by_key")


def _add(a: Any, b: Any) -> Any:
    return a[0] + b[0], a[1] + b[1]


def _first_is_positive(a: Any) -> Any:
    return a[0] > 0


def _arguments(name: str, x: Any, is_tuple: bool) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call in which x is the array of elements, or of keys."""
    op, init = (_add, (1, 1)) if is_tuple else (operator.add, None)
    keys = np.repeat(np.arange(3), 2)
    mask = _first_is_positive if is_tuple else np.arange(N) > 2
    made: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
        "reduce": ((x, None, op), {}),
        "inclusive_scan": ((x, None, op), {}),
        "exclusive_scan": ((x, init, op), {}),
        "transform": ((_swapped if is_tuple else abs, x), {}),
        "adjacent_difference": ((x, op), {}),
        "rolling": ((x, 2, op), {}),
        "reduce_by_index": ((keys, x, 3, init, op), {}),
        "reduce_by_key": ((keys, x, None, op), {}),
        "inclusive_scan_by_key": ((keys, x, None, op), {}),
        "exclusive_scan_by_key": ((keys, x, init, op), {}),
        "segmented_reduce": ((x, OFFSETS, init, op), {}),
        "segmented_inclusive_scan": ((x, OFFSETS, init, op), {}),
        "segmented_exclusive_scan": ((x, OFFSETS, init, op), {}),
        "segmented_sort": ((x, OFFSETS), {}),
        "select": ((x, mask), {}),
        "stable_partition": ((x, mask), {}),
        "find": ((x, mask), {}),
        "count": ((x, mask), {}),
        "histogram": ((x, 2), {"range": ((0, 2),) * 2 if is_tuple else (0, 2)}),
        "merge": ((x, x), {}),
        "searchsorted": ((x, x), {}),
        "top_k": ((x, 2), {}),
        "kth_value": ((x, 2), {}),
    }  # fmt: skip
    return made.get(name, ((x,), {}))


def _swapped(a: Any) -> Any:
    return a[1], a[0]


# Arrays of a call that may have dtypes of their own: how they are called, and the position or name.
OTHERS: dict[str, tuple[str, Any]] = {
    "reduce_by_index": ("indices", 0),
    **dict.fromkeys(BY_KEY, ("keys", 0)),
    "segmented_reduce": ("offsets", 1),
    "segmented_inclusive_scan": ("offsets", 1),
    "segmented_exclusive_scan": ("offsets", 1),
    "segmented_sort": ("offsets", 1),
    "histogram": ("weights", "weights"),
    "radix_sort": ("values", "values"),
    "merge_sort": ("values", "values"),
    "sort": ("values", "values"),
}


def _sample(name: str) -> Any:
    return np.array([0, 0, 0, 1, 1, 1]).astype(dtypes.from_name(name))


def _is_taken(call: Callable[[], Any]) -> bool:
    try:
        call()
    except (RuntimeError, TypeError, ValueError, np.exceptions.AxisError):
        return False
    return True


def _call(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Make a call, or what of it finds that it is possible."""
    return ga.explain(f, *args, **kwargs) if f in ALGORITHMS else f(*args, **kwargs)


def _dtypes(f: Callable[..., Any]) -> str:
    name = f.__name__
    found = []
    for each in dtypes.NAMES:
        args, kwargs = _arguments(name, _sample(each), False)
        if _is_taken(lambda args=args, kwargs=kwargs: _call(f, args, kwargs)):  # type: ignore[misc]
            found.append(each)
    text = _told(found)
    if name in OTHERS:
        about, at = OTHERS[name]
        others = []
        for each in dtypes.NAMES:
            args, kwargs = _arguments(name, _sample("float32"), False)
            was = args[at] if isinstance(at, int) else np.ones(N)
            other = np.asarray(was).astype(dtypes.from_name(each))
            if isinstance(at, int):
                args = (*args[:at], other, *args[at + 1 :])
            else:
                kwargs = {**kwargs, at: other}
            if _is_taken(lambda args=args, kwargs=kwargs: _call(f, args, kwargs)):  # type: ignore[misc]
                others.append(each)
        text += f"; {about}: {_told(others)}"
    return text


def _told(found: list[str]) -> str:
    """Return the shortest text for some dtypes."""
    for text, names in (
        ("all", [*dtypes.NAMES]),
        ("all but complex", REAL),
        ("integers", INTEGERS),
    ):
        if found == names:
            return text
    missing = [name for name in dtypes.NAMES if name not in found]
    return f"all but {', '.join(missing)}" if len(missing) < 4 else ", ".join(found)


def _tuples(f: Callable[..., Any]) -> str:
    x = np.arange(N), np.linspace(0, 1, N)
    args, kwargs = _arguments(f.__name__, x, True)
    return YES if _is_taken(lambda: _call(f, args, kwargs)) else NO


def _lazy(f: Callable[..., Any]) -> str:
    args, kwargs = _arguments(f.__name__, ga.lazy.asarray(_sample("int32")) * 2, False)
    return YES if _is_taken(lambda: _call(f, args, kwargs)) else NO


def _axis(f: Callable[..., Any]) -> str:
    if "axis" not in inspect.signature(f).parameters:
        return NO
    x = np.zeros((N, 2, 2), np.int32)
    args, kwargs = _arguments(f.__name__, x, False)
    if f in (ga.find, ga.count):  # whose mask has the shape of x
        args = (x, x > 0)
    return "one or more" if _is_taken(lambda: _call(f, args, {**kwargs, "axis": (0, 1)})) else "one"


def _prepare(f: Callable[..., Any]) -> str:
    x = _sample("int32")
    args, kwargs = _arguments(f.__name__, x, False)
    return YES if _is_taken(lambda: ga.prepare(f, *args, **kwargs)) else NO


def _graph(f: Callable[..., Any]) -> str:
    args, kwargs = _arguments(f.__name__, _sample("int32"), False)
    if _is_taken(lambda: _record(f, args, kwargs)):
        return YES
    found = args[0] if f is ga.stable_partition else f(*args, **kwargs)  # two views of one array
    out = tuple(map(np.empty_like, found)) if isinstance(found, tuple) else np.empty_like(found)
    more = {"out": out, "out_count": np.zeros((), np.int64)}
    if not _is_taken(lambda: _record(f, args, {**kwargs, **more})):
        return NO
    return "with `out=`, `out_count=`"


def _record(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    with ga.graph("cpu") as graph:
        f(*args, **kwargs)
    graph.launch()


def rendered() -> str:
    """Return the page's table: a row for each function."""
    lines = [_row(HEAD), "|---" * len(HEAD) + "|", *map(row_of, SORTED)]
    return "\n".join(lines) + "\n"


def row_of(f: Callable[..., Any]) -> str:
    """Return the row of a function, by calls of it."""
    from gpualgo import dask

    name = f.__name__
    with ga.default_device("cpu"):
        cells = [f"`{name}`", _dtypes(f), _tuples(f), _lazy(f), _axis(f), _prepare(f), _graph(f)]
    return _row([*cells, *(YES if name in module.__all__ else NO for module in (dask, shards))])


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


@pytest.mark.parametrize("f", SORTED, ids=lambda f: f.__name__)
def test_the_matrix_is_what_calls_take(f: Callable[..., Any]) -> None:
    pytest.importorskip("dask")
    found = TABLE.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None
    lines = found[0].splitlines()
    assert len(lines) == 2 + len(SORTED)
    assert lines[2 + SORTED.index(f)] == row_of(f), "run `python tests/api/test_matrix.py`"


def test_the_matrix_has_all_functions() -> None:
    """What takes arrays and is no row of the matrix is not of this kind."""
    found = {name for name in ga.__all__ if inspect.isfunction(getattr(ga, name))}
    others = {
        "default_device", "distribute", "empty_pinned", "explain", "from_pointer", "graph",
        "prepare", "set_memory_resource", "temp_storage_bytes",
    }  # fmt: skip
    assert found - others == {f.__name__ for f in FUNCTIONS}


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(TABLE.sub(lambda _: rendered(), text), encoding="utf-8")
    sys.exit()
