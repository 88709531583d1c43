"""Kernel launches of the merge sort: sorted tiles, and merged pairs of runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gpualgo._algorithms.merge_sort import policy
from gpualgo._algorithms.merge_sort.comparison import Comparison
from gpualgo._cuda import build
from gpualgo._cuda.launch import Launch
from gpualgo._cuda.parameters import Packed
from gpualgo._cuda.templates import WARP
from gpualgo._driver import device as gpu


class Buffer(NamedTuple):
    """Argument slots of rows, one array per field of keys and values; `NONE` if absent."""

    keys: tuple[int, ...]
    values: tuple[int, ...]

    @property
    def run(self) -> dict[str, tuple[int, ...]]:
        """Return the fields of a MergeRun."""
        return {"keys": self.keys, "values": self.values}


class Kernels:
    """The kernels for rows of one length, and their tiling."""

    def __init__(
        self, order: Comparison, values: Sequence[int], num_rows: int, row_items: int, device: int
    ) -> None:
        """`values`: sizes of the values moved with the keys."""
        self.device, self.num_rows, self.row_items = device, num_rows, row_items
        props, key_bytes = gpu.get(device), order.element.itemsize
        self.policy = policy.policy_of(
            num_rows * row_items, key_bytes, props.shared_limit, bool(values)
        )
        self.merging = policy.merging(self.policy)
        self.key_bytes = key_bytes
        self.overlaps = props.may_overlap
        async_bytes = props.shared_limit if props.capability >= (8, 0) else 0
        self.specs = policy.specs(order, values, self.policy, self.overlaps, async_bytes)
        is_ahead = policy.is_ahead(order.element, values, self.merging, async_bytes)
        self.merge_bytes = self.merging.shared_bytes(key_bytes, is_ahead)
        blocks = props.num_sms * self.merging.blocks_per_sm(key_bytes)
        self.merge_blocks = min(blocks, policy.MAX_GRID) if is_ahead else policy.MAX_GRID
        self.sorted_per_row = -(-row_items // self.policy.tile_items)
        self.tiles_per_row = -(-row_items // self.merging.tile_items)
        self.num_tiles = num_rows * self.tiles_per_row  # merge tiles
        self.num_passes = (self.sorted_per_row - 1).bit_length()

    def sort_tiles(self, source: Buffer, target: Buffer) -> Launch:
        """Return the launch that sorts each tile of the rows."""
        tiling, row_items = self.policy, self.row_items
        width = min(tiling.block_threads, 1 << (-(-row_items // tiling.items) - 1).bit_length())
        rows_per_tile, magic, num_tiles = 1, 0, self.num_rows * self.sorted_per_row
        if width < tiling.block_threads:
            rows_per_tile = tiling.block_threads // width
            num_tiles = -(-self.num_rows // rows_per_tile)
            magic = (1 << 32) // row_items + 1
        packed = self.specs[0].parameters.pack(
            num_tiles=num_tiles, num_rows=self.num_rows, row_items=row_items,
            tiles_per_row=self.sorted_per_row, rows_per_tile=rows_per_tile, threads_per_row=width,
            row_magic=magic,
        )  # fmt: skip
        slots = {
            "keys": source.keys, "values": source.values, "output_keys": target.keys,
            "output_values": target.values,
        }  # fmt: skip
        (kernel,) = build.kernels(self.specs[:1], self.device)
        return Launch(
            kernel, min(num_tiles, policy.MAX_GRID), tiling.block_threads, packed, self.device,
            slots, shared_bytes=tiling.shared_bytes(self.key_bytes),
        )  # fmt: skip

    def merge_runs(self, source: Buffer, target: Buffer, cuts: int, number: int) -> list[Launch]:
        """Return the launches of one merge pass, which halves the number of runs."""
        run = self.policy.tile_items << number
        tiles = run // self.merging.tile_items
        packed = self.specs[1].parameters.pack(
            num_tiles=self.num_tiles, row_items=self.row_items, first_items=run, second_items=run,
            second_begin=run, tiles_per_row=self.tiles_per_row, tiles_per_pair=2 * tiles,
        )  # fmt: skip
        return self._merge(packed, source, source, target, cuts)

    def merge_two(
        self, sources: tuple[Buffer, Buffer], lengths: tuple[int, int], target: Buffer, cuts: int
    ) -> list[Launch]:
        """Return the launches that merge two arrays of these lengths."""
        packed = self.specs[1].parameters.pack(
            num_tiles=self.num_tiles, row_items=self.row_items, first_items=lengths[0],
            second_items=lengths[1], second_begin=0, tiles_per_row=self.tiles_per_row,
            tiles_per_pair=self.num_tiles,
        )  # fmt: skip
        return self._merge(packed, *sources, target, cuts)

    def _merge(
        self, packed: Packed, first: Buffer, second: Buffer, target: Buffer, cuts: int
    ) -> list[Launch]:
        slots: dict[str, Any] = {
            "first": first.run, "second": second.run, "output_keys": target.keys,
            "output_values": target.values, "cuts": cuts,
        }  # fmt: skip
        find_cuts, merge = build.kernels(self.specs[1:], self.device)
        threads = self.merging.block_threads
        cut_tiles = threads - threads // WARP  # per block of the kernel that finds cuts
        grids = -(-self.num_tiles // cut_tiles), min(self.num_tiles, self.merge_blocks)
        return [
            Launch(
                kernel, min(grid, policy.MAX_GRID), threads, packed, self.device, slots,
                shared_bytes=shared, overlaps=self.overlaps,
            )
            for kernel, grid, shared in zip(
                (find_cuts, merge), grids, (0, self.merge_bytes),
                strict=True,
            )
        ]  # fmt: skip
