"""Plans of the selection by rank on a GPU: dense rows, strategy, temporary storage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gpualgo._algorithms.radix_sort.cuda_passes import (
    Arrays,
    Builder,
    Job,
    Operand,
    position_bytes,
    small_launch,
)
from gpualgo._algorithms.radix_sort.problem import flipped_bits
from gpualgo._algorithms.top_k import FirstElements, Ranked, RankedElements, tuning
from gpualgo._algorithms.top_k.tuning import Lists
from gpualgo._arrays.view import View
from gpualgo._cuda import build
from gpualgo._cuda.plan import NONE, TICKETS, Launch, Piece, Plan, arg_map
from gpualgo._cuda.templates import launch
from gpualgo._driver import device as gpu
from gpualgo._pipeline import planners

# --- Candidates in long rows: samples, bounds, filters, selection of ranks, and scratch storage.

Place = int | tuple[int, int]


class SampleScratch(NamedTuple):
    """Slots of the scratch pieces of a row: its sample, and lists of candidates between bounds."""

    sample_items: int
    sample_positions: int
    bounds: int
    positions: int
    items: int


@dataclass(frozen=True)
class LongRows:
    """Rows that are filtered one after another."""

    device: int
    dtype: np.dtype[Any]
    descending: bool
    row_items: int
    flip: int
    slot: int
    ranks: Sequence[int]
    is_one: bool  # only elements of the ranks are wanted, not all up to a rank

    @cached_property
    def lists(self) -> Lists:
        return tuning.lists_of(self.row_items, self.ranks, self.is_one)

    @property
    def sizes(self) -> tuple[int, ...]:
        samples = self.lists.samples
        size, capacity = 1 << samples[0].bits, sum(sample.capacity for sample in samples)
        item, index = self.dtype.itemsize, tuning.index_bytes(self.row_items)
        return (
            size * item, size * index, len(samples) * tuning.BOUNDS_BYTES, capacity * index,
            capacity * item,
        )  # fmt: skip

    @property
    def specs(self) -> list[build.Spec]:
        kind = self.dtype, self.descending, self.row_items
        return [
            tuning.gather_spec(self.dtype.itemsize, self.row_items),
            tuning.ranks_spec(*kind, tuning.BOUND, self._overlaps),
            tuning.filter_spec(*kind, len(self.lists.samples), self._overlaps),
        ]

    def gather(self, row: int, kept: SampleScratch) -> Launch:
        """Return the launch that takes the sample of a row."""
        bits = self.lists.samples[0].bits
        slots = {"items": kept.sample_items, "positions": kept.sample_positions}
        threads = tuning.GATHER_THREADS
        return launch(
            self.specs[0], self.device, -(-(1 << bits) // threads), threads,
            {**slots, "row": self._row(row)}, row_items=self.row_items, sample_bits=bits,
        )  # fmt: skip

    def sample(self, kept: SampleScratch) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what ranks_kernel takes of the sample: slots and numbers."""
        size = 1 << self.lists.samples[0].bits
        slots = {"kept_items": kept.sample_items, "kept_positions": kept.sample_positions}
        return {**slots, "bounds": kept.bounds}, {"num_samples": size, "num_items": size}

    def keep(self, row: int, kept: SampleScratch) -> Launch:
        """Return the launch that stores the elements of a row between the bounds."""
        num_sms = gpu.get(self.device).num_sms
        slots = {"bounds": kept.bounds, "items": kept.items, "positions": kept.positions}
        return launch(
            self.specs[2], self.device,
            tuning.filter_grid(self.row_items, self.dtype.itemsize, num_sms),
            tuning.FILTER_THREADS, {**slots, "row": self._row(row)}, overlaps=self._overlaps,
            row_items=self.row_items, flip=self.flip, begin=_padded(self._offsets),
            capacity=_padded(sample.capacity for sample in self.lists.samples),
        )  # fmt: skip

    def kept(self, kept: SampleScratch) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what ranks_kernel takes of the lists: slots and numbers."""
        samples, of_ranks = self.lists
        slots = {"kept_items": kept.items, "kept_positions": kept.positions}
        return {**slots, "bounds": kept.bounds}, {
            "lists": _padded(of_ranks), "begin": _padded(self._offsets),
            "capacity": _padded(sample.capacity for sample in samples),
            "num_items": max(sample.kept(self.row_items) for sample in samples),
        }  # fmt: skip

    @property
    def _offsets(self) -> list[int]:
        ends = np.cumsum([0, *(sample.capacity for sample in self.lists.samples)])
        return [int(end) for end in ends[:-1]]

    def _row(self, row: int) -> tuple[int, int]:
        return self.slot, row * self.row_items * self.dtype.itemsize

    @property
    def _overlaps(self) -> bool:
        return gpu.get(self.device).may_overlap


def _padded(numbers: Any, length: int = tuning.MOST_RANKS) -> list[int]:
    """Return numbers padded with zeros to the length of kernel arrays."""
    padded = list(numbers)
    return [*padded, *([0] * (length - len(padded)))]


_POSITION_BYTES = 8
_WIDE = np.dtype(np.uint64)


@planners.for_cuda.register(FirstElements)
def _(problem: FirstElements, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
    builder = _Builder(problem, views, targets, problem.axis)
    builder.add_first(problem.k)
    return builder.plan()


@planners.for_cuda.register(RankedElements)
def _(problem: RankedElements, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
    """Return the plan of a search for the elements of the given ranks, one output row per rank."""
    builder = _Builder(problem, views, targets, None)
    builder.add_ranks(problem.ranks)
    return builder.plan()


class _Builder(Builder):
    def __init__(
        self, problem: Ranked, views: Sequence[View], targets: Sequence[View], axis: int | None
    ) -> None:
        """`axis`: of the results; None if each rank's results are one flattened row."""
        super().__init__(problem.axis, problem.row_items, views, ())
        self._slots = slots = arg_map(len(views), len(targets))
        self._targets = [Operand(x, axis, i) for x, i in zip(targets, slots.targets, strict=True)]
        self._dtype, self._descending = problem.dtype, problem.descending
        self._itemsize = self._dtype.itemsize
        self._flip = flipped_bits(self._dtype, self._descending)
        self._row_bytes = self._row_items * self._itemsize
        source = self._sources[0]
        self._rows = source.slot
        if not source.is_ready:
            self._rows = self._scratch(source.num_bytes)
            self._copy(source, True, self._rows)
        self._control: int | None = None  # slot of what the blocks of each rank share
        self._outs = [t.slot if t.is_ready else self._scratch(t.num_bytes) for t in self._targets]

    def plan(self) -> Plan:
        """Return the plan, after adding copies of the results to their targets."""
        for target, slot in zip(self._targets, self._outs, strict=True):
            self._scatter(target, slot)
        return Plan(self.device, self.steps, self.pieces)

    def add_first(self, count: int) -> None:
        strategy = tuning.strategy_of(self._num_rows, self._row_items, count, self._itemsize)
        values, indices = self._outs
        if strategy == tuning.SMALL:
            self._add_small(0, count, (values, 0), indices)
        elif strategy == tuning.SHORT:
            self._add_short(count, (values, 0), indices)
        elif strategy == tuning.PARTS:
            self._add_parts(count, values, indices)
        elif strategy == tuning.BLOCK:
            self._add_select(tuning.SORTED, count - 1, (values, 0), indices)
        elif strategy in (tuning.SHARED, tuning.LONG):
            ranks, row_step = [count - 1], count * _POSITION_BYTES
            long_rows = None if strategy == tuning.SHARED else self._long_rows(ranks, False)
            sizes = () if long_rows is None else long_rows.sizes
            *slots, listed = self._workspace_pieces((*sizes, self._num_rows * row_step))
            if long_rows is None:
                self._add_ranks(tuning.LISTED, ranks, {"result": listed}, row_step=row_step)
            else:
                self._add_long(long_rows, SampleScratch(*slots), listed, row_step)
            if count <= tuning.MOST_SORTED:
                self._add_select(tuning.LISTED, count - 1, (values, 0), indices, listed)
            else:
                self._sort_listed(listed, count)
        else:
            self._add_take(self._add_argsort(), self._row_items, 0, count, (values, 0), indices)

    def add_ranks(self, ranks: Sequence[int]) -> None:
        (slot,) = self._outs
        num_rows, row_items = self._num_rows, self._row_items
        strategy = tuning.strategy_of_ranks(num_rows, row_items, self._itemsize, ranks)
        if strategy == tuning.SHARED:
            together = tuning.MOST_GROUPS // num_rows
            steps = {"rank_step": num_rows * self._itemsize, "row_step": self._itemsize}
            for i in range(0, len(ranks), together):
                slots = {"result": (slot, i * num_rows * self._itemsize)}
                self._add_ranks(tuning.ONE, ranks[i : i + together], slots, **steps)
        elif strategy == tuning.LONG:
            long_rows = self._long_rows(ranks, True)
            scratch = SampleScratch(*self._workspace_pieces(long_rows.sizes))
            self._add_long(long_rows, scratch, slot, self._itemsize)
        elif strategy == tuning.SORT:
            self._add_sorted(ranks, slot)
        else:
            for i, rank in enumerate(ranks):
                values = slot, i * num_rows * self._itemsize
                if strategy == tuning.SMALL:
                    self._add_small(rank, 1, values, NONE)
                elif strategy == tuning.SHORT:
                    self._add_short(rank + 1, values, NONE)
                else:
                    self._add_select(tuning.ONE, rank, values, NONE)

    # Strategies.

    def _add_small(self, first: int, count: int, values: tuple[int, int], positions: int) -> None:
        """Add a sort of rows in registers, which writes some ranks of each row."""
        job = self._job(0 if positions == NONE else _POSITION_BYTES)
        slots = {
            "keys": self._rows, "values": NONE, "output_keys": values, "output_values": positions
        }  # fmt: skip
        self.steps.append(small_launch(job, slots, first, count))

    def _add_sorted(self, ranks: Sequence[int], slot: int) -> None:
        """Add a sort of each row, and a copy of each rank's elements."""
        ordered, itemsize = self._scratch(self._num_rows * self._row_bytes), self._itemsize
        self._sort(self._job(), Arrays(self._rows, NONE, ordered, NONE))
        for i, rank in enumerate(ranks):
            first, place = rank * itemsize, i * self._num_rows * itemsize
            source = (ordered, first), first, [self._row_bytes]
            self._move([self._num_rows], itemsize, source, ((slot, place), place, [itemsize]))

    def _job(self, value_bytes: int = 0, **others: Any) -> Job:
        return Job(
            self.device, self._dtype, self._num_rows, self._row_items, self._descending, 0,
            8 * self._itemsize, value_bytes, **{"result_bytes": value_bytes, **others},
        )  # fmt: skip

    def _add_parts(self, count: int, values: int, indices: int) -> None:
        """Add a selection from parts of rows, and one from what that gives."""
        parts = tuning.parts_of(self._num_rows, self._row_items, count, self._itemsize)
        assert parts is not None
        kept = self._num_rows * parts[0] * count
        sizes = kept * self._itemsize, kept * _POSITION_BYTES
        items, places = self._workspace_pieces(sizes)
        self._add_short(count, (items, 0), places, parts)
        row_items = parts[0] * count
        self._add_short(count, (values, 0), indices, (1, row_items), items, places)

    def _add_short(
        self, count: int, values: tuple[int, int], positions: int,
        parts: tuple[int, int] | None = None, rows: int | None = None, places: int = NONE,
    ) -> None:  # fmt: skip
        """Add a selection from rows in registers: those of the input, or of `rows`.

        `parts`: how many parts a row has, and their length.
        """
        num_parts, part_items = parts or (1, self._row_items)
        row_items = self._row_items if rows is None else part_items
        spec = tuning.short_spec(self._dtype, self._descending, part_items, count, bool(parts))
        threads, rows_per_block = tuning.short_block(part_items)
        num_rows = self._num_rows * num_parts
        slots = {"values": values, "positions": positions, "places": places}
        self._launch(
            spec, -(-num_rows // rows_per_block), threads,
            {**slots, "rows": self._rows if rows is None else rows},
            num_rows=num_rows, row_items=row_items, part_items=part_items, parts=num_parts,
            count=count, flip=self._flip,
        )  # fmt: skip

    def _add_ranks(
        self, kind: str, ranks: Sequence[int], slots: dict[str, Any], row: int | None = None,
        **more: Any,
    ) -> None:  # fmt: skip
        """Add a search for ranks of all rows, or of what is known of one of them."""
        num_rows, row_items = self._num_rows if row is None else 1, self._row_items
        groups, device = num_rows * len(ranks), gpu.get(self.device)
        if self._control is None:
            self.pieces.append(Piece(0, TICKETS, is_zeroed=True))
            self._control = self._slots.piece(len(self.pieces) - 1)
        index = self._control - self._slots.piece(0)
        num_bytes = max(self.pieces[index].num_bytes, tuning.control_bytes(groups, row_items))
        self.pieces[index] = Piece(num_bytes, TICKETS, is_zeroed=True)
        given = {
            **dict.fromkeys(("kept_items", "kept_positions", "bounds", "result"), NONE),
            "rows": (self._rows, (row or 0) * self._row_bytes), "states": self._control,
            "counts": (self._control, groups * tuning.STATE_BYTES), **slots,
        }  # fmt: skip
        fixed = {
            **dict.fromkeys(("num_samples", "rank_step", "row_step"), 0),
            **dict.fromkeys(("lists", "begin", "capacity"), _padded(())),
            "num_items": row_items, **more,
        }  # fmt: skip
        blocks = tuning.blocks_per_group(fixed.pop("num_items"), groups, device.num_sms)
        types = self._dtype, self._descending, row_items
        self._launch(
            tuning.ranks_spec(*types, kind, device.may_overlap), groups * blocks,
            tuning.RANKS_THREADS, given, groups=groups, row_items=row_items, num_rows=num_rows,
            num_ranks=len(ranks), flip=self._flip, ranks=_padded(ranks, tuning.MOST_BOUNDS),
            **fixed,
        )  # fmt: skip

    def _add_select(
        self, kind: str, rank: int, values: tuple[int, int], positions: int, listed: int = NONE
    ) -> None:
        """Add a selection by a block for each row, or a sort of what is `listed` of it."""
        policy = tuning.select_policy(self._row_items, 0 if kind == tuning.ONE else rank + 1)
        types = self._dtype, self._descending, self._row_items
        slots = {"rows": self._rows, "values": values, "positions": positions, "listed": listed}
        self._launch(
            tuning.select_spec(*types, policy, kind), self._num_rows, policy.block_threads, slots,
            shared_bytes=policy.shared_bytes(self._dtype, self._row_items),
            row_items=self._row_items, rank=rank, flip=self._flip,
        )  # fmt: skip

    def _long_rows(self, ranks: Sequence[int], is_one: bool) -> LongRows:
        return LongRows(
            self.device, self._dtype, self._descending, self._row_items, self._flip, self._rows,
            ranks, is_one,
        )  # fmt: skip

    def _add_long(
        self, long_rows: LongRows, scratch: SampleScratch, result: int, row_step: int
    ) -> None:
        """Add the selection from long rows, one after another; all use the scratch in turn."""
        ranks, is_one = long_rows.ranks, long_rows.is_one
        kind = tuning.ONE if is_one else tuning.LISTED
        types = self._dtype, self._descending, self._row_items
        spec = tuning.ranks_spec(*types, kind, gpu.get(self.device).may_overlap)
        build.kernels([*long_rows.specs, spec], self.device)
        bounds = [
            rank for sample in long_rows.lists.samples for rank in (sample.first, sample.last)
        ]
        rank_step = self._num_rows * row_step if is_one else 0
        for row in range(self._num_rows):
            self.steps.append(long_rows.gather(row, scratch))
            slots, numbers = long_rows.sample(scratch)
            self._add_ranks(tuning.BOUND, bounds, slots, row, **numbers)
            self.steps.append(long_rows.keep(row, scratch))
            slots, numbers = long_rows.kept(scratch)
            slots["result"] = result, row * row_step
            self._add_ranks(kind, ranks, slots, row, rank_step=rank_step, **numbers)

    def _sort_listed(self, listed: int, count: int) -> None:
        """Sort the listed elements stably: first their positions, then the elements."""
        values, indices = self._outs
        num_rows, width = self._num_rows, max(1, (self._row_items - 1).bit_length())
        positions = self._scratch(num_rows * count * _POSITION_BYTES)
        job = Job(self.device, _WIDE, num_rows, count, False, 0, width)
        self._sort(job, Arrays(listed, NONE, positions, NONE))
        keys = self._scratch(num_rows * count * self._itemsize)
        self._add_take(positions, count, 0, count, (keys, 0), NONE)
        job = Job(
            self.device, self._dtype, num_rows, count, self._descending, 0, 8 * self._itemsize,
            value_bytes=_POSITION_BYTES, result_bytes=_POSITION_BYTES,
        )  # fmt: skip
        self._sort(job, Arrays(keys, positions, values, indices))

    def _add_argsort(self) -> int:
        """Add an argsort of each row; return the slot of the positions."""
        order = self._scratch(self._num_rows * self._row_items * _POSITION_BYTES)
        job = self._job(
            position_bytes(self._row_items), result_bytes=_POSITION_BYTES, makes_indices=True,
            keeps_keys=False,
        )  # fmt: skip
        self._sort(job, Arrays(self._rows, NONE, NONE, order))
        return order

    def _add_take(
        self, order: int, order_items: int, first: int, count: int, values: tuple[int, int],
        positions: int,
    ) -> None:  # fmt: skip
        num_items = self._num_rows * count
        self._launch(
            tuning.take_spec(self._itemsize), -(-num_items // tuning.TAKE_THREADS),
            tuning.TAKE_THREADS,
            {"rows": self._rows, "order": order, "values": values, "positions": positions},
            row_items=self._row_items, order_items=order_items, first=first, num_items=num_items,
            count=count,
        )  # fmt: skip

    def _launch(
        self, spec: build.Spec, grid: int, threads: int, slots: dict[str, Any], **more: Any
    ) -> None:
        self.steps.append(launch(spec, self.device, grid, threads, slots, **more))
