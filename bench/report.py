"""What a run found, as data: it goes to JSON and comes back the same; runs are merged."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench.row import Key, Row, Times

FORMAT = 1
CLOCKS = {  # with the titles of their tables
    "device": "Device time",
    "host": "Host time per call, nothing awaited",
    "cpu": "CPU backend, time to the result",
    "wall": "NumPy arrays beside a GPU, time to the result",
    "start": "Start-up",
}


@dataclass(frozen=True)
class Report:
    """All that one run found, where, and with what."""

    environment: dict[str, Any]
    rows: tuple[Row, ...]
    left_out: tuple[dict[str, str], ...] = ()

    @property
    def by_key(self) -> dict[Key, Row]:
        return {row.key: row for row in self.rows}


def to_text(report: Report) -> str:
    """Return a report as JSON, a row to a line, so that two of them can be compared by diff."""

    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, default=asdict)

    found = [{name: getattr(row, name) for name in ROW} for row in report.rows]
    rows = ",\n".join(map(text, found))
    notes = "\n" + ",\n".join(map(text, report.left_out)) + "\n" if report.left_out else ""
    return (
        f'{{\n"format": {FORMAT},\n"environment": {text(report.environment)},\n'
        f'"rows": [\n{rows}\n],\n"left_out": [{notes}]\n}}\n'
    )


def write(report: Report, path: Path) -> None:
    """Write a report's file in one step: what was there stays until the new one is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():  # a pipe, a terminal
        path.write_text(to_text(report), encoding="utf-8")
        return
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_text(to_text(report), encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


NUMBER = (int, float)
FILE = {"format": int, "environment": dict, "rows": list, "left_out": list}
ENVIRONMENT = {name: (*NUMBER, type(None)) for name in ("cores", "load", "load_after")}
NOTE = {"row": str, "who": str, "reason": str}
ROW = {
    "name": str, "n": int, "clock": str, "algorithm": str, "dtype": str,
    "entropy": (*NUMBER, type(None)), "bytes_moved": NUMBER, "beside": str, "times": dict,
}  # fmt: skip
TIMES = {
    "median": NUMBER, "low": NUMBER, "high": NUMBER, "count": int, "rounds": list,
    "memory": (int, type(None)),
}  # fmt: skip


def read(path: Path) -> Report:
    """Return the report of a file; ValueError if it is none of this format."""
    try:
        return _report(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} holds no results of gpualgo's benchmark: {error}") from error


def _report(found: Any) -> Report:
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ValueError(f"it is not of format {FORMAT}")
    _check(found, FILE, "the file")
    told = found["environment"]
    _check({name: told.get(name) for name in ENVIRONMENT}, ENVIRONMENT, "the environment")
    if not isinstance(told.get("versions"), dict):
        raise ValueError("its environment has no versions")
    for note in found["left_out"]:
        _check(note, NOTE, "left_out")
    rows = tuple(map(_row, found["rows"]))
    if len({row.key for row in rows}) < len(rows):
        raise ValueError("it has a row twice")
    return Report(told, rows, tuple(found["left_out"]))


def _check(found: Any, kinds: dict[str, Any], where: str) -> None:
    """Refuse what is no mapping of just these names to values of these types."""
    if not isinstance(found, dict) or found.keys() != kinds.keys():
        raise ValueError(f"{where} is to have {', '.join(kinds)}, and nothing else")
    for name, types in kinds.items():
        if not isinstance(found[name], types) or isinstance(found[name], bool):
            raise ValueError(f"{name} of {where} is {found[name]!r}")


def _row(found: Any) -> Row:
    _check(found, ROW, "a row")
    where = f"row {found['name']!r}"
    if found["n"] < 1 or found["clock"] not in CLOCKS:
        raise ValueError(f"{where} has n={found['n']} and clock {found['clock']!r}")
    times = {who: _times(each, f"{who} in {where}") for who, each in found["times"].items()}
    return Row(**{**found, "times": times})


def _times(found: Any, where: str) -> Times:
    _check(found, TIMES, where)
    seconds = [found["low"], found["median"], found["high"], *found["rounds"]]
    if not all(isinstance(each, NUMBER) and 0 < each < float("inf") for each in seconds):
        raise ValueError(f"{where} has times that are not above 0: {seconds}")
    return Times(**{**found, "rounds": tuple(found["rounds"])})


def merged(first: Report, second: Report) -> Report:
    """Return both reports' rows as of one run; ValueError unless they are of one machine,
    software and commit.
    """
    a, b = first.environment, second.environment
    loads = [name for name in ("load", "load_after") if name in a or name in b]
    unlike = [
        f"{name} {a.get(name)} and {b.get(name)}" for name in sorted(a.keys() | b.keys())
        if name not in ("date", "load", "load_after") and a.get(name) != b.get(name)
    ]  # fmt: skip
    if unlike:
        raise ValueError(
            f"runs that differ are not merged: {'; '.join(unlike)}; keep a file for each"
        )
    dates = {date for each in (a, b) for date in str(each.get("date", "")).split(" and ") if date}
    greater = {name: max(a.get(name) or 0.0, b.get(name) or 0.0) for name in loads}
    told = a | greater | {"date": " and ".join(sorted(dates))}  # the greater load: a doubt stays
    return replace(over(first, second), environment=told)


def over(first: Report, second: Report) -> Report:
    """Return the first report with the rows of a later one, in place of its own of the same.

    A note stands with the run that its row is of.
    """
    later, every = set(map(str, second.rows)), set(map(str, (*first.rows, *second.rows)))
    notes = [note for note in first.left_out if note["row"] not in later]
    notes += [each for each in second.left_out if each["row"] in later or each["row"] not in every]
    kept = {(note["row"], note["who"]): note for note in notes}
    rows = (first.by_key | second.by_key).values()
    return Report(first.environment, tuple(rows), tuple(kept.values()))
