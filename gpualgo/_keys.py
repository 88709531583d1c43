"""Keys: what a callable computes, as an integer that equal code shares.

A key holds everything that compiled code can depend on: bytecode, constants, defaults, closure
values and the globals (and module attributes) that the bytecode reads, functions recursively.
Names, file and line are left out, so equal lambdas written twice share one kernel. It is taken
on every call, so a changed closure value or global is noticed; numba is not needed for it.
"""

from __future__ import annotations

import builtins
import functools
import hashlib
import itertools
import types
from typing import Any, TypeAlias

import numpy as np

Token: TypeAlias = Any  # nested tuples of str, int, bytes, types; hashable, compared by value


def python_function(fn: Any) -> types.FunctionType | None:
    """Return the Python function behind fn (also of a numba dispatcher), else None."""
    if type(fn) is types.FunctionType:
        return fn
    inner = getattr(fn, "py_func", None)
    return inner if type(inner) is types.FunctionType else None


_counter = itertools.count()
_keys: dict[Token, int] = {}
_tokens: dict[int, Token] = {}


def intern(token: Token) -> int:
    key = _keys.get(token)
    if key is None:
        key = _keys.setdefault(token, next(_counter))
        _tokens[key] = token
    return key


class _Code:
    """What is known of one code object: its content, and which names it can read."""

    __slots__ = ("attributes", "closed_key", "code", "content", "globals", "watch")

    def __init__(self, code: types.CodeType) -> None:
        self.code = code  # a strong reference: the cache is keyed by id
        self.content = _content(code)
        self.globals, self.attributes = _names(code)
        closed = not self.globals and not code.co_freevars
        self.closed_key = intern(("function", self.content)) if closed else None
        self.watch: _Watch | None = None


class _Watch:
    """What a key was made from, by identity: while all of it stands, so does the key."""

    __slots__ = ("cells", "defaults", "functions", "globals", "inner_cells", "is_stable", "key",
                 "kwdefaults", "values")  # fmt: skip

    def __init__(self, fn: types.FunctionType) -> None:
        self.globals, self.defaults, self.kwdefaults = fn.__globals__, fn.__defaults__, None
        self.cells = [cell.cell_contents for cell in fn.__closure__ or () if _is_full(cell)]
        self.values: list[tuple[dict[str, Any], str, Any]] = []
        self.inner_cells: list[tuple[types.CellType, Any]] = []
        self.functions: list[tuple[types.FunctionType, types.CodeType, Any]] = []
        full = len(self.cells) == len(fn.__closure__ or ())
        self.is_stable = full and fn.__kwdefaults__ is None
        self.key = -1

    def read(self, namespace: dict[str, Any], name: str) -> Any:
        """Look a name up and remember what it gave."""
        value = namespace.get(name, _MISSING)
        self.values.append((namespace, name, value))
        return value

    def holds(self, fn: types.FunctionType) -> bool:
        """Return whether fn, of the same code, still reads the very same objects."""
        if fn.__globals__ is not self.globals or fn.__defaults__ is not self.defaults:
            return False
        closure = fn.__closure__
        if closure is not None:
            for cell, value in zip(closure, self.cells, strict=True):
                if not _is_full(cell) or cell.cell_contents is not value:
                    return False
        for namespace, name, value in self.values:
            if namespace.get(name, _MISSING) is not value:
                return False
        for inner, code, defaults in self.functions:
            if inner.__code__ is not code or inner.__defaults__ is not defaults:
                return False
        return all(_is_full(c) and c.cell_contents is v for c, v in self.inner_cells)


_MISSING = object()
_codes: dict[int, _Code] = {}
_MAX_CODES = 1 << 14  # bounds what a program that makes code objects in a loop can hold here


def _code_info(code: types.CodeType) -> _Code:
    info = _codes.get(id(code))
    if info is None:
        if len(_codes) >= _MAX_CODES:
            _codes.clear()
        info = _codes.setdefault(id(code), _Code(code))
    return info


def key_of(fn: Any) -> int:
    """Return the key of a callable as it stands now."""
    if type(fn) is not types.FunctionType:
        function = python_function(fn)
        if function is not None:
            return key_of(function)
        try:
            return intern(_object_token(fn))
        except TypeError:
            raise TypeError(
                f"op is a {type(fn).__name__}, which numba cannot compile; "
                "pass a function or lambda of scalars"
            ) from None
    info = _code_info(fn.__code__)
    if info.closed_key is not None and fn.__defaults__ is None and fn.__kwdefaults__ is None:
        return info.closed_key
    if info.watch is not None and info.watch.holds(fn):
        return info.watch.key
    watch = _Watch(fn)
    key = watch.key = intern(_function_token(fn, (), watch))
    info.watch = watch if watch.is_stable else None
    return key


def digest_of(key: int) -> str:
    """Return a key's content as a SHA-256 that is the same in every process."""
    return hashlib.sha256(repr(_tokens[key]).encode()).hexdigest()


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
        len(code.co_cellvars),
        code.co_freevars,
        getattr(code, "co_exceptiontable", b""),
    )


