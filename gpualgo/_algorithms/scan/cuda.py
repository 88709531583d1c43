"""Scan on the GPU: kernel, grid, parameters and temporary storage for a layout."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from gpualgo._algorithms.scan import problem as parameters
from gpualgo._algorithms.scan import tuning
from gpualgo._algorithms.scan.problem import Scan, Step
from gpualgo._algorithms.scan.tuning import kernel_of
from gpualgo._algorithms.transform import cuda as elementwise
from gpualgo._arrays.view import Interface, View, placeholder
from gpualgo._base import records
from gpualgo._base.strides import Dims, dense_strides, merge, ordered_strides
from gpualgo._cuda import build
from gpualgo._cuda.headers import Cpp, cpp
from gpualgo._cuda.plan import (
    FIRST,
    KEPT,
    NONE,
    ArgMap,
    Launch,
    Piece,
    Plan,
    arg_map,
    lookback_states,
)
from gpualgo._cuda.templates import START, VECTOR_BYTES, WARP, Applied, launch_again, tagged_bytes
from gpualgo._driver import device as gpu
from gpualgo._driver.device import KEPT_BYTES, aligned
from gpualgo._operators.operator import Operator, mirrored, without_source
from gpualgo._pipeline import planners

# --- Lines of a scan in canonical form: the dimensions of a line and those of all lines.


class ScanStrategy(NamedTuple):
    """Scan strategy: everything that affects result bits except elements, operator and dtypes.

    Lines that are scanned in parts use the strategy of the whole array.
    """

    kernel: str
    num_bytes: int  # of all lines, in the wider dtype
    columns: tuple[int, int, int]  # rows, columns and batches of a column scan
    axis: int | None
    is_exclusive: bool
    is_reverse: bool


def strategy_of(problem: Scan, views: Sequence[View], targets: Sequence[View]) -> ScanStrategy:
    elements, lines = canonical(problem.axis, views, targets)
    stored, acc = records.register_dtype(problem.source), problem.acc
    num_items, *extents = (math.prod(n for n, _ in elements), *(n for n, _ in lines))
    columns = num_items, (extents or [1])[-1], math.prod(extents[:-1])
    num_bytes = num_items * math.prod(extents) * max(stored.itemsize, acc.itemsize)
    kernel = kernel_of(elements, lines, stored, acc)
    direction = problem.is_exclusive, problem.is_reverse
    return ScanStrategy(kernel, num_bytes, columns, problem.axis, *direction)


def strides_in(target: View, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of the results of elements of a shape, which may be flattened."""
    strides = target.strides
    return strides if len(strides) == len(shape) else dense_strides(shape, strides[0])


def canonical(
    axis: int | None, views: Sequence[View], targets: Sequence[View]
) -> tuple[Dims, Dims]:
    """Return the dimensions of a line and those of all lines, with byte strides: inputs', outputs'.

    Lines may be visited in any order; they are sorted by their strides in memory.
    """
    shape = views[0].shape
    strides = [view.strides for view in views]
    for target in targets:
        strides.append(strides_in(target, shape))
    dims = list(zip(shape, zip(*strides, strict=True), strict=True))
    if axis is None:
        return merge(dims), []
    line = [dims.pop(axis)]
    dims.sort(key=lambda dim: -sum(map(abs, dim[1])))
    return merge(line), merge(dims)


def is_dense(elements: Dims, sizes: tuple[int, ...]) -> bool:
    """Return whether a line's elements are contiguous, all forward or all reversed."""
    backwards = tuple(-size for size in sizes)
    return not elements or (len(elements) == 1 and elements[0][1] in (sizes, backwards))


# --- The input of a plan of a scan: lines, their elements, and their addresses.


