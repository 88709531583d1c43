"""Reduction of large pageable arrays on a GPU in blocks, so that they may exceed its memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpualgo._algorithms.reduce import cuda
from gpualgo._algorithms.reduce.problem import Reduction
from gpualgo._algorithms.transform import cuda as elementwise
from gpualgo._algorithms.transform.tuning import Applied
from gpualgo._arrays.view import dense_view
from gpualgo._base import records
from gpualgo._base.records import Separate
from gpualgo._base.strides import dense_strides
from gpualgo._cuda.plan import Plan
from gpualgo._driver import driver, staging
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import host_blocks, host_whole, planners
from gpualgo._pipeline.problem import NO_INIT

Array = np.ndarray[Any, Any]

BLOCK_BYTES = 256 << 20  # smaller arrays are copied to the GPU as a whole


@planners.for_blocks.register(Reduction)
def _(problem: Reduction, call: planners.HostCall) -> bool:
    arrays, op = call.arrays, call.op
    fields = records.field_dtypes(problem.source)
    if isinstance(problem.source, records.Computed) or any(map(records.is_position, fields)):
        return False
    if None not in call.places[: len(arrays)] or sum(x.nbytes for x in arrays) <= BLOCK_BYTES:
        return False
    where = problem.where
    handle = host_blocks.begin(problem, arrays[0], call.stream, host_whole.pageable(True, where))
    axes = problem.axes
    if len(axes) == arrays[0].ndim and all(x.flags.c_contiguous for x in arrays):
        arrays, axes = [x.reshape(-1) for x in arrays], (0,)
    arrays = [x if x.flags.aligned else x.copy() for x in arrays]
    flat = [np.empty(problem.shape, leaf) for leaf in records.field_dtypes(problem.acc)]
    size = sum(x.dtype.itemsize for x in arrays)
    blocks = list(staging.pieces(arrays[0].shape, size, BLOCK_BYTES))
    _Reduction(problem, op, handle).run(arrays, axes, blocks, call.init, flat)
    for result, values in zip(call.results, flat, strict=True):
        result[...] = values.reshape(result.shape)
    return True


class _Reduction:
    """Runs blocks in C order; a block's results start its outputs or are combined with them."""

    def __init__(self, problem: Reduction, op: Operator, stream: int) -> None:
        self.acc, self.device, self.op, self.stream = problem.acc, problem.device, op, stream
        self.source, self.leaves = problem.source, records.field_dtypes(problem.acc)
        self.plans: dict[Any, Plan] = {}

    def run(
        self, arrays: list[Array], axes: tuple[int, ...], blocks: list[Any], init: Array | None,
        outs: list[Array],
    ) -> None:  # fmt: skip
        items = max(arrays[0][(*index, ...)].size for index in blocks)
        num_outputs = outs[0].size
        sizes = [
            *(items * x.dtype.itemsize for x in arrays),
            *(out.nbytes for out in outs),
            *(min(num_outputs, items) * leaf.itemsize for leaf in self.leaves),
        ]
        started: set[int] = set()
        start = NO_INIT if init is None else (init.tobytes(), 1, 0, 0)
        buffers = staging.device_buffers(self.device, self.stream, sizes)
        with buffers as memory, host_blocks.sync_on_error(self.stream):
            sources, out_buffers = memory[: len(arrays)], memory[len(arrays) :]
            totals, block_results = out_buffers[: len(outs)], out_buffers[len(outs) :]
            for index in blocks:
                # on the stream, after the previous block's reduction
                for x, source in zip(arrays, sources, strict=True):
                    staging.upload(x[(*index, ...)], source, self.device, self.stream)
                offset, shape, inner = _outputs_of(arrays[0].shape, axes, index)
                targets = [
                    total + offset * leaf.itemsize
                    for total, leaf in zip(totals, self.leaves, strict=True)
                ]
                plan = self._plan(arrays[0][(*index, ...)].shape, inner)
                if offset not in started:
                    started.add(offset)
                    plan.queue(self.stream, (*start, self.op.words, *sources, *targets))
                else:
                    plan.queue(self.stream, (*NO_INIT, self.op.words, *sources, *block_results))
                    self._join(targets, block_results, shape)
            for total, out in zip(totals, outs, strict=True):
                staging.download(total, out, self.device, self.stream)
            driver.synchronize(self.stream)

    def _join(self, targets: list[int], parts: list[int], shape: tuple[int, ...]) -> None:
        """Combine outputs with a block's results: targets = op(targets, parts)."""
        acc = Separate(self.acc) if records.is_record(self.acc) else self.acc
        views = [
            dense_view(pointer, shape, leaf, self.device)
            for side in (targets, parts)
            for pointer, leaf in zip(side, self.leaves, strict=True)
        ]
        applied = Applied(self.op, (acc, acc), self.acc)
        join = elementwise.plan_of(applied, views, shape, views[: len(targets)])
        join.queue(self.stream, (*NO_INIT, self.op.words, *targets, *parts, *targets))

    def _plan(self, shape: tuple[int, ...], axes: tuple[int, ...]) -> Plan:
        key = (shape, axes)
        if key not in self.plans:
            kept_shape = tuple(n for i, n in enumerate(shape) if i not in axes)
            strides = [dense_strides(kept_shape, leaf.itemsize) for leaf in self.leaves]
            views = host_blocks.placeholder_views(
                records.field_dtypes(self.source), shape, self.device
            )
            self.plans[key] = cuda.plan_of(views, self.op, axes, self.source, self.acc, strides)
        return self.plans[key]


def _outputs_of(
    shape: Sequence[int], axes: tuple[int, ...], index: tuple[int | slice, ...]
) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Return a block's first output, the shape of its outputs, and the axes it reduces."""
    output = 0
    kept_shape: list[int] = []
    for axis, extent in enumerate(shape):
        item = index[axis] if axis < len(index) else slice(0, extent)
        start, length = (item, 1) if isinstance(item, int) else (item.start, item.stop - item.start)
        if axis in axes:
            continue
        output = output * extent + start
        if not isinstance(item, int):
            kept_shape.append(length)
    dropped = sum(isinstance(item, int) for item in index)
    inner = tuple(axis - dropped for axis in axes if axis >= dropped)
    return output, tuple(kept_shape), inner
