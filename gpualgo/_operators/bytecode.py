"""Analysis of an operator's bytecode: the names that it may read, its number of arguments."""

from __future__ import annotations

import types
from typing import Any, NamedTuple, TypeAlias

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
    """Return the number of a function's arguments as text for messages."""
    most, least = function.__code__.co_argcount, function.__code__.co_argcount
    least -= len(function.__defaults__ or ())
    if function.__code__.co_flags & _CO_VARARGS:
        return f"{least} or more"
    return str(most) if least == most else f"{least} to {most}"


def _attributes(tree: Tree) -> list[str]:
    """Return all names in a tree, in order."""
    return [name for key, inner in tree.items() for name in (key, *_attributes(inner))]


def _collect(
    code: types.CodeType,
    loaded: dict[str, None],
    variables: dict[str, Tree],
    loose: dict[str, None],
) -> None:
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
