"""Computes keys of callables; callables with equal code and captured values share a key.

A key contains everything that compiled code depends on: bytecode, constants, defaults, closure
values, and the globals and module attributes that the bytecode reads, recursively for functions;
for arrays only the layout. Names, file and line are excluded, so equal lambdas share a kernel. Keys
are computed at every call, without numba, so that changed variables are noticed. A key also holds
the copy of the callable that is compiled.
"""

from __future__ import annotations

import builtins
import enum
import types
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._base.errors import CapturesChanged, CompileError
from gpualgo._base.memo import Memo
from gpualgo._operators import captured, tokens
from gpualgo._operators.captured import FixedPolicy, Key, Location, Number, Policy, Resolved, Token
from gpualgo._operators.tokens import ANY, MISSING, Guard, Reads, Source, Tree, contents_of, intern

# --- Snapshots of operators: their content, and a copy that reads no variables.
#
# Each variable is read once, and its value is used for both the key and the copy. So code compiled
# later from the copy matches the key (docs/adr/0011-snapshots.md).

Replacement: TypeAlias = tuple[Token, Any]  # a value's content, and its replacement in the copy
UNREACHED = (
    "op reaches an array through a tuple or a default value; capture the array itself, as a "
    "variable outside of op"
)


def python_function(fn: Any) -> types.FunctionType | None:
    """Return the Python function behind fn (also of a numba dispatcher), else None."""
    if type(fn) is types.FunctionType:
        return fn
    inner = getattr(fn, "py_func", None)
    return inner if type(inner) is types.FunctionType else None


