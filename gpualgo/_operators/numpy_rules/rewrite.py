"""Give numba NumPy-2 arithmetic in operators: a rewrite of its IR before type inference.

Every arithmetic expression, known function and constant of an operator is replaced by a call or
a constant that promotes as NumPy 2 does: int8 + int8 stays int8, a Python literal does not widen
a float32, float16 rounds after each step. Only functions marked by `adopt` are touched; numba
code of the same process keeps numba's rules.
"""

from __future__ import annotations

import types as pytypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpualgo._base.errors import CompileError
from gpualgo._operators.captured import Slot, is_array
from gpualgo._operators.key import python_function
from gpualgo._operators.numpy_rules import (
    captured as slots,
)
from gpualgo._operators.numpy_rules import (
    functions,
    rules,
)
from gpualgo._operators.numpy_rules import (
    types as numba_types,
)
from gpualgo._operators.numpy_rules.types import WeakValue

MARK = "__gpualgo_adopted__"


@dataclass(frozen=True)
class Target:
    """The modules of numba that the CPU and the CUDA target have one each of."""

    ir: Any
    ir_utils: Any
    rewrites: Any
    extending: Any
    models: Any
    imputils: Any
    arrayobj: Any
    is_cuda: bool


@dataclass(frozen=True)
class Adoption:
    """How the calls and the captured arrays inside one compilation are resolved."""

    target: Target
    device_function: Callable[[pytypes.FunctionType], Any]
    # LLVM's builder -> a pointer to what describes captured arrays; None: there are none.
    words: Callable[[Any], Any] | None


def adopt(fn: pytypes.FunctionType, adoption: Adoption) -> pytypes.FunctionType:
    """Return a copy of fn that numba will compile with NumPy-2 arithmetic."""
    weak = tuple(
        WeakValue(value) if type(value) in (int, float, complex) else value
        for value in fn.__defaults__ or ()
    )
    copy = pytypes.FunctionType(
        fn.__code__, fn.__globals__, fn.__name__, weak or None, fn.__closure__
    )
    copy.__kwdefaults__ = fn.__kwdefaults__
    setattr(copy, MARK, adoption)
    return copy


def install(target: Target) -> None:
    """Register the types and the rewrite with one numba target, once per process."""
    lower_constant = target.imputils.lower_constant
    numba_types.install(target.extending, target.models, lower_constant, target.is_cuda)
    base: Any = target.rewrites.Rewrite

    class NumPyArithmetic(base):
        def __init__(self, state: Any = None) -> None:
            self.state = state
            self.seen: set[int] = set()
            self.plain: set[str] | None = None

        def match(self, func_ir: Any, block: Any, typemap: Any, calltypes: Any) -> bool:
            adoption = getattr(func_ir.func_id.func, MARK, None)
            if adoption is None or id(block) in self.seen:
                return False
            self.seen.add(id(block))
            if self.plain is None:
                _refuse_raise(func_ir, target.ir)
                _refuse_writes(func_ir, target.ir)
                self.plain = _plain_integers(func_ir, target.ir)
            self.block, self.func_ir, self.adoption = block, func_ir, adoption
            return True

        def apply(self) -> Any:
            rewriter = _Rewriter(self.func_ir, self.block, self.adoption, self.plain or set())
            rewriter.run()
            self.state.typingctx.refresh()  # learns the intrinsics made just now
            self.state.targetctx.refresh()
            return self.block

    target.rewrites.register_rewrite("before-inference")(NumPyArithmetic)


def _refuse_raise(func_ir: Any, ir: Any) -> None:
    raising = (ir.Raise, ir.StaticRaise, ir.DynamicRaise)
    for block in func_ir.blocks.values():
        for statement in block.body:
            if isinstance(statement, raising):
                raise CompileError(
                    "an operator cannot raise or assert: a kernel has nobody to tell; "
                    "return a value such as NaN instead"
                )


