"""Reductions by index, and sums of a histogram's weights, on a GPU."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpualgo._algorithms.by_index import tuning
from gpualgo._algorithms.by_index.problem import ByIndex
from gpualgo._algorithms.by_key import cuda as by_key
from gpualgo._algorithms.by_key.cuda import Parts, Placed
from gpualgo._algorithms.by_key.problem import INCLUSIVE
from gpualgo._algorithms.histogram.cuda import COUNT, Case, case_of, write_launch
from gpualgo._algorithms.histogram.problem import WeightedHistogram, accumulator
from gpualgo._algorithms.segments.cuda import reduction
from gpualgo._algorithms.select.cuda import access_of
from gpualgo._arrays.view import View, dense_view
from gpualgo._base import records
from gpualgo._base.strides import merge
from gpualgo._cuda import build
from gpualgo._cuda.build import Spec
from gpualgo._cuda.headers import Cpp, cpp
from gpualgo._cuda.plan import NONE, Piece, Plan, arg_map, kept_piece
from gpualgo._cuda.templates import START, WARP, Applied, fold_of, kernel_spec, launch
from gpualgo._driver import device as gpu
from gpualgo._driver.device import aligned
from gpualgo._operators.operator import Operator, as_operator, without_source
from gpualgo._pipeline import planners


@dataclass(frozen=True)
class Kind:
    """Parameters that determine the kernels."""

    op: Operator
    index: np.dtype[Any]
    source: records.Source
    acc: np.dtype[Any]
    access: Cpp
    has_row_init: bool
    overlaps: bool  # the next kernel may start while the previous one runs (sm_90)

    @property
    def specs(self) -> list[Spec]:
        """The kernels that fold shares, join groups of tables, and join all."""
        item_bytes = records.register_dtype(self.source).itemsize
        rows = max(1, min(tuning.MOST_ROWS, tuning.ROW_BYTES // item_bytes))
        loads = max(1, min(tuning.JOIN_LOADS, tuning.ROW_BYTES // self.acc.itemsize))
        return [
            self._spec("fold", tuning.MOST_WARPS * WARP, rows),
            self._spec("group", tuning.JOIN_THREADS, loads),
            self._spec("join", tuning.JOIN_THREADS, loads, self.has_row_init),
        ]

    def _spec(self, name: str, threads: int, rows: int, *flags: bool) -> Spec:
        policy = cpp("ByIndexPolicy", threads, rows, self.overlaps)
        types = fold_of(self.op, self.acc), self.index, self.acc, self.source, self.access
        return kernel_spec("by_index/tables.cuh", f"by_index_{name}_kernel", policy, *flags, *types)


def table_memory(
    num_tables: Sequence[int], size: int, acc: np.dtype[Any]
) -> tuple[Piece, list[int]]:
    """Return a piece for values and marks of so many tables, and the offsets of each in it."""
    sizes = [aligned(n * size * item) for n in num_tables for item in (acc.itemsize, 1)]
    *starts, end = itertools.accumulate(sizes, initial=0)
    return kept_piece(end), starts


@planners.for_cuda.register(ByIndex)
def _(problem: ByIndex, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
    """Return the plan into targets of any stride, which are not empty."""
    if problem.size == 0:
        return Plan(targets[0].device, [])
    if not problem.has_tables and 0 not in problem.shape:
        return _by_sorting(problem, views, op, targets)
    inputs, init_views = views[: problem.num_own], views[problem.num_own :]
    acc, size, device = problem.acc, problem.size, targets[0].device
    at, num_items = arg_map(len(views), len(targets)), math.prod(problem.shape)
    table, tiling = tuning.table_of(size, acc), tuning.tiling_of(num_items, size)
    strides = zip(*(view.strides for view in inputs), strict=True)
    dims = merge(list(zip(problem.shape, strides, strict=True))) if num_items else []
    access, fields = access_of(problem.source, dims, [view.ptr for view in inputs], 1)
    overlaps = gpu.get(device).may_overlap
    has_row_init = problem.row_init is not None
    kind = Kind(op, problem.index, problem.source, acc, access, has_row_init, overlaps)
    piece, starts = table_memory((tiling.num_shares, tiling.num_groups), size, acc)
    columns = -(-size // WARP)
    grids = [-(-tiling.num_shares // table.warps), tiling.num_groups * columns, columns]
    threads = [table.warps * WARP, tuning.JOIN_THREADS, tuning.JOIN_THREADS]
    stages = [stage for stage in zip(kind.specs, grids, threads, strict=True) if stage[1] > 0]
    names = "values", "marks", "group_values", "group_marks"
    slots = {
        "init": START, "input": at.sources[: len(inputs)], "output": at.targets,
        "starts": at.sources[len(inputs) :] or [NONE] * len(targets),
        **{name: (at.piece(0), start) for name, start in zip(names, starts, strict=True)},
    }  # fmt: skip
    shared = table.warps * table.table_bytes
    build.kernels([spec for spec, _, _ in stages], device)
    launches = [
        launch(
            spec, device, grid, block, slots, overlaps=overlaps and i > 0,
            shared_bytes=shared if num_items and i == 0 else 0,
            num_items=num_items, **tiling._asdict(), group=tuning.GROUP,
            num_groups=tiling.num_groups, num_columns=columns, size=size,
            is_start=problem.is_start, **table._asdict(),
            start_steps=[view.strides[0] for view in init_views] or [0] * len(targets),
            output_steps=[target.strides[0] for target in targets], access=fields,
        )
        for i, (spec, grid, block) in enumerate(stages)
    ]  # fmt: skip
    return Plan(device, launches, [piece])


# --- More results than a table holds: elements are sorted by index, and runs of indices reduced.

KEYS = tuple(np.dtype(name) for name in ("uint8", "uint16", "uint32"))


def _starts(parts: Parts, keys: Placed, count: int) -> Placed:
    """Return for each number up to `count` how many of the sorted keys are below it."""
    starts, dtype = parts.array(COUNT, count + 1), keys.view.dtype
    spec = kernel_spec("histogram/sums.cuh", "histogram_starts_kernel", START_THREADS, dtype)
    takes = {"keys": keys.slot, "starts": starts.slot}
    parts.steps.append(
        launch(
            spec, parts.device, count // START_THREADS + 1, START_THREADS, takes,
            num_items=keys.view.shape[0], num_slots=count,
        )
    )  # fmt: skip
    return starts


def _by_sorting(
    problem: ByIndex, views: Sequence[View], op: Operator, targets: Sequence[View]
) -> Plan:
    acc, size, shape, source = problem.acc, problem.size, problem.shape, problem.source
    at, device, where = arg_map(len(views), len(targets)), targets[0].device, problem.where
    parts, inputs = Parts(device, at, where), list(map(Placed, views, at.sources))
    (index, *values), inits = inputs[: problem.num_own], inputs[problem.num_own :]
    results, element = list(map(Placed, targets, at.targets)), records.register_dtype(source)
    if isinstance(source, records.Computed):
        arguments = tuple(map(records.operand_dtype, source.numbers))
        applied, computed = Applied(op.source, arguments, element, source.numbers), (index, *values)
        index, *values = (parts.array(dtype, *shape) for dtype in records.field_dtypes(element))
        parts.transform(applied, computed, (index, *values))
        op = without_source(op)
    kind = next(dtype for dtype in KEYS if size <= np.iinfo(dtype).max)
    # a shared position's address is its value
    limit = Placed(dense_view(size, (), records.SHARED_POSITION, device), (NONE, size))
    key = parts.mapped(_narrowed(kind.type), (index, limit), kind, shape)
    key, *values = parts.sort((key, *values), bits=size.bit_length())
    kinds, folded = tuple([x.view.dtype for x in (key, *values)]), op
    if not inits:  # each run is scanned, and its last element is the result
        leaves, scans = records.field_dtypes(acc), values
        if kinds[1:] != leaves:
            scans = [parts.array(leaf, math.prod(shape)) for leaf in leaves]
        pair = records.with_fields(element, kinds)
        parts.add(
            lambda views, outs, at: by_key.plan_of(
                INCLUSIVE, kinds[0], pair, acc, views, op, outs, at, has_init=problem.is_start
            ),
            (key, *values), scans,
        )  # fmt: skip
        values, folded = scans, as_operator(_last, where, 2)
    value = records.with_fields(acc, [x.view.dtype for x in values])
    segments = *values, _starts(parts, key, size)
    parts.add(
        lambda views, outs, at: reduction(
            value, acc, views[: len(segments)], folded, outs, at, False, views[len(segments) :]
        ),
        (*segments, *inits), results,
    )  # fmt: skip
    return Plan(device, parts.steps, parts.pieces)


def _narrowed(kind: Any) -> Any:
    return lambda i, size: kind(i) if i >= 0 and i < size else kind(size)


def _last(a: Any, b: Any) -> Any:
    return b


# --- Sums of a histogram's weights: tables of shares, or a sort by bin if tables are too large.
#
# Tilings depend on lengths and dtypes only, never on the GPU, so that results have the same bits.

SUMS_BYTES = 48 << 10  # of a warp's table; with more bins samples are sorted by bin
JOIN_BYTES = 32  # of tables that a lane loads at once
PAIR_THREADS, PAIR_ROWS = 256, 4
START_THREADS = 256


def fits(num_bins: int, dtype: np.dtype[Any]) -> bool:
    """Return whether a warp's table of sums fits into shared memory on every GPU."""
    return tuning.table_of(num_bins, accumulator(dtype)).table_bytes <= SUMS_BYTES


