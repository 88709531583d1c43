"""What is left of long rows: samples, bounds, filters, and the storage that they take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpualgo._algorithms.top_k import parameters, policy
from gpualgo._algorithms.top_k.policy import Sample
from gpualgo._cuda import build
from gpualgo._cuda.launch import Launch
from gpualgo._driver import device as gpu


class Kept(NamedTuple):
    """The places of what is left of a row: those of a sample, and of elements between its bounds.

    And the same of these, where they are filtered once more.
    """

    sample_keys: int
    sample_positions: int
    bounds: int
    keys: int
    positions: int
    next_bounds: int
    next_keys: int
    next_positions: int


class Left(NamedTuple):
    """What a block chooses from: where it lies, and how much there is room for."""

    places: dict[str, int]
    capacity: int


@dataclass(frozen=True)
class LongRows:
    """Rows of which one is filtered at a time."""

    device: int
    dtype: np.dtype[Any]
    descending: bool
    row_items: int
    flip: int
    place: int

    def sizes(self, samples: Sequence[Sample]) -> tuple[int, ...]:
        """Return the sizes of the pieces of `Kept`, for any of some samples."""
        size = max(1 << sample.bits for sample in samples)
        most = max(sample.capacity for sample in samples)
        again = max(sample.refined for sample in samples)
        key, index = policy.ordered_bytes(self.dtype), policy.index_bytes(self.row_items)
        bounds = parameters.BOUNDS_BYTES
        return (
            size * key, size * index, bounds, most * key, most * index, bounds, again * key,
            again * index,
        )  # fmt: skip

    def left(self, sample: Sample, kept: Kept) -> Left:
        """Return what the last of the steps leaves."""
        if sample.refined:
            places = kept.next_keys, kept.next_positions, kept.next_bounds
        else:
            places = kept.keys, kept.positions, kept.bounds
        names = "kept_keys", "kept_positions", "bounds"
        return Left(dict(zip(names, places, strict=True)), sample.refined or sample.capacity)

    def compile_kernels(self, is_refined: bool, *others: build.Spec) -> None:
        """Compile all kernels of the steps, and others, side by side."""
        specs = [*policy.sample_specs(*self._kind, self._overlaps), *others]
        if is_refined:
            specs += policy.refining_specs(*self._kind, self._overlaps)
        build.kernels(specs, self.device)

    def steps(self, row: int, rank: int, sample: Sample, kept: Kept) -> list[Launch]:
        """Return what keeps the elements of a row that lie between two of a sample."""
        rows, size = (self.place, row * self.row_items * self.dtype.itemsize), 1 << sample.bits
        gather, bound, keep = policy.sample_specs(*self._kind, self._overlaps)
        taken = {"keys": kept.sample_keys, "positions": kept.sample_positions}
        packed = parameters.GATHER_SAMPLE.pack(
            row_items=self.row_items, flip=self.flip, sample_bits=sample.bits
        )
        grid, threads = -(-size // policy.GATHER_THREADS), policy.GATHER_THREADS
        found = [self._launch(gather, grid, threads, packed, {"row": rows, **taken}, False)]
        packed = parameters.BOUND_SAMPLE.pack(
            num_samples=size, first=sample.first, last=sample.last
        )
        takes: dict[str, Any] = {**taken, "bounds": kept.bounds}
        found.append(self._launch(bound, 1, policy.LARGE_BLOCK, packed, takes))
        packed = parameters.FILTER.pack(
            row_items=self.row_items, capacity=sample.capacity, flip=self.flip
        )
        takes = {
            "row": rows, "bounds": kept.bounds, "keys": kept.keys, "positions": kept.positions,
        }  # fmt: skip
        grid = self._filter_grid(self.row_items, self.dtype.itemsize)
        found.append(self._launch(keep, grid, policy.FILTER_THREADS, packed, takes))
        return found + (self._again(rank, sample, kept) if sample.refined else [])

    def _again(self, rank: int, sample: Sample, kept: Kept) -> list[Launch]:
        """Return what keeps some of what is kept."""
        bound, keep = policy.refining_specs(*self._kind, self._overlaps)
        takes = {
            "kept_keys": kept.keys, "kept_positions": kept.positions, "bounds": kept.bounds,
            "keys": kept.sample_keys, "positions": kept.sample_positions, "next": kept.next_bounds,
        }  # fmt: skip
        packed = parameters.BOUND_KEPT.pack(
            capacity=sample.capacity, rank=rank, sample_bits=sample.bits,
            deviations=policy.DEVIATIONS, more=policy.MORE,
        )  # fmt: skip
        bounding = self._launch(bound, 1, policy.LARGE_BLOCK, packed, takes)
        takes = {**takes, "keys": kept.next_keys, "positions": kept.next_positions}
        packed = parameters.FILTER_KEPT.pack(
            kept_capacity=sample.capacity, rank=rank, capacity=sample.refined
        )
        grid = self._filter_grid(sample.capacity, policy.ordered_bytes(self.dtype))
        return [bounding, self._launch(keep, grid, policy.FILTER_THREADS, packed, takes)]

    @property
    def _kind(self) -> tuple[np.dtype[Any], bool, int]:
        return self.dtype, self.descending, self.row_items

    @property
    def _overlaps(self) -> bool:
        return gpu.get(self.device).may_overlap

    def _filter_grid(self, num_items: int, itemsize: int) -> int:
        return policy.filter_grid(num_items, itemsize, gpu.get(self.device).num_sms)

    def _launch(
        self, spec: build.Spec, grid: int, threads: int, packed: Any, takes: dict[str, Any],
        may_overlap: bool = True,
    ) -> Launch:  # fmt: skip
        """Return a launch; all but the first may begin while the one before still runs."""
        return Launch(
            build.kernel(spec, self.device), grid, threads, packed, self.device, takes,
            overlaps=may_overlap and self._overlaps,
        )  # fmt: skip
