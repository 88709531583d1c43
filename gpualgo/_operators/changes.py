"""Error messages for captured values that another thread changed while a call was prepared."""

from __future__ import annotations

from typing import Any

from gpualgo._base.errors import CapturesChanged, CompileError
from gpualgo._operators import captured
from gpualgo._operators.captured import Captured, FixedPolicy
from gpualgo._operators.content import Key
from gpualgo._operators.guards import Guard, contents_of
from gpualgo._operators.key import facts_of, python_function, take_snapshot


def error_of(where: str, fn: Any, key: Key, found: Captured | None, hot: Any) -> RuntimeError:
    """Return the error of a call that was prepared with the operator key `hot`.

    `found` is what fn captures now, None if that needs other code: then the call may be retried.
    """
    if found is None:
        return CapturesChanged(where, changed(fn, key))
    # Not CapturesChanged, which is retried: some arrays have a new address at each access.
    return RuntimeError(str(CapturesChanged(where, moved_array(fn, found, hot[1]))))


def changed(fn: Any, key: Key) -> str:
    """Return which of a function's captured values differs from a key, for messages."""
    function = python_function(fn)
    if function is None:
        return "the operator"
    try:
        current, _ = take_snapshot(function, Guard(function), FixedPolicy(key.numbers))
        kind, code, _, cells, _, _, names = current.key.token
        before = key.token
        if (kind, code) == before[:2]:
            variables = zip(function.__code__.co_freevars, cells, before[3], strict=True)
            named = (
                (name, token, token_before)
                for (name, token), (_, token_before) in zip(names, before[6], strict=True)
            )
            for name, token, token_before in (*variables, *named):
                if token != token_before:
                    return f"the variable {name}"
    except (TypeError, ValueError, CompileError):  # it captures unsupported values now
        return "a variable"
    return "the code or a default value"


def moved_array(fn: Any, found: Captured, places: captured.Addresses) -> str:
    pairs = zip(found.views, captured.remember_owners(found.views), places, strict=True)
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
