"""Operators that are compiled again and again: their author is told once, with the cure."""

from __future__ import annotations

import threading
from typing import Any

from gpualgo._base import forks, log
from gpualgo._base.errors import shown
from gpualgo._operators.key import python_function
from gpualgo._operators.operator import Operator

MOST_CODES = 16  # of one place in a program, before it is said
_MOST_PLACES = 1024
ELEMENT = "element"  # what the function of a lazy array's element is called, wherever it is written

_codes: dict[tuple[object, ...], set[str]] = {}  # digests, by where an operator is written
_lock = threading.Lock()


@forks.in_child
def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()


def place_of(fn: Any) -> str:
    """Return what an operator is called and where it is written, for messages."""
    code = getattr(python_function(fn) or fn, "__code__", None)
    if code is None:
        return shown(fn)
    return f"{code.co_name} ({code.co_filename}:{code.co_firstlineno})"


def _origin(fn: Any, code: Any) -> tuple[object, ...]:
    """Return what tells operators apart by their source.

    Expressions over lazy arrays have one place, or that of a function of the caller's which they
    call: they are told apart by their form and by all functions that they call.
    """
    place = code.co_filename, code.co_firstlineno, code.co_name
    if code.co_name != ELEMENT:
        return place
    held = [cell.cell_contents for cell in getattr(fn, "__closure__", None) or ()]
    return *place, code.co_code, *(place_of(each) for each in held if callable(each))


def noted(op: Operator) -> None:
    """Take down that an operator has been compiled or looked for on disk: its code was new here."""
    fn = python_function(op.shown) or op.shown
    code = getattr(fn, "__code__", None)
    if code is None:
        return
    place, digest = _origin(fn, code), op.digest
    with _lock:
        if place not in _codes and len(_codes) >= _MOST_PLACES:
            return
        found = _codes.setdefault(place, set())
        before = len(found)
        if before < MOST_CODES:  # once that many are known it has been said
            found.add(digest)
        is_too_many = before < len(found) == MOST_CODES
    if is_too_many:
        log.warn(
            "operator %s has been compiled with %d different codes: each takes tenths of a second. "
            "Numbers that it captures are read anew and compile nothing, but functions, tuples, "
            "bools and texts that it captures, and its own source, are part of the code. Define it "
            "once, and capture what changes as a number or an array (docs/operators.md, \"Numbers "
            "that change\")",
            place_of(op.shown), len(found),
        )  # fmt: skip
