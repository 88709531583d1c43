"""Reduction of large pageable arrays on a GPU, by blocks: they may exceed its memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._algorithms.reduce import cuda
from gpualgo._algorithms.transform import cuda as elementwise
from gpualgo._algorithms.transform.policy import Applied
from gpualgo._arrays.view import dense_view
from gpualgo._base.extents import dense_strides
from gpualgo._cuda.plan import Plan
from gpualgo._driver import driver, staging
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import host_whole
from gpualgo._pipeline.problem import NO_START

if TYPE_CHECKING:
    from gpualgo._algorithms.reduce.problem import Reduction

Array = np.ndarray[Any, Any]

BLOCK_BYTES = 256 << 20  # what is smaller goes to the GPU as a whole


def reduce(
    problem: Reduction, x: Array, out: Array, op: Operator, init: Array | None, stream: Any
) -> None:
    """Reduce a pageable array of at least one element into out, which has at least one."""
    handle = host_whole.handle_on(problem.device, stream, x, "reduce")
    if stream is not None:
        host_whole.before_host(handle, host_whole.pageable(True, "reduce"))
    axes = problem.axes
    if len(axes) == x.ndim and x.flags.c_contiguous:
        x, axes = x.reshape(-1), (0,)
    elif not x.flags.aligned:
        x = x.copy()
    flat = np.empty(problem.shape, problem.acc)
    blocks = list(staging.pieces(x.shape, x.dtype.itemsize, BLOCK_BYTES))
    _Reduction(problem, op, handle).run(x, axes, blocks, init, flat)
    out[...] = flat.reshape(out.shape)


class _Reduction:
    """Blocks in C order: a block's result starts its outputs, or is appended to them."""

    def __init__(self, problem: Reduction, op: Operator, stream: int) -> None:
        self.acc, self.device, self.op, self.stream = problem.acc, problem.device, op, stream
        self.plans: dict[Any, Plan] = {}

    def run(
        self, x: Array, axes: tuple[int, ...], blocks: list[Any], init: Array | None, out: Array
    ) -> None:
        size = self.acc.itemsize
        block_bytes = max(x[(*index, ...)].nbytes for index in blocks)
        sizes = [block_bytes, out.nbytes, min(out.nbytes, block_bytes * size)]
        started: set[int] = set()
        start = NO_START if init is None else (init.tobytes(), 1, 0, 0)
        buffers = staging.device_buffers(self.device, self.stream, sizes)
        with buffers as (source, total, piece):
            for index in blocks:
                block = x[(*index, ...)]
                staging.upload(block, source, self.device, self.stream)  # after what reads the last
                offset, shape, inner = _outputs_of(x.shape, axes, index)
                target = total + offset * size
                plan = self._plan(block.shape, x.dtype, inner)
                if offset not in started:
                    started.add(offset)
                    plan.queue(self.stream, (*start, self.op.words, source, target))
                else:
                    plan.queue(self.stream, (*NO_START, self.op.words, source, piece))
                    self._join(target, piece, shape)
            staging.download(total, out, self.device, self.stream)
            driver.synchronize(self.stream)

    def _join(self, target: int, piece: int, shape: tuple[int, ...]) -> None:
        """Put a block's results behind what its outputs hold already."""
        views = [dense_view(pointer, shape, self.acc, self.device) for pointer in (target, piece)]
        applied = Applied(self.op, (self.acc, self.acc), self.acc)
        join = elementwise.plan_of(applied, views, shape, views[:1])
        join.queue(self.stream, (*NO_START, self.op.words, target, piece, target))

    def _plan(self, shape: tuple[int, ...], dtype: np.dtype[Any], axes: tuple[int, ...]) -> Plan:
        key = (shape, axes)
        if key not in self.plans:
            kept = tuple(n for i, n in enumerate(shape) if i not in axes)
            strides = dense_strides(kept, self.acc.itemsize)
            view = dense_view(0, shape, dtype, self.device)
            self.plans[key] = cuda.plan_of([view], self.op, axes, dtype, self.acc, [strides])
        return self.plans[key]


def _outputs_of(
    shape: Sequence[int], axes: tuple[int, ...], index: tuple[int | slice, ...]
) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Return the first output of a block, its outputs' shape, and the axes it reduces itself."""
    position = 0
    kept: list[int] = []
    for axis, extent in enumerate(shape):
        item = index[axis] if axis < len(index) else slice(0, extent)
        start, length = (item, 1) if isinstance(item, int) else (item.start, item.stop - item.start)
        if axis in axes:
            continue
        position = position * extent + start
        if not isinstance(item, int):
            kept.append(length)
    dropped = sum(isinstance(item, int) for item in index)
    inner = tuple(axis - dropped for axis in axes if axis >= dropped)
    return position, tuple(kept), inner
