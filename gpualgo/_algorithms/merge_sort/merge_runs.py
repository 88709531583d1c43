"""Merge of several sorted runs, of which some may lie on other GPUs, to a part of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpualgo._algorithms.merge_sort import tuning
from gpualgo._algorithms.merge_sort.comparison import Comparison
from gpualgo._arrays.view import View, is_contiguous
from gpualgo._base import records
from gpualgo._base.memo import Memo
from gpualgo._pipeline.problem import NO_INIT

if TYPE_CHECKING:
    from gpualgo._cuda.plan import Plan


class Runs(NamedTuple):
    """Runs sorted by value; equal elements are in the order of the runs."""

    keys: tuple[np.dtype[Any], ...]  # of each field
    values: tuple[int, ...]  # sizes of fields that are moved with the keys
    ways: tuple[bool, ...]  # whether descending, for each field of a key
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
        from gpualgo._cuda import build
        from gpualgo._cuda.plan import KEPT, NONE, ArgMap, Launch, Piece, Plan
        from gpualgo._driver import device as gpu

        num_keys, num_fields, num_runs = len(self.keys), self.num_fields, len(self.lengths)
        element = self.keys[0]
        if num_keys > 1:
            element = records.record([str(i) for i in range(num_keys)], self.keys)
        num_outs = len(self.values) if self.index_bytes else num_fields
        props, slots = gpu.get(device), ArgMap(num_runs * num_fields, num_outs)
        pieces = tuning.run_pieces(element.itemsize, self.values, num_runs, props.shared_limit)
        specs = tuning.merge_runs(
            Comparison(element, None, self.ways), self.values, self.index_bytes, num_runs, pieces,
            props.may_overlap, props.capability >= (8, 0),
        )  # fmt: skip
        shift = pieces.shift(last - first)
        starts = [sum(self.lengths[:i]) if self.index_bytes else 0 for i in range(num_runs)]
        packed = specs[0].parameters.pack(
            lengths=self.lengths, starts=starts, first=first, last=last, shift=shift
        )
        sources = [
            [slots.source(run * num_fields + field) for field in range(num_fields)]
            for run in range(num_runs)
        ]
        outs = [slots.target(i) for i in range(num_outs)]
        key_outs = [NONE] * num_keys if self.index_bytes else outs[:num_keys]
        arguments = {
            "keys": [tuple(fields[:num_keys]) for fields in sources],
            "values": [tuple(fields[num_keys:]) or (NONE,) for fields in sources],
            "output_keys": tuple(key_outs),
            "output_values": tuple(outs[num_outs - len(self.values) :]) or (NONE,),
            "cuts": slots.piece(0),
        }
        chunks = -(-(last - first) // (pieces.samples << shift))
        num_pieces, cut_bytes = (
            chunks * pieces.pieces_per_chunk,
            tuning.cut_bytes(element.itemsize),
        )
        launches = [
            Launch(
                kernel, grid, threads, packed, device, arguments, shared_bytes=shared_bytes,
                overlaps=props.may_overlap,
            )
            for kernel, grid, threads, shared_bytes in zip(
                build.kernels(specs, device), (chunks + 1, chunks, num_pieces),
                (tuning.CUT_THREADS, tuning.CUT_THREADS, pieces.policy.block_threads),
                (cut_bytes, cut_bytes, pieces.shared_bytes), strict=True,
            )
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
