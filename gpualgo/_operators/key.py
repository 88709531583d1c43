"""Keys: what a callable computes, as an object that equal code shares.

A key holds everything that compiled code can depend on: bytecode, constants, defaults, closure
values and the globals (and module attributes) that the bytecode reads, functions recursively; of
arrays the layout alone (`_captured`). Names, file and line are left out, so equal lambdas written
twice share one kernel. It is taken on every call, so a changed closure value or global is noticed;
numba is not needed for it. With it goes the copy of the callable that is compiled.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any

from gpualgo._base.errors import CompileError
from gpualgo._base.memo import Memo
from gpualgo._operators import captured
from gpualgo._operators.bytecode import reads_of
from gpualgo._operators.captured import Captured
from gpualgo._operators.content import Key, Token, intern
from gpualgo._operators.guards import Guard, contents_of
from gpualgo._operators.numbers import AsDecided, Place, Policy
from gpualgo._operators.snapshot import (
    CodeFacts,
    Snapshot,
    python_function,
)
from gpualgo._operators.tokens import constant_token, object_token

__all__ = ["call_key", "examine", "key_of", "python_function"]


class _Code:
    """What is known of one code object: its facts, and the key of all that reads nothing else."""

    __slots__ = ("closed_key", "code", "facts", "guard", "policy")

    def __init__(self, code: types.CodeType) -> None:
        self.code = code  # a strong reference: the cache is keyed by id
        reads = reads_of(code)
        self.facts = CodeFacts(_content(code), _parameters(code), reads)
        closed = not reads.globals and not code.co_freevars
        self.closed_key = (
            intern(("closed", self.facts.content), types.FunctionType(code, {})) if closed else None
        )
        self.guard: Guard | None = None
        self.policy = Policy()


codes: Memo[_Code] = Memo(1 << 14)  # by id; of a program that makes code objects in a loop


def _code_info(code: types.CodeType) -> _Code:
    info = codes.get(id(code))
    return codes.add(id(code), _Code(code)) if info is None else info


def closed_key_of(fn: types.FunctionType) -> Key | None:
    """Return the key of a function that reads nothing but its arguments; None: it may read more."""
    if fn.__defaults__ is not None or fn.__kwdefaults__ is not None:
        return None
    return _code_info(fn.__code__).closed_key


def facts_of(code: types.CodeType) -> CodeFacts:
    """Return what a code object computes and may read."""
    return _code_info(code).facts


def call_key(fn: Any) -> Any:
    """Return what decides a call of fn: its key, and where captured arrays lie."""
    if type(fn) is types.FunctionType:
        info = _code_info(fn.__code__)
        if info.closed_key is not None and fn.__defaults__ is None and fn.__kwdefaults__ is None:
            return info.closed_key
        guard = info.guard
        if guard is not None and guard.is_plain(fn):
            return guard.key
    key, views, _ = examine(fn)
    return (key, captured.note(views)) if views else key


def key_of(fn: Any) -> Key:
    """Return the key of a callable as it stands now."""
    return examine(fn).key


def examine(fn: Any) -> Captured:
    """Return the key of a callable as it stands now, and the arrays that it captures."""
    if type(fn) is not types.FunctionType:
        function = python_function(fn)
        if function is not None:
            return examine(function)
        try:
            return Captured(intern(object_token(fn), fn), ())
        except TypeError:
            raise TypeError(
                f"op is a {type(fn).__name__}, which numba cannot compile; "
                "pass a function or lambda of scalars"
            ) from None
    info = _code_info(fn.__code__)
    if info.closed_key is not None and fn.__defaults__ is None and fn.__kwdefaults__ is None:
        return Captured(info.closed_key, ())
    guard = info.guard
    if guard is not None and guard.holds(fn):
        known, words = guard.recapture(fn), guard.words(fn)
        if known is not None and words is not None:
            return Captured(guard.key, known, words)
    guard = Guard(fn)
    found, copy = _looked_at(fn, guard, info.policy)
    # By the code that was read: another thread may have given fn new code meanwhile.
    _code_info(copy.__code__).guard = guard if guard.is_stable else None
    return found


def _looked_at(fn: types.FunctionType, guard: Guard, policy: Policy) -> tuple[Captured, Any]:
    """Return a function's key, and what it captures, as they are now, and its copy."""
    snapshot = Snapshot(guard, facts_of, policy)
    token, copy = snapshot.function(fn)
    key = guard.key = intern(token, copy, tuple(snapshot.arrays), tuple(snapshot.numbers))
    guard.expect([number for number, _ in snapshot.numbers])
    words = guard.pack(snapshot.values)
    assert words is not None
    views, guard.views = tuple(guard.views), []
    captured.check_size(views)
    return Captured(key, views, words), copy


