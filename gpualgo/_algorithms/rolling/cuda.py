"""Rolling windows on a GPU: scans and transformations, one after the other."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from gpualgo._algorithms.rolling.problem import Rolling, Step, argument_of
from gpualgo._algorithms.scan import cuda as scans
from gpualgo._algorithms.transform import cuda as elementwise
from gpualgo._arrays.view import Interface, View, dense_view
from gpualgo._base import records
from gpualgo._cuda.plan import KEPT, ArgMap, Piece, Plan, arg_map
from gpualgo._cuda.templates import Applied
from gpualgo._driver.device import KEPT_BYTES, aligned
from gpualgo._operators.operator import Operator, mirrored, without_source
from gpualgo._operators.tokens import same
from gpualgo._pipeline import planners

_APART = 1 << 48  # bytes between the made-up addresses of two arrays


@planners.for_cuda.register(Rolling)
def _(problem: Rolling, views: Sequence[View], op: Operator, targets: Sequence[View]) -> Plan:
    acc, source, device = problem.acc, problem.source, targets[0].device
    buffers = [dense_view(0, problem.buffer_shape, leaf, device) for leaf in problem.buffers]
    count, at = len(targets), arg_map(len(views), len(targets))
    slots = [*at.sources, *at.targets, *map(at.piece, range(len(buffers)))]
    first, second, scratch = slots[-2 * count : -count], slots[-count:], at.piece(2 * count)
    known = [*views, *targets, *buffers]
    # NumPy slices arrays that are never read; a slice's address tells of which array, and where.
    arrays = [
        np.asarray(Interface(i * _APART, x.shape, x.strides, f"|V{x.dtype.itemsize}"))
        for i, x in enumerate(known, 1)
    ]

    def placed(arrays: Sequence[np.ndarray[Any, Any]]) -> tuple[list[View], list[Any]]:
        """Return the views of slices, and their argument slots and byte offsets."""
        places = [divmod(array.ctypes.data, _APART) for array in arrays]
        found = [
            known[i - 1]._replace(ptr=known[i - 1].ptr + offset, shape=x.shape, strides=x.strides)
            for x, (i, offset) in zip(arrays, places, strict=True)
        ]
        return found, [(slots[i - 1], offset) for i, offset in places]

    copied = Applied(Operator(same), (argument_of(acc),), acc)
    if isinstance(source, records.Computed):
        numbers = tuple(map(records.operand_dtype, source.numbers))
        elements = Applied(op.source, numbers, acc, source.numbers)
    else:
        elements = Applied(Operator(same), (argument_of(source),), acc)
    op = without_source(op)

    def transform(applied: Applied, step: Step) -> Plan:
        (inputs, in_slots), (outs, out_slots) = placed(step.inputs), placed(step.outs)
        return elementwise.plan_of(
            applied, inputs, outs[0].shape, outs, ArgMap(in_slots, out_slots)
        )

    def scan(op: Operator, is_reverse: bool, at: ArgMap, step: Step) -> Plan:
        blocks = copy.copy(problem)
        blocks.source, blocks.axis, blocks.is_reverse = acc, len(problem.buffer_shape), is_reverse
        inputs, outs = placed(step.inputs)[0], placed(step.outs)[0]
        return scans.plan_of(blocks, inputs, op, outs, at=at)

    # In the order of the kinds of steps.
    plans_of = (
        partial(transform, elements),
        partial(transform, copied),
        partial(scan, mirrored(op), True, ArgMap(first, second, scratch)),
        partial(scan, op, False, ArgMap(first, first, scratch)),
        partial(transform, Applied(op, (argument_of(acc), argument_of(acc)), acc)),
    )
    end = len(views) + count
    steps = problem.steps(arrays[: len(views)], arrays[len(views) : end], arrays[end:])
    plans = [plans_of[step.kind](step) for step in steps]
    sizes = [aligned(math.prod(x.shape) * x.dtype.itemsize) for x in buffers]
    *starts, end = accumulate(sizes, initial=KEPT)
    is_kept = end - KEPT <= KEPT_BYTES  # in the stream's workspace
    pieces = [
        Piece(size, start if is_kept else None) for size, start in zip(sizes, starts, strict=True)
    ]
    # Both scans clear the same states, one after the other.
    states = max((plan.pieces for plan in plans), key=lambda these: [x.num_bytes for x in these])
    return Plan(device, [step for plan in plans for step in plan.steps], [*pieces, *states])


@planners.for_blocks.register(Rolling)
def _(problem: Rolling, call: planners.HostCall) -> bool:
    return False  # windows cross blocks
