"""Rewrites numba's IR of operators before type inference, so that they promote as NumPy 2 does.

Arithmetic expressions, known functions and constants are replaced by intrinsics: int8 + int8 stays
int8, a Python literal does not widen a float32, float16 rounds after each operation. Only functions
marked by `adopt` are rewritten; other numba code of the process is unchanged.
"""

from __future__ import annotations

import operator
import types as pytypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numba import types
from numba.core import ir, ir_utils, rewrites

from gpualgo._base import dtypes
from gpualgo._base.errors import CompileError
from gpualgo._operators.captured import DataPlaceholder, Slot, is_array
from gpualgo._operators.key import facts_of, python_function
from gpualgo._operators.numpy_rules import codegen as slots
from gpualgo._operators.numpy_rules import errors, rules, storage, table
from gpualgo._operators.numpy_rules.storage import NARROW, Constant, Narrow, Weak
from gpualgo._operators.operator import PYTHON, Operator
from gpualgo._operators.tokens import contents_of

# --- Finds the Python objects to which variables of numba's IR refer.


class Lookup:
    def __init__(self, func_ir: Any, args: tuple[Any, ...]) -> None:
        self.func_ir, self.args = func_ir, args
        self.values_passed_on = self._passed_on()

    def definition(self, var: Any) -> Any:
        """Return the IR value assigned to a variable, None if there are several assignments."""
        definitions = self.func_ir._definitions.get(var.name, [])
        return definitions[0] if len(definitions) == 1 else None

    def constant(self, var: Any, depth: int = 8) -> tuple[bool, Any]:
        """Return whether a variable is a known Python object, and the object."""
        found: tuple[bool, Any] = False, None
        # What is called after a branch between its arguments has a copy in each way to the call.
        for v in self.func_ir._definitions.get(var.name, []) if depth else []:
            known = self.constant(v, depth - 1) if isinstance(v, ir.Var) else self.constant_of(v)
            if not known[0] or (found[0] and known[1] is not found[1]):
                return False, None
            found = known
        return found

    def constant_of(self, value: Any) -> tuple[bool, Any]:
        if isinstance(value, (ir.Const, ir.Global, ir.FreeVar)):
            return True, value.value
        owner = self.owner_of(value)
        if owner is not None and hasattr(owner, value.attr):
            return True, getattr(owner, value.attr)
        return False, None

    def default_of(self, value: Any) -> tuple[bool, Any]:
        """Return whether a parameter's default is a data number, and the number."""
        ty = self.args[value.index] if value.index < len(self.args) else None
        default = getattr(ty, "value", None) if isinstance(ty, types.Omitted) else None
        return (True, default) if type(default) is DataPlaceholder else (False, None)

    def owner_of(self, value: Any) -> pytypes.ModuleType | None:
        """Return the module of an IR value that is a module's attribute, else None."""
        if isinstance(value, ir.Expr) and value.op == "getattr":
            is_known, owner = self.constant(value.value)
            if is_known and isinstance(owner, pytypes.ModuleType):
                return owner
        return None

    def conversion_of_counter(self, value: Any) -> rules.Counters:
        """Return how to convert a value if it is the next item of range, enumerate or zip."""
        found = [value]
        for op in ("pair_first", "iternext", "getiter"):
            if not all(isinstance(one, ir.Expr) and one.op == op for one in found):
                return None
            found = [source for one in found for source in self._sources(one.value)]
        counters = {self._counter(one) for one in found}
        return counters.pop() if len(counters) == 1 else None

    def _counter(self, value: Any) -> rules.Counters:
        """Return the conversion of what a call counts, None if it does not count."""
        if not isinstance(value, ir.Expr) or value.op != "call":
            return None
        _, fn = self.constant(value.func)
        if fn is range:
            return "python"
        if fn not in (enumerate, zip):
            return None
        items = [{*map(self._counter, self._sources(arg))} for arg in value.args]
        counters = [each.pop() if len(each) == 1 else None for each in items]
        return ("python", counters[0]) if fn is enumerate else tuple(counters)

    def has_items(self, iterator: Any) -> bool:
        """Return whether a `for` over an iterator is known to have a round at least."""
        found = self._sources(iterator)
        is_iterator = all(isinstance(one, ir.Expr) and one.op == "getiter" for one in found)
        return is_iterator and all(self._is_filled(one.value) for one in found)

    def _is_filled(self, iterated: Any) -> bool:
        is_known, value = self.constant(iterated)
        if is_known:
            return isinstance(value, tuple) and len(value) > 0
        (source, *others) = self._sources(iterated)
        if isinstance(source, ir.Arg) and not others:
            given = self.args[source.index] if source.index < len(self.args) else None
            given = given.value if isinstance(given, types.Omitted) else given
            return isinstance(given, (tuple, types.BaseTuple)) and len(given) > 0
        if others or not isinstance(source, ir.Expr):
            return False
        if source.op != "call":
            return source.op == "build_tuple" and len(source.items) > 0
        _, fn = self.constant(source.func)
        if fn in (enumerate, zip):
            counted = source.args if fn is zip else source.args[:1]
            return len(counted) > 0 and all(map(self._is_filled, counted))
        bounds = [self._bound(arg) for arg in source.args]
        is_range = fn is range and all(known and type(n) is int for known, n in bounds)
        return is_range and len(range(*(n for _, n in bounds))) > 0

    def _bound(self, value: Any) -> tuple[bool, Any]:
        """Return whether a number is known, and the number: a constant, or a tuple's length."""
        (source, *others) = self._sources(value)
        if not others and isinstance(source, ir.Expr) and source.op == "call":
            is_known, counted = self.constant(source.args[0]) if source.args else (False, None)
            is_len = self.constant(source.func)[1] is len and is_known
            return (True, len(counted)) if is_len and type(counted) is tuple else (False, None)
        return self.constant(value)

    def _sources(self, value: Any, depth: int = 8) -> list[Any]:
        """Return the values that a variable may hold; itself where it is copied too often."""
        if not isinstance(value, ir.Var) or not depth:
            return [value]
        found = self.func_ir._definitions.get(value.name, [])
        return [source for one in found for source in self._sources(one, depth - 1)] or [value]

    def _passed_on(self) -> set[str]:
        """Return the variables that are used other than by calling them."""
        used: set[str] = set()
        copies: list[tuple[str, str]] = []
        for block in self.func_ir.blocks.values():
            for statement in block.body:
                value = getattr(statement, "value", None)
                if not isinstance(statement, ir.Assign):
                    used.update(var.name for var in statement.list_vars())
                elif isinstance(value, ir.Var):
                    copies.append((statement.target.name, value.name))
                elif isinstance(value, ir.Expr):
                    names = [var.name for var in value.list_vars()]
                    if value.op == "call" and self.constant(value.func)[0]:
                        names.remove(value.func.name)
                    used.update(names)
        size = -1
        while size < len(used):  # what is copied to a used variable is used, too
            size = len(used)
            used.update(source for target, source in copies if target in used)
        return used


