"""The onesweep radix sort of contiguous rows: temporary storage, schedule, launches."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpualgo._algorithms.radix_sort import policy
from gpualgo._cuda import build
from gpualgo._cuda.launch import Launch
from gpualgo._cuda.layout import DIVISOR, divisor
from gpualgo._driver import driver, workspace
from gpualgo._driver.workspace import aligned

_HISTOGRAM_HEAD = struct.Struct("<5Q")  # keys, RadixTables
_PASS_HEAD = struct.Struct("<13Q")  # input, output, two sides, states, RadixTables
_MAX_PASSES = 12
_CONTROL_BYTES = 256  # LookbackControl; RadixControl takes 72 bytes
_KEPT_TILES = (workspace.STATE_BYTES - _CONTROL_BYTES) // (8 * policy.NUM_DIGITS)
_TABLE_BYTES = 8 << 20  # what the digits' tables of rows sorted at once may take


@dataclass(frozen=True)
class Job:
    """What to sort: rows of keys that lie one after the other, without gaps."""

    device: int
    dtype: np.dtype[Any]
    num_rows: int
    row_items: int
    descending: bool
    begin_bit: int
    end_bit: int
    value_bytes: int = 0  # of values that move along, or of the indices that are made
    result_bytes: int = 0  # of values as they come out
    makes_indices: bool = False  # the values are the keys' positions in their row
    keeps_keys: bool = True  # sorted keys are wanted, not only the values
    is_in_place: bool = False  # some output is its input
    has_to_write: bool = True  # some output is not

    @property
    def index_bytes(self) -> int:
        """Return the size of a count of keys."""
        return 4 if self.row_items < 1 << 32 else 8

    @property
    def key_bytes(self) -> int:
        """Return the size of a key."""
        return self.dtype.itemsize


class Layout:
    """Where the pieces of the temporary storage lie: zeroed ones, then others."""

    def __init__(self, job: Job, num_rows: int, num_passes: int, ring: int) -> None:
        words = job.index_bytes // 4
        tables = num_rows * num_passes * policy.NUM_DIGITS * job.index_bytes
        self.counts = aligned(72 + 4 * num_rows)
        self.control_bytes = self.counts + tables
        self.state_bytes = _CONTROL_BYTES + ring * policy.NUM_DIGITS * 8 * words
        self.schedule = aligned(tables)
        self.table_bytes = self.schedule + aligned(4 * _MAX_PASSES)
        num_keys = num_rows * job.row_items
        keys, values = aligned(num_keys * job.key_bytes), aligned(num_keys * job.value_bytes)
        self.first_values = keys
        self.side_bytes = keys + values if num_passes > 1 else 0
        # Where keys are not wanted, the second place is the output as far as it is large enough.
        self.second_keys = self.second_values = -1  # within the sides; negative: the output
        self.lent_keys = 0  # within the output
        if not job.keeps_keys and num_passes > 2:
            room = job.result_bytes
            if room >= job.value_bytes + job.key_bytes:
                self.lent_keys = num_keys * job.value_bytes
            elif room >= job.key_bytes > job.value_bytes:
                self.second_values = self.side_bytes
                self.side_bytes += values
            else:
                self.second_keys = self.side_bytes
                self.side_bytes += keys

    @property
    def is_kept(self) -> bool:
        """Return whether all but the sides fits the stream's workspace."""
        states = self.state_bytes <= workspace.STATE_BYTES
        fits = (
            self.control_bytes <= workspace.TICKET_BYTES
            and self.table_bytes <= workspace.KEPT_BYTES
        )
        return states and fits


