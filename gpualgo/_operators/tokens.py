"""Keys of callables, and the tokens of what they capture: hashable, compared by value."""

from __future__ import annotations

import builtins
import enum
import functools
import inspect
import struct
import sys
import types
import uuid
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpualgo._arrays.view import View
from gpualgo._base import dtypes, forks
from gpualgo._operators import captured
from gpualgo._operators.captured import Key, Number, Packer, Token

# --- Guards: check quickly whether an operator still reads the objects that its key was made from.

MISSING = object()
ANY = object()  # matches any value: for arrays, which a guard does not hold, and data numbers
Source: TypeAlias = tuple[Any, Any]
"""Where a variable is read: `CELLS` or `DEFAULTS` of the operator and an index; else a namespace, a
module, a class or a cell, and a name."""
CELLS, DEFAULTS, CONTENTS = "cells", "defaults", "cell_contents"


def contents_of(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def attribute_of(owner: Any, name: str) -> Any:
    """Return an attribute as compiled code reads it, or a cell's contents; MISSING if absent."""
    try:
        return getattr(owner, name)
    except Exception:  # raised by a module's __getattr__; numba reports it later
        return MISSING


Reader: TypeAlias = Callable[[types.FunctionType], Any]  # returns a captured value of a function


def _reader(source: Any, name: Any) -> Reader:
    if source is CELLS:
        return lambda fn: contents_of(fn.__closure__[name])  # type: ignore[index]
    if source is DEFAULTS:
        return lambda fn: next(iter((fn.__defaults__ or ())[name:]), None)
    if type(source) is dict:
        return lambda fn: source.get(name)
    return lambda fn: attribute_of(source, name)


def _packer(readers: list[Reader], numbers: Sequence[Number]) -> Reader:
    """Return the function that packs a function's current numbers, None if a type has changed."""
    if len(numbers) == 1 and numbers[0].kind == "float" and not numbers[0].is_exponent:
        (read,), pack = readers, struct.Struct("<d").pack  # fast path for one float

        def packed_float(fn: types.FunctionType) -> bytes | None:
            value = read(fn)
            return pack(value) if type(value) is float else None

        return packed_float
    pack_all = Packer(numbers)
    return lambda fn: pack_all([read(fn) for read in readers])


def _is_plain_function_of(fn: Any, code: Any) -> bool:
    return (
        type(code) is types.CodeType and type(fn) is types.FunctionType and fn.__code__ is code
        and fn.__defaults__ is None and fn.__kwdefaults__ is None
    )  # fmt: skip


def _is_alike(fn: Any, known: Any, depth: int = 8) -> bool:
    """Return whether a value is the same as a known one in every operator.

    An integer or a text is if it is equal, a function if it has the same code and reads such
    values, a tuple if its items are.
    """
    if fn is known:
        return True
    kind = type(fn)
    if kind is not type(known) or not depth:
        return False
    if kind is int or kind is str or issubclass(kind, np.integer):
        return bool(fn == known)
    if kind is tuple:
        return len(fn) == len(known) and all(
            _is_alike(item, other, depth - 1) for item, other in zip(fn, known, strict=True)
        )
    if kind is not types.FunctionType:
        return False
    if fn.__code__ is not known.__code__ or fn.__defaults__ is not known.__defaults__:
        return False
    if fn.__kwdefaults__ is not None or known.__kwdefaults__ is not None:
        return False
    names, known_names = fn.__globals__, known.__globals__
    if names is not known_names:
        if COPIED not in names or names.keys() != known_names.keys():
            return False
        if not all(_is_alike(names[name], known_names[name], depth - 1) for name in names):
            return False
    closures = zip(fn.__closure__ or (), known.__closure__ or (), strict=True)
    pairs = [(contents_of(cell), contents_of(other)) for cell, other in closures]
    return all(_is_alike(value, other, depth - 1) for value, other in pairs)


def _defaults_match(defaults: tuple[Any, ...] | None, known: tuple[Any, ...] | None) -> bool:
    if defaults is None or known is None or len(defaults) != len(known):
        return False
    pairs = zip(defaults, known, strict=True)
    return all(expected is ANY or _is_alike(value, expected) for value, expected in pairs)


class Guard:
    """The objects that a key was made from: the key is valid while all are the same."""

    __slots__ = (
        "_fixed_cells", "are_own", "arrays", "attributes", "cells", "code", "defaults", "globals",
        "is_stable", "key", "numbers", "scalars", "values",
    )  # fmt: skip

    def __init__(self) -> None:
        self.code: types.CodeType  # that was read
        self.globals: dict[str, Any] | None = None  # None if the function reads none
        self.defaults: tuple[Any, ...] | None = None
        self.numbers: list[Source] = []  # those that are data
        # Packs a function's current numbers, None if one has another type.
        self.scalars: Callable[[types.FunctionType], bytes | None] = lambda fn: b""
        self.are_own = True  # numbers are read from the function itself or its globals
        self._fixed_cells: list[tuple[int, Any]] = []
        self.cells: list[Any] = []  # of the function itself, in order
        self.arrays: list[tuple[Reader, type, Any]] = []  # with the class and token of each
        self.values: list[tuple[dict[str, Any], str, Any]] = []
        self.attributes: list[tuple[Any, str, Any]] = []  # of modules, classes, functions and cells
        self.is_stable = True
        self.key: Key  # set when all is read

    def expect(self, source: Any, name: Any, value: Any) -> None:
        """Remember the value of a variable."""
        if source is CELLS:
            self.cells.append(value)
        elif value is not ANY:
            (self.values if type(source) is dict else self.attributes).append((source, name, value))

    def expect_function(self, fn: types.FunctionType, code: Any, defaults: Any) -> None:
        self.attributes += [(fn, "__code__", code), (fn, "__defaults__", defaults)]

    def expect_class(self, cls: type) -> None:
        new = attribute_of(cls, "__new__")
        self.attributes += [(cls, "_fields", attribute_of(cls, "_fields")), (cls, "__new__", new)]
        self.is_stable &= type(new) is types.FunctionType
        if self.is_stable:
            self.expect_function(new, new.__code__, new.__defaults__)

    def capture(self, source: Any, name: Any, array: Any, token: Any) -> None:
        self.arrays.append((_reader(source, name), type(array), token))

    def complete(self, key: Key) -> None:
        self.key, numbers = key, [number for number, _ in key.numbers]
        sources = [source for source, _ in self.numbers]
        self.are_own = all(p in (CELLS, DEFAULTS) or p is self.globals for p in sources)
        if numbers:
            self.scalars = _packer([_reader(*number) for number in self.numbers], numbers)
        self._fixed_cells = [(i, v) for i, v in enumerate(self.cells) if v is not ANY]

    def recapture(self, fn: types.FunctionType) -> tuple[View, ...] | None:
        """Return the arrays that fn captures now, None if one has another layout."""
        views = []
        for read, array_type, token in self.arrays:
            value = read(fn)
            if type(value) is not array_type and not captured.is_array(value):
                return None
            view = captured.view_of(value)
            if captured.token_of(view) != token:
                return None
            views.append(view)
        return tuple(views)

    def scalars_of(self, fn: types.FunctionType, key: Key) -> bytes | None:
        """Return the packed numbers of fn, whose key was `key` when its call began.

        None if the guard belongs to another function with the same code: only the last guard of
        each code object is kept.
        """
        if self.key is not key or not (self.globals is None or fn.__globals__ is self.globals):
            return None
        return self.scalars(fn) if self.are_own or self.holds(fn) else None

    def is_plain(self, fn: types.FunctionType) -> bool:
        return not self.arrays and self.holds(fn) and self.scalars(fn) is not None

    def holds(self, fn: types.FunctionType) -> bool:
        """Return whether fn, with the same code, still reads the same objects."""
        namespace = self.globals
        if namespace is not None and fn.__globals__ is not namespace:
            return False
        defaults = self.defaults
        if fn.__defaults__ is not defaults and not _defaults_match(fn.__defaults__, defaults):
            return False
        if self._fixed_cells:
            closure = fn.__closure__ or ()
            for index, value in self._fixed_cells:
                current = contents_of(closure[index])
                if current is value or _is_plain_function_of(current, value):
                    continue
                if not _is_alike(current, value):
                    return False
        for namespace, name, value in self.values:
            if namespace.get(name, MISSING) is not value:
                return False
        attributes = self.attributes  # none in most cases: a generator would be made for nothing
        return not attributes or all(
            attribute_of(x, name) is value for x, name, value in attributes
        )


def source_of(module: types.ModuleType, name: str) -> Source:
    """Return where an attribute of a module is read: in its namespace, unless that is computed."""
    space = module.__dict__
    is_stored = type(module) is types.ModuleType and (name in space or "__getattr__" not in space)
    return space if is_stored else module, name


def value_at(source: Any, name: str) -> Any:
    return source.get(name, MISSING) if type(source) is dict else attribute_of(source, name)


COPIED = "__copied__"  # marks the namespace of a copied function, which has only what that reads


def is_lasting(namespace: dict[str, Any]) -> bool:
    """Return whether a namespace is a loaded module's or a copy's, not one that an `exec` fills."""
    if COPIED in namespace:
        return True
    module = sys.modules.get(str(namespace.get("__name__")))
    return getattr(module, "__dict__", None) is namespace


# --- Analysis of an operator's bytecode: the names that it may read, its number of arguments.

Tree: TypeAlias = "dict[str, Tree]"

_SKIPPED = ("CACHE", "EXTENDED_ARG", "NOP", "PUSH_NULL")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_CO_VARARGS = 4  # inspect.CO_VARARGS, without the import


class Reads(NamedTuple):
    """What code, and code nested in it, may read besides its arguments."""

    globals: tuple[str, ...]
    variables: dict[str, Tree]  # globals and closure variables, with trees of their attributes
    loose: tuple[str, ...]  # attributes of other objects, such as a module in a local variable


def reads_of(code: types.CodeType) -> Reads:
    loaded: dict[str, None] = {}
    variables: dict[str, Tree] = {}
    loose: dict[str, None] = {}
    _collect(code, loaded, variables, loose)
    locals_of_outer = [n for n in variables if n not in loaded and n not in code.co_freevars]
    for name in locals_of_outer:  # a list, for an order that is the same in every process
        loose.update(dict.fromkeys(_attributes(variables.pop(name))))
    return Reads(tuple(loaded), variables, tuple(loose))


def accepts(function: types.FunctionType, arity: int) -> bool:
    code = function.__code__
    required = code.co_argcount - len(function.__defaults__ or ())
    variadic = bool(code.co_flags & _CO_VARARGS)
    fits = required <= arity and (arity <= code.co_argcount or variadic)
    return fits and code.co_kwonlyargcount == 0  # numba has no keyword-only parameters


def taken_arguments(function: types.FunctionType) -> str:
    most, least = function.__code__.co_argcount, function.__code__.co_argcount
    least -= len(function.__defaults__ or ())
    if function.__code__.co_flags & _CO_VARARGS:
        return f"{least} or more"
    return str(most) if least == most else f"{least} to {most}"


def _attributes(tree: Tree) -> list[str]:
    return [name for key, inner in tree.items() for name in (key, *_attributes(inner))]


def _collect(
    code: types.CodeType, loaded: dict[str, None], variables: dict[str, Tree],
    loose: dict[str, None],
) -> None:  # fmt: skip
    import dis

    instructions = [i for i in dis.get_instructions(code) if i.opname not in _SKIPPED]
    scalars = set(code.co_varnames[: code.co_argcount])  # elements, so no modules
    for instruction in instructions:
        if "STORE_FAST" in instruction.opname:
            scalars.difference_update(_names(instruction.argval))
    owner: Tree | None = None  # the attributes of the value on top of the stack
    is_scalar = False
    for instruction in instructions:
        name, operation = instruction.argval, instruction.opname
        if instruction.is_jump_target:  # the value may come from another path
            owner, is_scalar = None, False
        if operation in ("LOAD_GLOBAL", "LOAD_NAME"):
            loaded[name] = None
        if operation in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"):
            owner, is_scalar = variables.setdefault(name, {}), False
        elif operation in _ATTRIBUTES:
            if owner is not None:
                owner = owner.setdefault(name, {})
            elif not is_scalar:
                loose[name] = None
            is_scalar = False
        else:
            owner = None
            is_scalar = "LOAD_FAST" in operation and _names(name)[-1] in scalars
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _collect(constant, loaded, variables, loose)


def _names(argval: Any) -> tuple[str, ...]:
    """Return the variables of an instruction, which may be two from Python 3.13 on."""
    return argval if isinstance(argval, tuple) else (str(argval),)


# --- Keys of callables, and the tokens of what they capture: hashable, compared by value.

_keys: weakref.WeakValueDictionary[Token, Key] = weakref.WeakValueDictionary()
_lock = forks.Lock()


def intern(
    token: Token, function: Any = None, arrays: tuple[Token, ...] = (),
    numbers: tuple[Any, ...] = (),
) -> Key:  # fmt: skip
    """Return the unique key of a content; the first caller's function is used."""
    key = _keys.get(token)
    if key is None:
        with _lock:  # a content must never have two keys
            key = _keys.get(token)
            if key is None:
                key = _keys[token] = Key(token, function, arrays, numbers)
    return key


def digest_of(key: Key) -> str:
    """Return the SHA-256 of a key's content, which is the same in every process."""
    import hashlib  # takes milliseconds; only GPU code needs it

    return hashlib.sha256(repr(key.token).encode()).hexdigest()


# --- Functions for the package's own operators that only compiled code can run.


class Known:
    """A function that the compiler implements by its name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *arguments: Any) -> Any:
        raise NotImplementedError(f"{self.name} runs in compiled code only")


strong = Known("strong")
"""strong(value): converts Python numbers to the dtypes that they have in an array."""

philox = Known("philox")
"""philox(position, key0, key1): a 64-bit word of the Philox4x64-10 stream of a key.

The block counter starts at 1, as in NumPy.

J. Salmon, M. Moraes, R. Dror and D. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011,
doi:10.1145/2063384.2063405.
"""


def same(a: Any) -> Any:
    """Return an element unchanged: the operator of copies."""
    return a


def second(a: Any, b: Any) -> Any:
    return b


# --- Tokens of classes and of functions written in C, which compiled code may depend on.


# Modules whose functions numba supports, and whose attributes are assumed never to change.
_LIBRARIES = frozenset(
    ("_operator", "builtins", "cmath", "math", "ml_dtypes", "numba", "numpy", "operator", "random")
)


class IdentityToken:
    """An object in a token that equals only itself, in this process and in others."""

    __slots__ = ("_name", "_value")

    def __init__(self, value: Any) -> None:
        self._value = value  # kept alive, so that no other object gets its id
        self._name = uuid.uuid4().hex

    def __hash__(self) -> int:
        return id(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityToken) and other._value is self._value

    def __repr__(self) -> str:
        return self._name


def is_library(module: str) -> bool:
    return module.partition(".")[0] in _LIBRARIES


def library_token(value: Any) -> Token | None:
    """Return the token of a class or a function written in C; None if value is neither."""
    if _is_defined_by_library(value):
        return ("object", _module_of(value), _name_of(value))
    if type(value).__module__.endswith("types.scalars") and is_library(type(value).__module__):
        return ("numba type", str(value))
    if isinstance(value, (type, types.BuiltinFunctionType, np.ufunc)):
        if hasattr(value, "class_type"):
            _check_jitclass(value)
        return ("alone", _name_of(value), IdentityToken(value))
    return None


def _module_of(value: Any) -> Any:
    """Return the name of the module that defines value; ufuncs lack it before NumPy 2.1."""
    return getattr(value, "__module__", "numpy" if isinstance(value, np.ufunc) else None)


def _name_of(value: Any) -> str:
    return str(getattr(value, "__qualname__", None) or getattr(value, "__name__", ""))


def _is_defined_by_library(value: Any) -> bool:
    module = _module_of(value)
    if type(module) is not str or not is_library(module) or not callable(value):
        return False
    current: Any = sys.modules.get(module)
    for name in _name_of(value).split("."):
        current = getattr(current, name, None)
    return current is value


def content_of(cls: type, token_of: Callable[[Any], Token]) -> Token | None:
    """Return the content of an enumeration or namedtuple class as far as numba uses it."""
    if issubclass(cls, enum.Enum):
        bases = tuple(base.__name__ for base in cls.__mro__[1:])
        members = tuple((name, token_of(member.value)) for name, member in cls.__members__.items())
        return ("enum", bases, members)
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        parameters = inspect.signature(cls.__new__).parameters.values()
        signature = tuple(
            (p.name, str(p.kind), "" if p.default is p.empty else token_of(p.default))
            for p in parameters
        )
        return ("namedtuple", tuple(cls._fields), signature)
    return None


def _check_jitclass(cls: Any) -> None:
    """Raise TypeError for a jitclass whose methods read variables: numba reads them only once."""
    kind = cls.class_type
    dispatchers = [*kind.jit_methods.values(), *kind.jit_static_methods.values()]
    for accessors in kind.jit_props.values():
        dispatchers += accessors.values()
    for fn in (dispatcher.py_func for dispatcher in dispatchers):
        space = {**builtins.__dict__, **fn.__globals__}
        variables = {name: space.get(name) for name in reads_of(fn.__code__).globals}
        for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
            variables[name] = contents_of(cell)
        for name, value in variables.items():
            is_module = isinstance(value, types.ModuleType) and is_library(value.__name__)
            if value is not cls and not is_module and not _is_defined_by_library(value):
                raise TypeError(
                    f"op uses the jitclass {cls.__name__}, whose method {fn.__name__} reads "
                    f"{name!r}, which numba reads only once; pass it as an argument"
                )


# --- Tokens: hashable contents of immutable values that compiled code depends on.


def number_token(value: Any) -> Token | None:
    kind = type(value)
    if kind is float:
        return ("float", _bits(value))
    if kind is complex:
        return ("complex", _bits(value.real), _bits(value.imag))
    if kind in (int, bool, str, bytes, type(None), type(Ellipsis)):
        return (kind.__name__, value)
    if isinstance(value, np.generic) and dtypes.name_of(value.dtype) is not None:
        return ("scalar", value.dtype.name, value.dtype.str, value.tobytes())
    items: Any = (value.start, value.stop, value.step) if kind is slice else value
    if kind in (tuple, frozenset, slice):
        tokens = [constant_token(item) for item in items]
        return (kind.__name__, tuple(sorted(tokens, key=repr) if kind is frozenset else tokens))
    return None


def _bits(value: float) -> str:
    """Return a float as text; a NaN with all its bits, as NaNs do not compare equal."""
    return value.hex() if value == value else struct.pack(">d", value).hex()


def constant_token(value: Any) -> Token:
    if isinstance(value, types.CodeType):
        return ("code", content_of_code(value), parameters_of(value))
    token = number_token(value)
    return object_token(value) if token is None else token


def content_of_code(code: types.CodeType) -> Token:
    return (
        code.co_code,
        tuple(constant_token(value) for value in code.co_consts),
        code.co_names,
        code.co_argcount,
        code.co_posonlyargcount,
        code.co_kwonlyargcount,
        code.co_flags,
        len(code.co_varnames),
        code.co_freevars,
        code.co_exceptiontable,
    )


def parameters_of(code: types.CodeType) -> tuple[str, ...]:
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def object_token(value: Any) -> Token:
    if type(value) is Known:
        return ("known", value.name)
    token = library_token(value)
    if token is not None:
        return token
    if isinstance(value, functools.partial):
        raise TypeError(
            "op is a functools.partial, which numba cannot compile; "
            "write it as a lambda that captures the value"
        )
    name = getattr(value, "__name__", None)
    if name is not None and callable(value) and not isinstance(value, type):
        raise TypeError(f"op calls {name!r}, which kernels do not have; call one of numpy or math")
    raise TypeError(
        f"op captures a value of type {type(value).__name__}, which kernels cannot hold; "
        "capture numbers, NumPy scalars, arrays or functions"
    )
