"""Elementwise transform on the CPU's cores: one kernel for each operator, whatever the layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._algorithms.transform.cpu_parameters import CHUNK, DENSE, HEAD, RECORD, ROWS, TAKEN
from gpualgo._base import records
from gpualgo._base.memo import Memo
from gpualgo._cpu.captured import bound
from gpualgo._cpu.interleaved import (
    MOST_OFFSETS,
    Offsets,
    groups_of,
    joiner,
    may_be,
    offsets_of,
    splitter,
)
from gpualgo._cpu.kernels import Kernel, get_kernel
from gpualgo._cpu.launch import Launch
from gpualgo._cpu.layout import Dims, address, counter, is_dense, merge, packer, table
from gpualgo._cpu.operator import Applied
from gpualgo._pipeline.routines import Routine, compiled

if TYPE_CHECKING:
    from gpualgo._operators.operator import Operator
    from gpualgo._pipeline.problem import Prepared

_LONG_ROW = 256  # elements of an innermost row from which it is read where it lies

Array = np.ndarray[Any, Any]


def transform(applied: Applied, arrays: Sequence[Array], outs: Sequence[Array]) -> None:
    """Write outs[..][i] = op(arrays[0][i], arrays[1][i], ...) for every index i.

    There is an out for each number of op's result, all of one shape. The arrays have that shape,
    any strides (zero where they were broadcast), and either an out's own memory and strides or none
    of its memory. Reads and writes each element once.
    """
    if outs[0].size == 0:
        return
    with bound(applied.op):
        _transform(applied, arrays, outs)


def routine(items: int, work: int) -> Routine:
    """Return what `transform` would run."""
    return compiled("transform", items, CHUNK, work)


def gapless(
    source: records.Source, kinds: Sequence[np.dtype[Any]], arrays: Sequence[Array], op: Operator
) -> list[Array]:
    """Return arrays of one dimension without gaps, of these dtypes; what is computed is so here."""
    if isinstance(source, records.Computed):
        element = records.held(source)
        made = [np.empty(arrays[0].shape, leaf) for leaf in records.leaves(element)]
        transform(Applied(op.source, tuple(map(records.number_of, source.numbers)), element),
                  arrays, made)  # fmt: skip
        arrays = made
    with np.errstate(all="ignore"):  # kernels warn of nothing
        return [np.ascontiguousarray(x, kind) for x, kind in zip(arrays, kinds, strict=True)]


def _transform(applied: Applied, arrays: Sequence[Array], outs: Sequence[Array]) -> None:
    operands = [*outs, *arrays]
    starts, dims = _canonical(operands)
    offsets = _offsets(operands, starts, _strides(dims), len(outs))
    _launch(applied, operands, starts, dims, len(outs), offsets)(starts)


def prepared(applied: Applied, arrays: Sequence[Array], outs: Sequence[Array]) -> Prepared:
    """Return what `transform` does for arrays of these layouts, and outs in memory of their own."""
    operands = [*outs, *arrays]
    starts, dims = _canonical(operands)
    shifts = [at - address(array) for at, array in zip(starts, operands, strict=True)]
    apart = _launch(applied, operands, starts, dims, len(outs), None)
    strides = _strides(dims)
    if may_be(strides, [array.dtype for array in operands], outs[0].size):
        known: Memo[Launch] = Memo(MOST_OFFSETS)  # of operands that lie in turn

        def run(arrays: Sequence[Array], outs: Sequence[Array], _: int) -> None:
            operands = [*outs, *arrays]
            starts = [address(array) + by for array, by in zip(operands, shifts, strict=True)]
            offsets = _offsets(operands, starts, strides, len(outs))
            found = apart if offsets is None else known.get(offsets)
            if found is None:
                found = _launch(applied, operands, starts, dims, len(outs), offsets)
                known.add(offsets, found)
            found(starts)

        return run
    if not any(shifts):
        return lambda arrays, outs, _: apart([address(array) for array in (*outs, *arrays)])
    return lambda arrays, outs, _: apart(
        [address(array) + by for array, by in zip((*outs, *arrays), shifts, strict=True)]
    )


def _launch(
    applied: Applied, operands: Sequence[Array], starts: Sequence[int], dims: Dims, count: int,
    offsets: Offsets | None,
) -> Launch:  # fmt: skip
    """Return the launch for operands of these dimensions, by where each of them starts."""
    out = operands[0]
    modes = [_mode(dims, i, array.dtype) for i, array in enumerate(operands)]
    if offsets is not None:
        _take_together(modes, offsets, operands, dims, count)
    places = list(zip(starts, modes, strict=True))
    # Where each array lies: in the place of an out that is written where it lies, or by itself.
    slots = tuple(
        places[:count].index(place) if place in places[:count] and place[1] <= ROWS else k
        for k, place in enumerate(places[count:], count)
    )
    step = CHUNK if max(modes) > ROWS else out.size
    row = dims[-1][0] if ROWS in modes else out.size
    placed = [(0, array.itemsize, mode) for array, mode in zip(operands, modes, strict=True)]
    lengths = [dim[0] for dim in dims]
    strides = [[dim[1 + i] for dim in dims] for i in range(len(operands))]
    arguments = table((out.size, step, row, len(dims)), *placed, lengths, *strides)
    num_bytes = len(operands) * (64 + CHUNK * max(array.itemsize for array in operands))
    return Launch(
        _kernel(applied, slots), arguments, [HEAD + RECORD * k for k in range(len(operands))],
        num_bytes, -(-out.size // CHUNK), out.size * sum(array.itemsize for array in operands),
    )  # fmt: skip


def _take_together(
    modes: list[int], offsets: Offsets, operands: Sequence[Array], dims: Dims, count: int
) -> None:
    """Change the modes of operands that lie in turn: the first of a group goes for all of it."""
    dtypes = [array.dtype for array in operands]
    room = CHUNK * max(dtype.itemsize for dtype in dtypes)
    places = [room * k for k in range(len(operands))]
    for group in groups_of(offsets, dims[-1][1:], dtypes, places):
        first = group.members[0]
        if min(modes[k] for k in group.members) > ROWS and (first >= count or group.is_all):
            for k in group.members:
                modes[k] = TAKEN
            modes[first] = splitter(group) if first >= count else joiner(group)


def _strides(dims: Dims) -> list[tuple[int, ...]]:
    """Return the strides of each operand."""
    return list(zip(*[dim[1:] for dim in dims], strict=True))


def _offsets(
    operands: Sequence[Array], starts: Sequence[int], strides: Sequence[tuple[int, ...]], count: int
) -> Offsets | None:
    """Return which of the first `count` operands lie in turn, and which of the others."""
    if not strides:
        return None
    dtypes, size = [array.dtype for array in operands], operands[0].size
    outs = offsets_of(starts[:count], strides[:count], dtypes[:count], size)
    read = offsets_of(starts[count:], strides[count:], dtypes[count:], size)
    if outs is None and read is None:
        return None
    moved = [
        pair and (pair[0] + count, pair[1]) for pair in read or (None,) * len(operands[count:])
    ]
    return *(outs or (None,) * count), *moved


def _canonical(operands: Sequence[np.ndarray[Any, Any]]) -> tuple[list[int], Dims]:
    """Return addresses and dimensions in the order in which out lies in memory."""
    starts = [address(array) for array in operands]
    dims: list[tuple[int, ...]] = []
    for length, *strides in zip(
        operands[0].shape, *(array.strides for array in operands), strict=True
    ):
        if strides[0] < 0:
            starts = [at + (length - 1) * by for at, by in zip(starts, strides, strict=True)]
            strides = [-by for by in strides]
        dims.append((length, *strides))
    return starts, merge(sorted(dims, key=lambda dim: [-abs(by) for by in dim[1:]]))


def _mode(dims: Dims, which: int, dtype: np.dtype[Any]) -> int:
    if records.is_position(dtype):
        return counter()
    itemsize = dtype.itemsize
    if is_dense(dims, which, itemsize):
        return DENSE
    if dims[-1][1 + which] == itemsize and dims[-1][0] >= _LONG_ROW:
        return ROWS
    return packer(itemsize)


def _kernel(applied: Applied, slots: tuple[int, ...]) -> Kernel:
    result, inputs = applied.result_dtype, records.slots(applied.arguments)
    assert result is not None
    outputs = records.leaves(result)

    def write(fn: Any) -> Callable[..., None]:
        from gpualgo._algorithms.transform.cpu_kernels import transform_kernel
        from gpualgo._cpu.elements import storage
        from gpualgo._cpu.leaves import leaves_of
        from gpualgo._cpu.pointers import pointers_to

        # LLVM vectorises a loop in place where it sees that the two pointers are one.
        sources = pointers_to(tuple(map(storage, inputs)), slots)
        sizes = [dtype.itemsize for dtype in (*outputs, *inputs)]
        return transform_kernel(fn, leaves_of(result), sources, sizes)

    return get_kernel(("transform", *outputs, *inputs, slots), write, applied)
