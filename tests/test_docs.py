"""Every example of README.md and docs/*.md runs: on the CPU, or on a GPU where it says so."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import operator
import re
import runpy
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from support import REPOSITORY, Backend, jax_of_32_bits

import gpualgo as ga

PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
MARKDOWN = [*REPOSITORY.glob("*.md"), *sorted((REPOSITORY / "docs").rglob("*.md"))]
# A mark is a comment in front of a block: <!-- gpu --> has it run on a GPU alone, and behind
# <!-- needs dask --> a page's blocks need that package.
BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>gpu|needs \w+) -->\n)?```python\n(?P<source>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
FENCE = re.compile(r"^ *```(.*)$", re.MULTILINE)
# Whatever is Python says so, and runs.
LANGUAGES = {"python", "text", "sh", "c++", "yaml", "dockerfile", "{toctree}", ""}


BOTH = "xp = np "  # how a page begins whose plain blocks run on either


def _gpu_blocks(page: Path) -> list[re.Match[str]]:
    text = page.read_text(encoding="utf-8")
    return [match for match in BLOCK.finditer(text) if match["mark"] == "gpu"]


GPU_PAGES = [page for page in PAGES if _gpu_blocks(page)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples(page: Path) -> None:
    """Run a page's python blocks in order, in one namespace; those with >>> as doctests."""
    namespace: dict[str, Any] = {"__name__": page.stem}
    with ga.default_device("cpu"), jax_of_32_bits() if page.stem == "jax" else nullcontext():
        for match in BLOCK.finditer(page.read_text(encoding="utf-8")):
            if (match["mark"] or "").startswith("needs "):
                _skip_without(match["mark"].removeprefix("needs "))
            if match["mark"] != "gpu":
                _run(match, namespace, page)


@pytest.mark.parametrize("page", GPU_PAGES, ids=lambda page: page.name)
def test_examples_on_a_gpu(cuda: Backend, page: Path) -> None:
    """Run a page's blocks for a GPU in order, in one namespace, and those of either."""
    pytest.importorskip("torch", reason="the examples use CuPy and PyTorch")
    namespace: dict[str, Any] = {"__name__": page.stem}
    text = page.read_text(encoding="utf-8")
    is_both, text = BOTH in text, text.replace(BOTH, "import cupy as xp ")
    for match in BLOCK.finditer(text):
        if is_both or match["mark"] == "gpu":
            _run(match, namespace, page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_fences(page: Path) -> None:
    """No block is missed: fences have languages known here, and blocks for a GPU parse."""
    text = page.read_text(encoding="utf-8")
    fences = FENCE.findall(text)
    assert set(fences[::2]) <= LANGUAGES
    assert set(fences[1::2]) <= {""}
    assert fences[::2].count("python") == len(BLOCK.findall(text))
    assert text.splitlines().count("<!-- gpu -->") == len(_gpu_blocks(page))
    for match in _gpu_blocks(page):
        compile(match["source"], str(page), "exec")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables(page: Path) -> None:
    """No row of a table has other cells than its head, as behind a | that is not escaped."""
    prose = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for rows in re.findall(r"(?:^ *\|.*\n)+", prose, flags=re.M):
        cells = [len(re.findall(r"(?<!\\)\|", row)) for row in rows.splitlines()]
        assert set(cells) == {cells[0]}, rows.splitlines()[0]


# Markdown takes a line that begins with a comment for HTML, and renders nothing behind it.
RAW = re.compile(r"^\s*(?:(?:[-*+>]|\d+\.)\s+)*<!--.*?-->[^\S\n]*\S.*$", re.MULTILINE)
OF_A_TABLE = re.compile(r"^.*<!-- bench: [^>]* -->(?=\n\n\|)", re.MULTILINE)


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: page.name)
def test_lines_begin_with_no_comment(page: Path) -> None:
    """A comment stands alone on its line, or behind a word; one of a table stands alone."""
    prose = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert RAW.findall(prose) == []
    assert [line for line in OF_A_TABLE.findall(prose) if not line.startswith("<!--")] == []


def _skip_without(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"examples need {package}")


def _run(match: re.Match[str], namespace: dict[str, Any], page: Path) -> None:
    source, line = match["source"], match.string.count("\n", 0, match.start("source"))
    if source.startswith(">>>"):
        _run_doctest(source, namespace, page, line)
    else:  # leading newlines make tracebacks show the page's own lines
        exec(compile("\n" * line + source, str(page), "exec"), namespace)


