"""Two runs of one machine, software and commit as one: a long run may be made in parts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpualgo._bench.results import Measured, Report
from gpualgo._bench.sizes import size_text

MAY_DIFFER = ("date", "load", "load_after")


def merged(first: Report, second: Report) -> Report:
    """Return both reports' rows, the second's where both have one; ValueError if unlike."""
    told, other = first.environment, second.environment
    unlike = [
        name for name in sorted(told.keys() | other.keys())
        if name not in MAY_DIFFER and told.get(name) != other.get(name)
    ]  # fmt: skip
    if unlike:
        differences = "; ".join(f"{name} {told.get(name)} and {other.get(name)}" for name in unlike)
        raise ValueError(f"runs that differ are not merged: {differences}; keep a file for each")
    return replace(over(first, second), environment=_environment(told, other))


def over(first: Report, second: Report) -> Report:
    """Return the first report with the rows of a later one, in place of its own of the same."""
    rows = first.by_key | second.by_key
    return Report(first.environment, tuple(rows.values()), _left_out(first, second))


def _environment(told: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return what holds for both: every date, and the greater load, so that a doubt stays."""
    dates = [date for each in (told, other) for date in str(each.get("date", "")).split(" and ")]
    loads: dict[str, Any] = {
        name: max((each.get(name) for each in (told, other)), key=lambda load: load or 0.0)
        for name in ("load", "load_after")
        if name in told or name in other
    }
    return {**told, **loads, "date": " and ".join(sorted({date for date in dates if date}))}


def _left_out(first: Report, second: Report) -> tuple[dict[str, str], ...]:
    """Return the notes on rows as they now are: a row is told of by the run that it is of."""
    later, all_rows = (set(map(_title, rows)) for rows in (second.rows, first.rows + second.rows))
    notes = [note for note in first.left_out if note["row"] not in later]
    notes += [
        note for note in second.left_out if note["row"] in later or note["row"] not in all_rows
    ]
    return tuple({(note["row"], note["who"]): note for note in notes}.values())


def _title(row: Measured) -> str:
    return f"{row.name}, n={size_text(row.n)}, {row.clock}"
