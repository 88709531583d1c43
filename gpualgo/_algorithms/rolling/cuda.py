"""Rolling windows on a GPU: one launch for windows that fit into shared memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpualgo._algorithms.rolling.problem import Rolling
from gpualgo._algorithms.scan.cuda import buffer_pieces, of_steps
from gpualgo._algorithms.transform import cuda as elementwise
from gpualgo._arrays.view import View, placeholder, strides_for
from gpualgo._base import records
from gpualgo._base.strides import merge
from gpualgo._cuda.build import Spec
from gpualgo._cuda.headers import cpp, layout_type
from gpualgo._cuda.plan import ArgMap, Plan, arg_map
from gpualgo._cuda.templates import WARP, fold_of, kernel_spec, launch
from gpualgo._operators.operator import Operator, without_source
from gpualgo._pipeline import planners

# --- Tuning table of rolling windows: template arguments and sizes.
#
# They depend on shapes, the window and the dtype only, so that results have the same bits.

MOST_THREADS = 256
THREAD_BYTES, MOST_ITEMS = 64, 16  # of results of a thread
MOST_WINDOW, MOST_WINDOW_BYTES = 1024, 4096  # longer ones are scanned in blocks
LEAST_COUNT = 512  # results of a line; so are shorter ones


class Tiling(NamedTuple):
    """Template arguments of the kernel (WindowsPolicy), and what follows from them."""

    threads: int
    items: int
    span: int

    @property
    def tile(self) -> int:
        return self.threads * self.items

    def shared_bytes(self, window: int, itemsize: int) -> int:
        """Return the size of elements, results and totals in shared memory."""
        num_elements = self.tile + window - 1
        padded = [n + n // WARP for n in (num_elements, self.tile)]
        return (sum(padded) + num_elements // self.span) * itemsize


def tiling_of(acc: np.dtype[Any], count: int, window: int) -> Tiling | None:
    """Return the tiling of lines with `count` results, or None if these are scanned in blocks."""
    if records.is_record(acc) or count < LEAST_COUNT:
        return None
    if not 2 <= window <= min(MOST_WINDOW, MOST_WINDOW_BYTES // acc.itemsize):
        return None
    items = min(MOST_ITEMS, THREAD_BYTES // acc.itemsize)
    threads = MOST_THREADS
    while threads > WARP and (threads // 2) * items >= count:
        threads //= 2
    return Tiling(threads, items, min(items, 1 << window.bit_length() - 1))


def windows_spec(op: Operator, acc: np.dtype[Any], tiling: Tiling, is_even: bool) -> Spec:
    """Return the kernel; is_even: lines have one dimension."""
    types = cpp("WindowsPolicy", *tiling), fold_of(op, acc), acc, layout_type(is_even)
    return kernel_spec("rolling/windows.cuh", "rolling_windows_kernel", *types)


@planners.for_cuda.register(Rolling)
def _(problem: Rolling, views: Sequence[View], op: Operator, targets: Sequence[View]) -> Plan:
    """Return the plan; what does not lie side by side is copied before, or after."""
    acc, device, window = problem.acc, targets[0].device, problem.window
    tiling = tiling_of(acc, problem.count, window)
    if tiling is None or 0 in problem.shape:
        return of_steps(problem, views, op, targets)
    at = arg_map(len(views), len(targets))
    assert problem.axis is not None
    inputs = [_turned(x, problem.shape, problem.axis) for x in views]
    result = _turned(targets[0], targets[0].shape, problem.axis)
    source, written, slots = inputs[0], result, [at.sources[0], at.targets[0]]
    buffers, before, after = list[View](), list[Plan](), list[Plan]()

    def buffer(like: View, side: int) -> View:
        slots[side] = at.piece(len(buffers))
        buffers.append(placeholder(like.shape, acc, device))
        return buffers[-1]

    if problem.source != acc or not _is_flat(source):
        source = buffer(source, 0)
        applied = elementwise.elements_of(problem.source, op, acc)
        places = ArgMap(at.sources, slots[:1])
        before.append(elementwise.plan_of(applied, inputs, source.shape, [source], places))
    if not _is_flat(result):
        written = buffer(result, 1)
        applied = elementwise.elements_of(acc, op, acc)
        places = ArgMap(slots[1:], at.targets)
        after.append(elementwise.plan_of(applied, [written], result.shape, [result], places))
    *in_strides, in_step = source.strides
    *out_strides, out_step = written.strides
    strides = zip(in_strides, out_strides, strict=True)
    lines = merge(list(zip(problem.row_shape, strides, strict=True)))
    spec = windows_spec(without_source(op), acc, tiling, len(lines) <= 1)
    tiles_per_line = -(-problem.count // tiling.tile)
    step = launch(
        spec, device, math.prod(problem.row_shape) * tiles_per_line, tiling.threads,
        {"input": slots[0], "output": slots[1]},
        shared_bytes=tiling.shared_bytes(window, acc.itemsize), num_results=problem.count,
        window=window, in_step=in_step, out_step=out_step, tiles_per_line=tiles_per_line,
        lines=lines,
    )  # fmt: skip
    steps = [each for plan in (*before, Plan(device, [step]), *after) for each in plan.steps]
    return Plan(device, steps, buffer_pieces(buffers))


def _turned(view: View, shape: tuple[int, ...], axis: int) -> View:
    """Return a view of a shape with an axis moved to the end."""

    def turned(each: tuple[int, ...]) -> tuple[int, ...]:
        return (*each[:axis], *each[axis + 1 :], each[axis])

    return view._replace(shape=turned(shape), strides=turned(strides_for(view, shape)))


def _is_flat(view: View) -> bool:
    """Return whether a line's elements lie side by side."""
    return abs(view.strides[-1]) == view.dtype.itemsize
