"""Results as SVG: GB/s against size under the roofline of a copy, ratios, and first calls.

The ground is left open and all colours stand out on white as on black.
"""

from __future__ import annotations

import importlib.util
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench import environment, tables
from bench.peers import OURS
from bench.row import Report, Row, size_text
from bench.tables import Target

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
    folder.mkdir(parents=True, exist_ok=True)
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError("plots need matplotlib: pip install 'gpualgo[bench]'")


def draw(report: Report, folder: Path) -> list[Path]:
    check(folder)
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

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
    sized: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in sorted(report.rows, key=lambda row: row.n):
        if row.bytes_moved and row.clock in ("device", "cpu"):
            sized[row.clock, row.name].append(row)
    for (clock, name), rows in sized.items():
        if len(rows) > 1:
            copies = sized.get((clock, "copy f32"), [])
            yield f"rate-{clock}-{name}", _rates(plt, name, rows, copies)
    for clock in ("device", "host", "cpu"):
        found = [(row, ratio) for row in report.rows
                 if row.clock == clock and (ratio := row.ratio()) is not None]  # fmt: skip
        bars = [(f"{row.name}, {size_text(row.n)}", ratio, GREEN if ratio <= 1 else RED,
                 f"{ratio:.2f} of {row.peer()}", tables.targets().get(row.key))
                for row, ratio in found]  # fmt: skip
        for part in range(0, len(bars), BARS):
            figure, axes = _bars(plt, bars[part : part + BARS])
            axes.axvline(1, color=INK, lw=1)
            axes.set_xscale("log")
            axes.set_title("our time / the best peer's; a bar across: the target", fontsize=9)
            yield f"ratios-{clock}{f'-{part // BARS + 1}' if len(bars) > BARS else ''}", figure
    started = [(f"{row.name}: {who}", times.median, _colour(who), tables.time_text(times.median),
                None) for row in report.rows if row.clock == "start"
               for who, times in row.times.items()]  # fmt: skip
    if started:
        figure, axes = _bars(plt, started)
        axes.set_xlabel("seconds")
        yield "start-up", figure


def _colour(who: str) -> str:
    return next((colour for start, colour in COLOURS.items() if who.startswith(start)), INK)


def _rates(plt: Any, name: str, rows: list[Row], copies: list[Row]) -> Any:
    figure, axes = plt.subplots(figsize=(7, 4))
    if copies:
        fastest = [max(row.rate(who) or 0.0 for who in row.times) for row in copies]
        axes.plot([row.n for row in copies], fastest, color=INK, ls="--", label="a copy (f32)")
    for who in dict.fromkeys(who for row in rows for who in row.times):
        found = [(row.n, row.rate(who)) for row in rows if who in row.times]
        axes.plot(*zip(*found, strict=True), label=who, marker="o", color=_colour(who),
                  lw=2.5 if who == OURS else 1.2)  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set(xlabel="elements", ylabel="GB/s", title=name, yscale="log")
    axes.legend(fontsize=8)
    return figure


def _bars(plt: Any, bars: Sequence[tuple[str, float, str, str, Target | None]]) -> tuple[Any, Any]:
    """Draw bars, with what is written beside each and the target that lies across it."""
    figure, axes = plt.subplots(figsize=(7, 0.7 + 0.26 * len(bars)))
    labels, lengths, colours, texts, targets = zip(*bars, strict=True)
    places = range(0, -len(bars), -1)
    axes.barh(places, lengths, color=colours, height=0.7)
    axes.set_yticks(places, labels, fontsize=7)
    axes.margins(y=0.01)
    axes.grid(False, axis="y")  # it would strike out what is written
    for y, length, text, target in zip(places, lengths, texts, targets, strict=True):
        axes.text(length, y, f" {text}", va="center", fontsize=7)
        if target is not None and not target.is_time:
            axes.plot([target.limit] * 2, [y - 0.4, y + 0.4], color=INK, lw=2)
    return figure, axes
