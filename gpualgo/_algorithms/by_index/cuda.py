"""Reductions by index, and sums of a histogram's weights, on a GPU."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gpualgo._algorithms.by_index import tuning
from gpualgo._algorithms.by_index.problem import ByIndex
from gpualgo._algorithms.by_key import cuda as by_key
from gpualgo._algorithms.by_key.cuda import Parts, Placed
from gpualgo._algorithms.by_key.problem import Reduction
from gpualgo._algorithms.histogram.cuda import COUNT, Case, case_of, write_launch
from gpualgo._algorithms.histogram.problem import WeightedHistogram, accumulator
from gpualgo._algorithms.select.cuda import access_of
from gpualgo._algorithms.transform.cuda import of_copies
from gpualgo._arrays.view import View, dense_view
from gpualgo._base import records
from gpualgo._cuda import build
from gpualgo._cuda.build import Spec
from gpualgo._cuda.headers import Cpp, cpp
from gpualgo._cuda.plan import NONE, ArgMap, Piece, Plan, arg_map, kept_piece
from gpualgo._cuda.templates import START, WARP, Applied, fold_of, kernel_spec, launch
from gpualgo._driver import device as gpu
from gpualgo._driver.device import aligned
from gpualgo._operators.operator import Operator, as_operator, without_source
from gpualgo._pipeline import planners


@dataclass(frozen=True)
class Kind:
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


class Work(NamedTuple):
    """A reduction by index in one reading of the elements."""

    op: Operator
    key: np.dtype[Any]  # of an index
    source: records.Source  # of an index and a value
    acc: np.dtype[Any]
    shape: tuple[int, ...]
    size: int
    is_start: bool
    shift: int | None = None  # elements are sorted by the bits of the index from this one on
    window: Any = NONE  # slot of the KeyWindow that the indices relate to (by_index/buckets.cuh)
    present: Any = NONE  # slot of a byte for each result: whether it has elements


@planners.for_cuda.register(ByIndex)
def _(problem: ByIndex, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
    plan = partial(_planned, problem, op=op, targets=targets)
    return of_copies(views, targets, plan, only_transposed=True)


def _planned(problem: ByIndex, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
    """Return the plan into targets of any stride, which are not empty."""
    if problem.size == 0:
        return Plan(targets[0].device, [])
    at = arg_map(len(views), len(targets))
    if not problem.has_tables and 0 not in problem.shape:
        return _of_many(problem, views, op, targets, at)
    work = Work(
        op, problem.index, problem.source, problem.acc, problem.shape, problem.size,
        problem.is_start,
    )  # fmt: skip
    return plan_of(work, problem.num_own, views, targets, at)


def plan_of(
    work: Work, num_own: int, views: Sequence[View], targets: Sequence[View], at: ArgMap
) -> Plan:
    """Return the plan of `num_own` arrays of elements, starts of results, and of buckets."""
    acc, size, shift, device = work.acc, work.size, work.shift, targets[0].device
    width, num_buckets = (size, 1) if shift is None else (1 << shift, -(-size >> shift))
    inputs, inits = views[:num_own], views[num_own : len(views) - (shift is not None)]
    num_items = math.prod(work.shape)
    table, tiling = tuning.table_of(width, acc), tuning.tiling_of(num_items, width)
    num_tables = tiling.num_shares + num_buckets - 1
    num_groups = tiling.num_groups if shift is None else 0
    access, fields = access_of(work.source, work.shape, inputs, 1)
    overlaps = gpu.get(device).may_overlap
    kind = Kind(work.op, work.key, work.source, acc, access, bool(inits), overlaps)
    piece, starts = table_memory((num_tables, num_groups), width, acc)
    columns = -(-size // WARP)
    each = columns // (gpu.get(device).num_sms * tuning.JOIN_BLOCKS)  # does not affect the bits
    each = max(1, min(tuning.JOIN_THREADS // WARP, each))
    grids = [-(-num_tables // table.warps), num_groups * columns, -(-columns // each)]
    grids[0] *= num_items > 0
    threads = [table.warps * WARP, tuning.JOIN_THREADS, tuning.JOIN_THREADS]
    stages = [stage for stage in zip(kind.specs, grids, threads, strict=True) if stage[1] > 0]
    names = "values", "marks", "group_values", "group_marks"
    slots = {
        "init": START, "input": at.sources[:num_own], "output": at.targets,
        "starts": at.sources[num_own : num_own + len(inits)] or [NONE] * len(targets),
        "buckets": {"starts": NONE if shift is None else at.sources[-1], "window": work.window},
        "present": work.present,
        **{name: (at.piece(0), start) for name, start in zip(names, starts, strict=True)},
    }  # fmt: skip
    buckets = {
        "count": num_buckets,
        "shift": 63 if shift is None else shift,
        "share": tiling.share_items,
    }
    shared = table.warps * table.table_bytes
    build.kernels([spec for spec, _, _ in stages], device)
    launches = [
        launch(
            spec, device, grid, block, slots, overlaps=overlaps and i > 0,
            shared_bytes=shared if num_items and i == 0 else 0, buckets=buckets,
            num_items=num_items, num_tables=num_tables * (num_items > 0), group=tuning.GROUP,
            num_groups=num_groups, num_columns=columns, num_results=size, size=width,
            is_start=work.is_start, **table._asdict(),
            start_steps=[view.strides[0] for view in inits] or [0] * len(targets),
            output_steps=[target.strides[0] for target in targets], access=fields,
        )
        for i, (spec, grid, block) in enumerate(stages)
    ]  # fmt: skip
    return Plan(device, launches, [piece])


# --- More results than a table holds: elements are sorted by the high bits of their indices, and
# each table has the results of one bucket.

KEY = np.dtype(np.uint32)  # an index is below 2^31: no sign bit is sorted by


def starts_spec(key: np.dtype[Any]) -> Spec:
    return kernel_spec("by_index/buckets.cuh", "bucket_starts_kernel", START_THREADS, key)


def _of_many(
    problem: ByIndex, views: Sequence[View], op: Operator, targets: Sequence[View], at: ArgMap
) -> Plan:
    size, shape, source, device = problem.size, problem.shape, problem.source, targets[0].device
    parts, inputs = Parts(device, at, problem.where), list(map(Placed, views, at.sources))
    (index, *values), inits = inputs[: problem.num_own], inputs[problem.num_own :]
    element = records.register_dtype(source)
    if isinstance(source, records.Computed):
        arguments = tuple(map(records.operand_dtype, source.numbers))
        applied, computed = Applied(op.source, arguments, element, source.numbers), (index, *values)
        index, *values = (parts.array(dtype, *shape) for dtype in records.field_dtypes(element))
        parts.transform(applied, computed, (index, *values))
        op = without_source(op)
    if index.view.dtype.itemsize != KEY.itemsize:  # others move more bytes, or have too few bits
        # a shared position's address is its value
        limit = Placed(dense_view(size, (), records.SHARED_POSITION, device), (NONE, size))
        index = parts.mapped(_narrowed(KEY.type), (index, limit), KEY, shape)
    work = Work(op, index.view.dtype, element, problem.acc, shape, size, problem.is_start)
    _add_buckets(parts, work, (index, *values), inits, list(map(Placed, targets, at.targets)))
    return Plan(device, parts.steps, parts.pieces)


def _add_buckets(
    parts: Parts, work: Work, elements: Sequence[Placed], inits: Sequence[Placed],
    results: Sequence[Placed],
) -> None:  # fmt: skip
    """Add the steps that reduce elements by an index whose table may be too large."""
    first, end = tuning.bucket_bits(work.size, work.acc)
    elements = parts.sort(elements, bits=end, first_bit=first)
    keys, count, (num_items,) = elements[0], -(-work.size >> first), elements[0].view.shape
    starts = parts.array(COUNT, count + 1)
    parts.steps.append(
        launch(
            starts_spec(keys.view.dtype), parts.device, count // START_THREADS + 1, START_THREADS,
            {"keys": keys.slot, "starts": starts.slot},
            num_items=num_items, count=count, shift=first, mask=(1 << end - first) - 1,
        )
    )  # fmt: skip
    source = records.with_fields(
        records.register_dtype(work.source), [x.view.dtype for x in elements]
    )
    work = work._replace(source=source, shape=(num_items,), shift=first)
    parts.add(
        lambda views, outs, at: plan_of(work, len(elements), views, outs, at),
        (*elements, *inits, starts), results,
    )  # fmt: skip


def _narrowed(kind: Any) -> Any:
    return lambda i, size: kind(i) if i >= 0 and i < size else kind(size)


# --- Reductions by key: many integers of a narrow range, in any order, are not sorted.

WINDOW = 1 << 10  # most keys of a range; also threads of a block
TABLES_FROM = 1 << 23  # elements from which on a sort costs more than kernels that return at once


@planners.for_cuda.register(Reduction)
def _(problem: Reduction, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
    plan = partial(_by_key, problem, op=op, targets=targets)
    return of_copies(views, targets, plan, only_transposed=True)


def _by_key(problem: Reduction, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
    acc, is_many = problem.acc, math.prod(problem.shape) >= TABLES_FROM
    # The bits depend on it, so it depends on lengths and dtypes alone.
    is_plain = is_many and problem.in_any_order and len(views) == 2 and acc.names is None
    if not (is_plain and problem.key.kind in "iu"):
        return by_key.planned(problem, views, op, targets)

    def add(parts: Parts, arrays: Sequence[Placed], results: Sequence[Placed], window: Any) -> None:
        values, present = parts.array(acc, WINDOW), parts.array(np.dtype(np.uint8), WINDOW)
        work = Work(
            op, problem.key, problem.source, acc, problem.shape, WINDOW, problem.has_init,
            window=window, present=present.slot,
        )  # fmt: skip
        parts.add(
            lambda views, outs, at: plan_of(work, len(views), views, outs, at), arrays, [values]
        )
        keys, aggregates, count = results
        slots = {
            "window": window, "present": present.slot, "values": values.slot, "keys": keys.slot,
            "aggregates": aggregates.slot, "num_runs": count.slot,
        }  # fmt: skip
        spec = kernel_spec("by_key/dense.cuh", "dense_results_kernel", WINDOW, problem.key, acc)
        parts.steps.append(
            launch(
                spec, parts.device, 1, WINDOW, slots, capacity=keys.view.shape[0],
                key_step=keys.view.strides[0], aggregate_step=aggregates.view.strides[0],
            )
        )  # fmt: skip

    return by_key.planned(problem, views, op, targets, (add, WINDOW))


# --- Sums of a histogram's weights: tables of shares, or buckets if tables are too large.
#
# Tilings depend on lengths and dtypes only, never on the GPU, so that results have the same bits.

JOIN_BYTES = 32  # of tables that a lane loads at once
PAIR_THREADS, PAIR_ROWS = 256, 4
START_THREADS = 256


def fits(num_bins: int, dtype: np.dtype[Any]) -> bool:
    return tuning.table_of(num_bins, accumulator(dtype)).fits


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
    sums, add = parts.array(acc, num_slots), as_operator(operator.add, problem.where, 2)
    element = records.record(("0", "1"), (key, acc))
    work = Work(add, key, element, acc, (num_items,), num_slots, is_start=False)
    _add_buckets(parts, work, (keys, weights), (), [sums])
    parts.steps.append(write_launch(case, acc, sums.slot))
    return Plan(device, parts.steps, parts.pieces, case.table)
