"""Warns once about an operator that is compiled many times with different codes."""

from __future__ import annotations

import threading
from typing import Any

from gpualgo._base import forks, log
from gpualgo._base.errors import shown
from gpualgo._operators.key import python_function
from gpualgo._operators.operator import Operator

MOST_CODES = 16  # codes of an operator at one source line before the warning
_MOST_ORIGINS = 1024
ELEMENT = "element"  # name of the generated function of a lazy array's element

_codes: dict[tuple[object, ...], set[str]] = {}  # digests by the operator's source location
_lock = threading.Lock()


@forks.in_child
def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()


def source_location(fn: Any) -> str:
    code = getattr(python_function(fn) or fn, "__code__", None)
    if code is None:
        return shown(fn)
    return f"{code.co_name} ({code.co_filename}:{code.co_firstlineno})"


def _origin(fn: Any, code: Any) -> tuple[object, ...]:
    """Return a key of an operator's source location.

    Expressions of lazy arrays have the location of a function that they call, or none of their own:
    they are distinguished by their code and by all functions that they call.
    """
    location = code.co_filename, code.co_firstlineno, code.co_name
    if code.co_name != ELEMENT:
        return location
    captured = [cell.cell_contents for cell in getattr(fn, "__closure__", None) or ()]
    return (
        *location,
        code.co_code,
        *(source_location(value) for value in captured if callable(value)),
    )


def count_code(op: Operator) -> None:
    fn = python_function(op.shown) or op.shown
    code = getattr(fn, "__code__", None)
    if code is None:
        return
    origin, digest = _origin(fn, code), op.digest
    with _lock:
        if origin not in _codes and len(_codes) >= _MOST_ORIGINS:
            return
        digests = _codes.setdefault(origin, set())
        num_before = len(digests)
        if num_before < MOST_CODES:  # later codes are not counted
            digests.add(digest)
        is_too_many = num_before < len(digests) == MOST_CODES
    if is_too_many:
        log.warn(
            "operator %s has been compiled with %d different codes, each in tenths of a second. "
            "Captured numbers and arrays are read by each call and need no compilation; captured "
            "functions, tuples, bools and strings, and its source, are part of the code. Define it "
            "once, and capture what changes as a number or an array "
            "(https://github.com/gpualgo/gpualgo/blob/main/docs/operators.md, "
            "\"Numbers that change\")",
            source_location(op.shown), len(digests),
        )  # fmt: skip
