"""Raises errors for Python features that operators do not support, found in the bytecode."""

from __future__ import annotations

import dis
import types
from typing import Any

import numpy as np

from gpualgo._base.errors import CompileError
from gpualgo._operators.numpy_rules import table

_COROUTINE, _GENERATOR = 0x80 | 0x100 | 0x200, 0x20
_A_TUPLE = "write a tuple, or give the values as arrays"
_REFUSED = {
    "a list": (("BUILD_LIST", "LIST_APPEND", "LIST_EXTEND"), _A_TUPLE),
    "a set": (("BUILD_SET", "SET_ADD", "SET_UPDATE"), _A_TUPLE),
    "a dictionary": (("BUILD_MAP", "BUILD_CONST_KEY_MAP", "MAP_ADD", "DICT_UPDATE"), _A_TUPLE),
    "a string": (("FORMAT_VALUE", "FORMAT_SIMPLE", "BUILD_STRING"), "return a number"),
    "`with`": (("SETUP_WITH", "BEFORE_WITH", "BEFORE_ASYNC_WITH", "SETUP_ASYNC_WITH"),
               "do that around the call"),
    "`try`": (("SETUP_FINALLY", "PUSH_EXC_INFO"), "nothing in it can raise: test with `if`"),
    "an assignment to a global": (("STORE_GLOBAL", "DELETE_GLOBAL"), "return the value"),
    "an assignment to an attribute": (("STORE_ATTR", "DELETE_ATTR"), "return the value"),
    "`import`": (("IMPORT_NAME",), "import outside of it"),
}  # fmt: skip
_UNPACKING = ("LIST_TO_TUPLE", "CALL_INTRINSIC_1")  # f(a, *b) builds a list


class NotInAnOperator(CompileError, TypeError):
    """An operator contains an unsupported feature; also a TypeError."""


def check(code: types.CodeType, subject: str = "op") -> None:
    """Raise NotInAnOperator, naming the feature and an alternative, for unsupported code."""
    if code.co_flags & _COROUTINE:
        raise NotInAnOperator(f"{subject} is `async def`, which kernels cannot await; write `def`")
    if code.co_flags & _GENERATOR:
        raise NotInAnOperator(
            f"{subject} holds a generator or `yield`; return one number, or write the loop out"
        )
    names = set()
    for instruction in dis.get_instructions(code):
        names.add(instruction.opname)
        if instruction.opname == "STORE_DEREF" and instruction.argval in code.co_freevars:
            raise NotInAnOperator(
                f"{subject} assigns to {instruction.argval!r} of the function around it, but it "
                "may be called in any order; return the value"
            )
    for feature, (opnames, advice) in _REFUSED.items():
        is_unpacking = feature == "a list" and not names.isdisjoint(_UNPACKING)
        if not names.isdisjoint(opnames) and not is_unpacking:
            raise NotInAnOperator(
                f"{subject} holds {feature}, which kernels do not support: {advice}"
            )
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            check(constant, subject)


def check_function(fn: Any, owner: types.ModuleType | None = None, name: str = "") -> None:
    """Raise NotInAnOperator for a function of Python's or NumPy's modules not in the table."""
    if not callable(fn) or table.entry_of(fn) is not None:
        return
    module = _module_of(fn) if owner is None else owner.__name__
    root = module.partition(".")[0]
    if root not in table.MODULES or (isinstance(fn, type) and issubclass(fn, BaseException)):
        return  # `raise` has its own error
    path = module.replace(root, table.MODULES[root], 1)
    shown = name or getattr(fn, "__name__", str(fn))
    full = shown if root == "builtins" else f"{path}.{shown}"
    raise NotInAnOperator(f"op calls {full}, {_reason(full, root)}")


def _module_of(fn: Any) -> str:
    module = getattr(fn, "__module__", None)
    owner = getattr(fn, "__self__", None)
    if module is None and owner is not None and type(owner).__module__ != "builtins":
        module = type(owner).__module__  # random.random is a method of a random.Random
    if isinstance(fn, np.ufunc):
        module = "numpy"
    return str(module or "").replace("_operator", "operator")


def _reason(full: str, root: str) -> str:
    if "random" in full:
        return (
            "but it may be called in any order and any number of times; pass the random numbers "
            "as an array"
        )
    if full in ("print", "input", "open"):
        return "which a kernel cannot do; return a value, and print the result"
    return (
        "which is no function of scalars that kernels have; "
        "https://github.com/gpualgo/gpualgo/blob/main/docs/operators.md lists those that are"
    )