def as_decided(fn: Any, key: Key) -> Captured | None:
    """Return what a function captures now, for the code of its key; None if that is another's.

    What was learnt since the key was taken, by calls of other threads, makes no difference: which
    numbers are data is decided once for each call.
    """
    found = examine(fn)
    if found.key is key:
        return found
    function = python_function(fn)
    if function is None:
        return None
    try:
        found, _ = _looked_at(function, Guard(function), AsDecided(key.numbers))
    except (TypeError, ValueError, CompileError):  # what it captures now is no good
        return None
    return found if found.key is key else None


def words_now(fn: Any, key: Key) -> bytes | None:
    """Return the numbers that fn captures and that are data, None if its key is another now."""
    if type(fn) is types.FunctionType:
        guard = _code_info(fn.__code__).guard
        words = None if guard is None else guard.words_of(fn, key)
        if words is not None:
            return words
    found = as_decided(fn, key)
    return None if found is None else found.words


def changed(fn: Any, key: Key) -> str:
    """Return what of a function's captures is not as a key has it, for messages."""
    function = python_function(fn)
    if function is None:
        return "the operator"
    try:
        found, _ = _looked_at(function, Guard(function), AsDecided(key.numbers))
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


def compile_in(
    fn: Any, key: Key, words: Iterable[int] | None = None, is_exponent: bool = False
) -> tuple[list[Place], list[Place]]:
    """Have numbers of a key compiled in from now on: those that begin at some words, or all.

    Exponents at first where they are short alone. Returns their places, and of those the ones that
    were otherwise till now, for `make_data`.
    """
    policy = _policy_of(fn)
    found = [pair for pair in key.numbers if words is None or pair[0].first_word in words]
    chosen = policy.constants
    if is_exponent and not all(number.is_exponent for number, _ in found):
        chosen = policy.exponents
    places = [place for _, place in found]
    added = [place for place in places if place not in chosen]
    chosen.update(added)
    return places, added


def make_data(fn: Any, places: Iterable[Place]) -> None:
    """Take `compile_in` back."""
    policy = _policy_of(fn)
    policy.constants.difference_update(places)
    policy.exponents.difference_update(places)


def _policy_of(fn: Any) -> Policy:
    function = python_function(fn)
    assert function is not None  # else it captures nothing
    info = _code_info(function.__code__)
    info.guard = None
    return info.policy


def _content(code: types.CodeType) -> Token:
    return (
        code.co_code,
        tuple(_constant(value) for value in code.co_consts),
        code.co_names,
        code.co_argcount,
        code.co_posonlyargcount,
        code.co_kwonlyargcount,
        code.co_flags,
        len(code.co_varnames),
        # Which parameters code inside reads: before Python 3.11 the bytecode does not say.
        tuple(
            code.co_varnames.index(name) if name in code.co_varnames else -1
            for name in code.co_cellvars
        ),
        code.co_freevars,
        getattr(code, "co_exceptiontable", b""),
    )


def _parameters(code: types.CodeType) -> tuple[str, ...]:
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _constant(value: Any) -> Token:
    if isinstance(value, types.CodeType):
        return ("code", _content(value), _parameters(value))
    return constant_token(value)