class Batch:
    """The launches that sort so many rows."""

    def __init__(self, job: Job, num_rows: int) -> None:
        self.job, self.num_rows = job, num_rows
        limit, sms = driver.shared_limit(job.device), driver.num_sms(job.device)
        digits = policy.digits_of(
            job.dtype, job.descending, job.begin_bit, job.end_bit, job.is_in_place
        )
        num_keys = num_rows * job.row_items
        cut = policy.pass_policy(num_keys, job.key_bytes, job.value_bytes, job.index_bytes, limit)
        tiles_per_row = -(-job.row_items // cut.tile_items)
        num_tiles = tiles_per_row * num_rows
        ring = min(policy.RING, 1 << max(4, (num_tiles - 1).bit_length()))
        stored = num_tiles if num_tiles <= _KEPT_TILES and job.index_bytes == 4 else ring
        self.layout = Layout(job, num_rows, len(digits), max(16, stored))
        self._histogram = self._histogram_launch(digits, limit, sms)
        overlaps = driver.may_overlap(job.device)
        spec = policy.pass_spec(
            job.dtype, job.value_bytes, job.result_bytes, job.index_bytes, cut, num_rows > 1,
            overlaps,
        )  # fmt: skip
        kernel = build.kernel(spec, job.device)
        grid = min(num_tiles, sms * cut.blocks_per_sm)
        shared = cut.shared_bytes(job.key_bytes, job.value_bytes, job.index_bytes)
        num_words = (max(self.layout.state_bytes, workspace.STATE_BYTES) - _CONTROL_BYTES) // 8
        if not self.layout.is_kept:
            num_words = (self.layout.state_bytes - _CONTROL_BYTES) // 8
        common = struct.pack(
            f"<qq{DIVISOR}q", num_tiles, job.row_items, *divisor(tiles_per_row), num_words
        )
        self._passes = []
        for number, digit in enumerate(digits):
            tail = common + struct.pack(
                "<IIIIIII4xQ", ring, job.makes_indices, number, len(digits),
                digit.shift, digit.mask, digit.flip, digit.padding,
            )  # fmt: skip
            self._passes.append(
                Launch(
                    kernel, grid, cut.block_threads, _PASS_HEAD, tail, job.device, shared, overlaps
                )
            )

    def _histogram_launch(self, digits: list[policy.Digit], limit: int, sms: int) -> Launch:
        job = self.job
        row_bytes = job.row_items * job.key_bytes
        cut = policy.histogram_policy(row_bytes * self.num_rows, len(digits), limit)
        items = policy.VECTOR_BYTES // job.key_bytes
        least = cut.block_threads * cut.loads * items
        per_row = max(1, min(-(-job.row_items // least), sms * cut.blocks_per_sm // self.num_rows))
        chunk = -(-job.row_items // (per_row * items)) * items
        per_row = -(-job.row_items // chunk)
        words = [word for d in digits for word in (d.shift, d.mask, d.flip)]
        words += [0] * (3 * _MAX_PASSES - len(words))
        tail = struct.pack(
            f"<qqq{DIVISOR}{3 * _MAX_PASSES}III", job.row_items, chunk, self.num_rows,
            *divisor(per_row), *words, job.is_in_place, job.has_to_write,
        )  # fmt: skip
        overlaps = driver.may_overlap(job.device)
        spec = policy.histogram_spec(job.dtype, len(digits), job.index_bytes, cut, overlaps)
        return Launch(
            build.kernel(spec, job.device), per_row * self.num_rows, cut.block_threads,
            _HISTOGRAM_HEAD, tail, job.device, cut.shared_bytes(len(digits)),
        )  # fmt: skip

    def queue(
        self, stream: int, keys: int, values: int, out_keys: int, out_values: int,
        storage: tuple[int, int, int, int],
    ) -> None:  # fmt: skip
        """Launch; `storage`: the addresses of control, states, tables and sides."""
        control, states, tables, sides = storage
        layout = self.layout
        described = (control, control + layout.counts, tables, tables + layout.schedule)
        self._histogram(stream, keys, *described)
        second_keys, second_values = out_keys, out_values
        if not self.job.keeps_keys:
            second_keys = out_values + layout.lent_keys
            if layout.second_keys >= 0:
                second_keys = sides + layout.second_keys
            if layout.second_values >= 0:
                second_values = sides + layout.second_values
        for launch in self._passes:
            launch(
                stream, keys, values, out_keys, out_values, sides, sides + layout.first_values,
                second_keys, second_values, states, *described,
            )  # fmt: skip


class Sorter:
    """Sorts a job's rows, as many at a time as their digits' tables may be."""

    __slots__ = ("_batches", "_side_bytes", "_small_bytes", "job", "temp_storage_bytes")

    def __init__(self, job: Job) -> None:
        self.job = job
        per_row = 8 * 2 * policy.TABLE_BYTES * job.index_bytes // 4
        budget = max(_TABLE_BYTES, job.num_rows * job.row_items * job.key_bytes // 100)
        most = min(job.num_rows, max(1, budget // per_row))
        full, rest = divmod(job.num_rows, most)
        self._batches = [(0, full, Batch(job, most))]
        if rest:
            self._batches.append((full * most, 1, Batch(job, rest)))
        layouts = [batch.layout for _, _, batch in self._batches]
        self._side_bytes = max(layout.side_bytes for layout in layouts)
        self._small_bytes = max(
            aligned(layout.control_bytes + layout.state_bytes) + layout.table_bytes
            for layout in layouts
        )
        self.temp_storage_bytes = self._small_bytes + self._side_bytes

    def queue(self, stream: int, keys: int, values: int, out_keys: int, out_values: int) -> None:
        """Queue the sort on a stream; the device is current."""
        if len(self._batches) == 1 and self._batches[0][1] == 1:
            batch = self._batches[0][2]
            if batch.layout.is_kept:
                with workspace.kept_for_several(self.job.device, stream, 0) as kept:
                    if kept:
                        addresses = keys, values, out_keys, out_values
                        self._queue_in_kept(batch, kept, stream, addresses)
                        return
        self._queue_in_own(stream, keys, values, out_keys, out_values)

    def _queue_in_kept(
        self, batch: Batch, kept: int, stream: int, addresses: tuple[int, int, int, int]
    ) -> None:
        layout = batch.layout
        tables = kept + workspace.TICKET_BYTES
        states = tables + workspace.KEPT_BYTES
        if layout.table_bytes + layout.side_bytes <= workspace.KEPT_BYTES:
            storage = kept, states, tables, tables + layout.table_bytes
            batch.queue(stream, *addresses, storage)
            return
        sides = workspace.allocate(layout.side_bytes, stream, self.job.device)
        try:
            batch.queue(stream, *addresses, (kept, states, tables, sides))
        finally:
            workspace.free(sides, stream)

    def _queue_in_own(
        self, stream: int, keys: int, values: int, out_keys: int, out_values: int
    ) -> None:
        job = self.job
        sizes = job.key_bytes, job.value_bytes, job.key_bytes, job.result_bytes
        own = workspace.allocate(self.temp_storage_bytes, stream, job.device)
        try:
            for first_row, repeats, batch in self._batches:
                layout = batch.layout
                zeroed = layout.state_bytes + layout.control_bytes
                for row in range(first_row, first_row + repeats * batch.num_rows, batch.num_rows):
                    # Once for each batch: the layouts of full and last batch differ.
                    if row == first_row:
                        workspace.clear(own, zeroed, stream)
                    storage = (
                        own + layout.state_bytes, own, own + aligned(zeroed),
                        own + self._small_bytes,
                    )  # fmt: skip
                    k, v, k_out, v_out = [
                        address + row * job.row_items * size if address else 0
                        for address, size in zip(
                            (keys, values, out_keys, out_values), sizes, strict=True
                        )
                    ]
                    batch.queue(stream, k, v, k_out, v_out, storage)
        finally:
            workspace.free(own, stream)
