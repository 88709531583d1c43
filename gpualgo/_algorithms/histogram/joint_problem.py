"""Specification of a histogram of several dimensions, or with weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpualgo._algorithms.histogram import arguments, sums
from gpualgo._algorithms.histogram.arguments import Edges
from gpualgo._algorithms.histogram.bins import Bins
from gpualgo._algorithms.histogram.joint_arguments import bins_again, named
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import View
from gpualgo._base import dtypes, records
from gpualgo._base.extents import dense_strides
from gpualgo._lazy.sources import Source, arguments_of, computed
from gpualgo._operators.operator import Operator
from gpualgo._pipeline import checks
from gpualgo._pipeline.problem import Array, Problem
from gpualgo._pipeline.results import Result

if TYPE_CHECKING:
    from gpualgo._cuda.plan import Plan
    from gpualgo._pipeline.routines import Routine


class Rest(NamedTuple):
    """The parameters of a call, without its arrays."""

    bins: tuple[Any, ...]  # of each dimension, see `arguments.bins_of`
    axis: Any
    dtype: Any
    form: Form | Source | None  # structure of a tuple; Source: samples are computed
    weights: Any  # View: an array, the last of the views; the dtype of a number; None


class JointHistogram(Problem):
    """Specification of a `histogram` call with tuples or weights, shared by equal calls.

    The views are the samples, one per dimension, or with an op the inputs of its source; then the
    weights. All have one shape. Weights that are one number are the `init` of the call.
    """

    table: Any = None  # of the bins, on a GPU
    max_kept = 256
    spreads_tuples = True
    broadcasts_arguments = True
    has_names = False  # there is no operator
    rest: Rest

    @classmethod
    def row_of(cls, views: Sequence[View], rest: tuple[Any, ...]) -> tuple[str, Sequence[View]]:
        return "histogram", views[:1]

    def __init__(
        self, device: int, views: tuple[View, ...], op: Operator | None, init: Any, rest: Rest,
        where: str,
    ) -> None:  # fmt: skip
        self.has_array = rest.weights is View
        samples = views[:-1] if self.has_array else views  # not stored: they hold the arrays
        self.inputs, self.forms = arguments_of(samples, rest.form)
        if self.has_array:
            self.inputs, self.forms = (*self.inputs, "weights"), (*self.forms, None)
        super().__init__(device, views, op, init, rest, where)
        if isinstance(rest.form, Source):
            assert op is not None
            source, form, samples = computed(op, samples, rest.form, device, where)
        else:
            form = rest.form
        self.is_tuple = form is not None
        self.has_weights = rest.weights is not None
        shape = views[0].shape
        self.axes = axes = checks.axes_of(rest.axis, len(shape), where)
        self.kept = tuple(n for i, n in enumerate(shape) if i not in axes)
        self.num_samples = math.prod(shape[i] for i in axes)  # of each histogram
        self.dtype = self._dtype(views)
        self.bins = [self._bins(i, view.dtype) for i, view in enumerate(samples)]
        numbers = [bins.sample_dtype for bins in self.bins]
        self.element: records.Element = records.record(map(str, range(len(numbers))), numbers)
        if isinstance(rest.form, Source):
            self.element = source._replace(result=records.with_leaves(source.result, numbers))
        self.num_bins = math.prod(bins.num_bins for bins in self.bins)
        shape = (*self.kept, *(bins.num_bins for bins in self.bins))
        self.results = (Result(shape, self.dtype),)
        self.strides = dense_strides(shape, self.dtype.itemsize)  # a new result's
        self.is_empty = self.num_samples == 0
        self.reads_data = not isinstance(rest.form, Source) and any(
            not isinstance(one, Edges) and one[-1] for one in rest.bins
        )  # ranges of computed samples are detected by the call
        self.hold(sum(bins.num_bytes for bins in self.bins))

    def _dtype(self, views: Sequence[View]) -> np.dtype[Any]:
        requested, where = self.rest.dtype, self.where
        if not self.has_weights:
            return arguments.counter_dtype(requested, self.num_samples)
        weights_dtype = views[-1].dtype if self.has_array else self.rest.weights
        dtypes.check(weights_dtype, f"{where}: weights")
        return sums.dtype_of(weights_dtype, requested, where)

    def _bins(self, i: int, dtype: np.dtype[Any]) -> Bins:
        bins = self.rest.bins[i]

        def make() -> Bins:
            if isinstance(bins, Edges):
                arguments.check_edges(bins.array)
                return Bins(dtype, bins.array.size - 1, bins.array, None, None)
            number, _, lo, _, hi, _ = bins
            return Bins(dtype, number, None, lo, hi)

        return named(i, make) if self.is_tuple else make()

    def encode(self, init: Any) -> Array | None:
        if init is None:
            return None
        return checks.init_value(init, self.dtype, self.where, "weights")

    def for_data(self, views: tuple[View, ...], stream: Any) -> Problem:
        bins = bins_again(self.rest.bins, views, self.inputs, stream)
        return self.like(views, None, None, self.rest._replace(bins=bins))

    def of_empty(self, op: Any, init: Any) -> Array:
        return np.zeros((), self.dtype)

    def cuda(self, views: Sequence[View], op: Any, targets: Sequence[View]) -> Plan:
        from gpualgo._algorithms.histogram import cuda_joint

        return cuda_joint.plan_of(self, views, op, targets[0])

    def routines(
        self, arrays: list[Array], results: list[Array], op: Any, init: Array | None
    ) -> list[Routine]:
        from gpualgo._algorithms.histogram.cpu_parameters import MOST
        from gpualgo._pipeline.routines import bytes_of, compiled

        work = bytes_of(arrays)
        return [compiled("histogram", arrays[0].size, MOST, work)] if arrays[0].size else []

    def cpu(self, arrays: list[Array], results: list[Array], op: Any, init: Array | None) -> None:
        from gpualgo._algorithms.histogram import cpu_joint

        if init is not None:  # weights that are one number
            arrays = [*arrays, np.broadcast_to(init, arrays[0].shape)]
        cpu_joint.histogram(arrays, results[0], self, op)

    def run_chunked(
        self, arrays: list[Array], results: list[Array], op: Any, init: Array | None, stream: Any,
        places: list[View | None],
    ) -> bool:  # fmt: skip
        if op is not None:  # computed samples are not in memory
            return False
        from gpualgo._algorithms.histogram import blocks

        return blocks.histogram(self, arrays, results[0], init, stream, places)
