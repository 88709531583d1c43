"""Operators on the CPU: compiled once for each choice of dtypes, and kept on disk."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpualgo._base import log, records
from gpualgo._base.imports import loading
from gpualgo._base.memo import Memo
from gpualgo._base.records import Argument
from gpualgo._cpu import captured, host
from gpualgo._operators import recompiled
from gpualgo._operators.operator import Operator

_compiled: Memo[CompiledOperator] = Memo(1024)


class Applied(NamedTuple):
    """An operator on arguments of some dtypes; its result is cast to another one if given."""

    op: Operator
    arguments: tuple[Argument, ...]
    result_dtype: np.dtype[Any] | None

    @property
    def key(self) -> tuple[Any, ...]:
        """What decides its code, within this process."""
        return self.op.code, self.arguments, self.result_dtype

    @property
    def parts(self) -> tuple[str, ...]:
        """What decides its code, the same in every process."""
        names = ",".join(map(records.label, self.arguments))
        return self.op.digest, names, records.label(self.result_dtype)

    @property
    def words(self) -> np.ndarray[Any, Any] | None:
        """Where its code finds what it captures; None if there is nothing."""
        key = self.op.key
        return captured.words_of(key) if key.arrays or key.numbers else None


class CompiledOperator(NamedTuple):
    """An operator as LLVM's bitcode, for kernels to inline, and the dtype that it returns."""

    bitcode: bytes
    result_dtype: np.dtype[Any]


def compile_operator(
    op: Operator,
    arg_dtypes: tuple[Argument, ...],
    result_dtype: np.dtype[Any] | None,
) -> CompiledOperator:
    """Compile op for arguments of arg_dtypes; its result is cast to result_dtype if given."""
    applied = Applied(op, arg_dtypes, result_dtype)
    made = _compiled.made(applied.key, lambda: _read_or_compile(applied))
    if result_dtype is None:  # for the kernel, which asks for this dtype
        key = (op.code, arg_dtypes, made.result_dtype)
        if _compiled.get(key) is None:
            _compiled.add(key, made)
    return made


def _read_or_compile(applied: Applied) -> CompiledOperator:
    parts = "operator", *applied.parts
    recompiled.noted(applied.op)
    entry = host.read(*parts)
    if entry is not None and len(entry) == 2:
        known = records.from_label(entry[0].decode())
        if known is not None:
            log.tell(log.DEBUG, "found on disk: bitcode of operator %s for the CPU",
                     recompiled.place_of(applied.op.shown))  # fmt: skip
            return CompiledOperator(entry[1], known)
    with log.making("compiled operator %s (%s) for the CPU",
                    recompiled.place_of(applied.op.shown), applied.parts[1]):  # fmt: skip
        made = _compile(applied.op, applied.arguments, applied.result_dtype)
    host.write((records.label(made.result_dtype).encode(), made.bitcode), *parts)
    return made


def _compile(
    op: Operator, arg_dtypes: tuple[Argument, ...], result_dtype: np.dtype[Any] | None
) -> CompiledOperator:
    with loading:
        from gpualgo._cpu import compile_operator as compiler

    return CompiledOperator(*compiler.compile_operator(op, arg_dtypes, result_dtype))
