"""Translates numba's errors about an operator into messages for its author."""

from __future__ import annotations

import contextlib
import dis
import inspect
import linecache
import os
import re
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numba.core import config, ir
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import TypingError

from gpualgo._base import records
from gpualgo._base.errors import CompileError, shown
from gpualgo._base.records import Argument, Separate
from gpualgo._operators.captured import ConstantNeeded, Slot, requested
from gpualgo._operators.key import python_function
from gpualgo._operators.numpy_rules import table

# --- Errors of unsupported operators, which keep their message although numba wraps exceptions.


class Refused(TypingError):
    """Raised while numba types or lowers an operator; `requested` keeps its message."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        requested.sentence = sentence


class ValueNeeded(Refused):
    def __init__(self, words: Iterable[int], is_exponent: bool = False) -> None:
        super().__init__("a number has to be known before the operator is compiled")
        requested.note(words, is_exponent)


def shown_integer(value: int) -> str:
    text = str(value)
    return text if len(text) < 40 else f"{text[:20]}… ({len(text)} digits)"


_BRANCHES = (
    "all branches of op must return numbers, plain tuples of the same length, or namedtuples with "
    "the same fields and dtypes"
)


def check_numba() -> None:
    if config.DISABLE_JIT:
        raise CompileError(
            "numba compiles nothing while NUMBA_DISABLE_JIT is set; unset it and restart the "
            "process"
        )


def source_of(fn: Any) -> str:
    """Return fn's file and line number, and the source line if the file can be read."""
    fn = python_function(fn) or fn
    code = getattr(fn, "__code__", None)
    if code is None:
        return shown(fn)
    try:
        line = inspect.getsource(fn).strip().splitlines()[0]
    except (OSError, TypeError, IndexError):
        line = fn.__name__
    return f"{code.co_filename}:{code.co_firstlineno}: {line}"


@contextlib.contextmanager
def translate_errors(fn: Any, arg_dtypes: tuple[Argument, ...]) -> Iterator[None]:
    """Turn numba's exceptions in a block into a CompileError with fn's source line."""
    requested.forget()
    try:
        # The filters are those of all threads; who warns waits for this lock (_base/disk_cache.py).
        with global_compiler_lock, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numba's notes on its own performance
            yield
        if requested.words:  # numba may have caught ConstantNeeded
            why = "op depends on the value of a number"
            raise ConstantNeeded(why, requested.words, requested.is_exponent)
    except ConstantNeeded:
        raise
    except Exception as error:
        if requested.words:
            raise ConstantNeeded(str(error), requested.words, requested.is_exponent) from None
        if isinstance(error, CompileError):
            raise type(error)(f"{error}: {source_of(fn)}") from None
        dtypes = ", ".join(
            records.shown(argument.dtype if isinstance(argument, Separate) else argument)
            for argument in arg_dtypes
        )
        start = f"op could not be compiled for ({dtypes}): "
        reason = re.sub(r"\x1b\[[0-9;]*m", "", str(error) or repr(error)).strip()
        sentence = requested.sentence or _message_for(_with_readable_types(reason))
        if sentence is not None and sentence.endswith(_NO_ITEMS) and "(" not in dtypes:
            sentence += "; the elements are numbers: pass a tuple of arrays"
        if sentence is not None:
            place = f"{source_of(fn)}{_line_of(fn, reason)}"
            raise CompileError(f"{start}{sentence}: {place}") from error
        raise CompileError(
            f"{start}{source_of(fn)}\n{type(error).__name__}: {_with_readable_types(reason)}"
        ) from error


def _line_of(fn: Any, reason: str) -> str:
    """Return the line of the operator that numba names; none of an equal one elsewhere."""
    code = getattr(python_function(fn) or fn, "__code__", None)
    if code is None:
        return ""
    file, lines = os.path.abspath(code.co_filename), {line for _, _, line in code.co_lines()}
    for name, number in reversed(re.findall(r'File "([^"\n]+)", line (\d+)', reason)):
        if os.path.abspath(name) == file and int(number) in lines:  # numba's paths are relative
            line = linecache.getline(file, int(number)).strip()
            return f" (line {number}: {line})" if line else ""
    return ""


_NUMBER = r"(?:Python )?(?:bool|u?int\d*|b?float\d*|complex\d*)"
_NO_ITEMS = "a number has no items"
CHOICE = (
    "op chooses between functions and calls the chosen one, which kernels do not support; call "
    "each in a branch of its own: f(a) if a > 0 else g(a)"
)


