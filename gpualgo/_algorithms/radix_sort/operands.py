"""Arrays of a GPU sort, viewed as rows along the sorted axis."""

from __future__ import annotations

from copy import copy

from gpualgo._algorithms.radix_sort import tuning
from gpualgo._arrays.view import View


class Operand:
    """An array viewed as rows along the sorted axis."""

    def __init__(self, view: View, axis: int | None, place: int) -> None:
        self.place = place
        self.itemsize, self.address = view.dtype.itemsize, view.ptr
        self.dims = list(zip(view.shape, view.strides, strict=True))
        if axis is not None:
            self.dims.append(self.dims.pop(axis))
        self.strides = [stride for _, stride in self.dims]
        self.row_strides: list[int] = []  # strides of dense rows
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
        # Dense rows of a size that kernels can move.
        self.is_ready = (
            self.is_gapless and self.itemsize in tuning.WORDS and view.ptr % self.itemsize == 0
        )

    def like(self, place: int, itemsize: int) -> Operand:
        """Return dense, aligned rows of as many items, with another item size and slot."""
        operand = copy(self)
        step = operand.itemsize = itemsize
        operand.place, operand.address, operand.strides = place, 0, []
        for extent, _ in reversed(self.dims):
            operand.strides.insert(0, step)
            step *= extent
        operand.dims = [(e, s) for (e, _), s in zip(self.dims, operand.strides, strict=True)]
        operand.row_strides, operand.num_bytes = operand.strides, step
        operand.is_gapless = operand.is_aligned = True
        operand.is_ready = itemsize in tuning.WORDS
        return operand
