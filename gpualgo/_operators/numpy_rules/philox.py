"""Philox4x64-10 as LLVM code: word `position` of a key's stream, four words in a block."""

from __future__ import annotations

from typing import Any

from llvmlite import ir as llvm
from numba import types
from numba.core import cgutils

from gpualgo._operators.numpy_rules.arithmetic import new_function, vector, vector_bits
from gpualgo._operators.numpy_rules.storage import Code, Operand
from gpualgo._operators.numpy_rules.values import Integer, choose, loop

_ROUNDS = 10
_MULTIPLIERS = 0xD2E7470EE14C6C93, 0xCA5A826395121157
_WEYL = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B  # added to the keys before each further round
_bits, _word = llvm.IntType, llvm.IntType(64)
_FOUR = llvm.VectorType(_word, 4)


def generate(code: Code, values: list[Operand]) -> Any:
    """Return the word at a position of the stream of a key, which is two words."""
    words = [value.to(types.uint64) for value in values]
    if not code.is_cuda:
        return code.builder.call(_word_function(code), words)
    position, *keys = (Integer(code, word) for word in words)
    block = _block(position >> 2, *keys)
    is_odd, is_late = ((position & bit) != 0 for bit in (1, 2))
    pairs = [choose(is_odd, block[i + 1], block[i]) for i in (0, 2)]
    return choose(is_late, pairs[1], pairs[0]).raw


def _word_function(code: Code) -> Any:
    """Return the CPU's function of a word. LLVM's vectoriser calls its forms for vectors."""
    name, module, word = "gpualgo_philox", code.builder.module, _word
    if (function := module.globals.get(name)) is None:
        block = new_function(module, f"{name}_block", _FOUR, [word] * 3)
        inner = Code(code.context, llvm.IRBuilder(block.append_basic_block()))
        keyed = _block(*(Integer(inner, argument) for argument in block.args))
        inner.builder.ret(vector(keyed))
        counts = (8, 4) if vector_bits(code) > 128 else (4, 2)
        kinds = {f"{name}_{n}": llvm.VectorType(word, n) for n in counts}
        for form, kind in {**kinds, name: word}.items():
            function = new_function(module, form, kind, [kind, word, word])
            _define_words(function, block, code)
        variants = (f"_ZGV_LLVM_N{kind.count}vuu_{name}({form})" for form, kind in kinds.items())
        set.add(function.attributes, f'"vector-function-abi-variant"="{",".join(variants)}"')
    return function


def _define_words(function: Any, block: Any, code: Code) -> None:
    """Define a function of one or several positions, which computes no block twice in a row."""
    builder, (positions, *keys) = llvm.IRBuilder(function.append_basic_block()), function.args
    inner, kind, count = Code(code.context, builder), positions.type, 1
    if kind != _word and (count := kind.count) > 2:
        first = Integer(inner, builder.extract_element(positions, _word(0)))
        steps = builder.sub(positions, vector([first] * count))
        for k in (1, 2):  # usual: each word once, or both halves of each word
            order = [i // k for i in range(count)]
            bits = builder.bitcast(builder.icmp_signed("==", steps, kind(order)), _bits(count))
            is_usual = (first.made(bits) == -1) & ((first & 3) == 0)
            with builder.if_then(is_usual.raw, likely=True):
                numbers = [((first >> 2) + i).raw for i in range(2)]
                low, high = (builder.call(block, [number, *keys]) for number in numbers)
                mask = llvm.VectorType(_bits(32), count)(order)
                builder.ret(builder.shuffle_vector(low, high, mask))
    places = [builder.alloca(each) for each in (kind, _FOUR)]
    builder.store(positions, places[0])
    items, words = (builder.bitcast(place, _word.as_pointer()) for place in places)

    def step(i: Integer, known: Integer) -> list[Any]:
        item = builder.gep(items, [i.raw])
        position = i.made(builder.load(item))
        number = position >> 2
        with builder.if_then((number != known).raw):
            builder.store(builder.call(block, [number.raw, *keys]), places[1])
        builder.store(builder.load(builder.gep(words, [(position & 3).raw])), item)
        return [i + 1, number]

    loop([Integer(inner, _word(start)) for start in (0, -1)], lambda i, _: i != count, step)
    builder.ret(builder.load(places[0]))


def _block(number: Any, *keys: Any) -> list[Any]:
    words = [number + 1, *map(number.like, (0, 0, 0))]  # NumPy starts at 1
    for step in range(_ROUNDS):
        if step:
            keys = tuple(key + weyl for key, weyl in zip(keys, _WEYL, strict=True))
        (high0, low0), (high1, low1) = (
            _product(word, factor) for word, factor in zip(words[::2], _MULTIPLIERS, strict=True)
        )
        words = [high1 ^ words[1] ^ keys[0], low1, high0 ^ words[3] ^ keys[1], low0]
    return words


def _product(word: Any, factor: int) -> tuple[Any, Any]:
    """Return the upper and the lower 64 bits of a product."""
    code, kind = word.code, word.raw.type
    if not code.is_cuda:
        product = word.extended(llvm.IntType(128)) * factor
        return (product >> 64).truncated(kind), product.truncated(kind)
    function = cgutils.get_or_insert_function(
        code.builder.module, llvm.FunctionType(kind, [kind, kind]), "llvm.nvvm.mulhi.ull"
    )
    return word.made(code.builder.call(function, [word.raw, kind(factor)])), word * factor
