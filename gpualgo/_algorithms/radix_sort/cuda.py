"""Plans of the radix sort on a GPU: dense rows, sort steps, temporary storage."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._algorithms.histogram import tuning as histogram_policy
from gpualgo._algorithms.histogram.cuda import machine_of
from gpualgo._algorithms.histogram.cuda_bins import DeviceBins
from gpualgo._algorithms.radix_sort import cuda_passes as passes
from gpualgo._algorithms.radix_sort import tuning
from gpualgo._algorithms.radix_sort.cuda_passes import Arrays, Job, Steps
from gpualgo._algorithms.radix_sort.digits import digits_of, flipped_bits, last_key, packed_digits
from gpualgo._algorithms.radix_sort.operands import Operand
from gpualgo._arrays.view import View
from gpualgo._base import dtypes
from gpualgo._base.strides import Dims
from gpualgo._cuda import build, copy
from gpualgo._cuda.build import Spec
from gpualgo._cuda.plan import KEPT, NONE, TICKETS, ArgMap, Clear, Launch, Piece, Plan
from gpualgo._cuda.templates import VECTOR_BYTES
from gpualgo._driver import device as gpu
from gpualgo._driver.workspace import KEPT_BYTES, TICKET_BYTES, aligned

if TYPE_CHECKING:
    from gpualgo._algorithms.radix_sort.problem import Sort


# --- Counting sort of 8- and 16-bit integers without values on the GPU: count, then write.

_FILL = histogram_policy.Policy(512, 4, 4)
_TICKET_BYTES = 256  # offset in the stream's tickets of the counters of 8-bit keys
_SCAN_WORDS = 64  # least shared memory of the last block, for its scan
_FEW_KEYS = {1: 1 << 18, 2: 1 << 21}  # by key size: up to this many keys, the digit sort is faster


def applies(dtype: np.dtype[Any], begin_bit: int, end_bit: int, num_items: int) -> bool:
    """Return whether `num_items` keys compared by these bits are best sorted by counting."""
    if dtype.kind not in "biu" or num_items <= _FEW_KEYS.get(dtype.itemsize, num_items):
        return False
    return begin_bit == 0 and end_bit == 8 * dtype.itemsize


def steps_of(
    device: int, dtype: np.dtype[Any], num_items: int, descending: bool, arrays: tuple[int, int],
    first_piece: int,
) -> tuple[list[Launch | Clear], list[Piece]]:  # fmt: skip
    """Return the steps that sort dense keys, and the scratch pieces that they use.

    `arrays`: the slots of input and output, which may be the same memory.
    """
    source, target = arrays
    tickets, tables = first_piece, first_piece + 1
    offset_bytes = 4 if num_items < 1 << 32 else 8
    counter_bytes = table_bytes = (1 << 8 * dtype.itemsize) * offset_bytes
    if dtype.itemsize == 1:
        counters, offsets = (tickets, _TICKET_BYTES), (tables, 0)
    else:
        counters, offsets = (tables, 0), (tables, counter_bytes)
        table_bytes += counter_bytes
    flip = flip_of(dtype, descending)
    count, fill = _launches(device, dtype, num_items, offset_bytes, flip)
    steps: list[Launch | Clear] = [
        count({"input": source, "counters": counters, "offsets": offsets, "ticket": tickets}),
        fill({"output": target, "offsets": offsets}),
    ]
    if dtype.itemsize > 1:  # the counters of 8-bit keys are among the tickets
        steps.insert(0, Clear(tables, counter_bytes))
    pieces = [
        Piece(TICKET_BYTES, TICKETS, is_zeroed=True), Piece(table_bytes + offset_bytes, KEPT),
    ]  # fmt: skip
    return steps, pieces


def _launches(
    device: int, dtype: np.dtype[Any], num_items: int, offset_bytes: int, flip: int
) -> tuple[Callable[..., Launch], Callable[..., Launch]]:
    """Return the launches that count and write, without their argument slots."""
    machine = machine_of(device)
    tiling = cut_keys(machine, dtype.itemsize, num_items)
    table = {
        "num_slots": 1 << 8 * dtype.itemsize, "replicas": tiling.replicas, "words": tiling.words,
    }  # fmt: skip
    packed = tuning.COUNT_PARAMS.pack(
        num_items=num_items, flip=flip, table=table, num_blocks=tiling.parts
    )
    counting, filling = build.kernels(
        [
            count_spec(machine, dtype.itemsize, tiling, offset_bytes),
            fill_spec(machine, dtype.itemsize, offset_bytes),
        ],
        device,
    )
    count = partial(
        Launch, counting, tiling.parts, tiling.policy.block_threads, packed, device,
        shared_bytes=histogram_policy.SHARED_HEAD_BYTES + 4 * max(tiling.words, _SCAN_WORDS),
    )  # fmt: skip
    items = VECTOR_BYTES // dtype.itemsize
    tile = _FILL.block_threads * _FILL.loads * items
    grid = -(-(num_items + items - 1) // tile)
    packed = tuning.FILL_PARAMS.pack(num_items=num_items, flip=flip)
    fill = partial(Launch, filling, grid, _FILL.block_threads, packed, device)
    return count, fill


def flip_of(dtype: np.dtype[Any], descending: bool) -> int:
    """Return the mask that turns a key's bits into its rank by exclusive or."""
    bits = 8 * dtype.itemsize
    sign = 1 << (bits - 1) if dtype.kind == "i" else 0
    return sign ^ ((1 << bits) - 1 if descending else 0)


