"""Segments on a GPU: layout of elements, launches, and temporary storage."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from gpualgo._algorithms.by_key import cuda as tiles
from gpualgo._algorithms.segments.problem import SegmentedReduction, SegmentedScan
from gpualgo._algorithms.select import cuda as reading
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._base.records import Dtype
from gpualgo._base.strides import merge
from gpualgo._cuda.build import Spec
from gpualgo._cuda.headers import Cpp, cpp
from gpualgo._cuda.plan import (
    MARKS,
    NONE,
    TICKETS,
    ArgMap,
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
from gpualgo._operators.operator import Operator, without_source
from gpualgo._pipeline import planners

# --- Tuning table of segments on a GPU: kernels, template arguments, tilings.
#
# Tilings depend on lengths and dtypes only, never on the GPU, so that results have the same bits.

# Reductions. Not measured on a GPU yet.
BLOCK_THREADS = 256
ROW_BYTES = 32  # bytes of elements that a lane loads before it combines them
MOST_ROWS = 8
STAGE_ITEMS, STAGE_BYTES = 32, 128  # per lane, in shared memory
AHEAD = int(os.environ.get("SEGS_AHEAD", 2))  # tiles of such rows, of a chunk
BLOCKS_PER_SM = int(os.environ.get("SEGS_BLOCKS", 4))  # resident; as many take chunks
WARP_ITEMS = 1024  # elements of a warp's segments of mean length
LEAST_LONG, LONG_PER_WARP = 512, 1 << 14  # longer segments are cut into chunks
CHUNK_BITS, MOST_CHUNKS = 12, 1 << 15  # log2 of a chunk's least elements; chunks per segment
CHUNK_BYTES = 32  # bytes of an entry in the list of chunks
STRETCH_ITEMS, MARKED_AT_ONCE = 128, 4  # as in segments/heads.cuh
MARK_BYTES = 32  # bytes of a thread's registers that a scan needs for marks


@dataclass(frozen=True)
class Policy:
    """Template arguments of the kernel of a reduction (SegmentsPolicy)."""

    rows: int
    stage_items: int
    itemsize: int

    @property
    def shared_bytes(self) -> int:
        """Size of Shared; the kernel checks it."""
        size = (self.stage_items * WARP + self.stage_items) * self.itemsize
        return -(-BLOCK_THREADS // WARP * size // VECTOR_BYTES) * VECTOR_BYTES

    @property
    def cpp(self) -> Cpp:
        sizes = BLOCK_THREADS, self.rows, AHEAD, self.stage_items, BLOCKS_PER_SM
        return cpp("SegmentsPolicy", *sizes, self.shared_bytes)


def policy_of(acc: Dtype) -> Policy:
    rows = _pow2(ROW_BYTES // acc.itemsize, MOST_ROWS)
    return Policy(rows, _pow2(STAGE_BYTES // acc.itemsize, STAGE_ITEMS), acc.itemsize)


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
    op: Operator, source: records.Source, acc: Dtype, index: Dtype, access: Cpp, policy: Policy
) -> Spec:
    """Return the kernel of a reduction."""
    types = policy.cpp, fold_of(op, acc), acc, source, index, access
    return kernel_spec("segments/reduce.cuh", "segments_kernel", *types)


def scan_spec(
    op: Operator, source: records.Source, acc: Dtype, access: Cpp, policy: tiles.Policy,
    is_exclusive: bool, has_init: bool, index: Dtype, has_starts: bool,
) -> Spec:  # fmt: skip
    """Return the kernel of a scan; `index` is the offsets' dtype."""
    written = records.field_dtypes(acc)
    params = cpp("MarkedParams", acc, source, len(written), access)
    return kernel_spec(
        "by_key/kernel.cuh", "by_key_kernel", policy.cpp(policy.shared_bytes(written, acc)),
        f"gpualgo::Way::{'exclusive' if is_exclusive else 'inclusive'}",
        cpp("ByOffsets", index, has_starts), fold_of(op, acc), "gpualgo::NoKey", acc, source,
        "gpualgo::uint32", params, has_init, params=params,
    )  # fmt: skip


def heads_spec(index: Dtype) -> Spec:
    """Return the kernel that marks segment starts."""
    return kernel_spec("segments/heads.cuh", "segment_heads_kernel", index, BLOCK_THREADS)


def starts_spec(op: Operator, acc: Dtype, index: Dtype) -> Spec:
    """Return the kernel that combines initial values with the segments' results."""
    types = BLOCK_THREADS, fold_of(op, acc), acc, index
    return kernel_spec("segments/starts.cuh", "segment_starts_kernel", *types)


def _pow2(number: int, limit: int) -> int:
    """Return the largest power of two that exceeds neither `number` nor `limit`."""
    return min(limit, 1 << max(1, number).bit_length() - 1)


_LIST_BYTES = 24  # ChunkList
_BOUNDS_BYTES = 256  # two offsets and a count of blocks, before the marks


@planners.for_cuda.register(SegmentedReduction)
def _(
    problem: SegmentedReduction, views: Sequence[View], op: Operator, targets: Sequence[View]
) -> Plan:
    own, init_views = views[: problem.num_own], views[problem.num_own :]
    at = arg_map(len(views), len(targets))
    return reduction(
        problem.source, problem.acc, own, op, targets, at, problem.is_start, init_views
    )