def _message_for(reason: str) -> str | None:
    """Return a message for errors about tuples and attributes, None for other errors."""
    if re.search(rf">>> (getitem|len)\({_NUMBER}[,)]|failed to unpack {_NUMBER}\n", reason):
        return _NO_ITEMS
    if table_index := re.search(r"Unsupported array index type (\w+)", reason):
        return f"the index of a table is a {table_index[1]}; convert it, as in table[int(a)]"
    if "get_function_type" in reason:  # numba has none for functions of a GPU
        return CHOICE
    if "tuple index out of range" in reason:
        return "an index is past the end of its tuple"
    constructor_error = re.search(r"In '<class '[\w.]*\.Fields'>': (.*)", reason)
    if constructor_error is not None:
        return f"a namedtuple needs a value for each of its fields: {constructor_error[1]}"
    # numba's messages for such branches; the first if one is a namedtuple.
    if reason == "NotImplementedError()" or "Can't unify return type" in reason:
        return _BRANCHES
    type_pair = re.search(r"Cannot unify ([^\n]+) and ([^\n]+) for '", reason)
    if type_pair is not None:
        return f"{_BRANCHES}, not {type_pair[1]} and {type_pair[2]}"
    unassigned = re.search(r"Untyped [^\n]*'(\w+)': [^\n]*UndefinedType", reason)
    if unassigned is not None:
        return f"{unassigned[1]!r} has no value; assign one before the call"
    untyped_tuple = re.search(r"Untyped [^\n]*'(\w+)': [^\n]* of <class 'tuple'>", reason)
    if untyped_tuple is not None:
        return (
            f"kernels cannot hold the tuple {untyped_tuple[1]}, whose items are not all numbers; "
            "call a function by a name of its own"
        )
    untyped_class = re.search(r"Untyped [^\n]*'(\w+)': [^\n]* of <class 'type'>", reason)
    if untyped_class is not None:
        name = untyped_class[1]
        return f"kernels cannot hold the class {name}; assign its numbers to variables"
    attribute_error = re.search(r"Unknown attribute '(\w+)' of type (type\()?([^\n]*)", reason)
    if attribute_error is None:
        return None
    name, is_function, owner = attribute_error.groups()
    if owner.startswith("Fields("):
        return f"{name!r} is not a field of the tuple"
    if owner.startswith(("Tuple(", "UniTuple(")):
        return f"a tuple without names has no {name!r}; take its items by number, as in a[0]"
    if owner.startswith("Module("):
        return f"kernels have no function {name!r} of {owner}; call one of numpy or math"
    if is_function:
        return f"unknown attribute {name!r} of a function; call the function itself"
    return (
        f"unknown attribute {name!r} of {owner}; numbers have real, imag and conjugate(); "
        "convert them with np.float32(a) and the like"
    )


def _with_readable_types(reason: str) -> str:
    """Return numba's reason with this package's types replaced by names that users know."""
    reason = re.sub(
        r"Weak\((\w+), (?:None|\[[^\]]*\])(?:, \[[^\]]*\], [^)]*\)?)?\)", r"Python \1", reason
    )
    return re.sub(r"Narrow\((\w+)\)", r"\1", reason)


# --- Raises errors for Python features that operators do not support, found in the bytecode.


