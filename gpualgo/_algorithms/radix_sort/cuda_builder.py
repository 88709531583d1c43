"""Common parts of GPU sort plans: copies into dense rows and back, row sorts, storage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

from gpualgo._algorithms.radix_sort import cuda_passes as passes
from gpualgo._algorithms.radix_sort import cuda_rows as block_sort
from gpualgo._algorithms.radix_sort.cuda_passes import Arrays, Job, Steps
from gpualgo._algorithms.radix_sort.operands import Operand
from gpualgo._arrays.view import View
from gpualgo._base.extents import Dims
from gpualgo._cuda import copy
from gpualgo._cuda.pieces import KEPT, Piece
from gpualgo._cuda.plan import Places
from gpualgo._driver.workspace import KEPT_BYTES, aligned


class Builder:
    """Collects the steps and scratch pieces of a plan, and the argument slots of its arrays."""

    def __init__(
        self, axis: int | None, row_items: int, views: Sequence[View], targets: Sequence[View]
    ) -> None:
        self.device = views[0].device
        self.steps: Steps = []
        self.pieces: list[Piece] = []
        self._slots = slots = Places(len(views), len(targets))
        # The outputs of flattened sorts are rows already.
        self._sources = [Operand(x, axis, slots.source(i)) for i, x in enumerate(views)]
        self._targets = [Operand(x, axis, slots.target(i)) for i, x in enumerate(targets)]
        self._row_items = row_items
        self._num_rows = math.prod(views[0].shape) // row_items

    def _sort(self, job: Job, arrays: Arrays) -> None:
        single_launch = block_sort.launch_of(job, arrays)
        if single_launch is not None:
            self.steps.append(single_launch)
            return
        first = self._slots.piece(len(self.pieces))
        # Without copies, all storage is one allocation.
        steps, pieces = passes.steps_of(job, arrays, first, may_be_kept=not self.pieces)
        self.steps += steps
        self.pieces += pieces

    def _scratch(self, num_bytes: int) -> int:
        """Add a piece of temporary storage and return its slot."""
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
        near, far = operand.strides, operand.row_strides
        pairs = zip(near, far, strict=True) if inward else zip(far, near, strict=True)
        dims: Dims = [(e, pair) for (e, _), pair in zip(operand.dims, pairs, strict=True)]
        ends = (operand.place, rows) if inward else (rows, operand.place)
        slots = dict(zip(("input", "output"), ends, strict=True))
        alignment = (operand.address | (rows[1] if isinstance(rows, tuple) else 0)) & 15
        self.steps.append(copy.copy(dims, operand.itemsize, alignment, self.device, slots))

    def _gather_source(self, source: Operand, target: Operand) -> tuple[int, int, bool]:
        """Return the slots of the sort's source and target, and whether these are the same."""
        slot = target.place if target.is_ready else self._scratch(target.num_bytes)
        if source.is_ready:
            is_same = slot == target.place and source.address == target.address
            return source.place, slot, is_same
        self._copy(source, True, slot)
        return slot, slot, True

    def _scatter(self, target: Operand, slot: int) -> None:
        if slot != target.place:
            self._copy(target, False, slot)

    def _gather_items(self, items: Operand, target: Operand, indices: int, index_bytes: int) -> int:
        """Add the gather of values; return the slot of the result."""
        source, alignment = items.place, items.address
        if not items.is_gapless:
            source, alignment = self._scratch(items.num_bytes), 0
            self._copy(items, True, source)
        result = target.place
        if not target.is_gapless or (source == items.place and items.address == target.address):
            result = self._scratch(target.num_bytes)
        else:
            alignment |= target.address
        self.steps.append(
            copy.gather(
                self._num_rows, self._row_items, items.itemsize, alignment & 15, index_bytes,
                self.device, {"input": source, "output": result, "indices": indices},
            )
        )  # fmt: skip
        return result


def position_bytes(row_items: int) -> int:
    """Return the size of the indices that are sorted with the keys."""
    return 4 if row_items <= 1 << 32 else 8