def _constant(value: Any) -> Token:
    if isinstance(value, types.CodeType):
        return ("code", _content(value))
    return _token(value, (), None)


def _names(code: types.CodeType) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the globals and the attributes that code, or code inside it, may read."""
    import dis

    loaded: dict[str, None] = {}
    attributes: dict[str, None] = {}
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            loaded[str(instruction.argval)] = None
        elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            attributes[str(instruction.argval)] = None
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner_loaded, inner_attributes = _names(constant)
            loaded.update(dict.fromkeys(inner_loaded))
            attributes.update(dict.fromkeys(inner_attributes))
    return tuple(loaded), tuple(attributes)


def _token(value: Any, path: tuple[int, ...], watch: _Watch | None) -> Token:
    """Return value's content; `path` holds the ids of the functions being visited."""
    kind = type(value)
    if kind is float:
        return ("float", value.hex())
    if kind is complex:
        return ("complex", value.real.hex(), value.imag.hex())
    if kind in (int, bool, str, bytes, type(None), type(Ellipsis)):
        return (kind.__name__, value)
    if isinstance(value, np.generic):
        return ("scalar", value.dtype.name, value.dtype.str, value.tobytes())
    if kind in (tuple, frozenset):
        items = tuple(_token(item, path, watch) for item in value)
        return (kind.__name__, items if kind is tuple else tuple(sorted(items, key=repr)))
    if isinstance(value, types.ModuleType):
        return ("module", value.__name__)
    function = python_function(value)
    if function is not None:
        return _function_token(function, path, watch)
    return _object_token(value)


def _object_token(value: Any) -> Token:
    """Return the token of a callable or class known by where it is defined."""
    if isinstance(value, (type, types.BuiltinFunctionType, np.ufunc)):
        module = getattr(value, "__module__", None) or ""
        name = getattr(value, "__qualname__", None) or value.__name__
        return ("object", module, name)
    if isinstance(value, functools.partial):
        raise TypeError(
            "op is a functools.partial, which numba cannot compile; "
            "write it as a lambda that captures the value"
        )
    raise TypeError(
        f"op captures a value of type {type(value).__name__}, which kernels cannot hold; "
        "capture numbers, NumPy scalars or functions, and pass arrays as arguments"
    )


def _function_token(fn: types.FunctionType, path: tuple[int, ...], watch: _Watch | None) -> Token:
    if id(fn) in path:
        return ("recursion", len(path) - path.index(id(fn)))
    if watch is not None and path:
        watch.functions.append((fn, fn.__code__, fn.__defaults__))
        watch.is_stable &= fn.__kwdefaults__ is None
    info = _code_info(fn.__code__)
    cells = tuple(_cell_token(cell, (*path, id(fn)), watch) for cell in fn.__closure__ or ())
    path = (*path, id(fn))
    defaults = _token(fn.__defaults__ or (), path, watch)
    kwdefaults = tuple(
        (name, _token(value, path, watch))
        for name, value in sorted((fn.__kwdefaults__ or {}).items())
    )
    names = _global_tokens(info, fn, path, watch)
    if not (cells or defaults[1] or kwdefaults or names):
        return ("function", info.content)
    return ("function", info.content, cells, defaults, kwdefaults, names)


def _is_full(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _cell_token(cell: types.CellType, path: tuple[int, ...], watch: _Watch | None) -> Token:
    if not _is_full(cell):
        return ("empty",)
    if watch is not None and len(path) > 1:
        watch.inner_cells.append((cell, cell.cell_contents))
    return _token(cell.cell_contents, path, watch)


def _global_tokens(
    info: _Code, fn: types.FunctionType, path: tuple[int, ...], watch: _Watch | None
) -> Token:
    """Return what each global name, and each module attribute within reach, stands for."""
    read = watch.read if watch is not None else lambda names, name: names.get(name, _MISSING)
    found: list[Token] = []
    free = [cell.cell_contents for cell in fn.__closure__ or () if _is_full(cell)]
    modules = [value for value in free if isinstance(value, types.ModuleType)]
    for name in info.globals:
        value = read(fn.__globals__, name)
        if value is _MISSING:
            value = read(builtins.__dict__, name)
        if value is _MISSING:
            raise TypeError(f"op reads the global name {name!r}, which is not defined")
        found.append((name, _token(value, path, watch)))
        if isinstance(value, types.ModuleType):
            modules.append(value)
    reached: set[int] = set()
    while modules:
        module = modules.pop()
        if id(module) in reached:
            continue
        reached.add(id(module))
        for name in info.attributes:
            value = read(module.__dict__, name)
            if isinstance(value, types.ModuleType):
                modules.append(value)
            elif value is not _MISSING:
                found.append((module.__name__, name, _attribute_token(value, path, watch)))
    return tuple(found)


def _attribute_token(value: Any, path: tuple[int, ...], watch: _Watch | None) -> Token:
    """Return the token of a module's attribute, which the code may not read after all."""
    try:
        return _token(value, path, watch)
    except TypeError:
        return ("unsupported", type(value).__qualname__, id(value))
