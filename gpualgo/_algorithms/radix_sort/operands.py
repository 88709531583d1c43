"""The arrays of a sort on a GPU, as rows along the axis that is sorted."""

from __future__ import annotations

from copy import copy

from gpualgo._algorithms.radix_sort import policy
from gpualgo._arrays.view import View


class Operand:
    """An array as rows along the axis that is sorted."""

    def __init__(self, view: View, axis: int | None, place: int) -> None:
        self.place = place
        self.itemsize, self.address = view.dtype.itemsize, view.ptr
        self.dims = list(zip(view.shape, view.strides, strict=True))
        if axis is not None:
            self.dims.append(self.dims.pop(axis))
        self.strides = [stride for _, stride in self.dims]
        self.row_strides: list[int] = []  # were there no gaps
        step = self.itemsize
        for extent, _ in reversed(self.dims):
            self.row_strides.insert(0, step)
            step *= extent
        self.num_bytes = step
        self.is_gapless = all(
            extent == 1 or stride == rows
            for (extent, stride), rows in zip(self.dims, self.row_strides, strict=True)
        )
        self.is_aligned = view.ptr % self.itemsize == 0 and all(
            extent == 1 or stride % self.itemsize == 0 for extent, stride in self.dims
        )
        # Gapless rows of words that kernels can move.
        self.is_ready = (
            self.is_gapless and self.itemsize in policy.WORDS and view.ptr % self.itemsize == 0
        )

    def like(self, place: int, itemsize: int) -> Operand:
        """Return gapless, aligned rows of as many items, of a size, at another place."""
        made = copy(self)
        step = made.itemsize = itemsize
        made.place, made.address, made.strides = place, 0, []
        for extent, _ in reversed(self.dims):
            made.strides.insert(0, step)
            step *= extent
        made.dims = [(e, s) for (e, _), s in zip(self.dims, made.strides, strict=True)]
        made.row_strides, made.num_bytes = made.strides, step
        made.is_gapless = made.is_aligned = True
        made.is_ready = itemsize in policy.WORDS
        return made