# --- Rewrites one block of numba's IR to calls and constants that promote as NumPy 2 does.

_IDENTITY = (operator.is_, operator.is_not)
# Variables of an expression that are converted, by its kind.
_CONVERTED = {
    "getiter": {"value": "uniform"},
    "getitem": {"index": "index", "value": "uniform"},
    "static_getitem": {"index_var": "index"},
}


class Rewriter:
    def __init__(self, lookup: Lookup, block: Any, adoption: Any) -> None:
        self.lookup, self.block, self.adoption = lookup, block, adoption
        self.func_ir = lookup.func_ir
        self.body: list[Any] = []

    def run(self) -> None:
        for statement in self.block.body:
            if isinstance(statement, ir.Assign):
                self._assign(statement)
            elif isinstance(statement, ir.SetItem):
                statement.index = self._converted("plain", statement.index, statement.loc)
            self.body.append(statement)
        self.block.body = self.body

    def _assign(self, statement: Any) -> None:
        value = statement.value
        is_constant, constant = self.lookup.constant_of(value)
        if isinstance(value, ir.Arg):
            is_constant, constant = self.lookup.default_of(value)
        if is_constant:
            self._rewrite_constant(statement, constant, value.loc)
        elif isinstance(value, ir.Expr):
            for field, conversion in _CONVERTED.get(value.op, {}).items():
                if value._kws[field] is not None:
                    value._kws[field] = self._converted(conversion, value._kws[field], value.loc)
            rewrite = getattr(self, f"_rewrite_{value.op}", None)
            if rewrite is not None:
                rewrite(statement, value)

    def _rewrite_binop(self, statement: Any, value: Any) -> None:
        fn = value.fn if value.op == "binop" else value.immutable_fn
        if fn in _IDENTITY:
            return
        args = [value.lhs, value.rhs]
        if fn is operator.contains:
            args = [self._converted("uniform", value.lhs, value.loc), value.rhs]
        self._replace(statement, self._call(fn, tuple(args), value.loc))

    _rewrite_inplace_binop = _rewrite_binop

    def _rewrite_unary(self, statement: Any, value: Any) -> None:
        self._replace(statement, self._call(value.fn, (value.value,), value.loc))

    def _rewrite_pair_first(self, statement: Any, value: Any) -> None:
        """Convert a counter, which numba types as int64, to a Python int."""
        conversion = self.lookup.conversion_of_counter(value)
        if conversion is not None:
            raw = self._store(value, value.loc)
            self._replace(statement, self._conversion(conversion, raw, value.loc))

    def _rewrite_build_set(self, statement: Any, value: Any) -> None:
        """Replace a set by a tuple: operators use constant sets with `in` only."""
        self._replace(statement, ir.Expr.build_tuple(value.items, value.loc))

    def _rewrite_static_getitem(self, statement: Any, value: Any) -> None:
        """Read a field of a tuple by its name, as of a structured array."""
        if isinstance(value.index, str):
            field = rules.reading(value.index, True)
            self._replace(statement, self._call_intrinsic(field, (value.value,), value.loc))

    def _rewrite_getattr(self, statement: Any, value: Any) -> None:
        if value.attr in table.SIZES:
            args = self._store(value, value.loc), value.value
            self._replace(statement, self._call_intrinsic(rules.size_of, args, value.loc))
        elif value.attr in table.PARTS:
            part = rules.reading(value.attr, False)
            self._replace(statement, self._call_intrinsic(part, (value.value,), value.loc))

    def _rewrite_constant(self, statement: Any, constant: Any, loc: Any) -> None:
        number = as_number(constant)
        if number is not constant:
            self._replace(statement, ir.Const(number, loc))
            return
        if type(constant) is DataPlaceholder:
            number = slots.number_intrinsic(constant.number, self.adoption.number)
            self._replace(statement, self._call_intrinsic(number, (), loc))
            return
        if type(constant) is Slot:
            array = slots.array_intrinsic(constant, self.adoption.words)
            self._replace(statement, self._call_intrinsic(array, (), loc))
            return
        if is_array(constant):
            raise CompileError(
                "op reads an array that is an attribute of a module; give it a name of its own "
                "outside of op and use that"
            )
        entry = table.entry_of(constant)
        if entry is not None and entry.style != "plain":
            if statement.target.name in self.lookup.values_passed_on:
                constant = _as_python(constant, entry)
            else:  # only called, by its intrinsic; numba may not support the function itself
                statement.value = ir.Const(None, loc)
                return
        function = python_function(constant)
        if function is not None:
            device = self.adoption.device_function(function)
            self._replace(statement, ir.Global(function.__name__, device, loc))
            return
        owner = self.lookup.owner_of(statement.value)
        errors.check_function(constant, owner, getattr(statement.value, "attr", ""))

    def _rewrite_call(self, statement: Any, call: Any) -> None:
        is_known, fn = self.lookup.constant(call.func)
        entry = table.entry_of(fn) if is_known else None
        if entry is not None and entry.style == "plain":
            self._rewrite_plain_call(statement, call, fn)
        elif entry is not None:
            self._rewrite_known_call(statement, call, fn, entry)
        elif is_known and _is_recursive(fn):
            call.args = [self._converted("any_value", arg, call.loc) for arg in call.args]
        elif not is_known:
            self._rewrite_method(statement, call)

    def _rewrite_make_function(self, statement: Any, value: Any) -> None:
        """Replace a function that op defines and passes on; those that it calls are inlined."""
        if value.closure is not None or value.defaults is not None:
            raise errors.NotInAnOperator(
                "op passes on a function that it defines with defaults or variables of op; define "
                "it outside of op"
            )
        fn = pytypes.FunctionType(value.code, self.func_ir.func_id.func.__globals__)
        device = self.adoption.device_function(fn)
        self._replace(statement, ir.Global(fn.__name__, device, value.loc))

    def _rewrite_plain_call(self, statement: Any, call: Any, fn: Any) -> None:
        if fn is enumerate and [name for name, _ in call.kws] == ["start"]:
            call.args, call.kws = [*call.args, call.kws[0][1]], ()
        if call.kws:
            _check_arguments(call, fn.__name__)
        conversions = ["plain" if fn in (range, slice) else "uniform"] * len(call.args)
        if fn is enumerate:
            conversions[1:] = ["plain"] * len(conversions[1:])
        if fn in (range, slice, enumerate, zip):
            pairs = zip(conversions, call.args, strict=True)
            call.args = [self._converted(name, arg, call.loc) for name, arg in pairs]
        if fn is len:
            raw = self._store(call, call.loc)
            self._replace(statement, self._conversion("python", raw, call.loc))

    def _rewrite_known_call(self, statement: Any, call: Any, fn: Any, entry: Any) -> None:
        _check_arguments(call, entry.shown)
        args = tuple(call.args)
        if entry.style == "conversion":
            return self._replace(statement, self._conversion(entry.does, args[0], call.loc))
        if entry.style == "pair":
            return self._rewrite_divmod(statement, args, entry, call.loc)
        if entry.style == "extreme":  # max(a, b, c) is max(max(a, b), c)
            while len(args) > 2:
                joint = self._store(self._call(fn, args[:2], call.loc), call.loc)
                args = (joint, *args[2:])
        if entry.style == "clip" and len(args) == 3:
            return self._replace(statement, self._call_intrinsic(rules.clip, args, call.loc))
        return self._replace(statement, self._call(fn, args, call.loc))

    def _rewrite_divmod(self, statement: Any, args: Any, entry: Any, loc: Any) -> None:
        pair = (np.floor_divide, np.remainder)
        if entry.is_builtin:
            pair = (operator.floordiv, operator.mod)  # type: ignore[assignment]
        items = [self._store(self._call(fn, args, loc), loc) for fn in pair]
        self._replace(statement, ir.Expr.build_tuple(items, loc))

    def _rewrite_method(self, statement: Any, call: Any) -> None:
        """Replace a.conjugate(), which numba lacks for some dtypes, by np.conjugate."""
        method = self.lookup.definition(call.func)
        if not isinstance(method, ir.Expr) or method.op != "getattr":
            return
        if method.attr in table.METHODS and not call.args:
            for other in self.body:
                if isinstance(other, ir.Assign) and other.value is method:
                    other.value = ir.Const(None, call.loc)
            self._replace(statement, self._call(np.conjugate, (method.value,), call.loc))

    def _call(self, fn: Any, args: tuple[Any, ...], loc: Any) -> Any:
        entry = table.entry_of(fn)
        if entry is None:
            raise errors.NotInAnOperator(
                f"op holds the operator {fn.__name__!r}, which kernels do not support; write what "
                "it does with numbers and loops"
            )
        return self._call_intrinsic(rules.calling(entry, fn, len(args)), args, loc)

    def _conversion(self, name: str | rules.Counters, var: Any, loc: Any) -> Any:
        return self._call_intrinsic(rules.converting(name), (var,), loc)

    def _converted(self, name: str, var: Any, loc: Any) -> Any:
        return self._store(self._conversion(name, var, loc), loc)

    def _call_intrinsic(self, intrinsic: Any, args: tuple[Any, ...], loc: Any) -> Any:
        callee = self._store(ir.Global(intrinsic._name, intrinsic, loc), loc)
        return ir.Expr.call(callee, args, (), loc)

    def _store(self, value: Any, loc: Any) -> Any:
        var = ir.Var(self.block.scope, ir_utils.mk_unique_var("$numpy"), loc)
        self.body.append(ir.Assign(value, var, loc))
        self.func_ir._definitions[var.name].append(value)
        return var

    def _replace(self, statement: Any, value: Any) -> None:
        definitions = self.func_ir._definitions[statement.target.name]
        for i, old in enumerate(definitions):
            if old is statement.value:
                definitions[i] = value
        statement.value = value


