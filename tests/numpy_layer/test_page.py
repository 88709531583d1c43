"""docs/numpy.md lists what there is; run this file as a script to write its table anew."""

from __future__ import annotations

import inspect
import re
import sys

import numpy as np
import pytest
from support import REPOSITORY

import gpualgo.numpy as gnp
from gpualgo.numpy._call import TABLE, Entry

PAGE = REPOSITORY / "docs/numpy.md"
TABLE_OF_PAGE = re.compile(r"(?<=<!-- every function -->\n).*?(?=<!-- end -->)", re.DOTALL)


def rendered() -> str:
    """Return the page's table: for each kind, a row for all functions that differ alike."""
    rows: dict[tuple[str, str], list[str]] = {}
    for entry in sorted(TABLE.values(), key=lambda entry: entry.name):
        rows.setdefault((_kind_of(entry), entry.differs), []).append(f"`{entry.name}`")
    lines = ["| kind | functions | differs from NumPy |", "|---|---|---|"]
    for (kind, differs), names in sorted(rows.items(), key=lambda row: (row[0][0], row[1])):
        lines.append(f"| {kind} | {', '.join(names)} | {_cell(differs)} |")
    return "\n".join(lines) + "\n"


def _kind_of(entry: Entry) -> str:
    """Return the name of the folder or file that defines a function."""
    module = getattr(inspect.unwrap(entry.function), "__module__", "")
    match = re.match(r"gpualgo\.numpy\._([a-z]+)\b", module)
    return match[1] if match else "elementwise"  # ufuncs and `vectorize` are objects


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def test_the_page_lists_every_function() -> None:
    found = TABLE_OF_PAGE.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None
    assert found[0] == rendered(), "run `python tests/numpy_layer/test_page.py`"


def test_the_names_are_those_of_the_table() -> None:
    assert {*gnp.__all__} >= {*TABLE}
    assert all(getattr(gnp, name) is entry.function for name, entry in TABLE.items())


# Named otherwise than in this NumPy, or with more than it has; and what only older ones have.
NEWER = {
    "sort": {"descending"}, "argsort": {"descending"}, "unique": {"sorted"}, "clip": {"min", "max"},
}  # fmt: skip
OLDER = {"like", "interpolation"}


@pytest.mark.parametrize("entry", TABLE.values(), ids=lambda entry: entry.name)
def test_signatures_are_numpys(entry: Entry) -> None:
    """All of NumPy's parameters, in its order and by its names; newer NumPys' come last."""
    if entry.native is None or isinstance(entry.native, np.ufunc):
        return
    try:
        theirs = inspect.signature(entry.native).parameters
    except ValueError:  # written in C
        return
    ours = inspect.signature(entry.function).parameters
    more = NEWER.get(entry.name, set()) - {*theirs}
    kept = [name for name in ours if name not in more]
    assert kept == [name for name in theirs if name not in OLDER]
    for name in kept:
        assert ours[name].kind == theirs[name].kind, name
        if entry.name == "clip" and more:  # an older NumPy's, whose limits have no others' names
            continue
        is_required = ours[name].default is inspect.Parameter.empty
        assert is_required == (theirs[name].default is inspect.Parameter.empty), name


@pytest.mark.parametrize("entry", TABLE.values(), ids=lambda entry: entry.name)
def test_docstrings_are_whole(entry: Entry) -> None:
    doc = entry.function.__doc__ or ""
    assert re.match(r"[A-Z][^\n]*\.\n", doc), "one line first"
    assert ">>>" in doc
    assert "https://github.com/gpualgo/gpualgo/blob/main/docs/numpy.md" in doc


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(TABLE_OF_PAGE.sub(lambda _: rendered(), text), encoding="utf-8")
    sys.exit()