def cut_keys(
    machine: histogram_policy.Machine, itemsize: int, num_items: int
) -> histogram_policy.Cut:
    """Return how the counting is divided into blocks."""
    key_bins = DeviceBins(
        f"gpualgo::KeyBins<{_key(itemsize)}>", tuning.KEY_BINS_PARAMS, lambda _: {},
        table_bins=1 << 8 * itemsize,
    )  # fmt: skip
    return histogram_policy.cut(machine, key_bins, 1, 1, num_items, itemsize)


def _key(itemsize: int) -> str:
    return dtypes.cpp_name(np.dtype(f"u{itemsize}"))


def count_spec(
    machine: histogram_policy.Machine, itemsize: int, cut: histogram_policy.Cut, offset_bytes: int
) -> Spec:
    return Spec(
        "radix_sort/counting.cuh",
        f"gpualgo::counting_sort_count_kernel<{cut.policy.cpp(machine.capability)}, "
        f"{_key(itemsize)}, {cut.table}, {_key(offset_bytes)}>",
        tuning.COUNT_PARAMS,
    )


def fill_spec(machine: histogram_policy.Machine, itemsize: int, offset_bytes: int) -> Spec:
    return Spec(
        "radix_sort/counting.cuh",
        f"gpualgo::counting_sort_fill_kernel<{_FILL.cpp(machine.capability)}, {_key(itemsize)}, "
        f"{_key(offset_bytes)}>",
        tuning.FILL_PARAMS,
    )


# --- Sort of rows that fit a block, in one launch and without temporary storage.


def launch_of(job: Job, arrays: Arrays) -> Launch | None:
    """Return the launch that sorts a job's rows at once; None if the rows are too long."""
    if job.row_items <= tuning.SMALL_ROW:
        return _small_launch(job, arrays)
    limit, sms = gpu.get(job.device).shared_limit, gpu.get(job.device).num_sms
    tiling = tuning.row_policy(
        job.num_rows, job.row_items, job.key_bytes, job.result_bytes, sms, limit
    )
    return None if tiling is None else _launch(job, tiling, arrays)


