"""Runs ``gpualgo bench``: rows are chosen, timed, printed and kept."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from pathlib import Path

from gpualgo._bench import (
    catalog,
    compare,
    environment,
    merge,
    notes,
    places,
    plots,
    progress,
    reading,
    results,
    runner,
    startup,
    support,
    table,
    targets,
)
from gpualgo._bench.catalog import Choice
from gpualgo._bench.peers import cub
from gpualgo._bench.results import Measured, Report
from gpualgo._bench.runner import Effort
from gpualgo._bench.support import OURS, Row

CLOCKS_OF = {"cpu": ("cpu",), "cuda": ("device", "host", "wall")}
STARTUP = "startup"
INTERRUPTED = 130  # as shells have it


def main(given: argparse.Namespace) -> int:
    """Do what one command line asks for; 0 unless a result was wrong or something got slower."""
    try:
        if given.compare:
            first, second = given.compare
            return _compare(first, second, given.floor)
        if given.merge:
            return _merge(*given.merge)
        if given.show:
            _print(reading.read(given.show))
            return 0
        if given.write_docs:
            return _write_docs()
        return _run(given)
    except BrokenPipeError:  # who reads the tables has seen enough of them
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError) as error:
        print(f"gpualgo bench: {error}", file=sys.stderr)
        return 2


def _write_docs() -> int:
    from gpualgo._bench import pages

    for path in pages.write():
        print(f"written anew: {path}")
    return 0


def _compare(first: Path, second: Path, floor: float | None) -> int:
    before, after = reading.read(first), reading.read(second)
    found = compare.changes(before, after, floor)
    if not found:
        raise ValueError(f"{first} and {second} have no row in common")
    shown = compare.lines(found)
    if len(shown) > 1:
        table.show(f"{environment.title(before.environment)} → {second.name}", shown)
    print(compare.summary(found, before, after))
    return int(any(each.verdict == "slower" for each in found))


def _merge(into: Path, other: Path) -> int:
    """Add the rows of one file to another's, which keeps all of its own but those of both."""
    report = merge.merged(reading.read(into), reading.read(other))
    results.write(report, into)
    print(f"written: {into}, {len(report.rows)} rows", file=sys.stderr)
    return 0


def _choice(given: argparse.Namespace) -> Choice:
    names = dict.fromkeys(name for name in given.algorithms if name != STARTUP)
    unknown = [name for name in names if name not in catalog.algorithms()]
    if unknown:
        known = ", ".join([*catalog.algorithms(), STARTUP])
        raise ValueError(f"no rows are of {', '.join(unknown)}; there are {known}")
    return Choice(
        tuple(names), given.rows, tuple(given.dtypes), tuple(given.sizes),
        tuple(given.entropies), CLOCKS_OF.get(given.device, ()), given.quick,
    )  # fmt: skip


def _chosen_rows(given: argparse.Namespace) -> list[Row]:
    choice = _choice(given)
    rows = [] if given.algorithms == [STARTUP] else catalog.chosen(choice)
    return [row for row in rows if not given.targets or row.key in targets.table()]


def _chosen_groups(given: argparse.Namespace) -> list[startup.Group]:
    """Return the processes to start: asked for by --cold or by name, or part of the targets."""
    if not (given.cold or STARTUP in given.algorithms or (given.targets and not given.algorithms)):
        return []
    wanted = {"cpu": True, "cuda": False}.get(given.device)
    return [
        group for group in startup.groups()
        if wanted in (None, group.is_on_cpu) and any(given.rows in str(row) for row in group.rows)
    ]  # fmt: skip


def _run(given: argparse.Namespace) -> int:
    if given.device == "cuda" and support.gpu() is None and not given.list:
        raise ValueError("--device cuda needs a GPU and CuPy, in whose arrays the rows are")
    support.want(given.peers)
    rows, groups = _chosen_rows(given), _chosen_groups(given)
    started = [row for group in groups for row in group.rows]
    if not rows and not groups:
        raise ValueError("no row is like that; --list shows all")
    if given.list:
        print("\n".join(map(str, [*rows, *started])))
        return 0
    path = None if given.no_write else given.json or places.results()
    places.check(path, is_file=bool(given.json))
    if given.plots:
        plots.check(given.plots)
    report, code = _measure(given, rows, groups)
    _keep(given, report)  # first: who reads the tables may leave early
    _print(report)
    if given.targets:
        keys = {row.key for row in [*rows, *started]}
        asked = [key for key in targets.table() if key in keys]
        table.show("Targets", table.of_targets(report, asked))
    return code


def _measure(
    given: argparse.Namespace, rows: list[Row], groups: list[startup.Group]
) -> tuple[Report, int]:
    """Run what this machine can run, peers compiled beforehand and side by side.

    Also returns the exit code. Ctrl-C ends the run: what was measured before is worth keeping.
    """
    until = time.perf_counter() + given.seconds
    has_gpu = support.gpu() is not None
    rows = [row for row in rows if has_gpu or row.clock == "cpu"]
    groups = [group for group in groups if has_gpu or group.is_on_cpu]
    if given.plots:
        rows += _roofline(rows)
    told_of = environment.describe(given.commit)
    if has_gpu:
        cub.build(catalog.cub_sources(rows))
    effort = Effort(2, 0.5, until) if given.quick else Effort(until=until)
    started: list[Measured] = []
    measured: list[Measured] = []
    try:
        with progress.shown(len(rows) + len(groups)) as step:
            # Processes of their own come first: they would wait for nothing that rows left behind.
            failed = startup.run_all(groups, 1 if given.quick else 5, started, step)
            code = int(runner.run_all(rows, effort, measured, step) or failed)
    except KeyboardInterrupt:
        code = INTERRUPTED
        there = {row.key for row in started + measured}
        for row in [*(row for group in groups for row in group.rows), *rows]:
            if row.key not in there:
                notes.add(str(row), OURS, "not measured: the run was interrupted")
    command = {"load_after": environment.load(), "quick": given.quick, "rounds": effort.rounds}
    return Report(told_of | command, tuple(measured + started), tuple(notes.taken())), code


def _roofline(rows: list[Row]) -> list[Row]:
    """Return the copies that are missing: of the sizes and devices of these rows."""
    there = {row.key for row in rows}
    wanted = {(row.n, row.clock) for row in rows}
    copies = {row.clock: row for row in catalog.all_rows(["copy"])}
    made = [copies[clock].at(n) for n, clock in sorted(wanted) if clock in copies]
    return [row for row in made if row.key not in there]


def _print(report: Report) -> None:
    print(environment.title(report.environment))
    for title, lines in table.by_clock(report.rows).items():
        table.show(title, lines)
    for note in report.left_out:
        where = f"{note['row']}: " if note["row"] else ""
        print(f"left out: {where}{note['who']}: {note['reason']}", file=sys.stderr)


def _keep(given: argparse.Namespace, report: Report) -> None:
    """Write the results where they were asked for, else to the user's folder."""
    if not given.no_write:
        path = given.json or places.results() / f"{_file_name(report)}.json"
        results.write(report, path)
        print(f"written: {path}", file=sys.stderr)
    if given.plots:
        for drawn in plots.draw(report, given.plots):
            print(f"drawn: {drawn}", file=sys.stderr)


def _file_name(report: Report) -> str:
    told = report.environment
    text = f"{told.get('gpu') or told['cpu']} {told['date']}".lower()
    return re.sub(r"[^a-z0-9]+", "-", text).strip("-")
