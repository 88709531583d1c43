"""Onesweep radix sort of dense rows on a GPU: temporary storage, schedule, launches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy as shallow_copy
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gpualgo._algorithms.radix_sort import tuning
from gpualgo._algorithms.radix_sort.problem import WORD_SIZES, Descending, flipped_bits
from gpualgo._algorithms.radix_sort.tuning import Digit, digits_of, last_key, padded_digits
from gpualgo._algorithms.transform import cuda as elementwise
from gpualgo._arrays.view import View
from gpualgo._base.strides import dense_strides, merge
from gpualgo._cuda import build
from gpualgo._cuda.build import Spec
from gpualgo._cuda.headers import cpp
from gpualgo._cuda.plan import (
    CONTROL_BYTES,
    KEPT,
    NONE,
    STATES,
    TICKETS,
    ArgMap,
    Clear,
    Launch,
    Piece,
    arg_map,
)
from gpualgo._cuda.templates import VECTOR_BYTES, Applied, kernel_spec, launch
from gpualgo._driver import device as gpu
from gpualgo._driver.device import KEPT_BYTES, aligned
from gpualgo._operators.operator import Operator
from gpualgo._operators.tokens import same

# --- Gathers, and words of items of any size.

_BLOCK_THREADS = 256
_PER_THREAD = 4  # words, or items
_WIDEST = 16
_WORDS = {1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "c16"}


def word_bytes(*numbers: int) -> int:
    """Return the widest word that divides all sizes, strides and addresses."""
    return math.gcd(_WIDEST, *(abs(number) for number in numbers))


def gather_spec(word: int, index_bytes: int) -> Spec:
    types = _BLOCK_THREADS, _PER_THREAD, tuning.word(word), tuning.word(index_bytes)
    return kernel_spec("gather.cuh", "gather_kernel", *types)


def words_spec(
    name: str, word_bytes: int, sizes: Sequence[int], is_dense: bool, *index: str
) -> Spec:
    """Return a kernel of radix_sort/words.cuh, which packs items into words or unpacks them."""
    policy = cpp("WordsPolicy", _BLOCK_THREADS, _PER_THREAD, is_dense)
    types = policy, tuning.word(word_bytes), cpp("Tuple", *map(tuning.word, sizes)), *index
    return kernel_spec("radix_sort/words.cuh", f"{name}_words_kernel", *types)


# --- Arrays of a GPU sort, viewed as rows along the sorted axis.


class Operand:
    def __init__(self, view: View, axis: int | None, place: int) -> None:
        self.slot = place
        self.itemsize, self.address = view.dtype.itemsize, view.ptr
        shape, self.strides = list(view.shape), list(view.strides)
        if axis is not None:
            shape.append(shape.pop(axis))
            self.strides.append(self.strides.pop(axis))
        self._set(shape)

    def _set(self, shape: Sequence[int]) -> None:
        size, address = self.itemsize, self.address
        self.dims = list(zip(shape, self.strides, strict=True))
        self.row_strides = list(dense_strides(shape, size))
        self.num_bytes = math.prod(shape) * size
        self.is_gapless = all(
            extent == 1 or stride == rows
            for (extent, stride), rows in zip(self.dims, self.row_strides, strict=True)
        )
        self.is_aligned = address % size == 0 and all(
            extent == 1 or stride % size == 0 for extent, stride in self.dims
        )
        # Dense rows of a size that kernels can move.
        self.is_ready = self.is_gapless and size in WORD_SIZES and address % size == 0

    def dense_rows(self, place: int, itemsize: int) -> Operand:
        """Return dense, aligned rows of as many items, with another item size and slot."""
        operand, shape = shallow_copy(self), [extent for extent, _ in self.dims]
        operand.slot, operand.address, operand.itemsize = place, 0, itemsize
        operand.strides = list(dense_strides(shape, itemsize))
        operand._set(shape)
        return operand


# --- The onesweep sort.

_KEPT_TILES = (gpu.STATE_BYTES - CONTROL_BYTES) // (8 * tuning.NUM_DIGITS)
_TABLE_BYTES = 8 << 20  # limit of the digit tables of rows sorted at once

Steps: TypeAlias = list[Launch | Clear]
_Address: TypeAlias = tuple[int, int]  # an argument slot, and an offset in bytes


class Arrays(NamedTuple):
    """Argument slots of a sort; NONE for absent arrays."""

    keys: int
    values: int
    output_keys: int
    output_values: int


Window: TypeAlias = tuple[Any, int]
"""Slot of a KeyWindow (parts/key_window.cuh) or NONE, and the most keys of a narrow one."""


class _Storage(NamedTuple):
    control: int
    states: int
    tables: int
    sides: int


@dataclass(frozen=True)
class Job:
    device: int
    dtype: np.dtype[Any]  # of one key field, or of a word of several
    num_rows: int
    row_items: int
    descending: Descending
    begin_bit: int
    end_bit: int
    value_bytes: int = 0  # size of values moved with the keys, or of generated indices
    result_bytes: int = 0  # size of values in the output
    makes_indices: bool = False  # the values are the keys' positions in their row
    keeps_keys: bool = True  # write sorted keys, not only values
    is_in_place: bool = False  # some output is its input
    has_to_write: bool = True  # some output is not its input
    window: Window = (NONE, 0)

    @property
    def index_bytes(self) -> int:
        return 4 if self.row_items < 1 << 32 else 8

    @property
    def key_bytes(self) -> int:
        return self.dtype.itemsize


class Layout:
    """Offsets and sizes within the temporary storage: zeroed pieces, then others."""

    def __init__(self, job: Job, num_rows: int, num_passes: int, ring: int) -> None:
        words = job.index_bytes // 4
        tables = num_rows * num_passes * tuning.NUM_DIGITS * job.index_bytes
        self.counts = aligned(88 + 4 * num_rows)
        self.control_bytes = self.counts + tables
        self.state_bytes = CONTROL_BYTES + ring * tuning.NUM_DIGITS * 8 * words
        self.schedule = aligned(tables)
        self.table_bytes = self.schedule + aligned(4 * tuning.MAX_PASSES)
        num_keys = num_rows * job.row_items
        keys, values = aligned(num_keys * job.key_bytes), aligned(num_keys * job.value_bytes)
        self.first_values = keys
        self.side_bytes = keys + values if num_passes > 1 else 0
        # If keys are not wanted, the second buffer is the output as far as it is large enough.
        self.second_keys = self.second_values = -1  # offsets in the sides; negative: use the output
        self.lent_keys = 0  # offset within the output
        if not job.keeps_keys and num_passes > 2:
            available_bytes = job.result_bytes
            if available_bytes >= job.value_bytes + job.key_bytes:
                self.lent_keys = num_keys * job.value_bytes
            elif available_bytes >= job.key_bytes > job.value_bytes:
                self.second_values = self.side_bytes
                self.side_bytes += values
            else:
                self.second_keys = self.side_bytes
                self.side_bytes += keys

    @property
    def is_kept(self) -> bool:
        """Return whether all but the sides fit the stream's workspace."""
        states = self.state_bytes <= gpu.STATE_BYTES
        fits = self.control_bytes <= gpu.TICKET_BYTES and self.table_bytes <= gpu.KEPT_BYTES
        return states and fits


