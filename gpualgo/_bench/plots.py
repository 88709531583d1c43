"""Results as SVG: GB/s against size under the roofline of a copy, ratios, and first calls.

The ground is left open and all colours stand out on white as on black.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gpualgo._bench import environment, places, targets
from gpualgo._bench.results import Measured, Report
from gpualgo._bench.sizes import size_text
from gpualgo._bench.support import OURS

INK = "#808080"  # of axes and text: as far from white as from black
COLOURS = {
    OURS: "#2e9e4f", "CUB": "#d9822b", "cuda.compute": "#b8659b", "CuPy": "#3d8fd1",
    "torch": "#d1495b", "JAX": "#8a63d2", "NumPy": "#3d8fd1", "numba": "#d9822b",
    "polars": "#d1495b",
}  # fmt: skip
BARS = 40  # in one picture at most


def check(folder: Path) -> None:
    """Refuse what would only show after a long run: no matplotlib, a folder that is none."""
    places.check(folder)
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError("plots need matplotlib: pip install 'gpualgo[bench]'")


def draw(report: Report, folder: Path) -> list[Path]:
    """Write all pictures that a report has figures for."""
    check(folder)
    import matplotlib

    matplotlib.use("svg")
    folder.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(_style()):
        made = list(_pictures(report))
        paths = []
        for name, figure in made:
            path = folder / f"{name}.svg"
            # Without a date in it, the same figures give the same file.
            figure.savefig(path, transparent=True, bbox_inches="tight", metadata={"Date": None})
            paths.append(path)
    import matplotlib.pyplot as plt

    plt.close("all")
    return paths


def _style() -> dict[str, Any]:
    inks = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    return {
        **dict.fromkeys(inks, INK),
        "grid.color": INK, "grid.alpha": 0.25, "axes.grid": True, "axes.axisbelow": True,
        "axes.facecolor": "none", "figure.facecolor": "none",
        "legend.frameon": False, "font.size": 10, "svg.hashsalt": "gpualgo", "figure.dpi": 100,
        "axes.spines.top": False, "axes.spines.right": False,
    }  # fmt: skip


def _pictures(report: Report) -> Iterator[tuple[str, Any]]:
    told = environment.title(report.environment)
    roofs = _roofline(report.rows)
    for (name, clock), rows in _by_size(report.rows).items():
        yield f"rate-{clock}-{_file(name)}", _rates(name, rows, roofs.get(clock, {}), told)
    for clock in ("device", "host", "cpu"):
        rows = [row for row in report.rows if row.clock == clock and row.ratio() is not None]
        for part in range(0, len(rows), BARS):
            number = f"-{part // BARS + 1}" if len(rows) > BARS else ""
            yield f"ratios-{clock}{number}", _ratios(rows[part : part + BARS], told)
    started = [row for row in report.rows if row.clock == "start" and row.times]
    if started:
        yield "start-up", _start_up(started, told)


def _file(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _by_size(rows: Sequence[Measured]) -> dict[tuple[str, str], list[Measured]]:
    """Return rows that have a rate at two sizes or more."""
    found: dict[tuple[str, str], list[Measured]] = {}
    for row in rows:
        if row.bytes_moved and row.clock in ("device", "cpu"):
            found.setdefault((row.name, row.clock), []).append(row)
    return {
        key: sorted(each, key=lambda row: row.n) for key, each in found.items() if len(each) > 1
    }


def _roofline(rows: Sequence[Measured]) -> dict[str, dict[int, float]]:
    """Return the fastest copy's GB/s by clock and size."""
    found: dict[str, dict[int, float]] = {}
    for row in rows:
        if row.algorithm == "copy":
            rates = [rate for who in row.times if (rate := row.rate(who)) is not None]
            found.setdefault(row.clock, {})[row.n] = max(rates)
    return found


def _rates(name: str, rows: list[Measured], roof: dict[int, float], told: str) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4))
    if roof:
        sizes = sorted(roof)
        axes.plot(sizes, [roof[n] for n in sizes], color=INK, ls="--", label="a copy (f32)")
    contenders = dict.fromkeys(who for row in rows for who in row.times)
    for who in contenders:
        of_who = [row for row in rows if who in row.times]
        axes.plot(
            [row.n for row in of_who], [row.rate(who) for row in of_who], label=who, marker="o",
            color=_colour(who), lw=2.5 if who == OURS else 1.2,
        )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set(xlabel="elements", ylabel="GB/s", title=name)
    axes.legend(fontsize=8)
    _caption(figure, told)
    return figure


def _colour(who: str) -> str:
    return next((colour for start, colour in COLOURS.items() if who.startswith(start)), INK)


def _ratios(rows: list[Measured], told: str) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 0.6 + 0.24 * len(rows)))
    for place, row in enumerate(reversed(rows)):
        ratio = row.ratio() or 0.0
        axes.barh(place, ratio, color=COLOURS[OURS] if ratio <= 1 else "#d1495b", height=0.7)
        target = targets.table().get(row.key)
        if target is not None and not target.is_time:
            axes.plot([target.limit] * 2, [place - 0.4, place + 0.4], color=INK, lw=2)
        axes.text(ratio, place, f" {ratio:.2f} of {row.peer()}", va="center", fontsize=7)
    axes.set_yticks(range(len(rows)), [f"{row.name}, {size_text(row.n)}" for row in rows[::-1]])
    axes.tick_params(axis="y", labelsize=7)
    axes.axvline(1, color=INK, lw=1)
    axes.set_xscale("log")
    axes.margins(y=0.01)
    axes.grid(False, axis="y")  # it would strike out what is written beside the bars
    axes.set_title("our time / the best peer's; a bar across: the target", fontsize=9)
    _caption(figure, told)
    return figure


def _start_up(rows: list[Measured], told: str) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 0.8 + 0.3 * sum(len(row.times) for row in rows)))
    labels: list[str] = []
    for row in rows:
        for who, times in row.times.items():
            place = -len(labels)
            spread = [[times.median - times.low], [times.high - times.median]]
            axes.barh(place, times.median, xerr=spread, color=_colour(who), ecolor=INK, height=0.7)
            labels.append(f"{row.name}: {who}")
    axes.set_yticks([-i for i in range(len(labels))], labels, fontsize=7)
    axes.margins(y=0.01)
    axes.grid(False, axis="y")
    axes.set_xlabel("seconds")
    _caption(figure, told)
    return figure


def _caption(figure: Any, told: str) -> None:
    figure.text(0.01, -0.02, told, fontsize=6, color=INK)
