"""Figures in pages agree with the stored results that they name."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import REPOSITORY

from gpualgo._bench import pages, results

PAGES = pages.all_pages()
STORED = sorted(pages.stored().glob("*.json"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_agrees_with_results(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == pages.rewritten(text), "gpualgo bench --write-docs writes it anew"
    assert "<!-- bench: " not in pages.outside(text), "a mark has no end"
    assert "<!-- /bench -->" not in pages.outside(text), "an end has no mark"


def test_readme_has_no_figure_of_its_own() -> None:
    text = pages.outside((REPOSITORY / "README.md").read_text(encoding="utf-8"))
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert [line for line in tables if pages.FIGURE.search(line)] == []


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.name)
def test_stored_results_say_where_they_are_from(path: Path) -> None:
    if path.name == "summaries.json":
        return
    told = results.read(path).environment
    assert told["date"]
    assert told["commit"]
    assert told["gpu"] or told["cpu"]
    assert told["versions"]["numpy"]


def test_some_pages_have_figures() -> None:
    marked = [page.name for page in PAGES if pages.MARK.search(page.read_text(encoding="utf-8"))]
    assert {"performance.md", "gpu-tested.md"} <= set(marked)


def test_a_changed_figure_is_seen() -> None:
    text = (REPOSITORY / "docs" / "performance.md").read_text(encoding="utf-8")
    block = pages.MARK.search(text)
    assert block is not None
    figure = pages.FIGURE.search(block[3])
    assert figure is not None
    at = block.start(3) + figure.start()
    changed = text[:at] + "987" + text[at + 1 :]
    assert pages.rewritten(changed) == text != changed


def test_examples_stay_as_they_are() -> None:
    mark = "<!-- bench: h200-imported.json rows clock=host -->{}<!-- /bench -->"
    text = f"```\n{mark.format('…')}\n```\n"
    assert pages.rewritten(text) == text
    assert "reduce" in pages.rewritten(f"{text}{mark.format('')}")


@pytest.mark.parametrize(
    ("mark", "told"),
    [
        ("h200-imported.json nothing", "no such kind"),
        ('h200-imported.json time row="no row" n=2^20 clock=cpu', "no row"),
        ("h200-imported.json rows clock=none", "no row is like that"),
    ],
)
def test_marks_that_name_nothing_are_told(mark: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        pages.rewritten(f"<!-- bench: {mark} --><!-- /bench -->")


def test_a_figure_within_a_line() -> None:
    mark = '<!-- bench: h200-imported.json {} row="reduce sum f32" n=2^28 clock=device -->'
    texts = [
        pages.rewritten(f"it takes {mark.format(kind)}?<!-- /bench -->.")
        for kind in ("time", "ratio", "peer", "rate")
    ]
    figures = [pages.MARK.search(text)[3] for text in texts]  # type: ignore[index]
    assert figures == ["236 µs", "0.99", "238 µs (CUB)", "4550 GB/s"]