_COROUTINE, _GENERATOR = 0x80 | 0x100 | 0x200, 0x20
_A_TUPLE = "write a tuple, or give the values as arrays"
_REFUSED = {
    "a list": (("BUILD_LIST", "LIST_APPEND", "LIST_EXTEND"), _A_TUPLE),
    "a set": (("BUILD_SET", "SET_ADD", "SET_UPDATE"), _A_TUPLE),
    "a dictionary": (("BUILD_MAP", "BUILD_CONST_KEY_MAP", "MAP_ADD", "DICT_UPDATE"), _A_TUPLE),
    "a string": (("FORMAT_VALUE", "FORMAT_SIMPLE", "BUILD_STRING"), "return a number"),
    "`with`": (("WITH_EXCEPT_START",), "do that around the call"),
    "`try`": (("SETUP_FINALLY", "PUSH_EXC_INFO"), "nothing in it can raise: test with `if`"),
    "an assignment to a global": (("STORE_GLOBAL", "DELETE_GLOBAL"), "return the value"),
    "an assignment to an attribute": (("STORE_ATTR", "DELETE_ATTR"), "return the value"),
    "`import`": (("IMPORT_NAME",), "import outside of it"),
    "`*` in an assignment": (("UNPACK_EX",), "take a part of the tuple, as in b, c = a[0], a[1:]"),
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
    if code.co_flags & inspect.CO_VARKEYWORDS:
        raise NotInAnOperator(f"{subject} has a `**` parameter; give each argument a name")
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
    if full.rpartition(".")[2] in ("mean", "average", "nanmean"):
        return (
            "which kernels do not have; reduce by operator.add, and divide each sum by its number "
            "of elements"
        )
    if full.rpartition(".")[2] in ("sum", "prod", "max", "amax", "min", "amin", "all", "any"):
        return (
            "which kernels do not have; write it out, as in a + b or max(a, b); a reduction takes "
            "operator.add, operator.mul, max or min"
        )
    return (
        "which is no function of scalars that kernels have; "
        "https://github.com/gpualgo/gpualgo/blob/main/docs/operators.md lists those that are"
    )


# --- Captured arrays.

_ATTRIBUTES = *table.SIZES, "T"


def check_use_of_array(statement: Any, constant: Callable[[Any], tuple[bool, Any]]) -> None:
    """Raise an error for a statement that writes to a captured array, or reads its attributes.

    Its sizes and `T` cost nothing; methods would run for each element.

    `constant` tells whether a variable is a known object, and which.
    """
    if isinstance(statement, (ir.SetItem, ir.StaticSetItem)):
        if type(constant(statement.target)[1]) is Slot:
            raise CompileError(
                "an operator cannot write to an array that it captures, which other "
                "threads read: return a value instead"
            )
        return
    value: Any = statement.value if isinstance(statement, ir.Assign) else None
    if not isinstance(value, ir.Expr) or value.op != "getattr" or value.attr in _ATTRIBUTES:
        return
    if type(constant(value.value)[1]) is Slot:
        raise CompileError(
            f"op reads {value.attr!r} of an array that it captures, anew for each element: compute "
            "it outside of op, and capture the result"
        )


# --- Variables that are read before they are assigned.


def check_assignments(func_ir: Any, loops: Callable[[Any], bool]) -> None:
    """Raise an error if a variable may be read where it has no value.

    Python raises UnboundLocalError there, and numba takes any value. `loops` tells of what a `for`
    goes through whether it has an item.
    """
    blocks = func_ir.blocks
    if len(blocks) == 1:  # numba itself refuses what is read too early on the only path
        return
    before: dict[int, set[int]] = {label: set() for label in blocks}
    for label, block in blocks.items():
        for target in block.terminator.get_targets():
            before[target].add(label)
    repeated = {loop.header: loop.body for loop in compute_cfg_from_blocks(blocks).loops().values()}
    for label, block in blocks.items():
        items = [
            each.value.value
            for each in block.body
            if isinstance(each, ir.Assign) and getattr(each.value, "op", None) == "iternext"
        ]
        if items and isinstance(block.terminator, ir.Branch) and loops(items[0]):
            # What is too far to jump to has a block before it.
            is_far = label not in repeated and len(before[label]) == 1
            head = min(before[label]) if is_far else label
            end = before[block.terminator.falsebr]
            end.discard(label)  # behind the loop a round was
            end |= before[head] & {*repeated.get(head, ())}
    own = {label: {*map(_assigned, block.body)} for label, block in blocks.items()}
    names, start = set[Any]().union(*own.values()), min(blocks)
    known = dict.fromkeys(blocks, names)  # at the start of each block
    is_changing = True
    while is_changing:
        sets = {
            label: names.intersection(*(known[i] | own[i] for i in at)) if label != start else set()
            for label, at in before.items()
        }
        is_changing, known = sets != known, sets
    for label, block in blocks.items():
        here = known[label]
        for statement in block.body:
            read = statement.value if isinstance(statement, ir.Assign) else statement
            for var in [] if isinstance(statement, ir.Del) else _read(read):
                name = var.unversioned_name
                if not var.is_temp and name in names and name not in here:
                    raise NotInAnOperator(
                        f"op reads {name!r}, which has no value on some path (Python raises "
                        "UnboundLocalError there): assign it before the `if` or the loop"
                    )
            here = here | {_assigned(statement)}


def _assigned(statement: Any) -> Any:
    """Return the name of the variable that a statement assigns, if it does."""
    return statement.target.unversioned_name if isinstance(statement, ir.Assign) else None


def _read(value: Any) -> Any:
    """Return the variables that a value or a statement reads."""
    if isinstance(value, ir.Var):
        return [value]
    return value.list_vars() if hasattr(value, "list_vars") else []
