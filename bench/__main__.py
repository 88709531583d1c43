"""Time gpualgo's algorithms and other libraries on the same data. Every result is checked first."""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
from pathlib import Path

from bench import environment, pages, peers, plots, rows, tables, timing
from bench.peers import PEERS
from bench.row import Report, Row, merged, read, size_of


def sizes(text: str) -> list[int]:
    return [size_of(each) for each in text.split(",")]


def libraries(text: str) -> list[str]:
    """Return the peers whose names begin so; "none", so that no library takes part, is one."""
    texts = [each.strip().lower() or "?" for each in text.split(",")]
    return [min(who for who in (*PEERS, "none") if who.lower().startswith(each)) for each in texts]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    rows, output, modes = map(parser.add_argument_group, ("rows", "output", "instead of a run"))
    add = rows.add_argument
    add("algorithms", nargs="*", metavar="ALGORITHM", help="default: all algorithms")
    add("--sizes", type=sizes, metavar="2^20,1000000",
        help="numbers of elements, instead of those of each row")  # fmt: skip
    add("--peers", type=libraries, metavar="CuPy,CUB",
        help=f"only these libraries, of {', '.join(PEERS)}; none: gpualgo alone")  # fmt: skip
    add("--rows", default="", metavar="TEXT", help="only rows whose title contains TEXT")
    add("--quick", action="store_true", help="one size of most rows, fewer samples")
    add("--device", choices=["cpu", "cuda"], help="only rows of this device")
    add("--cold", action="store_true", help="also time the first calls of new processes")
    add("--targets", action="store_true", help="only rows with a target; print if it is met")
    add("--list", action="store_true", help="print the rows, run none")
    add("--seconds", type=float, default=math.inf, help="start no row after this time")
    add = output.add_argument
    add("--json", type=Path, metavar="FILE", help="write the results to FILE")
    add("--no-write", action="store_true", help="write no file of results")
    add("--plots", type=Path, metavar="FOLDER", help="write plots as SVG files to FOLDER")
    add("--commit", metavar="NAME", help="the measured commit, if git does not know it")
    add("--floor", type=float, help="--compare ignores smaller changes (default: by clock)")
    add = modes.add_mutually_exclusive_group().add_argument
    add("--compare", nargs=2, type=Path, metavar=("A.json", "B.json"),
        help="compare two runs; exit code 1 if a row got slower")  # fmt: skip
    add("--merge", nargs=2, type=Path, metavar=("A.json", "B.json"),
        help="add the rows of B, a run on the same machine and commit, to A")  # fmt: skip
    add("--show", type=Path, metavar="A.json", help="print the tables of a run")
    add("--write-docs", action="store_true", help="update the figures in README and docs")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Do what one command line asks for; 0 unless a result was wrong or something got slower."""
    given = _parser().parse_args(argv)
    try:
        if given.compare:
            return _compare(*map(read, given.compare), floor=given.floor)
        if given.merge:
            made = merged(*map(read, given.merge))
            made.write(given.merge[0])
            print(f"written: {given.merge[0]}, {len(made.rows)} rows", file=sys.stderr)
        elif given.show:
            _print(read(given.show))
        elif given.write_docs:
            print("".join(f"updated: {page}\n" for page in pages.write()), end="")
        else:
            return _run(given)
        return 0
    except BrokenPipeError:  # who reads the tables has seen enough of them
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2


def _compare(before: Report, after: Report, *, floor: float | None) -> int:
    found = tables.changes(before, after, floor)
    if not found:
        raise ValueError("the two runs have no row in common")
    shown = tables.of_changes(found)
    if len(shown) > 1:
        tables.show(f"Changes since {environment.title(before.environment)}", shown)
    print(tables.summary(found, before, after))
    return int(any(each.verdict == "slower" for each in found))


def _chosen(given: argparse.Namespace) -> list[Row]:
    """Return the rows asked for. New processes come first: they wait for nothing of rows before."""
    if unknown := [name for name in given.algorithms if name not in rows.ALGORITHMS]:
        there = ", ".join(rows.ALGORITHMS)
        raise ValueError(f"no algorithm is called {', '.join(unknown)}; there are {there}")
    names = [name for name in dict.fromkeys(given.algorithms) if name != "startup"]
    are_all = given.targets and not given.algorithms
    is_cold = given.cold or are_all or "startup" in given.algorithms
    found = rows.chosen(["startup"], given.rows, device=given.device) if is_cold else []
    if names or not given.algorithms:
        found += rows.chosen(names, given.rows, given.sizes or (), given.device, given.quick)
    return [row for row in found if not given.targets or row.key in tables.targets()]


def _run(given: argparse.Namespace) -> int:
    if given.device == "cuda" and peers.gpu() is None and not given.list:
        raise ValueError("--device cuda needs a GPU and CuPy, whose arrays the rows use")
    peers.want(given.peers or [])
    found = _chosen(given)
    if not found:
        raise ValueError("no row matches these options; python -m bench --list prints all rows")
    if given.list:
        print("\n".join(map(str, found)))
        return 0
    home = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    folder = given.json.parent if given.json else home / "gpualgo" / "bench"
    if not given.no_write:  # what cannot be written is refused before anything is measured for it
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK) or (given.json and given.json.is_dir()):
            raise PermissionError(f"{given.json or folder} cannot be written")
    if given.plots:
        plots.check(given.plots)
    made, code = _measure(given, found)
    if not given.no_write:  # first: who reads the tables may leave early
        told = made.environment
        name = re.sub(r"[^a-z0-9]+", "-", f"{told['gpu'] or told['cpu']} {told['date']}".lower())
        path = given.json or folder / f"{name.strip('-')}.json"
        made.write(path)
        print(f"written: {path}", file=sys.stderr)
    for drawn in plots.draw(made, given.plots) if given.plots else ():
        print(f"drawn: {drawn}", file=sys.stderr)
    _print(made)
    if given.targets:
        asked = sorted({row.key for row in found}, key=list(tables.targets()).index)
        tables.show("Targets", tables.of_targets(made, asked))
    return code


def _measure(given: argparse.Namespace, found: list[Row]) -> tuple[Report, int]:
    if given.plots:  # with the copies of the same sizes, for the roofline
        sizes = {(row.clock, row.n) for row in found}
        copies = rows.chosen(["copy"], sizes={n for _, n in sizes})
        found = found + [row for row in copies if (row.clock, row.n) in sizes and row not in found]
    told = environment.describe(given.commit)
    found = [row for row in found if peers.gpu() is not None or row.device == "cpu"]
    peers.build(row.calls.get("CUB") for row in found)  # before, side by side
    rounds, scale = (2, 0.5) if given.quick else (5, 1.0)
    measured: list[Row] = []
    code = timing.run_all(found, measured, rounds, scale, given.seconds)
    told |= {"load_after": round(os.getloadavg()[0], 2), "quick": given.quick, "rounds": rounds}
    return Report(told, tuple(measured), tuple(peers.taken_notes())), code


def _print(found: Report) -> None:
    print(environment.title(found.environment))
    for title, lines in tables.by_clock(found.rows).items():
        tables.show(title, lines)
    for note in found.left_out:
        where = f"{note['row']}: " if note["row"] else ""
        print(f"left out: {where}{note['who']}: {note['reason']}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
