"""Every example of README.md and docs/*.md runs: on the CPU, or on a GPU where it says so."""

from __future__ import annotations

import doctest
import operator
import re
from pathlib import Path
from typing import Any

import pytest
from support import REPOSITORY, Backend

import gpualgo as ga

PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GPU_BLOCK = re.compile(r"^```python gpu\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BOTH = "xp = np "  # how a page begins whose plain blocks run on either
GPU_PAGES = [page for page in PAGES if GPU_BLOCK.search(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples(page: Path) -> None:
    """Run a page's python blocks in order, in one namespace; those with >>> as doctests."""
    text = page.read_text(encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": page.stem}
    with ga.default_device("cpu"):
        for match in BLOCK.finditer(text):
            source, line = match[1], text.count("\n", 0, match.start(1))
            if source.startswith(">>>"):
                _run_doctest(source, namespace, page, line)
            else:  # leading newlines make tracebacks show the page's own lines
                exec(compile("\n" * line + source, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", GPU_PAGES, ids=lambda page: page.name)
def test_examples_on_a_gpu(cuda: Backend, page: Path) -> None:
    """Run a page's ```python gpu blocks in order, in one namespace, and those of either."""
    pytest.importorskip("torch", reason="the examples use CuPy and PyTorch")
    text = page.read_text(encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": page.stem}
    is_both, text = BOTH in text, text.replace(BOTH, "import cupy as xp ")
    blocks = [*GPU_BLOCK.finditer(text), *(BLOCK.finditer(text) if is_both else ())]
    for match in sorted(blocks, key=lambda block: block.start(1)):
        line = text.count("\n", 0, match.start(1))
        exec(compile("\n" * line + match[1], str(page), "exec"), namespace)


WRITTEN = [*PAGES, REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs/adr").glob("*.md"))]
NAMED = re.compile(r"`((?:gpualgo|cuda_src|tests|bench|docs|_[a-z]+)/[^\s`<>]*)`")
MODULE = re.compile(r"\b((?:gpualgo\.)?_[a-z]+(?:\.[a-z_]+)+)\b")
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


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
    assert not missing


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