def _check_arguments(call: Any, shown: str) -> None:
    if call.kws or call.vararg:
        given = "keyword arguments" if call.kws else "arguments from a tuple"
        raise errors.NotInAnOperator(
            f"op calls {shown} with {given}, which kernels do not support; "
            "write the arguments one by one"
        )


def as_number(constant: Any) -> Any:
    """Return a constant with Python numbers and 16-bit floats wrapped in this package's types."""
    kind = type(constant)
    if kind in (int, float, complex):
        return Constant(constant, Weak(kind.__name__, (constant,)))
    if isinstance(constant, np.generic):
        name = dtypes.name_of(constant.dtype)
        return Constant(constant, Narrow(name)) if name in NARROW else constant
    if kind is tuple:
        items = tuple(as_number(item) for item in constant)
        return items if any(a is not b for a, b in zip(items, constant, strict=True)) else constant
    return constant


def _as_python(fn: Any, entry: Any) -> Any:
    """Return a function of the table as a Python function that can be passed as an argument."""
    lowest, highest = entry.arity
    if lowest != highest or lowest > 3:
        raise errors.NotInAnOperator(
            f"op passes {entry.shown} as an argument; wrap it in a lambda of scalars"
        )
    return as_function(fn, lowest)


def _is_recursive(fn: Any) -> bool:
    start = python_function(fn)
    if start is None:
        return False
    pending = [start]
    reached: set[int] = set()
    while pending:
        current = pending.pop()
        for callee in _callees(current):
            if callee.__code__ is start.__code__:  # itself or its compiled copy
                return True
            if id(callee) not in reached:
                reached.add(id(callee))
                pending.append(callee)
    return False