def _refuse_writes(func_ir: Any, ir: Any) -> None:
    for block in func_ir.blocks.values():
        for statement in block.body:
            if isinstance(statement, (ir.SetItem, ir.StaticSetItem)):
                _, written = _definition(func_ir, ir, statement.target)
                if type(written) is Slot:
                    raise CompileError(
                        "an operator cannot write to an array that it captures, which other "
                        "threads read: return a value instead"
                    )


def _constant_of(func_ir: Any, ir: Any, value: Any) -> Any:
    """Return the Python object that an IR value stands for: (found, object)."""
    if isinstance(value, (ir.Const, ir.Global, ir.FreeVar)):
        return True, value.value
    if isinstance(value, ir.Expr) and value.op == "getattr":
        found, owner = _definition(func_ir, ir, value.value)
        if found and isinstance(owner, pytypes.ModuleType) and hasattr(owner, value.attr):
            return True, getattr(owner, value.attr)
    return False, None


def _definition(func_ir: Any, ir: Any, var: Any) -> Any:
    definitions = func_ir._definitions.get(var.name, [])
    if len(definitions) != 1:
        return False, None
    return _constant_of(func_ir, ir, definitions[0])


def _counts_range(func_ir: Any, ir: Any, value: Any) -> bool:
    """Return whether a value is the next counter of a range: pair_first(iternext(getiter(…)))."""
    for op in ("pair_first", "iternext", "getiter", "call"):
        if not isinstance(value, ir.Expr) or value.op != op:
            return False
        value = value.func if op == "call" else value.value
        while isinstance(value, ir.Var):
            definitions = func_ir._definitions.get(value.name, [])
            if len(definitions) != 1:
                return False
            value = definitions[0]
    found, fn = _constant_of(func_ir, ir, value)
    return bool(found and fn is range)


def _plain_integers(func_ir: Any, ir: Any) -> set[str]:
    """Return the variables whose integers index, bound a range or fill a tuple: left alone."""
    plain: set[str] = set()
    copies: list[tuple[str, str]] = []
    for block in func_ir.blocks.values():
        for statement in block.body:
            if isinstance(statement, ir.SetItem):
                plain.add(statement.index.name)
            if not isinstance(statement, ir.Assign):
                continue
            value = statement.value
            if isinstance(value, ir.Var):
                copies.append((statement.target.name, value.name))
            elif isinstance(value, ir.Expr) and not _computes(func_ir, ir, value):
                plain.update(var.name for var in value.list_vars())
    changed = True
    while changed:
        before = len(plain)
        plain.update(source for target, source in copies if target in plain)
        changed = len(plain) != before
    return plain


def _computes(func_ir: Any, ir: Any, expr: Any) -> bool:
    """Return whether an expression takes weak scalars as operands."""
    if expr.op in ("binop", "inplace_binop", "unary", "cast", "phi", "pair_first"):
        return True
    if expr.op != "call":
        return False
    found, fn = _definition(func_ir, ir, expr.func)
    known = functions.rule_of(fn) is not None or python_function(fn) is not None
    return bool(found and known)


