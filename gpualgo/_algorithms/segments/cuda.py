"""Segments on a GPU: layout of elements, launches, and temporary storage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from gpualgo._algorithms.by_key import cuda as tiles
from gpualgo._algorithms.segments.problem import SegmentedReduction, SegmentedScan
from gpualgo._algorithms.select import cuda as reading
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._base.records import Dtype
from gpualgo._cuda import build
from gpualgo._cuda.build import Spec
from gpualgo._cuda.headers import Cpp, cpp
from gpualgo._cuda.plan import (
    MARKS,
    NONE,
    TICKETS,
    ArgMap,
    Clear,
    Launch,
    Piece,
    Plan,
    arg_map,
    kept_piece,
    lookback_states,
)
from gpualgo._cuda.templates import (
    START,
    VECTOR_BYTES,
    WARP,
    fold_of,
    kernel_spec,
    launch,
)
from gpualgo._driver import device as gpu
from gpualgo._driver.device import aligned
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import planners

# --- Tuning table of segments on a GPU: kernels, template arguments, tilings.
#
# Tilings depend on lengths and dtypes only, never on the GPU, so that results have the same bits.

# Reductions.
BLOCK_THREADS = 256
ROW_BYTES = 32  # bytes of elements that a lane loads before it combines them
MOST_ROWS = 8
STAGE_ITEMS, STAGE_BYTES = 32, 128  # per lane, in shared memory
MOST_LANES = {True: 7, False: 32}  # of a segment there, if the operator commutes; else a warp
AHEAD, CHUNK_AHEAD = 2, 4  # tiles of such rows under way, of a segment and of a chunk
# Least blocks on a multiprocessor, by what a launch takes (SegmentsTaken): for an operator that
# does not commute, and one that does. Of chunks it has so many.
BLOCKS_PER_SM = {"all": (4, 4), "segments": (6, 4), "chunks": (4, 4)}
ONE_LAUNCH_ITEMS = 1 << 22  # more elements take several launches: of scans, too
WARP_ITEMS = 1024  # elements of a warp's segments of mean length
LEAST_LONG, LONG_PER_WARP = 512, 1 << 14  # longer segments are cut into chunks
CHUNK_BITS, MOST_CHUNKS = 12, 1 << 15  # log2 of a chunk's least elements; chunks per segment
CHUNK_BYTES = 16  # bytes of an entry in the list of chunks
STRETCH_ITEMS = 128  # stretch_items of segments/heads.cuh
MARKED_AT_ONCE = 4  # offsets of a thread, in a scan of one launch
LEAST_STARTED = 64  # elements per segment with a start: of fewer, marking apart takes less time
MARK_BYTES = 32  # bytes of a thread's registers that a scan needs for marks


@dataclass(frozen=True)
class Policy:
    """Template arguments of the kernel of a reduction (SegmentsPolicy)."""

    rows: int
    stage_items: int
    most_lanes: int
    itemsize: int
    commutes: bool
    taken: str = "all"
    overlaps: bool = False  # the second of two launches may start while the first runs (sm_90)

    @property
    def shared_bytes(self) -> int:
        """Size of Shared; the kernel checks it."""
        size = (self.stage_items * WARP + self.stage_items) * self.itemsize
        return -(-BLOCK_THREADS // WARP * size // VECTOR_BYTES) * VECTOR_BYTES

    @property
    def blocks_per_sm(self) -> int:
        return BLOCKS_PER_SM[self.taken][self.commutes]

    @property
    def cpp(self) -> Cpp:
        return cpp(
            "SegmentsPolicy", BLOCK_THREADS, self.rows, AHEAD, CHUNK_AHEAD, self.stage_items,
            self.most_lanes, self.blocks_per_sm, self.shared_bytes,
            f"gpualgo::SegmentsTaken::{self.taken}", self.overlaps,
        )  # fmt: skip


def policies_of(
    acc: Dtype, num_items: int, may_overlap: bool, is_commutative: bool
) -> list[Policy]:
    """Return the policies of the launches of a reduction."""
    rows = _pow2(ROW_BYTES // acc.itemsize, MOST_ROWS)
    stage_items = _pow2(STAGE_BYTES // acc.itemsize, STAGE_ITEMS)
    # Whether longer segments are cut depends on the number of segments, which decides no bits.
    most_lanes = min(MOST_LANES[is_commutative], LEAST_LONG // stage_items)
    kind = Policy(rows, stage_items, most_lanes, acc.itemsize, is_commutative)
    if num_items <= ONE_LAUNCH_ITEMS:
        return [kind]
    return [replace(kind, taken=taken, overlaps=may_overlap) for taken in ("segments", "chunks")]


class Tiling(NamedTuple):
    """Tiling of segments."""

    per_warp: int
    long_items: int
    chunk_bits: int
    capacity: int  # upper bound on the number of chunks


def tiling_of(num_items: int, num_segments: int) -> Tiling:
    """Return the tiling of elements and segments, of which there is at least one."""
    mean = max(1, num_items // num_segments)
    per_warp = _pow2(WARP_ITEMS // mean, WARP)
    chunk_bits = max(CHUNK_BITS, (-(-num_items // MOST_CHUNKS) - 1).bit_length())
    long_items = min(1 << chunk_bits, max(LEAST_LONG, LONG_PER_WARP // per_warp))
    capacity = num_items // long_items + (num_items >> chunk_bits) + 1
    return Tiling(per_warp, long_items, chunk_bits, capacity)


def reduce_spec(
    op: Operator, source: records.Source, acc: Dtype, index: Dtype, access: Cpp, policy: Policy,
    has_starts: bool,
) -> Spec:  # fmt: skip
    """Return a kernel of a reduction."""
    types = policy.cpp, fold_of(op, acc), acc, source, index, access, has_starts
    return kernel_spec("segments/reduce.cuh", "segments_kernel", *types)


def scan_spec(
    op: Operator, source: records.Source, acc: Dtype, access: Cpp, policy: tiles.Policy,
    is_exclusive: bool, has_init: bool, index: Dtype, has_starts: bool, sets_marks: bool,
) -> Spec:  # fmt: skip
    """Return the kernel of a scan; `index` is the offsets' dtype."""
    written = records.field_dtypes(acc)
    params = cpp("MarkedParams", acc, source, len(written), access)
    offsets = cpp("ByOffsets", index, has_starts, sets_marks)
    return kernel_spec(
        "by_key/kernel.cuh", "by_key_kernel", policy.cpp(policy.shared_bytes(written, acc)),
        f"gpualgo::Way::{'exclusive' if is_exclusive else 'inclusive'}",
        offsets, fold_of(op, acc), "gpualgo::NoKey", acc, source, "gpualgo::uint32", params,
        has_init, params=params,
    )  # fmt: skip


