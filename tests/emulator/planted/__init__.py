"""Bugs planted in the kernels, one at a time: the tester is tested."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mutations import Change, changes

WRONG = "WRONG"  # no report, but another result than NumPy's


@dataclass(frozen=True)
class Bug(Change):
    """A change of a header of cuda_src, and what the emulated GPU is to say."""

    case: str  # of planted/cases.py
    shows: tuple[str, ...]  # the kinds of reports, or WRONG, by which it counts as caught
    missed: str  # why it is not caught
    seeds: int  # it shows under one of the first so many


def _bugs(table: Path) -> list[Bug]:
    """Read ``case: NAME: SHOWS, ...``, or without what it shows and ``missed: WHY``."""
    bugs = []
    for facts in changes(table):
        case, _, shows = facts.pop("case").partition(": ")
        missed, seeds = facts.pop("missed", ""), int(facts.pop("seeds", 3))
        kinds = tuple(shows.split(", ")) if shows else ()
        bugs.append(Bug(**facts, case=case, shows=kinds, missed=missed, seeds=seeds))
    return bugs


BUGS = [bug for table in sorted(Path(__file__).parent.glob("*.txt")) for bug in _bugs(table)]


def first_of_each(kind: Callable[[Bug], object]) -> dict[object, Bug]:
    """Return the first bug of each kind, of those that are caught."""
    return {kind(bug): bug for bug in reversed(BUGS) if not bug.missed}


def sample() -> list[Bug]:
    """Return what a sample plants: the first bug of each header, and of each report."""
    headers = first_of_each(lambda bug: bug.file)
    reports = first_of_each(lambda bug: bug.shows[0])
    return list({bug.name: bug for bug in (*headers.values(), *reports.values())}.values())
