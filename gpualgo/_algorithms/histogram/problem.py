"""Specification of a histogram: axes, bins and counter dtype."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpualgo._algorithms.histogram import arguments
from gpualgo._algorithms.histogram.arguments import Edges
from gpualgo._algorithms.histogram.bins import Bins
from gpualgo._arrays.view import View
from gpualgo._base.strides import dense_strides
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import checks
from gpualgo._pipeline.outputs import Result
from gpualgo._pipeline.problem import Array, Problem

if TYPE_CHECKING:
    from gpualgo._cuda.plan import Plan
    from gpualgo._pipeline.problem import Prepared
    from gpualgo._pipeline.routines import Routine


class Histogram(Problem):
    """Specification of a `histogram` call, shared by equal calls.

    `rest` holds the bins (see `arguments.bins_of`), the axis and the dtype.
    """

    has_weights = False
    table: Any = None  # of the bins, on a GPU
    max_kept = 256  # few, because calls with detected ranges are not equal

    @classmethod
    def row_of(cls, views: Sequence[View], rest: tuple[Any, ...]) -> tuple[str, Sequence[View]]:
        return "histogram", views[:1]

    def __init__(
        self, device: int, views: tuple[View, ...], op: Operator | None, init: Any,
        rest: tuple[Any, ...], where: str,
    ) -> None:  # fmt: skip
        super().__init__(device, views, op, init, rest, where)
        (view,), (bins, axis, dtype) = views, rest
        arguments.check_samples(view)
        self.axes = axes = checks.axes_of(axis, len(view.shape), where)
        kept = tuple(n for i, n in enumerate(view.shape) if i not in axes)
        self.num_samples = math.prod(view.shape[i] for i in axes)  # of each histogram
        self.dtype = arguments.counter_dtype(dtype, self.num_samples)
        if isinstance(bins, Edges):
            arguments.check_edges(bins.array)
            self.bins = Bins(view.dtype, bins.array.size - 1, bins.array, None, None)
        else:
            number, _, lo, _, hi, self.reads_data = bins
            self.bins = Bins(view.dtype, number, None, lo, hi)
        self.num_bins = self.bins.num_bins
        shape = (*kept, self.num_bins)
        self.results = (Result(shape, self.dtype),)
        self.strides = dense_strides(shape, self.dtype.itemsize)  # a new result's
        self.is_empty = self.num_samples == 0
        self.hold(self.bins.num_bytes)

    def for_data(self, views: tuple[View, ...], stream: Any) -> Problem:
        bins, axis, dtype = self.rest
        params = arguments.bins_of(bins[0], None, views[0], stream), axis, dtype
        return self.like(views, None, None, params)

    def of_empty(self, op: Any, init: Any) -> Array:
        return np.zeros((), self.dtype)

    def cuda(self, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
        from gpualgo._algorithms.histogram import cuda

        return cuda.plan_of(self, views[0], targets[0])

    def cpu(self, arrays: list[Array], results: list[Array], op: Any, init: Array | None) -> None:
        from gpualgo._algorithms.histogram import cpu

        (x,), (result,) = arrays, results
        cpu.histogram(x, result, self)

    def routines(
        self, arrays: list[Array], results: list[Array], op: Any, init: Array | None
    ) -> list[Routine]:
        from gpualgo._algorithms.histogram import cpu

        return cpu.routines(arrays[0], self)

    def prepared(
        self, op: Operator | None, arrays: list[Array], results: list[Array]
    ) -> Prepared | None:
        from gpualgo._algorithms.histogram import cpu

        (x,), (result,) = arrays, results
        return cpu.prepared(x, result, self)

    def run_chunked(
        self, arrays: list[Array], results: list[Array], op: Any, init: Array | None, stream: Any,
        places: list[View | None],
    ) -> bool:  # fmt: skip
        from gpualgo._algorithms.histogram import blocks

        return blocks.histogram(self, arrays, results[0], None, stream, places)
