"""Selection by rank on a GPU: rows without gaps, the way for them, temporary storage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._algorithms.radix_sort.cuda_builder import Builder, position_bytes
from gpualgo._algorithms.radix_sort.cuda_passes import Arrays, Job
from gpualgo._algorithms.radix_sort.digits import flipped_bits
from gpualgo._algorithms.radix_sort.operands import Operand
from gpualgo._algorithms.top_k import parameters, policy
from gpualgo._algorithms.top_k.cuda_sample import Kept, Left, LongRows
from gpualgo._arrays.view import View
from gpualgo._cuda import build
from gpualgo._cuda.launch import Launch
from gpualgo._cuda.plan import NONE, Places, Plan
from gpualgo._cuda.templates import WARP
from gpualgo._driver import device as gpu

if TYPE_CHECKING:
    from gpualgo._algorithms.top_k.problem import FirstElements, Ranked, RankedElements

_POSITION_BYTES = 8
_WIDE = np.dtype(np.uint64)


def plan_of_first(problem: FirstElements, views: Sequence[View], targets: Sequence[View]) -> Plan:
    """Return the plan of a search for the first elements of rows, and their positions."""
    builder = _Builder(problem, views, targets, problem.axis)
    builder.add_first(problem.k)
    return builder.plan()


def plan_of_ranks(problem: RankedElements, views: Sequence[View], targets: Sequence[View]) -> Plan:
    """Return the plan of a search for the elements of some ranks, one row of them for each."""
    builder = _Builder(problem, views, targets, None)
    builder.add_ranks(problem.ranks)
    return builder.plan()


class _Builder(Builder):
    """The steps and pieces of a plan, for one combination of layouts."""

    def __init__(
        self, problem: Ranked, views: Sequence[View], targets: Sequence[View], axis: int | None
    ) -> None:
        """`axis`: along which the results are rows."""
        super().__init__(problem.axis, problem.row_items, views, ())
        self._at = at = Places(len(views), len(targets))
        self._targets = [Operand(x, axis, at.target(i)) for i, x in enumerate(targets)]
        self._dtype, self._descending = problem.dtype, problem.descending
        self._itemsize = self._dtype.itemsize
        self._flip = flipped_bits(self._dtype, self._descending)
        self._row_bytes = self._row_items * self._itemsize
        source = self._sources[0]
        self._rows = source.place
        if not source.is_ready:
            self._rows = self._piece(source.num_bytes)
            self._copy(source, True, self._rows)
        self._homes = [t.place if t.is_ready else self._piece(t.num_bytes) for t in self._targets]

    def plan(self) -> Plan:
        """Return the plan, with the results put where they belong."""
        for target, home in zip(self._targets, self._homes, strict=True):
            self._scatter(target, home)
        return Plan(self.device, self.steps, self.pieces)

    def add_first(self, count: int) -> None:
        """Find the first elements of each row."""
        way = policy.way_of(self._num_rows, self._row_items, count)
        values, indices = self._homes
        if way == policy.SHORT:
            self._add_short(count, (values, 0), indices)
        elif way == policy.BLOCK:
            takes = {"values": values, "positions": indices}
            self._add_select(policy.SORTED, self._num_rows, count - 1, count, takes)
        elif way == policy.LONG:
            self._add_first_of_long(count)
        else:
            self._add_take(self._ordered(), self._row_items, 0, count, (values, 0), indices)

    def add_ranks(self, ranks: Sequence[int]) -> None:
        """Find the element of each rank in each row."""
        (home,) = self._homes
        ways = [policy.way_of_rank(self._num_rows, self._row_items, rank) for rank in ranks]
        if len(ranks) > policy.MOST_RANKS:
            order = self._ordered()
            for start, rank in zip(self._starts(ranks), ranks, strict=True):
                self._add_take(order, self._row_items, rank, 1, (home, start), NONE)
        elif policy.LONG in ways:
            self._add_ranks_of_long(ranks)
        else:
            for way, start, rank in zip(ways, self._starts(ranks), ranks, strict=True):
                if way == policy.SHORT:
                    self._add_short(rank + 1, (home, start), NONE)
                    continue
                takes = {"values": (home, start), "positions": NONE}
                self._add_select(policy.ONE, self._num_rows, rank, 0, takes)

    def _starts(self, ranks: Sequence[int]) -> list[int]:
        """Return where the elements of each rank begin, in bytes."""
        return [i * self._num_rows * self._itemsize for i in range(len(ranks))]

    def _add_ranks_of_long(self, ranks: Sequence[int]) -> None:
        (home,) = self._homes
        long_rows = self._long_rows(ranks, True)
        kept = self._kept(long_rows)
        step = self._num_rows * self._itemsize
        if long_rows.is_narrowed:
            build.kernels([*long_rows.specs, *long_rows.narrow_specs], self.device)
        else:
            selecting = self._selecting(policy.ONE, 0, True)[1]
            build.kernels([*long_rows.specs, selecting], self.device)
        for row in range(self._num_rows):
            self.steps += long_rows.steps(row, kept)
            begin = row * self._itemsize
            if long_rows.is_narrowed:
                self.steps += long_rows.narrow(row, kept, (home, begin), step)
                continue
            for i, rank in enumerate(ranks):
                takes = {"values": (home, begin + i * step), "positions": NONE}
                left = long_rows.left(i, kept)
                self._add_select(policy.ONE, 1, rank, 0, takes, row, left)

    def _long_rows(self, ranks: Sequence[int], is_one: bool) -> LongRows:
        return LongRows(
            self.device, self._dtype, self._descending, self._row_items, self._flip, self._rows,
            ranks, is_one,
        )  # fmt: skip

    # Ways.

    def _add_short(self, count: int, values: tuple[int, int], positions: int) -> None:
        spec = policy.short_spec(self._dtype, self._descending, self._row_items)
        packed = parameters.SHORT_ROWS.pack(
            num_rows=self._num_rows, row_items=self._row_items, count=count, flip=self._flip
        )
        takes = {"rows": self._rows, "values": values, "positions": positions}
        rows_per_block = policy.SHORT_THREADS // WARP
        grid = -(-self._num_rows // rows_per_block)
        self._launch(spec, grid, policy.SHORT_THREADS, packed, takes)

    def _add_select(
        self, result: str, grid: int, rank: int, num_sorted: int, takes: dict[str, Any],
        row: int = 0, left: Left | None = None,
    ) -> None:  # fmt: skip
        """Add a selection by blocks, from rows or from what is left of one."""
        cut, spec, overlaps = self._selecting(result, num_sorted, left is not None)
        packed = parameters.SELECT_ROWS.pack(
            row_items=self._row_items, rank=rank, flip=self._flip,
            capacity=0 if left is None else left.capacity,
        )  # fmt: skip
        nothing = {"kept_keys": NONE, "kept_positions": NONE, "bounds": NONE}
        given = {
            "rows": (self._rows, row * self._row_bytes),
            **(nothing if left is None else left.places),
        }
        shared = cut.shared_bytes(self._dtype, self._row_items)
        self._launch(spec, grid, cut.block_threads, packed, {**given, **takes}, shared, overlaps)

    def _selecting(
        self, result: str, num_sorted: int, is_left: bool
    ) -> tuple[policy.SelectPolicy, build.Spec, bool]:
        """Return how blocks select, by which kernel, and whether it is launched early."""
        cut = policy.select_policy(self._row_items, num_sorted)
        overlaps = is_left and gpu.get(self.device).may_overlap
        spec = policy.select_spec(
            self._dtype, self._descending, self._row_items, cut, result, is_left, overlaps
        )
        return cut, spec, overlaps

    def _add_first_of_long(self, count: int) -> None:
        values, indices = self._homes
        num_rows, is_sorted = self._num_rows, count <= policy.MOST_SORTED
        listed = indices if is_sorted else self._piece(num_rows * count * _POSITION_BYTES)
        long_rows = self._long_rows([count - 1], False)
        kept, left_places = self._kept(long_rows), Left({}, 0)
        is_narrowed = long_rows.is_narrowed and not is_sorted
        result, most = (policy.SORTED, count) if is_sorted else (policy.LISTED, 0)
        if is_narrowed:
            build.kernels([*long_rows.specs, *long_rows.narrow_specs], self.device)
        else:
            selecting = self._selecting(result, most, True)[1]
            build.kernels([*long_rows.specs, selecting], self.device)
            left_places = long_rows.left(0, kept)
        for row in range(num_rows):
            positions = listed, row * count * _POSITION_BYTES
            self.steps += long_rows.steps(row, kept)
            if is_narrowed:
                self.steps += long_rows.narrow(row, kept, positions)
                continue
            takes: dict[str, Any] = {
                "values": (values, row * count * self._itemsize) if is_sorted else NONE,
                "positions": positions,
            }
            self._add_select(result, 1, count - 1, most, takes, row, left_places)
        if not is_sorted:
            self._sort_listed(listed, count)

    def _sort_listed(self, listed: int, count: int) -> None:
        """Put elements in order whose positions are listed: stably, once these are."""
        values, indices = self._homes
        num_rows, width = self._num_rows, max(1, (self._row_items - 1).bit_length())
        rising = self._piece(num_rows * count * _POSITION_BYTES)
        job = Job(self.device, _WIDE, num_rows, count, False, 0, width)
        self._sort(job, Arrays(listed, NONE, rising, NONE))
        keys = self._piece(num_rows * count * self._itemsize)
        self._add_take(rising, count, 0, count, (keys, 0), NONE)
        job = Job(
            self.device, self._dtype, num_rows, count, self._descending, 0, 8 * self._itemsize,
            value_bytes=_POSITION_BYTES, result_bytes=_POSITION_BYTES,
        )  # fmt: skip
        self._sort(job, Arrays(keys, rising, values, indices))

    def _ordered(self) -> int:
        """Add a sort of all positions of each row; return where they are then."""
        num_items = self._num_rows * self._row_items
        order = self._piece(num_items * _POSITION_BYTES)
        job = Job(
            self.device, self._dtype, self._num_rows, self._row_items, self._descending, 0,
            8 * self._itemsize, value_bytes=position_bytes(self._row_items),
            result_bytes=_POSITION_BYTES, makes_indices=True, keeps_keys=False,
        )  # fmt: skip
        self._sort(job, Arrays(self._rows, NONE, NONE, order))
        return order

    def _add_take(
        self, order: int, order_items: int, first: int, count: int, values: tuple[int, int],
        positions: int,
    ) -> None:  # fmt: skip
        num_items = self._num_rows * count
        packed = parameters.TAKE.pack(
            row_items=self._row_items, order_items=order_items, first=first, num_items=num_items,
            count=count,
        )  # fmt: skip
        takes = {"rows": self._rows, "order": order, "values": values, "positions": positions}
        grid = -(-num_items // policy.TAKE_THREADS)
        spec = policy.take_spec(self._itemsize)
        self._launch(spec, grid, policy.TAKE_THREADS, packed, takes)

    def _kept(self, long_rows: LongRows) -> Kept:
        """Return pieces for what is left of a row, one row after another."""
        return Kept(*self._kept_pieces(long_rows.sizes))

    def _launch(
        self, spec: build.Spec, grid: int, threads: int, packed: Any, takes: dict[str, Any],
        shared_bytes: int = 0, overlaps: bool = False,
    ) -> None:  # fmt: skip
        kernel = build.kernel(spec, self.device)
        self.steps.append(
            Launch(
                kernel, grid, threads, packed, self.device, takes, shared_bytes=shared_bytes,
                overlaps=overlaps,
            )
        )  # fmt: skip
