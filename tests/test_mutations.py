"""The mutations of mutations.txt fit the package; ``python tests/mutations.py`` plants them."""

from __future__ import annotations

import shlex

from mutations import mutations
from support import REPOSITORY


def test_mutations_have_their_places() -> None:
    """The text that each replaces is there, once; the result is Python; its tests are there."""
    for mutation in mutations():
        text = (REPOSITORY / "gpualgo" / mutation.file).read_text(encoding="utf-8")
        changed = mutation.planted(text)
        assert changed != text
        compile(changed, mutation.file, "exec")
        paths = [path for path in shlex.split(mutation.tests) if path.startswith("tests/")]
        assert paths
        assert all((REPOSITORY / path.partition("::")[0]).exists() for path in paths), mutation.name


def test_there_are_enough_mutations() -> None:
    names = [mutation.name for mutation in mutations()]
    assert len(set(names)) == len(names) >= 60
    assert {"cpu", "emulated"} == {mutation.backend for mutation in mutations()}
