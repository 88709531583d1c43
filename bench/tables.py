"""Results as tables: coloured where `rich` is there and somebody looks, else Markdown."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.peers import OURS, PEERS
from bench.report import CLOCKS, Report
from bench.row import Key, Row, size_of, size_text

WORK_WIDTH = 20  # of the column that names the row, at least
Lines = list[list[str]]


@dataclass(frozen=True)
class Target:
    """What a row is to reach: a ratio to the best of its peers, or a time of our own."""

    key: Key
    limit: float
    is_time: bool = False  # the limit is in seconds
    peers: tuple[str, ...] = ()  # those that count; without them all of the row's
    why: str = ""  # it is missed: the cause and the next idea

    def reached(self, row: Row | None) -> float | None:
        """Return our ratio, or our time; None where there is nothing to compare with."""
        if row is None or OURS not in row.times:
            return None
        return row.times[OURS].median if self.is_time else row.ratio(self.peers)

    def verdict(self, row: Row | None) -> str:
        reached = self.reached(row)
        return "not run" if reached is None else "met" if reached <= self.limit else "not met"

    def __str__(self) -> str:
        limit = f"{self.limit:.2f}" if self.limit >= 0.01 else f"{self.limit:.3g}"
        return f"≤ {time_text(self.limit) if self.is_time else limit}"


@functools.cache
def targets() -> dict[Key, Target]:
    entries = json.loads(Path(__file__).with_name("targets.json").read_text(encoding="utf-8"))
    found = [
        Target((name, size_of(n), entry["clock"]), entry.get("ratio") or entry["seconds"],
               "seconds" in entry, tuple(entry.get("peers", ())), entry.get("why", ""))
        for entry in entries
        for name in entry.get("rows", [entry.get("row")])
        for n in entry["n"]
    ]  # fmt: skip
    return {target.key: target for target in found}


def digits(value: float) -> str:
    return f"{value:.3g}" if value < 999.5 else f"{value:.0f}"


def time_text(seconds: float) -> str:
    """Return a time in three digits, as 1.25 ms."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 0.995:
            return f"{digits(seconds * scale)} {unit}"
    return f"{seconds * 1e6:.2g} µs"


def ratio_text(ratio: float) -> str:
    """Return a ratio in two decimals, a small one in two digits."""
    return f"{ratio:.2f}" if ratio >= 0.095 else f"{ratio:.2g}"


def _bytes_text(count: int | None) -> str:
    if count is None:
        return ""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count} B"


def of_rows(rows: Iterable[Row]) -> Lines:
    """Return a table of rows, its head first: times, rate, ratio to the best peer, target.

    Columns that would be empty are left out.
    """
    rows = list(rows)
    peers = [who for who in PEERS if any(who in row.times for row in rows)]
    has_memory = any(row.times[OURS].memory for row in rows if OURS in row.times)
    head = ["work", "n", OURS, "GB/s", *peers, "others", "ratio", "target", "memory"]
    lines = [head]
    for row in rows:
        times, rate, ratio = row.times, row.rate(), row.ratio()
        text = {who: time_text(each.median) for who, each in times.items()}
        others = [f"{who} {text[who]}" for who in times if who not in (OURS, *peers)]
        lines.append([
            row.name, size_text(row.n), text.get(OURS, ""), digits(rate) if rate else "",
            *(text.get(who, "") for who in peers), ", ".join(others),
            ratio_text(ratio) if ratio is not None else "", _target(row),
            _bytes_text(times[OURS].memory) if has_memory and OURS in times else "",
        ])  # fmt: skip
    kept = [i for i, name in enumerate(head) if i < 3 or any(line[i] for line in lines[1:])]
    return [[line[i] for i in kept] for line in lines]


def _target(row: Row) -> str:
    target = targets().get(row.key)
    if target is None:
        return ""
    beside = f" of {' or '.join(target.peers)}" if target.peers and not row.beside else ""
    mark = {"met": " ✓", "not met": " ✗", "not run": ""}[target.verdict(row)]
    return f"{target}{beside}{mark}"


def by_clock(rows: Iterable[Row]) -> dict[str, Lines]:
    rows = list(rows)
    chosen = {title: [row for row in rows if row.clock == c] for c, title in CLOCKS.items()}
    return {title: of_rows(each) for title, each in chosen.items() if each}


def of_targets(report: Report, keys: Iterable[Key]) -> Lines:
    lines = [["work", "n", "clock", "reached", "beside", "target", ""]]
    for key in keys:
        target, row = targets()[key], report.by_key.get(key)
        reached = target.reached(row)
        told = "" if reached is None else (time_text if target.is_time else ratio_text)(reached)
        peer = row.peer(target.peers) if row is not None and not target.is_time else None
        name, n, clock = key
        lines.append([name, size_text(n), clock, told, peer or "", str(target),
                      target.verdict(row)])  # fmt: skip
    return lines


def markdown(lines: Sequence[Sequence[str]]) -> str:
    rule = ["---", *["---:"] * (len(lines[0]) - 1)]
    return "".join("| " + " | ".join(line) + " |\n" for line in (lines[0], rule, *lines[1:]))


def _console() -> Any:
    """Return rich's console if it is there and somebody looks at it."""
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console() if sys.stdout.isatty() else None


def show(title: str, lines: Lines) -> None:
    """Print a table; a verdict has its colour where there are colours, and room for all columns."""
    console = _console()
    columns = list(zip(*lines, strict=True))
    width = WORK_WIDTH + sum(max(map(len, each)) for each in columns[1:]) + 3 * len(columns)
    if console is None or width > console.width:  # the terminal breaks plain lines
        print(f"\n## {title}\n\n{markdown(lines)}", end="")
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", header_style="bold", box=box.SIMPLE_HEAD)
    table.add_column(lines[0][0], min_width=WORK_WIDTH)
    for name in lines[0][1:]:
        table.add_column(name, justify="right", no_wrap=True)
    for line in lines[1:]:
        table.add_row(*(Text(cell, style=_style(cell)) for cell in line))
    console.print(table)


def _style(cell: str) -> str:
    if cell.endswith("✓") or cell in ("met", "faster"):
        return "green"
    return "red" if cell.endswith("✗") or cell in ("not met", "slower") else ""
