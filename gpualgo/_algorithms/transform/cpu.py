"""Elementwise transform on CPU cores: one kernel for each operator, whatever the layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpualgo._algorithms.transform.problem import (
    CHUNK,
    DENSE,
    HEAD,
    RECORD,
    ROWS,
    Transformation,
)
from gpualgo._base import records
from gpualgo._cpu.kernels import Applied, get_kernel, named
from gpualgo._cpu.launch import Launch
from gpualgo._cpu.layout import (
    Dims,
    counter,
    is_dense,
    merge,
    packer,
    table,
)
from gpualgo._cpu.memory import address, run_captured
from gpualgo._cpu.plan import Plan, compiled
from gpualgo._operators.operator import Operator
from gpualgo._operators.tokens import same
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
        run_captured(applied.op, plan_of(applied, arrays, outs).run, arrays, outs, 0)


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
        if arrays[0].size:
            outs = [np.empty(shape, field) for field in fields]
            compute = plan_of(elements_of(source, op, element), arrays, outs).run

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
    return plan_of(Applied(op, (records.argument_of(acc),) * 2, acc), arrays, outs)


def elements_of(source: records.Source, op: Operator, element: Any) -> Applied:
    """Return what converts source's elements to a dtype, or computes them by op's source."""
    if isinstance(source, records.Computed):
        return Applied(op.source, tuple(map(records.operand_dtype, source.numbers)), element)
    return Applied(Operator(same), (records.argument_of(source),), element)


def plan_of(applied: Applied, arrays: Sequence[Array], outs: Sequence[Array]) -> Plan:
    """Return the plan of outs[..][i] = op(arrays[0][i], arrays[1][i], ...) for every index i.

    `outs` has an array for each number of op's result, all of one shape, which is not empty. The
    arrays have that shape and any strides (zero where broadcast). Each has the memory and strides
    of an out or overlaps none. The plan reads and writes each element once.
    """
    operands = [*outs, *arrays]
    starts, dims = _canonical(operands)
    shifts = [start - address(array) for start, array in zip(starts, operands, strict=True)]
    launch = _launch(applied, operands, starts, dims, len(outs))
    routine = compiled("transform", outs[0].size, CHUNK, launch.work)
    if not any(shifts):
        return launch.plan(routine)
    shifts = [*shifts[len(outs) :], *shifts[: len(outs)]]

    def run_shifted(arrays: Sequence[Array], outs: Sequence[Array], _: int) -> None:
        pairs = zip((*arrays, *outs), shifts, strict=True)
        launch([0, *[address(array) + shift for array, shift in pairs]])

    return Plan(run_shifted, [routine])


def _launch(
    applied: Applied, operands: Sequence[Array], starts: Sequence[int], dims: Dims, count: int
) -> Launch:  # fmt: skip
    """Return the launch for operands of these dimensions that start at `starts`.

    Its words are one that is not read, and the addresses of the inputs, then of the results.
    """
    out = operands[0]
    modes = [_mode(dims, i, array.dtype, array.size) for i, array in enumerate(operands)]
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
    inputs = records.slots(applied.arguments)
    code = named("transform", "transform_kernel", applied.result_dtype, inputs, slots)
    return Launch(
        get_kernel(*code, applied), arguments,
        [len(arguments) - 1]
        + [HEAD + RECORD * k for k in (*range(count, len(operands)), *range(count))],
        num_bytes, -(-out.size // CHUNK), out.size * sum(array.itemsize for array in operands),
    )  # fmt: skip


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


def _mode(dims: Dims, operand: int, dtype: np.dtype[Any], size: int) -> int:
    if records.is_position(dtype):
        return counter()
    itemsize = dtype.itemsize
    if is_dense(dims, operand, itemsize):
        return DENSE
    step = dims[-1][1 + operand]
    if step == itemsize and dims[-1][0] >= _LONG_ROW:
        return ROWS
    return packer(itemsize, step, size)
