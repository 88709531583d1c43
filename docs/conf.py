"""How the pages of this folder become the manual: `python -m sphinx -W docs build/manual`."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.util import logging

import gpualgo

REPOSITORY = "https://github.com/gpualgo/gpualgo"
FOLDER = Path(__file__).parent

project = author = "gpualgo"
version = release = gpualgo.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
extensions += ["sphinx_copybutton"]
exclude_patterns = ["examples", "pictures"]
default_role = "py:obj"  # of docstrings
highlight_language = "none"  # what is Python says so

myst_heading_anchors = 3
myst_enable_extensions = ["deflist"]
myst_links_external_new_tab = False

# The docstrings are in NumPy's style, and their types are told there, not by the annotations.
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True  # what is also a property is told once
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = True
templates_path = ["_templates"]

copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

html_theme = "pydata_sphinx_theme"
html_title = "gpualgo"
html_static_path = ["_static"]
html_css_files = ["manual.css"]
html_show_sourcelink = False
html_sidebars: dict[str, list[str]] = {name: [] for name in ("index", "installation", "tutorial")}
html_theme_options: dict[str, Any] = {
    "logo": {"text": "gpualgo"},
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_nav_level": 1,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "use_edit_page_button": False,
    "icon_links": [{"name": "GitHub", "url": REPOSITORY, "icon": "fa-brands fa-github"}],
}
copyright = "the gpualgo developers, Apache-2.0"  # noqa: A001  # Sphinx's name

_log = logging.getLogger(__name__)
_FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_NAMES = re.compile(r"\w+(?:, \w+)+")
_HEADING = re.compile(r"^#{1,6} ", re.MULTILINE)
_PAGE = re.compile(rf"{REPOSITORY}/blob/main/docs/([\w-]+)\.md")
_MARK = re.compile(r"<!--\s*gpu\s*-->")


def _link_to_sources(app: Any, name: str, text: list[str]) -> None:
    """Point links that leave this folder, which GitHub follows by itself, to GitHub."""
    up = r"\.\./" * (name.count("/") + 1)
    text[0] = re.sub(rf"\]\({up}([^.)\s][^)\s]*)\)", rf"]({REPOSITORY}/blob/main/\1)", text[0])


def _count_headings(app: Any, tree: nodes.document) -> None:
    """Warn where a source has other headings than its page, as behind an open fence."""
    path = Path(tree["source"])
    if path.suffix != ".md":
        return
    prose = _FENCED.sub("", path.read_text(encoding="utf-8"))
    written, found = len(_HEADING.findall(prose)), len(list(tree.findall(nodes.section)))
    if written != found:
        _log.warning("%s has %d headings, its page %d", path.name, written, found)


def _adapt_docstring(
    app: Any, kind: str, name: str, what: Any, options: Any, lines: list[str]
) -> None:
    """Link the pages that a docstring names, and tell entries with one text one by one."""
    told, lines[:] = list(lines), []
    for k, line in enumerate(told):
        if line.startswith("Alias for field number"):  # of a namedtuple: Python's own words
            continue
        *others, last = line.split(", ") if _NAMES.fullmatch(line) else [line]
        text = [*itertools.takewhile(lambda line: line.startswith(" "), told[k + 1 :])]
        for other in others:
            lines += [other, *text]
        lines.append(_PAGE.sub(r":doc:`/\1`", last))


def _adapt_signature(
    app: Any, kind: str, name: str, what: Any, options: Any, signature: str | None, returned: str
) -> tuple[str, str] | None:
    """Show default values as `help` does, and no constructors of objects that calls return."""
    if kind == "class" and not name.endswith((".Operator", ".vectorize")):
        return "", ""
    if signature is None:
        return None
    text = re.sub(r"<built-in function (\w+)>", r"operator.\1", signature)
    return re.sub(r"<class '(.+?)'>", r"\1", text), returned


def _unlink_words(app: Any, tree: nodes.document) -> None:
    """Leave types in docstrings that are words, such as dtype, what they are: they are no names."""
    for reference in list(tree.findall(addnodes.pending_xref)):
        if reference.get("reftype") == "class" and reference["reftarget"].islower():
            reference.replace_self(reference.children)


def _label_gpu_blocks(app: Any, tree: nodes.document) -> None:
    """Let a block behind the mark `<!-- gpu -->` say that it needs a GPU."""
    for block in list(tree.findall(nodes.literal_block)):
        before = block.previous_sibling()
        if before is not None and _MARK.search(before.astext()):
            before.replace_self(nodes.paragraph("", "on a GPU", classes=["on-a-gpu"]))


def _inline_pictures(app: Any, tree: nodes.document, name: str) -> None:
    """Put our own pictures into the page, whose colours they then take."""
    if app.builder.format != "html":
        return
    for image in list(tree.findall(nodes.image)):
        path = FOLDER / image["uri"]
        if path.suffix != ".svg" or path.parent.name != "pictures":
            continue
        svg = path.read_text(encoding="utf-8")
        image.replace_self(nodes.raw("", f'<div class="picture">{svg}</div>', format="html"))


def setup(app: Any) -> dict[str, Any]:
    """Register what is done to the pages."""
    app.connect("source-read", _link_to_sources)
    app.connect("autodoc-process-docstring", _adapt_docstring, priority=400)
    app.connect("autodoc-process-signature", _adapt_signature)
    app.connect("doctree-read", _count_headings)
    app.connect("doctree-read", _unlink_words)
    app.connect("doctree-read", _label_gpu_blocks)
    app.connect("doctree-resolved", _inline_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