WRITTEN = [*PAGES, REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs/adr").glob("*.md"))]
NAMED = re.compile(r"`((?:gpualgo|cuda_src|tests|bench|docs|_[a-z]+)/[^\s`<>]*)`")
MODULE = re.compile(r"\b((?:gpualgo\.)?_[a-z]+(?:\.[a-z_]+)+)\b")
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
# The README is shown elsewhere, too, so its links are whole.
WHOLE_LINK = re.compile(
    r"https://(?:github|raw\.githubusercontent)\.com/gpualgo/gpualgo/(?:blob/)?main/([\w./-]+)"
)


def _is_module(name: str) -> bool:
    """Return whether a dotted name is a module, or a name within one."""
    path = REPOSITORY / "gpualgo" / name.removeprefix("gpualgo.").replace(".", "/")
    files = (path.with_suffix(".py"), path.parent.with_suffix(".py"))
    return path.is_dir() or any(file.is_file() for file in files)


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_what_pages_name_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    missing = []
    for name in NAMED.findall(text):
        folder = REPOSITORY / "gpualgo" if name.startswith("_") else REPOSITORY
        if not list(folder.glob(name.rstrip("/"))):
            missing.append(name)
    missing += [name for name in MODULE.findall(text) if not _is_module(name)]
    missing += [link for link in LINK.findall(text) if not (page.parent / link).exists()]
    missing += [link for link in WHOLE_LINK.findall(text) if not (REPOSITORY / link).exists()]
    assert not missing


def test_links_of_the_readme_are_whole() -> None:
    """Relative links lead nowhere on the package index, which shows the README, too."""
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert not LINK.findall(text)
    assert len(WHOLE_LINK.findall(text)) > 10


def test_messages_are_those_of_the_sources() -> None:
    """What troubleshooting.md is headed by, around its …, stands in some string of the package."""
    strings: set[str] = set()
    for path in (REPOSITORY / "gpualgo").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                strings.add(" ".join(node.value.split()))
    written = "\n".join(strings)
    page = (REPOSITORY / "docs/troubleshooting.md").read_text(encoding="utf-8")
    headings = re.findall(r"^### (.*)$", page, flags=re.MULTILINE)
    parts = [part.strip() for heading in headings for part in heading.split("…")]
    assert len(headings) > 30
    assert [part for part in parts if part not in written] == []


# The manual's pages by their address, as no wheel has the files.
MANUAL = "https://github.com/gpualgo/gpualgo/blob/main/docs/"
NAMED_PAGE = re.compile(r"([^\s`(\"]*)docs/([\w-]+\.md)")


def test_the_package_names_pages_of_the_manual_by_their_address() -> None:
    wrong, names = [], set()
    for path in sorted((REPOSITORY / "gpualgo").rglob("*.py")):
        for before, name in NAMED_PAGE.findall(path.read_text(encoding="utf-8")):
            names.add(name)
            if f"{before}docs/" != MANUAL:
                wrong.append(f"{path.name}: docs/{name}")
    for name in ga.__all__:  # the pages of algorithms, by the names of their packages
        doc = getattr(ga, name).__doc__ or ""
        names.update(page for before, page in NAMED_PAGE.findall(doc) if f"{before}docs/" == MANUAL)
    assert wrong == []
    assert len(names) > 15
    assert [name for name in names if not (REPOSITORY / "docs" / name).is_file()] == []


def test_the_api_reference_lists_all_that_is_public() -> None:
    listed = []
    for name in ("api.rst", "api-numpy.rst"):
        text = (REPOSITORY / "docs" / name).read_text(encoding="utf-8")
        for module, lines in re.findall(
            r"^\.\. currentmodule:: (\S+)\n(.*?)(?=^\.\. currentmodule|\Z)", text, flags=re.M | re.S
        ):
            entries = re.findall(r"^   ([\w.]+)$", lines, flags=re.MULTILINE)
            listed += [f"{module}.{entry}" for entry in entries if entry != "generated"]
    elsewhere = {"gpualgo.lazy", "gpualgo.__version__", "gpualgo.shards.ShardedArray"}
    elsewhere |= {"gpualgo.shards.distribute"}  # the two are listed as gpualgo's
    modules = [ga, ga.lazy, importlib.import_module("gpualgo.numpy")]
    modules += [importlib.import_module("gpualgo.shards")]
    for package in ("dask", "jax"):
        if importlib.util.find_spec(package) is not None:
            modules += [importlib.import_module(f"gpualgo.{package}")]
        else:
            listed = [name for name in listed if not name.startswith(f"gpualgo.{package}.")]
    public = {f"{module.__name__}.{name}" for module in modules for name in module.__all__}
    assert sorted(listed) == sorted(public - elsewhere)


def test_pictures_are_as_they_are_drawn() -> None:
    """docs/pictures/draw.py was run since it, or the stored results, changed."""
    folder = REPOSITORY / "docs/pictures"
    drawn = runpy.run_path(str(folder / "draw.py"))["pictures"]()
    assert {path.name for path in folder.glob("*.svg")} == drawn.keys()
    for name, text in drawn.items():
        assert (folder / name).read_text(encoding="utf-8") == text, name


def test_every_algorithm_has_a_picture() -> None:
    page = (REPOSITORY / "docs/algorithms.md").read_text(encoding="utf-8")
    named = re.findall(r"\]\((\w+)\.md\)", page.partition("Inputs may be")[0])
    assert len(named) > 10
    for name in named:
        text = (REPOSITORY / f"docs/{name}.md").read_text(encoding="utf-8")
        assert f"](pictures/{name}.svg)" in text, name


def _documented() -> list[str]:
    names = [*ga.__all__, *(f"lazy.{name}" for name in ga.lazy.__all__)]
    return [name for name in names if ">>>" in (_doc(name) or "")]


def _doc(name: str) -> str | None:
    found = operator.attrgetter(name)(ga)
    return None if isinstance(found, str) else found.__doc__


@pytest.mark.parametrize("name", _documented())
def test_docstrings(name: str) -> None:
    """Run the examples of a public function or class."""
    text = _doc(name)
    assert text is not None
    with ga.default_device("cpu"):
        _run_doctest(text, {"__name__": name}, Path(name), 0)


def _run_doctest(source: str, namespace: dict[str, Any], page: Path, line: int) -> None:
    test = doctest.DocTestParser().get_doctest(source, {}, page.name, str(page), line)
    test.globs = namespace
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    report: list[str] = []
    runner.run(test, out=report.append, clear_globs=False)
    assert runner.failures == 0, "".join(report)
