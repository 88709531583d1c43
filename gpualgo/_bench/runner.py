"""Runs rows: contenders are checked, then timed in turns, so that drift meets all of them."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import gpualgo as ga
from gpualgo._bench import clocks, memory, notes
from gpualgo._bench.checks import check
from gpualgo._bench.results import Measured, Times
from gpualgo._bench.support import OURS, Row, Work, free_memory, is_wanted

ROW_SECONDS = 1.5  # a row that took longer stops after its second round


@dataclass(frozen=True)
class Effort:
    """How long to measure."""

    rounds: int = 5
    scale: float = 1.0  # of a round's length
    until: float = float("inf")  # by time.perf_counter(): no row begins later


def place(row: Row) -> AbstractContextManager[None]:
    """Return the context of a row: NumPy arrays would go to the GPU where there is one."""
    return ga.default_device("cpu") if row.clock == "cpu" else nullcontext()


def checked(row: Row) -> Work:
    """Return a row's work with the peers that are wanted, all of whose results are right."""
    work = row.build(row.n)
    for who in list(work.contenders):
        if not is_wanted(who):
            del work.contenders[who]
    check(row, work)
    return work


def run(row: Row, effort: Effort) -> Measured:
    """Check a row's contenders and time them; AssertionError if our result is wrong."""
    with place(row):
        work = checked(row)
        samples: dict[str, list[list[float]]] = {who: [] for who in work.contenders}
        began = time.perf_counter()
        for finished in range(effort.rounds):
            if finished >= 2 and time.perf_counter() - began > ROW_SECONDS:
                break
            for who, contender in work.contenders.items():
                samples[who].append(clocks.measure(row.clock, who, contender, effort.scale))
        held = {who: _memory(row, who, work) for who in work.contenders}
    return Measured.of(row, {who: Times.of(each, held[who]) for who, each in samples.items()})


def _memory(row: Row, who: str, work: Work) -> int | None:
    try:
        return memory.taken(row.clock, who, work.contenders[who])
    except Exception as reason:  # its time is worth having without it
        notes.add("peak memory", who, f"{type(reason).__name__}: {reason}")
        return None


def run_all(
    rows: Iterable[Row], effort: Effort, found: list[Measured],
    told: Callable[[Row], None] = lambda row: None,
) -> bool:  # fmt: skip
    """Run rows in turn, add what was measured, and return whether one of ours failed."""
    failed = False
    for row in rows:
        if time.perf_counter() > effort.until:
            notes.add(str(row), OURS, "not begun: the time for this run was over")
            continue
        told(row)
        try:
            found.append(run(row, effort))
        except Exception as error:  # the other rows are worth having
            failed = True
            notes.add(str(row), OURS, f"FAILED: {type(error).__name__}: {error}")
        gc.collect()
        free_memory()
    return failed