class _Rewriter:
    def __init__(self, func_ir: Any, block: Any, adoption: Adoption, plain: set[str]) -> None:
        self.func_ir, self.block, self.adoption, self.plain = func_ir, block, adoption, plain
        self.ir = adoption.target.ir
        self.body: list[Any] = []

    def run(self) -> None:
        for statement in self.block.body:
            if isinstance(statement, self.ir.Assign):
                self._assign(statement)
            self.body.append(statement)
        self.block.body = self.body

    def _assign(self, statement: Any) -> None:
        ir, value = self.ir, statement.value
        if isinstance(value, ir.Expr) and value.op in ("binop", "inplace_binop"):
            fn = value.fn if value.op == "binop" else value.immutable_fn
            self._replace(statement, self._call(fn, (value.lhs, value.rhs), value.loc))
        elif isinstance(value, ir.Expr) and value.op == "unary":
            self._replace(statement, self._call(value.fn, (value.value,), value.loc))
        elif isinstance(value, ir.Expr) and value.op == "call":
            self._rewrite_call(statement, value)
        elif isinstance(value, ir.Expr) and value.op == "getitem" and self.adoption.words:
            self._rewrite_index(value)
        elif _counts_range(self.func_ir, ir, value) and statement.target.name not in self.plain:
            self._weaken_counter(statement)
        else:
            found, constant = _constant_of(self.func_ir, ir, value)
            if found:
                self._rewrite_constant(statement, constant, value.loc)

    def _weaken_counter(self, statement: Any) -> None:
        """Make the counter of a `for … in range` a Python int again: numba has it as an int64."""
        raw = self._store(statement.value, statement.loc)
        intrinsic = rules.weak_counter(self.adoption.target.extending.intrinsic)
        self._replace(statement, self._call_intrinsic(intrinsic, (raw,), statement.loc))

    def _rewrite_index(self, value: Any) -> None:
        """Let what was computed from Python numbers be an index."""
        intrinsic = slots.plain_index(self.adoption.target.extending.intrinsic)
        call = self._call_intrinsic(intrinsic, (value.index,), value.loc)
        value._kws["index"] = self._store(call, value.loc)

    def _call_intrinsic(self, intrinsic: Any, args: tuple[Any, ...], loc: Any) -> Any:
        callee = self._store(self.ir.Global(intrinsic._name, intrinsic, loc), loc)
        return self.ir.Expr.call(callee, args, (), loc)

    def _rewrite_constant(self, statement: Any, constant: Any, loc: Any) -> None:
        kind = type(constant)
        if kind in (float, complex) or (kind is int and statement.target.name not in self.plain):
            self._replace(statement, self.ir.Const(WeakValue(constant), loc))
            return
        if kind is Slot:
            target = self.adoption.target
            make = target.extending.intrinsic
            array = slots.array_intrinsic(constant, target.arrayobj, make, self.adoption.words)
            self._replace(statement, self._call_intrinsic(array, (), loc))
            return
        if is_array(constant):
            raise CompileError(
                "op reads an array that is an attribute of a module; give it a name of its own "
                "outside of op and use that"
            )
        function = python_function(constant)
        if function is not None:
            device = self.adoption.device_function(function)
            self._replace(statement, self.ir.Global(function.__name__, device, loc))

    def _rewrite_call(self, statement: Any, call: Any) -> None:
        found, fn = _definition(self.func_ir, self.ir, call.func)
        if not found or functions.rule_of(fn) is None or call.kws or call.vararg:
            return
        args = tuple(call.args)
        if functions.folds(fn) and len(args) > 2:  # max(a, b, c) is max(max(a, b), c)
            while len(args) > 2:
                joint = self._store(self._call(fn, args[:2], call.loc), call.loc)
                args = (joint, *args[2:])
        self._replace(statement, self._call(fn, args, call.loc))
        self._forget_callee(call.func.name)

    def _forget_callee(self, name: str) -> None:
        """Unload a function that is called through its intrinsic now: numba may not know it."""
        for statement in self.body:
            if isinstance(statement, self.ir.Assign) and statement.target.name == name:
                statement.value = self.ir.Const(None, statement.loc)

    def _call(self, fn: Any, args: tuple[Any, ...], loc: Any) -> Any:
        intrinsic = rules.intrinsic_for(fn, len(args), self.adoption.target.extending.intrinsic)
        callee = self._store(self.ir.Global(f"numpy_{fn.__name__}", intrinsic, loc), loc)
        return self.ir.Expr.call(callee, args, (), loc)

    def _store(self, value: Any, loc: Any) -> Any:
        ir = self.ir
        var = ir.Var(self.block.scope, self.adoption.target.ir_utils.mk_unique_var("$numpy"), loc)
        self.body.append(ir.Assign(value, var, loc))
        self.func_ir._definitions[var.name].append(value)
        return var

    def _replace(self, statement: Any, value: Any) -> None:
        definitions = self.func_ir._definitions[statement.target.name]
        for i, old in enumerate(definitions):
            if old is statement.value:
                definitions[i] = value
        statement.value = value
