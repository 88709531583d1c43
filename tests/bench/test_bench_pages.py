"""Figures in pages agree with the stored results that they name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support import REPOSITORY

from bench import pages
from bench.peers import COPIES, OURS
from bench.row import Report, Row, Times, read

PAGES = pages.all_pages()
STORED = sorted(pages.STORED.rglob("*.json"))
TIME_OR_RATE = re.compile(r"\d\s?(?:ns|µs|ms|s|GB/s|GKey/s)\b")


def outside(text: str) -> str:
    """Return a page's text without what is made from results, and without examples."""
    return pages.MARK.sub("", "".join(pages.FENCED.split(text)[::2]))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_agrees_with_results(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == pages.rewritten(text), "python -m bench --write-docs writes it anew"
    assert "<!-- bench: " not in outside(text), "a mark has no end"
    assert "<!-- /bench -->" not in outside(text), "an end has no mark"


def test_readme_has_no_figure_of_its_own() -> None:
    text = outside((REPOSITORY / "README.md").read_text(encoding="utf-8"))
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert [line for line in tables if TIME_OR_RATE.search(line)] == []


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.name)
def test_stored_results_say_where_they_are_from(path: Path) -> None:
    if path.name == "summaries.json":
        return
    told = read(path).environment
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
    figure = TIME_OR_RATE.search(block[3])
    assert figure is not None
    at = block.start(3) + figure.start()
    changed = text[:at] + "987" + text[at + 1 :]
    assert pages.rewritten(changed) == text != changed


def test_examples_stay_as_they_are() -> None:
    mark = "<!-- bench: h200.json rows clock=host -->{}<!-- /bench -->"
    text = f"```\n{mark.format('…')}\n```\n"
    assert pages.rewritten(text) == text
    assert "reduce" in pages.rewritten(f"{text}{mark.format('')}")


@pytest.mark.parametrize(
    ("mark", "told"),
    [
        ("h200.json nothing", "no such kind"),
        ('h200.json time row="no row" n=2^20 clock=cpu', "no row"),
        ("h200.json rows clock=none", "no row is like that"),
        ('h200.json time row="copy f32" n=2^28 clock=device of=CUB', "has no CUB; it has gpualgo"),
        ('h200.json ratio row="copy f32" n=2^28 clock=device of=CUB', "no such peer"),
    ],
)
def test_marks_that_name_nothing_are_told(mark: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        pages.rewritten(f"<!-- bench: {mark} --><!-- /bench -->")


def test_a_figure_within_a_line() -> None:
    mark = '<!-- bench: h200.json {} row="reduce sum f32" n=2^28 clock=device -->'
    texts = [
        pages.rewritten(f"it takes {mark.format(kind)}?<!-- /bench -->.")
        for kind in ("time", "ratio", "peer")
    ]
    figures = [pages.MARK.search(text)[3] for text in texts]  # type: ignore[index]
    forms = (r"\d+ µs", r"\d\.\d\d", r"\d+ µs \(\w+\)")
    assert [bool(re.fullmatch(form, text)) for form, text in zip(forms, figures, strict=True)] == (
        [True] * 3
    )
    assert pages.rewritten(texts[0]) == texts[0]


FIGURE = 'time row="reduce sum f32" n=2^28 clock=device'


@pytest.mark.parametrize(
    ("mark", "before", "told"),
    [
        (FIGURE, "", "does not begin a line"),
        (FIGURE, "a line\n", "does not begin a line"),
        (FIGURE, "- ", "does not begin a line"),
        (FIGURE, "  1. ", "does not begin a line"),
        ("rows clock=host", "a table: ", "stands alone on its line"),
    ],
)
def test_marks_stand_where_markdown_renders_the_line(mark: str, before: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        pages.rewritten(f"{before}<!-- bench: h200.json {mark} --><!-- /bench -->")


def test_rows_of_a_later_file_stand_in_place_of_those_before() -> None:
    row = 'row="gnp.var" n=2^28 clock=device'
    first, later, both = (
        pages.rewritten(f"it: <!-- bench: {files} time {row} --><!-- /bench -->").split("-->")[1]
        for files in (
            "h200-numpy.json", "h200-numpy-later.json", "h200-numpy.json+h200-numpy-later.json",
        )
    )  # fmt: skip
    assert first != later == both


def _measured(name: str, ours: float | None, **peers: float) -> Row:
    medians = ({} if ours is None else {OURS: ours}) | peers
    times = {who: Times(each, each, each, 1) for who, each in medians.items()}
    return Row(name, 1 << 28, "device", algorithm="reduce", times=times)


def test_what_is_said_of_many_rows() -> None:
    rows = (
        _measured("reduce sum f32", 0.5, CUB=1.0, CuPy=0.4),  # of CUB, as wanted; behind CuPy
        _measured("reduce sum f64", 3.0, CUB=1.0),
        _measured("reduce sum i8", 1.0, CUB=2.0),
        _measured("no peer", 1.0),
    )
    report = Report({}, rows)
    keys = {"clock": "device"}
    assert pages.made(report, "ahead", keys) == "1 of 3"
    assert pages.made(report, "ahead", keys | {"of": "CUB"}) == "2 of 3"
    assert pages.made(report, "median", keys | {"of": "CUB"}) == "0.50"
    assert pages.made(report, "behind", keys | {"over": "1.3"}) == "`reduce sum f64` of 2^28 3.00"
    behind = pages.made(report, "behind", keys | {"n": "2^28"})
    assert behind == "`reduce sum f64` 3.00, `reduce sum f32` 1.25"
    assert pages.made(report, "behind", keys | {"over": "4"}) == "none"
    met, asked = map(int, pages.made(report, "met", keys).split(" of "))
    missed = pages.made(report, "not_met", keys).splitlines()[2:]
    assert len(missed) == asked - met >= 1
    assert [line for line in missed if line.startswith("| reduce sum f64 | 2^28 | 3.00 of CUB |")]


def test_scaling_is_weak_by_elements_on_each_gpu_and_strong_by_elements_in_all() -> None:
    def row(gpus: str, n: int, ours: float, copies: float) -> Row:
        times = {OURS: Times(ours, ours, ours, 1), COPIES: Times(copies, copies, copies, 1)}
        return Row(f"sort, float32, {gpus}", n, "device", times=times)

    rows = (row("1 GPU", 32, 3e-3, 1e-9), row("2 GPUs", 64, 4e-3, 1e-3), row("2 GPUs", 32, 2e-3, 1))
    (head, _, line) = pages.made(Report({}, rows), "scaling", {"n": "2^5"}).splitlines()
    assert head.startswith("| 2^5 elements on each GPU | 1 GPU | 2 GPUs | weak scaling |")
    assert line == "| sort, float32 | 3 ms | 4 ms | 75% | 25% | 2 ms |"


def test_missed_targets_have_a_cause() -> None:
    """Each row of the tables of missed targets says why, in a few words."""
    text = (REPOSITORY / "docs" / "gpu-tested.md").read_text(encoding="utf-8")
    tables = [block[3] for block in pages.MARK.finditer(text) if " not_met" in block[2]]
    lines = [line for table in tables for line in table.strip().splitlines()[2:]]
    causes = [line.rsplit("|", 2)[1].strip() for line in lines]
    assert len(causes) > 40
    assert [line for line, cause in zip(lines, causes, strict=True) if not cause] == []
    assert max(len(cause.split()) for cause in causes) <= 15
