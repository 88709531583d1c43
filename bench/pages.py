"""Figures in the pages of README and docs: written from stored results, between marks.

docs/benchmarks.md describes the marks. A test checks that what stands between them is up to date.
"""

from __future__ import annotations

import functools
import json
import re
import shlex
import statistics
from collections import defaultdict
from itertools import chain
from pathlib import Path

from bench import tables
from bench.environment import ROOT
from bench.peers import COPIES, OURS, PEERS
from bench.row import Report, Row, read, size_of, size_text
from bench.tables import ratio_text, time_text

STORED = ROOT / "bench" / "results"
MARK = re.compile(r"(<!-- bench: ([^>]*?) -->)(.*?)(<!-- /bench -->)", re.DOTALL)
FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)  # examples stay as they are
BEGINNING = re.compile(r"\s*(?:(?:[-*+>]|\d+\.)\s+)*")  # of a line, where no word stands yet


def all_pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def write() -> list[Path]:
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


def _written(found: re.Match[str]) -> str:
    try:
        files, kind, *rest = shlex.split(found[2])
        text = made(_report(files), kind, dict(each.split("=", 1) for each in rest))
        before, is_table = found.string[: found.start()].rpartition("\n")[2], text.startswith("|")
        if is_table and before.strip():
            raise ValueError("the mark of a table stands alone on its line")
        if not is_table and BEGINNING.fullmatch(before):  # Markdown would not render that line
            raise ValueError("a mark within text does not begin a line; put a word in front of it")
    except (KeyError, ValueError) as error:
        raise ValueError(f"bench: {found[2]}: {error}") from error
    return found[1] + (f"\n\n{text}\n" if is_table else text) + found[4]


@functools.lru_cache(8)
def _report(files: str) -> Report:
    return functools.reduce(Report.over, (read(STORED / file) for file in files.split("+")))


def made(report: Report, kind: str, keys: dict[str, str]) -> str:
    if kind in ("time", "ratio", "peer"):
        key = keys["row"], size_of(keys["n"]), keys["clock"]
        if key not in report.by_key:
            raise ValueError(f"the results have no row {key}")
        return _of_row(report.by_key[key], kind, keys.get("of", ""))
    if kind == "summary":
        return _summary(report, keys["of"])
    if kind == "scaling":
        return _scaling(report, size_of(keys["n"]))
    rows = [
        row for row in report.rows
        if row.clock == keys.get("clock", row.clock)
        and row.algorithm in keys.get("algorithm", row.algorithm).split(",")
        and keys.get("text", "") in row.name
        and (keys.get("n", "no") == "no" or row.n == size_of(keys["n"]))
    ]  # fmt: skip
    if not rows:
        raise ValueError("no row is like that")
    if kind == "rows":  # without the columns of which a key says no
        lines = tables.of_rows(rows)
        kept = [i for i, name in enumerate(lines[0]) if keys.get(name) != "no"]
        return tables.markdown([[line[i] for i in kept] for line in lines])
    if kind in ("met", "not_met"):
        goals = [(tables.targets()[row.key], row) for row in rows if row.key in tables.targets()]
        verdicts = [(goal, goal.verdict(row)) for goal, row in goals]
        if kind == "met":
            return f"{sum(verdict == 'met' for _, verdict in verdicts)} of {len(goals)}"
        return _not_met(report, [goal for goal, verdict in verdicts if verdict == "not met"])
    among = keys["of"].split(",") if "of" in keys else ()
    found = [(ratio, row) for row in rows if (ratio := row.ratio(among))]
    ratios = sorted(found, key=lambda pair: -pair[0])
    if kind == "median":
        return ratio_text(statistics.median(ratio for ratio, _ in ratios))
    if kind == "ahead":
        return f"{sum(ratio < 1 for ratio, _ in ratios)} of {len(ratios)}"
    if kind == "behind":
        texts = (f"`{row.name}`{'' if 'n' in keys else f' of {size_text(row.n)}'} "
                 f"{ratio_text(ratio)}" for ratio, row in ratios
                 if ratio > float(keys.get("over", "1")))  # fmt: skip
        return ", ".join(texts) or "none"
    raise ValueError("no such kind")


def _of_row(row: Row, kind: str, of: str) -> str:
    if kind == "ratio":
        ratio = row.ratio(of.split(",") if of else ())
        if ratio is None:
            raise ValueError("the row has no such peer")
        return ratio_text(ratio)
    if kind == "time":
        if (of or OURS) not in row.times:
            raise ValueError(f"the row has no {of}; it has {', '.join(row.times)}")
        return time_text(row.times[of or OURS].median)
    times = [(each.median, who) for who, each in row.times.items() if who in PEERS]
    return f"{time_text(min(times)[0])} ({min(times)[1]})" if times else ""


def _summary(report: Report, of: str) -> str:
    summaries = json.loads((STORED / "summaries.json").read_text(encoding="utf-8"))
    lines, by_key = [["", OURS, "best peer"]], report.by_key
    for title, named in summaries[of].items():
        keys = [(name, size_of(n), clock) for name, n, clock in named]
        if all(key in by_key and OURS in by_key[key].times for key in keys):
            texts = ("; ".join(_of_row(by_key[key], kind, "") for key in keys)
                     for kind in ("time", "peer"))  # fmt: skip
            lines.append([title, *texts])
    return tables.markdown(lines)


def _not_met(report: Report, missed: list[tables.Target]) -> str:
    causes = list(dict.fromkeys(goal.why for goal in missed))
    missed.sort(key=lambda goal: causes.index(goal.why))
    lines, last = [["work", "n", "reached", "target", "cause; next idea"]], ""
    found = tables.of_targets(report, [goal.key for goal in missed])[1:]
    for goal, (name, n, _, reached, peer, limit, _) in zip(missed, found, strict=True):
        told = f"{reached} of {peer}" if peer else reached
        lines.append([name, n, told, limit, "same" if goal.why == last else goal.why])
        last = goal.why
    return tables.markdown(lines).replace("---: |\n", "--- |\n", 1)


def _scaling(report: Report, n: int) -> str:
    """Return the times of n elements on each GPU, then of as many in all."""
    found: dict[str, dict[tuple[int, int], dict[str, float]]] = defaultdict(dict)
    for row in report.rows:
        case, gpus = row.name.rsplit(", ", 1)
        medians = {who: times.median for who, times in row.times.items()}
        found[case][int(gpus.split()[0]), row.n] = medians
    several = sorted({count for rows in found.values() for count, _ in rows} - {1})
    shares = [(f"{count} GPUs", "weak scaling", "share of peer copies") for count in several]
    lines = [[f"{size_text(n)} elements on each GPU", "1 GPU", *chain(*shares),
              *(f"same total on {count} GPUs" for count in several)]]  # fmt: skip
    for case, rows in found.items():
        alone, weak = rows[1, n][OURS], [rows[count, count * n] for count in several]
        cells = ((time_text(each[OURS]), f"{alone / each[OURS]:.0%}",
                  f"{each.get(COPIES, 0) / each[OURS]:.0%}") for each in weak)  # fmt: skip
        totals = (time_text(rows[count, n][OURS]) for count in several)
        lines.append([case, time_text(alone), *chain(*cells), *totals])
    return tables.markdown(lines)