def _callees(fn: pytypes.FunctionType) -> list[Any]:
    values = [fn.__globals__.get(name) for name in facts_of(fn.__code__).reads.globals]
    values += map(contents_of, fn.__closure__ or ())
    functions = [python_function(value) for value in values]
    return [function for function in functions if function is not None]


MARK = "__gpualgo_adopted__"


@dataclass(frozen=True)
class Adoption:
    """How one compilation resolves calls and captured arrays and numbers."""

    device_function: Callable[[pytypes.FunctionType], Any]
    # LLVM builder -> pointer to the words of captured arrays; None if there are none.
    words: Callable[[Any], Any] | None
    # (LLVM builder, index) -> a word of the data numbers; None if there are none.
    number: Callable[[Any, int], Any] | None = None


def adopt(fn: pytypes.FunctionType, adoption: Adoption) -> pytypes.FunctionType:
    """Return a copy of fn that numba compiles with NumPy 2's arithmetic."""
    subject = "op" if fn.__name__ == "<lambda>" else f"op ({fn.__name__})"
    errors.check(fn.__code__, subject)
    defaults = tuple(_compared_by_identity(as_number(value)) for value in fn.__defaults__ or ())
    copy = pytypes.FunctionType(
        fn.__code__, fn.__globals__, fn.__name__, defaults or None, fn.__closure__
    )
    copy.__kwdefaults__ = fn.__kwdefaults__
    setattr(copy, MARK, adoption)
    return copy


