"""Plans of the radix sort on a GPU: dense rows, sort steps, temporary storage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from gpualgo._algorithms.histogram import tuning as histogram_policy
from gpualgo._algorithms.histogram.cuda import machine_of
from gpualgo._algorithms.histogram.cuda_bins import DeviceBins
from gpualgo._algorithms.radix_sort import tuning
from gpualgo._algorithms.radix_sort.cuda_passes import (
    Arrays,
    Builder,
    Job,
    Operand,
    Window,
    position_bytes,
)
from gpualgo._algorithms.radix_sort.cuts import cuts_of
from gpualgo._algorithms.radix_sort.problem import (
    FIELD_SIZES,
    WORD_SIZES,
    Dtype,
    Group,
    Sort,
    flipped_bits,
    sort_problem,
    used_bits,
)
from gpualgo._algorithms.transform import cuda as elementwise
from gpualgo._arrays.view import NumPy, View, dense_view
from gpualgo._base import records
from gpualgo._cuda import build
from gpualgo._cuda.build import Spec
from gpualgo._cuda.headers import cpp
from gpualgo._cuda.plan import KEPT, NONE, TICKETS, ArgMap, Clear, Launch, Piece, Plan
from gpualgo._cuda.templates import VECTOR_BYTES, Applied, kernel_spec, launch
from gpualgo._driver import driver, staging
from gpualgo._driver.default_device import CPU
from gpualgo._operators.operator import Operator
from gpualgo._operators.tokens import same
from gpualgo._pipeline import host_whole, planners
from gpualgo._pipeline.problem import Array, problem_of

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
    itemsize, num_slots = dtype.itemsize, 1 << 8 * dtype.itemsize
    offset_bytes = 4 if num_items < 1 << 32 else 8
    counter_bytes = table_bytes = num_slots * offset_bytes
    steps: list[Launch | Clear] = []
    ticket_bytes = _TICKET_BYTES
    if itemsize == 1:
        counters, offsets = (tickets, _TICKET_BYTES), (tables, 0)
        ticket_bytes += counter_bytes
    else:
        counters, offsets = (tables, 0), (tables, counter_bytes)
        table_bytes += counter_bytes
        steps.append(Clear(tables, counter_bytes))
    machine, word = machine_of(device), tuning.word(itemsize)
    key_bins = DeviceBins(cpp("KeyBins", word), lambda _: {}, table_bins=num_slots)
    tiling = histogram_policy.tiling(machine, key_bins, 1, 1, num_items, itemsize)
    policies = [policy.cpp(machine.capability) for policy in (tiling.policy, _FILL)]
    counting = _counting_spec("count", policies[0], word, tiling.table, tuning.word(offset_bytes))
    filling = _counting_spec("fill", policies[1], word, tuning.word(offset_bytes))
    build.kernels([counting, filling], device)
    flip, vector_items = flipped_bits(dtype, descending), VECTOR_BYTES // itemsize
    fill_tile = _FILL.block_threads * _FILL.loads * vector_items
    steps.append(launch(
        counting, device, tiling.parts, tiling.policy.block_threads,
        {"input": source, "counters": counters, "offsets": offsets, "ticket": tickets},
        shared_bytes=histogram_policy.SHARED_HEAD_BYTES + 4 * max(tiling.words, _SCAN_WORDS),
        num_items=num_items, flip=flip, num_blocks=tiling.parts,
        table={"num_slots": num_slots, "replicas": tiling.replicas, "words": tiling.words},
    ))  # fmt: skip
    steps.append(launch(
        filling, device, -(-(num_items + vector_items - 1) // fill_tile), _FILL.block_threads,
        {"output": target, "offsets": offsets}, num_items=num_items, flip=flip,
    ))  # fmt: skip
    return steps, [
        Piece(ticket_bytes, TICKETS, is_zeroed=True), Piece(table_bytes + offset_bytes, KEPT),
    ]  # fmt: skip


def _counting_spec(name: str, *types: Any) -> Spec:
    return kernel_spec("radix_sort/counting.cuh", f"counting_sort_{name}_kernel", *types)


# --- Plans. Fields that fit 8 bytes are packed into one key, sorted once and unpacked. More fields
# are sorted group by group, the last group first. Indices carry the order so far; each group is
# gathered by them before it is sorted. Values are moved as one word if they fit 16 bytes, and
# gathered otherwise.


@planners.for_cuda.register(Sort)
def plan_of(
    problem: Sort, views: Sequence[View], op: Any, targets: Sequence[View],
    at: ArgMap | None = None, window: Window = (NONE, 0),
) -> Plan:  # fmt: skip
    """`at`: argument slots in another plan. Integers in a narrow `window` are not sorted."""
    builder = _Builder(problem, views, targets, at, window)
    if problem.index_dtype is not None:
        builder.add_argsort(problem.index_dtype.itemsize)
    elif len(problem.groups) == 1:
        builder.add_one_sort(problem.groups[0])
    else:
        builder.add_sorts()
    return Plan(builder.device, builder.steps, builder.pieces)


class _Builder(Builder):
    def __init__(
        self, problem: Sort, views: Sequence[View], targets: Sequence[View], at: ArgMap | None,
        window: Window,
    ) -> None:  # fmt: skip
        super().__init__(problem.axis, problem.row_items, views, targets, at)
        self.problem, self._window = problem, window
        count = problem.num_keys
        self._keys, self._values = self._sources[:count], self._sources[count:]
        out = self._targets if problem.index_dtype is None else []
        self._out_keys, self._out_values = out[:count], out[count:]
        self._num_items = self._num_rows * self._row_items
        self._shared_pieces: dict[str, int] = {}  # pieces shared by several steps
        self._has_one_sort = len(problem.groups) == 1

    def add_argsort(self, result_bytes: int) -> None:
        """Sort the positions of elements by the elements; one array of keys, too, if wanted."""
        (*key_targets, target), groups = self._targets, self.problem.groups
        key_dst = target.slot if target.is_ready else self._scratch(target.num_bytes)
        size = position_bytes(self._row_items)
        if len(groups) == 1:
            sorted_keys = key_targets[0].slot if key_targets else NONE
            self._order_group(groups[0], key_dst, size, result_bytes, sorted_keys)
        elif size == result_bytes:
            self._order(key_dst, size)
        else:  # widen once, at the end
            indices = self._scratch(self._num_items * size)
            self._order(indices, size)
            narrow = target.dense_rows(indices, size)
            self._pack([narrow], result_bytes, key_dst)
        self._scatter(target, key_dst)

    def add_one_sort(self, group: Group) -> None:
        """Sort by one word or one array, and values with it."""
        if self._are_counted(group):
            self.steps, self.pieces = steps_of(
                self.device, group.dtype, self._row_items, bool(group.descending),
                (self._keys[0].slot, self._out_keys[0].slot), self._slots.piece(0),
            )  # fmt: skip
            return
        key_src, key_dst, keys_same = self._gather_keys(group)
        word = self.problem.value_word
        is_moved = len(self._values) == 1 and self._values[0].itemsize in WORD_SIZES
        if not self._values:
            self._sort(
                self._job_of(group, keys_same, not keys_same), Arrays(key_src, NONE, key_dst, NONE)
            )
        elif is_moved or word is not None:
            if word is None:
                val_src, val_dst, same = self._gather_source(self._values[0], self._out_values[0])
            else:
                val_src = val_dst = self._scratch(self._num_items * word.itemsize)
                same = True
                parts = [self._aligned(operand) for operand in self._values]
                self._pack(_in_order(parts, word), word.itemsize, val_dst)
            size = self._values[0].itemsize if word is None else word.itemsize
            job = self._job_of(group, keys_same or same, not (keys_same and same), size)
            self._sort(job, Arrays(key_src, val_src, key_dst, val_dst))
            if word is None:
                self._scatter(self._out_values[0], val_dst)
            else:
                self._unpack(val_dst, word, self._out_values)
        else:
            size = position_bytes(self._row_items)
            indices = self._scratch(self._num_items * size)
            job = self._job_of(group, keys_same, True, size, makes_indices=True)
            self._sort(job, Arrays(key_src, NONE, key_dst, indices))
            for source, target in zip(self._values, self._out_values, strict=True):
                self._fetch(source, target, indices, size)
        self._finish_keys(group, key_dst)

    def _are_counted(self, group: Group) -> bool:
        source, target = self._keys[0], self._out_keys[0]
        is_ready = self._num_rows == 1 and source.is_ready and target.is_ready
        if not is_ready or group.is_word or self._values:
            return False
        return applies(group.dtype, *self._bits(group), self._row_items)

    def add_sorts(self) -> None:
        """Sort by several groups, and gather the arrays that were not moved with the keys."""
        size = position_bytes(self._row_items)
        indices = self._scratch(self._num_items * size)
        sorted_keys = self._order(indices, size)
        first = self.problem.groups[0]
        self._finish_keys(first, sorted_keys)
        others = range(first.size, len(self._keys))
        pairs = [(self._keys[i], self._out_keys[i]) for i in others]
        for source, target in [*pairs, *zip(self._values, self._out_values, strict=True)]:
            self._fetch(source, target, indices, size)

    def _order(self, indices: int, size: int) -> int:
        """Write the order of elements; return the slot of the first group's sorted keys."""
        *others, last = self.problem.groups
        self._order_group(last, indices, size, size)
        sorted_keys = NONE
        for group in reversed(others):
            sorted_keys = self._sort_slot_of(group)
            self._pack(self._parts(group), group.dtype.itemsize, sorted_keys, (indices, size))
            job = self._job_of(group, True, False, size)
            self._sort(job, Arrays(sorted_keys, indices, sorted_keys, indices))
        return sorted_keys

    def _sort_slot_of(self, group: Group) -> int:
        """Return the slot where a group's keys are gathered and sorted: the output if possible."""
        if group.first == 0 and not group.is_word and self._out_keys:
            source, target = self._sources[0], self._out_keys[0]
            if target.is_ready and target.address != source.address:
                return target.slot
        return self._shared_piece("keys", self._num_items * group.dtype.itemsize)

    def _order_group(
        self, group: Group, indices: int, size: int, result_bytes: int, sorted_keys: int = NONE
    ) -> None:
        """Write the order of a group's keys, which stay unchanged, and the keys if wanted."""
        source = self._keys[group.first]
        key_src = source.slot
        if group.is_word or not source.is_ready:
            key_src = self._shared_piece("keys", self._num_items * group.dtype.itemsize)
            if len(self._keys) > 1:
                self._pack(self._parts(group), group.dtype.itemsize, key_src)
            else:
                self._copy(source, True, key_src)
        job = self._job_of(
            group, False, True, size, result_bytes=result_bytes, makes_indices=True,
            keeps_keys=sorted_keys != NONE,
        )  # fmt: skip
        self._sort(job, Arrays(key_src, NONE, sorted_keys, indices))

    # --- keys ---------------------------------------------------------------------------------

    def _gather_keys(self, group: Group) -> tuple[int, int, bool]:
        """Return the slots of the sort's source and target, and whether these are the same."""
        if not group.is_word:
            return self._gather_source(self._keys[group.first], self._out_keys[group.first])
        slot = self._shared_piece("keys", self._num_items * group.dtype.itemsize)
        self._pack(self._parts(group), group.dtype.itemsize, slot)
        return slot, slot, True

    def _finish_keys(self, group: Group, slot: int) -> None:
        targets = [self._out_keys[i] for i in group.places]
        if group.is_word:
            self._unpack(slot, group.dtype, targets)
        else:
            self._scatter(targets[0], slot)

    def _parts(self, group: Group) -> list[Operand]:
        operands = [self._aligned(self._keys[i]) for i in group.places]
        return _in_order(operands, group.dtype) if group.is_word else operands[:1]

    def _job_of(
        self, group: Group, is_in_place: bool, has_to_write: bool, value_bytes: int = 0,
        **others: int,
    ) -> Job:  # fmt: skip
        begin, end = self._bits(group)
        return Job(
            self.device, group.dtype, self._num_rows, self._row_items, group.descending, begin, end,
            is_in_place=is_in_place, has_to_write=has_to_write, value_bytes=value_bytes,
            window=self._window,
            **{"result_bytes": value_bytes, **others},  # type: ignore[arg-type]
        )  # fmt: skip

    def _bits(self, group: Group) -> tuple[int, int]:
        begin, end = self.problem.begin_bit, self.problem.end_bit
        return (0, used_bits(group.dtype)) if end is None else (begin, end)

    # --- steps --------------------------------------------------------------------------------

    def _pack(
        self, parts: Sequence[Operand], word_bytes: int, target: int,
        indices: tuple[int, int] = (NONE, 0),
    ) -> None:  # fmt: skip
        """Add the step that packs items into words, gathered if there are indices of a size."""
        slot, index_bytes = indices
        index = tuning.word(index_bytes) if index_bytes else "gpualgo::InOrder"
        slots = {"indices": slot, "words": target}
        self._add_of_words("pack", parts, word_bytes, slots, index, row_items=self._row_items)

    def _unpack(self, source: int, word: Dtype, targets: Sequence[Operand]) -> None:
        """Add the step that writes words' fields to arrays, unaligned ones through a copy."""
        aligned = [
            t if t.is_aligned else t.dense_rows(self._scratch(t.num_bytes), t.itemsize)
            for t in targets
        ]
        self._add_of_words("unpack", _in_order(aligned, word), word.itemsize, {"words": source})
        for target, dense in zip(targets, aligned, strict=True):
            if dense is not target:
                self._scatter(target, dense.slot)

    def _fetch(self, source: Operand, target: Operand, indices: int, size: int) -> None:
        if source.itemsize not in FIELD_SIZES or not source.is_aligned:
            self._scatter(target, self._gather_items(source, target, indices, size))
            return
        slot = target.slot
        if not target.is_ready or target.address == source.address:
            slot = self._shared_piece("numbers", target.num_bytes)
        self._pack([source], source.itemsize, slot, (indices, size))
        self._scatter(target, slot)

    # --- memory -------------------------------------------------------------------------------

    def _aligned(self, operand: Operand) -> Operand:
        """Return an array, or a copy of it if its items are not aligned."""
        if operand.is_aligned:
            return operand
        dense_copy = operand.dense_rows(self._scratch(operand.num_bytes), operand.itemsize)
        self._copy(operand, True, dense_copy.slot)
        return dense_copy

    def _shared_piece(self, name: str, num_bytes: int) -> int:
        """Return the slot of a piece shared by name, large enough for every user."""
        if name not in self._shared_pieces:
            self._shared_pieces[name] = len(self.pieces)
            return self._scratch(num_bytes)
        index = self._shared_pieces[name]
        self.pieces[index] = Piece(max(num_bytes, self.pieces[index].num_bytes))
        return self._slots.piece(index)


