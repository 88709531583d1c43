"""Candidates in long rows: samples, bounds, filters, selection of ranks, and scratch storage."""

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
    """Slots of the scratch pieces of a row: its sample, and lists of candidates between bounds."""

    sample_keys: int
    sample_positions: int
    bounds: int
    keys: int
    positions: int
    control: int  # of the kernels that narrow ranks down


class Left(NamedTuple):
    """The slots of a list of candidates, and its capacity."""

    places: dict[str, Place]
    capacity: int


@dataclass(frozen=True)
class LongRows:
    """Rows that are filtered one after another."""

    device: int
    dtype: np.dtype[Any]
    descending: bool
    row_items: int
    flip: int
    place: int
    ranks: Sequence[int]
    is_one: bool  # only elements of the ranks are wanted, not all up to a rank

    @cached_property
    def lists(self) -> Lists:
        """Return the samples that bound the ranks."""
        return policy.lists_of(self.row_items, self.ranks, self.is_one)

    @property
    def is_narrowed(self) -> bool:
        """Return whether several blocks select from the candidates, because there are many."""
        return any(sample.kept(self.row_items) > policy.MOST_LEFT for sample in self.lists.samples)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the sizes of the pieces of `Kept`."""
        samples = self.lists.samples
        size, capacity = 1 << samples[0].bits, sum(sample.capacity for sample in samples)
        key, index = policy.ordered_bytes(self.dtype), policy.index_bytes(self.row_items)
        return (
            size * key, size * index, len(samples) * parameters.BOUNDS_BYTES, capacity * key,
            capacity * index, policy.control_bytes(len(self.ranks), self.row_items),
        )  # fmt: skip

    def left(self, rank: int, kept: Kept) -> Left:
        """Return the candidates for the `rank`-th of the ranks after `steps`."""
        samples, of_ranks = self.lists
        number, begin = of_ranks[rank], self._offsets[of_ranks[rank]]
        key, index = policy.ordered_bytes(self.dtype), policy.index_bytes(self.row_items)
        places: dict[str, Place] = {
            "kept_keys": (kept.keys, begin * key),
            "kept_positions": (kept.positions, begin * index),
            "bounds": (kept.bounds, number * parameters.BOUNDS_BYTES),
        }
        return Left(places, samples[number].capacity)

    @property
    def specs(self) -> list[build.Spec]:
        number = len(self.lists.samples)
        return policy.sample_specs(*self._kind, number, self._overlaps)

    @property
    def narrow_specs(self) -> list[build.Spec]:
        return policy.narrow_specs(*self._kind, not self.is_one, self._overlaps)

    def steps(self, row: int, kept: Kept) -> list[Launch]:
        """Return the launches that store the elements of a row between bounds of a sample."""
        samples, size = self.lists.samples, 1 << self.lists.samples[0].bits
        gather, bound, keep = self.specs
        gathered = {"keys": kept.sample_keys, "positions": kept.sample_positions}
        packed = parameters.GATHER_SAMPLE.pack(
            row_items=self.row_items, flip=self.flip, sample_bits=samples[0].bits
        )
        grid, threads = -(-size // policy.GATHER_THREADS), policy.GATHER_THREADS
        slots: dict[str, Any] = {"row": self._row(row), **gathered}
        launches = [self._launch(gather, grid, threads, packed, slots, False)]
        control = policy.control_bytes(len(self.ranks), self.row_items) if self.is_narrowed else 0
        packed = parameters.BOUND_SAMPLE.pack(
            num_samples=size, control_words=control // 4,
            first=_padded(sample.first for sample in samples),
            last=_padded(sample.last for sample in samples),
        )  # fmt: skip
        slots = {**gathered, "bounds": kept.bounds, "control": kept.control if control else NONE}
        launches.append(self._launch(bound, 2 * len(samples), policy.LARGE_BLOCK, packed, slots))
        packed = parameters.FILTER.pack(
            row_items=self.row_items, flip=self.flip, begin=_padded(self._offsets),
            capacity=_padded(sample.capacity for sample in samples),
        )  # fmt: skip
        slots = {
            "row": self._row(row), "bounds": kept.bounds, "keys": kept.keys,
            "positions": kept.positions,
        }  # fmt: skip
        num_sms = gpu.get(self.device).num_sms
        grid = policy.filter_grid(self.row_items, self.dtype.itemsize, num_sms)
        return [*launches, self._launch(keep, grid, policy.FILTER_THREADS, packed, slots)]

    def narrow(self, row: int, kept: Kept, result: Place, result_step: int = 0) -> list[Launch]:
        """Return the launches that find all ranks among the candidates; write them or positions."""
        narrow, write = self.narrow_specs
        samples, of_ranks = self.lists
        counts = len(self.ranks) * parameters.STATE_BYTES
        slots = {
            "row": self._row(row), "kept_keys": kept.keys, "kept_positions": kept.positions,
            "bounds": kept.bounds, "states": kept.control, "counts": (kept.control, counts),
            "result": result,
        }  # fmt: skip
        num_items = max(sample.kept(self.row_items) for sample in samples)
        number, num_sms = len(self.ranks), gpu.get(self.device).num_sms
        grid = policy.narrow_grid(num_items, number, num_sms)
        launches = []
        for i in range(policy.num_digits(self.dtype, self.row_items) + 1):
            packed = parameters.NARROW.pack(
                row_items=self.row_items, result_step=result_step, is_first=i == 0,
                num_ranks=number, flip=self.flip, ranks=_padded(self.ranks),
                lists=_padded(of_ranks), begin=_padded(self._offsets),
                capacity=_padded(s.capacity for s in samples),
            )  # fmt: skip
            launches.append((narrow, packed))
        launches[-1] = write, launches[-1][1]
        return [
            self._launch(spec, grid * number, policy.NARROW_THREADS, packed, slots)
            for spec, packed in launches
        ]

    @property
    def _offsets(self) -> list[int]:
        """Return the offsets of the lists, in elements."""
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
        self, spec: build.Spec, grid: int, threads: int, packed: Any, slots: dict[str, Any],
        may_overlap: bool = True,
    ) -> Launch:  # fmt: skip
        """Return a launch; all but the first may start while the previous kernel still runs."""
        return Launch(
            build.kernel(spec, self.device), grid, threads, packed, self.device, slots,
            overlaps=may_overlap and self._overlaps,
        )  # fmt: skip


def _padded(numbers: Any) -> list[int]:
    """Return numbers padded with zeros to the length of kernel arrays."""
    padded = list(numbers)
    return [*padded, *([0] * (parameters.RANKS - len(padded)))]