_BY_IDENTITY = {"__eq__": object.__eq__, "__ne__": object.__ne__, "__hash__": object.__hash__}
_IDENTITY_TYPES: dict[Any, Any] = {
    kind: type(kind.__name__, (kind,), _BY_IDENTITY)
    for kind in (np.float32, np.float64, np.complex64, np.complex128)
}


def _compared_by_identity(value: Any) -> Any:
    """Return a default value that compares by identity.

    numba caches code by default values, for which 0.0 and -0.0 are equal.
    """
    if type(value) is tuple:
        return tuple(_compared_by_identity(item) for item in value)
    kind = _IDENTITY_TYPES.get(type(value))
    return value if kind is None else kind(value)


_CHOICES = {types.FunctionType, types.UndefinedFunctionType, types.FunctionPrototype}


@cache
def install() -> None:
    """Register the types and the rewrite with numba, once per process."""
    storage.install()
    base: Any = rewrites.Rewrite

    class NumPyArithmetic(base):
        def __init__(self, state: Any = None) -> None:
            self.state = state
            self.seen: set[int] = set()
            self.lookup: Lookup | None = None

        def match(self, func_ir: Any, block: Any, typemap: Any, calltypes: Any) -> bool:
            adoption = getattr(func_ir.func_id.func, MARK, None)
            if adoption is None or id(block) in self.seen:
                return False
            self.seen.add(id(block))
            if self.lookup is None:
                self.lookup = Lookup(func_ir, tuple(self.state.args))
                _check_statements(func_ir, self.lookup)
                errors.check_assignments(func_ir, self.lookup.has_items)
            self.block, self.adoption = block, adoption
            return True

        def apply(self) -> Any:
            assert self.lookup is not None
            Rewriter(self.lookup, self.block, self.adoption).run()
            self.state.typingctx.refresh()  # registers the new intrinsics
            self.state.targetctx.refresh()
            return self.block

    class NoChosenFunctions(base):
        """Refuses functions as values, which numba types by one of those that they may be."""

        def __init__(self, state: Any = None) -> None:
            pass

        def match(self, func_ir: Any, block: Any, typemap: Any, calltypes: Any) -> bool:
            is_adopted = getattr(func_ir.func_id.func, MARK, None) is not None
            if is_adopted and not _CHOICES.isdisjoint(map(type, typemap.values())):
                raise errors.NotInAnOperator(errors.CHOICE)
            return False

        def apply(self) -> Any:
            raise AssertionError("nothing is replaced")

    rewrites.register_rewrite("before-inference")(NumPyArithmetic)
    rewrites.register_rewrite("after-inference")(NoChosenFunctions)


