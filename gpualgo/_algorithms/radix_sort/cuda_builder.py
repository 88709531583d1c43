"""What all sorts on a GPU are built of: copies into rows and back, sorts of rows, storage."""

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
    """Steps and pieces of a plan, and the arrays that they take."""

    def __init__(
        self, axis: int | None, row_items: int, views: Sequence[View], targets: Sequence[View]
    ) -> None:
        self.device = views[0].device
        self.steps: Steps = []
        self.pieces: list[Piece] = []
        self._at = at = Places(len(views), len(targets))
        # Results of flattened arrays are rows already.
        self._sources = [Operand(x, axis, at.source(i)) for i, x in enumerate(views)]
        self._targets = [Operand(x, axis, at.target(i)) for i, x in enumerate(targets)]
        self._row_items = row_items
        self._num_rows = math.prod(views[0].shape) // row_items

    def _sort(self, job: Job, arrays: Arrays) -> None:
        sorted_in_one = block_sort.launch_of(job, arrays)
        if sorted_in_one is not None:
            self.steps.append(sorted_in_one)
            return
        first = self._at.piece(len(self.pieces))
        # Beside copies, all storage is one allocation.
        steps, pieces = passes.steps_of(job, arrays, first, may_be_kept=not self.pieces)
        self.steps += steps
        self.pieces += pieces

    def _piece(self, num_bytes: int) -> int:
        """Return the place of a new piece of temporary storage."""
        self.pieces.append(Piece(num_bytes))
        return self._at.piece(len(self.pieces) - 1)

    def _kept_pieces(self, sizes: Sequence[int]) -> list[int]:
        """Return the places of pieces that lie in a stream's workspace, if they fit and are all."""
        ends = list(accumulate(map(aligned, sizes), initial=0))
        is_kept = not self.pieces and ends[-1] <= KEPT_BYTES
        first = len(self.pieces)
        self.pieces += [
            Piece(size, KEPT + at if is_kept else None)
            for size, at in zip(sizes, ends, strict=False)
        ]
        return [self._at.piece(i) for i in range(first, len(self.pieces))]

    def _copy(self, operand: Operand, inward: bool, rows: int | tuple[int, int]) -> None:
        """Add a copy of an array into gapless rows (inward), or back.

        `rows`: their place, or that and how many bytes behind it they begin.
        """
        near, far = operand.strides, operand.row_strides
        pairs = zip(near, far, strict=True) if inward else zip(far, near, strict=True)
        dims: Dims = [(e, pair) for (e, _), pair in zip(operand.dims, pairs, strict=True)]
        ends = (operand.place, rows) if inward else (rows, operand.place)
        takes = dict(zip(("input", "output"), ends, strict=True))
        alignment = (operand.address | (rows[1] if isinstance(rows, tuple) else 0)) & 15
        self.steps.append(copy.copy(dims, operand.itemsize, alignment, self.device, takes))

    def _gather_source(self, source: Operand, target: Operand) -> tuple[int, int, bool]:
        """Return where sorting starts, where its result goes, and whether that is the same."""
        home = target.place if target.is_ready else self._piece(target.num_bytes)
        if source.is_ready:
            is_same = home == target.place and source.address == target.address
            return source.place, home, is_same
        self._copy(source, True, home)
        return home, home, True

    def _scatter(self, target: Operand, home: int) -> None:
        if home != target.place:
            self._copy(target, False, home)

    def _gather_items(self, moved: Operand, place: Operand, indices: int, index_bytes: int) -> int:
        """Add the gather of values; return where they are then."""
        first, alignment = moved.place, moved.address
        if not moved.is_gapless:
            first, alignment = self._piece(moved.num_bytes), 0
            self._copy(moved, True, first)
        last = place.place
        if not place.is_gapless or (first == moved.place and moved.address == place.address):
            last = self._piece(place.num_bytes)
        else:
            alignment |= place.address
        self.steps.append(
            copy.gather(
                self._num_rows, self._row_items, moved.itemsize, alignment & 15, index_bytes,
                self.device, {"input": first, "output": last, "indices": indices},
            )
        )  # fmt: skip
        return last


def position_bytes(row_items: int) -> int:
    """Return the size of the indices that are sorted along."""
    return 4 if row_items <= 1 << 32 else 8