@dataclass(frozen=True)
class Case:
    """One scan to plan. Strides and addresses are listed per input field, then per output field."""

    op: Operator
    source: Any  # Dtype, or Computed for scan_tiles_kernel and scan_wave_kernel
    acc: Dtype
    elements: Dims  # of a line, in scan order
    lines: Dims
    addresses: tuple[int, ...]  # of the first line's first element
    starts: tuple[int, ...]  # byte offset of that element from the array's first element
    is_exclusive: bool
    device: int
    at: ArgMap
    strategy: ScanStrategy
    launches: dict[Any, Launch] | None  # of problems that differ only in length

    @property
    def num_items(self) -> int:
        return math.prod(extent for extent, _ in self.elements)

    @property
    def num_lines(self) -> int:
        return math.prod(extent for extent, _ in self.lines)

    @property
    def inner_lines(self) -> tuple[int, tuple[int, ...]]:
        """The dimension of lines that are closest together; extent 1 if there is only one line."""
        return self.lines[-1] if self.lines else (1, self.sizes)

    @cached_property
    def num_inputs(self) -> int:
        return len(records.field_dtypes(self.source))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The item sizes of an element's fields, inputs then outputs."""
        leaves = (*records.field_dtypes(self.source), *records.field_dtypes(self.acc))
        return tuple(leaf.itemsize for leaf in leaves)

    @property
    def widest(self) -> int:
        return max(int(self.source.itemsize), self.acc.itemsize)

    @cached_property
    def is_of_records(self) -> bool:
        """Whether elements have several fields or are computed from the input."""
        return records.is_record(self.acc) or records.is_record(self.source)

    @cached_property
    def is_flat(self) -> bool:
        """Whether each field is contiguous, with lines at one fixed distance.

        False for computed elements and for records whose fields are not those of the results.
        """
        is_plain = not self.is_of_records or self.source == self.acc
        return is_plain and len(self.lines) <= 1 and is_dense(self.elements, self.sizes)

    @property
    def is_reversed(self) -> bool:
        """Whether contiguous fields are scanned from their ends."""
        return bool(self.elements) and self.elements[0][1][0] < 0

    @property
    def distances(self) -> tuple[int, ...]:
        """The distances of flat lines in bytes."""
        return self.lines[0][1] if self.lines else (0,) * len(self.sizes)

    def line_units(self, num_items: int = 0) -> tuple[int, int]:
        """Return the widest accesses to flat lines and to their parts of `num_items` elements.

        One for all inputs, one for all outputs.
        """
        units = [
            self.unit(side, (distance, num_items * size), size if self.is_reversed else 0)
            for side, (distance, size) in enumerate(zip(self.distances, self.sizes, strict=True))
        ]
        return min(units[: self.num_inputs]), min(units[self.num_inputs :])

    @property
    def is_async(self) -> bool:
        return gpu.get(self.device).capability >= (8, 0)

    def is_whole(self, side: int) -> bool:
        """Whether input (side 0) or output records have the kernel's layout and vector alignment.

        False for reversed lines and for records with gaps.
        """
        leaves = self.num_inputs
        own = slice(leaves) if side == 0 else slice(leaves, None)
        numbers = records.field_dtypes(self.acc)
        if len(numbers) != leaves or self.acc.itemsize != sum(one.itemsize for one in numbers):
            return False
        first = self.addresses[own][0]
        offsets = tuple(address - first for address in self.addresses[own])
        steps = {stride for _, strides in self.elements for stride in strides[own]}
        lines = [strides[own] for _, strides in self.lines]
        return (
            records.field_dtypes(self.source) == numbers
            and offsets == records.offsets(self.acc)
            and self.acc.itemsize <= records.PIECE_BYTES
            and steps <= {self.acc.itemsize}
            and all(len(set(strides)) == 1 for strides in lines)
            and math.gcd(VECTOR_BYTES, first, *(strides[0] for strides in lines)) == VECTOR_BYTES
        )

    def unit(self, side: int, offsets: Iterable[int], start: int = 0) -> int:
        """Return the widest access, up to 16 bytes, aligned at `start` plus all `offsets`."""
        return math.gcd(VECTOR_BYTES, self.addresses[side] + start, *offsets)


Dtype = np.dtype[Any]


@planners.for_cuda.register(Scan)
def _(problem: Scan, views: Sequence[View], op: Operator, targets: Sequence[View]) -> Plan:
    if problem.has_steps:
        return of_steps(problem, views, op, targets)
    return plan_of(problem, views, op, targets, launches=problem.launches)


