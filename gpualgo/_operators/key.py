"""Keys: what a callable computes, as an object that equal code shares.

A key holds everything that compiled code can depend on: bytecode, constants, defaults, closure
values and the globals (and module attributes) that the bytecode reads, functions recursively; of
arrays the layout alone (`_captured`). Names, file and line are left out, so equal lambdas written
twice share one kernel. It is taken on every call, so a changed closure value or global is noticed;
numba is not needed for it.
"""

from __future__ import annotations

import builtins
import functools
import types
from typing import Any

import numpy as np

from gpualgo._base.memo import Memo
from gpualgo._operators import captured
from gpualgo._operators.bytecode import names_of
from gpualgo._operators.captured import Captured
from gpualgo._operators.content import Key, Token, intern
from gpualgo._operators.guards import MISSING, UNREACHED, Guard, is_full


def python_function(fn: Any) -> types.FunctionType | None:
    """Return the Python function behind fn (also of a numba dispatcher), else None."""
    if type(fn) is types.FunctionType:
        return fn
    inner = getattr(fn, "py_func", None)
    return inner if type(inner) is types.FunctionType else None


class _Code:
    """What is known of one code object: its content, and which names it can read."""

    __slots__ = ("attributes", "closed_key", "code", "content", "globals", "guard")

    def __init__(self, code: types.CodeType) -> None:
        self.code = code  # a strong reference: the cache is keyed by id
        self.content = _content(code)
        self.globals, self.attributes = names_of(code)
        closed = not self.globals and not code.co_freevars
        self.closed_key = intern(("function", self.content)) if closed else None
        self.guard: Guard | None = None


codes: Memo[_Code] = Memo(1 << 14)  # by id; of a program that makes code objects in a loop


def _code_info(code: types.CodeType) -> _Code:
    info = codes.get(id(code))
    return codes.add(id(code), _Code(code)) if info is None else info


def call_key(fn: Any) -> Any:
    """Return what decides a call of fn: its key, and where captured arrays lie."""
    if type(fn) is types.FunctionType:
        info = _code_info(fn.__code__)
        if info.closed_key is not None and fn.__defaults__ is None and fn.__kwdefaults__ is None:
            return info.closed_key
        guard = info.guard
        if guard is not None and not guard.found_at and guard.holds(fn):
            return guard.key
    key, views = examine(fn)
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
            return Captured(intern(_object_token(fn)), ())
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
        known = guard.recapture(fn)
        if known is not None:
            return Captured(guard.key, known)
    guard = Guard(fn)
    key = guard.key = intern(_function_token(fn, (), guard))
    views, guard.views = tuple(guard.views), []
    captured.check_size(views)
    info.guard = guard if guard.is_stable else None
    return Captured(key, views)


def names_read(code: types.CodeType) -> tuple[str, ...]:
    """Return the globals that code may read."""
    return _code_info(code).globals


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


def _token(value: Any, path: tuple[int, ...], guard: Guard | None) -> Token:
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
        items = tuple(_token(item, path, guard) for item in value)
        return (kind.__name__, items if kind is tuple else tuple(sorted(items, key=repr)))
    if isinstance(value, types.ModuleType):
        return ("module", value.__name__)
    if captured.is_array(value):
        if guard is not None:
            guard.is_stable = False  # it is not looked at again
        raise TypeError(UNREACHED)
    function = python_function(value)
    if function is None:
        return _object_token(value)
    assert guard is not None  # constants are no functions
    before, guard.may_capture = guard.may_capture, False
    try:
        return _function_token(function, path, guard)
    finally:
        guard.may_capture = before


def _variable_token(
    value: Any, names: Any, name: Any, path: tuple[int, ...], guard: Guard
) -> Token:
    """Return the token of a closure's or a namespace's value, from where arrays are captured."""
    if type(value) is captured.Slot:
        return value.token
    if captured.is_array(value):
        return guard.capture(value, names, name, len(path))
    function = python_function(value)
    return (
        _token(value, path, guard) if function is None else _function_token(function, path, guard)
    )


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
        "capture numbers, NumPy scalars, arrays or functions"
    )


def _function_token(fn: types.FunctionType, path: tuple[int, ...], guard: Guard) -> Token:
    if id(fn) in path:
        return ("recursion", len(path) - path.index(id(fn)))
    if path:
        guard.functions.append((fn, fn.__code__, fn.__defaults__))
        guard.is_stable &= fn.__kwdefaults__ is None
    info = _code_info(fn.__code__)
    path = (*path, id(fn))
    cells = tuple(_cell_token(i, c, path, guard) for i, c in enumerate(fn.__closure__ or ()))
    defaults = _token(fn.__defaults__ or (), path, guard)
    kwdefaults = tuple(
        (name, _token(value, path, guard))
        for name, value in sorted((fn.__kwdefaults__ or {}).items())
    )
    names = _global_tokens(info, fn, path, guard)
    if not (cells or defaults[1] or kwdefaults or names):
        return ("function", info.content)
    return ("function", info.content, cells, defaults, kwdefaults, names)


def _cell_token(index: int, cell: types.CellType, path: tuple[int, ...], guard: Guard) -> Token:
    if not is_full(cell):
        return ("empty",)
    if len(path) > 1:
        guard.inner_cells.append((cell, cell.cell_contents))
    return _variable_token(cell.cell_contents, None, index, path, guard)


def _global_tokens(
    info: _Code, fn: types.FunctionType, path: tuple[int, ...], guard: Guard
) -> Token:
    """Return what each global name, and each module attribute within reach, stands for."""
    found: list[Token] = []
    free = [cell.cell_contents for cell in fn.__closure__ or () if is_full(cell)]
    modules = [value for value in free if isinstance(value, types.ModuleType)]
    for name in info.globals:
        value = guard.read(fn.__globals__, name)
        if value is MISSING:
            value = guard.read(builtins.__dict__, name)
        if value is MISSING:
            raise TypeError(f"op reads the global name {name!r}, which is not defined")
        found.append((name, _variable_token(value, fn.__globals__, name, path, guard)))
        if isinstance(value, types.ModuleType):
            modules.append(value)
    reached: set[int] = set()
    while modules:
        module = modules.pop()
        if id(module) in reached:
            continue
        reached.add(id(module))
        for name in info.attributes:
            value = guard.read(module.__dict__, name)
            if isinstance(value, types.ModuleType):
                modules.append(value)
            elif value is not MISSING:
                found.append((module.__name__, name, _attribute_token(value, path, guard)))
    return tuple(found)


def _attribute_token(value: Any, path: tuple[int, ...], guard: Guard) -> Token:
    """Return the token of a module's attribute, which the code may not read after all."""
    try:
        return _token(value, path, guard)
    except TypeError:
        return ("unsupported", type(value).__qualname__, id(value))
