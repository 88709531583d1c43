"""Transformation on a GPU: canonical layout and kernel."""

from __future__ import annotations

import math
import queue
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gpualgo._algorithms.transform import tuning
from gpualgo._algorithms.transform.problem import Transformation
from gpualgo._arrays.view import View, alignment_of, placeholder, strides_for
from gpualgo._base import forks, records, threads
from gpualgo._base.records import Element, Interleaved
from gpualgo._base.strides import Dims, bounds, merge, order_of, ordered_strides
from gpualgo._cuda import build
from gpualgo._cuda.plan import ArgMap, Clear, Launch, Piece, Plan, arg_map
from gpualgo._cuda.templates import VECTOR_BYTES, Applied, interleaved, is_aligned, launch_again
from gpualgo._driver import device as gpu
from gpualgo._driver import driver, staging
from gpualgo._driver.pinned import MOST_LANES, SLOT_BYTES, CopyLane
from gpualgo._operators.operator import Operator, without_source
from gpualgo._operators.tokens import same
from gpualgo._pipeline import host_whole, planners
from gpualgo._pipeline.host_whole import Operand
from gpualgo._pipeline.problem import NO_INIT, Problem

# --- The input of a plan of a transformation, and the chosen kernel.


class Case(NamedTuple):
    """One transformation to plan; dimensions have a stride for each output, then each input."""

    applied: Applied
    operands: tuple[np.dtype[Any], ...]
    pointers: tuple[int, ...]
    dims: Dims

    @property
    def num_outputs(self) -> int:
        return len(self.applied.outputs)

    @property
    def num_items(self) -> int:
        return math.prod(extent for extent, _ in self.dims)

    def alignment(self, dense: int, dims: Dims) -> int:
        """Return the greatest alignment, up to 16 bytes, of the operands in bit mask `dense`."""
        multiples = [
            number
            for i, dtype in enumerate(self.operands)
            if dense >> i & 1 and dtype not in (records.POSITION, records.SHARED_POSITION)
            for number in (self.pointers[i], *(strides[i] for _, strides in dims))
        ]
        return math.gcd(16, *multiples)


class Tiling(NamedTuple):
    spec: Callable[[], build.Spec]
    blocks: int
    fixed: dict[str, Any]
    # outputs, inputs whose addresses are passed, if not all
    firsts: tuple[Sequence[int], Sequence[int]] = ((), ())
    key: Any = None  # of contiguous operands: what the kernel depends on besides `Applied`


# --- Transformation of interleaved numbers, such as the fields of records.

MOST_NUMBERS = 4  # of a record that is read (apply_to_numbers of transform/kernel.cuh)


