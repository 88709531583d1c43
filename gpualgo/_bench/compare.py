"""Two runs beside each other: what got slower or faster by more than noise.

A row counts as changed when three things hold:

- the spreads do not overlap: the middle half of the samples and the medians of all rounds
  (`Times.low` to `Times.high`) of one run lie wholly above those of the other, and the medians
  are further apart than the wider spread is wide;
- the medians differ by more than a floor, as two runs of one program on one machine do: 3 % of
  device time, 10 % of times that the host's clock tells, 25 % of starts of processes;
- the machine does not explain it: where a peer of the same version is in both runs, our change
  over the peer's passes the floor as well. What all contenders share (clocks, memory's speed,
  load) falls out; of several peers the one whose change is nearest to ours decides, so that a
  doubt is no alarm.

Where others used the cores of one of the runs (`environment.is_busy`), nothing is said of what the
host's clock told: NumPy's one thread and our many suffer differently.

Runs of different machines are compared by the ratio to such a peer alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from gpualgo._bench import environment
from gpualgo._bench.results import Measured, Report, Times
from gpualgo._bench.sizes import size_text
from gpualgo._bench.support import OURS
from gpualgo._bench.table import Cells, time_text

FLOORS = {"device": 0.03, "host": 0.10, "cpu": 0.10, "wall": 0.10, "start": 0.25}


@dataclass(frozen=True)
class Change:
    """One row in two runs; `factor` above 1 is slower."""

    before: Measured
    after: Measured
    factor: float
    peer: str | None  # whose change was taken for the machine's
    peer_factor: float
    verdict: str  # "slower", "faster", "same", or "?" where nothing can be said


def changes(before: Report, after: Report, floor: float | None = None) -> list[Change]:
    """Return the rows that both runs have, in the order of the second."""
    old = before.by_key
    one_machine = _machine(before.environment) == _machine(after.environment)
    return [
        _change(old[row.key], row, before, after, one_machine, floor)
        for row in after.rows
        if row.key in old and OURS in row.times and OURS in old[row.key].times
    ]


def _machine(told: dict[str, Any]) -> tuple[Any, ...]:
    return told.get("gpu"), told.get("cpu"), told.get("cores")


def _change(
    old: Measured, new: Measured, before: Report, after: Report, one_machine: bool,
    floor: float | None,
) -> Change:  # fmt: skip
    least = FLOORS[new.clock] if floor is None else floor
    factor = new.times[OURS].median / old.times[OURS].median
    peers = {
        who: new.times[who].median / old.times[who].median
        for who in new.times
        if who != OURS and who in old.times and _is_same(who, before, after)
    }
    peer = min(peers, key=lambda who: abs(math.log(factor / peers[who])), default=None)
    relative = factor / peers[peer] if peer else factor
    if not one_machine and peer is None:
        return Change(old, new, factor, None, 1.0, "?")
    apart = not one_machine or _are_apart(old.times[OURS], new.times[OURS])
    verdict = "same"
    if apart and (not one_machine or factor > 1 + least) and relative > 1 + least:
        verdict = "slower"
    elif apart and (not one_machine or factor < 1 / (1 + least)) and relative < 1 / (1 + least):
        verdict = "faster"
    if verdict != "same" and new.clock != "device" and _is_busy(before, after):
        verdict = "?"
    return Change(old, new, factor, peer, peers[peer] if peer else 1.0, verdict)


def _is_busy(*reports: Report) -> bool:
    return any(environment.is_busy(report.environment) for report in reports)


def _is_same(who: str, before: Report, after: Report) -> bool:
    """Return whether a peer's code is the same in both runs; unknown versions are taken to be."""
    old, new = (environment.version_of(who, report.environment) for report in (before, after))
    return old == new


def _are_apart(a: Times, b: Times) -> bool:
    widest = max(a.high - a.low, b.high - b.low)
    return (a.high < b.low or b.high < a.low) and abs(a.median - b.median) > widest


def lines(found: list[Change], all_rows: bool = False) -> list[Cells]:
    """Return the table of what changed, slower ones first, or of all rows."""
    order = {"slower": 0, "?": 1, "faster": 2, "same": 3}
    shown = [each for each in found if all_rows or each.verdict != "same"]
    shown.sort(key=lambda each: (order[each.verdict], -each.factor))
    head = ["work", "n", "clock", "before", "after", "change", "peer's change", "verdict"]
    return [head, *(_line(each) for each in shown)]


def _line(each: Change) -> Cells:
    peer = f"{each.peer_factor - 1:+.1%} ({each.peer})" if each.peer else ""
    return [
        each.after.name, size_text(each.after.n), each.after.clock,
        time_text(each.before.times[OURS].median), time_text(each.after.times[OURS].median),
        f"{each.factor - 1:+.1%}", peer, each.verdict,
    ]  # fmt: skip


def summary(found: list[Change], before: Report, after: Report) -> str:
    """Return in one sentence how many rows changed, and what was not in both runs."""
    counts = {name: sum(each.verdict == name for each in found) for name in ("slower", "faster")}
    rest = sum(each.verdict == "same" for each in found)
    missing = len(before.rows) + len(after.rows) - 2 * len(found)
    machines = "" if _machine(before.environment) == _machine(after.environment) else (
        " The machines differ, so ratios to the same peer were compared."
    )  # fmt: skip
    busy = " Others used the cores: what the host's clock told is no comparison (?)." * _is_busy(
        before, after
    )
    return (
        f"{counts['slower']} slower, {counts['faster']} faster, {rest} within noise, "
        f"{sum(each.verdict == '?' for each in found)} that nothing can be said of; "
        f"{missing} rows are in one of the runs alone.{machines}{busy}"
    )
