"""Operators on the CPU: compiled once for each choice of dtypes, and cached on disk."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpualgo._base import log, records
from gpualgo._base.imports import loading
from gpualgo._base.memo import Memo
from gpualgo._base.records import Argument
from gpualgo._cpu import host, memory
from gpualgo._operators.operator import Operator, count_code, source_location

_compiled: Memo[CompiledOperator] = Memo(1024)


class Applied(NamedTuple):
    """An operator, its arguments' dtypes, and the dtype its result is cast to, if any."""

    op: Operator
    arguments: tuple[Argument, ...]
    result_dtype: np.dtype[Any] | None

    @property
    def key(self) -> tuple[Any, ...]:
        """Key of the code within this process."""
        return self.op.code, self.arguments, self.result_dtype

    @property
    def parts(self) -> tuple[str, ...]:
        """Key of the code that is the same in every process."""
        names = ",".join(map(records.label, self.arguments))
        return self.op.digest, names, records.label(self.result_dtype)

    @property
    def words(self) -> np.ndarray[Any, Any] | None:
        """Memory of the captured values that the code reads; None if there are none."""
        key = self.op.key
        return memory.captured_words(key) if key.arrays or key.numbers else None


class CompiledOperator(NamedTuple):
    """An operator as LLVM bitcode for kernels to inline, and its result's dtype."""

    bitcode: bytes
    result_dtype: np.dtype[Any]


def compile_operator(
    op: Operator,
    arg_dtypes: tuple[Argument, ...],
    result_dtype: np.dtype[Any] | None,
) -> CompiledOperator:
    """Compile op for arguments of arg_dtypes; its result is cast to result_dtype if given."""
    applied = Applied(op, arg_dtypes, result_dtype)
    compiled = _compiled.made(applied.key, lambda: _read_or_compile(applied))
    if result_dtype is None:  # the kernel asks for this dtype next
        key = (op.code, arg_dtypes, compiled.result_dtype)
        if _compiled.get(key) is None:
            _compiled.add(key, compiled)
    return compiled


def _read_or_compile(applied: Applied) -> CompiledOperator:
    parts = "operator", *applied.parts
    count_code(applied.op)
    entry = host.read(*parts)
    if entry is not None and len(entry) == 2:
        result_dtype = records.from_label(entry[0].decode())
        if result_dtype is not None:
            log.log(log.DEBUG, "found on disk: bitcode of operator %s for the CPU",
                     source_location(applied.op.shown))  # fmt: skip
            return CompiledOperator(entry[1], result_dtype)
    with log.timed_block("compiled operator %s (%s) for the CPU",
                    source_location(applied.op.shown), applied.parts[1]):  # fmt: skip
        compiled = _compile(applied.op, applied.arguments, applied.result_dtype)
    host.write((records.label(compiled.result_dtype).encode(), compiled.bitcode), *parts)
    return compiled


def _compile(
    op: Operator, arg_dtypes: tuple[Argument, ...], result_dtype: np.dtype[Any] | None
) -> CompiledOperator:
    with loading:
        from gpualgo._cpu import compile_operator as compiler

    return CompiledOperator(*compiler.compile_operator(op, arg_dtypes, result_dtype))
