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
from collections.abc import Callable
from typing import Any

import numpy as np

from gpualgo._base import dtypes, forks
from gpualgo._operators.captured import Key, Token
from gpualgo._operators.guards import contents_of, reads_of

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
    """Return the token of a code object's constant, except nested code."""
    token = number_token(value)
    return object_token(value) if token is None else token


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
    raise TypeError(
        f"op captures a value of type {type(value).__name__}, which kernels cannot hold; "
        "capture numbers, NumPy scalars, arrays or functions"
    )