def plan_of(
    problem: Scan, views: Sequence[View], op: Operator, targets: Sequence[View],
    strategy: ScanStrategy | None = None, at: ArgMap | None = None,
    launches: dict[Any, Launch] | None = None,
) -> Plan:  # fmt: skip
    """Return the plan of a scan of fields into targets of any strides.

    `strategy` is that of the larger array if `views` are a part of one; `at` gives the argument
    slots in a larger plan. `launches`: those of the problem, if this is its plan.
    """
    source, at = problem.source, at or arg_map(len(views), len(targets))
    if strategy is None:
        strategy = strategy_of(problem, views, targets)
    elements, lines = canonical(strategy.axis, views, targets)
    if not _is_read_in_place(source, problem.acc, strategy.kernel, elements, lines):
        return _of_copy(problem, strategy, views, op, targets, at, launches)
    pointers = [view.ptr for view in (*views, *targets)]
    offsets = [0] * len(pointers)
    if strategy.is_reverse:  # the scan's first element is the last in memory
        offsets = [
            sum((extent - 1) * strides[side] for extent, strides in elements)
            for side in range(len(pointers))
        ]
        elements = [(extent, tuple(-s for s in strides)) for extent, strides in elements]
    addresses = tuple(pointer + offset for pointer, offset in zip(pointers, offsets, strict=True))
    case = Case(
        op, source, problem.acc, elements, lines, addresses, tuple(offsets), strategy.is_exclusive,
        views[0].device, at, strategy, launches,
    )  # fmt: skip
    return _KERNELS[strategy.kernel](case)


def _is_read_in_place(
    source: records.Source, acc: Dtype, kernel: str, elements: Dims, lines: Dims
) -> bool:
    """Return whether the kernel reads these elements and writes their results itself.

    Tiles of numbers lie in memory as they are; of reversed ones, for example, a copy is scanned,
    which takes half the time.
    """
    if kernel != "tiles":
        return not isinstance(source, records.Computed)
    if len(elements) > 1:
        return False
    if records.is_record(source) or records.is_record(acc):
        return True
    return len(lines) <= 1 and is_dense(elements, (source.itemsize, acc.itemsize))


def _of_copy(
    problem: Scan, strategy: ScanStrategy, views: Sequence[View], op: Operator,
    targets: Sequence[View], at: ArgMap, launches: dict[Any, Launch] | None,
) -> Plan:  # fmt: skip
    """Return a plan that writes the elements first, and scans them there.

    They are written into the results' memory; if it has gaps, into temporary storage, line by line.
    """
    shape, acc, device, rest = views[0].shape, problem.acc, targets[0].device, copy.copy(problem)
    rest.source, plain, axis = acc, without_source(op), strategy.axis
    outs = [x._replace(shape=shape, strides=strides_in(x, shape)) for x in targets]
    applied = elementwise.elements_of(problem.source, op, acc)
    same = strategy if strategy.kernel == "tiles" else None  # others know no computed elements
    kernel = (same or strategy_of(rest, outs, outs)).kernel
    if _is_read_in_place(acc, acc, kernel, *canonical(axis, outs, outs)):
        first = elementwise.plan_of(applied, views, shape, outs, at)
        at = at._replace(sources=at.targets)
        is_computed = isinstance(problem.source, records.Computed)
        kept = launches if is_computed else None  # others depend on strides
        return first.then(plan_of(rest, outs, plain, targets, same, at, kept))
    order = () if axis is None else (*(i for i in range(len(shape)) if i != axis), axis)
    spare = [
        placeholder(shape, leaf, device)._replace(
            strides=ordered_strides(shape, leaf.itemsize, order)
        )
        for leaf in records.field_dtypes(acc)
    ]
    slots = [at.piece(i) for i in range(len(spare))]
    first = elementwise.plan_of(applied, views, shape, spare, ArgMap(at.sources, slots))
    own = ArgMap(slots, slots, at.piece(len(spare)))
    scan = plan_of(rest, spare, plain, spare, same, own)
    to_results = elementwise.elements_of(acc, op, acc)
    last = elementwise.plan_of(to_results, spare, shape, outs, ArgMap(slots, at.targets))
    steps = [*first.steps, *scan.steps, *last.steps]
    # Not in a stream's workspace, where a larger plan may have its buffers.
    pieces = [Piece(math.prod(shape) * leaf.itemsize) for leaf in records.field_dtypes(acc)]
    return Plan(device, steps, [*pieces, *scan.pieces])


