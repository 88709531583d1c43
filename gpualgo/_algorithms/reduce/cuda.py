"""Reduction on a GPU: canonical layout, kernel, temporary storage."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from gpualgo._algorithms.reduce import tuning
from gpualgo._algorithms.reduce.problem import Reduction
from gpualgo._algorithms.transform import cuda as elementwise
from gpualgo._algorithms.transform.cuda import of_copies
from gpualgo._arrays.view import View, dense_view
from gpualgo._base import records
from gpualgo._base.strides import Dims, dense_strides, merge, without_axes
from gpualgo._cuda.build import Spec
from gpualgo._cuda.headers import is_nested
from gpualgo._cuda.plan import KEPT, NONE, TICKETS, ArgMap, Launch, Piece, Plan, arg_map
from gpualgo._cuda.templates import (
    START,
    VECTOR_BYTES,
    fitting,
    interleaved,
    launch_again,
    tagged_bytes,
)
from gpualgo._driver import driver, staging
from gpualgo._driver.device import aligned
from gpualgo._operators.operator import Operator, without_source
from gpualgo._pipeline import host_whole, planners
from gpualgo._pipeline.problem import NO_INIT, Dtype

_INDEX_FIELDS = (records.POSITION, records.SHARED_POSITION)  # index fields, which have no alignment


@dataclass(frozen=True)
class _Case:
    """One reduction to plan; dimensions have a stride for each input field, then each output field.

    Reduced dimensions have no output strides.
    """

    op: Operator
    source: records.Element
    acc: Dtype
    pointers: tuple[int, ...]
    reduced: Dims
    outer: Dims
    device: int
    at: ArgMap
    pieces: tuple[Piece, ...]  # of a larger plan, before those of the reduction
    launches: dict[Any, Launch] | None  # of problems that differ only in length

    @property
    def num_fields(self) -> int:
        return len(self.pointers)

    def fitting(self, offsets: Iterable[tuple[int, ...]], repeated: int = 0) -> int:
        """Return how many elements an access may cover, if aligned at all multiples of offsets."""
        columns = zip(self.pointers, *offsets, strict=True)
        units = [math.gcd(VECTOR_BYTES, *column) for column in columns]
        numbers = enumerate(zip(units, records.field_dtypes(self.source), strict=True))
        return min(
            (
                fitting(leaf, unit)
                for i, (unit, leaf) in numbers
                if not repeated >> i & 1 and leaf not in _INDEX_FIELDS
            ),
            default=VECTOR_BYTES,
        )

    def plan(
        self, key: Any, spec: Callable[[], Spec], blocks: int, threads: int,
        pieces: Sequence[Piece], pointers: dict[str, int], **fixed: Any,
    ) -> Plan:  # fmt: skip
        """Return the plan of one launch; `pointers` are the kernel's to `pieces`, if any.

        `key`: what the kernel depends on besides the operator and the element.
        """
        pieces_at = {name: self.at.piece(i) if pieces else NONE for name, i in pointers.items()}
        takes = {"init": START, "input": self.at.sources, "output": self.at.targets, **pieces_at}
        slots = takes if "words" in takes else {"common": takes}
        step = launch_again(
            self.launches, (key, self.source, bool(pieces)), spec, self.device, blocks, threads,
            slots, **fixed,
        )  # fmt: skip
        return Plan(self.device, [step], [*self.pieces, *pieces])


@planners.for_cuda.register(Reduction)
def _(problem: Reduction, views: Sequence[View], op: Operator, targets: Sequence[View]) -> Plan:
    axes, shape, acc = problem.axes, problem.shape, problem.acc
    strides = [without_axes(target.strides, axes, len(shape)) for target in targets]
    if problem.row_init is None:

        def planned(views: Sequence[View]) -> Plan:
            return plan_of(views, op, axes, problem.source, acc, strides, launches=problem.launches)

        is_in_order = len(axes) == len(views[0].shape) and not op.commutative
        return (
            of_copies(views, targets, planned, only_transposed=True)
            if is_in_order
            else planned(views)
        )
    # Initial values are applied as a single one is, so the bits are equal.
    at, num_own = arg_map(len(views), len(targets)), len(views) - problem.row_init.num_arrays
    own, inits = views[:num_own], views[num_own:]
    own_at, init_at = (at._replace(sources=x) for x in (at.sources[:num_own], at.sources[num_own:]))
    if 0 in own[0].shape:  # each initial value is a row of one element
        return plan_of(inits, without_source(op), (), acc, acc, strides, init_at)
    plan = plan_of(own, op, axes, problem.source, acc, strides, own_at)
    outs = [
        target._replace(shape=shape, strides=step)
        for target, step in zip(targets, strides, strict=True)
    ]
    join_at = at._replace(sources=[*init_at.sources, *at.targets])
    return plan.then(elementwise.combine(op, acc, [*inits, *outs], outs, join_at))


def plan_of(
    views: Sequence[View], op: Operator, axes: tuple[int, ...], source: records.Element, acc: Dtype,
    out_strides: Sequence[tuple[int, ...]], at: ArgMap | None = None, pieces: Sequence[Piece] = (),
    launches: dict[Any, Launch] | None = None,
) -> Plan:  # fmt: skip
    """Return the plan of a reduction over axes; `out_strides` are the output fields' byte strides.

    `at` gives the argument slots in a larger plan, whose first scratch pieces are `pieces`.
    """
    shape, device = views[0].shape, views[0].device
    strides = [tuple(view.strides[i] for view in views) for i in range(len(shape))]
    if op.commutative:  # in the order of memory, axes of repeated elements first
        axes = tuple(sorted(axes, key=lambda i: -sum(map(abs, strides[i])) or -math.inf))
    reduced = merge([(shape[i], strides[i]) for i in axes])
    kept = [i for i in range(len(shape)) if i not in axes]
    outs = zip(*out_strides, strict=True)
    outer = merge([(shape[i], strides[i] + out) for i, out in zip(kept, outs, strict=True)])
    pointers = tuple(view.ptr for view in views)
    at = at or arg_map(len(views), len(out_strides))
    case = _Case(op, source, acc, pointers, reduced, outer, device, at, tuple(pieces), launches)
    in_one_piece = _interleaved(case)
    if not _is_columns(case):
        if in_one_piece is not None and _is_in_vectors(in_one_piece):
            case = in_one_piece
        return _rows(case)
    if in_one_piece is not None and _column_items(in_one_piece) > 0:
        return _columns(in_one_piece)
    # Neighbouring columns share one index if only rows are counted.
    leaf_dtypes = [
        records.SHARED_POSITION if records.is_position(leaf) and stride == 0 else leaf
        for leaf, stride in zip(records.field_dtypes(source), outer[-1][1], strict=False)
    ]
    return _columns(replace(case, source=records.with_fields(source, leaf_dtypes)))


def _rows(case: _Case) -> Plan:
    source, acc, outer = case.source, case.acc, case.outer
    num_items = math.prod(extent for extent, _ in case.reduced)
    num_rows = math.prod(extent for extent, _ in outer)
    repeated = _repeated(case)
    if _is_flat(case, repeated):
        access = tuning.flat(source, _fitting_rows(case, repeated or 0), repeated or 0)
        fields: dict[str, Any] = {"row_strides": _row_strides(case)}
    else:
        outputs = len(records.field_dtypes(acc))
        is_even = len(outer) <= 1 and len(case.reduced) <= 1
        nested = is_nested(case.reduced)
        access = tuning.strided(source, outputs, is_even=is_even, is_nested=nested)
        fields = {"rows": outer, "elements": case.reduced}

    def plan(
        key: Any, spec: Callable[[], Spec], threads: int, num_blocks: int, per_row: int,
        *pointers: str, **fixed: Any,
    ) -> Plan:  # fmt: skip
        pieces = []
        if per_row > 1:  # blocks combine through tagged words, initially zero
            pieces = [Piece(num_blocks * tagged_bytes(acc), TICKETS, is_zeroed=True)]
        pointers_at = dict.fromkeys(pointers, 0)
        return case.plan(
            (key, access), spec, num_blocks, threads, pieces, pointers_at, num_items=num_items,
            access=fields, **fixed,
        )  # fmt: skip

    small = tuning.small_tiling(num_items, source) if num_rows == 1 else None
    if small is not None:
        policy = small.policy
        return plan(
            policy, lambda: tuning.small_spec(case.op, source, acc, access, policy),
            policy.block_threads, small.num_blocks, small.num_blocks, "words",
        )  # fmt: skip
    tiling = tuning.tile_rows(case.op, num_rows, num_items, source)
    return plan(
        (tiling.policy, tiling.width),
        lambda: tuning.rows_spec(case.op, source, acc, access, tiling),
        tiling.policy.block_threads, tiling.num_blocks, tiling.blocks_per_row, "partials",
        "tickets", num_rows=num_rows, chunk_items=tiling.chunk_items,
        blocks_per_row=tiling.blocks_per_row,
    )  # fmt: skip


def _is_flat(case: _Case, repeated: int | None) -> bool:
    """Return whether rows are contiguous, at a fixed distance, as are their results."""
    outer = case.outer
    return len(case.reduced) <= 1 and repeated is not None and (
        not outer
        or (len(outer) == 1 and outer[0][1][case.num_fields :] == records.read_bytes(case.acc))
    )  # fmt: skip


def _row_strides(case: _Case) -> tuple[int, ...]:
    return case.outer[0][1][: case.num_fields] if case.outer else (0,) * case.num_fields


def _fitting_rows(case: _Case, repeated: int = 0) -> int:
    """Return how many elements of a flat row a lane can load at once."""
    return case.fitting([_row_strides(case)], repeated)


def _is_in_vectors(case: _Case) -> bool:
    return _is_flat(case, 0) and _fitting_rows(case) >= tuning.row_items(case.source)


def _interleaved(case: _Case) -> _Case | None:
    """Return the same reduction with interleaved fields as one input; None if they are not."""
    inner = case.outer if _is_columns(case) else case.reduced
    leaves = case.num_fields
    if not inner or leaves == 1:
        return None
    dims = [strides[:leaves] for _, strides in (*case.reduced, *case.outer)]
    source = interleaved(case.source, case.pointers, dims, inner[-1][1][0])
    if source is None:
        return None
    first = case.pointers.index(min(case.pointers))
    at = case.at._replace(sources=[case.at.sources[first]])
    return replace(
        case, source=source, pointers=(case.pointers[first],), at=at,
        reduced=[(extent, strides[:1]) for extent, strides in case.reduced],
        outer=[(extent, strides[leaves - 1 :]) for extent, strides in case.outer],
    )  # fmt: skip


def _repeated(case: _Case) -> int | None:
    """Return a bit mask of fields that are constant in a row; None if fields have gaps."""
    if not case.reduced:
        return 0
    strides, steps = case.reduced[-1][1], records.read_bytes(case.source)
    if len(strides) == 1:  # kernels of numbers have no constant fields
        return 0 if strides == steps else None
    if any(stride not in (0, step) for stride, step in zip(strides, steps, strict=True)):
        return None
    return sum(1 << i for i, stride in enumerate(strides) if stride == 0 != steps[i])


def _columns(case: _Case) -> Plan:
    source, acc, leaves, reduced = case.source, case.acc, case.num_fields, case.reduced
    *batch, (num_columns, strides) = case.outer
    num_rows = math.prod(extent for extent, _ in reduced)
    num_batches = math.prod(extent for extent, _ in batch)
    items = _column_items(case)
    widest = tuning.column_items(source, acc, num_columns)
    size = max(tuning.packed_size(source), acc.itemsize // 2)
    is_even = len(reduced) == 1
    bytes_read = tuning.bytes_read(source)
    tiling = tuning.tile_columns(
        num_batches, num_rows, num_columns, widest, items, size, bytes_read, records.is_record(acc)
    )
    blocks = tiling.num_tiles * tiling.num_blocks
    pieces = []
    if tiling.num_blocks > 1:
        partials = blocks * tiling.columns * acc.itemsize
        workspace_offset = KEPT + sum(aligned(piece.num_bytes) for piece in case.pieces)
        tickets = Piece(4 * tiling.num_tiles, TICKETS, is_zeroed=True)
        pieces = [tickets, Piece(partials, workspace_offset)]
    return case.plan(
        ("columns", tiling, is_even),
        lambda: tuning.columns_spec(case.op, source, acc, tiling, is_even), blocks,
        tiling.policy.block_threads, pieces, {"tickets": 0, "partials": 1},
        num_rows=num_rows, rows_per_block=tiling.rows_per_block, num_columns=tiling.num_columns,
        num_blocks=tiling.num_blocks, per_batch=tiling.per_batch, column_strides=strides[:leaves],
        output_column_strides=strides[leaves:], rows=reduced, batch=batch,
    )  # fmt: skip


def _column_items(case: _Case) -> int:
    """Return how many neighbouring columns are loaded at once; 0: not even one record."""
    (num_columns, strides), leaves = case.outer[-1], case.num_fields
    if strides[:leaves] != records.read_bytes(case.source):
        return 1
    offsets = [s for _, s in case.reduced] + [s[:leaves] for _, s in case.outer[:-1]]
    limit = case.fitting(offsets)
    return limit and tuning.column_items(case.source, case.acc, num_columns, limit)


def _is_columns(case: _Case) -> bool:
    """Return whether neighbouring results are closer than the elements of one."""
    if not case.outer or not case.reduced:
        return False
    across = case.outer[-1][1][: case.num_fields]
    return sum(map(abs, across)) < sum(map(abs, case.reduced[-1][1]))


# --- Reduction of large pageable arrays on a GPU in blocks, so that they may exceed its memory.

Array = np.ndarray[Any, Any]

BLOCK_BYTES = 256 << 20  # smaller arrays are copied to the GPU as a whole


@planners.for_blocks.register(Reduction)
def _(problem: Reduction, call: planners.HostCall) -> bool:
    source = problem.source
    if isinstance(source, records.Computed):
        return False
    if any(map(records.is_position, records.field_dtypes(source))):
        return False
    return reduce_blocks(problem, call, call.op, source, problem.acc, lambda views, *_: views)


Reads: TypeAlias = Callable[[list[View], tuple[int, ...], host_whole.Index], list[View]]


def reduce_blocks(
    problem: Any, call: planners.HostCall, op: Operator, source: records.Element, acc: Dtype,
    reads: Reads,
) -> bool:  # fmt: skip
    """Reduce blocks in C order; a block's results start its outputs or are combined with them.

    `reads` returns the views of the elements' fields, given those of a block, the shape of the
    whole and the block's index. The call's results are the last fields of acc.
    """
    arrays, device, axes = call.arrays, problem.device, problem.axes
    if None not in call.device_views[: len(arrays)] or sum(x.nbytes for x in arrays) <= BLOCK_BYTES:
        return False
    reason = host_whole.pageable(True, problem.where)
    stream = host_whole.begin(device, call.stream, arrays[0], problem.where, reason)
    if len(axes) == arrays[0].ndim and all(x.flags.c_contiguous for x in arrays):
        arrays, axes = [x.reshape(-1) for x in arrays], (0,)
    arrays = [x if x.flags.aligned else x.copy() for x in arrays]
    start = NO_INIT if call.init is None else (call.init.tobytes(), 1, 0, 0)
    leaves, shape = records.field_dtypes(acc), arrays[0].shape
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    size, num_outs = sum(x.dtype.itemsize for x in arrays), math.prod(problem.shape)
    blocks = list(host_whole.indices(shape, range(len(shape)), size, BLOCK_BYTES))
    items = max(arrays[0][block].size for block in blocks)
    sizes = [
        *(items * x.dtype.itemsize for x in arrays), *(num_outs * leaf.itemsize for leaf in leaves),
        *(min(num_outs, items) * leaf.itemsize for leaf in leaves),
    ]  # fmt: skip
    plans: dict[tuple[int, ...], Plan] = {}
    buffers = staging.device_buffers(device, stream, sizes)
    with buffers as memory, host_whole.sync_on_error(stream):
        sources, out_buffers = memory[: len(arrays)], memory[len(arrays) :]
        totals, block_results = out_buffers[: len(leaves)], out_buffers[len(leaves) :]
        for block in blocks:
            # on the stream, after the previous block's reduction
            for x, address in zip(arrays, sources, strict=True):
                staging.upload(x[block], address, device, stream)
            offset, extents = 0, []
            for axis in kept:
                offset = offset * shape[axis] + block[axis].start
                extents.append(block[axis].stop - block[axis].start)
            targets = [
                total + offset * leaf.itemsize for total, leaf in zip(totals, leaves, strict=True)
            ]
            block_shape = arrays[0][block].shape
            uploaded = [
                dense_view(address, block_shape, x.dtype, device)
                for x, address in zip(arrays, sources, strict=True)
            ]
            views = reads(uploaded, shape, block)
            if block_shape not in plans:
                strides = [dense_strides(tuple(extents), leaf.itemsize) for leaf in leaves]
                plans[block_shape] = plan_of(views, op, axes, source, acc, strides)
            plan, addresses = plans[block_shape], [view.ptr for view in views]
            if all(block[axis].start == 0 for axis in axes):
                plan.queue(stream, (*start, op.words, *addresses, *targets))
                continue
            plan.queue(stream, (*NO_INIT, op.words, *addresses, *block_results))
            pairs = [
                dense_view(pointer, tuple(extents), leaf, device)
                for side in (targets, block_results)
                for pointer, leaf in zip(side, leaves, strict=True)
            ]
            join = elementwise.combine(op, acc, pairs, pairs[: len(targets)])
            join.queue(stream, (*NO_INIT, op.words, *targets, *block_results, *targets))
        outs = [np.empty(problem.shape, leaf) for leaf in leaves[-len(call.results) :]]
        for total, out in zip(totals[-len(outs) :], outs, strict=True):
            staging.download(total, out, device, stream)
        driver.synchronize(stream)
    for result, values in zip(call.results, outs, strict=True):
        result[...] = values.reshape(result.shape)
    return True
