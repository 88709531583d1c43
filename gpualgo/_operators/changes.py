"""What of an operator's captures changed while a call began, in the words of messages."""

from __future__ import annotations

from typing import Any

from gpualgo._base.errors import CapturesChanged, CompileError
from gpualgo._operators import captured
from gpualgo._operators.captured import Captured
from gpualgo._operators.content import Key
from gpualgo._operators.guards import Guard, contents_of
from gpualgo._operators.key import facts_of, looked_at, python_function
from gpualgo._operators.numbers import AsDecided


def error_of(where: str, fn: Any, key: Key, found: Captured | None, hot: Any) -> RuntimeError:
    """Return what a call raises that began with a hot key; `found`: what fn captures now.

    None: that is for other code, which the call may begin again with.
    """
    if found is None:
        return CapturesChanged(where, changed(fn, key))
    # There are arrays that lie elsewhere each time they are looked at: not to be tried again.
    return RuntimeError(str(CapturesChanged(where, moved_array(fn, found, hot[1]))))


def changed(fn: Any, key: Key) -> str:
    """Return what of a function's captures is not as a key has it, for messages."""
    function = python_function(fn)
    if function is None:
        return "the operator"
    try:
        found, _ = looked_at(function, Guard(function), AsDecided(key.numbers))
        kind, code, _, cells, _, _, names = found.key.token
        before = key.token
        if (kind, code) == before[:2]:
            variables = zip(function.__code__.co_freevars, cells, before[3], strict=True)
            named = (
                (name, one, other) for (name, one), (_, other) in zip(names, before[6], strict=True)
            )
            for name, one, other in (*variables, *named):
                if one != other:
                    return f"the variable {name}"
    except (TypeError, ValueError, CompileError):  # other captures than code can have
        return "a variable"
    return "the code or a default value"


def moved_array(fn: Any, found: Captured, places: captured.Places) -> str:
    """Return which array that a function captures lies elsewhere than it did, for messages."""
    pairs = zip(found.views, captured.note(found.views), places, strict=True)
    moved = next((view.owner for view, now, before in pairs if now != before), None)
    function = python_function(fn)
    if function is not None:
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        variables = {name: contents_of(cell) for name, cell in cells}
        names = facts_of(function.__code__).reads.globals
        variables.update((name, function.__globals__.get(name)) for name in names)
        for name, value in variables.items():
            if value is moved:
                return f"the variable {name}"
    return "an array"