def _launch(job: Job, tiling: tuning.RowPolicy, arrays: Arrays) -> Launch:
    digits = digits_of(job.dtype, job.descending, job.begin_bit, job.end_bit, False)
    packed = tuning.ROWS_PARAMS.pack(
        num_rows=job.num_rows, row_items=job.row_items, padding=last_key(job.dtype, job.descending),
        is_padding_highest=True, num_passes=len(digits),
        digits=packed_digits(digits, tuning.MAX_ROW_PASSES),
    )  # fmt: skip
    spec = tuning.rows_spec(job.dtype, job.descending, job.result_bytes, tiling)
    kernel = build.kernel(spec, job.device)
    shared = tiling.shared_bytes(job.key_bytes, job.result_bytes > 0)
    grid = -(-job.num_rows // tiling.rows_per_block)
    return Launch(
        kernel, grid, tiling.block_threads, packed, job.device, _slots(arrays), shared_bytes=shared
    )


def _small_launch(job: Job, arrays: Arrays) -> Launch:
    width = 1 << (job.row_items - 1).bit_length()
    mask = (1 << job.end_bit - job.begin_bit) - 1
    flip = flipped_bits(job.dtype, job.descending) >> job.begin_bit & mask
    packed = tuning.SMALL_ROWS_PARAMS.pack(
        num_rows=job.num_rows, row_items=job.row_items, mask=mask, flip=flip, shift=job.begin_bit
    )
    spec = tuning.small_rows_spec(job.dtype, job.descending, job.result_bytes, width)
    rows_per_block = tuning.SMALL_ROWS_THREADS // width
    return Launch(
        build.kernel(spec, job.device), -(-job.num_rows // rows_per_block),
        tuning.SMALL_ROWS_THREADS, packed, job.device, _slots(arrays),
    )  # fmt: skip


def _slots(arrays: Arrays) -> dict[str, int]:
    """Return the argument slots of a kernel."""
    return {
        "keys": arrays.keys, "values": arrays.values, "output_keys": arrays.out_keys,
        "output_values": arrays.out_values,
    }  # fmt: skip


# --- Common parts of GPU sort plans: copies into dense rows and back, row sorts, storage.


class Builder:
    """Collects the steps and scratch pieces of a plan, and the argument slots of its arrays."""

    def __init__(
        self, axis: int | None, row_items: int, views: Sequence[View], targets: Sequence[View]
    ) -> None:
        self.device = views[0].device
        self.steps: Steps = []
        self.pieces: list[Piece] = []
        self._slots = slots = ArgMap(len(views), len(targets))
        # The outputs of flattened sorts are rows already.
        self._sources = [Operand(x, axis, slots.source(i)) for i, x in enumerate(views)]
        self._targets = [Operand(x, axis, slots.target(i)) for i, x in enumerate(targets)]
        self._row_items = row_items
        self._num_rows = math.prod(views[0].shape) // row_items

    def _sort(self, job: Job, arrays: Arrays) -> None:
        single_launch = launch_of(job, arrays)
        if single_launch is not None:
            self.steps.append(single_launch)
            return
        first = self._slots.piece(len(self.pieces))
        # Without copies, all storage is one allocation.
        steps, pieces = passes.steps_of(job, arrays, first, may_be_kept=not self.pieces)
        self.steps += steps
        self.pieces += pieces

    def _scratch(self, num_bytes: int) -> int:
        """Add a piece of temporary storage and return its slot."""
        self.pieces.append(Piece(num_bytes))
        return self._slots.piece(len(self.pieces) - 1)

    def _workspace_pieces(self, sizes: Sequence[int]) -> list[int]:
        """Add pieces, in the stream's workspace if first and small; return their slots."""
        ends = list(accumulate(map(aligned, sizes), initial=0))
        is_kept = not self.pieces and ends[-1] <= KEPT_BYTES
        first = len(self.pieces)
        self.pieces += [
            Piece(size, KEPT + offset if is_kept else None)
            for size, offset in zip(sizes, ends, strict=False)
        ]
        return [self._slots.piece(i) for i in range(first, len(self.pieces))]

    def _copy(self, operand: Operand, inward: bool, rows: int | tuple[int, int]) -> None:
        """Add a copy of an array into dense rows (inward), or back.

        `rows`: their slot, or the slot and a byte offset.
        """
        near, far = operand.strides, operand.row_strides
        pairs = zip(near, far, strict=True) if inward else zip(far, near, strict=True)
        dims: Dims = [(e, pair) for (e, _), pair in zip(operand.dims, pairs, strict=True)]
        ends = (operand.place, rows) if inward else (rows, operand.place)
        slots = dict(zip(("input", "output"), ends, strict=True))
        alignment = (operand.address | (rows[1] if isinstance(rows, tuple) else 0)) & 15
        self.steps.append(copy.copy(dims, operand.itemsize, alignment, self.device, slots))

    def _gather_source(self, source: Operand, target: Operand) -> tuple[int, int, bool]:
        """Return the slots of the sort's source and target, and whether these are the same."""
        slot = target.place if target.is_ready else self._scratch(target.num_bytes)
        if source.is_ready:
            is_same = slot == target.place and source.address == target.address
            return source.place, slot, is_same
        self._copy(source, True, slot)
        return slot, slot, True

    def _scatter(self, target: Operand, slot: int) -> None:
        if slot != target.place:
            self._copy(target, False, slot)

    def _gather_items(self, items: Operand, target: Operand, indices: int, index_bytes: int) -> int:
        """Add the gather of values; return the slot of the result."""
        source, alignment = items.place, items.address
        if not items.is_gapless:
            source, alignment = self._scratch(items.num_bytes), 0
            self._copy(items, True, source)
        result = target.place
        if not target.is_gapless or (source == items.place and items.address == target.address):
            result = self._scratch(target.num_bytes)
        else:
            alignment |= target.address
        self.steps.append(
            copy.gather(
                self._num_rows, self._row_items, items.itemsize, alignment & 15, index_bytes,
                self.device, {"input": source, "output": result, "indices": indices},
            )
        )  # fmt: skip
        return result


def position_bytes(row_items: int) -> int:
    """Return the size of the indices that are sorted with the keys."""
    return 4 if row_items <= 1 << 32 else 8


def plan_of(problem: Sort, views: Sequence[View], targets: Sequence[View]) -> Plan:
    """Return the plan of a sort of keys, a sort of keys and values, or an argsort."""
    builder = _Builder(problem, views, targets)
    if problem.index_dtype is not None:
        builder.add_argsort(problem.index_dtype.itemsize)
    elif len(views) == 2:
        builder.add_pairs()
    else:
        builder.add_keys()
    return Plan(builder.device, builder.steps, builder.pieces)


class _Builder(Builder):
    """Builds the steps and scratch pieces of a plan for one combination of layouts."""

    def __init__(self, problem: Sort, views: Sequence[View], targets: Sequence[View]) -> None:
        super().__init__(problem.axis, problem.row_items, views, targets)
        self.problem = problem

    def add_keys(self) -> None:
        source, target = self._sources[0], self._targets[0]
        problem = self.problem
        bits = problem.begin_bit, problem.end_bit
        is_ready = self._num_rows == 1 and source.is_ready and target.is_ready
        if is_ready and applies(problem.key_dtype, *bits, self._row_items):
            self.steps, self.pieces = steps_of(
                self.device, problem.key_dtype, self._row_items, problem.descending,
                (source.place, target.place), self._slots.piece(0),
            )  # fmt: skip
            return
        key_src, key_dst, is_same = self._gather_source(source, target)
        self._sort(self._job(is_same, not is_same), Arrays(key_src, NONE, key_dst, NONE))
        self._scatter(target, key_dst)

    def add_argsort(self, result_bytes: int) -> None:
        """Sort the positions of keys by the keys; keys as well if they have a target."""
        source, (*key_targets, target) = self._sources[0], self._targets
        key_src = source.place
        if not source.is_ready:
            key_src = self._scratch(source.num_bytes)
            self._copy(source, True, key_src)
        key_dst = target.place if target.is_ready else self._scratch(target.num_bytes)
        job = self._job(
            False, True, value_bytes=position_bytes(self._row_items), result_bytes=result_bytes,
            makes_indices=True, keeps_keys=bool(key_targets),
        )  # fmt: skip
        sorted_keys = key_targets[0].place if key_targets else NONE
        self._sort(job, Arrays(key_src, NONE, sorted_keys, key_dst))
        self._scatter(target, key_dst)

    def add_pairs(self) -> None:
        """Sort keys, and values with them."""
        (source, values), (target, out_values) = self._sources, self._targets
        key_src, key_dst, keys_same = self._gather_source(source, target)
        if values.itemsize in tuning.WORDS:
            val_src, val_dst, same = self._gather_source(values, out_values)
            job = self._job(
                keys_same or same, not (keys_same and same), value_bytes=values.itemsize,
                result_bytes=values.itemsize,
            )  # fmt: skip
            self._sort(job, Arrays(key_src, val_src, key_dst, val_dst))
        else:
            # Items of other sizes are gathered after the sort, by the sorted indices.
            index_bytes = position_bytes(self._row_items)
            indices = self._scratch(self._num_rows * self._row_items * index_bytes)
            job = self._job(
                keys_same, True, value_bytes=index_bytes, result_bytes=index_bytes,
                makes_indices=True,
            )  # fmt: skip
            self._sort(job, Arrays(key_src, NONE, key_dst, indices))
            val_dst = self._gather_items(values, out_values, indices, index_bytes)
        self._scatter(target, key_dst)
        self._scatter(out_values, val_dst)

    def _job(self, is_in_place: bool, has_to_write: bool, **others: Any) -> Job:
        problem = self.problem
        return Job(
            self.device, problem.key_dtype, self._num_rows, self._row_items, problem.descending,
            problem.begin_bit, problem.end_bit, is_in_place=is_in_place, has_to_write=has_to_write,
            **others,
        )  # fmt: skip
