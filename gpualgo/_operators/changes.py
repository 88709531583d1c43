"""What of an operator's captures changed while a call began, in the words of messages."""

from __future__ import annotations

from typing import Any

from gpualgo._base.errors import CompileError
from gpualgo._operators import captured
from gpualgo._operators.captured import Captured
from gpualgo._operators.content import Key
from gpualgo._operators.guards import Guard, contents_of
from gpualgo._operators.key import facts_of, looked_at, python_function
from gpualgo._operators.numbers import AsDecided


class CapturesChanged(RuntimeError):
    """What an operator captures was changed while a call began."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(
            f"{where}: another thread changed {what}, which op reads, while the call began; give "
            "each thread an operator of its own"
        )


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
