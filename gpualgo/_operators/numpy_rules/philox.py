"""LLVM code of Philox4x64-10: word `position` of a key's stream, four words in a block."""

from __future__ import annotations

from typing import Any

from llvmlite import ir as llvm
from numba import types

from gpualgo._operators.numpy_rules.code import Code
from gpualgo._operators.numpy_rules.conversions import Planned
from gpualgo._operators.numpy_rules.table import Entry

_WORD, _WIDE = llvm.IntType(64), llvm.IntType(128)
_ROUNDS = 10
_MULTIPLIERS = 0xD2E7470EE14C6C93, 0xCA5A826395121157
_WEYL = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B  # added to the keys before each further round


def plan(entry: Entry, args: tuple[types.Type, ...]) -> Planned:
    def generate(code: Code, values: list[Any]) -> Any:
        builder = code.builder
        position, *keys = (
            code.context.cast(builder, value, ty, types.uint64)
            for value, ty in zip(values, args, strict=True)
        )
        words = _block(code, builder.lshr(position, _WORD(2)), keys)
        low, high = (builder.and_(position, _WORD(bit)) for bit in (1, 2))
        is_odd, is_late = (builder.icmp_unsigned("!=", bit, _WORD(0)) for bit in (low, high))
        pairs = [builder.select(is_odd, words[i + 1], words[i]) for i in (0, 2)]
        return builder.select(is_late, pairs[1], pairs[0])

    return types.uint64, generate


def _block(code: Code, number: Any, keys: list[Any]) -> list[Any]:
    builder = code.builder
    words = [builder.add(number, _WORD(1)), _WORD(0), _WORD(0), _WORD(0)]  # NumPy starts at 1
    for step in range(_ROUNDS):
        if step:
            keys = [builder.add(key, _WORD(weyl)) for key, weyl in zip(keys, _WEYL, strict=True)]
        (high0, low0), (high1, low1) = (
            _product(code, words[2 * i], _MULTIPLIERS[i]) for i in range(2)
        )
        words = [
            builder.xor(builder.xor(high1, words[1]), keys[0]), low1,
            builder.xor(builder.xor(high0, words[3]), keys[1]), low0,
        ]  # fmt: skip
    return words


def _product(code: Code, word: Any, factor: int) -> tuple[Any, Any]:
    builder = code.builder
    low = builder.mul(word, _WORD(factor))
    if code.is_cuda:
        name = "llvm.nvvm.mulhi.ull"
        function = builder.module.globals.get(name) or llvm.Function(
            builder.module, llvm.FunctionType(_WORD, [_WORD, _WORD]), name
        )
        return builder.call(function, [word, _WORD(factor)]), low
    wide = builder.mul(builder.zext(word, _WIDE), _WIDE(factor))
    return builder.trunc(builder.lshr(wide, _WIDE(64)), _WORD), low
