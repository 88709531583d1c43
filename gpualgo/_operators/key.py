"""Computes keys of callables; callables with equal code and captured values share a key.

A key contains everything that compiled code depends on: bytecode, constants, defaults, closure
values, and the globals and module attributes that the bytecode reads, recursively for functions;
for arrays only the layout. Names, file and line are excluded, so equal lambdas share a kernel. Keys
are computed at every call, without numba, so that changed variables are noticed. A key also holds
the copy of the callable that is compiled.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any

from gpualgo._base.errors import CapturesChanged, CompileError
from gpualgo._base.memo import Memo
from gpualgo._operators import captured
from gpualgo._operators.captured import FixedPolicy, Key, Location, Policy, Resolved, Token
from gpualgo._operators.guards import Guard, Reads, Tree, contents_of, reads_of
from gpualgo._operators.snapshot import CodeFacts, Replacement, Snapshot, python_function
from gpualgo._operators.tokens import constant_token, intern, object_token

__all__ = ["call_key", "key_of", "python_function", "resolve"]


class _Code:
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


codes: Memo[_Code] = Memo(1 << 14)  # by id; bounded, as programs may create code in a loop


def _code_info(code: types.CodeType) -> _Code:
    info = codes.look(id(code))
    return codes.add(id(code), _Code(code)) if info is None else info


def closed_key_of(fn: types.FunctionType) -> Key | None:
    if fn.__defaults__ is not None or fn.__kwdefaults__ is not None:
        return None
    return _code_info(fn.__code__).closed_key


def facts_of(code: types.CodeType) -> CodeFacts:
    return _code_info(code).facts


def call_key(fn: Any) -> Any:
    """Return fn's key, or a pair of it and the addresses of captured arrays."""
    if type(fn) is types.FunctionType:
        info = _code_info(fn.__code__)
        if info.closed_key is not None and fn.__defaults__ is None and fn.__kwdefaults__ is None:
            return info.closed_key
        guard = info.guard
        if guard is not None and guard.is_plain(fn):
            return guard.key
    key, views, _ = resolve(fn)
    return (key, captured.remember_owners(views)) if views else key


def key_of(fn: Any) -> Key:
    return resolve(fn).key


def resolve(fn: Any) -> Resolved:
    """Return the current key of a callable, and the arrays and numbers that it captures."""
    if type(fn) is not types.FunctionType:
        function = python_function(fn)
        if function is not None:
            return resolve(function)
        try:
            return Resolved(intern(object_token(fn), fn))
        except TypeError:
            raise TypeError(
                f"op is a {type(fn).__name__}, which numba cannot compile; "
                "pass a function or lambda of scalars"
            ) from None
    closed_key = closed_key_of(fn)
    if closed_key is not None:
        return Resolved(closed_key)
    info = _code_info(fn.__code__)
    guard = info.guard
    if guard is not None and guard.holds(fn):
        views, words = guard.recapture(fn), guard.words(fn)
        if views is not None and words is not None:
            return Resolved(guard.key, views, words)
    guard = Guard(fn)
    captures, copy = take_snapshot(fn, guard, info.policy)
    # Stored with the code that was read: another thread may have assigned fn.__code__ meanwhile.
    _code_info(copy.__code__).guard = guard if guard.is_stable else None
    return captures


def take_snapshot(fn: types.FunctionType, guard: Guard, policy: Policy) -> tuple[Resolved, Any]:
    """Return a function's current key and captured values, and its copy to compile."""
    snapshot = Snapshot(guard, facts_of, policy)
    token, copy = snapshot.function(fn)
    key = guard.key = intern(token, copy, tuple(snapshot.arrays), tuple(snapshot.numbers))
    numbers = [number for number, _ in snapshot.numbers]
    guard.expect(numbers)
    words = captured.Packer(numbers)(snapshot.values)
    assert words is not None
    views, guard.views = tuple(guard.views), []
    captured.check_size(views)
    return Resolved(key, views, words), copy


def recapture_for(fn: Any, key: Key) -> Resolved | None:
    """Return what a function captures now, with the key's choice of data numbers.

    None if its content differs from the key. Each call decides once which numbers are data: other
    threads' calls may have changed the policy since.
    """
    captures = resolve(fn)
    if captures.key is key:
        return captures
    function = python_function(fn)
    if function is None:
        return None
    try:
        captures, _ = take_snapshot(function, Guard(function), FixedPolicy(key.numbers))
    except (TypeError, ValueError, CompileError):  # it captures unsupported values now
        return None
    return captures if captures.key is key else None


def packed_numbers_now(fn: Any, key: Key) -> bytes | None:
    """Return the packed data numbers that fn captures now, None if its key has changed."""
    if type(fn) is types.FunctionType:
        guard = _code_info(fn.__code__).guard
        words = None if guard is None else guard.words_of(fn, key)
        if words is not None:
            return words
    captures = recapture_for(fn, key)
    return None if captures is None else captures.captured


def make_constant(
    fn: Any, key: Key, words: Iterable[int] | None = None, is_exponent: bool = False
) -> tuple[list[Location], list[Location]]:
    """Compile numbers of a key in as constants from now on: those at `words`, or all.

    With `is_exponent`, only values in `SHORT_POWERS` at first. Returns the numbers' locations, and
    those of them that were newly added, for `make_data`.
    """
    policy = _policy_of(fn)
    numbers = [pair for pair in key.numbers if words is None or pair[0].first_word in words]
    chosen = policy.constants
    if is_exponent and not all(number.is_exponent for number, _ in numbers):
        chosen = policy.exponents
    locations = [location for _, location in numbers]
    added = [location for location in locations if location not in chosen]
    chosen.update(added)
    return locations, added


def make_data(fn: Any, places: Iterable[Location]) -> None:
    """Undo `make_constant`."""
    policy = _policy_of(fn)
    policy.constants.difference_update(places)
    policy.exponents.difference_update(places)


def _policy_of(fn: Any) -> Policy:
    function = python_function(fn)
    assert function is not None  # other callables capture nothing
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
        # Parameters that nested code reads: not in the bytecode before Python 3.11.
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


# --- Messages about captured values that another thread changed while a call was prepared.


def error_of(where: str, fn: Any, key: Key, current: Resolved | None, op_key: Any) -> RuntimeError:
    """Return the error of a call that was prepared with the operator key `op_key`.

    `current` is what fn captures now, None if that needs other code: then the call may be retried.
    """
    if current is None:
        return CapturesChanged(where, changed(fn, key))
    # Not CapturesChanged, which is retried: some arrays have a new address at each access.
    return RuntimeError(str(CapturesChanged(where, moved_array(fn, current, op_key[1]))))


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


def moved_array(fn: Any, current: Resolved, places: captured.Addresses) -> str:
    pairs = zip(current.arrays, captured.remember_owners(current.arrays), places, strict=True)
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


# --- Copies of functions in which captured numbers, functions and modules are frozen.


class _Frozen(Snapshot):
    """A snapshot whose copy contains all numbers as constants and the original arrays."""

    def _number(self, value: Any, location: Location, source: Any, name: Any) -> Replacement | None:
        return None

    def _variable(self, value: Any, names: Any, name: Any, tree: Tree, reads: Reads) -> Replacement:
        if captured.is_array(value):
            return (), value
        return super()._variable(value, names, name, tree, reads)


def frozen(fn: Any) -> Any:
    """Return a copy of fn that does not change if the variables that fn reads are reassigned.

    Arrays are not copied; they are read when it runs.
    """
    function = python_function(fn)
    if function is None:
        return fn
    return _Frozen(Guard(function), facts_of, Policy()).function(function)[1]
