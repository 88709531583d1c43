"""Times gpualgo's algorithms beside other libraries, each result checked before."""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench import (
    catalog,
    compare,
    environment,
    folders,
    notes,
    pages,
    peers,
    plots,
    report,
    startup,
    tables,
    timing,
)  # fmt: skip
from bench.peers import NO_PEER, OURS, PEERS, cub
from bench.report import Report
from bench.row import Row, size_of
from bench.timing import Effort

CLOCKS_OF = {"cpu": ("cpu",), "cuda": ("device", "host", "wall")}
STARTUP = "startup"
INTERRUPTED = 130  # as shells have it


def main(argv: list[str] | None = None) -> int:
    """Do what one command line asks for; 0 unless a result was wrong or something got slower."""
    given = _parser().parse_args(argv)
    try:
        if given.compare:
            first, second = given.compare
            return _compare(first, second, given.floor)
        if given.merge:
            into, other = given.merge
            made = report.merged(report.read(into), report.read(other))
            report.write(made, into)
            print(f"written: {into}, {len(made.rows)} rows", file=sys.stderr)
        elif given.show:
            _print(report.read(given.show))
        elif given.write_docs:
            for page in pages.write():
                print(f"written anew: {page}")
        else:
            return _run(given)
        return 0
    except BrokenPipeError:  # who reads the tables has seen enough of them
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError) as error:
        text = str(error)
        if isinstance(error, OSError) and error.filename is not None:
            text = f"{error.filename}: {error.strerror}"
        print(f"bench: {text}", file=sys.stderr)
        return 2


def _listed(kind: Callable[[str], Any], what: str) -> Callable[[str], list[Any]]:
    """Return a reader of values between commas, of which there is one at least."""

    def read(text: str) -> list[Any]:
        try:
            found = [kind(each.strip()) for each in text.split(",") if each.strip()]
        except ValueError:
            found = []
        if not found:  # an empty list would choose all
            raise argparse.ArgumentTypeError(f"{text!r} is no list of {what}")
        return found

    return read


def _amount(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not found >= 0:  # NaN is not
        raise argparse.ArgumentTypeError(f"{text!r} is no number of 0 or more")
    return found


def _peer(text: str) -> str:
    given = text.lower()
    names = [name.lower() for name in (*PEERS, NO_PEER)]
    if not any(name.startswith(given) or given.startswith(name) for name in names):
        raise ValueError(text)
    return text


# By group and name, as argparse takes them.
OPTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "which rows": {
        "algorithms": {"nargs": "*", "metavar": "ALGORITHM", "help": "all without a name"},
        "--dtypes": {"type": _listed(str, "names"), "metavar": "f32,u64", "help": "these alone"},
        "--sizes": {
            "type": _listed(size_of, "sizes such as 2^20,1000000"), "metavar": "2^20,2^24",
            "help": "numbers of elements, instead of each row's own"},
        "--entropies": {
            "type": _listed(float, "numbers"), "metavar": "1,0.544,0",
            "help": "rows whose keys have this share of random bits"},
        "--peers": {
            "type": _listed(_peer, f"peers, which are {', '.join(PEERS)}, or {NO_PEER}"),
            "metavar": "CuPy,CUB", "help": "of those that are here, these; none for no peer"},
        "--rows": {"default": "", "metavar": "TEXT", "help": "whose title has this text"},
        "--quick": {"action": "store_true", "help": "one size of most, fewer samples"},
        "--device": {"choices": ["cpu", "cuda"], "help": "rows of one device alone"},
        "--cold": {"action": "store_true", "help": "first calls of new processes, too"},
        "--targets": {"action": "store_true", "help": "rows with a target: met or not"},
        "--list": {"action": "store_true", "help": "print the rows and run none"},
        "--seconds": {"type": _amount, "default": math.inf, "help": "begin no row later than this"},
    },
    "what becomes of the results": {
        "--json": {"type": Path, "metavar": "FILE", "help": "write them there"},
        "--no-write": {"action": "store_true", "help": "write no file"},
        "--plots": {"type": Path, "metavar": "FOLDER", "help": "draw them as SVG files there"},
        "--commit": {"metavar": "NAME", "help": "what was measured, where git cannot tell"},
        "--floor": {"type": _amount, "help": "a change below this share is none (0.03)"},
    },
    "instead of a run": {
        "--compare": {"nargs": 2, "type": Path, "metavar": ("A.json", "B.json"),
                      "help": "say what got slower"},
        "--merge": {"nargs": 2, "type": Path, "metavar": ("A.json", "B.json"),
                    "help": "add to A the rows of B, a run of the same machine and commit"},
        "--show": {"type": Path, "metavar": "A.json", "help": "print a file's tables"},
        "--write-docs": {"action": "store_true", "help": "write the figures of the pages anew"},
    },
}  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    for title, options in OPTIONS.items():
        group: Any = parser.add_argument_group(title)
        if title == "instead of a run":
            group = group.add_mutually_exclusive_group()
        for name, given in options.items():
            group.add_argument(name, **given)
    return parser


