"""Results as tables, beside targets and beside another run.

docs/benchmarks.md says when a row of two runs counts as changed. Of several peers in both runs the
one whose change is nearest to ours stands for the machine, so that a doubt is no alarm. Where
others used the cores nothing is said of the host's clock: threads suffer differently.
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
from typing import Any, NamedTuple

from bench import environment
from bench.peers import COPIES, OURS, PEERS
from bench.row import CLOCKS, Key, Report, Row, size_of, size_text

FLOORS = {"device": 0.03, "host": 0.10, "cpu": 0.10, "wall": 0.10, "start": 0.25}
VERDICTS = ("slower", "?", "faster", "same")
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
        if row is None or OURS not in row.times:
            return None
        return row.times[OURS].median if self.is_time else row.ratio(self.peers)

    def verdict(self, row: Row | None) -> str:
        reached = self.reached(row)
        return "not run" if reached is None else "met" if reached <= self.limit else "not met"

    def __str__(self) -> str:
        limit = f"{self.limit:.2f}" if self.limit >= 0.01 else f"{self.limit:.3g}"
        return f"≤ {time_text(self.limit) if self.is_time else limit}"

    def cells(self, row: Row | None) -> list[str]:
        reached = self.reached(row)
        told = "" if reached is None else (time_text if self.is_time else ratio_text)(reached)
        peer = None if self.is_time or row is None else row.peer(self.peers)
        return [told, peer or "", str(self), self.verdict(row)]


@functools.cache
def targets() -> dict[Key, Target]:
    entries = json.loads(Path(__file__).with_name("targets.json").read_text(encoding="utf-8"))
    found = [Target((name, size_of(n), each["clock"]), each.get("ratio") or each["seconds"],
                    "seconds" in each, tuple(each.get("peers", ())), each.get("why", ""))
             for each in entries for name in each.get("rows", [each.get("row")])
             for n in each["n"]]  # fmt: skip
    return {target.key: target for target in found}


def digits(value: float) -> str:
    return f"{value:.3g}" if value < 999.5 else f"{value:.0f}"


def in_units(value: float, units: dict[str, float]) -> str:
    """Return a value in three digits, as 1.25 ms; in two below the last unit."""
    for unit, size in units.items():
        if value >= 0.995 * size:
            return f"{digits(value / size)} {unit}"
    return f"{value / size:.2g} {unit}"


time_text = functools.partial(in_units, units={"s": 1.0, "ms": 1e-3, "µs": 1e-6})
memory_text = functools.partial(in_units, units={"GB": 1e9, "MB": 1e6, "kB": 1e3, "B": 1.0})


def ratio_text(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio >= 0.095 else f"{ratio:.2g}"


def of_rows(rows: Sequence[Row]) -> Lines:
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
            "" if memory is None else memory_text(memory),
        ])  # fmt: skip
    kept = [i for i in range(len(lines[0])) if i < 3 or any(line[i] for line in lines[1:])]
    return [[line[i] for i in kept] for line in lines]


def by_clock(rows: Iterable[Row]) -> dict[str, Lines]:
    chosen = {title: [row for row in rows if row.clock == c] for c, title in CLOCKS.items()}
    return {title: of_rows(each) for title, each in chosen.items() if each}


def of_targets(report: Report, keys: Iterable[Key]) -> Lines:
    return [["work", "n", "clock", "reached", "beside", "target", ""], *(
        [key[0], size_text(key[1]), key[2], *targets()[key].cells(report.by_key.get(key))]
        for key in keys)]  # fmt: skip


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
    told = before.environment, after.environment
    return [_change(old[row.key], row, told, floor) for row in after.rows
            if row.key in old and OURS in row.times]  # fmt: skip


def _change(old: Row, new: Row, told: tuple[Any, Any], floor: float | None) -> Change:
    a, b = old.times[OURS], new.times[OURS]
    factors = {
        who: times.median / old.times[who].median for who, times in new.times.items()
        if who in old.times and who not in (OURS, COPIES)
        and len({environment.version_of(who, each) for each in told}) == 1
    }  # fmt: skip
    factor, least = b.median / a.median, 1 + (FLOORS[new.clock] if floor is None else floor)
    peer = min(factors, key=lambda who: abs(math.log(factor / factors[who])), default=None)
    peer_factor = factors[peer] if peer else 1.0
    is_one_machine = environment.is_one_machine(*told)
    low, high = sorted([factor / peer_factor, factor if is_one_machine else factor / peer_factor])
    is_noise = is_one_machine and (
        (b.low <= a.high and a.low <= b.high)
        or abs(a.median - b.median) <= max(a.high - a.low, b.high - b.low)
    )  # fmt: skip
    is_changed = not is_noise and (low > least or high < 1 / least)
    is_busy = new.clock != "device" and any(map(environment.is_busy, told))
    if (peer is None and not is_one_machine) or (is_changed and is_busy):
        verdict = "?"
    else:
        verdict = "same" if not is_changed else "slower" if low > least else "faster"
    return Change(old, new, factor, peer, peer_factor, verdict)


def of_changes(found: list[Change]) -> Lines:
    shown = sorted(found, key=lambda each: (VERDICTS.index(each.verdict), -each.factor))
    head = ["work", "n", "clock", "before", "after", "change", "peer's change", "verdict"]
    return [head, *(
        [each.after.name, size_text(each.after.n), each.after.clock,
         *(time_text(row.times[OURS].median) for row in each[:2]), f"{each.factor - 1:+.1%}",
         f"{each.peer_factor - 1:+.1%} ({each.peer})" if each.peer else "", each.verdict]
        for each in shown if each.verdict != "same")]  # fmt: skip


def summary(found: list[Change], before: Report, after: Report) -> str:
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
    if not sys.stdout.isatty():
        print(f"\n## {title}\n\n{markdown(lines)}", end="")
        return
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    cells = [[f"{cell:{'>' if i else '<'}{widths[i]}}" for i, cell in enumerate(line)]
             for line in lines]  # fmt: skip
    text = re.sub(r"✓|(?<!not )\bmet\b|faster", GREEN, markdown(cells))
    print(f"\n{title}\n\n{re.sub('✗|not met|slower', RED, text)}", end="")
