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
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

from gpualgo._base import records
from gpualgo._base.errors import CapturesChanged, CompileError
from gpualgo._base.memo import Memo
from gpualgo._operators import captured
from gpualgo._operators.captured import (
    SHORT_POWERS,
    DataPlaceholder,
    FixedPolicy,
    Key,
    Location,
    Number,
    Policy,
    Resolved,
    Token,
    number_of,
)
from gpualgo._operators.tokens import (
    CELLS,
    DEFAULTS,
    MISSING,
    UNREACHED,
    Guard,
    Reads,
    Tree,
    constant_token,
    content_of,
    contents_of,
    intern,
    is_library,
    is_of_module,
    number_token,
    object_token,
    reads_of,
)

# --- Snapshots of operators: their content, and a copy that reads no variables.
#
# Each variable is read once, and its value is used for both the key and the copy. So code compiled
# later from the copy matches the key (docs/adr/0011-snapshots.md).

Replacement: TypeAlias = tuple[Token, Any]  # a value's content, and its replacement in the copy


class CodeFacts(NamedTuple):
    content: Token
    parameters: tuple[str, ...]  # part of the content of inner functions: calls may use keywords
    reads: Reads


def python_function(fn: Any) -> types.FunctionType | None:
    """Return the Python function behind fn (also of a numba dispatcher), else None."""
    if type(fn) is types.FunctionType:
        return fn
    inner = getattr(fn, "py_func", None)
    return inner if type(inner) is types.FunctionType else None


