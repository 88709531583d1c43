"""Results as tables: coloured where `rich` is there and somebody looks, else Markdown."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from gpualgo._bench import targets
from gpualgo._bench.results import Measured, Report
from gpualgo._bench.sizes import size_text
from gpualgo._bench.support import OURS, PEERS
from gpualgo._bench.targets import Target

TITLES = {
    "device": "Device time",
    "host": "Host time per call, nothing awaited",
    "cpu": "CPU backend, time to the result",
    "wall": "NumPy arrays beside a GPU, time to the result",
    "start": "Start-up",
}
WORK_WIDTH = 20  # of the column that tells what was done, at least
Cells = list[str]


def time_text(seconds: float) -> str:
    """Return a time in three digits, as 1.25 ms."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 0.995:
            return f"{_digits(seconds * scale)} {unit}"
    return f"{seconds * 1e6:.2g} µs"


def _digits(value: float) -> str:
    return f"{value:.3g}" if value < 999.5 else f"{value:.0f}"


def rate_text(rate: float) -> str:
    """Return GB/s in three digits, or whole."""
    return _digits(rate)


def bytes_text(count: int | None) -> str:
    """Return a number of bytes in the unit that suits it."""
    if count is None:
        return ""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count} B"


def ratio_text(ratio: float) -> str:
    """Return a ratio in two decimals, a small one in two digits."""
    return f"{ratio:.2f}" if ratio >= 0.095 else f"{ratio:.2g}"


def limit_text(limit: float) -> str:
    """Return the ratio that a target asks for."""
    return f"{limit:.2f}" if limit >= 0.01 else f"{limit:.3g}"


def _limit(target: Target | None, row: Measured) -> str:
    if target is None:
        return ""
    limit = time_text(target.limit) if target.is_time else limit_text(target.limit)
    beside = f" of {' or '.join(target.peers)}" if target.peers and not row.beside else ""
    mark = {"met": " ✓", "not met": " ✗", "not run": ""}[target.verdict(row)]
    return f"≤ {limit}{beside}{mark}"


def cells(row: Measured, peers: Sequence[str], with_memory: bool) -> Cells:
    """Return one line: work, size, our time and rate, the peers' times, ratio, target."""
    times, rate, ratio = row.times, row.rate(), row.ratio()
    found = [row.name, size_text(row.n)]
    found.append(time_text(times[OURS].median) if OURS in times else "")
    found.append(rate_text(rate) if rate is not None else "")
    found += [time_text(times[who].median) if who in times else "" for who in peers]
    found.append(", ".join(
        f"{who} {time_text(each.median)}"
        for who, each in times.items() if who != OURS and who not in peers
    ))  # fmt: skip
    found.append("" if ratio is None else ratio_text(ratio))
    found.append(_limit(targets.table().get(row.key), row))
    if with_memory:
        found.append(bytes_text(times[OURS].memory) if OURS in times else "")
    return found


def of_rows(rows: Iterable[Measured]) -> list[Cells]:
    """Return the table of some rows, its head first; empty columns are left out."""
    rows = list(rows)
    peers = [who for who in PEERS if any(who in row.times for row in rows)]
    with_memory = any(row.times[OURS].memory for row in rows if OURS in row.times)
    head = ["work", "n", OURS, "GB/s", *peers, "others", "ratio", "target"]
    lines = [head + ["memory"] * with_memory]
    lines += [cells(row, peers, with_memory) for row in rows]
    kept = [
        i for i, name in enumerate(lines[0])
        if name in ("work", "n", OURS) or any(line[i] for line in lines[1:])
    ]  # fmt: skip
    return [[line[i] for i in kept] for line in lines]


def by_clock(rows: Iterable[Measured]) -> dict[str, list[Cells]]:
    """Return the tables of a report by their titles."""
    rows = list(rows)
    found = {}
    for clock, title in TITLES.items():
        chosen = [row for row in rows if row.clock == clock]
        if chosen:
            found[title] = of_rows(chosen)
    return found


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown, numbers to the right."""
    rule = ["---", *["---:"] * (len(lines[0]) - 1)]
    return "".join("| " + " | ".join(line) + " |\n" for line in (lines[0], rule, *lines[1:]))


def _console() -> Any:
    """Return rich's console if it is there and somebody looks at it."""
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console() if sys.stdout.isatty() else None


def show(title: str, lines: Sequence[Sequence[str]]) -> None:
    """Print a table; a verdict has its colour where there are colours, and room for all columns."""
    console = _console()
    if console is None or _width(lines) > console.width:  # the terminal breaks plain lines
        print(f"\n## {title}\n\n{markdown(lines)}", end="")
    else:
        console.print(_coloured(title, lines))


def _width(lines: Sequence[Sequence[str]]) -> int:
    """Return how wide a table is at least, if the first column alone is broken."""
    columns = list(zip(*lines, strict=True))
    return WORK_WIDTH + sum(max(map(len, column)) for column in columns[1:]) + 3 * len(columns)


def _coloured(title: str, lines: Sequence[Sequence[str]]) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(title=title, title_justify="left", header_style="bold", box=box.SIMPLE_HEAD)
    for i, name in enumerate(lines[0]):
        made.add_column(
            name,
            justify="right" if i else "left",
            no_wrap=bool(i),
            min_width=0 if i else WORK_WIDTH,
        )
    for line in lines[1:]:
        made.add_row(*(Text(cell, style=_style(cell)) for cell in line))
    return made


def _style(cell: str) -> str:
    if cell.endswith("✓") or cell in ("met", "faster"):
        return "green"
    if cell.endswith("✗") or cell in ("not met", "slower"):
        return "red"
    return "dim" if cell == "not run" else ""


def of_targets(report: Report, keys: Iterable[targets.Key]) -> list[Cells]:
    """Return the target table with what a report has reached of it."""
    rows, lines = report.by_key, [["work", "n", "clock", "reached", "beside", "target", ""]]
    for key in keys:
        target, row = targets.table()[key], rows.get(key)
        reached = None if row is None else target.reached(row)
        told = time_text if target.is_time else ratio_text
        lines.append([
            key[0], size_text(key[1]), key[2], "" if reached is None else told(reached),
            (target.peer(row) or "") if row is not None else "",
            f"≤ {time_text(target.limit) if target.is_time else limit_text(target.limit)}",
            target.verdict(row),
        ])  # fmt: skip
    return lines