def _compare(first: Path, second: Path, floor: float | None) -> int:
    before, after = report.read(first), report.read(second)
    found = compare.changes(before, after, floor)
    if not found:
        raise ValueError(f"{first} and {second} have no row in common")
    shown = compare.lines(found)
    if len(shown) > 1:
        tables.show(f"{environment.title(before.environment)} → {second.name}", shown)
    print(compare.summary(found, before, after))
    return int(any(each.verdict == "slower" for each in found))


def _chosen(given: argparse.Namespace) -> tuple[list[Row], list[startup.Group]]:
    """Return the rows, and the processes to start: if asked for, or as part of the targets."""
    names = tuple(dict.fromkeys(name for name in given.algorithms if name != STARTUP))
    known = catalog.algorithms()
    if unknown := [name for name in names if name not in known]:
        there = ", ".join([*known, STARTUP])
        raise ValueError(f"no rows are of {', '.join(unknown)}; there are {there}")
    rows = [] if given.algorithms and not names else catalog.chosen(
        names, text=given.rows, dtypes=given.dtypes or (), sizes=given.sizes or (),
        entropies=given.entropies or (), clocks=CLOCKS_OF.get(given.device, ()), quick=given.quick,
    )  # fmt: skip
    rows = [row for row in rows if not given.targets or row.key in tables.targets()]
    has_startup = (
        given.cold or STARTUP in given.algorithms or (given.targets and not given.algorithms)
    )
    groups = [
        group for group in startup.GROUPS
        if has_startup and given.device in (None, "cpu" if group.is_on_cpu else "cuda")
        and any(given.rows in str(row) for row in group.rows)
    ]  # fmt: skip
    return rows, groups


def _asked(given: argparse.Namespace) -> str:
    """Return the options that leave no row: those of which one alone does, else all of them."""
    names = [name for name in given.algorithms if name != STARTUP]
    filters: dict[str, Any] = {
        "dtypes": given.dtypes, "sizes": given.sizes, "entropies": given.entropies,
        "rows": given.rows, "device": given.device, "targets": given.targets,
    }  # fmt: skip
    given_filters = {name: value for name, value in filters.items() if value}
    alone = [name for name in given_filters if not _chosen_by(names, {name: filters[name]})]
    shown = [
        f"--{name}" if value is True
        else f"--{name} {','.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in given_filters.items() if name in (alone or given_filters)
    ]  # fmt: skip
    return " ".join([*(["of", ", ".join(names)] if names else []), "matches", *shown])


def _chosen_by(names: list[str], filters: dict[str, Any]) -> list[Row]:
    """Return the rows of these algorithms that pass some of the command line's filters."""
    rows = catalog.chosen(
        names, text=filters.get("rows", ""), dtypes=filters.get("dtypes", ()),
        sizes=filters.get("sizes", ()), entropies=filters.get("entropies", ()),
        clocks=CLOCKS_OF.get(filters.get("device", ""), ()),
    )  # fmt: skip
    return [row for row in rows if "targets" not in filters or row.key in tables.targets()]