class Batch:
    """The launches that sort `num_rows` rows, without their argument slots."""

    def __init__(self, job: Job, num_rows: int) -> None:
        self.job, self.num_rows = job, num_rows
        props = gpu.get(job.device)
        digits = digits_of(job.dtype, job.descending, job.begin_bit, job.end_bit, job.is_in_place)
        num_keys = num_rows * job.row_items
        sizes = job.key_bytes, job.value_bytes, job.index_bytes
        tiling = tuning.pass_policy(num_keys, *sizes, props.shared_limit)
        tiles_per_row = -(-job.row_items // tiling.tile_items)
        num_tiles = tiles_per_row * num_rows
        ring = min(tuning.RING, 1 << max(4, (num_tiles - 1).bit_length()))
        stored_tiles = num_tiles if num_tiles <= _KEPT_TILES and job.index_bytes == 4 else ring
        self.layout = Layout(job, num_rows, len(digits), max(16, stored_tiles))
        num_words = (max(self.layout.state_bytes, gpu.STATE_BYTES) - CONTROL_BYTES) // 8
        if not self.layout.is_kept:
            num_words = (self.layout.state_bytes - CONTROL_BYTES) // 8
        hist_policy = tuning.histogram_policy(
            num_keys * job.key_bytes, len(digits), props.shared_limit
        )
        overlaps = props.may_overlap
        counting = tuning.histogram_spec(
            job.dtype, job.descending, len(digits), job.index_bytes, hist_policy, overlaps,
            job.window[1] > 0,
        )  # fmt: skip
        sorting = tuning.pass_spec(
            job.dtype, job.descending, job.value_bytes, job.result_bytes, job.index_bytes,
            tiling, num_rows > 1, overlaps,
        )  # fmt: skip
        build.kernels([counting, sorting], job.device)
        self._histogram = self._histogram_launch(counting, hist_policy, digits)
        grid = min(num_tiles, props.num_sms * tiling.blocks_per_sm)
        self._first_pass = partial(
            launch, sorting, job.device, grid, tiling.block_threads,
            shared_bytes=tiling.shared_bytes(*sizes), overlaps=overlaps,
        )  # fmt: skip
        self._passes: list[dict[str, Any]] = [
            {
                "num_tiles": num_tiles, "row_items": job.row_items, "tiles_per_row": tiles_per_row,
                "num_words": num_words, "ring": ring, "makes_values": job.makes_indices,
                "pass_index": index, "num_passes": len(digits), "digit": digit,
                "padding": last_key(job.dtype, job.descending),
            }
            for index, digit in enumerate(digits)
        ]  # fmt: skip

    def _histogram_launch(
        self, spec: Spec, tiling: tuning.HistogramPolicy, digits: list[Digit]
    ) -> Callable[..., Launch]:
        job = self.job
        items = VECTOR_BYTES // job.key_bytes
        min_items = tiling.block_threads * tiling.loads * items
        resident = gpu.get(job.device).num_sms * tiling.blocks_per_sm
        per_row = max(1, min(-(-job.row_items // min_items), resident // self.num_rows))
        chunk = -(-job.row_items // (per_row * items)) * items
        per_row = -(-job.row_items // chunk)
        return partial(
            launch, spec, job.device, per_row * self.num_rows, tiling.block_threads,
            shared_bytes=tiling.shared_bytes(len(digits)), row_items=job.row_items,
            chunk_items=chunk, num_rows=self.num_rows, blocks_per_row=per_row,
            digits=padded_digits(digits, tuning.MAX_PASSES), is_in_place=job.is_in_place,
            has_to_write=job.has_to_write, window_size=job.window[1],
            sign=flipped_bits(job.dtype, job.descending),
        )  # fmt: skip

    def launches(self, arrays: Arrays, storage: _Storage, first_row: int) -> list[Launch]:
        job, layout = self.job, self.layout
        sizes = job.key_bytes, job.value_bytes, job.key_bytes, job.result_bytes
        addresses = [
            (slot, 0 if slot == NONE else first_row * job.row_items * size)
            for slot, size in zip(arrays, sizes, strict=True)
        ]
        control, states, tables, sides = ((slot, 0) for slot in storage)
        table_slots = {
            "control": control, "counts": (storage.control, layout.counts), "starts": tables,
            "schedule": (storage.tables, layout.schedule),
        }  # fmt: skip
        keys, values, out_keys, out_values = addresses
        slots = {
            "input": _buffer(keys, values), "output": _buffer(out_keys, out_values),
            "sides": [
                _buffer(sides, (storage.sides, layout.first_values)),
                _buffer(*self._second(addresses, storage)),
            ],
            "states": states, "tables": table_slots,
        }  # fmt: skip
        count = {"keys": keys, "tables": table_slots, "window": job.window[0]}
        first = self._first_pass(takes=slots, **self._passes[0])
        others = [first.resized(first.grid, **fixed) for fixed in self._passes[1:]]
        return [self._histogram(takes=count), first, *others]

    def _second(self, addresses: list[_Address], storage: _Storage) -> tuple[_Address, _Address]:
        """Return the second buffers of keys and values; the first are the sides."""
        layout, (_, _, out_keys, out_values) = self.layout, addresses
        if self.job.keeps_keys:
            return out_keys, out_values
        slot, start = out_values
        keys, values = (slot, start + layout.lent_keys), out_values
        if layout.second_keys >= 0:
            keys = storage.sides, layout.second_keys
        if layout.second_values >= 0:
            values = storage.sides, layout.second_values
        return keys, values


def _buffer(keys: _Address, values: _Address) -> dict[str, _Address]:
    return {"keys": keys, "values": values}


def steps_of(
    job: Job, arrays: Arrays, first_piece: int, may_be_kept: bool
) -> tuple[Steps, list[Piece]]:
    """Return the steps that sort a job's rows, and the scratch pieces that they use.

    Rows are sorted in batches that share storage; the size of the digit tables limits a batch.
    """
    per_row = 8 * 2 * tuning.TABLE_BYTES * job.index_bytes // 4
    budget = max(_TABLE_BYTES, job.num_rows * job.row_items * job.key_bytes // 100)
    batch_rows = min(job.num_rows, max(1, budget // per_row))
    remaining = job.num_rows % batch_rows
    full, last = Batch(job, batch_rows), Batch(job, remaining) if remaining else None
    storage = _Storage(*range(first_piece, first_piece + 4))
    steps: Steps = []
    for row in range(0, job.num_rows - remaining, batch_rows):
        steps += full.launches(arrays, storage, row)
    layouts = [full.layout]
    if last is not None:  # its layout differs, and so does its zeroed storage
        layouts.append(last.layout)
        steps.append(Clear(storage.control, last.layout.control_bytes))
        steps.append(Clear(storage.states, last.layout.state_bytes))
        steps += last.launches(arrays, storage, job.num_rows - remaining)
    is_kept = may_be_kept and batch_rows == job.num_rows and full.layout.is_kept
    # Each piece is large enough for both layouts.
    control = max(layout.control_bytes for layout in layouts)
    states = max(layout.state_bytes for layout in layouts)
    tables = max(layout.table_bytes for layout in layouts)
    sides = max(layout.side_bytes for layout in layouts)
    fits = is_kept and tables + sides <= gpu.KEPT_BYTES
    return steps, [
        Piece(control, TICKETS if is_kept else None, is_zeroed=True),
        Piece(states, STATES if is_kept else None, is_zeroed=True),
        Piece(tables, KEPT if is_kept else None),
        Piece(sides, KEPT + tables if fits else None),
    ]


# --- Sort of rows that fit a block, in one launch and without temporary storage.


def launch_of(job: Job, arrays: Arrays) -> Launch | None:
    """Return the launch that sorts a job's rows at once; None if the rows are too long."""
    if job.row_items <= tuning.SMALL_ROW:
        return small_launch(job, arrays._asdict(), 0, job.row_items)
    limit, sms = gpu.get(job.device).shared_limit, gpu.get(job.device).num_sms
    tiling = tuning.row_policy(
        job.num_rows, job.row_items, job.key_bytes, job.result_bytes, sms, limit
    )
    if tiling is None:
        return None
    digits = digits_of(job.dtype, job.descending, job.begin_bit, job.end_bit, False)
    return launch(
        tuning.rows_spec(job.dtype, job.descending, job.result_bytes, tiling), job.device,
        -(-job.num_rows // tiling.rows_per_block), tiling.block_threads, arrays._asdict(),
        shared_bytes=tiling.shared_bytes(job.key_bytes, job.result_bytes > 0),
        num_rows=job.num_rows, row_items=job.row_items, padding=last_key(job.dtype, job.descending),
        is_padding_highest=True, num_passes=len(digits),
        digits=padded_digits(digits, tuning.MAX_ROW_PASSES),
    )  # fmt: skip


def small_launch(job: Job, slots: dict[str, Any], first_rank: int, num_ranks: int) -> Launch:
    """Return the launch that sorts rows of at most SMALL_ROW keys and writes some ranks of each."""
    mask = (1 << job.end_bit - job.begin_bit) - 1
    rows_per_block = tuning.SMALL_ROWS_THREADS // tuning.small_lanes(job.row_items)
    kind = job.dtype, job.descending, job.result_bytes, job.row_items
    return launch(
        tuning.small_rows_spec(*kind), job.device,
        -(-job.num_rows // rows_per_block), tuning.SMALL_ROWS_THREADS, slots,
        num_rows=job.num_rows, row_items=job.row_items, mask=mask, shift=job.begin_bit,
        flip=flipped_bits(job.dtype, job.descending) >> job.begin_bit & mask,
        first_rank=first_rank, num_ranks=num_ranks,
    )  # fmt: skip


# --- Common parts of GPU sort plans: copies into dense rows and back, row sorts, storage.

End: TypeAlias = tuple[Any, int, Sequence[int]]
"""Of a copy: a slot, or slot and offset; an address as aligned as it will be; strides."""


class Builder:
    """Collects the steps and scratch pieces of a plan, and the argument slots of its arrays."""

    _has_one_sort = False

    def __init__(
        self, axis: int | None, row_items: int, views: Sequence[View], targets: Sequence[View],
        at: ArgMap | None = None,
    ) -> None:  # fmt: skip
        self.device = views[0].device
        self.steps: Steps = []
        self.pieces: list[Piece] = []
        self._slots = slots = at or arg_map(len(views), len(targets))
        # The outputs of flattened sorts are rows already.
        self._sources = [Operand(x, axis, i) for x, i in zip(views, slots.sources, strict=True)]
        self._targets = [Operand(x, axis, i) for x, i in zip(targets, slots.targets, strict=True)]
        self._row_items = row_items
        self._num_rows = math.prod(views[0].shape) // row_items
        self._storage = -1  # first scratch piece of the sorts' passes

    def _sort(self, job: Job, arrays: Arrays) -> None:
        """Add a sort; several share the passes' storage, which is cleared in between."""
        single_launch = launch_of(job, arrays)
        if single_launch is not None:
            self.steps.append(single_launch)
            return
        is_first = self._storage < 0
        if is_first:
            self._storage = len(self.pieces)
        is_kept = not self.pieces and self._has_one_sort  # kept storage is not cleared
        steps, pieces = steps_of(job, arrays, self._slots.piece(self._storage), is_kept)
        if is_first:
            self.pieces += pieces
            pieces = []
        for i, piece in enumerate(pieces):
            index = self._storage + i
            if piece.is_zeroed:
                self.steps.append(Clear(self._slots.piece(index), piece.num_bytes))
            if piece.num_bytes > self.pieces[index].num_bytes:
                self.pieces[index] = piece
        self.steps += steps

    def _scratch(self, num_bytes: int) -> int:
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
        offset = rows[1] if isinstance(rows, tuple) else 0
        near = operand.slot, operand.address, operand.strides
        far = rows, offset, operand.row_strides
        extents = [extent for extent, _ in operand.dims]
        self._move(extents, operand.itemsize, *((near, far) if inward else (far, near)))

    def _move(self, extents: Sequence[int], itemsize: int, source: End, target: End) -> None:
        """Add a copy of items of any size, as words."""
        (from_slot, from_address, from_strides), (to_slot, to_address, to_strides) = source, target
        pairs = zip(to_strides, from_strides, strict=True)
        dims = merge(list(zip(extents, pairs, strict=True)))
        steps = [step for _, pair in dims for step in pair]
        word = word_bytes(itemsize, from_address & 15, to_address & 15, *steps)
        dtype = np.dtype(_WORDS[word])
        dims.append((itemsize // word, (word, word)))
        shape = tuple(extent for extent, _ in dims)
        to, read = (
            View(address, shape, tuple(pair[i] for _, pair in dims), dtype, self.device, None,
                 False, None)
            for i, address in enumerate((to_address, from_address))
        )  # fmt: skip
        applied, slots = Applied(Operator(same), (dtype,), dtype), ArgMap([from_slot], [to_slot])
        self.steps += elementwise.plan_of(applied, [read], shape, [to], slots).steps

    def _add_of_words(
        self, name: str, operands: Sequence[Operand], word_bytes: int, slots: dict[str, Any],
        *index: str, **fixed: Any,
    ) -> None:  # fmt: skip
        """Add the launch that packs items side by side into dense words, or unpacks them.

        `operands` are in the order of their fields, from the lowest bytes on.
        """
        is_dense, dims = all(operand.is_gapless for operand in operands), []
        if not is_dense:
            strides = zip(*(operand.strides for operand in operands), strict=True)
            extents = [extent for extent, _ in operands[0].dims]
            dims = merge(list(zip(extents, strides, strict=True)))
        spec = words_spec(name, word_bytes, [x.itemsize for x in operands], is_dense, *index)
        slots = {"numbers": [operand.slot for operand in operands], **slots}
        num_items = self._num_rows * self._row_items
        self._add(spec, num_items, slots, num_items=num_items, layout=dims, **fixed)

    def _add(self, spec: Spec, size: int, slots: dict[str, Any], **fixed: Any) -> None:
        grid = -(-size // (_BLOCK_THREADS * _PER_THREAD))
        self.steps.append(launch(spec, self.device, grid, _BLOCK_THREADS, slots, **fixed))

    def _gather_source(self, source: Operand, target: Operand) -> tuple[int, int, bool]:
        slot = target.slot if target.is_ready else self._scratch(target.num_bytes)
        if source.is_ready:
            is_same = slot == target.slot and source.address == target.address
            return source.slot, slot, is_same
        self._copy(source, True, slot)
        return slot, slot, True

    def _scatter(self, target: Operand, slot: int) -> None:
        if slot != target.slot:
            self._copy(target, False, slot)

    def _gather_items(self, items: Operand, target: Operand, indices: int, index_bytes: int) -> int:
        """Add the gather of values; return the slot of the result."""
        source, alignment = items.slot, items.address
        if not items.is_gapless:
            source, alignment = self._scratch(items.num_bytes), 0
            self._copy(items, True, source)
        result = target.slot
        if not target.is_gapless or (source == items.slot and items.address == target.address):
            result = self._scratch(target.num_bytes)
        else:
            alignment |= target.address
        word = word_bytes(items.itemsize, alignment & 15)
        words_per_item = items.itemsize // word
        num_words = self._num_rows * self._row_items * words_per_item
        self._add(
            gather_spec(word, index_bytes), num_words,
            {"input": source, "output": result, "indices": indices},
            num_words=num_words, words_per_item=words_per_item, row_items=self._row_items,
        )  # fmt: skip
        return result


def position_bytes(row_items: int) -> int:
    """Return the size of the indices that are sorted with the keys."""
    return 4 if row_items <= 1 << 32 else 8
