"""Figures in a checkout's pages: written from stored results, between marks.

    <!-- bench: FILE KIND key=value … -->
    …
    <!-- /bench -->

FILE is in bench/results/; of several, joined by +, rows of later ones stand in place of the same
rows of earlier ones, for runs whose commits differ. What stands between the marks is made anew by
`gpualgo bench --write-docs`, and a test sees that it agrees. Kinds:

- ``rows``: the table of the rows that the keys choose (clock, algorithm, text, n), ``memory=no``
  without that column;
- ``summary``: the table that ``of=`` names in bench/results/summaries.json: a line for a few rows
  each, our times beside those of the best peer;
- ``not_met``: the targets that were missed, with the keys of ``rows``;
- ``environment``: machine, software, commit and date;
- within a line, ``time``, ``ratio``, ``peer`` or ``rate`` with ``row="…" n=2^20 clock=cpu``: one
  figure, ``of="…"`` that of another contender; with the keys of ``rows`` ``median``, the median
  ratio, ``ahead``, in how many rows of those with a peer we took less time, ``met``, in how many
  of those with a target it is met, ``count``, how many rows there are, and ``behind``, the names
  and ratios of those above ``over=`` (1 without it); ``left_out``: what the run has no times of.
"""

from __future__ import annotations

import functools
import json
import re
import shlex
import statistics
from collections.abc import Callable
from pathlib import Path

import gpualgo as ga
from gpualgo._bench import reading, table, targets
from gpualgo._bench.merge import over
from gpualgo._bench.results import Measured, Report
from gpualgo._bench.sizes import size_of, size_text
from gpualgo._bench.support import OURS, PEERS

ROOT = Path(ga.__file__).resolve().parents[1]
MARK = re.compile(r"(<!-- bench: ([^>]*?) -->)(.*?)(<!-- /bench -->)", re.DOTALL)
FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)  # examples stay as they are
FIGURE = re.compile(r"\d\s?(?:ns|µs|ms|s|GB/s|GKey/s)\b")
Keys = dict[str, str]


def stored() -> Path:
    return ROOT / "bench" / "results"


def all_pages() -> list[Path]:
    """Return the pages that may have figures; OSError where this is no checkout."""
    if not stored().is_dir():
        raise OSError(f"{ROOT} is no checkout of gpualgo: there are no pages to write")
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
    parts[::2] = [
        MARK.sub(lambda found: found[1] + _made(found[2]) + found[4], part) for part in parts[::2]
    ]
    return "".join(parts)


def outside(text: str) -> str:
    """Return a page's text without what is made from results, and without examples."""
    return MARK.sub("", "".join(FENCED.split(text)[::2]))


def _made(mark: str) -> str:
    file, kind, *rest = shlex.split(mark)
    keys = dict(each.split("=", 1) for each in rest)
    if kind not in KINDS:
        raise ValueError(f"bench: {mark}: no such kind; there are {', '.join(KINDS)}")
    try:
        made = KINDS[kind](_report(file), keys | {"file": file})
    except (KeyError, ValueError) as error:
        raise ValueError(f"bench: {mark}: {error}") from error
    return f"\n\n{made}\n" if kind in BLOCKS else made


@functools.lru_cache(8)
def _read(path: Path, changed: int) -> Report:
    return reading.read(path)


def _report(files: str) -> Report:
    paths = [stored() / file for file in files.split("+")]
    return functools.reduce(over, (_read(path, path.stat().st_mtime_ns) for path in paths))


def _chosen(report: Report, keys: Keys) -> list[Measured]:
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
    try:
        return report.by_key[key]
    except KeyError:
        raise ValueError(f"the results have no row {key}") from None


def _rows(report: Report, keys: Keys) -> str:
    lines = table.of_rows(_chosen(report, keys))
    if keys.get("memory") == "no" and lines[0][-1] == "memory":
        lines = [line[:-1] for line in lines]
    return table.markdown(lines)


def _ratios(report: Report, keys: Keys) -> list[tuple[Measured, float]]:
    """Return the chosen rows that have a peer, with our time over it."""
    among = keys["of"].split(",") if "of" in keys else ()
    found = [(row, row.ratio(among)) for row in _chosen(report, keys)]
    return [(row, ratio) for row, ratio in found if ratio is not None]


def _median(report: Report, keys: Keys) -> str:
    return table.ratio_text(statistics.median(ratio for _, ratio in _ratios(report, keys)))


def _ahead(report: Report, keys: Keys) -> str:
    ratios = [ratio for _, ratio in _ratios(report, keys)]
    return f"{sum(ratio < 1 for ratio in ratios)} of {len(ratios)}"