def _tiles(case: Case) -> Plan:
    """Plan scan_tiles_kernel or scan_wave_kernel: few long lines."""
    source, acc, num_items, widest = case.source, case.acc, case.num_items, case.widest
    tiling = tuning.policy_of(case.strategy.num_bytes, source, acc)
    tiles_per_line = -(-num_items // tiling.tile_items(widest))
    num_tiles = tiles_per_line * case.num_lines
    device, is_wave = gpu.get(case.device), isinstance(tiling, tuning.WavePolicy)
    resident = device.num_sms * tiling.blocks_per_sm
    least = resident
    if tiles_per_line > tuning.FEW_TILES:
        least = max(least, int(tuning.FULL_ROUNDS * -(-case.num_lines // resident) * resident))
    # Otherwise each block has lines of its own.
    is_chained = tiles_per_line > 1 and (is_wave or case.num_lines < tuning.MANY_LINES * least)
    states, num_words = _states(num_tiles * tagged_bytes(acc) // 8 if is_chained else 0)
    access, fields = _access(case, is_wave)
    fixed: dict[str, Any] = {
        "num_tiles": num_tiles, "num_items": num_items, "num_words": num_words,
        "tiles_per_line": tiles_per_line, "access": fields,
    }  # fmt: skip
    if isinstance(tiling, tuning.WavePolicy):
        spec = partial(tuning.wave_spec, case.op, source, acc, access, tiling, case.is_exclusive)
        threads = tiling.block_threads
        return _plan(case, spec, num_tiles, threads, states, key=(tiling, access), **fixed)
    tiling = tiling.fitting(source, acc, device.shared_limit)
    spec = partial(
        tuning.tiles_spec, case.op, source, acc, access, tiling, case.is_exclusive,
        device.capability,
    )  # fmt: skip
    grid = min(num_tiles if is_chained else case.num_lines, resident)
    threads, shared = tiling.block_threads + 2 * WARP, tiling.shared_bytes(source, acc)
    return _plan(case, spec, grid, threads, states, shared, key=(tiling, access), **fixed)


def _rows(case: Case) -> Plan:
    """Plan scan_rows_kernel: many contiguous lines."""
    source, acc, num_items = case.source, case.acc, case.num_items
    tiling = tuning.rows_tiling(num_items, source, acc)
    # A divisor of the lengths and the distances of lines in shared memory: these are whole units.
    step = math.gcd(num_items, tiling.pitch(case.widest))
    units, leaves = case.line_units(step) if case.is_flat else (0, 0), records.field_dtypes(acc)
    if case.is_flat and (not case.is_of_records or min(units) >= max(case.sizes)):
        access = cpp("DenseRows", *units, case.is_reversed, len(leaves))
        sides = enumerate(case.sizes)
        per_line = [num_items * size // units[side >= case.num_inputs] for side, size in sides]
        fields: dict[str, Any] = {"strides": case.distances}
    else:
        access, per_line = cpp("SpacedRows", len(leaves)), [num_items]
        strides = case.elements[0][1] if case.elements else (0,) * len(case.sizes)
        fields = {"strides": strides, "lines": case.lines}
    fields["units"] = [1 if tiling.is_long else count for count in per_line]
    spec = partial(
        tuning.rows_spec, case.op, source, acc, access, tiling, case.is_exclusive, case.is_async
    )
    return _plan(
        case, spec, -(-case.num_lines // tiling.block_lines), tuning.ROWS_THREADS,
        num_lines=case.num_lines, num_items=num_items, access=fields,
    )  # fmt: skip


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
    items = tuning.walk_items(case.num_lines, num_columns, case.widest, alignment_limit)
    inner = tuple(stride * items for stride in column_strides)
    walks = merge([*case.lines[:-1], (num_columns // items, inner)])
    num_walks = case.num_lines // items
    spec = partial(tuning.walks_spec, case.op, source, acc, items, case.is_exclusive)
    return _plan(
        case, spec, -(-num_walks // tuning.WALKS_THREADS), tuning.WALKS_THREADS,
        num_rows=case.num_items, num_walks=num_walks, row_strides=case.elements[0][1], walks=walks,
    )  # fmt: skip


def _columns(case: Case) -> Plan:
    """Plan scan_columns_kernel: fewer and longer columns."""
    source, acc = case.source, case.acc
    num_columns, column_strides = case.inner_lines
    row_strides, batches = case.elements[0][1], case.lines[:-1]
    num_batches = math.prod(extent for extent, _ in batches)
    tiling = tuning.tile_columns(*case.strategy.columns, source, acc).covering(num_columns)
    units, is_flipped = _column_units(case, tiling)
    per_chunk = tiling.strips * num_batches
    num_tiles = per_chunk * tiling.chunks
    row_words = tiling.width * -(-tiling.items * acc.itemsize // 4)
    states, num_words = _states(num_tiles * row_words if tiling.chunks > 1 else 0)
    spec = partial(
        tuning.columns_spec, case.op, source, acc, tiling, units, case.is_exclusive, case.is_async
    )
    resident = gpu.get(case.device).num_sms * tuning.COLUMNS_GRID
    return _plan(
        case, spec, num_tiles if tiling.chunks == 1 else min(num_tiles, resident), tiling.threads,
        states, tiling.shared_bytes(source, acc),
        num_rows=case.num_items, num_tiles=num_tiles, num_chunks=tiling.chunks, num_words=num_words,
        segments=tiling.segments, is_flipped=is_flipped, row_strides=row_strides,
        column_strides=column_strides, num_columns=num_columns, tiles_per_chunk=per_chunk,
        num_strips=tiling.strips, batches=batches,
    )  # fmt: skip


_KERNELS = {"tiles": _tiles, "rows": _rows, "walks": _walks, "columns": _columns}


def _states(num_words: int) -> tuple[Piece | None, int]:
    """Return memory for look-back states, and how many words the kernel clears after use."""
    return lookback_states(8 * num_words) if num_words else (None, 0)


def _plan(
    case: Case, spec: Callable[[], build.Spec], grid: int, threads: int,
    states: Piece | None = None, shared_bytes: int = 0, key: Any = None, **fixed: Any,
) -> Plan:  # fmt: skip
    """Return the plan of one launch.

    `key`: of a line of contiguous elements, what the kernel depends on besides operator and dtypes.
    """
    at, count = case.at, case.num_inputs
    common = {
        "init": START, "init_address": FIRST,
        "input": list(zip(at.sources, case.starts[:count], strict=False)),
        "output": list(zip(at.targets, case.starts[count:], strict=True)),
        "states": at.piece(0) if states else NONE,
    }  # fmt: skip
    is_kept = key is not None and not any(case.starts)  # these depend on the length
    step = launch_again(
        case.launches if is_kept else None, (key, case.source, states is None), spec, case.device,
        grid, threads, {"common": common}, shared_bytes=shared_bytes, **fixed,
    )  # fmt: skip
    return Plan(case.device, [step], [states] if states else [])


def _access(case: Case, is_wave: bool) -> tuple[Cpp, dict[str, Any]]:
    """Return how the kernel accesses elements, and the fields of that access's parameters."""
    source, acc, elements = case.source, case.acc, case.elements
    lines = {"lines": case.lines}
    steps = elements[0][1] if elements else (0,) * len(case.addresses)
    if isinstance(source, records.Computed):
        return cpp("ComputedLines", acc, source), {"steps": steps, **lines}
    units = case.line_units() if case.is_flat else (0, 0)
    # FlatLines has no vectors of records for scan_wave_kernel, and copies records in vectors only.
    if case.is_flat and (not case.is_of_records or (min(units) == VECTOR_BYTES and not is_wave)):
        access = tuning.flat(source, acc, units, case.is_reversed)
        return access, {"strides": case.distances}
    whole = case.is_whole(0), case.is_whole(1)  # records are copied with the bytes in memory
    flags = whole if any(whole) else ()
    return cpp("SteppedLines", acc, source, *flags), {"steps": steps, **lines}


def _column_units(case: Case, tiling: tuning.ColumnsTiling) -> tuple[tuple[int, int], bool]:
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
        if tiling.is_narrow:
            if abs(step) != size or is_flipped not in (None, step < 0):
                continue
            is_flipped = step < 0
            offsets.append(size * tiling.rows)
            if is_flipped:  # tiles are counted from the end of the last row
                units[side] = case.unit(side, [*offsets, size * num_rows], size)
            else:
                units[side] = case.unit(side, offsets)
        else:
            unit = case.unit(side, [*offsets, step, size, tiling.width * tiling.items * itemsize])
            units[side] = unit if unit >= tiling.items * itemsize else 0
    return (units[0], units[1]), bool(is_flipped)


# --- Scans and transformations on a GPU, one after the other.

_APART = 1 << 48  # bytes between the made-up addresses of two arrays


def of_steps(
    problem: Scan, views: Sequence[View], op: Operator, targets: Sequence[View]
) -> Plan:  # fmt: skip
    acc, source, device = problem.acc, problem.source, targets[0].device
    buffers = [placeholder(problem.buffer_shape, leaf, device) for leaf in problem.buffers]
    at = arg_map(len(views), len(targets))
    slots = [*at.sources, *at.targets, *map(at.piece, range(len(buffers)))]
    known = [*views, *targets, *buffers]
    # NumPy slices arrays that are never read; a slice's address tells of which array, and where.
    arrays = [
        np.asarray(Interface(i * _APART, x.shape, x.strides, f"|V{x.dtype.itemsize}"))
        for i, x in enumerate(known, 1)
    ]

    def placed(arrays: Sequence[np.ndarray[Any, Any]]) -> tuple[list[View], list[Any]]:
        """Return the views of slices, and their argument slots and byte offsets."""
        found, places = list[View](), list[Any]()
        for x in arrays:
            i, offset = divmod(x.ctypes.data + _APART // 2, _APART)
            view, offset = known[i - 1], offset - _APART // 2
            found.append(view._replace(ptr=view.ptr + offset, shape=x.shape, strides=x.strides))
            places.append((slots[i - 1], offset))
        return found, places

    plain, last = without_source(op), len(problem.buffer_shape)
    transformations = {
        parameters.ELEMENTS: elementwise.elements_of(source, op, acc),
        parameters.COPY: elementwise.elements_of(acc, op, acc),
        parameters.COMBINE: Applied(plain, (records.argument_of(acc),) * 2, acc),
    }
    scans: dict[int, tuple[Operator, Any, Any, bool]] = {
        parameters.SCAN: (op, source, problem.axis, problem.is_reverse),
        parameters.SUFFIXES: (mirrored(plain), acc, last, True),
        parameters.PREFIXES: (plain, acc, last, False),
    }

    def planned(step: Step, first_piece: int) -> Plan:
        (inputs, in_slots), (outs, out_slots) = placed(step.inputs), placed(step.outs)
        if step.kind in transformations:
            applied, places = transformations[step.kind], ArgMap(in_slots, out_slots)
            return elementwise.plan_of(applied, inputs, outs[0].shape, outs, places)
        part = copy.copy(problem)
        function, part.source, part.axis, part.is_reverse = scans[step.kind]
        part.is_exclusive = False
        sources, results = ([slot for slot, _ in each] for each in (in_slots, out_slots))
        places = ArgMap(sources, results, first_piece)
        return plan_of(part, inputs, function, outs, at=places)

    end = len(views) + len(targets)
    own = arrays[: len(views)], arrays[len(views) : end], arrays[end:]
    pieces = buffer_pieces(buffers)
    steps = list[Any]()
    for step in problem.steps(*own):
        if step.outs[0].size:
            plan = planned(step, at.piece(len(pieces)))
            steps += plan.steps
            pieces += plan.pieces  # states of all are in one place of a workspace
    return Plan(device, steps, pieces)


def buffer_pieces(buffers: Sequence[View]) -> list[Piece]:
    """Return temporary storage for arrays: in the stream's workspace, if they fit there."""
    sizes = [aligned(math.prod(x.shape) * x.dtype.itemsize) for x in buffers]
    *starts, end = accumulate(sizes, initial=KEPT)
    is_kept = end - KEPT <= KEPT_BYTES
    return [
        Piece(size, start if is_kept else None) for size, start in zip(sizes, starts, strict=True)
    ]
