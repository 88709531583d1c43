"""Rewrites numba's IR of operators before type inference, so that they promote as NumPy 2 does.

Arithmetic expressions, known functions and constants are replaced by intrinsics: int8 + int8 stays
int8, a Python literal does not widen a float32, float16 rounds after each operation. Only functions
marked by `adopt` are rewritten; other numba code of the process is unchanged.
"""

from __future__ import annotations

import types as pytypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpualgo._base.errors import CompileError
from gpualgo._operators.captured import Slot
from gpualgo._operators.numpy_rules import language, storage
from gpualgo._operators.numpy_rules.lookup import Lookup
from gpualgo._operators.numpy_rules.rewriter import Rewriter, as_number

MARK = "__gpualgo_adopted__"


@dataclass(frozen=True)
class Target:
    """The numba modules of one target: CPU or CUDA."""

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
    """How one compilation resolves calls and captured arrays and numbers."""

    target: Target
    device_function: Callable[[pytypes.FunctionType], Any]
    # LLVM builder -> pointer to the words of captured arrays; None if there are none.
    words: Callable[[Any], Any] | None
    # (LLVM builder, index) -> a word of the data numbers; None if there are none.
    number: Callable[[Any, int], Any] | None = None


def adopt(fn: pytypes.FunctionType, adoption: Adoption) -> pytypes.FunctionType:
    """Return a copy of fn that numba compiles with NumPy 2's arithmetic."""
    subject = "op" if fn.__name__ == "<lambda>" else f"op ({fn.__name__})"
    language.check(fn.__code__, subject)
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


def install(target: Target) -> None:
    """Register the types and the rewrite with a numba target, once per process."""
    lower_constant = target.imputils.lower_constant
    storage.install(target.extending, target.models, lower_constant, target.is_cuda)
    base: Any = target.rewrites.Rewrite

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
                self.lookup = Lookup(func_ir, target.ir, tuple(self.state.args))
                _refuse_raise(func_ir, target.ir)
                _refuse_writes(func_ir, target.ir, self.lookup)
            self.block, self.adoption = block, adoption
            return True

        def apply(self) -> Any:
            assert self.lookup is not None
            Rewriter(self.lookup, self.block, self.adoption).run()
            self.state.typingctx.refresh()  # registers the new intrinsics
            self.state.targetctx.refresh()
            return self.block

    target.rewrites.register_rewrite("before-inference")(NumPyArithmetic)


def _refuse_raise(func_ir: Any, ir: Any) -> None:
    raising = (ir.Raise, ir.StaticRaise, ir.DynamicRaise)
    for block in func_ir.blocks.values():
        for statement in block.body:
            if isinstance(statement, raising):
                raise CompileError(
                    "an operator cannot raise or assert: kernels have no exceptions; "
                    "return a value such as NaN instead"
                )


def _refuse_writes(func_ir: Any, ir: Any, lookup: Lookup) -> None:
    for block in func_ir.blocks.values():
        for statement in block.body:
            if isinstance(statement, (ir.SetItem, ir.StaticSetItem)):
                _, array = lookup.constant(statement.target)
                if type(array) is Slot:
                    raise CompileError(
                        "an operator cannot write to an array that it captures, which other "
                        "threads read: return a value instead"
                    )
