"""Bars of measured speed, from the stored results of a run on a GPU."""

from __future__ import annotations

import json
from pathlib import Path

from svg import Picture

STORED = Path(__file__).parents[2] / "bench" / "results" / "h200.json"
WHO = ("gpualgo", "CUB", "CuPy", "torch")
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


def rows() -> dict[str, dict[str, float]]:
    """Return the times in µs of each work at 2^28, by who did it."""
    stored = json.loads(STORED.read_text(encoding="utf-8"))["rows"]
    return {
        row["name"]: {who: 1e6 * row["times"][who]["median"] for who in WHO if who in row["times"]}
        for row in stored
        if row["name"] in WORK and (row["n"], row["clock"]) == (1 << 28, "device")
    }


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
