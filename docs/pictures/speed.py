"""Bars of measured speed, from the tables of docs/gpu-tested.md."""

from __future__ import annotations

import re
from pathlib import Path

from svg import Picture

PAGE = Path(__file__).parents[1] / "gpu-tested.md"
UNITS = {"µs": 1.0, "ms": 1000.0, "s": 1e6}
TIME = re.compile(r"([\d.]+) (µs|ms|s)\b")
PEER = re.compile(r"(CUB|CuPy|torch)(, [a-z ]+)? ([\d.]+ (?:µs|ms|s))\b")
# Work of 2^28 elements, as the tables name it, and as the picture does.
WORK = {
    "reduce sum f32": "sum",
    "reduce, user lambda f32": "reduce by a lambda",
    "transform unary f32": "transform, a * 2 + 1",
    "inclusive scan sum f32": "inclusive scan",
    "inclusive scan, user lambda f32": "inclusive scan by a lambda",
    "radix sort keys f32": "sort",
    "argsort f32": "argsort",
    "histogram 256 bins, f32": "histogram, 256 bins",
    "select f32, half kept": "select, half kept",
    "reduce_by_key i32/f32, runs of 64": "reduce by key, runs of 64",
    "top 10 f32": "top 10",
    "merge_sort f32 by a lambda": "merge_sort by a lambda",
}
BEST, SECOND = "s", "p"


def _seconds(text: str) -> float | None:
    found = TIME.search(text)
    return float(found[1]) * UNITS[found[2]] if found else None


def rows() -> dict[str, dict[str, float]]:
    """Return the times in µs of each work at 2^28, by who did it."""
    found: dict[str, dict[str, float]] = {}
    head: list[str] = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| work"):
            head = cells
        if not line.startswith("|") or cells[0] not in WORK or cells[0] in found:
            continue
        row = dict(zip(head, cells, strict=True))
        if "gpualgo" in row and row["n"] == "2^28":
            times = {
                who: _seconds(row[who]) for who in ("gpualgo", "CUB", "CuPy", "torch") if who in row
            }
        elif "2^28" in row:
            times = {"gpualgo": _seconds(row["2^28"])}
            for who, how, time in PEER.findall(row["peers at 2^28"]):
                if not how:  # a peer that goes another way is none
                    times[who] = _seconds(time)
        else:
            continue
        found[cells[0]] = {who: time for who, time in times.items() if time}
    return found


def speed() -> Picture:
    measured = rows()
    p = Picture(
        "speed", 760, 62 + 34 * len(WORK), "Device times on an H200, gpualgo and its best peer"
    )
    p.rect(250, 14, 14, 12, BEST)
    p.text(270, 25, "gpualgo", kind="small")
    p.rect(340, 14, 14, 12, SECOND)
    p.text(360, 25, "the best of CUB, CuPy and PyTorch; shorter is better", kind="small")
    for k, (work, name) in enumerate(WORK.items()):
        times = measured[work]
        ours = times["gpualgo"]
        peer = min((who for who in times if who != "gpualgo"), key=times.__getitem__)
        longest, y = max(ours, times[peer]), 40 + 34 * k
        p.text(236, y + 17, name, anchor="end")
        p.rect(250, y, 300 * ours / longest, 11, BEST, 2)
        p.rect(250, y + 12, 300 * times[peer] / longest, 11, SECOND, 2)
        unit, digits = (1000, "ms") if longest >= 1000 else (1, "µs")
        theirs = f"{times[peer] / unit:.3g} {digits} ({peer.replace('torch', 'PyTorch')})"
        p.text(562, y + 16, f"{ours / unit:.3g} and {theirs}", kind="small")
    p.text(
        250,
        54 + 34 * len(WORK),
        "2^28 elements on one NVIDIA H200; each pair has a scale of its own",
        kind="small",
    )
    return p


ALL = [speed]
