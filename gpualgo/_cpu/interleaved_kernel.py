"""The loop over elements whose numbers lie in turn: apart, or from apart to where they lie.

Of many elements at once all bytes are loaded as one vector, of which each field's are picked out:
LLVM makes permutations of that. Left to itself it makes vectors of few of these loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from llvmlite import binding, ir
from numba import types
from numba.extending import intrinsic

from gpualgo._cpu.packing import offset
from gpualgo._cpu.pointers import load, pointer_to

if TYPE_CHECKING:
    from gpualgo._cpu.interleaved import Field

_VECTOR_BYTES = 64  # of one field's words, at least
_words = pointer_to(types.intp)
_I32, _I64, _BYTE = ir.IntType(32), ir.IntType(64), ir.IntType(8)


class _Layout(NamedTuple):
    """An element in words, as wide as all its numbers and their places are multiples of."""

    step: int
    fields: Sequence[Field]
    unit: int
    is_joined: bool

    @property
    def words(self) -> int:
        return abs(self.step) // self.unit

    @property
    def low(self) -> int:
        """Where the first byte lies, from an element's start."""
        return min(field.offset for field in self.fields)

    def places(self, field: Field, count: int) -> list[int]:
        """Return which words of so many elements, in the order of memory, are a field's."""
        first, size = (field.offset - self.low) // self.unit, field.size // self.unit
        rows = range(count) if self.step > 0 else range(count - 1, -1, -1)
        return [row * self.words + first + k for row in rows for k in range(size)]


def interleaved_kernel(step: int, fields: Sequence[Field], is_joined: bool) -> Callable[..., None]:
    """Write the function of a packer's arguments."""
    unit = min(8, math.gcd(step, *(n for field in fields for n in (field.offset, field.size))))
    layout = _Layout(step, fields, unit, is_joined)
    one, most = _one(layout), _VECTOR_BYTES // unit if _is_permuted(layout) else 0
    many = _many(layout, most) if most else None
    # Of the last element, and of the first where the way is backwards, bytes behind its numbers
    # may be nobody's.
    alone = 1 if most and step < 0 else 0

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
            at = strided + offset(row, ndim - 1, lengths, strides) + column * step
            i = 0
            if many is not None:
                for i in range(alone):
                    one(dense, done, at, i)
                i = alone
                while i + most < n:
                    many(dense, done, at, i)
                    i += most
            for k in range(i, n):
                one(dense, done, at, k)
            done += n
            row += 1
            column = 0

    return run


def _is_permuted(layout: _Layout) -> bool:
    """Return whether vectors are read or written, of words that the CPU permutes across them."""
    return layout.unit >= 4 or bool(binding.get_host_cpu_features().get("avx512vbmi"))


def _one(layout: _Layout) -> Any:
    """Return what moves number `done + i` of each field, by distances that LLVM knows."""

    def generate(builder: Any, dense: Any, element: Any, index: Any) -> None:
        moved = []
        for field in layout.fields:
            run, width = _run_of(builder, dense, field, index), layout.unit
            for by in range(0, field.size, width):
                here = _at(builder, element, _number(field.offset + by))
                there = _at(builder, run, _number(by))
                pair = (there, here) if layout.is_joined else (here, there)
                kind = ir.IntType(8 * width).as_pointer()
                source, target = (builder.bitcast(place, kind) for place in pair)
                moved.append((builder.load(source, align=1), target))
        for value, target in moved:
            builder.store(value, target, align=1)

    return _mover(layout, generate)


def _many(layout: _Layout, count: int) -> Any:
    """Return what moves as many numbers of each field from there."""
    word, step = ir.IntType(8 * layout.unit), layout.step
    whole = ir.VectorType(word, layout.words * count)
    undefined = ir.Constant(whole, ir.Undefined)

    def generate(builder: Any, dense: Any, element: Any, index: Any) -> None:
        first = layout.low + (step * (count - 1) if step < 0 else 0)
        at = builder.bitcast(_at(builder, element, _number(first)), whole.as_pointer())
        runs = []
        for field in layout.fields:
            kind = ir.VectorType(word, field.size // layout.unit * count)
            run = builder.bitcast(_run_of(builder, dense, field, index), kind.as_pointer())
            runs.append((run, layout.places(field, count)))
        if not layout.is_joined:
            value = builder.load(at, align=1)
            for run, places in runs:
                builder.store(builder.shuffle_vector(value, undefined, _mask(places)), run, align=1)
            return
        made = undefined
        for run, places in runs:
            wide, chosen = [0] * whole.count, list(range(whole.count))
            for k, place in enumerate(places):
                wide[place], chosen[place] = k, whole.count + place
            part = builder.load(run, align=1)
            empty = ir.Constant(part.type, ir.Undefined)
            spread = builder.shuffle_vector(part, empty, _mask(wide))
            made = builder.shuffle_vector(made, spread, _mask(chosen))
        builder.store(made, at, align=1)

    return _mover(layout, generate)


def _mover(layout: _Layout, move: Callable[..., None]) -> Any:
    def moved(_typing: Any, dense: Any, done: Any, strided: Any, i: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            dense, done, strided, i = args
            pointer = _BYTE.as_pointer()
            element = builder.inttoptr(strided, pointer)
            element = _at(builder, element, builder.mul(i, _number(layout.step)))
            move(builder, builder.inttoptr(dense, pointer), element, builder.add(done, i))
            return context.get_dummy_value()

        return types.void(types.intp, types.intp, types.intp, types.intp), generate

    return intrinsic(moved)


def _run_of(builder: Any, dense: Any, field: Field, index: Any) -> Any:
    """Return where a field's number lies apart: all of one base, so that LLVM sees them apart."""
    run = _at(builder, dense, _number(field.place))
    return _at(builder, run, builder.mul(index, _number(field.size)))


def _mask(places: list[int]) -> Any:
    return ir.Constant(ir.VectorType(_I32, len(places)), places)


def _number(value: int) -> Any:
    return ir.Constant(_I64, value)


def _at(builder: Any, base: Any, offset: Any) -> Any:
    return builder.gep(base, [offset], inbounds=True)