class Snapshot:
    """Reads an operator once; the guard records what was read."""

    def __init__(self, policy: Policy) -> None:
        self.guard, self._policy = Guard(), policy
        self._functions: dict[int, _Copied] = {}
        self._classes: dict[type, int] = {}
        self._depth = self._num_words = 0
        self._num_number_words = 0
        self._may_capture = True
        self.views: list[View] = []  # the arrays, in order
        self.arrays: list[Token] = []
        self.numbers: list[tuple[Number, Location]] = []  # numbers passed as data
        self.values: list[Any] = []  # their values
        self.reading = ""  # the variable that is being read, for messages

    def function(self, fn: types.FunctionType, is_own_cell: bool = False) -> Replacement:
        """Return the content of a function, including the functions that it calls, and its copy.

        In a cell of the operator itself, any function with the same closed code is accepted.
        """
        copied = self._functions.get(id(fn))
        if copied is not None:
            if copied.captures and not self._may_capture:
                raise TypeError(UNREACHED)
            self._expect_function(copied, is_own_cell)
            return ("again", copied.number), copied.copy
        code, defaults, kwdefaults = fn.__code__, fn.__defaults__, fn.__kwdefaults__
        names: dict[str, Any] = {"__name__": fn.__module__, tokens.COPIED: True}
        cells = tuple(types.CellType() for _ in fn.__closure__ or ())
        copy = types.FunctionType(code, names, fn.__name__, None, cells or None)
        facts, num_arrays = facts_of(code), len(self.arrays)
        is_closed = facts.closed_key is not None and defaults is None and kwdefaults is None
        number = len(self._functions)
        # The operator's own code is what a guard is found by.
        copied = _Copied(fn, copy, number, defaults, is_closed, is_guarded=not number)
        self._functions[id(fn)] = copied
        self.guard.is_stable &= kwdefaults is None
        self._expect_function(copied, is_own_cell)
        if not self._depth:
            self.guard.code = code
            self.guard.globals = fn.__globals__ if facts.reads.globals else None
        if facts.reads.globals or (self._depth and not is_closed):
            self.guard.is_stable &= tokens.is_lasting(fn.__globals__)  # the guard keeps it alive
        self._depth += 1
        token = (
            "function",
            facts.content,
            facts.parameters if self._depth > 1 else (),
            self._cells(fn, code, cells, facts.reads, copied.number),
            *self._defaults(copy, defaults, kwdefaults),
            self._globals(fn, names, facts.reads, copied.number),
        )
        self._depth -= 1
        copied.captures = len(self.arrays) > num_arrays
        return token, copy

    def _expect_function(self, copied: _Copied, is_own_cell: bool) -> None:
        if not (copied.is_guarded or (is_own_cell and copied.is_closed)):
            copied.is_guarded = True
            self.guard.expect_function(copied.fn, copied.copy.__code__, copied.defaults)

    def _cells(
        self, fn: types.FunctionType, code: types.CodeType, cells: tuple[types.CellType, ...],
        reads: Reads, number: int,
    ) -> Token:  # fmt: skip
        parts: list[Token] = []
        is_own = self._depth == 1
        for index, (cell, original) in enumerate(zip(cells, fn.__closure__ or (), strict=True)):
            source: Source = (tokens.CELLS, index) if is_own else (original, tokens.CONTENTS)
            value = contents_of(original)
            if value is MISSING:
                self.guard.expect(*source, value)
                parts.append(("empty",))
                continue
            self.reading = code.co_freevars[index]
            tree = reads.variables.get(self.reading, {})
            token, copy = self._variable(value, source, (number, index), tree, reads)
            cell.cell_contents = copy
            if is_own and is_closed(copy):
                # Any function with this code is accepted in the cell; others may read it, too.
                self.guard.cells[index] = copy.__code__
            parts.append(token)
        return tuple(parts)

    def _defaults(self, copy: types.FunctionType, defaults: Any, kwdefaults: Any) -> list[Token]:
        known, pairs = list(defaults or ()), []
        for index, value in enumerate(known):
            source = tokens.DEFAULTS, index
            self.reading = copy.__code__.co_varnames[copy.__code__.co_argcount - len(known) + index]
            as_data = self._number(value, ("default", index), source) if self._depth == 1 else None
            if as_data is not None:
                known[index] = ANY
            pairs.append(as_data or self.value(value))
        if self._depth == 1:
            self.guard.defaults = tuple(known) if ANY in known else defaults
        copy.__defaults__ = tuple(value for _, value in pairs) or None
        self.reading = ", ".join(kwdefaults or ())
        named = {name: self.value(value) for name, value in sorted((kwdefaults or {}).items())}
        if named:
            copy.__kwdefaults__ = {name: value for name, (_, value) in named.items()}
        return [
            ("tuple", tuple(token for token, _ in pairs)),
            tuple((name, token) for name, (token, _) in named.items()),
        ]

    def _globals(
        self, fn: types.FunctionType, names: dict[str, Any], reads: Reads, number: int
    ) -> Token:
        parts: list[Token] = []
        for name in reads.globals:
            source = fn.__globals__
            value = source.get(name, MISSING)
            if value is MISSING:
                self.guard.expect(source, name, value)
                source = builtins.__dict__
                value = source.get(name, MISSING)
            if value is MISSING:
                raise TypeError(f"op reads the global name {name!r}, which is not defined")
            self.reading = name
            token, names[name] = self._variable(
                value, (source, name), (number, name), reads.variables[name], reads
            )
            parts.append((name, token))
        return tuple(parts)

    def _number(self, value: Any, location: Location, source: Source) -> Replacement | None:
        """Return the token and the placeholder of a data number, None if the value is not one."""
        number = captured.number_of(value, self._num_number_words)
        is_exponent = location in self._policy.exponents  # read once: other threads may add to it
        if number is None or (is_exponent and value in captured.SHORT_POWERS):
            return None
        if not self._policy.is_data(location, value):
            return None
        if is_exponent:
            number = number._replace(is_exponent=True)
        self.guard.numbers.append(source)
        self._num_number_words += number.num_words
        self.numbers.append((number, location))
        self.values.append(value)
        return number.token, captured.DataPlaceholder(number)

    def _expected(
        self, value: Any, source: Source, location: Location | None
    ) -> Replacement | None:
        """Tell the guard a variable's value; return what replaces it if it is a data number."""
        as_data = None if location is None else self._number(value, location, source)
        is_any = as_data is not None or captured.is_array(value)
        self.guard.expect(*source, ANY if is_any else value)
        return as_data

    def _variable(
        self, value: Any, source: Source, location: Location, tree: Tree, reads: Reads
    ) -> Replacement:
        """Return the content and replacement of a variable; only variables may hold arrays."""
        as_data = self._expected(value, source, location)
        if as_data is not None:
            return as_data
        if captured.is_array(value):
            return self._array(value, source)
        if isinstance(value, types.ModuleType):
            return self._module(value, tree, reads.loose, {})
        function = python_function(value)
        if function is None:
            return self.value(value)
        return self.function(function, source[0] is tokens.CELLS)

    def _array(self, array: Any, source: Source) -> Replacement:
        if not self._may_capture:
            raise TypeError(UNREACHED)
        view = captured.view_of(array)
        token = captured.token_of(view)
        self.guard.capture(*source, array, token)
        self.guard.is_stable &= self._depth == 1
        slot = captured.Slot(token, self._num_words)
        self._num_words += captured.num_words(slot.ndim)
        self.arrays.append(token)
        self.views.append(view)
        return token, slot

    def _module(
        self, module: types.ModuleType, tree: Tree, loose: tuple[str, ...],
        under_way: dict[int, types.ModuleType],
    ) -> Replacement:  # fmt: skip
        """Return the attributes of a module that code may read, and a module with only these."""
        name = module.__name__
        if not tree and id(module) in under_way:
            return ("module again", name), under_way[id(module)]
        is_known = tokens.is_library(name)
        copy = module if is_known else types.ModuleType(name)
        under_way = {**under_way, id(module): copy}
        parts: list[Token] = []
        for attribute in dict.fromkeys((*tree, *loose)):
            source = tokens.source_of(module, attribute)
            value = tokens.value_at(*source)
            location = ("module", name, attribute)
            is_variable = attribute in tree and not is_known and source[0] is module.__dict__
            as_data = self._expected(value, source, location if is_variable else None)
            if value is MISSING:
                # A `__getattr__` may be defined later.
                self.guard.expect(
                    source[0], "__getattr__", tokens.value_at(source[0], "__getattr__")
                )
                continue
            try:
                token, value = as_data or (
                    self._module(value, tree.get(attribute, {}), loose, under_way)
                    if isinstance(value, types.ModuleType)
                    else self._attribute(value)
                )
            except (TypeError, CompileError):
                if is_known:  # such as a C function without a name
                    token = ("named", name, attribute)
                elif attribute in tree:
                    self.reading = f"{name}.{attribute}"
                    raise
                else:  # most likely an attribute of another object; if not, numba raises
                    continue
            parts.append((attribute, token))
            if not is_known:
                setattr(copy, attribute, value)
        return ("module", name, tuple(parts)), copy

    def _attribute(self, value: Any) -> Replacement:
        if captured.is_array(value):
            raise CompileError(
                "op reads an array that is an attribute of a module; give it a name of its own "
                "outside of op and use that"
            )
        return self.value(value)

    def value(self, value: Any) -> Replacement:
        """Return the content of a value that contains no array, and its copy."""
        if type(value) is tuple:
            items = [self.value(item) for item in value]
            return ("tuple", tuple(token for token, _ in items)), tuple(v for _, v in items)
        if captured.is_array(value):
            self.guard.is_stable = False  # the guard does not check it
            raise TypeError(UNREACHED)
        function = python_function(value)
        if function is None:
            token = self._token(value)
            if not records.is_tuple_class(value):
                return token, value
            if not records.is_made_of_fields(value):
                raise TypeError(
                    f"op makes tuples of class {value.__name__}, which has its own __new__, "
                    "which kernels do not run; make a plain tuple, or a namedtuple without one"
                )
            return token, records.class_of(value._fields)  # shared by all classes with these fields
        before, self._may_capture = self._may_capture, False
        try:
            return self.function(function)
        finally:
            self._may_capture = before

    def _token(self, value: Any) -> Token:
        if isinstance(value, enum.Enum):
            return ("member", self._token(type(value)), value.name, self._token(value.value))
        token = tokens.number_token(value)
        if token is not None:
            return token
        if isinstance(value, type) and issubclass(value, (enum.Enum, tuple)):
            number = self._classes.get(value)
            if number is not None:
                return ("class again", number)
            content = tokens.content_of(value, self._token)
            if content is not None:
                if not issubclass(value, enum.Enum):
                    self.guard.expect_class(value)
                self._classes[value] = len(self._classes)
                return content
        return tokens.object_token(value)


