"""Reductions by index, and sums of a histogram's weights, on a GPU."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpualgo._algorithms.by_index import tuning
from gpualgo._algorithms.by_index.problem import ByIndex
from gpualgo._algorithms.histogram import cuda_bins
from gpualgo._algorithms.histogram.cuda import COUNT, Case, case_of, write_launch
from gpualgo._algorithms.histogram.problem import WeightedHistogram, accumulator
from gpualgo._algorithms.radix_sort import cuda_passes as passes
from gpualgo._algorithms.radix_sort.tuning import WORDS
from gpualgo._algorithms.segments.cuda import reduction
from gpualgo._algorithms.segments.problem import SegmentedReduction
from gpualgo._algorithms.select.cuda import access_of
from gpualgo._arrays.view import NumPy, View, dense_view
from gpualgo._base import dtypes
from gpualgo._base.strides import merge
from gpualgo._cuda import build
from gpualgo._cuda.build import Spec
from gpualgo._cuda.plan import KEPT, NONE, ArgMap, Clear, Launch, Piece, Plan
from gpualgo._cuda.templates import START, WARP
from gpualgo._driver import device as gpu
from gpualgo._driver.default_device import CPU
from gpualgo._driver.device import aligned
from gpualgo._operators.operator import Operator, as_operator
from gpualgo._pipeline import planners
from gpualgo._pipeline.problem import problem_of


@planners.for_cuda.register(ByIndex)
def _(problem: ByIndex, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
    """Return the plan into targets of any stride, which are not empty."""
    if problem.size == 0:
        return Plan(targets[0].device, [])
    inputs, init_views = views[: problem.num_own], views[problem.num_own :]
    acc, size, device = problem.acc, problem.size, targets[0].device
    args, num_items = ArgMap(len(views), len(targets)), math.prod(problem.shape)
    table, tiling = tuning.table_of(size, acc), tuning.tiling_of(num_items, size)
    strides = zip(*(view.strides for view in inputs), strict=True)
    dims = merge(list(zip(problem.shape, strides, strict=True))) if num_items else []
    access, fields = access_of(problem.source, dims, [view.ptr for view in inputs], 1)
    overlaps = gpu.get(device).may_overlap
    has_row_init = problem.row_init is not None
    kind = tuning.Kind(op, problem.index, problem.source, acc, access, has_row_init, overlaps)
    sizes = [
        aligned(count * size * item_bytes)
        for count in (tiling.num_shares, tiling.num_groups)
        for item_bytes in (acc.itemsize, 1)
    ]
    ends = [0, *itertools.accumulate(sizes)]
    piece = Piece(ends[-1], KEPT)
    if not piece.fits:
        piece = Piece(piece.num_bytes)
    columns = -(-size // WARP)
    grids = [-(-tiling.num_shares // table.warps), tiling.num_groups * columns, columns]
    threads = [table.warps * WARP, tuning.JOIN_THREADS, tuning.JOIN_THREADS]
    stages = [stage for stage in zip(kind.specs, grids, threads, strict=True) if stage[1] > 0]
    specs = [spec for spec, _, _ in stages]
    packed = specs[0].parameters.pack(
        num_items=num_items, **tiling._asdict(), group=tuning.GROUP, num_groups=tiling.num_groups,
        num_columns=columns, size=size, is_start=problem.is_start, **table._asdict(),
        start_steps=[view.strides[0] for view in init_views] or [0] * len(targets),
        output_steps=[target.strides[0] for target in targets], access=fields,
    )  # fmt: skip
    names = "values", "marks", "group_values", "group_marks"
    slots = {
        "init": START,
        "input": [args.source(i) for i in range(len(inputs))],
        "output": [args.target(i) for i in range(len(targets))],
        "starts": [args.source(i) for i in range(len(inputs), len(views))] or [NONE] * len(targets),
        **{name: (args.piece(0), end) for name, end in zip(names, ends, strict=False)},
    }  # fmt: skip
    shared = table.warps * table.table_bytes
    launches = [
        Launch(
            kernel, grid, block, packed, device, slots,
            shared_bytes=shared if num_items and i == 0 else 0,
            overlaps=overlaps and i > 0,
        )
        for i, (kernel, (_, grid, block)) in enumerate(
            zip(build.kernels(specs, device), stages, strict=True)
        )
    ]  # fmt: skip
    return Plan(device, launches, [piece])


# --- Sums of a histogram's weights: tables of shares, or a sort by bin if tables are too large.
#
# Tilings depend on lengths and dtypes only, never on the GPU, so that results have the same bits.

SUMS_BYTES = 48 << 10  # of a warp's table; with more bins samples are sorted by bin
JOIN_BYTES = 32  # of tables that a lane loads at once
PAIR_THREADS, PAIR_ROWS = 256, 4
START_THREADS = 256


class _Inner(NamedTuple):
    """Indices of the arrays of a plan within a larger one."""

    sources: Sequence[int]
    targets: Sequence[int]
    first_piece: int

    def source(self, i: int) -> int:
        return self.sources[i]

    def target(self, i: int) -> int:
        return self.targets[i]

    def piece(self, i: int) -> int:
        return self.first_piece + i


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


def _types(case: Case) -> tuple[str, str, str]:
    names = case.dtypes[-1], case.problem.dtype, accumulator(case.problem.dtype)
    weight, result, acc = map(dtypes.cpp_name, names)
    return weight, result, acc


def _by_tables(case: Case) -> tuple[list[Launch], list[Piece]]:
    problem, acc = case.problem, accumulator(case.problem.dtype)
    num_bins, num_places = problem.num_bins, case.num_places
    table = tuning.table_of(num_bins, acc)
    shares = tuning.tiling_of(case.num_samples, num_bins, num_places)
    threads = table.warps * WARP
    policy = f"gpualgo::ByIndexPolicy<{tuning.MOST_WARPS * WARP}, {_rows(case)}, false>"
    weight, result, acc_name = _types(case)
    spec = case.spec(
        "sums.cuh", "histogram_fold_kernel", policy,
        (weight, result, acc_name, case.bins.cpp, case.access.cpp),
        "HistogramFold", **cuda_bins.FOLD,
    )  # fmt: skip
    num_shares, num_groups = shares.num_shares * num_places, max(1, shares.num_groups)
    counts = [num_shares, num_groups * num_places if shares.num_groups else 0]
    sizes = [aligned(count * num_bins * size) for count in counts for size in (acc.itemsize, 1)]
    ends = [0, *itertools.accumulate(sizes)]
    piece = Piece(ends[-1], KEPT)
    if not piece.fits:
        piece = Piece(piece.num_bytes)
    values, marks, group_values, group_marks = ((case.at.piece(0), end) for end in ends[:4])
    packed = spec.parameters.pack(
        num_bins=num_bins, share_items=shares.share_items, num_shares=num_shares,
        **table._asdict(), rows=case.rows(1, shares.num_shares, 0, num_places), bins=case.values,
    )  # fmt: skip
    steps = [
        Launch(
            build.kernel(spec, case.device), -(-num_shares // table.warps), threads, packed,
            case.device, {"input": case.inputs, "values": values, "marks": marks},
            shared_bytes=table.warps * table.table_bytes + case.bins.shared_bytes,
        )
    ]  # fmt: skip

    def join(count: int, group: int, is_last: bool, takes: dict[str, Any]) -> None:
        threads = min(tuning.JOIN_THREADS, WARP << (min(count, group) // 8).bit_length())
        loads = max(1, min(tuning.JOIN_LOADS, JOIN_BYTES // acc.itemsize))
        policy = f"gpualgo::ByIndexPolicy<{threads}, {loads}, false>"
        types = f"{policy}, {str(is_last).lower()}, {result}, {acc_name}"
        params = cuda_bins.JOIN_PARAMS
        spec = Spec("histogram/sums.cuh", f"gpualgo::histogram_join_kernel<{types}>", params)
        columns, groups = -(-num_bins // WARP), -(-count // group)
        packed = params.pack(
            num_bins=num_bins, num_tables=count, group=group, columns=columns, num_groups=groups,
            places=case.places, cells=case.cells,
        )  # fmt: skip
        grid = columns * groups * num_places
        kernel = build.kernel(spec, case.device)
        others = {"group_values": group_values, "group_marks": group_marks}
        takes = {"output": case.at.target(0), **others, **takes}
        steps.append(Launch(kernel, grid, threads, packed, case.device, takes))

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
    weight, result, acc_name = _types(case)
    # Pieces: keys and weights, both sorted, starts of bins, sums.
    pieces = [Piece(num_items * dtype.itemsize) for dtype in (key, acc) * 2]
    pieces += [Piece((num_slots + 1) * 8), Piece(num_slots * acc.itemsize)]
    keys, weights, sorted_keys, sorted_weights, starts, sums = map(case.at.piece, range(6))
    spec = case.spec(
        "sums.cuh", "histogram_pairs_kernel",
        f"gpualgo::ByIndexPolicy<{PAIR_THREADS}, {PAIR_ROWS}, false>",
        (weight, result, acc_name, dtypes.cpp_name(key), case.bins.cpp, case.access.cpp),
        "HistogramPairs", **cuda_bins.PAIRS,
    )  # fmt: skip
    parts = -(-case.num_samples // (PAIR_THREADS * PAIR_ROWS))
    packed = spec.parameters.pack(
        num_bins=num_bins, rows=case.rows(1, parts, 0, num_places), bins=case.values
    )
    steps: list[Launch | Clear] = [
        Launch(
            build.kernel(spec, device), parts * num_places, PAIR_THREADS, packed, device,
            {"input": case.inputs, "keys": keys, "weights": weights},
            shared_bytes=case.bins.shared_bytes,
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
    spec = Spec(
        "histogram/sums.cuh",
        f"gpualgo::histogram_starts_kernel<{START_THREADS}, {dtypes.cpp_name(key)}>",
        cuda_bins.STARTS_PARAMS,
    )  # fmt: skip
    packed = spec.parameters.pack(num_items=num_items, num_slots=num_slots)
    takes = {"keys": sorted_keys, "starts": starts}
    blocks = num_slots // START_THREADS + 1
    steps.append(Launch(build.kernel(spec, device), blocks, START_THREADS, packed, device, takes))
    inner = _Inner((sorted_weights, starts), (sums,), case.at.piece(len(pieces)))
    plan = _segments(acc, num_items, num_slots, device, inner)
    steps += plan.steps
    pieces += plan.pieces
    steps.append(write_launch(case, acc, sums))
    return steps, pieces


def _segments(
    acc: np.dtype[Any], num_items: int, num_slots: int, device: int, inner: _Inner
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
