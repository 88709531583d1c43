"""Scan on the GPU: kernel, grid, parameters and temporary storage for a layout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._algorithms.scan import policy
from gpualgo._algorithms.scan import policy_lines as lines_policy
from gpualgo._algorithms.scan.cuda_case import Case, sizes_of
from gpualgo._algorithms.scan.cuda_layout import Way, canonical, is_dense, way_of
from gpualgo._algorithms.transform import cuda as transformation
from gpualgo._algorithms.transform.policy import Applied
from gpualgo._arrays.view import View
from gpualgo._base import records
from gpualgo._base.extents import Dims, dense_strides, merge
from gpualgo._cuda import build
from gpualgo._cuda.launch import Launch
from gpualgo._cuda.parameters import Packed
from gpualgo._cuda.pieces import STATES, Piece
from gpualgo._cuda.plan import FIRST, NONE, Places, Plan
from gpualgo._cuda.templates import START, WARP, Access, tagged_bytes
from gpualgo._driver import device as gpu
from gpualgo._driver.workspace import STATE_BYTES
from gpualgo._operators.joint import without_source
from gpualgo._operators.operator import Operator

if TYPE_CHECKING:
    from gpualgo._algorithms.scan.problem import Scan

Dtype = np.dtype[Any]
_CONTROL_BYTES = 256  # LookbackControl


def plan_of(
    problem: Scan, views: Sequence[View], op: Operator, targets: Sequence[View],
    way: Way | None = None, at: Places | None = None,
) -> Plan:  # fmt: skip
    """Return the plan of a scan of fields into targets of any strides.

    `way` is the strategy of the larger array if `views` are a part of one; `at` gives the argument
    slots in a larger plan.
    """
    source, at = problem.source, at or Places(len(views), len(targets))
    if way is None:
        way = way_of(problem, source, views, targets)
    if isinstance(source, records.Computed):
        elements, _ = canonical(way.axis, views, targets)
        if way.kernel != "tiles" or len(elements) > 1:
            return _of_computed(problem, source, views, op, targets, at)
    return _plan_of(problem, source, views, op, targets, at, way)


def _of_computed(
    problem: Scan, source: records.Computed, views: Sequence[View], op: Operator,
    targets: Sequence[View], at: Places,
) -> Plan:  # fmt: skip
    """Return a plan that computes the elements into the results' memory and scans them there."""
    acc, shape = problem.acc, problem.shape
    applied = Applied(op.source, tuple(map(records.number_of, source.numbers)), acc, source.numbers)
    computed = [
        target._replace(shape=shape, strides=dense_strides(shape, target.dtype.itemsize))
        if target.shape != shape else target
        for target in targets
    ]  # fmt: skip
    slots = [at.target(i) for i in range(len(targets))], [at.source(i) for i in range(len(views))]
    first = transformation.plan_of(applied, views, shape, computed, slots)
    way = way_of(problem, acc, computed, targets)
    plan = _plan_of(problem, acc, computed, without_source(op), targets, at, way, is_in_place=True)
    plan.steps[:0] = first.steps  # the transform takes no temporary storage
    return plan


def _plan_of(
    problem: Scan, source: Any, views: Sequence[View], op: Operator, targets: Sequence[View],
    at: Places, way: Way, is_in_place: bool = False,
) -> Plan:  # fmt: skip
    """Return the plan of a scan; `is_in_place`: its input is in the memory of its results."""
    acc, device, kernel = problem.acc, views[0].device, way.kernel
    elements, lines = canonical(way.axis, views, targets)
    is_simple = (
        not records.is_record(acc)
        and not records.is_record(source)
        and len(lines) <= 1
        and kernel in ("tiles", "rows")
    )
    is_simple = is_simple and is_dense(elements, sizes_of(source, acc))
    pointers = [view.ptr for view in (*views, *targets)]
    offsets = [0] * len(pointers)
    if way.is_reverse and not is_simple:
        # The scan's first element is the last in memory. The kernel itself reverses dense lines.
        offsets = [_last_offset(elements, side) for side in range(len(pointers))]
        elements = [(extent, tuple(-s for s in strides)) for extent, strides in elements]
    addresses = tuple(pointer + offset for pointer, offset in zip(pointers, offsets, strict=True))
    case = Case(
        op, source, acc, elements, lines, addresses, tuple(offsets), way.is_exclusive,
        way.is_reverse and is_simple, device, at, is_in_place, way,
    )  # fmt: skip
    return _KERNELS[kernel](case)


def _last_offset(elements: Dims, side: int) -> int:
    """Return the byte offset of a line's last element."""
    return sum((extent - 1) * strides[side] for extent, strides in elements)


