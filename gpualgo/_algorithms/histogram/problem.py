"""Specification of a histogram: dimensions, axes, bins, weights, and the dtype of results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gpualgo._algorithms.histogram import arguments
from gpualgo._algorithms.histogram.arguments import Edges, named, redetect_bins
from gpualgo._algorithms.histogram.bins import Bins
from gpualgo._arrays.forms import Form
from gpualgo._arrays.view import View
from gpualgo._base import dtypes, records
from gpualgo._base.strides import dense_strides
from gpualgo._lazy.sources import Source, arguments_of, computed
from gpualgo._pipeline import checks
from gpualgo._pipeline.problem import Array, Call, Problem, Result

# --- Argument table of the kernel of a histogram on the CPU.

MOST = 1024  # samples per call of a stage; buffers stay in L1
SLOT_BYTES = 4 * MOST  # of scratch memory: slots of a run, then those of one dimension

# After TAIL follow the stages of the samples' dimensions, the extents between groups of rows, those
# within a group, and READS fields: each as `packing.fetched` takes it, the offset of the first
# sample, and the strides between and within groups; weights are last. BINS_OF_SLOTS: as `flush`
# takes it. ADDRESSES, TABLES: offsets in scratch memory of the addresses of a run's numbers and of
# a group's tables. COMPUTE: 0, or the function that computes samples from the fields, to COMPUTED.
# INIT: not read.
(INIT, DIMS, LENGTH, GROUPS, SPLIT, STEP, ADD, FLUSH, PLACES) = range(9)
(TABLES, TABLES_SIZE, ROWS, COPIES, COPY_BYTES, SLOTS, TARGET, TASK_BYTES) = range(9, 17)
(NUM_SUMS, BINS_OF_SLOTS, OUTER, INNER, READS, ADDRESSES, COMPUTE, COMPUTED) = range(17, 25)
TAIL = 25

# A dimension: the stage that finds its slots.
(STAGE, STAGE_TABLE, STAGE_BINS, STAGE_SIZE) = range(4)

# Table entries of the stages for even bins and for a search, 8 bytes each.
(ORIGIN, SCALE, LAST, OUTSIDE) = range(4)
(START, WIDTH, LO, HI) = range(4, 8)
(CELLS, VALUES, NUM_VALUES, LEVELS, UPPER) = range(4, 9)


class HistogramParams(NamedTuple):
    bins: tuple[Any, ...]  # of each dimension, see `arguments.bins_of`
    axis: Any = None
    dtype: Any = None
    form: Form | Source | None = None  # structure of a tuple; Source: samples are computed
    weights: Any = None  # View: an array, the last of the views; the dtype of a number; None


class Histogram(Problem):
    """Specification of a `histogram` call, shared by equal calls.

    The views are the samples, one per dimension, or with an op the inputs of its source; then the
    weights. All have one shape. Weights that are one number are the `init` of the call.
    """

    shape_attributes: ClassVar[tuple[str, ...] | None] = ("num_samples",)
    table: Any = None  # of the bins, on a GPU
    max_kept = 256  # few, because calls with detected ranges are not equal
    spreads_tuples = True
    has_names = False  # there is no operator
    params: HistogramParams

    def of_shape(self, shape: tuple[int, ...]) -> Problem | None:
        if not self.axes or (not self.has_weights and shape[0] > np.iinfo(self.dtype).max):
            return None
        problem = super().of_shape(shape)
        if isinstance(problem, Histogram):
            problem.bins, problem.table = [bins.without_finder() for bins in self.bins], None
            problem.num_bytes = sum(bins.num_bytes for bins in self.bins)
        return problem

    @classmethod
    def row_of(cls, views: Sequence[View], params: tuple[Any, ...]) -> tuple[str, Sequence[View]]:
        return "histogram", views[:1]

    def __init__(self, call: Call) -> None:
        device, views, op, params, where = call.device, call.views, call.op, call.params, call.where
        params = HistogramParams(*params)
        self.has_array = params.weights is View
        samples = views[:-1] if self.has_array else views  # not stored: they hold the arrays
        self.inputs, self.forms = arguments_of(samples, params.form)
        if self.has_array:
            self.inputs, self.forms = (*self.inputs, "weights"), (*self.forms, None)
        super().__init__(call._replace(params=params))
        if isinstance(params.form, Source):
            assert op is not None
            source, form, samples = computed(op, samples, params.form, device, where)
        else:
            form = params.form
            for view, name in zip(samples, self.inputs, strict=False):
                arguments.check_samples(view, name)
        self.is_tuple, self.has_weights = form is not None, params.weights is not None
        # Whether there may be several dimensions, computed samples or weights.
        self.is_joint = params.form is not None or self.has_weights
        self.broadcasts_arguments = self.is_joint
        shape = views[0].shape
        self.axes = axes = checks.axes_of(params.axis, len(shape), where)
        self.kept = tuple(n for i, n in enumerate(shape) if i not in axes)
        self.num_samples = math.prod(shape[i] for i in axes)  # of each histogram
        self.dtype = self._dtype(views)
        self.bins = [self._bins(i, view.dtype) for i, view in enumerate(samples)]
        numbers = [bins.sample_dtype for bins in self.bins]
        self.element: records.Element = records.record(map(str, range(len(numbers))), numbers)
        if isinstance(params.form, Source):
            self.element = source._replace(result=records.with_fields(source.result, numbers))
        self.num_bins = math.prod(bins.num_bins for bins in self.bins)
        shape = (*self.kept, *(bins.num_bins for bins in self.bins))
        self.results = (Result(shape, self.dtype),)
        self.strides = dense_strides(shape, self.dtype.itemsize)  # a new result's
        self.is_empty = self.num_samples == 0
        self.reads_data = not isinstance(params.form, Source) and any(
            not isinstance(one, Edges) and one[-1] for one in params.bins
        )  # ranges of computed samples are detected by the call
        self.hold(sum(bins.num_bytes for bins in self.bins))

    def _dtype(self, views: Sequence[View]) -> np.dtype[Any]:
        requested, where = self.params.dtype, self.where
        if not self.has_weights:
            return arguments.counter_dtype(requested, self.num_samples)
        weights_dtype = views[-1].dtype if self.has_array else self.params.weights
        dtypes.check(weights_dtype, f"{where}: weights")
        return _dtype_of_sums(weights_dtype, requested, where)

    def _bins(self, i: int, dtype: np.dtype[Any]) -> Bins:
        bins = self.params.bins[i]

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
        bins = redetect_bins(self.params.bins, views, self.inputs, stream)
        return self.of_same_kind(views, None, None, self.params._replace(bins=bins))

    def of_empty(self, op: Any, init: Any) -> Array:
        return np.zeros((), self.dtype)


class WeightedHistogram(Histogram):
    """A histogram whose last array is the weights: on a GPU a reduction by index."""

    shape_attributes = ("num_samples",)
    planned_in = "gpualgo._algorithms.by_index"


WeightedHistogram.problems = Histogram.problems  # one bound for both; their params differ


def _dtype_of_sums(weights: np.dtype[Any], dtype: Any, where: str) -> np.dtype[Any]:
    """Return the dtype of sums: `dtype`, else that of the weights, widened if integer."""
    kind = dtypes.kind(weights)
    if dtype is None:
        defaults = {"b": np.dtype(np.int64), "i": np.dtype(np.int64), "u": np.dtype(np.uint64)}
        return defaults.get(kind, weights)
    result = dtypes.as_dtype(dtype, where)
    if result.kind == "b" or not dtypes.can_cast(weights, result):
        raise TypeError(
            f"{where}: weights of dtype {weights} cannot be added up in dtype {result}; "
            f"pass dtype=np.{weights if kind in 'fc' else 'int64'} or convert them first"
        )
    return result


def accumulator(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which a GPU adds up the weights of a result: of four bytes or more."""
    if dtype.itemsize >= 4:
        return dtype
    return np.dtype({"i": np.int32, "u": np.uint32}.get(dtype.kind, np.float32))
