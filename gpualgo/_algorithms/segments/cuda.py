"""Segments on a GPU: layout of elements, launches, and temporary storage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpualgo._algorithms.segments import tuning
from gpualgo._algorithms.segments.problem import (
    PerRowInitReduction,
    SegmentedReduction,
    SegmentedScan,
)
from gpualgo._algorithms.select import tuning as reading
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._cuda import build
from gpualgo._cuda.plan import KEPT, NONE, STATES, TICKETS, ArgMap, Clear, Launch, Piece, Plan
from gpualgo._cuda.templates import START, WARP, Access, tagged_bytes
from gpualgo._driver import device as gpu
from gpualgo._driver.pools import STATE_BYTES, aligned
from gpualgo._operators.operator import Operator, without_source
from gpualgo._pipeline import planners

_CONTROL_BYTES = 256  # LookbackControl
_LIST_BYTES = 16  # ChunkList
_BOUNDS_BYTES = 256  # two offsets, before the marks


@planners.for_cuda.register(SegmentedReduction)
def _(
    problem: SegmentedReduction, views: Sequence[View], op: Operator, targets: Sequence[View]
) -> Plan:
    return _reduction(problem, views, op, targets, ArgMap(len(views), len(targets)))


def _reduction(
    problem: SegmentedReduction, views: Sequence[View], op: Operator, targets: Sequence[View],
    at: ArgMap,
) -> Plan:  # fmt: skip
    """Return the plan of a reduction of segments, at least one, into targets of any strides.

    `at` gives the argument slots in a larger plan, whose first sources these views are.
    """
    *inputs, offsets = views
    source, acc, device = problem.source, problem.acc, offsets.device
    num_items, num_segments = inputs[0].shape[0], problem.num_segments
    overlaps = gpu.get(device).may_overlap
    kind, cut = tuning.policy_of(acc, overlaps), tuning.cut_of(num_items, num_segments)
    access, fields = _access(source, inputs)
    specs = tuning.reduce_specs(op, source, acc, offsets.dtype, access, kind)
    chunk_bytes = aligned(cut.capacity * tuning.CHUNK_BYTES)
    piece = Piece(chunk_bytes + cut.capacity * acc.itemsize, KEPT)
    if not piece.fits:
        piece = Piece(piece.num_bytes)
    pieces = [Piece(_LIST_BYTES, TICKETS, is_zeroed=True), piece]
    fixed = {
        "num_items": num_items, "num_segments": num_segments, "offset_step": offsets.strides[0],
        **cut._asdict(), "is_start": problem.is_start,
        "output_steps": [target.strides[0] for target in targets], "access": fields,
    }  # fmt: skip
    slots = _slots(views, targets, at, list=0, chunks=1, partials=(1, chunk_bytes))
    warps = tuning.BLOCK_THREADS // WARP
    blocks = -(-num_segments // (cut.per_warp * warps))
    most_blocks = gpu.get(device).num_sms * tuning.BLOCKS_PER_SM
    grids = [blocks, min(most_blocks, cut.capacity), min(most_blocks, -(-cut.capacity // WARP))]
    shared = [kind.shared_bytes, 0, kind.joining_bytes]
    launches = [
        Launch(
            kernel, grid, tuning.BLOCK_THREADS, spec.parameters.pack(**fixed), device, slots,
            shared_bytes=size, overlaps=overlaps and i > 0,
        )
        for i, (spec, kernel, grid, size) in enumerate(
            zip(specs, build.kernels(specs, device), grids, shared, strict=True)
        )
    ]  # fmt: skip
    return Plan(device, launches, pieces)


@planners.for_cuda.register(SegmentedScan)
def _(problem: SegmentedScan, views: Sequence[View], op: Operator, targets: Sequence[View]) -> Plan:
    """Return the plan of a scan of segments of at least one element."""
    *inputs, offsets = views[: problem.num_own]
    init_views = views[problem.num_own :]
    source, acc, device = problem.source, problem.acc, offsets.device
    (num_items,) = inputs[0].shape
    kind = tuning.scan_policy_of(acc, gpu.get(device).shared_limit)
    num_tiles = -(-num_items // kind.tile_items)
    access, fields = _access(source, inputs)
    states = Piece(_CONTROL_BYTES + num_tiles * tagged_bytes(acc), STATES, is_zeroed=True)
    marks = Piece(marks_bytes(num_items), KEPT)
    if not marks.fits:
        marks = Piece(marks.num_bytes)
    scan_spec = tuning.scan_spec(
        op, source, acc, access, kind, problem.is_exclusive, offsets.dtype if init_views else None
    )
    kernel = build.kernel(scan_spec, device)
    at, num_sms = ArgMap(len(views), len(targets)), gpu.get(device).num_sms
    mark_slots = slots_of_marks(at.piece(1))
    words = max(states.num_bytes, STATE_BYTES) - _CONTROL_BYTES
    packed = scan_spec.parameters.pack(
        num_items=num_items, num_tiles=num_tiles, num_words=words // 8,
        num_segments=problem.num_segments, offset_step=offsets.strides[0],
        start_steps=[view.strides[0] for view in init_views] or [0] * len(targets),
        output_steps=[target.strides[0] for target in targets], access=fields,
    )  # fmt: skip
    args = views[: problem.num_own]
    slots = _slots(args, targets, at, states=0) | mark_slots
    slots["starts"] = [at.source(i) for i in range(len(args), len(views))] or [NONE] * len(targets)
    if not init_views:
        slots["offsets"] = NONE
    launch = Launch(
        kernel, min(num_tiles, num_sms * tuning.SCAN_BLOCKS_PER_SM), kind.block_threads, packed,
        device, slots, shared_bytes=kind.shared_bytes,
    )  # fmt: skip
    mark_launch = launch_marks(offsets, at.source(len(inputs)), num_items, mark_slots)
    return Plan(device, [Clear(at.piece(1), marks.num_bytes), mark_launch, launch], [states, marks])


def marks_bytes(num_items: int) -> int:
    """Return the size of the marks of segment starts; they are zero at first."""
    return _BOUNDS_BYTES + 4 * -(-num_items // 32)


def slots_of_marks(marks: int) -> dict[str, Any]:
    """Return the slots of marks in temporary storage."""
    return {"heads": (marks, _BOUNDS_BYTES), "bounds": marks}


def launch_marks(offsets: View, place: int, num_items: int, heads: dict[str, Any]) -> Launch:
    """Return the launch that marks segment starts; `place` is the slot of the offsets."""
    spec, device, threads = tuning.heads_spec(offsets.dtype), offsets.device, tuning.BLOCK_THREADS
    (num_offsets,) = offsets.shape
    packed = spec.parameters.pack(
        num_items=num_items, num_offsets=num_offsets, offset_step=offsets.strides[0]
    )
    grid = min(-(-num_offsets // threads), gpu.get(device).num_sms * 2048 // threads)
    slots = {"offsets": place, **heads}
    return Launch(build.kernel(spec, device), grid, threads, packed, device, slots)


@planners.for_cuda.register(PerRowInitReduction)
def _(
    problem: PerRowInitReduction, views: Sequence[View], op: Operator, targets: Sequence[View]
) -> Plan:
    """Return the plan of a reduction with an initial value per segment, after the offsets."""
    args, init_views = views[: problem.num_own], views[problem.num_own :]
    offsets, at = args[-1], ArgMap(len(views), len(targets))
    spec = tuning.starts_spec(without_source(op), problem.acc, offsets.dtype)
    packed = spec.parameters.pack(
        num_items=problem.num_items, num_segments=problem.num_segments,
        offset_step=offsets.strides[0], start_steps=[view.strides[0] for view in init_views],
        output_steps=[target.strides[0] for target in targets],
    )  # fmt: skip
    slots = {
        "starts": [at.source(i) for i in range(len(args), len(views))],
        "offsets": at.source(len(args) - 1), "output": [at.target(i) for i in range(len(targets))],
    }  # fmt: skip
    device, threads = offsets.device, tuning.BLOCK_THREADS
    blocks = -(-problem.num_segments // threads)
    launch = Launch(build.kernel(spec, device), blocks, threads, packed, device, slots)
    if not problem.num_items:
        return Plan(device, [launch])
    plan = _reduction(problem, args, op, targets, at)
    plan.steps.append(launch)
    return plan


def _slots(
    views: Sequence[View], targets: Sequence[View], at: ArgMap, **pieces: Any
) -> dict[str, Any]:
    """Return a kernel's argument slots; `pieces` are piece numbers, with an offset if tuples."""
    count = len(views) - 1
    slots: dict[str, Any] = {
        "init": START, "input": [at.source(i) for i in range(count)], "offsets": at.source(count),
        "output": [at.target(i) for i in range(len(targets))],
    }  # fmt: skip
    for name, piece in pieces.items():
        number, offset = piece if isinstance(piece, tuple) else (piece, 0)
        slots[name] = at.piece(number), offset
    return slots


def _access(source: records.Source, views: Sequence[View]) -> tuple[Access, dict[str, Any]]:
    """Return how the kernels access elements, and the fields of that access's parameters."""
    strides = tuple(view.strides[0] for view in views)
    if views[0].shape[0] <= 1 or strides == records.read_bytes(source):
        return reading.dense(in_packs=False), {}
    return reading.spaced(len(views), is_even=True), {"places": [(views[0].shape[0], strides)]}
