"""Plans of the merge sort on a GPU: dense rows, sorted tiles, then merges of pairs of runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpualgo._algorithms.merge_sort import tuning
from gpualgo._algorithms.merge_sort.problem import Comparison, Merge, MergeSort
from gpualgo._algorithms.radix_sort.cuda_passes import Builder, Operand, position_bytes
from gpualgo._arrays.view import View, is_contiguous
from gpualgo._base import records
from gpualgo._base.memo import Memo
from gpualgo._cuda import build
from gpualgo._cuda.plan import KEPT, NONE, Launch, Piece, Plan, arg_map
from gpualgo._cuda.templates import WARP, launch
from gpualgo._driver import device as gpu
from gpualgo._pipeline import planners
from gpualgo._pipeline.problem import NO_INIT

# --- Kernel launches of the merge sort: sorted tiles, and merged pairs of runs.


class Buffer(NamedTuple):
    """Argument slots of rows, one array per field of keys and values; `NONE` if absent."""

    keys: tuple[int, ...]
    values: tuple[int, ...]

    @property
    def run(self) -> dict[str, tuple[int, ...]]:
        return {"keys": self.keys, "values": self.values}

    @property
    def outputs(self) -> dict[str, tuple[int, ...]]:
        return {"output_keys": self.keys, "output_values": self.values}


class Kernels:
    """The kernels for rows of one length, and their tiling."""

    def __init__(
        self, order: Comparison, values: Sequence[int], num_rows: int, row_items: int, device: int
    ) -> None:
        """`values`: sizes of the values moved with the keys."""
        self.device, self.num_rows, self.row_items = device, num_rows, row_items
        props, key_bytes = gpu.get(device), order.element.itemsize
        self.policy = tuning.policy_of(
            num_rows * row_items, key_bytes, props.shared_limit, bool(values)
        )
        self.merging = tuning.merging(self.policy)
        self.key_bytes = key_bytes
        self.overlaps = props.may_overlap and num_rows * row_items <= tuning.MAX_OVERLAPPED
        async_bytes = props.shared_limit if props.capability >= (8, 0) else 0
        self.specs = tuning.specs(
            order, values, self.policy, self.overlaps, async_bytes, num_rows * row_items
        )
        is_ahead = tuning.prefetches(order.element, values, self.merging, async_bytes)
        self.merge_bytes = self.merging.shared_bytes(key_bytes, is_ahead)
        blocks = props.num_sms * self.merging.blocks_per_sm(key_bytes)
        self.merge_blocks = min(blocks, tuning.MAX_GRID) if is_ahead else tuning.MAX_GRID
        self.sorted_per_row = -(-row_items // self.policy.tile_items)
        self.tiles_per_row = -(-row_items // self.merging.tile_items)
        self.num_tiles = num_rows * self.tiles_per_row  # merge tiles
        # Of the cuts, if a kernel finds them.
        self.cut_bytes = [tuning.CUT_BYTES * self.num_tiles] * (len(self.specs) == 3)
        self.num_passes = (self.sorted_per_row - 1).bit_length()

    def sort_tiles(self, source: Buffer, target: Buffer) -> Launch:
        tiling, row_items = self.policy, self.row_items
        width = min(tiling.block_threads, 1 << (-(-row_items // tiling.items) - 1).bit_length())
        rows_per_tile, magic, num_tiles = 1, 0, self.num_rows * self.sorted_per_row
        if width < tiling.block_threads:
            rows_per_tile = tiling.block_threads // width
            num_tiles = -(-self.num_rows // rows_per_tile)
            magic = (1 << 32) // row_items + 1
        return launch(
            self.specs[0], self.device, min(num_tiles, tuning.MAX_GRID), tiling.block_threads,
            {**source.run, **target.outputs}, shared_bytes=tiling.shared_bytes(self.key_bytes),
            num_tiles=num_tiles, num_rows=self.num_rows, row_items=row_items,
            tiles_per_row=self.sorted_per_row, rows_per_tile=rows_per_tile, threads_per_row=width,
            row_magic=magic,
        )  # fmt: skip

    def merge_runs(self, source: Buffer, target: Buffer, cuts: int, number: int) -> list[Launch]:
        """Return the launches of one merge pass, which halves the number of runs."""
        run = self.policy.tile_items << number
        return self._merge(
            source, source, target, cuts, first_items=run, second_items=run, second_begin=run,
            tiles_per_pair=2 * (run // self.merging.tile_items),
        )  # fmt: skip

    def merge_two(
        self, sources: tuple[Buffer, Buffer], lengths: tuple[int, int], target: Buffer, cuts: int
    ) -> list[Launch]:
        return self._merge(
            *sources, target, cuts, first_items=lengths[0], second_items=lengths[1],
            second_begin=0, tiles_per_pair=self.num_tiles,
        )  # fmt: skip

    def _merge(
        self, first: Buffer, second: Buffer, target: Buffer, cuts: int, **fixed: int
    ) -> list[Launch]:
        slots = {"first": first.run, "second": second.run, **target.outputs, "cuts": cuts}
        threads, kernels = self.merging.block_threads, self.specs[1:]
        shapes = [(min(self.num_tiles, self.merge_blocks), self.merge_bytes)]
        if self.cut_bytes:
            cut_tiles = threads - threads // WARP  # per block of the kernel that finds cuts
            shapes.insert(0, (-(-self.num_tiles // cut_tiles), 0))
        build.kernels(kernels, self.device)
        return [
            launch(
                spec, self.device, min(grid, tuning.MAX_GRID), threads, slots, shared_bytes=shared,
                overlaps=self.overlaps, num_tiles=self.num_tiles, row_items=self.row_items,
                tiles_per_row=self.tiles_per_row, **fixed,
            )
            for spec, (grid, shared) in zip(kernels, shapes, strict=True)
        ]  # fmt: skip


@planners.for_cuda.register(MergeSort)
def _(problem: MergeSort, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
    builder = _Builder(problem, problem.order.with_op(op), views, targets)
    if problem.row_items == 1:
        builder.add_copies()
    else:
        builder.add()
    return Plan(builder.device, builder.steps, builder.pieces)


class KeysAndValues(Builder):
    """Builds plans that move keys and values to dense rows and write the results."""

    order: Comparison
    num_keys: int

    def add(self) -> None:
        """Order keys, and values with them; values that are not moved are gathered at the end."""
        out_keys, out_values = self._targets[: self.num_keys], self._targets[self.num_keys :]
        sizes, index_bytes = [x.itemsize for x in out_values], position_bytes(self._row_items)
        is_moved, keys = tuning.are_moved(sizes), self._homes(out_keys)
        if is_moved:
            values = self._homes(out_values)
        else:
            sizes, values = [index_bytes], (self._scratch(self._num_items * index_bytes),)
        self._add_rows(Buffer(keys, values or (NONE,)), sizes, is_moved)
        for target, slot in zip(out_keys, keys, strict=True):
            self._scatter(target, slot)
        if is_moved:
            for target, slot in zip(out_values, values, strict=True):
                self._scatter(target, slot)
            return
        for i, target in enumerate(out_values):
            items = self._gather_items(self._values(i), target, values[0], index_bytes)
            self._scatter(target, items)

    def _add_rows(self, home: Buffer, sizes: list[int], is_moved: bool) -> None:
        """Add the steps that order dense rows into `home`; values are positions unless moved.

        `sizes`: those of values.
        """
        raise NotImplementedError

    def _values(self, i: int) -> Operand:
        """Return an array of values, in the order in which positions are counted."""
        return self._sources[self.num_keys + i]

    def _source(self, home: Buffer, is_moved: bool) -> Buffer:
        """Return dense rows of the inputs, which are copied to `home` where they are not dense."""
        keys, values = self._sources[: self.num_keys], self._sources[self.num_keys :]
        moved = self._dense(values, home.values) if is_moved else ()
        return Buffer(self._dense(keys, home.keys), moved or (NONE,))

    def _dense(self, operands: Sequence[Operand], homes: Sequence[int] = ()) -> tuple[int, ...]:
        """Return slots of dense arrays: themselves, or copies in `homes` or in scratch pieces."""
        slots = []
        for i, operand in enumerate(operands):
            slot = operand.slot
            if operand.num_bytes and not operand.is_ready:
                slot = homes[i] if homes else self._scratch(operand.num_bytes)
                self._copy(operand, True, slot)
            slots.append(slot)
        return tuple(slots)

    def _homes(self, targets: Sequence[Operand]) -> tuple[int, ...]:
        """Return the slots of the results, of scratch pieces where targets are not dense."""
        return tuple([t.slot if t.is_ready else self._scratch(t.num_bytes) for t in targets])

    @property
    def _num_items(self) -> int:
        return self._num_rows * self._row_items

    @property
    def _key_sizes(self) -> list[int]:
        return [operand.itemsize for operand in self._sources[: self.num_keys]]


class _Builder(KeysAndValues):
    def __init__(
        self, problem: MergeSort, order: Comparison, views: Sequence[View],
        targets: Sequence[View],
    ) -> None:  # fmt: skip
        super().__init__(problem.axis, problem.row_items, views, targets)
        self.order, self.num_keys = order, problem.num_keys

    def add_copies(self) -> None:
        for source, target in zip(self._sources, self._targets, strict=True):
            if source.address == target.address and source.strides == target.strides:
                continue
            slot = target.slot if target.is_ready else self._scratch(target.num_bytes)
            self._copy(source, True, slot)
            self._scatter(target, slot)

    def _add_rows(self, home: Buffer, sizes: list[int], is_moved: bool) -> None:
        """Add the steps that sort rows: tiles, then merges of runs until one is left."""
        source = self._source(home, is_moved)
        kernels = Kernels(self.order, sizes, self._num_rows, self._row_items, self.device)
        side, cuts = home, NONE
        if kernels.num_passes:
            num_bytes = [self._num_items * size for size in (*self._key_sizes, *sizes)]
            slots = self._workspace_pieces([*num_bytes, *kernels.cut_bytes])
            count, end = self.num_keys, len(num_bytes)
            side = Buffer(tuple(slots[:count]), tuple(slots[count:end]) or (NONE,))
            cuts = slots[-1] if kernels.cut_bytes else NONE
        buffers = [side, home]
        current = buffers[kernels.num_passes % 2 == 0]
        self.steps.append(kernels.sort_tiles(source, current))
        for number in range(kernels.num_passes):
            other = home if current is side else side
            self.steps += kernels.merge_runs(current, other, cuts, number)
            current = other


# --- Merge of two sorted arrays on a GPU.


@planners.for_cuda.register(Merge)
def _(problem: Merge, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
    builder = _MergeBuilder(problem, problem.order.with_op(op), views, targets)
    builder.add()
    return Plan(builder.device, builder.steps, builder.pieces)


class _MergeBuilder(KeysAndValues):
    def __init__(
        self, problem: Merge, order: Comparison, views: Sequence[View], targets: Sequence[View]
    ) -> None:
        super().__init__(0, sum(problem.lengths), views, targets)
        self._num_rows = 1
        self.order, self.lengths, self.num_keys = order, problem.lengths, problem.num_keys
        values = self._sources[2 * self.num_keys :]
        self._pairs = [*zip(values, values[problem.num_values :], strict=False)]

    def _add_rows(self, home: Buffer, sizes: list[int], is_moved: bool) -> None:
        kernels = Kernels(self.order, sizes, 1, self._row_items, self.device)
        keys = self._sources[: self.num_keys], self._sources[self.num_keys : 2 * self.num_keys]
        values = zip(*self._pairs, strict=True) if is_moved and self._pairs else ((), ())
        first, second = (
            Buffer(self._dense(k), self._dense(v) or (NONE,))
            for k, v in zip(keys, values, strict=True)
        )
        cuts = [*self._workspace_pieces(kernels.cut_bytes), NONE]
        self.steps += kernels.merge_two((first, second), self.lengths, home, cuts[0])

    def _values(self, i: int) -> Operand:
        """Return a copy of both arrays, one after the other."""
        first, second = self._pairs[i]
        target = self._targets[self.num_keys + i]
        joined = target.dense_rows(self._scratch(target.num_bytes), target.itemsize)
        for operand, offset in ((first, 0), (second, first.num_bytes)):
            if operand.num_bytes:
                self._copy(operand, True, (joined.slot, offset))
        return joined


# --- Merge of several sorted runs, of which some may lie on other GPUs, to a part of one.


class Runs(NamedTuple):
    """Runs sorted by value; equal elements are in the order of the runs."""

    keys: tuple[np.dtype[Any], ...]  # of each field
    values: tuple[int, ...]  # sizes of fields that are moved with the keys
    directions: tuple[bool, ...]  # whether descending, for each field of a key
    lengths: tuple[int, ...]
    # Values are positions in their run, wanted as positions in all runs together, as integers of so
    # many bytes; keys are not wanted.
    index_bytes: int = 0

    def merge(
        self, first: int, last: int, device: int, stream: int, addresses: Sequence[int]
    ) -> None:
        """Queue a merge, on a GPU, of which elements `first` to `last` are wanted.

        `addresses`: of each run's fields, keys first; then of the arrays for the result's fields.
        Each element is read once, and written once.
        """
        key = (self, first, last, device)
        plan = _plans.look(key)
        if plan is None:
            plan = _plans.add(key, self._plan(first, last, device))
        plan.queue(stream, (*NO_INIT, b"", *addresses))

    def _plan(self, first: int, last: int, device: int) -> Plan:
        num_keys, num_fields, num_runs = len(self.keys), self.num_fields, len(self.lengths)
        element = self.keys[0]
        if num_keys > 1:
            element = records.record([str(i) for i in range(num_keys)], self.keys)
        num_outs = len(self.values) if self.index_bytes else num_fields
        props, at = gpu.get(device), arg_map(num_runs * num_fields, num_outs)
        pieces = tuning.run_pieces(element.itemsize, self.values, num_runs, props.shared_limit)
        specs = tuning.merge_runs(
            Comparison(element, None, self.directions), self.values, self.index_bytes, num_runs,
            pieces, props.may_overlap, props.capability >= (8, 0),
        )  # fmt: skip
        shift = pieces.shift(last - first)
        starts = [sum(self.lengths[:i]) if self.index_bytes else 0 for i in range(num_runs)]
        sources = [at.sources[i * num_fields : (i + 1) * num_fields] for i in range(num_runs)]
        key_outs = [NONE] * num_keys if self.index_bytes else at.targets[:num_keys]
        slots = {
            "keys": [fields[:num_keys] for fields in sources],
            "values": [fields[num_keys:] or (NONE,) for fields in sources],
            "output_keys": key_outs,
            "output_values": at.targets[num_outs - len(self.values) :] or (NONE,),
            "cuts": at.piece(0),
        }
        chunks = -(-(last - first) // (pieces.samples << shift))
        num_pieces, cut_bytes = chunks * pieces.pieces_per_chunk, tuning.cut_bytes(element.itemsize)
        cutting = tuning.CUT_THREADS, cut_bytes
        shapes = (
            (chunks + 1, *cutting), (chunks, *cutting),
            (num_pieces, pieces.policy.block_threads, pieces.shared_bytes),
        )  # fmt: skip
        build.kernels(specs, device)
        launches = [
            launch(
                spec, device, grid, threads, slots, shared_bytes=shared, overlaps=props.may_overlap,
                lengths=self.lengths, starts=starts, first=first, last=last, shift=shift,
            )
            for spec, (grid, threads, shared) in zip(specs, shapes, strict=True)
        ]  # fmt: skip
        return Plan(device, launches, [Piece(8 * num_runs * (num_pieces + 1), KEPT)])

    @property
    def num_fields(self) -> int:
        return len(self.keys) + len(self.values)


_plans: Memo[Plan] = Memo(256)  # few, because lengths and ranks are part of the key


def can_merge(runs: Sequence[Sequence[View]], num_keys: int) -> bool:
    """Return whether a kernel can merge these runs, each given as its fields, keys first."""
    sizes = [view.dtype.itemsize for view in runs[0][num_keys:]]
    return tuning.can_merge(len(runs[0]), len(runs), sizes) and all(
        len(view.shape) == 1 and is_contiguous(view) for fields in runs for view in fields
    )
