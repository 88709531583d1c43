"""Make stored results of the tables that docs/gpu-tested.md has had written by hand.

    python -m bench.import_markdown docs/gpu-tested.md h200-imported.json

reads a page's tables, keeps each as it stands, and makes rows of those whose cells are times beside
peers, so that other pages can name them; then it puts the page's tables between marks, from where
`gpualgo bench --write-docs` makes them of the file. A run on that machine replaces it all.
"""

from __future__ import annotations

import argparse
import re
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpualgo._bench import catalog, pages, results, startup
from gpualgo._bench.results import Measured, Report, Times
from gpualgo._bench.sizes import size_of
from gpualgo._bench.support import OURS

TABLE = re.compile(r"(?:^\|.*\|[ ]*\n)+", re.MULTILINE)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
TIME = re.compile(r"([\d.]+) ?(s|ms|µs)\b")
PEER = re.compile(r"([A-Za-z][^;]*?) ([\d.]+)(?: (s|ms|µs))?(?=,|$)")
UNITS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}
CLOCKS = {"Host time per call, nothing awaited": "host", "CPU backend, time to the result": "cpu"}


def tables_of(text: str) -> list[tuple[str, str]]:
    """Return the tables below "Benchmark" and "Host time", each with a name of its own."""
    found: dict[str, str] = {}
    start = text.index("## Host time of a call")
    for match in TABLE.finditer(text, start, text.index("## What falls short")):
        heading = HEADING.findall(text, 0, match.start())[-1]
        name, number = heading, 1
        while name in found:
            number += 1
            name = f"{heading} ({number})"
        found[name] = match[0]
    return list(found.items())


def cells(table: str) -> list[list[str]]:
    """Return a table's cells as they stand, spaces included."""
    return [line.rstrip()[1:-1].split("|") for line in table.splitlines()]


def _seconds(text: str) -> list[float]:
    """Return the times of a cell; several share the unit of the last."""
    found = TIME.search(text)
    if found is None:
        return []
    numbers = re.findall(r"[\d.]+", text[: found.end(1)])
    return [float(number) * UNITS[found[2]] for number in numbers]


def _times(samples: list[float]) -> Times:
    middle = statistics.median(samples)
    rounds = tuple(samples) if len(samples) > 1 else ()
    return Times(middle, min(samples), max(samples), len(samples), rounds)


def _peers(text: str) -> dict[str, Times]:
    """Return what "CuPy 251, torch 284 µs" tells."""
    found = PEER.findall(text)
    units = [unit for _, _, unit in found if unit]
    return {
        who.strip(" ,"): _times([float(number) * UNITS[unit or units[-1]]])
        for who, number, unit in found if units
    }  # fmt: skip


def _name(cell: str) -> str:
    return re.sub(r" \((?:at [0-9a-f]{7}|the same).*\)$", "", cell.strip())


def rows_of(heading: str, table: list[list[str]]) -> list[Measured]:
    """Return what a table tells of our times and peers'; none of those whose cells mean others."""
    head = [cell.strip() for cell in table[0]]
    clock, found = CLOCKS.get(heading, "device"), []
    for line in table[2:]:
        by_name = dict(zip(head, (cell.strip() for cell in line), strict=True))
        name = _name(line[0])
        if OURS in head:
            peers = _peers(by_name.get("peers", ""))
            peers |= {
                who: _times(_seconds(by_name[who])) for who in head
                if who in ("CUB", "CuPy", "torch", "NumPy") and _seconds(by_name[who])
            }  # fmt: skip
            times = {OURS: _times(_seconds(by_name[OURS])), **peers}
            found.append(Measured(name, size_of(by_name["n"]), clock, times=times))
        elif "peers at 2^28" in head:
            for n in ("2^20", "2^24", "2^28"):
                if _seconds(by_name[n]):
                    peers = _peers(by_name["peers at 2^28"]) if n == "2^28" else {}
                    times = {OURS: _times(_seconds(by_name[n])), **peers}
                    found.append(Measured(name, size_of(n), clock, times=times))
        elif heading == "Start-up":
            now = _times(_seconds(by_name["now"]))
            found.append(Measured(name, startup.N, "start", times={OURS: now}))
    return found


def _completed(row: Measured) -> Measured:
    """Add what the catalog knows of a row of that name."""
    known = {each.key: each for each in catalog.all_rows()}.get(row.key)
    return row if known is None else Measured.of(known, row.times)


def environment_of(text: str) -> dict[str, Any]:
    """Return what the page's head says of the machine."""
    head = {line[0].strip(): line[1].strip() for line in cells(TABLE.search(text)[0])}  # type: ignore[index]
    software = re.findall(r"([A-Za-z][\w ,-]*?) (\d[\w.]*)", head["software"].replace("; ", ", "))
    names = {"PyTorch": "torch", "CuPy": "cupy-cuda13x", "NumPy": "numpy", "Python": "python"}
    return {
        "date": head["date"], "commit": head["benchmark beside peers, `--quick`: the sizes with "
        "targets"].split(" ")[0], "gpu": head["GPU"].split(",")[0],
        "driver": head["driver"], "cores": 16, "cpu": None,
        "versions": {names.get(name.strip(", "), name.strip(", ")): v for name, v in software},
        "imported": "from a page written by hand; where a table says so, at another commit",
    }  # fmt: skip


def marked(text: str, file: str) -> str:
    """Return the page with its tables between marks."""
    for name, table in tables_of(text):
        mark = f'<!-- bench: {file} table name="{name}" -->'
        if mark not in text:
            text = text.replace(table, f"{mark}\n\n{table}\n<!-- /bench -->\n", 1)
    return text


def imported(text: str) -> Report:
    """Return a page's figures as results."""
    tables = {name: cells(table) for name, table in tables_of(text)}
    rows = {
        row.key: _completed(row) for name, table in tables.items() for row in rows_of(name, table)
    }
    described = [
        replace(row, beside="") if row.beside not in row.times else row for row in rows.values()
    ]
    return Report(environment_of(text), tuple(described), (), tables)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.import_markdown", description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("file", help="its name in bench/results/")
    given = parser.parse_args()
    text = given.page.read_text(encoding="utf-8")
    results.write(imported(text), pages.stored() / given.file)
    given.page.write_text(marked(text, given.file), encoding="utf-8")


if __name__ == "__main__":
    main()