def _verdicts(report: Report, keys: Keys) -> dict[targets.Key, str]:
    asked, goals = _chosen(report, keys), targets.table()
    return {row.key: goals[row.key].verdict(row) for row in asked if row.key in goals}


def _met(report: Report, keys: Keys) -> str:
    verdicts = list(_verdicts(report, keys).values())
    return f"{verdicts.count('met')} of {len(verdicts)}"


def _not_met(report: Report, keys: Keys) -> str:
    missed = [key for key, verdict in _verdicts(report, keys).items() if verdict == "not met"]
    return table.markdown([line[:-1] for line in table.of_targets(report, missed)])


def _left_out(report: Report, keys: Keys) -> str:
    """Return the names of the rows that have no times of ours, each once."""
    names = [note["row"].rsplit(", n=", 1)[0] for note in report.left_out if note["who"] == OURS]
    return ", ".join(f"`{name}`" for name in dict.fromkeys(names)) or "nothing"


def _behind(report: Report, keys: Keys) -> str:
    found = [pair for pair in _ratios(report, keys) if pair[1] > float(keys.get("over", "1"))]
    texts = []
    for row, ratio in sorted(found, key=lambda pair: -pair[1]):
        size = "" if "n" in keys else f" of {size_text(row.n)}"
        texts.append(f"`{row.name}`{size} {table.ratio_text(ratio)}")
    return ", ".join(texts) or "none"


def _ratio(report: Report, keys: Keys) -> str:
    ratio = _one(report, keys).ratio(keys["of"].split(",") if "of" in keys else ())
    if ratio is None:
        raise ValueError("the row has no such peer")
    return table.ratio_text(ratio)


def _time(report: Report, keys: Keys) -> str:
    times, who = _one(report, keys).times, keys.get("of", OURS)
    if who not in times:
        raise ValueError(f"the row has no {who}; it has {', '.join(times)}")
    return table.time_text(times[who].median)


def _rate(report: Report, keys: Keys) -> str:
    rate = _one(report, keys).rate()
    if rate is None:
        raise ValueError("the row tells no bytes")
    return f"{table.rate_text(rate)} GB/s"


def _environment(report: Report, keys: Keys) -> str:
    if "+" in keys["file"]:
        raise ValueError("an environment is that of one file")
    told = report.environment
    versions = ", ".join(f"{name} {version}" for name, version in told["versions"].items())
    kept = {
        "GPU": told.get("gpu"), "driver": told.get("driver"), "processor": told.get("cpu"),
        "cores": told.get("cores"), "software": versions, "commit": told.get("commit"),
        "date": told.get("date"), "load before": told.get("load"),
    }  # fmt: skip
    lines = [["", ""], *([key, str(value)] for key, value in kept.items() if value is not None)]
    return "".join(
        f"| {name} | {value} |\n" for name, value in (lines[0], ["---", "---"], *lines[1:])
    )


def _summary(report: Report, keys: Keys) -> str:
    """Return a line for a few rows each; a line none of whose rows was measured is left out."""
    summaries = json.loads((stored() / "summaries.json").read_text(encoding="utf-8"))
    lines = [["", OURS, "best peer"]]
    for title, named in summaries[keys["of"]].items():
        found = [report.by_key.get((name, size_of(n), clock)) for name, n, clock in named]
        rows = [row for row in found if row is not None and OURS in row.times]
        if len(rows) == len(found):
            ours = "; ".join(table.time_text(row.times[OURS].median) for row in rows)
            lines.append([title, ours, "; ".join(map(_best, rows))])
    rule = ["---", "---:", "---:"]
    return "".join(f"| {' | '.join(line)} |\n" for line in (lines[0], rule, *lines[1:]))


def _best(row: Measured) -> str:
    peer = min((who for who in row.times if who in PEERS), default=None, key=lambda who: (
        row.times[who].median
    ))  # fmt: skip
    return "" if peer is None else f"{table.time_text(row.times[peer].median)} ({peer})"


KINDS: dict[str, Callable[[Report, Keys], str]] = {
    "rows": _rows,
    "environment": _environment,
    "summary": _summary,
    "median": _median,
    "ahead": _ahead,
    "met": _met,
    "not_met": _not_met,
    "left_out": _left_out,
    "behind": _behind,
    "count": lambda report, keys: str(len(_chosen(report, keys))),
    "ratio": _ratio,
    "rate": _rate,
    "time": _time,
    "peer": lambda report, keys: _best(_one(report, keys)),
}
BLOCKS = ("rows", "environment", "not_met", "summary")
