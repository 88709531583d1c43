"""What a run found, as data: it goes to JSON and comes back the same."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gpualgo._bench.support import OURS, Row

FORMAT = 1


@dataclass(frozen=True)
class Times:
    """One contender's samples of one row, in seconds for a call.

    `low` and `high` hold the middle half of the samples and the median of every round, so that they
    tell of the spread within a round and of the drift between rounds.
    """

    median: float
    low: float
    high: float
    count: int
    rounds: tuple[float, ...] = ()
    memory: int | None = None  # bytes that a call holds at once, its result included

    @classmethod
    def of(cls, rounds: Sequence[Sequence[float]], memory: int | None = None) -> Times:
        """Return the summary of rounds of samples."""
        samples = sorted(sample for times in rounds for sample in times)
        medians = tuple(_short(statistics.median(times)) for times in rounds)
        lower, upper = samples[len(samples) // 4], samples[(3 * len(samples)) // 4]
        middle = _short(statistics.median(samples))
        low, high = min(_short(lower), *medians, middle), max(_short(upper), *medians, middle)
        return cls(middle, low, high, len(samples), medians, memory)


def _short(seconds: float) -> float:
    """Return a time in six digits, more than any clock here tells: a file gives it back."""
    return float(f"{seconds:.6g}")


@dataclass(frozen=True)
class Measured:
    """One row and the times of all who took part."""

    name: str
    n: int
    clock: str
    algorithm: str = ""
    dtype: str = ""
    entropy: float | None = None
    bytes_moved: float = 0.0
    beside: str = ""
    times: dict[str, Times] = field(default_factory=dict)

    @classmethod
    def of(cls, row: Row, times: dict[str, Times]) -> Measured:
        return cls(
            row.name, row.n, row.clock, row.algorithm, " ".join(sorted(row.dtypes)), row.entropy,
            row.bytes_moved, row.beside, times,
        )  # fmt: skip

    @property
    def key(self) -> tuple[str, int, str]:
        return self.name, self.n, self.clock

    def peer(self, among: Iterable[str] = ()) -> str | None:
        """Return the fastest peer: among those named, else the row's own, else all."""
        wanted = list(among) or ([self.beside] if self.beside else [])
        peers = [
            who for who in self.times
            if who != OURS and (not wanted or any(who.startswith(name) for name in wanted))
        ]  # fmt: skip
        return min(peers, key=lambda who: self.times[who].median, default=None)

    def ratio(self, among: Iterable[str] = ()) -> float | None:
        """Return our time over the best peer's."""
        peer = self.peer(among)
        if peer is None or OURS not in self.times:
            return None
        return self.times[OURS].median / self.times[peer].median

    def rate(self, who: str = OURS) -> float | None:
        """Return the bytes that have to be moved over a contender's time, in GB/s."""
        if not self.bytes_moved or who not in self.times:
            return None
        return self.bytes_moved / self.times[who].median / 1e9


@dataclass(frozen=True)
class Report:
    """All that one run found, where, and with what."""

    environment: dict[str, Any]
    rows: tuple[Measured, ...]
    left_out: tuple[dict[str, str], ...] = ()

    @property
    def by_key(self) -> dict[tuple[str, int, str], Measured]:
        return {row.key: row for row in self.rows}


def to_text(report: Report) -> str:
    """Return a report as JSON, a row to a line, so that two of them can be compared by diff."""
    head = {"format": FORMAT, "environment": report.environment}
    parts = [f'"{key}": {json.dumps(value, ensure_ascii=False)}' for key, value in head.items()]
    rows = [json.dumps(asdict(row), ensure_ascii=False) for row in report.rows]
    parts.append('"rows": [\n' + ",\n".join(rows) + "\n]")
    parts.append(f'"left_out": {_lines(report.left_out)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _lines(values: Iterable[Any]) -> str:
    found = [json.dumps(value, ensure_ascii=False) for value in values]
    return "[\n" + ",\n".join(found) + "\n]" if found else "[]"


def write(report: Report, path: Path) -> None:
    """Write a report's file in one step: what was there stays until the new one is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():  # a pipe, a terminal
        path.write_text(to_text(report), encoding="utf-8")
        return
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_text(to_text(report), encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