def tiling(case: Case) -> Tiling | None:
    """Return the kernel for contiguous operands of which some are whole records, or None."""
    if len(case.dims) != 1:
        return None
    num_items, steps = case.dims[0]
    outputs, out_indices = _outputs(case)
    inputs = list(_inputs(case))
    operands = (outputs, *(operand for operand, _ in inputs))
    if not any(isinstance(operand, Interleaved) for operand in operands):
        return None
    indices = (*out_indices, *(index for _, index in inputs))
    if [steps[i] for i in indices] != [n for item in operands for n in records.read_bytes(item)]:
        return None
    index_dtypes = records.POSITION, records.SHARED_POSITION
    pointers = [case.pointers[i] for i in indices if case.operands[i] not in index_dtypes]
    alignment = math.gcd(VECTOR_BYTES, *pointers)
    items = tuning.pack_items(operands, VECTOR_BYTES)
    if not is_aligned(operands, items, alignment):
        return None
    loads = tuning.loads_in_flight(case.applied.inputs, items)
    blocks = -(-num_items // (tuning.BLOCK_THREADS * items * loads))
    firsts = (out_indices, [index - case.num_outputs for _, index in inputs])
    spec = partial(tuning.flat_spec, case.applied, items, loads, operands)
    return Tiling(spec, blocks, {"num_items": num_items}, firsts)


def _outputs(case: Case) -> tuple[Element, list[int]]:
    """Return the output element type, and the operands whose addresses are passed."""
    count, result = case.num_outputs, case.applied.result
    record = _interleaved_record(case, 0, count)
    if record is None or not record.is_tight:  # the gaps between the numbers belong to other arrays
        return result, list(range(count))
    return Interleaved(result, record.size, record.offsets), [record.offsets.index(0)]


def _inputs(case: Case) -> Iterator[tuple[Element, int]]:
    """Yield the input element types, with the operand whose address is passed."""
    start, end = case.num_outputs, len(case.operands)
    while start < end:
        for stop in range(min(end, start + MOST_NUMBERS), start + 1, -1):
            record = _interleaved_record(case, start, stop)
            if record is not None:
                yield record, start + record.offsets.index(0)
                start = stop
                break
        else:
            yield case.operands[start], start
            start += 1


def _interleaved_record(case: Case, start: int, end: int) -> Interleaved | None:
    operands, (_, steps) = case.operands[start:end], case.dims[0]
    if len(operands) < 2 or any(map(records.is_position, operands)):
        return None
    record = records.record(map(str, range(len(operands))), operands)
    return interleaved(record, case.pointers[start:end], [steps[start:end]], steps[start])


@planners.for_cuda.register(Transformation)
def _(
    problem: Transformation, views: Sequence[View], op: Operator, targets: Sequence[View]
) -> Plan:
    return plan_of(applied(problem, op), views, problem.shape, targets, launches=problem.launches)


def applied(problem: Transformation, op: Operator) -> Applied:
    return Applied(op, problem.arguments, problem.result, problem.reads)


def combine(
    op: Operator, acc: np.dtype[Any], views: Sequence[View], targets: Sequence[View],
    at: ArgMap | None = None,
) -> Plan:  # fmt: skip
    """Return the plan of targets = op(a, b); `views` are the fields of a, then those of b."""
    applied = Applied(without_source(op), (records.argument_of(acc),) * 2, acc)
    return plan_of(applied, views, targets[0].shape, targets, at)


def elements_of(source: records.Source, op: Operator, element: np.dtype[Any]) -> Applied:
    """Return what converts source's elements to a dtype, or computes them by op's source."""
    if isinstance(source, records.Computed):
        numbers = source.numbers
        return Applied(op.source, tuple(map(records.operand_dtype, numbers)), element, numbers)
    return Applied(Operator(same), (records.argument_of(source),), element)


def plan_of(
    applied: Applied, views: Sequence[View], shape: tuple[int, ...], targets: Sequence[View],
    at: ArgMap | None = None, launches: dict[Any, Launch] | None = None,
) -> Plan:  # fmt: skip
    """Return the plan of a transformation of arrays that broadcast to a shape.

    `at` gives the argument slots if this is a step of another plan.
    """
    outputs = (target.strides for target in targets)
    strides = zip(*outputs, *(strides_for(v, shape) for v in views), strict=True)
    dims = merge(list(zip(shape, strides, strict=True)))
    # Neighbouring threads should write neighbours: iterate in the output's memory order.
    dims = merge(sorted(dims, key=lambda dim: -abs(dim[1][0])))
    pointers = tuple(view.ptr for view in (*targets, *views))
    case = Case(applied, (*applied.outputs, *applied.inputs), pointers, dims)
    chosen = _flat(case) or tiling(case) or _turned(case) or _rows(case)
    spec, blocks, fixed, (outs, inputs), key = chosen
    at = at or arg_map(len(views), len(targets))
    slots = {
        "output": [at.targets[i] for i in outs or range(len(targets))],
        "input": [at.sources[i] for i in inputs or range(len(views))],
    }
    device, threads = targets[0].device, tuning.BLOCK_THREADS
    kept, takes = None if key is None else launches, {"pointers": slots}
    return Plan(device, [launch_again(kept, key, spec, device, blocks, threads, takes, **fixed)])


# --- Copies of unevenly strided arrays, which other algorithms would read element by element.

COPIED_FROM, COPIED_BYTES = 1 << 18, 1 << 32  # elements from which on, bytes up to which


def of_copies(
    views: Sequence[View], targets: Sequence[View], planned: Callable[[Sequence[View]], Plan],
    order: Sequence[int] = (), only_transposed: bool = False,
) -> Plan:  # fmt: skip
    """Return the plan of some arrays, of which the unevenly strided ones are copied first.

    Those have no one stride for all elements in an order of axes, C order by default.
    `only_transposed`: only if a later axis has a larger stride than an earlier one.
    """
    moved, dense, at = dict[int, int](), [*views], arg_map(len(views), len(targets))
    copied = [i for i, view in enumerate(views) if _is_uneven(view, order, only_transposed)]
    for i in copied:
        view = views[i]
        copy = placeholder(view.shape, view.dtype, view.device)
        strides = ordered_strides(view.shape, view.dtype.itemsize, order)
        dense[i] = copy._replace(strides=strides)
    plan = planned(dense)
    if not copied:
        return plan
    first, steps, pieces = at.piece(len(plan.pieces)), list[Launch | Clear](), [*plan.pieces]
    for number, i in enumerate(copied):
        moved[at.sources[i]] = first + number
        pieces.append(Piece(math.prod(views[i].shape) * views[i].dtype.itemsize))
        applied = Applied(Operator(same), (records.argument_of(views[i].dtype),), views[i].dtype)
        place = ArgMap([at.sources[i]], [first + number])
        steps += plan_of(applied, [views[i]], views[i].shape, [dense[i]], place).steps
    steps += [x if isinstance(x, Clear) else x.reading(moved) for x in plan.steps]
    return Plan(views[0].device, steps, pieces, plan.tables)


def _is_uneven(view: View, order: Sequence[int], only_transposed: bool) -> bool:
    count = math.prod(view.shape)
    if records.is_position(view.dtype) or count < COPIED_FROM:
        return False
    low, high = bounds(view.shape, view.strides, view.dtype.itemsize)
    if count * view.dtype.itemsize > min(high - low, COPIED_BYTES):
        return False  # repeated elements, as in windows, would be copied so often
    axes = order or range(len(view.shape))
    dims = merge([(view.shape[i], (view.strides[i],)) for i in axes])
    steps = [abs(step) for _, (step,) in dims]
    return sorted(steps, reverse=True) != steps if only_transposed else len(dims) > 1


def _flat(case: Case) -> Tiling | None:
    """Return the kernel for contiguous operands, or None."""
    steps = tuple(map(records.step_of, case.operands))
    if len(case.dims) > 1 or (case.dims and case.dims[0][1] != steps):
        return None
    items, loose = _packs(case)
    loads = tuning.loads_in_flight(case.applied.inputs, items)
    blocks = -(-case.num_items // (tuning.BLOCK_THREADS * items * loads))
    spec = partial(tuning.flat_spec, case.applied, items, loads, loose=loose)
    key = items, loads, loose
    return Tiling(spec, blocks, {"num_items": case.num_items}, key=key)


def _packs(case: Case) -> tuple[int, int]:
    """Return the elements of a pack, and a bit mask of inputs that are not aligned for it."""
    count = case.num_outputs
    items = tuning.pack_items(case.operands, case.alignment(-1, []), count)
    output_alignment = case.alignment((1 << count) - 1, [])
    most = min(tuning.LOOSE_ITEMS, tuning.pack_items(case.operands, output_alignment, count))
    inputs, pointers = case.applied.inputs, case.pointers[count:]
    loose = [k for k, dtype in enumerate(inputs) if not is_aligned([dtype], most, pointers[k])]
    # Neighbours share the computation of random numbers only within an aligned pack.
    if most <= items or any(records.is_position(inputs[k]) for k in loose):
        return items, 0
    return most, sum(1 << k for k in loose)


class _Tiles(NamedTuple):
    """Tiles of a transformation; transposed inputs are contiguous down, the others across."""

    case: Case
    axis: int  # index of the rows' dimension in case.dims
    turned: list[int]  # transposed operands

    @property
    def batch(self) -> Dims:
        return [dim for i, dim in enumerate(self.case.dims[:-1]) if i != self.axis]

    def unit(self, operand: int) -> int:
        """Return the alignment of an operand's packs in bytes, up to 16."""
        is_turned = operand in self.turned
        _, lines = self.case.dims[-1 if is_turned else self.axis]
        batch_strides = [strides[operand] for _, strides in self.batch]
        return math.gcd(16, self.case.pointers[operand], lines[operand], *batch_strides)

    def items(self) -> int:
        """Return the side of a square; 0 if the tiles do not fit in shared memory."""
        case = self.case
        steps = {k: case.operands[k].itemsize for k in (*range(case.num_outputs), *self.turned)}
        extents = case.dims[self.axis][0], case.dims[-1][0]
        items: int = math.gcd(tuning.SQUARE_ITEMS[max(steps.values())], *extents)
        items = min(items, *(max(1, self.unit(k) // step) for k, step in steps.items()))
        sizes = [steps[k] for k in self.turned]
        while items > 0 and (tuning.SQUARES * items) ** 2 * sum(sizes) > tuning.TRANSPOSED_BYTES:
            items //= 2
        return items

    def packed(self, items: int) -> int:
        """Return a bit mask of inputs that are not transposed and can be loaded in packs."""
        case, (_, across) = self.case, self.case.dims[-1]
        return sum(
            1 << k - case.num_outputs
            for k in range(case.num_outputs, len(case.operands))
            if k not in self.turned and not records.is_position(case.operands[k])
            if across[k] == (step := case.operands[k].itemsize)
            if self.unit(k) % min(16, items * step) == 0
        )


def _turned(case: Case) -> Tiling | None:
    """Return the kernel for transposed inputs, or None."""
    steps = tuple(map(records.step_of, case.operands))
    num_columns, across = case.dims[-1] if len(case.dims) > 1 else (0, ())
    count = case.num_outputs
    if num_columns < tuning.SQUARES or across[:count] != steps[:count]:
        return None

    def turned_along(strides: tuple[int, ...]) -> list[int]:
        return [
            k
            for k in range(count, len(case.operands))
            if strides[k] == steps[k] and abs(across[k]) > steps[k]
            if not records.is_position(case.operands[k])
        ]

    candidates = [
        _Tiles(case, axis, turned_along(strides))
        for axis, (extent, strides) in enumerate(case.dims[:-1])
        if extent >= tuning.SQUARES
    ]
    tiles = max(candidates, key=lambda candidate: len(candidate.turned), default=None)
    while tiles is not None and tiles.turned and not tiles.items():
        tiles.turned.pop()  # the last transposed input is read element by element
    if tiles is None or not tiles.turned:
        return None
    items, (num_rows, down) = tiles.items(), case.dims[tiles.axis]
    tiling = [-(-n // (tuning.SQUARES * items)) for n in (num_rows, num_columns)]
    bits = sum(1 << k - count for k in tiles.turned)
    batch = tiles.batch
    packed, is_even = tiles.packed(items), len(batch) <= 1
    spec = partial(tuning.transposed_spec, case.applied, items, bits, packed, is_even)
    fixed = {
        "num_rows": num_rows, "num_columns": num_columns, "tiles_down": tiling[0],
        "tiles_across": tiling[1], "row_strides": down, "column_strides": across, "batch": batch,
    }  # fmt: skip
    return Tiling(spec, math.prod(tiling) * math.prod(extent for extent, _ in batch), fixed)


def _rows(case: Case) -> Tiling:
    """Return the kernel for any operands; rows are contiguous in the outputs."""
    *outer, (extent, steps) = case.dims
    count = range(len(case.operands))
    contiguous = [records.step_of(dtype) for dtype in case.operands]
    dense = sum(1 << i for i in count if steps[i] == contiguous[i])
    repeated = sum(1 << i for i in count if steps[i] == 0 != contiguous[i])
    dense_operands = tuple([case.operands[i] for i in count if dense >> i & 1])
    dense_outputs = sum(dense >> i & 1 for i in range(case.num_outputs))
    items = 1
    if dense | repeated == (1 << len(count)) - 1 and not repeated & (1 << case.num_outputs) - 1:
        alignment = case.alignment(dense, outer)
        items = math.gcd(tuning.pack_items(dense_operands, alignment, dense_outputs), extent)
    inputs = [case.operands[i] for i in count if i >= case.num_outputs and not repeated >> i & 1]
    num_packs, num_rows = case.num_items // items, case.num_items // max(1, extent)
    itemsize = max(dtype.itemsize for dtype in case.operands)
    tiles = tuning.row_tiles(extent, itemsize) if items == 1 else None
    loads = tiles.loads if tiles else tuning.loads_in_flight(inputs, items)
    lanes, tiles_per_row, rows = (tiles.lanes, tiles.tiles, tiles.rows) if tiles else (1, 1, 1)
    kinds, is_even = tuning.OperandMasks(dense, repeated), len(outer) <= 1
    spec = partial(tuning.rows_spec, case.applied, items, loads, kinds, is_even, tiles is not None)
    fixed = {
        "num_packs": num_packs, "packs_per_row": max(1, extent // items), "steps": steps,
        "rows": outer, "num_rows": num_rows, "rows_per_block": rows,
        "tiles_per_row": tiles_per_row, "lanes": lanes, "lanes_inverse": -(-(1 << 16) // lanes),
    }  # fmt: skip
    blocks = -(-num_packs // (tuning.BLOCK_THREADS * loads))
    return Tiling(spec, -(-num_rows // rows) * tiles_per_row if tiles else blocks, fixed)


# --- Transformation of large pageable arrays on a GPU in blocks, on several copy streams at once.

LARGE_BYTES = 512 << 20  # of all arrays; smaller ones are copied to the GPU as a whole

Array = np.ndarray[Any, Any]


def is_large(arrays: Sequence[Array]) -> bool:
    """Return whether the operands are large enough to be processed in blocks."""
    return sum(array.nbytes for array in arrays) > LARGE_BYTES


@planners.for_blocks.register(Transformation)
def _(problem: Transformation, call: planners.HostCall) -> bool:
    arrays, results = call.arrays, call.results
    if not (call.is_forced or is_large([*arrays, *results])):
        return False
    broadcast = [np.broadcast_to(array, problem.shape) for array in arrays]
    chunked = applied(problem, call.op)
    transform(problem, chunked, broadcast, results, call.stream, call.device_views)
    return True


def transform(
    problem: Problem, applied: Applied, arrays: Sequence[Array], outs: Sequence[Array],
    stream: Any, places: list[View | None],
) -> None:  # fmt: skip
    """Transform arrays of which some are pageable; the device is current."""
    where, device = problem.where, problem.device
    handle = host_whole.handle_on(device, stream, outs[0], where)
    if stream is not None:
        is_input = places.index(None) < len(arrays)
        driver.refuse_capture(handle, host_whole.pageable(is_input, where))
    if stream is not None or any(places):  # work queued there comes first
        driver.synchronize(handle)
    order = order_of(outs[0].shape, [outs[0].strides])
    operands = [
        Operand(array.transpose(order) if order else array, place)
        for array, place in zip(
            (*outs, *arrays), (*places[len(arrays) :], *places[: len(arrays)]), strict=True
        )
    ]
    with host_whole.partial_write_guard(where, arrays, outs) as written:
        _Blocks(applied, operands, device, written).run()


class _Blocks:
    """Blocks of all operands: a lane's first buffer holds inputs, its second results."""

    def __init__(
        self, applied: Applied, operands: Sequence[Operand], device: int,
        written: host_whole.WriteState,
    ) -> None:  # fmt: skip
        self.applied, self.operands, self.device = applied, operands, device
        self.written = written
        count = len(applied.outputs)
        self.targets, self.sources = operands[:count], operands[count:]
        most = max(
            sum(x.device_view is None for x in side) for side in (self.targets, self.sources)
        )
        self.share = SLOT_BYTES // most & -256  # bytes of a buffer for one operand
        shape = self.targets[0].array.shape
        widest = max(operand.array.dtype.itemsize for operand in operands)
        self.indices = [(*index, ...) for index in staging.pieces(shape, widest, self.share)]
        self._plans: dict[Any, Plan] = {}
        self._lock = forks.Lock()

    def run(self) -> None:
        device = gpu.get(self.device)
        stream = device.copy_stream
        sizes = [self.share * len(self.operands)] * min(MOST_LANES, len(self.indices))
        with staging.device_buffers(self.device, stream, sizes) as memories:
            driver.synchronize(stream)  # the memory is now usable on every lane's stream
            idle: queue.SimpleQueue[int] = queue.SimpleQueue()
            for memory in memories:
                idle.put(memory)

            def body(first: int, last: int) -> None:
                memory = idle.get()  # there may be more threads than buffers
                try:
                    with device.current(), device.lanes.lend() as lane:
                        self._send(lane, memory, self.indices[first:last])
                        driver.synchronize(lane.stream)
                finally:
                    idle.put(memory)

            num_bytes = sum(operand.array.nbytes for operand in self.operands)
            threads.run(body, len(self.indices), num_bytes)

    def _send(self, lane: CopyLane, memory: int, indices: Sequence[Any]) -> None:
        """Upload, transform and download blocks; fills one while the previous one is copied."""
        up, down = lane.slots
        pending: list[tuple[Array, int]] = []  # results of the previous block
        for i, index in enumerate(indices):
            addresses_of_block = (memory + k * self.share for k in range(len(self.operands)))
            views = [
                operand.view(index, address, self.device)
                for operand, address in zip(self.operands, addresses_of_block, strict=True)
            ]
            if i > 0:
                up.wait()
            self._fill(up, lane, index, views[len(self.targets) :])
            targets, sources = views[: len(self.targets)], views[len(self.targets) :]
            addresses = [view.ptr for view in (*sources, *targets)]
            plan = self._plan(sources, targets)
            if any(item.device_view for item in self.targets):
                self.written.has_begun = True
            plan.queue(lane.stream, (*NO_INIT, self.applied.op.words, *addresses))
            self._store_results(down, pending)
            pending = self._fetch(down, lane, index, targets)
        self._store_results(down, pending)

    def _fill(self, slot: Any, lane: CopyLane, index: Any, views: Sequence[View]) -> None:
        offset = 0
        for operand, view in zip(self.sources, views, strict=True):
            if operand.device_view is None:
                block = operand.array[index]
                np.copyto(slot.array(block.shape, block.dtype, offset), block)
                staging.send(slot.address + offset, view.ptr, block.nbytes, lane.stream)
                offset += self.share
        slot.record(lane.stream)

    def _fetch(
        self, slot: Any, lane: CopyLane, index: Any, views: Sequence[View]
    ) -> list[tuple[Array, int]]:
        pending, offset = [], 0
        for operand, view in zip(self.targets, views, strict=True):
            if operand.device_view is None:
                out = operand.array[index]
                staging.fetch(view.ptr, slot.address + offset, out.nbytes, lane.stream)
                pending.append((out, offset))
                offset += self.share
        slot.record(lane.stream)
        return pending

    def _store_results(self, slot: Any, pending: list[tuple[Array, int]]) -> None:
        if pending:
            slot.wait()
            self.written.has_begun = True
        for out, offset in pending:
            np.copyto(out, slot.array(out.shape, out.dtype, offset))

    def _plan(self, sources: Sequence[View], targets: Sequence[View]) -> Plan:
        shape = targets[0].shape
        strides = (view.strides for view in (*targets, *sources))
        key = (shape, alignment_of(targets), alignment_of(sources), *strides)
        with self._lock:
            if key not in self._plans:
                self._plans[key] = plan_of(self.applied, sources, shape, targets)
            return self._plans[key]
