"""Loop that separates interleaved numbers, or interleaves them again.

It loads all bytes of many elements as one vector and picks out each field by a shuffle, which LLVM
compiles to permutations. LLVM vectorises few of the equivalent scalar loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from llvmlite import binding, ir
from numba import types
from numba.extending import intrinsic

from gpualgo._cpu.layout import Field
from gpualgo._cpu.packing import load, offset, pointer_to

_VECTOR_BYTES = 64  # the least that one field's words take
_words = pointer_to(types.intp)
_I32, _I64, _BYTE = ir.IntType(32), ir.IntType(64), ir.IntType(8)


class _Layout(NamedTuple):
    """An element in words; their size divides all sizes and offsets of its numbers."""

    step: int
    fields: Sequence[Field]
    unit: int
    is_joined: bool

    @property
    def words(self) -> int:
        return abs(self.step) // self.unit

    @property
    def low(self) -> int:
        """Lowest offset of a byte from an element's start."""
        return min(field.offset for field in self.fields)

    def places(self, field: Field, count: int) -> list[int]:
        """Return the indices of a field's words in so many elements, in the order of memory."""
        first, size = (field.offset - self.low) // self.unit, field.size // self.unit
        rows = range(count) if self.step > 0 else range(count - 1, -1, -1)
        return [row * self.words + first + k for row in rows for k in range(size)]


def interleaved_kernel(step: int, fields: Sequence[Field], is_joined: bool) -> Callable[..., None]:
    """Return the source of the function, which has a packer's arguments."""
    unit = min(8, math.gcd(step, *(n for field in fields for n in (field.offset, field.size))))
    layout = _Layout(step, fields, unit, is_joined)
    move_one, batch = _single_mover(layout), _VECTOR_BYTES // unit if _uses_vectors(layout) else 0
    move_batch = _vector_mover(layout, batch) if batch else None
    # The last element in memory is moved alone: bytes after its numbers may belong to no array.
    num_alone = 1 if batch and step < 0 else 0

    def run(
        dense: int, strided: int, start: int, count: int, ndim: int, lengths: int, strides: int,
        packing: int,
    ) -> None:  # fmt: skip
        inner = load(_words(lengths), ndim - 1)
        row = start // inner
        column = start - row * inner
        done = 0
        while done < count:
            n = min(count - done, inner - column)
            source = strided + offset(row, ndim - 1, lengths, strides) + column * step
            i = 0
            if move_batch is not None:
                for i in range(num_alone):
                    move_one(dense, done, source, i)
                i = num_alone
                while i + batch < n:
                    move_batch(dense, done, source, i)
                    i += batch
            for k in range(i, n):
                move_one(dense, done, source, k)
            done += n
            row += 1
            column = 0

    return run


def _uses_vectors(layout: _Layout) -> bool:
    """Return whether to use vectors: the CPU can permute such words across them."""
    return layout.unit >= 4 or bool(binding.get_host_cpu_features().get("avx512vbmi"))


def _single_mover(layout: _Layout) -> Any:
    """Return an intrinsic that moves number `done + i` of each field, by constant distances."""

    def generate(builder: Any, dense: Any, element: Any, index: Any) -> None:
        moves = []
        for field in layout.fields:
            run, width = _run_of(builder, dense, field, index), layout.unit
            for byte in range(0, field.size, width):
                interleaved = _advance(builder, element, _constant(field.offset + byte))
                separate = _advance(builder, run, _constant(byte))
                pair = (separate, interleaved) if layout.is_joined else (interleaved, separate)
                pointer_type = ir.IntType(8 * width).as_pointer()
                source, target = (builder.bitcast(pointer, pointer_type) for pointer in pair)
                moves.append((builder.load(source, align=1), target))
        for value, target in moves:
            builder.store(value, target, align=1)

    return _mover(layout, generate)


def _vector_mover(layout: _Layout, count: int) -> Any:
    """Return an intrinsic that moves `count` numbers of each field from there."""
    word, step = ir.IntType(8 * layout.unit), layout.step
    vector = ir.VectorType(word, layout.words * count)
    undefined = ir.Constant(vector, ir.Undefined)

    def generate(builder: Any, dense: Any, element: Any, index: Any) -> None:
        first = layout.low + (step * (count - 1) if step < 0 else 0)
        block = builder.bitcast(_advance(builder, element, _constant(first)), vector.as_pointer())
        runs = []
        for field in layout.fields:
            field_type = ir.VectorType(word, field.size // layout.unit * count)
            run = builder.bitcast(_run_of(builder, dense, field, index), field_type.as_pointer())
            runs.append((run, layout.places(field, count)))
        if not layout.is_joined:
            value = builder.load(block, align=1)
            for run, places in runs:
                builder.store(builder.shuffle_vector(value, undefined, _mask(places)), run, align=1)
            return
        result = undefined
        for run, places in runs:
            spread_mask, blend_mask = [0] * vector.count, list(range(vector.count))
            for k, word_index in enumerate(places):
                spread_mask[word_index], blend_mask[word_index] = k, vector.count + word_index
            part = builder.load(run, align=1)
            empty = ir.Constant(part.type, ir.Undefined)
            spread = builder.shuffle_vector(part, empty, _mask(spread_mask))
            result = builder.shuffle_vector(result, spread, _mask(blend_mask))
        builder.store(result, block, align=1)

    return _mover(layout, generate)


def _mover(layout: _Layout, move: Callable[..., None]) -> Any:
    def intrinsic_move(_typing: Any, dense: Any, done: Any, strided: Any, i: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            dense, done, strided, i = args
            pointer = _BYTE.as_pointer()
            element = builder.inttoptr(strided, pointer)
            element = _advance(builder, element, builder.mul(i, _constant(layout.step)))
            move(builder, builder.inttoptr(dense, pointer), element, builder.add(done, i))
            return context.get_dummy_value()

        return types.void(types.intp, types.intp, types.intp, types.intp), generate

    return intrinsic(intrinsic_move)


def _run_of(builder: Any, dense: Any, field: Field, index: Any) -> Any:
    """Return the pointer to a field's separate copy. All share one base: LLVM sees no overlap."""
    run = _advance(builder, dense, _constant(field.place))
    return _advance(builder, run, builder.mul(index, _constant(field.size)))


def _mask(indices: list[int]) -> Any:
    return ir.Constant(ir.VectorType(_I32, len(indices)), indices)


def _constant(value: int) -> Any:
    return ir.Constant(_I64, value)


def _advance(builder: Any, base: Any, offset: Any) -> Any:
    return builder.gep(base, [offset], inbounds=True)
