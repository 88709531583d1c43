"""Results as tables, beside targets and beside another run.

A row of two runs counts as changed when three things hold:

- the spreads (`Times.low` to `Times.high`) of the two runs do not overlap, and the medians are
  further apart than the wider spread is wide;
- the medians differ by more than a floor, as two runs of one program on one machine do;
- the machine does not explain it: where a peer of the same version is in both runs, our change
  over the peer's passes the floor as well. Of several peers the one whose change is nearest to ours
  decides, so that a doubt is no alarm.

Where others used the cores of one of the runs, nothing is said of what the host's clock measured:
NumPy's one thread and our many suffer differently. Runs of different machines are compared by the
ratio to such a peer alone.
"""

from __future__ import annotations

import functools
import json
import math
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bench import environment
from bench.peers import OURS, PEERS
from bench.row import CLOCKS, Key, Report, Row, size_of, size_text

FLOORS = {"device": 0.03, "host": 0.10, "cpu": 0.10, "wall": 0.10, "start": 0.25}
VERDICTS = ("slower", "?", "faster", "same")
MEMORY = {"GB": 1e9, "MB": 1e6, "kB": 1e3, "B": 1.0}
RED, GREEN = (f"\x1b[{code}m\\g<0>\x1b[0m" for code in (31, 32))  # in a terminal
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
    keys = [((name, size_of(n), entry["clock"]), entry) for entry in entries
            for name in entry.get("rows", [entry.get("row")]) for n in entry["n"]]  # fmt: skip
    return {
        key: Target(key, entry.get("ratio") or entry["seconds"], "seconds" in entry,
                    tuple(entry.get("peers", ())), entry.get("why", ""))
        for key, entry in keys
    }  # fmt: skip


def digits(value: float) -> str:
    return f"{value:.3g}" if value < 999.5 else f"{value:.0f}"


def in_units(value: float, units: dict[str, float]) -> str:
    unit, size = next((each for each in units.items() if value >= 0.995 * each[1]), ("B", 1.0))
    return f"{digits(value / size)} {unit}"


def time_text(seconds: float) -> str:
    """Return a time in three digits, as 1.25 ms; in two below a microsecond."""
    if seconds < 0.995e-6:
        return f"{seconds * 1e6:.2g} µs"
    return in_units(seconds, {"s": 1.0, "ms": 1e-3, "µs": 1e-6})


def ratio_text(ratio: float) -> str:
    """Return a ratio in two decimals, a small one in two digits."""
    return f"{ratio:.2f}" if ratio >= 0.095 else f"{ratio:.2g}"


def of_rows(rows: Sequence[Row]) -> Lines:
    """Return a table of rows, its head first, without the columns that would be empty."""
    peers = [who for who in PEERS if any(who in row.times for row in rows)]
    has_memory = any(row.times[OURS].memory for row in rows if OURS in row.times)
    lines = [["work", "n", OURS, "GB/s", *peers, "others", "ratio", "target", "memory"]]
    for row in rows:
        rate, ratio, target = row.rate(), row.ratio(), targets().get(row.key)
        memory = row.times[OURS].memory if has_memory and OURS in row.times else None
        text = {who: time_text(each.median) for who, each in row.times.items()}
        goal = str(target or "")
        if target:
            goal += f" of {' or '.join(target.peers)}" if target.peers and not row.beside else ""
            goal += {"met": " ✓", "not met": " ✗", "not run": ""}[target.verdict(row)]
        lines.append([
            row.name, size_text(row.n), text.get(OURS, ""), digits(rate) if rate else "",
            *(text.get(who, "") for who in peers),
            ", ".join(f"{who} {text[who]}" for who in text if who not in (OURS, *peers)),
            "" if ratio is None else ratio_text(ratio), goal,
            "" if memory is None else in_units(memory, MEMORY),
        ])  # fmt: skip
    kept = [i for i in range(len(lines[0])) if i < 3 or any(line[i] for line in lines[1:])]
    return [[line[i] for i in kept] for line in lines]


def by_clock(rows: Iterable[Row]) -> dict[str, Lines]:
    chosen = {title: [row for row in rows if row.clock == c] for c, title in CLOCKS.items()}
    return {title: of_rows(each) for title, each in chosen.items() if each}