class Snapshot:
    """Reads an operator once; the guard records what was read."""

    def __init__(
        self, guard: Guard, facts_of: Callable[[types.CodeType], CodeFacts], policy: Policy
    ) -> None:
        self._guard, self._facts_of, self._policy = guard, facts_of, policy
        self._functions: dict[int, _Copied] = {}
        self._classes: dict[type, int] = {}
        self._depth = self._num_words = 0
        self._num_number_words = 0
        self.arrays: list[Token] = []
        self.numbers: list[tuple[Number, Location]] = []  # numbers passed as data
        self.values: list[Any] = []  # their values

    def function(self, fn: types.FunctionType) -> Replacement:
        """Return the content of a function, including the functions that it calls, and its copy."""
        copied = self._functions.get(id(fn))
        if copied is not None:
            if copied.captures and not self._guard.may_capture:
                raise TypeError(UNREACHED)
            if copied.number and all(each[0] is not fn for each in self._guard.functions):
                self._guard.functions.append((fn, copied.copy.__code__, fn.__defaults__))
            return ("again", copied.number), copied.copy
        code, defaults, kwdefaults = fn.__code__, fn.__defaults__, fn.__kwdefaults__
        names: dict[str, Any] = {"__name__": fn.__module__}
        cells = tuple(types.CellType() for _ in fn.__closure__ or ())
        copy = types.FunctionType(code, names, fn.__name__, None, cells or None)
        copied = self._functions[id(fn)] = _Copied(fn, copy, len(self._functions))
        self._guard.is_stable &= kwdefaults is None
        facts, num_arrays = self._facts_of(code), len(self.arrays)
        if self._depth:
            self._guard.functions.append((fn, code, defaults))
        else:
            self._guard.defaults = defaults
            self._guard.globals = fn.__globals__ if facts.reads.globals else None
        if facts.reads.globals or (self._depth and not self._is_closed(fn)):
            self._guard.is_stable &= is_of_module(fn.__globals__)  # the guard keeps it alive
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

    def _cells(
        self, fn: types.FunctionType, code: types.CodeType, cells: tuple[types.CellType, ...],
        reads: Reads, number: int,
    ) -> Token:  # fmt: skip
        tokens = []
        originals, known = fn.__closure__ or (), self._guard.functions
        for index, (cell, original) in enumerate(zip(cells, originals, strict=True)):
            value = self._guard.read_cell(original, self._depth)
            if value is MISSING:
                tokens.append(("empty",))
                continue
            tree, num_functions = reads.variables.get(code.co_freevars[index], {}), len(known)
            source = CELLS if self._depth == 1 else original
            as_data = self._number(value, (number, index), source, index)
            token, cell.cell_contents = as_data or self._variable(value, None, index, tree, reads)
            if self._depth == 1 and self._is_closed(cell.cell_contents):
                # Any function with this code is accepted in the cell; others may read it, too.
                self._guard.cells[index] = cell.cell_contents.__code__
                del known[num_functions:]
            tokens.append(token)
        return tuple(tokens)

    def _is_closed(self, value: Any) -> bool:
        return (
            type(value) is types.FunctionType and not value.__code__.co_freevars
            and value.__defaults__ is None and value.__kwdefaults__ is None
            and not self._facts_of(value.__code__).reads.globals
        )  # fmt: skip

    def _defaults(self, copy: types.FunctionType, defaults: Any, kwdefaults: Any) -> list[Token]:
        tokens = []
        if self._depth == 1:
            pairs = [
                self._number(value, ("default", index), DEFAULTS, index) or self.value(value)
                for index, value in enumerate(defaults or ())
            ]
            token: Token = ("tuple", tuple(token for token, _ in pairs))
            values = tuple(value for _, value in pairs)
        else:
            token, values = self.value(defaults or ())
        tokens.append(token)
        copy.__defaults__ = values or None
        named = {name: self.value(value) for name, value in sorted((kwdefaults or {}).items())}
        tokens.append(tuple((name, token) for name, (token, _) in named.items()))
        if named:
            copy.__kwdefaults__ = {name: value for name, (_, value) in named.items()}
        return tokens

    def _globals(
        self, fn: types.FunctionType, names: dict[str, Any], reads: Reads, number: int
    ) -> Token:
        tokens = []
        for name in reads.globals:
            source = fn.__globals__
            value = self._guard.read(source, name)
            if value is MISSING:
                source = builtins.__dict__
                value = self._guard.read(source, name)
            if value is MISSING:
                raise TypeError(f"op reads the global name {name!r}, which is not defined")
            tree = reads.variables[name]
            as_data = self._number(value, (number, name), source, name)
            token, names[name] = as_data or self._variable(value, fn.__globals__, name, tree, reads)
            tokens.append((name, token))
        return tuple(tokens)

    def _number(self, value: Any, location: Location, source: Any, name: Any) -> Replacement | None:
        """Return the token and the placeholder of a data number, None if the value is not one."""
        number = number_of(value, self._num_number_words)
        is_exponent = location in self._policy.exponents  # read once: other threads may add to it
        if number is None or (is_exponent and value in SHORT_POWERS):
            return None
        if not self._policy.is_data(location, value):
            return None
        if is_exponent:
            number = number._replace(is_exponent=True)
        self._guard.is_data(source, name)
        self._num_number_words += number.num_words
        self.numbers.append((number, location))
        self.values.append(value)
        return number.token, DataPlaceholder(number)

    def _variable(self, value: Any, names: Any, name: Any, tree: Tree, reads: Reads) -> Replacement:
        """Return the content and replacement of a variable; only variables may hold arrays."""
        if captured.is_array(value):
            token = self._guard.capture(value, names, name, self._depth)
            slot = captured.Slot(token, self._num_words)
            self._num_words += captured.num_words(slot.ndim)
            self.arrays.append(token)
            return token, slot
        if isinstance(value, types.ModuleType):
            return self._module(value, tree, reads.loose, {})
        function = python_function(value)
        return self.value(value) if function is None else self.function(function)

    def _module(
        self, module: types.ModuleType, tree: Tree, loose: tuple[str, ...],
        under_way: dict[int, types.ModuleType],
    ) -> Replacement:  # fmt: skip
        """Return the attributes of a module that code may read, and a module with only these."""
        name = module.__name__
        if not tree and id(module) in under_way:
            return ("module again", name), under_way[id(module)]
        is_known = is_library(name)
        copy = module if is_known else types.ModuleType(name)
        under_way = {**under_way, id(module): copy}
        tokens = []
        for attribute in dict.fromkeys((*tree, *loose)):
            value = self._guard.read_attribute(module, attribute)
            if value is MISSING:
                continue
            location = ("module", name, attribute)
            as_data = None
            if attribute in tree and not is_known and attribute in module.__dict__:
                as_data = self._number(value, location, module.__dict__, attribute)
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
                    raise
                else:  # most likely an attribute of another object; if not, numba raises
                    continue
            tokens.append((attribute, token))
            if not is_known:
                setattr(copy, attribute, value)
        return ("module", name, tuple(tokens)), copy

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
            self._guard.is_stable = False  # the guard does not check it
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
        before, self._guard.may_capture = self._guard.may_capture, False
        try:
            return self.function(function)
        finally:
            self._guard.may_capture = before

    def _token(self, value: Any) -> Token:
        if isinstance(value, enum.Enum):
            return ("member", self._token(type(value)), value.name, self._token(value.value))
        token = number_token(value)
        if token is not None:
            return token
        if isinstance(value, type) and issubclass(value, (enum.Enum, tuple)):
            number = self._classes.get(value)
            if number is not None:
                return ("class again", number)
            content = content_of(value, self._token)
            if content is not None:
                if not issubclass(value, enum.Enum):
                    self._guard.read_class(value)
                self._classes[value] = len(self._classes)
                return content
        return object_token(value)


class _Copied:
    """A visited function and its copy; the function is kept alive so that its id stays unique."""

    __slots__ = ("captures", "copy", "fn", "number")

    def __init__(self, fn: types.FunctionType, copy: types.FunctionType, number: int) -> None:
        self.fn, self.copy, self.number, self.captures = fn, copy, number, False


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
        views, words = guard.recapture(fn), guard.scalars(fn)
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
