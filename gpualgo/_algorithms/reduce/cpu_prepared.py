"""Reductions on the CPU that are prepared once for arrays of known layouts."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from gpualgo._algorithms.reduce import cpu_again, cpu_numpy
from gpualgo._algorithms.reduce import cpu_parameters as rk
from gpualgo._algorithms.reduce.cpu import (
    Array,
    Dtype,
    Pass,
    between,
    computed_by,
    kernel,
    num_parts,
    pass_of,
)
from gpualgo._algorithms.reduce.cpu_layout import Layout, inner_axes, layout_of
from gpualgo._base import records, threads
from gpualgo._base.memo import Memo
from gpualgo._base.records import Element
from gpualgo._cpu.address import address
from gpualgo._cpu.direct import folder
from gpualgo._cpu.interleaved import MOST_OFFSETS, may_be, offsets_of
from gpualgo._cpu.kernels import Kernel, check
from gpualgo._cpu.launch import Launch, Steps
from gpualgo._cpu.memory import FREE, MEMORY_BYTES, lent
from gpualgo._operators.operator import Operator
from gpualgo._pipeline.run import HAS_RANGES

if TYPE_CHECKING:
    from gpualgo._cpu.image import Loaded
    from gpualgo._pipeline.problem import Prepared

_Plan: TypeAlias = tuple[list[tuple[Launch, int]], Steps | None]


def prepared(
    leaves: Sequence[Array], outs: Sequence[Array], op: Operator, axes: tuple[int, ...],
    source: Element, acc: Dtype,
) -> Prepared | None:  # fmt: skip
    """Return a call of `reduce` for arrays of these layouts; None if it needs more than passes."""
    fold = cpu_numpy.fold_of(op, leaves[0], axes, source, acc)
    if fold is None:
        return _prepared(leaves, outs, op, axes, source, acc)
    kernel_run: list[Prepared | None] = []  # built on the first call with init

    def run(arrays: Sequence[Array], outs: Sequence[Array], init: int) -> None:
        if not init:
            cpu_numpy.folded(fold, arrays[0], outs[0])
            return
        if not kernel_run:
            scalars = [out.reshape(()) for out in outs]  # without kept axes
            kernel_run.append(_prepared(arrays, scalars, op, axes, source, acc))
        assert kernel_run[0] is not None  # because op commutes
        kernel_run[0](arrays, outs, init)

    return run


def _prepared(
    leaves: Sequence[Array], outs: Sequence[Array], op: Operator, axes: tuple[int, ...],
    source: Element, acc: Dtype,
) -> Prepared | None:  # fmt: skip
    shape, strides = leaves[0].shape, tuple([array.strides for array in leaves])
    if not op.commutative and inner_axes(shape, strides, source, axes):
        return None
    out_strides = tuple([out.strides for out in outs])
    shifts, layout = layout_of(shape, strides, out_strides, axes, op.commutative, source)
    numbers, size = records.leaves(source), leaves[0].size
    is_row = bool(axes) and source is acc and strides == ((acc.itemsize,),)
    if op.is_known and is_row and not records.is_record(acc):
        fold = _fold_of(op, acc)
        if fold is not None and op.name == "add" and not HAS_RANGES:
            cpu_again.add(acc, fold)
        if fold is not None and size < cpu_again.MOST_ELEMENTS:
            row = fold
            return lambda arrays, outs, init: check(row(arrays[0], outs[0], init))
    if len(shifts) == len(outs) == 1 and num_parts(layout, acc) <= 1:
        shift, last = shifts[0], _launches(layout, op, acc)[0][0][0]
        if not shift:
            return lambda arrays, outs, init: last((init, arrays[0], outs[0]))
        return lambda arrays, outs, init: last((init, address(arrays[0]) + shift, address(outs[0])))
    separate = _launches(layout, op, acc)
    plans: Memo[_Plan] = Memo(MOST_OFFSETS)  # passes of arrays with interleaved fields
    is_close = may_be(strides, numbers, size)

    def run(arrays: Sequence[Array], outs: Sequence[Array], init: int) -> None:
        inputs = [address(x) + shift for x, shift in zip(arrays, shifts, strict=True)]
        offsets = offsets_of(inputs, strides, numbers, size) if is_close else None
        plan = separate if offsets is None else plans.get(offsets)
        if plan is None:
            plan = plans.add(offsets, _launches(layout._replace(offsets=offsets), op, acc))
        passes, steps = plan
        out_ptrs = [address(out) for out in outs]
        if steps is not None and steps.is_alone:
            steps(init, inputs, out_ptrs)
            return
        partials = []  # keeps buffers alive until they are read
        for launch, count in passes[:-1]:
            buffers = [np.empty(count, number) for number in records.leaves(acc)]
            partials.append(buffers)
            partial_ptrs = [address(partial) for partial in buffers]
            launch((0, *inputs, *partial_ptrs))
            inputs = partial_ptrs
        passes[-1][0]((init, *inputs, *out_ptrs))

    steps = separate[1]
    if steps is None or len(shifts) > 1 or len(outs) > 1:
        return run
    steps_of_one, shift = steps, shifts[0]

    def run_one(arrays: Sequence[Array], outs: Sequence[Array], init: int) -> None:
        if steps_of_one.is_alone:
            steps_of_one(init, (address(arrays[0]) + shift,), (address(outs[0]),))
        else:
            run(arrays, outs, init)

    return run_one


def _fold_of(op: Operator, acc: Dtype) -> cpu_again.Fold | None:
    """Return the fold of any short contiguous row, in the order of `reduce`."""
    tile = rk.tile_of(acc)
    layout = Layout(acc, (), ((tile + 1, acc.itemsize),), column=False)
    first_pass, code = pass_of(layout, between(layout, 2, acc), acc), kernel(op, acc, layout)
    room = -(-first_pass.num_bytes // 64) * 64
    if room + cpu_again.MOST_TILES * acc.itemsize > MEMORY_BYTES:
        return None
    indices = range(len(first_pass.words))
    slots = rk.INIT, rk.LENGTH, rk.TILES, indices[first_pass.starts][0], indices[first_pass.outs][0]
    fold = folder(code, first_pass.words, slots, tile, cpu_again.MOST_TILES, room)
    if fold is None:
        return None

    def fold_row(row: Array, out: Array, init: int) -> int:
        try:
            memory = FREE.pop()
        except IndexError:
            memory = lent(0)
        status = fold(memory.address, out, row, init)
        FREE.append(memory)
        return status

    return fold_row


def _launches(layout: Layout, op: Operator, acc: Dtype) -> _Plan:
    """Return the passes with their numbers of partials (0 for the last), and all as one call."""
    passes: list[tuple[Launch, int]] = []
    code = computed_by(op, layout, acc)
    while (parts := num_parts(layout, acc)) > 1:
        after = between(layout, parts, acc)
        launch = _launch(kernel(op, acc, layout), pass_of(layout, after, acc), code)
        passes.append((launch, prod(dim[0] for dim in layout.kept) * parts))
        layout, code = after, None
    passes.append((_launch(kernel(op, acc, layout), pass_of(layout, None, acc), code), 0))
    if len(passes) == 1 or passes[0][0].work >= threads.LARGE_BYTES:
        return passes, None
    sizes = [[count * number.itemsize for number in records.leaves(acc)] for _, count in passes]
    return passes, Steps([launch for launch, _ in passes], sizes[:-1])


def _launch(kernel: Kernel, pass_: Pass, code: Loaded | None) -> Launch:
    """Return the launch of a pass; its arguments are init, input and output addresses.

    `code` computes the elements, if they are computed.
    """
    words, indices = pass_.words, range(len(pass_.words))
    if code is not None:
        words = words.copy()
        words[rk.COMPUTE] = code.address
    slots = (rk.INIT, *indices[pass_.starts][: pass_.reads], *indices[pass_.outs][: pass_.writes])
    return Launch(kernel, words, slots, pass_.num_bytes, pass_.num_tasks, pass_.work, code)