@dataclass
class _Copied:
    """A visited function and its copy; the function is kept alive so that its id stays unique."""

    fn: types.FunctionType
    copy: types.FunctionType
    number: int
    defaults: Any
    is_closed: bool
    is_guarded: bool
    captures: bool = False


class CodeFacts:
    """What is known of a code object; `guard` is of the last function that was read with it."""

    __slots__ = ("closed_key", "code", "content", "guard", "parameters", "policy", "reads")

    def __init__(self, code: types.CodeType) -> None:
        self.code = code  # a strong reference: the cache is keyed by id
        self.content, self.reads = tokens.content_of_code(code), tokens.reads_of(code)
        self.parameters = tokens.parameters_of(code)  # calls of inner functions may name them
        closed = not self.reads.globals and not code.co_freevars
        self.closed_key = (
            intern(("closed", self.content), types.FunctionType(code, {})) if closed else None
        )
        self.guard: Guard | None = None
        self.policy = Policy()


codes: Memo[CodeFacts] = Memo(1 << 14)  # by id; bounded, as programs may create code in a loop


def facts_of(code: types.CodeType) -> CodeFacts:
    info = codes.look(id(code))
    return codes.add(id(code), CodeFacts(code)) if info is None else info


def is_closed(value: Any) -> bool:
    """Return whether a value is a function that reads nothing but its arguments."""
    if type(value) is not types.FunctionType:
        return False
    is_plain = value.__defaults__ is None and value.__kwdefaults__ is None
    return is_plain and facts_of(value.__code__).closed_key is not None


_BUILTINS = np.ufunc, types.BuiltinFunctionType
_builtin_keys: dict[Any, Key] = {}  # of those that a library defines, which live as long as it


