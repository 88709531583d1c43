"""The table of docs/scale.md is the stored one; all stored tables say where they are from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import REPOSITORY

from bench.scaling import table

STORED = sorted((REPOSITORY / "bench" / "results" / "scaling").glob("*.json"))


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.name)
def test_stored_figures_say_where_they_are_from(path: Path) -> None:
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert stored["environment"]["commit"]
    assert stored["environment"]["date"]


def test_page_has_the_stored_figures() -> None:
    (path,) = (path for path in STORED if path.name == "h200-x4.json")
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert table(stored["rows"]) in (REPOSITORY / "docs" / "scale.md").read_text(encoding="utf-8")
