"""Two runs beside each other: what got slower or faster by more than noise.

A row counts as changed when three things hold:

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

import math
from dataclasses import dataclass

from bench import environment
from bench.peers import OURS
from bench.report import Report
from bench.row import Row, Times, size_text
from bench.tables import Lines, time_text

FLOORS = {"device": 0.03, "host": 0.10, "cpu": 0.10, "wall": 0.10, "start": 0.25}
ORDER = ("slower", "?", "faster", "same")


@dataclass(frozen=True)
class Change:
    """One row in two runs; `factor` above 1 is slower."""

    before: Row
    after: Row
    factor: float
    peer: str | None  # whose change was taken for the machine's
    peer_factor: float
    verdict: str  # "slower", "faster", "same", or "?" where nothing can be said


def changes(before: Report, after: Report, floor: float | None = None) -> list[Change]:
    old = before.by_key
    return [
        _change(old[row.key], row, before, after, floor)
        for row in after.rows
        if row.key in old and OURS in row.times and OURS in old[row.key].times
    ]


def _change(old: Row, new: Row, before: Report, after: Report, floor: float | None) -> Change:
    least = 1 + (FLOORS[new.clock] if floor is None else floor)
    factors = {
        who: new.times[who].median / old.times[who].median
        for who in new.times
        if who in old.times and _is_same_version(who, before, after)
    }
    factor = new.times[OURS].median / old.times[OURS].median
    factors.pop(OURS, None)
    peer = min(factors, key=lambda who: abs(math.log(factor / factors[who])), default=None)
    peer_factor = factors[peer] if peer else 1.0
    verdict = "same"
    if _is_one_machine(before, after):
        if _are_apart(old.times[OURS], new.times[OURS]):
            verdict = _verdict(factor, factor / peer_factor, least)
    else:
        verdict = _verdict(factor / peer_factor, factor / peer_factor, least) if peer else "?"
    if verdict != "same" and new.clock != "device" and _is_busy(before, after):
        verdict = "?"
    return Change(old, new, factor, peer, peer_factor, verdict)


def _verdict(factor: float, relative: float, least: float) -> str:
    if min(factor, relative) > least:
        return "slower"
    return "faster" if max(factor, relative) < 1 / least else "same"


def _is_one_machine(before: Report, after: Report) -> bool:
    names = ("gpu", "cpu", "cores")
    return all(before.environment.get(name) == after.environment.get(name) for name in names)


def _is_busy(*reports: Report) -> bool:
    return any(environment.is_busy(report.environment) for report in reports)


def _is_same_version(who: str, before: Report, after: Report) -> bool:
    old, new = (environment.version_of(who, report.environment) for report in (before, after))
    return old == new


def _are_apart(a: Times, b: Times) -> bool:
    widest = max(a.high - a.low, b.high - b.low)
    return (a.high < b.low or b.high < a.low) and abs(a.median - b.median) > widest


def lines(found: list[Change]) -> Lines:
    shown = [each for each in found if each.verdict != "same"]
    shown.sort(key=lambda each: (ORDER.index(each.verdict), -each.factor))
    head = ["work", "n", "clock", "before", "after", "change", "peer's change", "verdict"]
    return [head, *(
        [each.after.name, size_text(each.after.n), each.after.clock,
         time_text(each.before.times[OURS].median), time_text(each.after.times[OURS].median),
         f"{each.factor - 1:+.1%}",
         f"{each.peer_factor - 1:+.1%} ({each.peer})" if each.peer else "", each.verdict]
        for each in shown
    )]  # fmt: skip


def summary(found: list[Change], before: Report, after: Report) -> str:
    """Return in one sentence how many rows changed, and what was not in both runs."""
    verdicts = [each.verdict for each in found]
    slower, unknown, faster, same = (verdicts.count(verdict) for verdict in ORDER)
    missing = len(before.rows) + len(after.rows) - 2 * len(found)
    text = (
        f"{slower} slower, {faster} faster, {same} within noise, {unknown} that nothing can be "
        f"said of; {missing} rows are in one of the runs alone."
    )
    if not _is_one_machine(before, after):
        text += " The machines differ, so ratios to the same peer were compared."
    if _is_busy(before, after):
        text += " Others used the cores: what the host's clock measured is no comparison (?)."
    return text