def _tiles(case: Case) -> Plan:
    """Plan scan_tiles_kernel or scan_wave_kernel: few long lines."""
    source, acc, num_items, widest = case.source, case.acc, case.num_items, case.widest
    cut = policy.policy_of(case.way.num_bytes, source, acc)
    tiles_per_line = -(-num_items // cut.tile_items(widest))
    num_tiles = tiles_per_line * case.num_lines
    states, num_words = _states(num_tiles * tagged_bytes(acc) // 8 if tiles_per_line > 1 else 0)
    access, fields = _access(case, isinstance(cut, policy.WavePolicy))
    fixed = {
        "num_tiles": num_tiles, "num_items": num_items, "num_words": num_words,
        "tiles_per_line": tiles_per_line, "access": fields,
    }  # fmt: skip
    if isinstance(cut, policy.WavePolicy):
        spec = policy.wave_spec(case.op, source, acc, access, cut, case.is_exclusive)
        packed = spec.parameters.pack(**fixed)
        return _plan(case, spec, num_tiles, cut.block_threads, packed, states)
    capability = gpu.get(case.device).capability
    cut = cut.fitting(source, acc, gpu.get(case.device).shared_limit)
    spec = policy.tiles_spec(case.op, source, acc, access, cut, case.is_exclusive, capability)
    grid = min(num_tiles, gpu.get(case.device).num_sms * cut.blocks_per_sm)
    threads = cut.block_threads + 2 * WARP
    packed = spec.parameters.pack(**fixed)
    return _plan(case, spec, grid, threads, packed, states, cut.shared_bytes(source, acc))


def _rows(case: Case) -> Plan:
    """Plan scan_rows_kernel: many contiguous lines."""
    source, acc = case.source, case.acc
    cut = lines_policy.rows_cut(case.num_items, source, acc)
    units = source.itemsize, acc.itemsize
    if case.is_flat:
        strides = case.lines[0][1] if case.lines else (0, 0)
        n = math.gcd(case.num_items, cut.pitch(case.widest))  # divides both line pitches
        units = case.unit(0, (strides[0], n * units[0])), case.unit(1, (strides[1], n * units[1]))
        access = lines_policy.dense_rows(*units, case.is_reversed)
        fields: dict[str, Any] = {"strides": strides}
    else:
        strides = case.elements[0][1] if case.elements else (0,) * len(case.sizes)
        access = lines_policy.spaced_rows(source, acc)
        fields = {"strides": strides, "lines": case.lines}
    in_units, out_units = [
        1 if cut.is_long else case.num_items * dtype.itemsize // unit
        for dtype, unit in zip((source, acc), units, strict=True)
    ]
    spec = lines_policy.rows_spec(
        case.op, source, acc, access, cut, case.is_exclusive, case.is_async
    )
    packed = spec.parameters.pack(
        num_lines=case.num_lines, num_items=case.num_items, in_units=in_units,
        out_units=out_units, access=fields,
    )  # fmt: skip
    grid = -(-case.num_lines // cut.block_lines)
    return _plan(case, spec, grid, lines_policy.ROWS_THREADS, packed)


def _walks(case: Case) -> Plan:
    """Plan scan_walks_kernel: very many or short columns."""
    source, acc = case.source, case.acc
    num_columns, column_strides = case.inner_lines
    alignment_limit = 1
    if column_strides == case.sizes:
        dims = [*case.elements, *case.lines[:-1]]
        alignment_limit = min(
            case.unit(side, (strides[side] for _, strides in dims)) // size
            for side, size in enumerate(case.sizes)
        )
    items = lines_policy.walk_items(case.num_lines, num_columns, case.widest, alignment_limit)
    inner = tuple(stride * items for stride in column_strides)
    walks = merge([*case.lines[:-1], (num_columns // items, inner)])
    num_walks = case.num_lines // items
    spec = lines_policy.walks_spec(case.op, source, acc, items, case.is_exclusive)
    packed = spec.parameters.pack(
        num_rows=case.num_items, num_walks=num_walks, row_strides=case.elements[0][1], walks=walks
    )
    threads = lines_policy.WALKS_THREADS
    return _plan(case, spec, -(-num_walks // threads), threads, packed)


def _columns(case: Case) -> Plan:
    """Plan scan_columns_kernel: fewer and longer columns."""
    source, acc = case.source, case.acc
    num_columns, column_strides = case.inner_lines
    row_strides, batches = case.elements[0][1], case.lines[:-1]
    num_batches = math.prod(extent for extent, _ in batches)
    cut = lines_policy.cut_columns(*case.way.columns, source, acc).covering(num_columns)
    units, is_flipped = _column_units(case, cut)
    per_chunk = cut.strips * num_batches
    num_tiles = per_chunk * cut.chunks
    row_words = cut.width * -(-cut.items * acc.itemsize // 4)
    states, num_words = _states(num_tiles * row_words if cut.chunks > 1 else 0)
    spec = lines_policy.columns_spec(
        case.op, source, acc, cut, units, case.is_exclusive, case.is_async
    )
    packed = spec.parameters.pack(
        num_rows=case.num_items, num_tiles=num_tiles, num_chunks=cut.chunks, num_words=num_words,
        segments=cut.segments, is_flipped=is_flipped, row_strides=row_strides,
        column_strides=column_strides, num_columns=num_columns, tiles_per_chunk=per_chunk,
        num_strips=cut.strips, batches=batches,
    )  # fmt: skip
    resident = gpu.get(case.device).num_sms * lines_policy.COLUMNS_GRID
    grid = num_tiles if cut.chunks == 1 else min(num_tiles, resident)
    return _plan(case, spec, grid, cut.threads, packed, states, cut.shared_bytes(source, acc))


_KERNELS = {"tiles": _tiles, "rows": _rows, "walks": _walks, "columns": _columns}


def _states(num_words: int) -> tuple[Piece | None, int]:
    """Return memory for look-back states, and how many words the kernel clears after use."""
    if not num_words:
        return None, 0
    piece = Piece(_CONTROL_BYTES + 8 * num_words, STATES, is_zeroed=True)
    return piece, max(num_words, (STATE_BYTES - _CONTROL_BYTES) // 8)


def _plan(
    case: Case, spec: build.Spec, grid: int, threads: int, packed: Packed,
    states: Piece | None = None, shared_bytes: int = 0,
) -> Plan:  # fmt: skip
    kernel = build.kernel(spec, case.device)
    inputs, outputs = range(case.num_inputs), range(len(case.addresses) - case.num_inputs)
    at = case.at
    input_slot = at.target if case.is_in_place else at.source
    common = {
        "init": START, "init_address": FIRST,
        "input": [(input_slot(i), case.starts[i]) for i in inputs],
        "output": [(at.target(i), case.starts[case.num_inputs + i]) for i in outputs],
        "states": at.piece(0) if states else NONE,
    }  # fmt: skip
    slots = {"common": common}
    launch = Launch(kernel, grid, threads, packed, case.device, slots, shared_bytes=shared_bytes)
    return Plan(case.device, [launch], [states] if states else [])


def _access(case: Case, is_wave: bool) -> tuple[Access, dict[str, Any]]:
    """Return how the kernel accesses elements, and the fields of that access's parameters."""
    source, acc = case.source, case.acc
    if isinstance(source, records.Computed):
        steps = case.elements[0][1] if case.elements else (0,) * len(case.addresses)
        return policy.computed(source, acc), {"steps": steps, "lines": case.lines}
    if case.is_apart and not is_wave:
        return policy.apart(source, acc), {"lines": case.lines}
    if case.is_of_records and len(case.elements) <= 1:
        steps = case.elements[0][1] if case.elements else (0,) * len(case.sizes)
        access = policy.stepped(source, acc, case.is_whole(0), case.is_whole(1))
        return access, {"steps": steps, "lines": case.lines}
    if case.is_of_records:  # a line of several dimensions is the only one
        return policy.winding(source, acc), {"elements": case.elements}
    if not case.is_flat:
        return policy.strided(source, acc), {"lines": case.lines, "elements": case.elements}
    strides = case.lines[0][1] if case.lines else (0, 0)
    # A reversed scan starts at the end of a line.
    ends = case.num_items * source.itemsize, case.num_items * acc.itemsize
    alignments = case.addresses[0] | strides[0], case.addresses[1] | strides[1]
    if case.is_reversed:
        alignments = alignments[0] | ends[0], alignments[1] | ends[1]
    access = policy.flat(source, acc, alignments, case.is_reversed)
    return access, {
        "input_stride": strides[0], "output_stride": strides[1], "num_items": case.num_items,
    }  # fmt: skip


def _column_units(case: Case, cut: lines_policy.ColumnsCut) -> tuple[tuple[int, int], bool]:
    """Return the access sizes of rows (0: by element), and whether tiles are flipped.

    A narrow tile without gaps is copied as one piece and has the same layout in shared memory.
    """
    num_columns, column_strides = case.inner_lines
    num_rows, row_strides = case.elements[0]
    units = [0, 0]
    is_flipped = None
    for side, itemsize in enumerate(case.sizes):
        size, step = num_columns * itemsize, row_strides[side]
        if column_strides[side] != itemsize or case.is_of_records:
            continue
        offsets = [strides[side] for _, strides in case.lines[:-1]]
        if cut.is_narrow:
            if abs(step) != size or is_flipped not in (None, step < 0):
                continue
            is_flipped = step < 0
            offsets.append(size * cut.rows)
            if is_flipped:  # tiles are counted from the end of the last row
                units[side] = case.unit(side, [*offsets, size * num_rows], size)
            else:
                units[side] = case.unit(side, offsets)
        else:
            unit = case.unit(side, [*offsets, step, size, cut.width * cut.items * itemsize])
            units[side] = unit if unit >= cut.items * itemsize else 0
    return (units[0], units[1]), bool(is_flipped)
