"""The project's target table: which row is to reach what, beside which peers."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpualgo._bench.results import Measured
from gpualgo._bench.sizes import size_of
from gpualgo._bench.support import OURS

FILE = Path(__file__).with_name("targets.json")
Key = tuple[str, int, str]


@dataclass(frozen=True)
class Target:
    """What a row is to reach: a ratio to the best of its peers, or a time of our own."""

    key: Key
    limit: float
    is_time: bool = False  # the limit is in seconds
    peers: tuple[str, ...] = ()  # those that count; all of the row's without

    def reached(self, row: Measured) -> float | None:
        """Return our ratio, or our time; None where there is nothing to compare with."""
        if not self.is_time:
            return row.ratio(self.peers)
        return row.times[OURS].median if OURS in row.times else None

    def verdict(self, row: Measured | None) -> str:
        """Return "met", "not met" or "not run"."""
        reached = None if row is None else self.reached(row)
        if reached is None:
            return "not run"
        return "met" if reached <= self.limit else "not met"

    def peer(self, row: Measured) -> str | None:
        """Return the peer that the ratio was taken with."""
        return None if self.is_time else row.peer(self.peers)


def _of(entry: dict[str, Any]) -> list[Target]:
    is_time = "seconds" in entry
    limit, peers = entry["seconds" if is_time else "ratio"], tuple(entry.get("peers", ()))
    return [
        Target((name, size_of(n), entry["clock"]), limit, is_time, peers)
        for name in entry.get("rows", [entry.get("row")])
        for n in entry["n"]
    ]


@functools.cache
def table() -> dict[Key, Target]:
    """Return all targets, in the table's order."""
    entries = json.loads(FILE.read_text(encoding="utf-8"))
    return {target.key: target for entry in entries for target in _of(entry)}
