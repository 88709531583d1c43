"""What is public is what public_api.txt says: names, signatures, overloads, documented messages."""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import operator
import pydoc
import re

import public_api
import pytest

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


@pytest.mark.parametrize("name", public_api.MODULES)
def test_signatures_are_shown_as_they_are_written(name: str) -> None:
    """Without annotations, which are for type checkers, and without <built-in function …>."""
    if name in public_api.OPTIONAL:
        pytest.importorskip(public_api.OPTIONAL[name])
    module = importlib.import_module(name)
    for each in module.__all__:
        value = getattr(module, each)
        methods = (
            [one for one in vars(value).values() if inspect.isfunction(one)]
            if (isinstance(value, type))
            else []
        )
        for one in (value, *methods):
            if callable(one) and not (isinstance(one, type) and issubclass(one, Exception)):
                text = str(inspect.signature(one))
                assert not re.search(r"(: |-> )('|Any\b)|<built-in|<class|<function", text), text


def test_only_the_text_of_signatures_is_changed() -> None:
    import gpualgo as ga

    parameters = inspect.signature(ga.reduce).parameters
    assert "op=operator.add" in str(inspect.signature(ga.reduce))
    assert "op=max," in str(inspect.signature(functools.partial(ga.reduce, op=max)))
    assert parameters["op"].default is operator.add
    assert ga.reduce.__defaults__ == (None, operator.add)
    assert "op=operator.add" in pydoc.render_doc(ga.reduce, renderer=pydoc.plaintext)


def _stored() -> dict[str, list[str]]:
    parts = public_api.SNAPSHOT.read_text(encoding="utf-8").strip().split("\n\n")
    titled = (part.splitlines() for part in parts)
    return {title[1:-1]: lines for title, *lines in titled}