def of_targets(report: Report, keys: Iterable[Key]) -> Lines:
    lines, by_key = [["work", "n", "clock", "reached", "beside", "target", ""]], report.by_key
    for key in keys:
        target, row = targets()[key], by_key.get(key)
        reached = target.reached(row)
        told = "" if reached is None else (time_text if target.is_time else ratio_text)(reached)
        peer = row.peer(target.peers) if row is not None and not target.is_time else None
        lines.append([key[0], size_text(key[1]), key[2], told, peer or "", str(target),
                      target.verdict(row)])  # fmt: skip
    return lines


class Change(NamedTuple):
    """One row in two runs; `factor` above 1 is slower."""

    before: Row
    after: Row
    factor: float
    peer: str | None  # whose change was taken for the machine's
    peer_factor: float
    verdict: str  # "slower", "faster", "same", or "?" where nothing can be said


def changes(before: Report, after: Report, floor: float | None = None) -> list[Change]:
    old = {row.key: row for row in before.rows if OURS in row.times}
    return [_change(old[row.key], row, before, after, floor) for row in after.rows
            if row.key in old and OURS in row.times]  # fmt: skip


def _change(old: Row, new: Row, before: Report, after: Report, floor: float | None) -> Change:
    a, b, told = old.times[OURS], new.times[OURS], (before.environment, after.environment)
    factors = {
        who: new.times[who].median / old.times[who].median
        for who in new.times
        if who in old.times
        and who != OURS
        and len({environment.version_of(who, each) for each in told}) == 1
    }
    factor, least = b.median / a.median, 1 + (FLOORS[new.clock] if floor is None else floor)
    peer = min(factors, key=lambda who: abs(math.log(factor / factors[who])), default=None)
    peer_factor = factors[peer] if peer else 1.0
    low, high = sorted([factor / peer_factor, factor])
    is_noise = b.low <= a.high and a.low <= b.high
    is_noise |= abs(a.median - b.median) <= max(a.high - a.low, b.high - b.low)
    is_one_machine = environment.is_one_machine(*told)
    if not is_one_machine:
        low, high, is_noise = factor / peer_factor, factor / peer_factor, False
    is_changed = not is_noise and (low > least or high < 1 / least)
    is_busy = new.clock != "device" and any(map(environment.is_busy, told))
    if (peer is None and not is_one_machine) or (is_changed and is_busy):
        verdict = "?"
    else:
        verdict = "same" if not is_changed else "slower" if low > least else "faster"
    return Change(old, new, factor, peer, peer_factor, verdict)


def of_changes(found: list[Change]) -> Lines:
    shown = [each for each in found if each.verdict != "same"]
    shown.sort(key=lambda each: (VERDICTS.index(each.verdict), -each.factor))
    head = ["work", "n", "clock", "before", "after", "change", "peer's change", "verdict"]
    return [head, *(
        [each.after.name, size_text(each.after.n), each.after.clock,
         *(time_text(row.times[OURS].median) for row in each[:2]), f"{each.factor - 1:+.1%}",
         f"{each.peer_factor - 1:+.1%} ({each.peer})" if each.peer else "", each.verdict]
        for each in shown
    )]  # fmt: skip


def summary(found: list[Change], before: Report, after: Report) -> str:
    """Return in one sentence how many rows changed, and what was not in both runs."""
    verdicts = [each.verdict for each in found]
    slower, unknown, faster, same = map(verdicts.count, VERDICTS)
    missing = len(before.rows) + len(after.rows) - 2 * len(found)
    text = (
        f"{slower} slower, {faster} faster, {same} within noise, {unknown} that nothing can be "
        f"said of; {missing} rows are in one of the runs alone."
    )
    if not environment.is_one_machine(before.environment, after.environment):
        text += " The machines differ, so ratios to the same peer were compared."
    if environment.is_busy(before.environment) or environment.is_busy(after.environment):
        text += " Others used the cores: what the host's clock measured is no comparison (?)."
    return text


def markdown(lines: Sequence[Sequence[str]]) -> str:
    rule = ["---", *["---:"] * (len(lines[0]) - 1)]
    return "".join("| " + " | ".join(line) + " |\n" for line in (lines[0], rule, *lines[1:]))


def show(title: str, lines: Lines) -> None:
    """Print a table; in a terminal its columns are aligned, and a verdict has its colour."""
    if not sys.stdout.isatty():
        print(f"\n## {title}\n\n{markdown(lines)}", end="")
        return
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    cells = [[f"{cell:{'>' if i else '<'}{widths[i]}}" for i, cell in enumerate(line)]
             for line in lines]  # fmt: skip
    text = re.sub(r"✓|(?<!not )\bmet\b|faster", GREEN, markdown(cells))
    print(f"\n{title}\n\n{re.sub('✗|not met|slower', RED, text)}", end="")
