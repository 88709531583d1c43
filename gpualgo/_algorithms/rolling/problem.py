"""Checked arguments of rolling windows, and what each step reads and writes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpualgo._algorithms.scan import problem as parameters
from gpualgo._algorithms.scan.problem import Scan, Step
from gpualgo._base import records
from gpualgo._pipeline.problem import Array, Call, Dtype, Result

# On the CPU the elements of a window are combined one after the other, of all windows at once, if
# these are no more bytes: a pass reads and writes vectors.
PASSES_BYTES = 40


class Rolling(Scan):
    """The elements are copied to buffers, with the axis last, and scanned there in blocks.

    A block is as long as a window. So the grouping does not depend on the layout of the elements.
    """

    has_steps = True

    def __init__(self, call: Call) -> None:
        axis, window, dtype, form, classes = call.params
        super().__init__(call._replace(params=(axis, False, dtype, form, classes)))
        assert self.axis is not None
        length = self.shape[self.axis]
        if window < 1:
            raise ValueError(f"{self.where}: window is {window}; pass a positive number")
        if window > length:
            raise ValueError(
                f"{self.where}: window is {window}, and axis {self.axis} has {length} elements; "
                "pass a window that is not longer"
            )
        self.params, self.window, self.length = call.params, window, length
        self.count = length - window + 1  # of results along the axis
        shape = (*self.shape[: self.axis], self.count, *self.shape[self.axis + 1 :])
        self.results = tuple(Result(shape, r.dtype, order=r.order) for r in self.results)

    @property
    def buffers(self) -> Sequence[Dtype]:
        """Two of whole blocks for each field; copies of the last element fill the last one."""
        return records.field_dtypes(self.acc) * 2 if self.window > 1 else ()

    @property
    def buffer_shape(self) -> tuple[int, ...]:
        return (*self.row_shape, -(-self.length // self.window) * self.window)

    def steps(
        self, arrays: Sequence[Array], outs: Sequence[Array], buffers: Sequence[Array],
        on_cpu: bool = False,
    ) -> list[Step]:  # fmt: skip
        """Return the steps in order; all arrays are views of these ones."""
        axis, window, length = self.axis, self.window, self.length
        assert axis is not None
        inputs = [np.moveaxis(np.broadcast_to(x, self.shape), axis, -1) for x in arrays]
        results = [np.moveaxis(out, axis, -1) for out in outs]
        if window == 1:
            return [Step(parameters.ELEMENTS, inputs, results)]
        prefixes, suffixes = buffers[: len(outs)], buffers[len(outs) :]

        def part(arrays: Sequence[Array], *bounds: int | None) -> list[Array]:
            return [array[..., slice(*bounds)] for array in arrays]

        def blocks(arrays: Sequence[Array]) -> list[Array]:
            return [array.reshape(*array.shape[:-1], -1, window) for array in arrays]

        if on_cpu and (window - 1) * self.acc.itemsize <= PASSES_BYTES:
            read, found = list[Step](), inputs
            if self.source != self.acc:
                found = part(prefixes, length)
                read = [Step(parameters.ELEMENTS, inputs, found)]
            shifted = [part(found, k, k + self.count) for k in range(window)]
            before = [shifted[0], *[results] * (window - 2)]
            both = zip(before, shifted[1:], strict=True)
            return read + [Step(parameters.COMBINE, a + b, results) for a, b in both]

        rest = part(prefixes, length, None)
        last = [np.broadcast_to(x, rest[0].shape) for x in part(prefixes, length - 1, length)]
        pairs = part(suffixes, self.count) + part(prefixes, window - 1, length)
        whole = part(prefixes, window - 1, length, window)  # of windows that are blocks
        return [
            Step(parameters.ELEMENTS, inputs, part(prefixes, length)),
            Step(parameters.COPY, last, rest),
            Step(parameters.SUFFIXES, blocks(prefixes), blocks(suffixes)),
            Step(parameters.PREFIXES, blocks(prefixes), blocks(prefixes)),
            Step(parameters.COMBINE, pairs, results),
            Step(parameters.COPY, whole, part(results, None, None, window)),
        ]