@planners.for_cuda.register(WeightedHistogram)
def _(
    problem: WeightedHistogram, views: Sequence[View], op: Operator | None, targets: Sequence[View]
) -> Plan:
    case = case_of(problem, views, op, targets[0])
    plan = _by_tables if fits(problem.num_bins, problem.dtype) else _by_sort
    return plan(case)


def _policy(threads: int, items: int) -> Cpp:
    return cpp("ByIndexPolicy", threads, items, False)


def _by_tables(case: Case) -> Plan:
    problem, acc = case.problem, accumulator(case.problem.dtype)
    num_bins, num_places = problem.num_bins, case.num_places
    table = tuning.table_of(num_bins, acc)
    shares = tuning.tiling_of(case.num_samples, num_bins, num_places)
    spec = case.spec(
        "sums.cuh", "histogram_fold_kernel", _policy(tuning.MOST_WARPS * WARP, _rows(case)),
        case.dtypes[-1], problem.dtype, acc, case.bins.type, case.access,
    )  # fmt: skip
    num_shares, num_groups = shares.num_shares * num_places, shares.num_groups * num_places
    piece, starts = table_memory((num_shares, num_groups), num_bins, acc)
    values, marks, group_values, group_marks = ((case.at.piece(0), start) for start in starts)
    steps = [
        launch(
            spec, case.device, -(-num_shares // table.warps), table.warps * WARP,
            {"input": case.inputs, "values": values, "marks": marks},
            shared_bytes=table.warps * table.table_bytes + case.bins.shared_bytes,
            num_bins=num_bins, share_items=shares.share_items, num_shares=num_shares,
            **table._asdict(), rows=case.rows(1, shares.num_shares, 0, num_places),
            bins=case.values,
        )
    ]  # fmt: skip

    def join(count: int, group: int, is_last: bool, takes: dict[str, Any]) -> None:
        threads = min(tuning.JOIN_THREADS, WARP << (min(count, group) // 8).bit_length())
        loads = max(1, min(tuning.JOIN_LOADS, JOIN_BYTES // acc.itemsize))
        types = _policy(threads, loads), is_last, problem.dtype, acc
        columns, groups = -(-num_bins // WARP), -(-count // group)
        others = {"group_values": group_values, "group_marks": group_marks}
        steps.append(
            launch(
                kernel_spec("histogram/sums.cuh", "histogram_join_kernel", *types), case.device,
                columns * groups * num_places, threads,
                {"output": case.at.targets[0], **others, **takes},
                num_bins=num_bins, num_tables=count, group=group, columns=columns,
                num_groups=groups, places=case.places, cells=case.cells,
            )
        )  # fmt: skip

    taken = {"values": values, "marks": marks}
    if shares.num_groups:
        join(shares.num_shares, tuning.GROUP, False, taken)
        taken = {"values": group_values, "marks": group_marks}
    last = shares.num_groups or shares.num_shares
    join(last, last, True, taken)
    return Plan(case.device, steps, [piece], case.table)


def _rows(case: Case) -> int:
    """Return how many samples a lane loads at once."""
    size = sum(dtype.itemsize for dtype in case.dtypes)
    return max(1, min(tuning.MOST_ROWS, tuning.ROW_BYTES // size))


def _by_sort(case: Case) -> Plan:
    problem, device = case.problem, case.device
    acc, num_bins, num_places = accumulator(problem.dtype), problem.num_bins, case.num_places
    num_items, num_slots = case.num_samples * num_places, num_bins * num_places
    key = np.dtype(np.uint32 if num_slots <= 1 << 32 else np.uint64)
    parts = Parts(device, case.at, problem.where)
    keys, weights = parts.array(key, num_items), parts.array(acc, num_items)
    spec = case.spec(
        "sums.cuh", "histogram_pairs_kernel", _policy(PAIR_THREADS, PAIR_ROWS), case.dtypes[-1],
        problem.dtype, acc, key, case.bins.type, case.access,
    )  # fmt: skip
    blocks = -(-case.num_samples // (PAIR_THREADS * PAIR_ROWS))
    parts.steps.append(
        launch(
            spec, device, blocks * num_places, PAIR_THREADS,
            {"input": case.inputs, "keys": keys.slot, "weights": weights.slot},
            shared_bytes=case.bins.shared_bytes,
            num_bins=num_bins, rows=case.rows(1, blocks, 0, num_places), bins=case.values,
        )
    )  # fmt: skip
    bits = max(1, (num_slots - 1).bit_length())
    keys, weights = parts.sort((keys, weights), bits=bits)
    sums, add = parts.array(acc, num_slots), as_operator(operator.add, problem.where, 2)
    parts.add(
        lambda views, outs, at: reduction(acc, acc, views, add, outs, at, is_start=False),
        (weights, _starts(parts, keys, num_slots)), [sums],
    )  # fmt: skip
    parts.steps.append(write_launch(case, acc, sums.slot))
    return Plan(device, parts.steps, parts.pieces, case.table)