def call_key(fn: Any) -> Any:
    """Return fn's key, or a pair of it and the addresses of captured arrays."""
    is_builtin = type(fn) in _BUILTINS
    if is_builtin and fn in _builtin_keys:
        return _builtin_keys[fn]
    key, views, _ = resolve(fn)
    if is_builtin and key.token[0] == "object":
        _builtin_keys[fn] = key
    return (key, captured.remember_owners(views)) if views else key


def resolve(fn: Any) -> Resolved:
    """Return the current key of a callable, and the arrays and numbers that it captures."""
    if type(fn) is not types.FunctionType:
        function = python_function(fn)
        if function is not None:
            return resolve(function)
        try:
            return Resolved(intern(tokens.object_token(fn), fn))
        except TypeError:
            name, hint = str(getattr(fn, "__name__", "")), "pass a function or lambda of scalars"
            if isinstance(getattr(np, name, None), np.ufunc):
                hint = f"pass numpy.{name}"
            raise TypeError(
                f"op is a {type(fn).__name__}, which numba cannot compile; {hint}"
            ) from None
    info = facts_of(fn.__code__)
    if info.closed_key is not None and fn.__defaults__ is None and fn.__kwdefaults__ is None:
        return Resolved(info.closed_key)
    guard = info.guard
    if guard is not None and guard.holds(fn):
        views, words = guard.recapture(fn), guard.scalars(fn)
        if views is not None and words is not None:
            return Resolved(guard.key, views, words)
    captures, guard = take_snapshot(fn, info.policy)
    # Stored with the code that was read: another thread may have assigned fn.__code__ meanwhile.
    facts_of(guard.code).guard = guard if guard.is_stable else None
    return captures


def take_snapshot(fn: types.FunctionType, policy: Policy) -> tuple[Resolved, Guard]:
    """Return a function's current key and captured values, and the guard of the key."""
    snapshot = Snapshot(policy)
    try:
        token, copy = snapshot.function(fn)
    except (TypeError, ValueError, CompileError) as error:
        problem, semicolon, advice = str(error).partition("; ")
        if semicolon and snapshot.reading and repr(snapshot.reading) not in problem:
            error.args = (f"{problem} (variable {snapshot.reading}); {advice}",)
        raise
    key = intern(token, copy, tuple(snapshot.arrays), tuple(snapshot.numbers))
    snapshot.guard.complete(key)
    words = captured.Packer([number for number, _ in key.numbers])(snapshot.values)
    assert words is not None
    captured.check_size(snapshot.views)
    return Resolved(key, tuple(snapshot.views), words), snapshot.guard


def recapture_for(fn: Any, key: Key) -> Resolved | None:
    """Return what a function captures now, with the key's choice of data numbers.

    None if its content differs from the key. Each call decides once which numbers are data: other
    threads' calls may have changed the policy since.
    """
    captures: Resolved | None = resolve(fn)
    if captures is not None and captures.key is not key:
        captures = _captures_like(fn, key)
    return captures if captures is not None and captures.key is key else None


def _captures_like(fn: Any, key: Key) -> Resolved | None:
    function = python_function(fn)
    if function is None:
        return None
    try:
        return take_snapshot(function, FixedPolicy(key.numbers))[0]
    except (TypeError, ValueError, CompileError):  # it captures unsupported values now
        return None


def packed_numbers_now(fn: Any, key: Key) -> bytes | None:
    """Return the packed data numbers that fn captures now, None if its key has changed."""
    if type(fn) is types.FunctionType:
        guard = facts_of(fn.__code__).guard
        words = None if guard is None else guard.scalars_of(fn, key)
        if words is not None:
            return words
    captures = recapture_for(fn, key)
    return None if captures is None else captures.captured


def make_constant(
    fn: Any, key: Key, words: Iterable[int] | None = None, is_exponent: bool = False
) -> tuple[list[Location], list[Location]]:
    """Compile numbers of a key in as constants from now on: those at `scalars`, or all.

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
    info = facts_of(function.__code__)
    info.guard = None
    return info.policy


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
    current = _captures_like(function, key)
    if current is None:
        return "a variable"
    (kind, code, _, cells, _, _, names), before = current.key.token, key.token
    if (kind, code) == before[:2]:
        variables = (*zip(function.__code__.co_freevars, cells, strict=True), *names)
        for (name, token), token_before in zip(
            variables, (*before[3], *(token for _, token in before[6])), strict=True
        ):
            if token != token_before:
                return f"the variable {name}"
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
    """A snapshot whose copy contains the original arrays."""

    def _array(self, array: Any, source: Source) -> Replacement:
        return (), array


def frozen(fn: Any) -> Any:
    """Return a copy of fn that does not change if the variables that fn reads are reassigned.

    Arrays are not copied; they are read when it runs.
    """
    function = python_function(fn)
    if function is None:
        return fn
    return _Frozen(FixedPolicy(())).function(function)[1]
