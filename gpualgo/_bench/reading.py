"""Reads the file of a run: what is not just as a run writes it is refused by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from gpualgo._bench.results import FORMAT, Measured, Report, Times
from gpualgo._bench.table import TITLES

NUMBER, TEXT = (int, float), (str,)
_OF_ROW = {
    "name": TEXT, "n": (int,), "clock": TEXT, "algorithm": TEXT, "dtype": TEXT,
    "entropy": (*NUMBER, type(None)), "bytes_moved": NUMBER, "beside": TEXT, "times": (dict,),
}  # fmt: skip
_OF_TIMES = {
    "median": NUMBER, "low": NUMBER, "high": NUMBER, "count": (int,), "rounds": (list,),
    "memory": (int, type(None)),
}  # fmt: skip
_OF_NOTE = {"row": TEXT, "who": TEXT, "reason": TEXT}
_OF_FILE = {"environment": (dict,), "rows": (list,), "left_out": (list,)}


def read(path: Path) -> Report:
    """Return the report of a file; ValueError if it is none of this format."""
    try:
        return _report(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} holds no results of gpualgo bench: {error}") from error


def _report(found: Any) -> Report:
    if not isinstance(found, dict) or "format" not in found:
        raise ValueError("it tells no format")
    if found["format"] != FORMAT:
        raise ValueError(f"its format is {found['format']}, known here is {FORMAT}")
    _check(found, {"format": (int,), **_OF_FILE}, "the file")
    told = found["environment"]
    if not isinstance(told.get("versions"), dict):
        raise ValueError("its environment has no versions")
    if any(not isinstance(told.get(name, 0), (*NUMBER, type(None))) for name in _COUNTS):
        raise ValueError(f"of its environment {', '.join(_COUNTS)} are to be numbers")
    for note in found["left_out"]:
        _check(note, _OF_NOTE, "left_out")
    rows = tuple(_measured(row) for row in found["rows"])
    if len({row.key for row in rows}) < len(rows):
        raise ValueError("it has a row twice")
    return Report(told, rows, tuple(found["left_out"]))


_COUNTS = ("cores", "load", "load_after")


def _check(found: Any, kinds: Mapping[str, tuple[type, ...]], where: str) -> None:
    """Refuse what is no mapping of just these names to values of these types."""
    if not isinstance(found, dict) or found.keys() != kinds.keys():
        raise ValueError(f"{where} is to have {', '.join(kinds)}, and nothing else")
    for name, types in kinds.items():
        value = found[name]
        if not isinstance(value, types) or isinstance(value, bool):
            raise ValueError(f"{name} of {where} is {value!r}")


def _measured(row: Any) -> Measured:
    _check(row, _OF_ROW, "a row")
    where = f"row {row['name']!r}"
    if row["n"] < 1 or row["clock"] not in TITLES:
        raise ValueError(f"{where} has n={row['n']} and clock {row['clock']!r}")
    times = {who: _times(told, f"{who} in {where}") for who, told in row["times"].items()}
    return Measured(**{each.name: row[each.name] for each in fields(Measured)} | {"times": times})


def _times(told: Any, where: str) -> Times:
    _check(told, _OF_TIMES, where)
    seconds = [told["low"], told["median"], told["high"], *told["rounds"]]
    # NaN is not above 0 either
    if not all(isinstance(each, NUMBER) and 0 < each < float("inf") for each in seconds):
        raise ValueError(f"{where} has times that are not above 0: {seconds}")
    return Times(**{**told, "rounds": tuple(told["rounds"])})