def _in_order(operands: Sequence[Operand], word: Dtype) -> list[Operand]:
    """Return arrays in the order of their fields in a word, from the lowest bytes on."""
    pairs = zip(operands, records.offsets(word), strict=True)
    return [operand for operand, _ in sorted(pairs, key=lambda pair: pair[1])]


# --- Out-of-core sort of host arrays larger than a GPU's memory.
#
# Rows that fit are sorted several at a time. A longer row is sorted in runs, which are copied
# back to the host. Each block of the result is then a stable sort of one piece of each run,
# in the order of the runs. Exact cuts delimit the pieces (`gpualgo/_algorithms/radix_sort/cuts.py`;
# ties are broken by run and index), so the result does not depend on the runs. Keys and values
# cross the bus twice each way.

# Runs have 32-bit counts if that makes at most 32 of them: each cut examines every run.
_RUN_ITEMS, _MOST_RUNS = 1 << 31, 32
_COPIES = 4  # of keys and values: input, output, and two for rows with gaps
_PACKED_BYTES = 48  # per element of several fields: its packed words, twice, and its index


@planners.for_blocks.register(Sort)
def _(problem: Sort, call: planners.HostCall) -> bool:
    """Sort non-empty host arrays out of core; False if they fit the GPU as a whole."""
    if call.is_forced:
        return False
    arrays, results = call.arrays, call.results
    allowed = host_whole.allowed_bytes(problem.device)
    sorter = _OutOfCoreSort(problem, arrays)
    if arrays[0].size * sorter.item_bytes <= allowed:
        return False
    reason = f"{problem.where}: the arrays do not fit the GPU together, so the host takes part"
    handle = host_whole.begin(problem.device, call.stream, arrays[0], problem.where, reason)
    with host_whole.partial_write_guard(problem.where, arrays, results) as sorter.written:
        for budget in (allowed, allowed // 2, allowed // 4, allowed // 8):
            try:
                sorter.sort(arrays, results, handle, budget)
                break
            except MemoryError:  # other users hold memory: retry with shorter runs, same result
                if sorter.written.has_begun or budget == allowed // 8:
                    raise
    return True


Row: TypeAlias = tuple[list[Array], list[Array]]
"""Sources and targets of a row."""


class _OutOfCoreSort:
    """Out-of-core sort: dtypes of keys and values, and GPU bytes per element."""

    def __init__(self, problem: Sort, arrays: Sequence[Array]) -> None:
        self.problem, self.device, self.index = problem, problem.device, problem.index_dtype
        self.dtypes = [array.dtype for array in arrays]
        if self.index is not None:
            self.dtypes.append(self.index)  # positions are sorted as values
        has_words = all(dtype.itemsize in WORD_SIZES for dtype in self.dtypes)
        is_plain = has_words and not problem.is_of_tuples
        moved = sum(dtype.itemsize for dtype in self.dtypes)
        self.item_bytes = _COPIES * moved + (0 if is_plain else _PACKED_BYTES)
        self.written = host_whole.WriteState()

    def sort(self, arrays: list[Array], results: list[Array], stream: int, allowed: int) -> None:
        """Sort host arrays with at most `allowed` bytes of device memory."""
        axis, row_items = self.problem.axis, self.problem.row_items
        if axis is None:
            row = arrays, [result.reshape(-1) for result in results]
            self.sort_long_rows([row], stream, allowed)
            return
        sources, targets = ([np.moveaxis(x, axis, -1) for x in side] for side in (arrays, results))
        if row_items * self.item_bytes <= allowed:
            self.sort_rows(sources, targets, stream, allowed)
            return
        indices = np.ndindex(sources[0].shape[:-1])
        rows = [([x[i] for x in sources], [x[i] for x in targets]) for i in indices]
        self.sort_long_rows(rows, stream, allowed)

    # --- rows that fit ------------------------------------------------------------------------

    def sort_rows(
        self, sources: list[Array], targets: list[Array], stream: int, allowed: int
    ) -> None:
        """Sort along the last axis, as many rows at once as fit."""
        *outer, row_items = sources[0].shape
        row_bytes = row_items * self.item_bytes
        indices = [(*index, ...) for index in staging.pieces(tuple(outer), row_bytes, allowed)]
        shapes = {sources[0][index].shape for index in indices}
        plans = {shape: self._plan(shape, targets, len(shape) - 1, self.index) for shape in shapes}
        most = max(map(math.prod, shapes))
        sizes = [most * x.dtype.itemsize for x in (*sources, *targets)]
        with host_whole.memory(self.device, stream, sizes, [*plans.values()]) as (memory, queue):
            for index in indices:
                for x, address in zip(sources, memory, strict=False):
                    staging.upload(x[index], address, self.device, stream)
                queue(plans[sources[0][index].shape], *memory)
                self.written.has_begun = True
                for x, address in zip(targets, memory[len(sources) :], strict=True):
                    staging.download(address, x[index], self.device, stream)
            driver.synchronize(stream)

    # --- rows that do not fit ---------------------------------------------------------------------

    def sort_long_rows(self, rows: Sequence[Row], stream: int, allowed: int) -> None:
        """Sort all elements of each row's sources in C order; its targets have one dimension."""
        size = rows[0][0][0].size
        run = min(allowed // self.item_bytes, max(_RUN_ITEMS, -(-size // _MOST_RUNS))) or 1
        runs = [np.empty(size, dtype) for dtype in self.dtypes]
        ends = [(start, min(start + run, size)) for start in range(0, size, run)]
        plans = {n: self._plan((n,), runs, 0, None) for n in {end - start for start, end in ends}}
        counting = {} if self.index is None else {n: self._positions(n, self.index) for n in plans}
        sizes = 2 * [run * dtype.itemsize for dtype in self.dtypes]
        all_plans = [*plans.values(), *counting.values()]
        with host_whole.memory(self.device, stream, sizes, all_plans) as (memory, queue):
            inputs, outputs = memory[: len(runs)], memory[len(runs) :]

            def sort(count: int, targets: Sequence[tuple[Array, int]], start: int) -> None:
                queue(plans[count], *inputs, *outputs)
                for x, address in targets:
                    staging.download(address, x[start : start + count], self.device, stream)

            for sources, targets in rows:
                for start, end in ends:
                    for x, address in zip(sources, inputs, strict=False):
                        parts = staging.stretch(x, start, end)
                        staging.copy_all(parts, address, self.device, stream, is_upload=True)
                    if counting:
                        queue(counting[end - start], start, inputs[-1])
                    sort(end - start, list(zip(runs, outputs, strict=True)), start)
                driver.synchronize(stream)
                pieces = pairwise(self._cuts(runs, ends))
                self.written.has_begun = True
                for (start, end), (first, last) in zip(ends, pieces, strict=True):
                    for x, address in zip(runs, inputs, strict=True):
                        parts = [x[a:b] for a, b in zip(first, last, strict=True)]
                        staging.copy_all(parts, address, self.device, stream, is_upload=True)
                    destinations = zip(targets, outputs[-len(targets) :], strict=True)
                    sort(end - start, list(destinations), start)
                driver.synchronize(stream)

    def _cuts(self, runs: Sequence[Array], ends: Sequence[tuple[int, int]]) -> list[list[int]]:
        """Return where each block's pieces begin in the runs; the last entry holds their ends."""
        problem, count = self.problem, self.problem.num_keys
        options = problem.where, CPU, problem.end_bit, problem.directions, problem.begin_bit

        def order(parts: Sequence[slice]) -> Array:  # by a sort of positions on the CPU
            arrays = [np.concatenate([x[part] for part in parts]) for x in runs[:count]]
            arrays.append(np.arange(len(arrays[0])))
            results = [np.empty_like(x) for x in arrays]
            if arrays[0].size:
                sorting = sort_problem([NumPy.view(x) for x in arrays], count, *options)
                planners.cpu_plan(sorting, arrays, results, None).run(arrays, results, 0)
            return results[-1]

        return cuts_of(ends, order)

    # --- plans --------------------------------------------------------------------------------

    def _plan(
        self, shape: tuple[int, ...], targets: Sequence[Array], axis: int, index: Any
    ) -> Plan:
        """Return the plan that sorts dense arrays of a shape; with `index`, their order."""
        problem, dtypes = self.problem, self.dtypes
        if index is not None:
            dtypes = dtypes[:-1]
        views = host_whole.placeholder_host_views(dtypes, shape)
        params = problem.rest_along(axis, index)
        inner = problem_of(type(problem), views, None, None, params, problem.where, 0, self.device)
        outs = [target.dtype for target in targets]
        return planners.cuda_plan(
            inner,
            host_whole.placeholder_views(dtypes, shape, self.device), None,
            host_whole.placeholder_views(outs, shape, self.device),
        )  # fmt: skip

    def _positions(self, count: int, dtype: np.dtype[Any]) -> Plan:
        """Return the plan that writes consecutive positions; its source is the first one."""
        dtype = np.dtype(f"i{dtype.itemsize}")  # unsigned positions have the same bits
        number = records.operand_dtype(records.POSITION)
        applied = Applied(Operator(same), (number,), dtype, (records.POSITION,))
        positions: View = dense_view(0, (count,), records.POSITION, self.device)
        positions = positions._replace(strides=(records.step_of(records.POSITION),))
        targets = host_whole.placeholder_views([dtype], (count,), self.device)
        return elementwise.plan_of(applied, [positions], (count,), targets)
