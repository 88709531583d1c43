"""What is left of long rows: samples, bounds, filters, ranks in it, and the storage for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gpualgo._algorithms.top_k import parameters, policy
from gpualgo._algorithms.top_k.policy import Lists
from gpualgo._cuda import build
from gpualgo._cuda.launch import Launch
from gpualgo._cuda.plan import NONE
from gpualgo._driver import device as gpu

Place = int | tuple[int, int]


class Kept(NamedTuple):
    """The places of what is left of a row: a sample, and the lists of what lies between bounds."""

    sample_keys: int
    sample_positions: int
    bounds: int
    keys: int
    positions: int
    control: int  # of who narrows ranks down


class Left(NamedTuple):
    """What a block chooses from: where it lies, and how much there is room for."""

    places: dict[str, Place]
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
    ranks: Sequence[int]
    is_one: bool  # else the elements up to the rank are wanted

    @cached_property
    def lists(self) -> Lists:
        """Return what bounds the ranks."""
        return policy.lists_of(self.row_items, self.ranks, self.is_one)

    @property
    def is_narrowed(self) -> bool:
        """Return whether so much is left that many blocks choose from it."""
        return any(sample.kept(self.row_items) > policy.MOST_LEFT for sample in self.lists.samples)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the sizes of the pieces of `Kept`."""
        samples = self.lists.samples
        size, most = 1 << samples[0].bits, sum(sample.capacity for sample in samples)
        key, index = policy.ordered_bytes(self.dtype), policy.index_bytes(self.row_items)
        return (
            size * key, size * index, len(samples) * parameters.BOUNDS_BYTES, most * key,
            most * index, policy.control_bytes(len(self.ranks), self.row_items),
        )  # fmt: skip

    def left(self, rank: int, kept: Kept) -> Left:
        """Return what the last of the steps leaves for one of the ranks, by its number."""
        samples, of_ranks = self.lists
        number, begin = of_ranks[rank], self._begin[of_ranks[rank]]
        key, index = policy.ordered_bytes(self.dtype), policy.index_bytes(self.row_items)
        places: dict[str, Place] = {
            "kept_keys": (kept.keys, begin * key),
            "kept_positions": (kept.positions, begin * index),
            "bounds": (kept.bounds, number * parameters.BOUNDS_BYTES),
        }
        return Left(places, samples[number].capacity)

    @property
    def specs(self) -> list[build.Spec]:
        """Return the kernels of `steps`."""
        number = len(self.lists.samples)
        return policy.sample_specs(*self._kind, number, self._overlaps)

    @property
    def narrow_specs(self) -> list[build.Spec]:
        """Return the kernels of `narrow`."""
        return policy.narrow_specs(*self._kind, not self.is_one, self._overlaps)

    def steps(self, row: int, kept: Kept) -> list[Launch]:
        """Return what keeps the elements of a row that lie between those of a sample."""
        samples, size = self.lists.samples, 1 << self.lists.samples[0].bits
        gather, bound, keep = self.specs
        taken = {"keys": kept.sample_keys, "positions": kept.sample_positions}
        packed = parameters.GATHER_SAMPLE.pack(
            row_items=self.row_items, flip=self.flip, sample_bits=samples[0].bits
        )
        grid, threads = -(-size // policy.GATHER_THREADS), policy.GATHER_THREADS
        takes: dict[str, Any] = {"row": self._row(row), **taken}
        found = [self._launch(gather, grid, threads, packed, takes, False)]
        control = policy.control_bytes(len(self.ranks), self.row_items) if self.is_narrowed else 0
        packed = parameters.BOUND_SAMPLE.pack(
            num_samples=size, control_words=control // 4,
            first=_filled(sample.first for sample in samples),
            last=_filled(sample.last for sample in samples),
        )  # fmt: skip
        takes = {**taken, "bounds": kept.bounds, "control": kept.control if control else NONE}
        found.append(self._launch(bound, 2 * len(samples), policy.LARGE_BLOCK, packed, takes))
        packed = parameters.FILTER.pack(
            row_items=self.row_items, flip=self.flip, begin=_filled(self._begin),
            capacity=_filled(sample.capacity for sample in samples),
        )  # fmt: skip
        takes = {
            "row": self._row(row), "bounds": kept.bounds, "keys": kept.keys,
            "positions": kept.positions,
        }  # fmt: skip
        num_sms = gpu.get(self.device).num_sms
        grid = policy.filter_grid(self.row_items, self.dtype.itemsize, num_sms)
        return [*found, self._launch(keep, grid, policy.FILTER_THREADS, packed, takes)]

    def narrow(self, row: int, kept: Kept, result: Place, result_step: int = 0) -> list[Launch]:
        """Return what finds all ranks in what is left, and writes them or lists positions."""
        narrow, write = self.narrow_specs
        samples, of_ranks = self.lists
        counts = len(self.ranks) * parameters.STATE_BYTES
        takes = {
            "row": self._row(row), "kept_keys": kept.keys, "kept_positions": kept.positions,
            "bounds": kept.bounds, "states": kept.control, "counts": (kept.control, counts),
            "result": result,
        }  # fmt: skip
        most = max(sample.kept(self.row_items) for sample in samples)
        number, num_sms = len(self.ranks), gpu.get(self.device).num_sms
        grid = policy.narrow_grid(most, number, num_sms)
        launches = []
        for i in range(policy.num_digits(self.dtype, self.row_items) + 1):
            packed = parameters.NARROW.pack(
                row_items=self.row_items, result_step=result_step, is_first=i == 0,
                num_ranks=number, flip=self.flip, ranks=_filled(self.ranks),
                lists=_filled(of_ranks), begin=_filled(self._begin),
                capacity=_filled(s.capacity for s in samples),
            )  # fmt: skip
            launches.append((narrow, packed))
        launches[-1] = write, launches[-1][1]
        return [
            self._launch(spec, grid * number, policy.NARROW_THREADS, packed, takes)
            for spec, packed in launches
        ]

    @property
    def _begin(self) -> list[int]:
        """Return where lists begin, in elements."""
        ends = np.cumsum([0, *(sample.capacity for sample in self.lists.samples)])
        return [int(end) for end in ends[:-1]]

    def _row(self, row: int) -> tuple[int, int]:
        return self.place, row * self.row_items * self.dtype.itemsize

    @property
    def _kind(self) -> tuple[np.dtype[Any], bool, int]:
        return self.dtype, self.descending, self.row_items

    @property
    def _overlaps(self) -> bool:
        return gpu.get(self.device).may_overlap

    def _launch(
        self, spec: build.Spec, grid: int, threads: int, packed: Any, takes: dict[str, Any],
        may_overlap: bool = True,
    ) -> Launch:  # fmt: skip
        """Return a launch; all but the first may begin while the one before still runs."""
        return Launch(
            build.kernel(spec, self.device), grid, threads, packed, self.device, takes,
            overlaps=may_overlap and self._overlaps,
        )  # fmt: skip


def _filled(numbers: Any) -> list[int]:
    """Return numbers as an array of the kernels' has them."""
    found = list(numbers)
    return [*found, *([0] * (parameters.RANKS - len(found)))]