def reduction(
    source: records.Source, acc: Dtype, views: Sequence[View], op: Operator,
    targets: Sequence[View], at: ArgMap, is_start: bool, init_views: Sequence[View] = (),
) -> Plan:  # fmt: skip
    """Return the plan of a reduction of segments, at least one, into targets of any strides.

    `views` are the elements and the offsets; `init_views` have an initial value per segment. `at`
    gives the argument slots of both, in this order.
    """
    *inputs, offsets = views
    num_items, num_segments = inputs[0].shape[0], offsets.shape[0] - 1
    if init_views:
        starts = Plan(offsets.device, [_launch_starts(acc, views, init_views, op, targets, at)])
        if not num_items:
            return starts
        return reduction(source, acc, views, op, targets, at, is_start=False).then(starts)
    device = offsets.device
    kind, tiling = policy_of(acc), tiling_of(num_items, num_segments)
    access, fields = _access(source, inputs)
    chunk_bytes = aligned(tiling.capacity * CHUNK_BYTES)
    pieces = [
        Piece(_LIST_BYTES, TICKETS, is_zeroed=True),
        kept_piece(chunk_bytes + tiling.capacity * acc.itemsize),
    ]
    slots = {
        **_slots(views, at), "init": START, "list": at.piece(0), "chunks": at.piece(1),
        "partials": (at.piece(1), chunk_bytes),
    }  # fmt: skip
    warps = BLOCK_THREADS // WARP
    groups = -(-num_segments // (tiling.per_warp * warps))
    others = min(gpu.get(device).num_sms * BLOCKS_PER_SM, -(-tiling.capacity // warps))
    step = launch(
        reduce_spec(op, source, acc, offsets.dtype, access, kind), device, groups + others,
        BLOCK_THREADS, slots, shared_bytes=kind.shared_bytes, num_items=num_items,
        num_segments=num_segments, num_groups=groups, offset_step=offsets.strides[0],
        **tiling._asdict(), is_start=is_start,
        output_steps=[target.strides[0] for target in targets], access=fields,
    )  # fmt: skip
    return Plan(device, [step], pieces)


@planners.for_cuda.register(SegmentedScan)
def _(problem: SegmentedScan, views: Sequence[View], op: Operator, targets: Sequence[View]) -> Plan:
    """Return the plan of a scan of segments of at least one element."""
    own, init_views = views[: problem.num_own], views[problem.num_own :]
    *inputs, offsets = own
    source, acc, device = problem.source, problem.acc, offsets.device
    (num_items,), written = inputs[0].shape, records.field_dtypes(acc)
    kind = tiles.policy_of(source, written, acc, MARK_BYTES)
    num_tiles = -(-num_items // kind.tile_items)
    dims = merge([(num_items, tuple(view.strides[0] for view in inputs))])
    access, fields = reading.access_of(source, dims, [view.ptr for view in inputs], kind.items)
    states, num_words = lookback_states(tiles.carry_bytes(num_tiles, acc))
    pieces = [states, Piece(marks_bytes(num_items), MARKS, is_zeroed=True)]
    if init_views:
        pieces.append(kept_piece(8 * -(-num_items // STRETCH_ITEMS)))
    has_init = problem.is_start and not init_views
    spec = scan_spec(
        op, source, acc, access, kind, problem.is_exclusive, has_init, offsets.dtype,
        bool(init_views),
    )  # fmt: skip
    at, most_blocks = arg_map(len(views), len(targets)), gpu.get(device).num_sms
    most_blocks *= kind.blocks_per_sm
    slots = {
        **_slots(own, at), **slots_of_marks(at.piece(1)), "init": START, "states": at.piece(0),
        "num_marked": (at.piece(1), 16), "firsts": at.piece(2) if init_views else NONE,
        "starts": at.sources[len(own) :] or [NONE] * len(targets),
    }  # fmt: skip
    (num_offsets,) = offsets.shape
    markers = min(most_blocks, -(-num_offsets // (MARKED_AT_ONCE * kind.block_threads)))
    step = launch(
        spec, device, markers + min(num_tiles, most_blocks), kind.block_threads, slots,
        shared_bytes=kind.shared_bytes(written, acc), num_items=num_items, num_tiles=num_tiles,
        num_words=num_words, num_markers=markers, num_offsets=num_offsets,
        offset_step=offsets.strides[0],
        start_steps=[view.strides[0] for view in init_views] or [0] * len(targets),
        output_steps=[target.strides[0] for target in targets], access=fields,
    )  # fmt: skip
    return Plan(device, [step], pieces)


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
    grid = min(-(-num_offsets // (MARKED_AT_ONCE * threads)), most_blocks)
    return launch(
        heads_spec(offsets.dtype), device, grid, threads, {"offsets": place, **marks},
        num_items=num_items, num_offsets=num_offsets, offset_step=offsets.strides[0],
    )  # fmt: skip


def _launch_starts(
    acc: Dtype, own: Sequence[View], init_views: Sequence[View], op: Operator,
    targets: Sequence[View], at: ArgMap,
) -> Launch:  # fmt: skip
    """Return the launch that applies an initial value per segment."""
    *inputs, offsets = own
    num_segments, threads = offsets.shape[0] - 1, BLOCK_THREADS
    slots = {**_slots(own, at), "starts": at.sources[len(own) :]}
    del slots["input"]
    return launch(
        starts_spec(without_source(op), acc, offsets.dtype), offsets.device,
        -(-num_segments // threads), threads, slots,
        num_items=inputs[0].shape[0], num_segments=num_segments,
        offset_step=offsets.strides[0], start_steps=[view.strides[0] for view in init_views],
        output_steps=[target.strides[0] for target in targets],
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
