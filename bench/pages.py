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
from collections.abc import Callable
from pathlib import Path

from bench import report as reports
from bench import tables
from bench.environment import ROOT
from bench.peers import OURS, PEERS
from bench.report import Measured, Report
from bench.row import Key, size_of, size_text
from bench.tables import ratio_text, time_text

STORED = ROOT / "bench" / "results"
MARK = re.compile(r"(<!-- bench: ([^>]*?) -->)(.*?)(<!-- /bench -->)", re.DOTALL)
FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)  # examples stay as they are
FIGURE = re.compile(r"\d\s?(?:ns|µs|ms|s|GB/s|GKey/s)\b")
Keys = dict[str, str]


def all_pages() -> list[Path]:
    """Return the pages that may have figures."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def write() -> list[Path]:
    """Write all pages' figures anew, and return the pages that changed."""
    changed = []
    for page in all_pages():
        text = page.read_text(encoding="utf-8")
        made = rewritten(text)
        if made != text:
            page.write_text(made, encoding="utf-8")
            changed.append(page)
    return changed


def rewritten(text: str) -> str:
    """Return a page's text with what stands between marks made from the stored results."""
    parts = FENCED.split(text)
    for i in range(0, len(parts), 2):
        parts[i] = MARK.sub(lambda found: found[1] + _made(found[2]) + found[4], parts[i])
    return "".join(parts)


def outside(text: str) -> str:
    """Return a page's text without what is made from results, and without examples."""
    return MARK.sub("", "".join(FENCED.split(text)[::2]))


def _made(mark: str) -> str:
    files, kind, *rest = shlex.split(mark)
    keys = dict(each.split("=", 1) for each in rest)
    if kind not in KINDS:
        raise ValueError(f"bench: {mark}: no such kind; there are {', '.join(KINDS)}")
    try:
        made = KINDS[kind](_report(files), keys | {"file": files})
    except (KeyError, ValueError) as error:
        raise ValueError(f"bench: {mark}: {error}") from error
    return f"\n\n{made}\n" if kind in BLOCKS else made


@functools.lru_cache(8)
def _read(path: Path, changed: int) -> Report:
    return reports.read(path)


def _report(files: str) -> Report:
    paths = [STORED / file for file in files.split("+")]
    found = (_read(path, path.stat().st_mtime_ns) for path in paths)
    return functools.reduce(reports.over, found)


def _chosen(report: Report, keys: Keys) -> list[Measured]:
    """Return the rows of the keys clock, algorithm, text and n."""
    found = [
        row for row in report.rows
        if row.clock == keys.get("clock", row.clock)
        and row.algorithm in keys.get("algorithm", row.algorithm).split(",")
        and keys.get("text", "") in row.name
        and ("n" not in keys or row.n == size_of(keys["n"]))
    ]  # fmt: skip
    if not found:
        raise ValueError("no row is like that")
    return found


def _one(report: Report, keys: Keys) -> Measured:
    key = keys["row"], size_of(keys["n"]), keys["clock"]
    if key not in report.by_key:
        raise ValueError(f"the results have no row {key}")
    return report.by_key[key]


def _peers(keys: Keys) -> list[str]:
    return keys["of"].split(",") if "of" in keys else []


def _ratios(report: Report, keys: Keys) -> list[tuple[float, Measured]]:
    """Return the chosen rows that have a peer, with our time over it, the largest first."""
    found = [(row.ratio(_peers(keys)), row) for row in _chosen(report, keys)]
    return sorted(((ratio, row) for ratio, row in found if ratio is not None),
                  key=lambda pair: -pair[0])  # fmt: skip


def _verdicts(report: Report, keys: Keys) -> dict[Key, str]:
    goals = tables.targets()
    return {
        row.key: goals[row.key].verdict(row) for row in _chosen(report, keys) if row.key in goals
    }


def _rows(report: Report, keys: Keys) -> str:
    lines = tables.of_rows(_chosen(report, keys))
    if keys.get("memory") == "no" and lines[0][-1] == "memory":
        lines = [line[:-1] for line in lines]
    return tables.markdown(lines)


