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
from gpualgo._algorithms.histogram.cuda import COUNT, Case, case_of, write_launch
from gpualgo._algorithms.histogram.problem import WeightedHistogram, accumulator
from gpualgo._algorithms.radix_sort import cuda_passes as passes
from gpualgo._algorithms.radix_sort.tuning import WORDS
from gpualgo._algorithms.segments.cuda import reduction
from gpualgo._algorithms.segments.problem import SegmentedReduction
from gpualgo._algorithms.select.cuda import access_of
from gpualgo._arrays.view import NumPy, View, dense_view
from gpualgo._base import records
from gpualgo._base.strides import merge
from gpualgo._cuda import build
from gpualgo._cuda.build import Spec
from gpualgo._cuda.headers import Cpp, cpp
from gpualgo._cuda.plan import NONE, ArgMap, Clear, Launch, Piece, Plan, arg_map, kept_piece
from gpualgo._cuda.templates import START, WARP, fold_of, kernel_spec, launch
from gpualgo._driver import device as gpu
from gpualgo._driver.default_device import CPU
from gpualgo._driver.device import aligned
from gpualgo._operators.operator import Operator, as_operator
from gpualgo._pipeline import planners
from gpualgo._pipeline.problem import problem_of


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
    steps, pieces = plan(case)
    return Plan(case.device, steps, pieces, case.table)


def _policy(threads: int, items: int) -> Cpp:
    return cpp("ByIndexPolicy", threads, items, False)


def _by_tables(case: Case) -> tuple[list[Launch], list[Piece]]:
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
    return steps, [piece]


def _rows(case: Case) -> int:
    """Return how many samples a lane loads at once."""
    size = sum(dtype.itemsize for dtype in case.dtypes)
    return max(1, min(tuning.MOST_ROWS, tuning.ROW_BYTES // size))


def _by_sort(case: Case) -> tuple[list[Launch | Clear], list[Piece]]:
    problem, device = case.problem, case.device
    acc, num_bins, num_places = accumulator(problem.dtype), problem.num_bins, case.num_places
    num_items, num_slots = case.num_samples * num_places, num_bins * num_places
    key = np.dtype(np.uint32 if num_slots <= 1 << 32 else np.uint64)
    # Pieces: keys and weights, both sorted, starts of bins, sums.
    pieces = [Piece(num_items * dtype.itemsize) for dtype in (key, acc) * 2]
    pieces += [Piece((num_slots + 1) * 8), Piece(num_slots * acc.itemsize)]
    keys, weights, sorted_keys, sorted_weights, starts, sums = map(case.at.piece, range(6))
    spec = case.spec(
        "sums.cuh", "histogram_pairs_kernel", _policy(PAIR_THREADS, PAIR_ROWS), case.dtypes[-1],
        problem.dtype, acc, key, case.bins.type, case.access,
    )  # fmt: skip
    parts = -(-case.num_samples // (PAIR_THREADS * PAIR_ROWS))
    steps: list[Launch | Clear] = [
        launch(
            spec, device, parts * num_places, PAIR_THREADS,
            {"input": case.inputs, "keys": keys, "weights": weights},
            shared_bytes=case.bins.shared_bytes,
            num_bins=num_bins, rows=case.rows(1, parts, 0, num_places), bins=case.values,
        )
    ]  # fmt: skip
    is_word = acc.itemsize in WORDS
    size = acc.itemsize if is_word else passes.position_bytes(num_items)
    if not is_word:  # sorted positions, by which wider weights are gathered
        pieces.append(Piece(num_items * size))
    moved = sorted_weights if is_word else case.at.piece(6)
    arrays = passes.Arrays(keys, weights, sorted_keys, moved)
    job = passes.Job(
        device, key, 1, num_items, False, 0, max(1, (num_slots - 1).bit_length()), size, size,
        makes_indices=not is_word,
    )  # fmt: skip
    at_once = passes.launch_of(job, arrays)
    if at_once is not None:
        steps.append(at_once)
    else:
        first = case.at.piece(len(pieces))
        sort_steps, sort_pieces = passes.steps_of(job, arrays, first, may_be_kept=False)
        steps += sort_steps
        pieces += sort_pieces
    if not is_word:
        takes = {"input": weights, "output": sorted_weights, "indices": moved}
        steps.append(passes.gather(1, num_items, acc.itemsize, 0, size, device, takes))
    spec = kernel_spec("histogram/sums.cuh", "histogram_starts_kernel", START_THREADS, key)
    steps.append(
        launch(
            spec, device, num_slots // START_THREADS + 1, START_THREADS,
            {"keys": sorted_keys, "starts": starts}, num_items=num_items, num_slots=num_slots,
        )
    )  # fmt: skip
    inner = ArgMap((sorted_weights, starts), (sums,), case.at.piece(len(pieces)))
    plan = _segments(acc, num_items, num_slots, device, inner)
    steps += plan.steps
    pieces += plan.pieces
    steps.append(write_launch(case, acc, sums))
    return steps, pieces


def _segments(
    acc: np.dtype[Any], num_items: int, num_slots: int, device: int, inner: ArgMap
) -> Plan:
    """Return the plan that adds up segments of the sorted weights; the call's start is zero."""
    views = [
        dense_view(1 << 44, (num_items,), acc, device),
        dense_view(2 << 44, (num_slots + 1,), COUNT, device),
    ]
    add = as_operator(operator.add, "histogram", 2)
    problem = problem_of(
        SegmentedReduction, tuple(view._replace(device=CPU, library=NumPy) for view in views), add,
        np.zeros((), acc)[()], (None, None, None), "histogram", 2, device,
    )  # fmt: skip
    assert isinstance(problem, SegmentedReduction)
    target = dense_view(3 << 44, (num_slots,), acc, device)
    return reduction(problem, views, add, [target], inner)
