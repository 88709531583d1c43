"""Elementwise transform on CPU cores: one kernel for each operator, whatever the layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpualgo._algorithms.transform.problem import (
    CHUNK,
    DENSE,
    GROUP_MEMBER,
    HEAD,
    RECORD,
    ROWS,
    Transformation,
)
from gpualgo._base import records
from gpualgo._base.memo import Memo
from gpualgo._cpu.kernels import Applied, Kernel, get_kernel, named
from gpualgo._cpu.launch import Launch
from gpualgo._cpu.layout import (
    MOST_OFFSETS,
    Dims,
    Offsets,
    counter,
    groups_of,
    is_dense,
    joiner,
    may_be_interleaved,
    merge,
    offsets_of,
    packer,
    splitter,
    table,
)
from gpualgo._cpu.memory import address, captures_bound
from gpualgo._cpu.plan import Plan, compiled
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import planners

_LONG_ROW = 256  # innermost rows of at least this many elements are read in place

Array = np.ndarray[Any, Any]


@planners.for_cpu.register(Transformation)
def _(
    problem: Transformation, arrays: Sequence[Array], results: Sequence[Array], op: Operator
) -> Plan:
    broadcast = [np.broadcast_to(array, problem.shape) for array in arrays]
    return plan_of(Applied(op, problem.arguments, problem.result), broadcast, results)


def transform(applied: Applied, arrays: Sequence[Array], outs: Sequence[Array]) -> None:
    if outs[0].size:
        plan = plan_of(applied, arrays, outs)
        with captures_bound(applied.op):
            plan.run(arrays, outs, 0)


def gapless(
    source: records.Source, kinds: Sequence[np.dtype[Any]], arrays: Sequence[Array], op: Operator
) -> Callable[[Sequence[Array]], list[Array]]:
    """Return f(arrays): source's elements as contiguous 1-d arrays of these dtypes.

    They are computed if needed. f takes arrays of the layouts of these ones, all of one shape.
    """
    compute, shape = None, arrays[0].shape
    if isinstance(source, records.Computed):
        element = records.register_dtype(source)
        fields = records.field_dtypes(element)
        applied = Applied(op.source, tuple(map(records.operand_dtype, source.numbers)), element)
        if arrays[0].size:
            compute = plan_of(applied, arrays, [np.empty(shape, field) for field in fields]).run

    def elements(arrays: Sequence[Array]) -> list[Array]:
        if isinstance(source, records.Computed):
            computed = [np.empty(shape, field) for field in fields]
            if compute is not None:
                compute(arrays, computed, 0)
            arrays = computed
        with np.errstate(all="ignore"):  # kernels do not warn
            pairs = zip(arrays, kinds, strict=True)
            return [np.ascontiguousarray(x, kind).reshape(-1) for x, kind in pairs]

    return elements


def combine(op: Operator, acc: Any, arrays: Sequence[Array], outs: Sequence[Array]) -> Plan:
    """Return the plan of outs = op(a, b); `arrays` are the fields of a, then those of b."""
    argument = records.Separate(acc) if records.is_record(acc) else acc
    return plan_of(Applied(op, (argument, argument), acc), arrays, outs)


def plan_of(applied: Applied, arrays: Sequence[Array], outs: Sequence[Array]) -> Plan:
    """Return the plan of outs[..][i] = op(arrays[0][i], arrays[1][i], ...) for every index i.

    `outs` has an array for each number of op's result, all of one shape, which is not empty. The
    arrays have that shape and any strides (zero where broadcast). Each has the memory and strides
    of an out or overlaps none. The plan reads and writes each element once.
    """
    operands = [*outs, *arrays]
    starts, dims = _canonical(operands)
    shifts = [start - address(array) for start, array in zip(starts, operands, strict=True)]
    launch = _launch(applied, operands, starts, dims, len(outs), None)
    strides, routine = _strides(dims), compiled("transform", outs[0].size, CHUNK, launch.work)
    if may_be_interleaved(strides, [array.dtype for array in operands], outs[0].size):
        interleaved: Memo[Launch] = Memo(MOST_OFFSETS)  # launches for interleaved operands

        def run(arrays: Sequence[Array], outs: Sequence[Array], _: int) -> None:
            operands = [*outs, *arrays]
            starts = [address(array) + shift for array, shift in zip(operands, shifts, strict=True)]
            offsets = _offsets(operands, starts, strides, len(outs))
            chosen = launch if offsets is None else interleaved.get(offsets)
            if chosen is None:
                chosen = _launch(applied, operands, starts, dims, len(outs), offsets)
                interleaved.add(offsets, chosen)
            chosen([0, *starts[len(outs) :], *starts[: len(outs)]])

        return Plan(run, [routine])
    if not any(shifts):
        return launch.plan(routine)
    shifts = [*shifts[len(outs) :], *shifts[: len(outs)]]

    def run_shifted(arrays: Sequence[Array], outs: Sequence[Array], _: int) -> None:
        pairs = zip((*arrays, *outs), shifts, strict=True)
        launch([0, *[address(array) + shift for array, shift in pairs]])

    return Plan(run_shifted, [routine])


def _launch(
    applied: Applied, operands: Sequence[Array], starts: Sequence[int], dims: Dims, count: int,
    offsets: Offsets | None,
) -> Launch:  # fmt: skip
    """Return the launch for operands of these dimensions that start at `starts`.

    Its words are one that is not read, and the addresses of the inputs, then of the results.
    """
    out = operands[0]
    modes = [_mode(dims, i, array.dtype) for i, array in enumerate(operands)]
    if offsets is not None:
        _set_group_modes(modes, offsets, operands, dims, count)
    keys = list(zip(starts, modes, strict=True))
    # Pointer slot of each array: that of an out it is transformed into in place, or its own.
    slots = tuple(
        keys[:count].index(key) if key in keys[:count] and key[1] <= ROWS else k
        for k, key in enumerate(keys[count:], count)
    )
    step = CHUNK if max(modes) > ROWS else out.size
    row = dims[-1][0] if ROWS in modes else out.size
    entries = [(0, array.itemsize, mode) for array, mode in zip(operands, modes, strict=True)]
    lengths = [dim[0] for dim in dims]
    strides = [[dim[1 + i] for dim in dims] for i in range(len(operands))]
    arguments = table((out.size, step, row, len(dims)), *entries, lengths, *strides, (0,))
    num_bytes = len(operands) * (64 + CHUNK * max(array.itemsize for array in operands))
    return Launch(
        _kernel(applied, slots), arguments,
        [len(arguments) - 1]
        + [HEAD + RECORD * k for k in (*range(count, len(operands)), *range(count))],
        num_bytes, -(-out.size // CHUNK), out.size * sum(array.itemsize for array in operands),
    )  # fmt: skip


def _set_group_modes(
    modes: list[int], offsets: Offsets, operands: Sequence[Array], dims: Dims, count: int
) -> None:
    """Set the modes of interleaved operands: the first of a group handles all of it."""
    dtypes = [array.dtype for array in operands]
    room = CHUNK * max(dtype.itemsize for dtype in dtypes)
    buffers = [room * k for k in range(len(operands))]
    for group in groups_of(offsets, dims[-1][1:], dtypes, buffers):
        first = group.members[0]
        if min(modes[k] for k in group.members) > ROWS and (first >= count or group.is_all):
            for k in group.members:
                modes[k] = GROUP_MEMBER
            modes[first] = splitter(group) if first >= count else joiner(group)


def _strides(dims: Dims) -> list[tuple[int, ...]]:
    return list(zip(*[dim[1:] for dim in dims], strict=True))


def _offsets(
    operands: Sequence[Array], starts: Sequence[int], strides: Sequence[tuple[int, ...]], count: int
) -> Offsets | None:
    """Return how the first `count` operands are interleaved, and how the others are."""
    if not strides:
        return None
    dtypes, size = [array.dtype for array in operands], operands[0].size
    outs = offsets_of(starts[:count], strides[:count], dtypes[:count], size)
    inputs = offsets_of(starts[count:], strides[count:], dtypes[count:], size)
    if outs is None and inputs is None:
        return None
    shifted = [
        pair and (pair[0] + count, pair[1]) for pair in inputs or (None,) * len(operands[count:])
    ]
    return *(outs or (None,) * count), *shifted


def _canonical(operands: Sequence[np.ndarray[Any, Any]]) -> tuple[list[int], Dims]:
    """Return addresses and dimensions, sorted by out's memory order."""
    starts = [address(array) for array in operands]
    dims: list[tuple[int, ...]] = []
    for length, *strides in zip(
        operands[0].shape, *(array.strides for array in operands), strict=True
    ):
        if strides[0] < 0:
            starts = [s + (length - 1) * step for s, step in zip(starts, strides, strict=True)]
            strides = [-step for step in strides]
        dims.append((length, *strides))
    return starts, merge(sorted(dims, key=lambda dim: [-abs(step) for step in dim[1:]]))


def _mode(dims: Dims, operand: int, dtype: np.dtype[Any]) -> int:
    if records.is_position(dtype):
        return counter()
    itemsize = dtype.itemsize
    if is_dense(dims, operand, itemsize):
        return DENSE
    if dims[-1][1 + operand] == itemsize and dims[-1][0] >= _LONG_ROW:
        return ROWS
    return packer(itemsize)


def _kernel(applied: Applied, slots: tuple[int, ...]) -> Kernel:
    result, inputs = applied.result_dtype, records.slots(applied.arguments)
    assert result is not None
    return get_kernel(*named("transform", "transform_kernel", result, inputs, slots), applied)