def _ahead(report: Report, keys: Keys) -> str:
    ratios = [ratio for ratio, _ in _ratios(report, keys)]
    return f"{sum(ratio < 1 for ratio in ratios)} of {len(ratios)}"


def _met(report: Report, keys: Keys) -> str:
    verdicts = list(_verdicts(report, keys).values())
    return f"{verdicts.count('met')} of {len(verdicts)}"


def _not_met(report: Report, keys: Keys) -> str:
    missed = [key for key, verdict in _verdicts(report, keys).items() if verdict == "not met"]
    return tables.markdown([line[:-1] for line in tables.of_targets(report, missed)])


def _left_out(report: Report, keys: Keys) -> str:
    """Return the names of the rows that have no times of ours, each once."""
    names = [note["row"].rsplit(", n=", 1)[0] for note in report.left_out if note["who"] == OURS]
    return ", ".join(f"`{name}`" for name in dict.fromkeys(names)) or "nothing"


def _behind(report: Report, keys: Keys) -> str:
    texts = [
        f"`{row.name}`{'' if 'n' in keys else f' of {size_text(row.n)}'} {ratio_text(ratio)}"
        for ratio, row in _ratios(report, keys)
        if ratio > float(keys.get("over", "1"))
    ]
    return ", ".join(texts) or "none"


def _ratio(report: Report, keys: Keys) -> str:
    ratio = _one(report, keys).ratio(_peers(keys))
    if ratio is None:
        raise ValueError("the row has no such peer")
    return ratio_text(ratio)


def _time(report: Report, keys: Keys) -> str:
    times, who = _one(report, keys).times, keys.get("of", OURS)
    if who not in times:
        raise ValueError(f"the row has no {who}; it has {', '.join(times)}")
    return time_text(times[who].median)


def _rate(report: Report, keys: Keys) -> str:
    rate = _one(report, keys).rate()
    if rate is None:
        raise ValueError("the row has no bytes")
    return f"{tables.digits(rate)} GB/s"


def _peer(row: Measured) -> str:
    """Return the time of the fastest library."""
    times = [(each.median, who) for who, each in row.times.items() if who in PEERS]
    return f"{time_text(min(times)[0])} ({min(times)[1]})" if times else ""


def _environment(report: Report, keys: Keys) -> str:
    if "+" in keys["file"]:
        raise ValueError("an environment is that of one file")
    told = report.environment
    software = ", ".join(f"{name} {version}" for name, version in told["versions"].items())
    names = {"GPU": "gpu", "driver": "driver", "processor": "cpu", "cores": "cores",
             "software": "", "commit": "commit", "date": "date", "load before": "load"}  # fmt: skip
    kept = {title: told.get(name) if name else software for title, name in names.items()}
    lines = [["", ""], ["---", "---"], *([k, v] for k, v in kept.items() if v is not None)]
    return "".join(f"| {name} | {value} |\n" for name, value in lines)


def _summary(report: Report, keys: Keys) -> str:
    """Return a line for a few rows each, those that summaries.json names, if all were measured."""
    summaries = json.loads((STORED / "summaries.json").read_text(encoding="utf-8"))
    lines = [["", OURS, "best peer"]]
    for title, named in summaries[keys["of"]].items():
        keys_of = [(name, size_of(n), clock) for name, n, clock in named]
        rows = [report.by_key[key] for key in keys_of if key in report.by_key]
        if len(rows) == len(named) and all(OURS in row.times for row in rows):
            ours = "; ".join(time_text(row.times[OURS].median) for row in rows)
            lines.append([title, ours, "; ".join(map(_peer, rows))])
    return tables.markdown(lines)


KINDS: dict[str, Callable[[Report, Keys], str]] = {
    "rows": _rows, "environment": _environment, "summary": _summary, "not_met": _not_met,
    "median": lambda report, keys: ratio_text(
        statistics.median(ratio for ratio, _ in _ratios(report, keys))
    ),
    "ahead": _ahead, "met": _met, "left_out": _left_out, "behind": _behind,
    "count": lambda report, keys: str(len(_chosen(report, keys))),
    "ratio": _ratio, "rate": _rate, "time": _time,
    "peer": lambda report, keys: _peer(_one(report, keys)),
}  # fmt: skip
BLOCKS = ("rows", "environment", "not_met", "summary")
