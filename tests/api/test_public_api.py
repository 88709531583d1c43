"""What is public is what public_api.txt says: names, signatures, overloads, documented messages."""

from __future__ import annotations

import difflib

import public_api

HOW = "if this is meant, run: python tests/api/public_api.py"


def test_what_is_public_is_as_it_was() -> None:
    found = public_api.sections()
    stored = _stored()
    assert stored.keys() >= found.keys()
    assert stored.keys() - found.keys() <= public_api.OPTIONAL.keys()  # not installed here
    changes = [
        line
        for title, lines in found.items()
        for line in difflib.unified_diff(stored[title], lines, lineterm="", n=0)
        if not line.startswith(("---", "+++", "@@"))
    ]
    assert not changes, "\n".join([HOW, *changes])


def test_all_names_can_be_told() -> None:
    """No line has an address of memory, which differs from process to process."""
    text = public_api.SNAPSHOT.read_text(encoding="utf-8")
    assert " at 0x" not in text
    assert len(text.splitlines()) > 400


def test_overloads_are_found() -> None:
    import gpualgo as ga

    assert len(public_api.overloads_of(ga.reduce)) == 6
    assert "x: Same" in public_api.overloads_of(ga.reduce)[0]
    assert public_api.overloads_of(ga.prepare) == []


def test_signatures_are_whole() -> None:
    def function(a: int, b: float = 1.0, /, *c: str, d: bool = False, **e: int) -> None: ...

    def other(a: int, *, b: int = len([1])) -> int: ...

    want = "(a: int, b: float = 1.0, /, *c: str, d: bool = False, **e: int) -> None"
    assert public_api.signature_of(function) == want
    assert public_api.signature_of(other) == "(a: int, *, b: int = 1) -> int"
    assert public_api.signature_of(lambda a, /, *, b: a) == "(a, /, *, b)"


def _stored() -> dict[str, list[str]]:
    parts = public_api.SNAPSHOT.read_text(encoding="utf-8").strip().split("\n\n")
    titled = (part.splitlines() for part in parts)
    return {title[1:-1]: lines for title, *lines in titled}