def _run(given: argparse.Namespace) -> int:
    if given.device == "cuda" and peers.gpu() is None and not given.list:
        raise ValueError("--device cuda needs a GPU and CuPy, in whose arrays the rows are")
    peers.want(given.peers or [])
    rows, groups = _chosen(given)
    every = [*rows, *(row for group in groups for row in group.rows)]
    if not every:
        raise ValueError(f"no row {_asked(given)}; python -m bench --list shows all rows")
    if given.list:
        print("\n".join(map(str, every)))
        return 0
    path = None if given.no_write else given.json or folders.results()
    folders.check(path, is_file=bool(given.json))
    if given.plots:
        plots.check(given.plots)
    found, code = _measure(given, rows, groups)
    if path is not None:  # first: who reads the tables may leave early
        told = found.environment
        name = re.sub(r"[^a-z0-9]+", "-", f"{told['gpu'] or told['cpu']} {told['date']}".lower())
        path = given.json or path / f"{name.strip('-')}.json"
        report.write(found, path)
        print(f"written: {path}", file=sys.stderr)
    for drawn in plots.draw(found, given.plots) if given.plots else ():
        print(f"drawn: {drawn}", file=sys.stderr)
    _print(found)
    if given.targets:
        keys = {row.key for row in every}
        asked = [key for key in tables.targets() if key in keys]
        tables.show("Targets", tables.of_targets(found, asked))
    return code


def _measure(
    given: argparse.Namespace, rows: list[Row], groups: list[startup.Group]
) -> tuple[Report, int]:
    """Run what this machine can run, and return it with the exit code.

    Peers are compiled before, side by side. Ctrl-C ends the run: what was measured is kept.
    """
    until = time.perf_counter() + given.seconds
    has_gpu = peers.gpu() is not None
    rows = [row for row in rows if has_gpu or row.clock == "cpu"]
    groups = [group for group in groups if has_gpu or group.is_on_cpu]
    if given.plots:  # with the copies of the same sizes, for the roofline
        there, wanted = {row.key for row in rows}, {(row.clock, row.n) for row in rows}
        copies = {row.clock: row for row in catalog.all_rows(["copy"])}
        made = [copies[clock].at(n) for clock, n in sorted(wanted) if clock in copies]
        rows += [row for row in made if row.key not in there]
    told = environment.describe(given.commit)
    if has_gpu:
        cub.build(catalog.cub_sources(row for row in rows if row.clock in ("device", "host")))
    effort = Effort(2, 0.5, until) if given.quick else Effort(until=until)
    measured: list[Row] = []
    started: list[Row] = []
    try:
        with _progress(len(rows) + len(groups)) as step:
            # Processes of their own come first: they would wait for nothing that rows left behind.
            failed = startup.run_all(groups, 1 if given.quick else 5, started, step)
            code = int(timing.run_all(rows, effort, measured, step) or failed)
    except KeyboardInterrupt:
        code = INTERRUPTED
        there = {row.key for row in started + measured}
        for row in [*(row for group in groups for row in group.rows), *rows]:
            if row.key not in there:
                notes.add(str(row), OURS, "not measured: the run was interrupted")
    told |= {"load_after": environment.load(), "quick": given.quick, "rounds": effort.rounds}
    return Report(told, tuple(measured + started), tuple(notes.taken())), code


@contextmanager
def _progress(total: int) -> Iterator[Callable[[Row], None]]:
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as Left
    except ImportError:
        yield lambda row: None
        return
    columns = (MofNCompleteColumn(), BarColumn(), Left(), TextColumn("{task.description}"))
    # It is drawn between rows alone: a thread that draws would be timed with them.
    with Progress(
        *columns, console=Console(stderr=True), disable=not sys.stderr.isatty(), auto_refresh=False
    ) as bar:
        task = bar.add_task("", total=total, completed=-1)

        def step(row: Row) -> None:
            bar.update(task, advance=1, description=str(row))
            bar.refresh()

        yield step
        bar.update(task, completed=total, description="")


def _print(found: Report) -> None:
    print(environment.title(found.environment))
    for title, lines in tables.by_clock(found.rows).items():
        tables.show(title, lines)
    for note in found.left_out:
        where = f"{note['row']}: " if note["row"] else ""
        print(f"left out: {where}{note['who']}: {note['reason']}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
