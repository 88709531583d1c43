"""Helpers to generate LLVM code for a target, including calls of its math library."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llvmlite import ir as llvm
from numba import types
from numba.core import cgutils

from gpualgo._operators.numpy_rules.storage import Narrowing

# libdevice names that differ from those in Python's math.
_LIBDEVICE = {"gamma": "tgamma"}
# C functions to call on the CPU: numba's math lacks them, or lowers them to an LLVM intrinsic.
_EXTERNAL = ("cbrt", "exp2", "pow")
i1, f32, f64 = llvm.IntType(1), llvm.FloatType(), llvm.DoubleType()


@dataclass(frozen=True)
class Code:
    """An LLVM builder and its target."""

    context: Any
    builder: Any
    is_cuda: bool

    @property
    def narrowing(self) -> Narrowing:
        return Narrowing(self.is_cuda)

    def select(self, *cases: Any) -> Any:
        """Return the value of the first true condition: condition, value, …, default."""
        *pairs, result = cases
        for condition, value in reversed(list(zip(pairs[::2], pairs[1::2], strict=True))):
            result = self.builder.select(condition, value, result)
        return result

    def both(self, first: Any, *others: Any) -> Any:
        for other in others:
            first = self.builder.and_(first, other)
        return first

    def either(self, first: Any, *others: Any) -> Any:
        for other in others:
            first = self.builder.or_(first, other)
        return first

    def libm(self, name: str, *values: Any) -> Any:
        ty = values[0].type
        suffix = "f" if ty == f32 else ""
        if self.is_cuda or name in _EXTERNAL:
            symbol = f"__nv_{_LIBDEVICE.get(name, name)}" if self.is_cuda else name
            kind = llvm.FunctionType(ty, [ty] * len(values))
            function = cgutils.get_or_insert_function(self.builder.module, kind, symbol + suffix)
            if symbol == "pow":
                # LLVM replaces calls with some constants, such as 8 ** a by exp2. A number must
                # give the same bits as a constant and as data.
                for attribute in ("nobuiltin", "nounwind", "readnone"):
                    function.attributes.add(attribute)
            return self.builder.call(function, values)
        scalar = types.float32 if ty == f32 else types.float64
        signature = scalar(*(scalar,) * len(values))
        return self.context.get_function(getattr(math, name), signature)(self.builder, values)

    def intrinsic(self, name: str, *values: Any) -> Any:
        """Call an LLVM intrinsic that is overloaded on the type of its arguments."""
        if self.is_cuda and name == "trunc":  # CUDA 13.0's NVVM lacks it for float32
            return self.libm(name, *values)
        function = self.builder.module.declare_intrinsic(f"llvm.{name}", [values[0].type])
        return self.builder.call(function, values)

    def loop(self, start: list[Any], goes_on: Callable[..., Any], step: Callable[..., Any]) -> Any:
        builder = self.builder
        before = builder.block
        head = builder.append_basic_block("head")
        body = builder.append_basic_block("body")
        after = builder.append_basic_block("after")
        builder.branch(head)
        builder.position_at_end(head)
        variables = [builder.phi(value.type) for value in start]
        for variable, value in zip(variables, start, strict=True):
            variable.add_incoming(value, before)
        builder.cbranch(goes_on(*variables), body, after)
        builder.position_at_end(body)
        for variable, value in zip(variables, step(*variables), strict=True):
            variable.add_incoming(value, builder.block)
        builder.branch(head)
        builder.position_at_end(after)
        return variables
