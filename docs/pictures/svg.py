"""A picture as SVG: cells, boxes, arrows and words, in colours for light and dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

CELL = 34
# The manual puts pictures into its pages and sets these colours; elsewhere the system does.
STYLE = """
.ga-picture{--ink:#1f2328;--muted:#57606a;--line:#8c959f;--paper:#ffffff;--p:#eaeef2;--a:#cfe3ff;\
--b:#c5ecd0;--c:#ffe0ad;--d:#e5d8fb;--s:#3572c6}
@media (prefers-color-scheme:dark){.ga-picture{--ink:#e6edf3;--muted:#a5afba;--line:#7d8590;\
--paper:#14181e;--p:#2d333b;--a:#1f4a85;--b:#1f5a35;--c:#6b4a12;--d:#4f3880;--s:#6ea8fe}}
.ga-picture text{font:14px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;fill:var(--ink)}
.ga-picture .small{font-size:12.5px;fill:var(--muted)}
.ga-picture .strong{font-weight:600}
.ga-picture .code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:13px}
.ga-picture rect{stroke:var(--line)}
.ga-picture .paper{fill:var(--paper);stroke:none}
.ga-picture path,.ga-picture line{stroke:var(--line);fill:none;stroke-width:1.4}
.ga-picture .tip{fill:var(--line);stroke:none}
.ga-picture .way{stroke:var(--s);stroke-width:3}
.ga-picture .dash{stroke-dasharray:4 4}
""".strip()


class Picture:
    """What is drawn so far; coordinates are pixels, y goes down."""

    def __init__(self, name: str, width: int, height: int, title: str) -> None:
        self.name, self.size, self.title = name, (width, height), title
        self.parts: list[str] = []

    def text(
        self, x: float, y: float, words: str, *, kind: str = "", anchor: str = "start"
    ) -> None:
        """Write words whose base line is at y."""
        mark = f' class="{kind}"' if kind else ""
        at = f'x="{x:g}" y="{y:g}"'
        self.parts.append(f'<text {at} text-anchor="{anchor}"{mark}>{escape(words)}</text>')

    def lines(self, x: float, y: float, *words: str, kind: str = "small") -> None:
        """Write lines below each other."""
        for k, each in enumerate(words):
            self.text(x, y + 17 * k, each, kind=kind)

    def rect(
        self, x: float, y: float, w: float, h: float, colour: str = "p", round_: int = 3
    ) -> None:
        """Draw a rectangle, filled with one of the colours p, a, b, c, d or s."""
        size = f'x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="{round_}"'
        self.parts.append(f'<rect {size} style="fill:var(--{colour})"/>')

    def box(self, x: float, y: float, w: float, h: float, *words: str, colour: str = "p") -> None:
        """Draw a box with a line or several in its middle."""
        self.rect(x, y, w, h, colour, 6)
        top = y + h / 2 + 5 - 9 * (len(words) - 1)
        for k, each in enumerate(words):
            self.text(x + w / 2, top + 18 * k, each, anchor="middle")

    def cells(
        self, x: float, y: float, values: Sequence[object], colours: str = "p", cell: int = CELL,
        height: int = 28,
    ) -> None:  # fmt: skip
        """Draw an array: a cell for each value, coloured by a letter each, or one for all."""
        for k, value in enumerate(values):
            colour = colours[k] if len(colours) > 1 else colours
            self.rect(x + k * cell, y, cell, height, colour, 2)
            middle = x + k * cell + cell / 2
            self.text(middle, y + height / 2 + 5, str(value), kind="code", anchor="middle")

    def arrow(self, x1: float, y1: float, x2: float, y2: float, *, kind: str = "") -> None:
        """Draw a line that ends in a tip."""
        mark = f' class="{kind}"' if kind else ""
        self.parts.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"{mark}/>')
        length = max(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 1e-9)
        u, v = (x2 - x1) / length * 7, (y2 - y1) / length * 7
        left, right = (x2 - u - v / 2, y2 - v + u / 2), (x2 - u + v / 2, y2 - v - u / 2)
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in ((x2, y2), left, right))
        self.parts.append(f'<polygon class="tip" points="{points}"/>')

    def line(self, *points: tuple[float, float], kind: str = "") -> None:
        """Draw a line through points."""
        mark = f' class="{kind}"' if kind else ""
        way = " ".join(f"{x:g},{y:g}" for x, y in points)
        self.parts.append(f'<path d="M{way}"{mark}/>')

    def svg(self) -> str:
        """Return the file."""
        width, height = self.size
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="ga-picture" role="img" '
            f'viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
        )
        paper = f'<rect class="paper" width="{width}" height="{height}" rx="8"/>'
        title = f"<title>{escape(self.title)}</title>\n<style>{STYLE}</style>"
        return "\n".join([head, title, paper, *self.parts, "</svg>", ""])
