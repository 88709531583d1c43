"""Results as SVG: GB/s against size under the roofline of a copy, ratios, and first calls.

The ground is left open and all colours stand out on white as on black.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import environment, folders, tables
from bench.peers import OURS
from bench.report import Report
from bench.row import Row, size_text

INK = "#808080"  # of axes and text: as far from white as from black
GREEN, RED = "#2e9e4f", "#d1495b"
COLOURS = {
    OURS: GREEN, "CUB": "#d9822b", "cuda.compute": "#b8659b", "CuPy": "#3d8fd1", "torch": RED,
    "JAX": "#8a63d2", "NumPy": "#3d8fd1", "numba": "#d9822b", "polars": RED,
}  # fmt: skip
BARS = 40  # in one picture at most
INKED = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
STYLE = {
    **dict.fromkeys(INKED, INK), "grid.color": INK, "grid.alpha": 0.25, "axes.grid": True,
    "axes.axisbelow": True, "axes.facecolor": "none", "figure.facecolor": "none",
    "legend.frameon": False, "font.size": 10, "svg.hashsalt": "gpualgo", "figure.dpi": 100,
    "axes.spines.top": False, "axes.spines.right": False,
}  # fmt: skip


def check(folder: Path) -> None:
    """Refuse what would only show after a long run: no matplotlib, a folder that is none."""
    folders.check(folder)
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError("plots need matplotlib: pip install 'gpualgo[bench]'")


def draw(report: Report, folder: Path) -> list[Path]:
    check(folder)
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    with matplotlib.rc_context(STYLE):
        for name, figure in _pictures(plt, report):
            figure.text(0.01, -0.02, environment.title(report.environment), fontsize=6, color=INK)
            path = folder / f"{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}.svg"
            # Without a date in it, the same figures give the same file.
            figure.savefig(path, transparent=True, bbox_inches="tight", metadata={"Date": None})
            plt.close(figure)
            paths.append(path)
    return paths


def _pictures(plt: Any, report: Report) -> Iterator[tuple[str, Any]]:
    sized: dict[tuple[str, str], list[Row]] = {}
    for row in sorted(report.rows, key=lambda row: row.n):
        if row.bytes_moved and row.clock in ("device", "cpu"):
            sized.setdefault((row.clock, row.name), []).append(row)
    for (clock, name), rows in sized.items():
        copies = [row for row in report.rows if row.algorithm == "copy" and row.clock == clock]
        if len(rows) > 1:
            yield f"rate-{clock}-{name}", _rates(plt, name, rows, copies)
    for clock in ("device", "host", "cpu"):
        rows = [row for row in report.rows if row.clock == clock and row.ratio() is not None]
        for part in range(0, len(rows), BARS):
            number = f"-{part // BARS + 1}" if len(rows) > BARS else ""
            yield f"ratios-{clock}{number}", _ratios(plt, rows[part : part + BARS])
    started = [row for row in report.rows if row.clock == "start" and row.times]
    if started:
        yield "start-up", _start_up(plt, started)


def _colour(who: str) -> str:
    return next((colour for start, colour in COLOURS.items() if who.startswith(start)), INK)


def _rates(plt: Any, name: str, rows: list[Row], copies: list[Row]) -> Any:
    figure, axes = plt.subplots(figsize=(7, 4))
    if copies:
        copies = sorted(copies, key=lambda row: row.n)
        fastest = [max(row.rate(who) or 0.0 for who in row.times) for row in copies]
        sizes = [row.n for row in copies]
        axes.plot(sizes, fastest, color=INK, ls="--", label="a copy (f32)")
    for who in dict.fromkeys(who for row in rows for who in row.times):
        of_who = [row for row in rows if who in row.times]
        axes.plot(
            [row.n for row in of_who], [row.rate(who) for row in of_who], label=who, marker="o",
            color=_colour(who), lw=2.5 if who == OURS else 1.2,
        )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set(xlabel="elements", ylabel="GB/s", title=name)
    axes.legend(fontsize=8)
    return figure


def _bars(plt: Any, labels: list[str]) -> tuple[Any, Any]:
    """Return a figure with a place for a bar for each label, the first on top."""
    figure, axes = plt.subplots(figsize=(7, 0.7 + 0.26 * len(labels)))
    axes.set_yticks([-i for i in range(len(labels))], labels, fontsize=7)
    axes.margins(y=0.01)
    axes.grid(False, axis="y")  # it would strike out what is written beside the bars
    return figure, axes


def _ratios(plt: Any, rows: list[Row]) -> Any:
    figure, axes = _bars(plt, [f"{row.name}, {size_text(row.n)}" for row in rows])
    for i, row in enumerate(rows):
        ratio, target = row.ratio() or 0.0, tables.targets().get(row.key)
        axes.barh(-i, ratio, color=GREEN if ratio <= 1 else RED, height=0.7)
        if target is not None and not target.is_time:
            axes.plot([target.limit] * 2, [-i - 0.4, -i + 0.4], color=INK, lw=2)
        axes.text(ratio, -i, f" {ratio:.2f} of {row.peer()}", va="center", fontsize=7)
    axes.axvline(1, color=INK, lw=1)
    axes.set_xscale("log")
    axes.set_title("our time / the best peer's; a bar across: the target", fontsize=9)
    return figure


def _start_up(plt: Any, rows: list[Row]) -> Any:
    bars = [(row.name, who, times) for row in rows for who, times in row.times.items()]
    figure, axes = _bars(plt, [f"{name}: {who}" for name, who, _ in bars])
    for i, (_, who, times) in enumerate(bars):
        spread = [[times.median - times.low], [times.high - times.median]]
        axes.barh(-i, times.median, xerr=spread, color=_colour(who), ecolor=INK, height=0.7)
    axes.set_xlabel("seconds")
    return figure
