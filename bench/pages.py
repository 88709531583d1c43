"""Figures in the pages of README and docs: written from stored results, between marks.

    <!-- bench: FILE KIND key=value … -->
    …
    <!-- /bench -->

FILE is in bench/results/; of several, joined by +, rows of later ones stand in place of the same
rows of earlier ones, for runs whose commits differ. `python -m bench --write-docs` writes what
stands between the marks, and a test checks it. docs/benchmarks.md describes the kinds.
"""

from __future__ import annotations

import functools
import json
import re
import shlex
import statistics
from pathlib import Path

from bench import tables
from bench.environment import ROOT
from bench.peers import OURS, PEERS
from bench.row import Report, Row, read, size_of, size_text
from bench.tables import ratio_text, time_text

STORED = ROOT / "bench" / "results"
MARK = re.compile(r"(<!-- bench: ([^>]*?) -->)(.*?)(<!-- /bench -->)", re.DOTALL)
FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)  # examples stay as they are
BEGINNING = re.compile(r"\s*(?:(?:[-*+>]|\d+\.)\s+)*")  # of a line, where no word stands yet
FIGURE = re.compile(r"\d\s?(?:ns|µs|ms|s|GB/s|GKey/s)\b")


def all_pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def write() -> list[Path]:
    """Write all pages' figures anew, and return the pages that changed."""
    texts = {page: page.read_text(encoding="utf-8") for page in all_pages()}
    changed = [page for page, text in texts.items() if rewritten(text) != text]
    for page in changed:
        page.write_text(rewritten(texts[page]), encoding="utf-8")
    return changed


def rewritten(text: str) -> str:
    """Return a page's text with what stands between marks made from the stored results."""
    parts = FENCED.split(text)
    parts[::2] = [MARK.sub(_written, part) for part in parts[::2]]
    return "".join(parts)


def outside(text: str) -> str:
    """Return a page's text without what is made from results, and without examples."""
    return MARK.sub("", "".join(FENCED.split(text)[::2]))


def _written(found: re.Match[str]) -> str:
    """Return a pair of marks with what it stands for in between."""
    try:
        files, kind, *rest = shlex.split(found[2])
        if kind not in KINDS:
            raise ValueError(f"no such kind; there are {', '.join(KINDS)}")
        mark = Mark(_report(files), dict(each.split("=", 1) for each in rest))
        made: str = getattr(mark, kind)()
        before, is_table = found.string[: found.start()].rpartition("\n")[2], made.startswith("|")
        if is_table and before.strip():
            raise ValueError("the mark of a table stands alone on its line")
        if not is_table and BEGINNING.fullmatch(before):  # Markdown would not render that line
            raise ValueError("a mark within text does not begin a line; put a word in front of it")
    except (KeyError, ValueError) as error:
        raise ValueError(f"bench: {found[2]}: {error}") from error
    return found[1] + (f"\n\n{made}\n" if is_table else made) + found[4]


@functools.lru_cache(8)
def _report(files: str) -> Report:
    return functools.reduce(Report.over, (read(STORED / file) for file in files.split("+")))