def _check_statements(func_ir: Any, lookup: Lookup) -> None:
    """Raise errors for statements that kernels do not support."""
    statements = [each for block in func_ir.blocks.values() for each in block.body]
    assigned = {each.target.name for each in statements if isinstance(each, ir.Assign)}
    for statement in statements:
        if isinstance(statement, (ir.Raise, ir.StaticRaise, ir.DynamicRaise)):
            raise CompileError(
                "an operator cannot raise or assert: kernels have no exceptions; "
                "return a value such as NaN instead"
            )
        # numba drops the assignment of a value that is also used on.
        if any(var.is_temp and var.name not in assigned for var in statement.list_vars()):
            raise errors.NotInAnOperator(
                "op holds `:=`, which numba does not support here: write `def`, and the assignment "
                "on a line of its own"
            )
        errors.check_use_of_array(statement, lookup.constant)


# --- Wrappers of operators with a fixed number of parameters.


def function_of(op: Operator, arity: int) -> pytypes.FunctionType:
    """Return op's function to compile, with exactly `arity` parameters."""
    return as_function(op.function if op.name is None else PYTHON[op.name], arity)


def as_function(fn: Any, arity: int) -> pytypes.FunctionType:
    """Return a Python function of exactly `arity` parameters that computes fn.

    fn may have defaults or variadic parameters, or be a C function.
    """
    function = python_function(fn)
    if function is not None:
        code = function.__code__
        variadic = code.co_flags & 0x0C  # *args, **kwargs
        if code.co_argcount == arity and not variadic and not code.co_kwonlyargcount:
            return function
    elif table.entry_of(fn) is None:
        errors.check_function(fn)
        raise TypeError(
            f"op is a {type(fn).__name__}, which numba cannot compile; "
            "pass a function or lambda of scalars"
        )
    callee = fn if function is None else function
    wrappers: list[Any] = [
        lambda a: callee(a),
        lambda a, b: callee(a, b),
        lambda a, b, c: callee(a, b, c),
        lambda a, b, c, d: callee(a, b, c, d),
        lambda a, b, c, d, e: callee(a, b, c, d, e),
        lambda a, b, c, d, e, f: callee(a, b, c, d, e, f),
        lambda a, b, c, d, e, f, g: callee(a, b, c, d, e, f, g),
        lambda a, b, c, d, e, f, g, h: callee(a, b, c, d, e, f, g, h),
    ]
    wrapper: pytypes.FunctionType = wrappers[arity - 1]
    return wrapper