def heads_spec(index: Dtype) -> Spec:
    """Return the kernel that marks segment starts."""
    return kernel_spec("segments/heads.cuh", "segment_heads_kernel", index, BLOCK_THREADS)


def _pow2(number: int, limit: int) -> int:
    """Return the largest power of two that exceeds neither `number` nor `limit`."""
    return min(limit, 1 << max(1, number).bit_length() - 1)


_LIST_BYTES = 24  # ChunkList
_BOUNDS_BYTES = 256  # two offsets and a count of blocks, before the marks


@planners.for_cuda.register(SegmentedReduction)
def _(
    problem: SegmentedReduction, views: Sequence[View], op: Operator, targets: Sequence[View]
) -> Plan:
    """Return the plan of a reduction of segments, at least one, into targets of any strides."""
    own, init_views = views[: problem.num_own], views[problem.num_own :]
    *inputs, offsets = own
    at, device, acc = arg_map(len(views), len(targets)), offsets.device, problem.acc
    num_items, num_segments, has_starts = inputs[0].shape[0], problem.num_segments, bool(init_views)
    tiling, may_overlap = tiling_of(num_items, num_segments), gpu.get(device).may_overlap
    access, fields = _access(problem.source, inputs)
    chunk_bytes = aligned(tiling.capacity * CHUNK_BYTES)
    pieces = [
        Piece(_LIST_BYTES, TICKETS, is_zeroed=True),
        kept_piece(chunk_bytes + tiling.capacity * acc.itemsize),
    ]
    slots = {
        **_slots(own, at), "init": START, "list": at.piece(0), "chunks": at.piece(1),
        "partials": (at.piece(1), chunk_bytes),
        "starts": at.sources[len(own) :] or [NONE] * len(targets),
    }  # fmt: skip
    warps = BLOCK_THREADS // WARP
    groups = -(-num_segments // (tiling.per_warp * warps))
    most_others = -(-tiling.capacity // warps)
    kinds = policies_of(acc, num_items, may_overlap, op.commutative)
    specs = [
        reduce_spec(op, problem.source, acc, offsets.dtype, access, kind, has_starts)
        for kind in kinds
    ]
    build.kernels(specs, device)
    steps = []
    for spec, kind in zip(specs, kinds, strict=True):
        others = min(gpu.get(device).num_sms * kind.blocks_per_sm, most_others)
        of_segments, of_chunks = kind.taken != "chunks", kind.taken != "segments"
        steps.append(launch(
            spec, device, groups * of_segments + others * of_chunks, BLOCK_THREADS, slots,
            shared_bytes=kind.shared_bytes * of_segments, overlaps=kind.overlaps and of_chunks,
            num_items=num_items, num_segments=num_segments, num_groups=groups * of_segments,
            offset_step=offsets.strides[0], **tiling._asdict(), is_start=problem.is_start,
            start_steps=[view.strides[0] for view in init_views] or [0] * len(targets),
            output_steps=[target.strides[0] for target in targets], access=fields,
        ))  # fmt: skip
    return Plan(device, steps, pieces)


@planners.for_cuda.register(SegmentedScan)
def _(problem: SegmentedScan, views: Sequence[View], op: Operator, targets: Sequence[View]) -> Plan:
    """Return the plan of a scan of segments of at least one element."""
    own, init_views = views[: problem.num_own], views[problem.num_own :]
    *inputs, offsets = own
    source, acc, device = problem.source, problem.acc, offsets.device
    (num_items,), written = inputs[0].shape, records.field_dtypes(acc)
    kind = tiles.policy_of(source, written, acc, MARK_BYTES)
    num_tiles = -(-num_items // kind.tile_items)
    access, fields = reading.access_of(source, inputs[0].shape, inputs, kind.items)
    states, num_words = lookback_states(tiles.carry_bytes(num_tiles, acc))
    (num_offsets,), has_starts = offsets.shape, bool(init_views)
    is_one = num_items <= ONE_LAUNCH_ITEMS
    is_one &= num_offsets * LEAST_STARTED <= num_items or not has_starts
    num_bytes, table_bytes = marks_bytes(num_items), 8 * -(-num_items // STRETCH_ITEMS) * has_starts
    if is_one:
        pieces = [states, Piece(num_bytes, MARKS, is_zeroed=True), kept_piece(table_bytes)]
    else:
        pieces = [states, kept_piece(aligned(num_bytes) + table_bytes)]
    has_init = problem.is_start and not has_starts
    spec = scan_spec(
        op, source, acc, access, kind, problem.is_exclusive, has_init, offsets.dtype,
        has_starts, is_one,
    )  # fmt: skip
    at, most_blocks = arg_map(len(views), len(targets)), gpu.get(device).num_sms
    most_blocks *= kind.blocks_per_sm
    slots = {
        **_slots(own, at), **slots_of_marks(at.piece(1)), "init": START, "states": at.piece(0),
        "num_marked": (at.piece(1), 16), "firsts": NONE,
        "starts": at.sources[len(own) :] or [NONE] * len(targets),
    }  # fmt: skip
    if has_starts:
        slots["firsts"] = at.piece(2) if is_one else (at.piece(1), aligned(num_bytes))
    markers = is_one * min(most_blocks, -(-num_offsets // (MARKED_AT_ONCE * kind.block_threads)))
    step = launch(
        spec, device, markers + min(num_tiles, most_blocks), kind.block_threads, slots,
        shared_bytes=kind.shared_bytes(written, acc), num_items=num_items, num_tiles=num_tiles,
        num_words=num_words, num_markers=markers, num_offsets=num_offsets,
        offset_step=offsets.strides[0],
        start_steps=[view.strides[0] for view in init_views] or [0] * len(targets),
        output_steps=[target.strides[0] for target in targets], access=fields,
    )  # fmt: skip
    if is_one:
        return Plan(device, [step], pieces)
    marked = {key: slots[key] for key in ("heads", "bounds", "firsts")}
    mark_launch = launch_marks(offsets, at.sources[len(inputs)], num_items, marked)
    return Plan(device, [Clear(at.piece(1), num_bytes), mark_launch, step], pieces)


def marks_bytes(num_items: int) -> int:
    """Return the size of the marks of segment starts; they are zero at first."""
    return _BOUNDS_BYTES + 4 * -(-num_items // 32)


def slots_of_marks(marks: int) -> dict[str, Any]:
    """Return the slots of marks in temporary storage."""
    return {"heads": (marks, _BOUNDS_BYTES), "bounds": marks}


def launch_marks(offsets: View, place: int, num_items: int, marks: dict[str, Any]) -> Launch:
    """Return the launch that marks segment starts; `place` is the slot of the offsets."""
    device, threads, (num_offsets,) = offsets.device, BLOCK_THREADS, offsets.shape
    most_blocks = gpu.get(device).num_sms * 2048 // threads
    grid = min(-(-num_offsets // threads), most_blocks)
    return launch(
        heads_spec(offsets.dtype), device, grid, threads, {"offsets": place, **marks},
        num_items=num_items, num_offsets=num_offsets, offset_step=offsets.strides[0],
    )  # fmt: skip


def _slots(views: Sequence[View], at: ArgMap) -> dict[str, Any]:
    """Return the argument slots of inputs, offsets and results."""
    count = len(views) - 1
    return {"input": at.sources[:count], "offsets": at.sources[count], "output": at.targets}


def _access(source: records.Source, views: Sequence[View]) -> tuple[Cpp, dict[str, Any]]:
    """Return how the kernels access elements, and the fields of that access's parameters."""
    strides = tuple(view.strides[0] for view in views)
    if views[0].shape[0] <= 1 or strides == records.read_bytes(source):
        return reading.dense(in_packs=False), {}
    return reading.spaced(len(views), is_even=True), {"places": [(views[0].shape[0], strides)]}