class Mark:
    """What stands between two marks: each public method is a kind, and returns its text."""

    def __init__(self, report: Report, keys: dict[str, str]) -> None:
        self._report, self._keys = report, keys
        self._peers = keys["of"].split(",") if "of" in keys else []

    def _chosen(self) -> list[Row]:
        """Return the rows of the keys clock, algorithm, text and n."""
        keys = self._keys
        found = [
            row for row in self._report.rows
            if row.clock == keys.get("clock", row.clock)
            and row.algorithm in keys.get("algorithm", row.algorithm).split(",")
            and keys.get("text", "") in row.name
            and (keys.get("n", "no") == "no" or row.n == size_of(keys["n"]))
        ]  # fmt: skip
        if not found:
            raise ValueError("no row is like that")
        return found

    def _one(self) -> Row:
        key = self._keys["row"], size_of(self._keys["n"]), self._keys["clock"]
        if key not in self._report.by_key:
            raise ValueError(f"the results have no row {key}")
        return self._report.by_key[key]

    def _ratios(self) -> list[tuple[float, Row]]:
        """Return the chosen rows that have a peer, with our time over it, the largest first."""
        found = [(row.ratio(self._peers), row) for row in self._chosen()]
        there = [(ratio, row) for ratio, row in found if ratio is not None]
        return sorted(there, key=lambda pair: -pair[0])

    def _verdicts(self) -> list[tuple[tables.Target, str]]:
        goals = [(tables.targets().get(row.key), row) for row in self._chosen()]
        return [(goal, goal.verdict(row)) for goal, row in goals if goal is not None]

    def rows(self) -> str:
        """Return a table of rows, without the columns of which a key says no."""
        lines = tables.of_rows(self._chosen())
        kept = [i for i, name in enumerate(lines[0]) if self._keys.get(name) != "no"]
        return tables.markdown([[line[i] for i in kept] for line in lines])

    def summary(self) -> str:
        """Return a line for a few rows each, those that summaries.json names, if all are there."""
        summaries = json.loads((STORED / "summaries.json").read_text(encoding="utf-8"))
        lines, by_key = [["", OURS, "best peer"]], self._report.by_key
        for title, named in summaries[self._keys["of"]].items():
            rows = [by_key.get((name, size_of(n), clock)) for name, n, clock in named]
            there = [row for row in rows if row is not None and OURS in row.times]
            if len(there) == len(named):
                ours = "; ".join(time_text(row.times[OURS].median) for row in there)
                lines.append([title, ours, "; ".join(map(_peer, there))])
        return tables.markdown(lines)

    def not_met(self) -> str:
        """Return a table of the missed targets; those of one cause follow each other."""
        missed = [goal for goal, verdict in self._verdicts() if verdict == "not met"]
        causes = list(dict.fromkeys(goal.why for goal in missed))
        missed.sort(key=lambda goal: causes.index(goal.why))
        lines, last = [["work", "n", "reached", "target", "cause; next idea"]], ""
        found = tables.of_targets(self._report, [goal.key for goal in missed])[1:]
        for goal, (name, n, _, reached, peer, limit, _) in zip(missed, found, strict=True):
            told = f"{reached} of {peer}" if peer else reached
            lines.append([name, n, told, limit, "same" if goal.why == last else goal.why])
            last = goal.why
        return tables.markdown(lines).replace("---: |\n", "--- |\n", 1)

    def median(self) -> str:
        return ratio_text(statistics.median(ratio for ratio, _ in self._ratios()))

    def ahead(self) -> str:
        ratios = [ratio for ratio, _ in self._ratios()]
        return f"{sum(ratio < 1 for ratio in ratios)} of {len(ratios)}"

    def met(self) -> str:
        verdicts = [verdict for _, verdict in self._verdicts()]
        return f"{verdicts.count('met')} of {len(verdicts)}"

    def behind(self) -> str:
        over, sized = float(self._keys.get("over", "1")), "n" in self._keys
        texts = [f"`{row.name}`{'' if sized else f' of {size_text(row.n)}'} {ratio_text(ratio)}"
                 for ratio, row in self._ratios() if ratio > over]  # fmt: skip
        return ", ".join(texts) or "none"

    def time(self) -> str:
        times, who = self._one().times, self._keys.get("of", OURS)
        if who not in times:
            raise ValueError(f"the row has no {who}; it has {', '.join(times)}")
        return time_text(times[who].median)

    def ratio(self) -> str:
        ratio = self._one().ratio(self._peers)
        if ratio is None:
            raise ValueError("the row has no such peer")
        return ratio_text(ratio)

    def peer(self) -> str:
        return _peer(self._one())


def _peer(row: Row) -> str:
    times = [(each.median, who) for who, each in row.times.items() if who in PEERS]
    return f"{time_text(min(times)[0])} ({min(times)[1]})" if times else ""


KINDS = [name for name in vars(Mark) if not name.startswith("_")]
