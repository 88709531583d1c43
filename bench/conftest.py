"""Prints what the rows took, at the end of a run of `pytest bench/`."""

from __future__ import annotations

from typing import Any

from bench import notes, tables
from bench.row import Row

TIMES: list[Row] = []


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for title, lines in tables.by_clock(TIMES).items():
        terminalreporter.section(f"{title}, small sizes", sep="-")
        terminalreporter.write(tables.markdown(lines))
    for note in notes.taken():
        terminalreporter.write_line(f"left out: {note['row']} {note['who']}: {note['reason']}")
